# mypy: ignore-errors
"""Gaussian clusters with known diagonal noise and a conjugate Gaussian prior on the mean, compiled.

With ratio = (noise / prior scale)² per dimension, a cluster of n points with mean x̄ has posterior
N((ratio m + n x̄)/(ratio + n), noise²/(ratio + n)) and predictive variance noise² (1 + 1/(ratio + n)). When
noise and ratio are the same in all dimensions the variance is one number per cluster, and the weighted sum
over dimensions becomes a plain squared distance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import implements, inlined, kernel

LOG_2PI = math.log(2.0 * math.pi)


@by_reference
class GaussianStats(NamedTuple):
    """Statistics of Gaussian clusters; d dimensions, room for ``capacity`` clusters.

    ``half_precision`` has one row when the predictive variance is the same in all dimensions,
    otherwise d rows.
    """

    ratio: np.ndarray  # (d,) (noise scale / prior scale)²
    prior_mean: np.ndarray  # (d,)
    variance: np.ndarray  # (d,) of the noise
    log_jacobian: float  # -Σ ln noise scale
    counts: np.ndarray  # (capacity,)
    sums: np.ndarray  # (d, capacity)
    means: np.ndarray  # (d, capacity) posterior mean of the cluster's center
    spread: np.ndarray  # (d, capacity) Σ (x - x̄)² within the cluster, kept by Welford's update
    half_precision: np.ndarray  # (1 or d, capacity) 1/(2 predictive variance)
    log_height: np.ndarray  # (capacity,) log of the predictive density at its mode


@kernel
def _update_posterior(stats, k):
    n = stats.counts[k]
    same = stats.half_precision.shape[0] == 1
    weight = 1.0 / (stats.ratio[0] + n)
    for j in range(stats.ratio.shape[0]):
        if not same:
            weight = 1.0 / (stats.ratio[j] + n)
        stats.means[j, k] = (stats.ratio[j] * stats.prior_mean[j] + stats.sums[j, k]) * weight
    _update_spread(stats, k)


@kernel
def _update_spread(stats, k):
    """Bring the predictive's variance and height up to date with the number of members."""
    n = stats.counts[k]
    d = stats.ratio.shape[0]
    log_variance = 0.0
    if stats.half_precision.shape[0] == 1:
        stretch = 1.0 + 1.0 / (stats.ratio[0] + n)
        stats.half_precision[0, k] = 0.5 / (stretch * stats.variance[0])
        log_variance = d * math.log(stretch)
    else:
        for j in range(d):
            stretch = 1.0 + 1.0 / (stats.ratio[j] + n)
            stats.half_precision[j, k] = 0.5 / (stretch * stats.variance[j])
            log_variance += math.log(stretch)
    stats.log_height[k] = stats.log_jacobian - 0.5 * (d * LOG_2PI + log_variance)


@implements(contract.clear, GaussianStats)
def _clear(stats, k):
    stats.counts[k] = 0.0
    for j in range(stats.sums.shape[0]):
        stats.sums[j, k] = 0.0
        stats.spread[j, k] = 0.0
        stats.means[j, k] = stats.prior_mean[j]
    _update_spread(stats, k)


@implements(contract.add, GaussianStats)
def _add(stats, data, i, k):
    n = stats.counts[k]
    per_member = 1.0 / n if n > 0 else 0.0
    for j in range(stats.sums.shape[0]):
        difference = data[i, j] - stats.sums[j, k] * per_member
        stats.spread[j, k] += difference * difference * (n / (n + 1.0))
        stats.sums[j, k] += data[i, j]
    stats.counts[k] = n + 1.0
    _update_posterior(stats, k)


@implements(contract.remove, GaussianStats)
def _remove(stats, data, i, k):
    n = stats.counts[k]
    if n <= 1.0:
        contract.clear(stats, k)
        return
    per_member = 1.0 / (n - 1.0)
    for j in range(stats.sums.shape[0]):
        stats.sums[j, k] -= data[i, j]
        difference = data[i, j] - stats.sums[j, k] * per_member
        stats.spread[j, k] -= difference * difference * ((n - 1.0) / n)
    stats.counts[k] = n - 1.0
    _update_posterior(stats, k)


@inlined
def _score(stats, data, i, n_clusters, out):
    for k in range(n_clusters):
        out[k] = 0.0
    means = stats.means
    d = means.shape[0]
    if stats.half_precision.shape[0] == 1:
        # Four dimensions a pass: `out` is read and written a quarter as often.
        for j in range(0, d - 3, 4):
            x0, x1, x2, x3 = data[i, j], data[i, j + 1], data[i, j + 2], data[i, j + 3]
            for k in range(n_clusters):
                d0, d1 = x0 - means[j, k], x1 - means[j + 1, k]
                d2, d3 = x2 - means[j + 2, k], x3 - means[j + 3, k]
                out[k] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
        for j in range(d - d % 4, d):
            x = data[i, j]
            for k in range(n_clusters):
                difference = x - means[j, k]
                out[k] += difference * difference
        for k in range(n_clusters):
            out[k] = stats.log_height[k] - stats.half_precision[0, k] * out[k]
    else:
        for j in range(d):
            x = data[i, j]
            for k in range(n_clusters):
                difference = x - means[j, k]
                out[k] += difference * difference * stats.half_precision[j, k]
        for k in range(n_clusters):
            out[k] = stats.log_height[k] - out[k]


@implements(contract.log_predictive, GaussianStats)
def _log_predictive(stats, data, i, n_clusters, out):
    _score(stats, data, i, n_clusters, out)


@implements(contract.extend, GaussianStats)
def _extend(stats, data, i, starts, n_clusters, out):
    _score(stats, data, i, n_clusters, out)
    # The posterior mean moves by (x - m)/(ratio + n + 1).
    same = stats.half_precision.shape[0] == 1
    means = stats.means
    d = means.shape[0]
    step = stats.log_height  # scratch until the heights are renewed below
    for k in range(n_clusters):
        step[k] = 1.0 / (stats.ratio[0] + stats.counts[k] + 1.0)
    for j in range(d):
        for k in range(n_clusters):
            difference = data[i, j] - means[j, k]
            left = stats.ratio[j] + stats.counts[k] + 1.0
            means[j, k] += difference * step[k] if same else difference / left
    for k in range(n_clusters):
        stats.counts[k] += 1.0
        if same:
            stretch = 1.0 + step[k]
            stats.half_precision[0, k] = 0.5 / (stretch * stats.variance[0])
            stats.log_height[k] = stats.log_jacobian - 0.5 * d * (LOG_2PI + math.log(stretch))
        else:
            _update_spread(stats, k)


@implements(contract.log_predictive_without, GaussianStats)
def _log_predictive_without(stats, data, i, k):
    # x - m₋ = (x - m)(ratio + n)/(ratio + n - 1), with m₋ the posterior mean without x.
    n = stats.counts[k]
    d = stats.means.shape[0]
    total = stats.log_jacobian - 0.5 * d * LOG_2PI
    if stats.half_precision.shape[0] == 1:
        left = stats.ratio[0] + n - 1.0
        squared = 0.0
        for j in range(d):
            difference = data[i, j] - stats.means[j, k]
            squared += difference * difference
        # The predictive variance is that of the noise times the same (left + 1)/left.
        stretch = (left + 1.0) / left
        return total - 0.5 * (d * math.log(stretch) + squared * stretch / stats.variance[0])
    for j in range(d):
        left = stats.ratio[j] + n - 1.0
        stretch = (left + 1.0) / left
        difference = data[i, j] - stats.means[j, k]
        total -= 0.5 * (math.log(stretch) + difference * difference * stretch / stats.variance[j])
    return total


@implements(contract.log_marginal, GaussianStats)
def _log_marginal(stats, k):
    n = stats.counts[k]
    if n == 0.0:
        return 0.0
    total = n * (stats.log_jacobian - 0.5 * stats.ratio.shape[0] * LOG_2PI)
    for j in range(stats.ratio.shape[0]):
        shift = stats.sums[j, k] / n - stats.prior_mean[j]
        ratio = stats.ratio[j]
        squared = stats.spread[j, k] + shift * shift * n * ratio / (ratio + n)
        total -= 0.5 * (math.log((ratio + n) / ratio) + squared / stats.variance[j])
    return total


@implements(contract.copy_cluster, GaussianStats)
def _copy_cluster(stats, source, target):
    stats.counts[target] = stats.counts[source]
    for j in range(stats.sums.shape[0]):
        stats.spread[j, target] = stats.spread[j, source]
        stats.sums[j, target] = stats.sums[j, source]
        stats.means[j, target] = stats.means[j, source]
    for j in range(stats.half_precision.shape[0]):
        stats.half_precision[j, target] = stats.half_precision[j, source]
    stats.log_height[target] = stats.log_height[source]


@implements(contract.merge, GaussianStats)
def _merge(stats, source, target):
    n = stats.counts[source]
    m = stats.counts[target]
    if n == 0.0:
        return
    for j in range(stats.sums.shape[0]):
        difference = stats.sums[j, source] / n - stats.sums[j, target] / m if m > 0.0 else 0.0
        stats.spread[j, target] += stats.spread[j, source] + difference * difference * n * m / (n + m)
        stats.sums[j, target] += stats.sums[j, source]
    stats.counts[target] = n + m
    _update_posterior(stats, target)


@implements(contract.draw, GaussianStats)
def _draw(rng, stats, k, out):
    for j in range(stats.means.shape[0]):
        variance = stats.variance[j] * (1.0 + 1.0 / (stats.ratio[j] + stats.counts[k]))
        out[j] = stats.means[j, k] + math.sqrt(variance) * rng.standard_normal()


contract.use_defaults(
    GaussianStats,
    contract.log_predictive_above,
    contract.clear_members,
    contract.project,
    contract.add_vector,
)
