# mypy: ignore-errors
"""Gaussian clusters with unknown mean and variance in each column, columns independent, compiled.

Each column has a normal-inverse-gamma prior: σ² ~ ψ/χ²(ν) and μ ~ N(m, σ²/κ), with one κ and one ν for all. A
cluster of n points has κ_n = κ + n, ν_n = ν + n, mean m_n = (κ m + Σx)/κ_n and, as points are added one by
one, ψ_{n+1} = ψ_n + κ_n/(κ_n+1) (x - m_n)². Its predictive is a product over columns of Student's t,

    Γ((ν_n+1)/2)/Γ(ν_n/2) (π ψ_n (κ_n+1)/κ_n)^(-1/2) (1 + κ_n/(κ_n+1) (x - m_n)²/ψ_n)^(-(ν_n+1)/2).

All columns have the same power: what depends on the datum is one logarithm of a product.
The cluster is the first axis: one that is far from a datum is left after a few columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import implements, inlined, kernel

LOG_PI = math.log(math.pi)
# Rounding may not make a variance vanish: the least share of it that taking out a point leaves.
SMALLEST_SHARE = 1e-14
# Products of eight factors are turned into logarithms outside of this and its inverse.
HUGE = 1e100
# Two such products are less than e^500, so one is beyond it only if a limit on its logarithm says so.
BEYOND = 500.0


@by_reference
class DiagonalStats(NamedTuple):
    """Statistics of clusters of independent columns; d columns, room for ``capacity`` clusters."""

    prior_mean: np.ndarray  # (d,) m
    prior_scale: np.ndarray  # (d,) ψ
    prior_strength: float  # κ
    degrees_of_freedom: float  # ν
    counts: np.ndarray  # (capacity,)
    means: np.ndarray  # (capacity, d) m_n
    scales: np.ndarray  # (capacity, d) ψ_n
    precisions: np.ndarray  # (capacity, d) 1/ψ_n
    log_det: np.ndarray  # (capacity,) Σ ln ψ_n
    log_height: np.ndarray  # (capacity,) log of the predictive density at its mode


@kernel
def _update_height(stats, k):
    """Bring what predictives read up to date with the scales and the number of members."""
    d = stats.prior_mean.shape[0]
    scales, precisions = stats.scales[k], stats.precisions[k]
    log_det = 0.0
    product = 1.0
    for j in range(d):
        precisions[j] = 1.0 / scales[j]
        if not 1.0 / HUGE < product < HUGE:
            log_det += math.log(product)
            product = 1.0
        product *= scales[j]
    log_det += math.log(product)
    stats.log_det[k] = log_det
    strength = stats.prior_strength + stats.counts[k]
    freedom = stats.degrees_of_freedom + stats.counts[k]
    column = math.lgamma(0.5 * (freedom + 1.0)) - math.lgamma(0.5 * freedom)
    column -= 0.5 * (LOG_PI + math.log((strength + 1.0) / strength))
    stats.log_height[k] = d * column - 0.5 * log_det


@kernel
def _log_product(means, precisions, data, i, k, weight, limit):
    """Return Σ ln(1 + weight (x - m_n)²/ψ_n) over columns; of one that is beyond ``limit`` only that it is.

    A negative weight, of a point that is taken out, leaves at least a tiny share of each factor.
    """
    d = means.shape[1]
    total = 0.0
    product = 1.0
    most = math.exp(min(limit, BEYOND))
    j = 0
    while j < d:
        last = min(j + 8, d)
        block = 1.0
        for c in range(j, last):
            difference = data[i, c] - means[k, c]
            block *= max(1.0 + weight * difference * difference * precisions[k, c], SMALLEST_SHARE)
        if 1.0 / HUGE < block < HUGE:
            product *= block
            if product > most:
                return np.inf
            if not 1.0 / HUGE < product < HUGE:
                total += math.log(product)
                product = 1.0
                most = math.exp(min(limit - total, BEYOND))
        else:  # far away: the product may be beyond what can be written
            for c in range(j, last):
                difference = data[i, c] - means[k, c]
                share = weight * difference * difference * precisions[k, c]
                total += math.log(max(1.0 + share, SMALLEST_SHARE))
            most = math.exp(min(limit - total, BEYOND))
        j = last
    return total + math.log(product)


@inlined
def _log_density(stats, n, log_height, log_product):
    """Log predictive density of a cluster of n."""
    return log_height - 0.5 * (stats.degrees_of_freedom + n + 1.0) * log_product


@implements(contract.clear, DiagonalStats)
def _clear(stats, k):
    stats.counts[k] = 0.0
    for j in range(stats.prior_mean.shape[0]):
        stats.means[k, j] = stats.prior_mean[j]
        stats.scales[k, j] = stats.prior_scale[j]
    _update_height(stats, k)


@kernel
def _change(stats, data, i, k, sign):
    """Add datum i to cluster k (sign 1) or take it out (-1)."""
    strength = stats.prior_strength + stats.counts[k]
    weight = sign * strength / (strength + sign)
    step = sign / (strength + sign)
    means, scales = stats.means[k], stats.scales[k]
    for j in range(means.shape[0]):
        difference = data[i, j] - means[j]
        scales[j] = max(scales[j] + weight * difference * difference, SMALLEST_SHARE * scales[j])
        means[j] += step * difference
    stats.counts[k] += sign
    _update_height(stats, k)


@implements(contract.add, DiagonalStats)
def _add(stats, data, i, k):
    _change(stats, data, i, k, 1.0)


@implements(contract.remove, DiagonalStats)
def _remove(stats, data, i, k):
    if stats.counts[k] <= 1.0:
        contract.clear(stats, k)
    else:
        _change(stats, data, i, k, -1.0)


@implements(contract.log_predictive, DiagonalStats)
def _log_predictive(stats, data, i, n_clusters, out):
    means, precisions = stats.means, stats.precisions
    for k in range(n_clusters):
        n = stats.counts[k]
        weight = 1.0 - 1.0 / (stats.prior_strength + n + 1.0)
        log_product = _log_product(means, precisions, data, i, k, weight, np.inf)
        out[k] = _log_density(stats, n, stats.log_height[k], log_product)


@implements(contract.log_predictive_above, DiagonalStats)
def _log_predictive_above(stats, data, i, n_clusters, out):
    means, precisions = stats.means, stats.precisions
    for k in range(n_clusters):
        # The product at which the density is the least that counts, and a little more for rounding.
        n, log_height = stats.counts[k], stats.log_height[k]
        limit = 2.0 * (log_height - out[k]) / (stats.degrees_of_freedom + n + 1.0) + 1e-9
        if limit < 0.0:
            out[k] = -np.inf
            continue
        weight = 1.0 - 1.0 / (stats.prior_strength + n + 1.0)
        log_product = _log_product(means, precisions, data, i, k, weight, limit)
        out[k] = _log_density(stats, n, log_height, log_product)


@implements(contract.log_predictive_without, DiagonalStats)
def _log_predictive_without(stats, data, i, k):
    # With c = κ_n/(κ_n-1), u = x - m_n and q = u²/ψ_n: ψ₋ = ψ_n (1 - c q) and x - m₋ = c u, so the factor
    # of the predictive without x is ψ_n/ψ₋.
    d = stats.prior_mean.shape[0]
    n = stats.counts[k]
    strength = stats.prior_strength + n
    ratio = strength / (strength - 1.0)
    freedom = stats.degrees_of_freedom + n
    left = _log_product(stats.means, stats.precisions, data, i, k, -ratio, np.inf)
    column = math.lgamma(0.5 * freedom) - math.lgamma(0.5 * (freedom - 1.0))
    column -= 0.5 * (LOG_PI + math.log(ratio))
    return d * column - 0.5 * stats.log_det[k] + 0.5 * (freedom - 1.0) * left


@implements(contract.log_marginal, DiagonalStats)
def _log_marginal(stats, k):
    n = stats.counts[k]
    if n == 0.0:
        return 0.0
    freedom, strength = stats.degrees_of_freedom, stats.prior_strength
    column = math.lgamma(0.5 * (freedom + n)) - math.lgamma(0.5 * freedom)
    column += 0.5 * (math.log(strength / (strength + n)) - n * LOG_PI)
    log_prior = 0.0
    for j in range(stats.prior_mean.shape[0]):
        log_prior += math.log(stats.prior_scale[j])
    total = stats.prior_mean.shape[0] * column
    return total + 0.5 * freedom * log_prior - 0.5 * (freedom + n) * stats.log_det[k]


@implements(contract.copy_cluster, DiagonalStats)
def _copy_cluster(stats, source, target):
    stats.counts[target] = stats.counts[source]
    for j in range(stats.prior_mean.shape[0]):
        stats.means[target, j] = stats.means[source, j]
        stats.scales[target, j] = stats.scales[source, j]
        stats.precisions[target, j] = stats.precisions[source, j]
    stats.log_det[target] = stats.log_det[source]
    stats.log_height[target] = stats.log_height[source]


@implements(contract.merge, DiagonalStats)
def _merge(stats, source, target):
    # ψ_ab = ψ_a + ψ_b - ψ + κ_a m_a² + κ_b m_b² - κ_ab m_ab², means measured from the prior mean.
    n = stats.counts[source]
    if n == 0.0:
        return
    strength_a = stats.prior_strength + stats.counts[target]
    strength_b = stats.prior_strength + n
    strength = strength_a + n
    for j in range(stats.prior_mean.shape[0]):
        mean_a = stats.means[target, j] - stats.prior_mean[j]
        mean_b = stats.means[source, j] - stats.prior_mean[j]
        both = strength_a * mean_a + strength_b * mean_b
        scale = strength_a * mean_a * mean_a + strength_b * mean_b * mean_b - both * both / strength
        scale += stats.scales[target, j] + stats.scales[source, j] - stats.prior_scale[j]
        # Far from the prior mean the sum may lose all its digits.
        stats.scales[target, j] = scale if scale > 0.0 else np.nan
        stats.means[target, j] = stats.prior_mean[j] + both / strength
    stats.counts[target] += n
    _update_height(stats, target)


@implements(contract.draw, DiagonalStats)
def _draw(rng, stats, k, out):
    # t = m + z sqrt(ψ_n (κ_n+1)/κ_n / (2 g)) with g ~ Gamma(ν_n/2).
    strength = stats.prior_strength + stats.counts[k]
    freedom = stats.degrees_of_freedom + stats.counts[k]
    for j in range(stats.prior_mean.shape[0]):
        spread = (strength + 1.0) / strength / (2.0 * rng.standard_gamma(0.5 * freedom))
        out[j] = stats.means[k, j] + math.sqrt(spread * stats.scales[k, j]) * rng.standard_normal()


contract.use_defaults(
    DiagonalStats, contract.extend, contract.clear_members, contract.project, contract.add_vector
)
