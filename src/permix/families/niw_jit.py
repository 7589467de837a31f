# mypy: ignore-errors
"""Gaussian clusters with unknown mean and covariance under a normal-inverse-Wishart prior, compiled.

A cluster of n points has strength κ_n = κ + n, degrees of freedom ν_n = ν + n, mean
m_n = (κ m + Σx)/κ_n and scale Ψ_n. Adding x changes Ψ by a rank-one term,
Ψ_{n+1} = Ψ_n + κ_n/(κ_n+1) (x - m_n)(x - m_n)ᵀ, so its factors L D Lᵀ, L with a diagonal of ones, are
updated in O(d²) (Gill, Golub, Murray & Saunders 1974, method C1). The predictive is Student's t with
ν_n - d + 1 degrees of freedom and scale Ψ_n (κ_n+1)/(κ_n (ν_n-d+1)).

Unlike in other families the cluster is the first axis: a cluster that is far from a datum is left after a
few rows of L, and updates run along its columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import implements, inlined, kernel

LOG_PI = math.log(math.pi)
# Rounding may not make a covariance singular: relative size of the smallest pivot.
SMALLEST_PIVOT = 1e-14
# Products of pivots are kept within this and its inverse.
HUGE = 1e100


@by_reference
class NIWStats(NamedTuple):
    """Statistics of normal-inverse-Wishart clusters; d dimensions, room for ``capacity`` clusters.

    Factors hold column c of L from entry [c, c + 1] on, and D at [c, c].
    """

    prior_mean: np.ndarray  # (d,)
    prior_strength: float  # κ
    degrees_of_freedom: float  # ν
    prior_factors: np.ndarray  # (1, d, d) of Ψ
    counts: np.ndarray  # (capacity,)
    sums: np.ndarray  # (capacity, d)
    means: np.ndarray  # (capacity, d) m_n
    factors: np.ndarray  # (capacity, d, d) of Ψ_n
    log_det: np.ndarray  # (capacity,) ln |Ψ_n|
    log_height: np.ndarray  # (capacity,) log of the predictive density at its mode
    work: np.ndarray  # (d,) scratch


@kernel
def _update_posterior(stats, k):
    d = stats.prior_mean.shape[0]
    n = stats.counts[k]
    strength = stats.prior_strength + n
    freedom = stats.degrees_of_freedom + n - d + 1.0
    for j in range(d):
        stats.means[k, j] = (stats.prior_strength * stats.prior_mean[j] + stats.sums[k, j]) / strength
    log_det = _log_det(stats.factors, k)
    stats.log_det[k] = log_det
    spread = (strength + 1.0) / strength
    stats.log_height[k] = (
        math.lgamma(0.5 * (freedom + d))
        - math.lgamma(0.5 * freedom)
        - 0.5 * d * (LOG_PI + math.log(spread))
        - 0.5 * log_det
    )


@inlined
def _log_det(factors, k):
    total = 0.0
    product = 1.0
    for j in range(factors.shape[1]):
        if not 1.0 / HUGE < product < HUGE:
            total += math.log(product)
            product = 1.0
        product *= factors[k, j, j]
    return total + math.log(product)


@kernel
def _rank_one(factors, k, vector, weight):
    """Turn the factors of A into those of A + weight·v vᵀ, overwriting v; returns vᵀA⁻¹v.

    A negative weight that would lose positive definiteness by rounding is stopped at a tiny pivot.
    """
    squared = 0.0
    for c in range(vector.shape[0]):
        value = vector[c]
        pivot = factors[k, c, c]
        squared += value * value / pivot
        changed = max(pivot + weight * value * value, SMALLEST_PIVOT * pivot)
        gain = weight * value / changed
        weight *= pivot / changed
        factors[k, c, c] = changed
        # Loops over whole slices vectorise.
        below, column = vector[c + 1 :], factors[k, c, c + 1 :]
        for r in range(below.shape[0]):
            below[r] -= value * column[r]
            column[r] += gain * below[r]
    return squared


@kernel
def _distance(factors, means, work, data, i, k, limit):
    """Return (x - m)ᵀΨ_n⁻¹(x - m); of one that is beyond ``limit`` only that it is."""
    d = work.shape[0]
    squared = 0.0
    r = 0
    # Two rows at a time, so that the processor need not wait for one.
    while r + 1 < d and not squared > limit:
        value, next_value = data[i, r] - means[k, r], data[i, r + 1] - means[k, r + 1]
        for c in range(r):
            solved = work[c]
            value -= factors[k, c, r] * solved
            next_value -= factors[k, c, r + 1] * solved
        next_value -= factors[k, r, r + 1] * value
        work[r], work[r + 1] = value, next_value
        squared += value * value / factors[k, r, r]
        squared += next_value * next_value / factors[k, r + 1, r + 1]
        r += 2
    if r < d and not squared > limit:
        value = data[i, r] - means[k, r]
        for c in range(r):
            value -= factors[k, c, r] * work[c]
        squared += value * value / factors[k, r, r]
    return squared


@inlined
def _log_density(stats, n, log_height, squared):
    """Log predictive density of a cluster of n at a point that is so far from its mean."""
    strength = stats.prior_strength + n
    half_power = 0.5 * (stats.degrees_of_freedom + n + 1.0)
    return log_height - half_power * math.log1p(squared * strength / (strength + 1.0))


@implements(contract.clear, NIWStats)
def _clear(stats, k):
    stats.counts[k] = 0.0
    for c in range(stats.sums.shape[1]):
        stats.sums[k, c] = 0.0
        for r in range(c, stats.sums.shape[1]):
            stats.factors[k, c, r] = stats.prior_factors[0, c, r]
    _update_posterior(stats, k)


@kernel
def _change(stats, data, i, k, sign):
    """Add datum i to cluster k (sign 1) or take it out (-1); returns its distance from the mean before."""
    strength = stats.prior_strength + stats.counts[k]
    for j in range(stats.work.shape[0]):
        stats.work[j] = data[i, j] - stats.means[k, j]
        stats.sums[k, j] += sign * data[i, j]
    squared = _rank_one(stats.factors, k, stats.work, sign * strength / (strength + sign))
    stats.counts[k] += sign
    _update_posterior(stats, k)
    return squared


@implements(contract.add, NIWStats)
def _add(stats, data, i, k):
    _change(stats, data, i, k, 1.0)


@implements(contract.remove, NIWStats)
def _remove(stats, data, i, k):
    if stats.counts[k] <= 1.0:
        contract.clear(stats, k)
    else:
        _change(stats, data, i, k, -1.0)


@implements(contract.extend, NIWStats)
def _extend(stats, data, i, starts, n_clusters, out):
    for k in range(n_clusters):
        if starts[k] >= 0:
            n, log_height = stats.counts[k], stats.log_height[k]
            # The change finds the distance on its way.
            out[k] = _log_density(stats, n, log_height, _change(stats, data, i, k, 1.0))


# Arrays of a NamedTuple that are named at each call in a loop have their references counted each time.


@implements(contract.log_predictive, NIWStats)
def _log_predictive(stats, data, i, n_clusters, out):
    factors, means, work = stats.factors, stats.means, stats.work
    for k in range(n_clusters):
        squared = _distance(factors, means, work, data, i, k, np.inf)
        out[k] = _log_density(stats, stats.counts[k], stats.log_height[k], squared)


@implements(contract.log_predictive_above, NIWStats)
def _log_predictive_above(stats, data, i, n_clusters, out):
    factors, means, work = stats.factors, stats.means, stats.work
    for k in range(n_clusters):
        # The distance at which the density is the least that counts, and a little more for rounding.
        n, log_height = stats.counts[k], stats.log_height[k]
        half_power = 0.5 * (stats.degrees_of_freedom + n + 1.0)
        reach = math.exp((log_height - out[k]) / half_power) * (1.0 + 1e-9) - 1.0
        limit = reach * (1.0 + 1.0 / (stats.prior_strength + n))
        squared = np.inf
        if not limit < 0.0:
            squared = _distance(factors, means, work, data, i, k, limit)
        out[k] = -np.inf if squared > limit else _log_density(stats, n, log_height, squared)


@implements(contract.log_predictive_without, NIWStats)
def _log_predictive_without(stats, data, i, k):
    # With c = κ_n/(κ_n-1), u = x - m_n and q = uᵀΨ_n⁻¹u: Ψ₋ = Ψ_n - c u uᵀ, so |Ψ₋| = |Ψ_n|(1 - c q), and
    # x - m₋ = c u, so the quadratic form of the predictive without x is c q/(1 - c q).
    d = stats.prior_mean.shape[0]
    n = stats.counts[k]
    strength = stats.prior_strength + n
    ratio = strength / (strength - 1.0)
    freedom = stats.degrees_of_freedom + n - d
    squared = _distance(stats.factors, stats.means, stats.work, data, i, k, np.inf)
    left = math.log(max(1.0 - ratio * squared, SMALLEST_PIVOT))
    return (
        math.lgamma(0.5 * (freedom + d))
        - math.lgamma(0.5 * freedom)
        - 0.5 * d * (LOG_PI + math.log(ratio))
        - 0.5 * stats.log_det[k]
        + 0.5 * (freedom + d - 1.0) * left
    )


@implements(contract.log_marginal, NIWStats)
def _log_marginal(stats, k):
    n = stats.counts[k]
    if n == 0.0:
        return 0.0
    d = stats.prior_mean.shape[0]
    strength = stats.prior_strength
    freedom = stats.degrees_of_freedom
    total = -0.5 * n * d * LOG_PI + 0.5 * d * math.log(strength / (strength + n))
    for j in range(d):
        total += math.lgamma(0.5 * (freedom + n - j)) - math.lgamma(0.5 * (freedom - j))
    return total + 0.5 * freedom * _log_det(stats.prior_factors, 0) - 0.5 * (freedom + n) * stats.log_det[k]


@implements(contract.copy_cluster, NIWStats)
def _copy_cluster(stats, source, target):
    stats.counts[target] = stats.counts[source]
    for c in range(stats.sums.shape[1]):
        stats.sums[target, c] = stats.sums[source, c]
        stats.means[target, c] = stats.means[source, c]
        for r in range(c, stats.sums.shape[1]):
            stats.factors[target, c, r] = stats.factors[source, c, r]
    stats.log_det[target] = stats.log_det[source]
    stats.log_height[target] = stats.log_height[source]


@kernel
def _add_product(scale, factors, k, sign):
    """Add sign·L D Lᵀ to the upper triangle of ``scale``."""
    d = scale.shape[0]
    for c in range(d):
        pivot = sign * factors[k, c, c]
        scale[c, c] += pivot
        for j in range(c, d):
            value = pivot * (1.0 if j == c else factors[k, c, j])
            first = max(j, c + 1)
            row, column = scale[j, first:], factors[k, c, first:]
            for i in range(row.shape[0]):
                row[i] += value * column[i]


@implements(contract.merge, NIWStats)
def _merge(stats, source, target):
    # With κ m and Ψ counted once, and means measured from the prior mean:
    # Ψ_ab = Ψ_a + Ψ_b - Ψ + κ_a m_a m_aᵀ + κ_b m_b m_bᵀ - κ_ab m_ab m_abᵀ.
    d = stats.prior_mean.shape[0]
    n = stats.counts[source]
    if n == 0.0:
        return
    strength_a = stats.prior_strength + stats.counts[target]
    strength_b = stats.prior_strength + n
    strength = strength_a + n
    mean_a, mean_b, both = np.empty(d), np.empty(d), np.empty(d)
    for j in range(d):
        mean_a[j] = stats.means[target, j] - stats.prior_mean[j]
        mean_b[j] = stats.means[source, j] - stats.prior_mean[j]
        both[j] = strength_a * mean_a[j] + strength_b * mean_b[j]
    scale = np.empty((d, d))
    for j in range(d):
        for i in range(j, d):
            scale[j, i] = strength_a * mean_a[i] * mean_a[j] + strength_b * mean_b[i] * mean_b[j]
            scale[j, i] -= both[i] * both[j] / strength
    _add_product(scale, stats.factors, target, 1.0)
    _add_product(scale, stats.factors, source, 1.0)
    _add_product(scale, stats.prior_factors, 0, -1.0)
    # Far from the prior mean the sum above may lose all its digits: then the factor is not a number.
    for c in range(d):
        stats.sums[target, c] += stats.sums[source, c]
        both[c] = SMALLEST_PIVOT * scale[c, c]
    for c in range(d):
        pivot = scale[c, c] if scale[c, c] > both[c] else np.nan
        stats.factors[target, c, c] = pivot
        for j in range(c + 1, d):
            value = scale[c, j] / pivot
            stats.factors[target, c, j] = value
            row, column = scale[j, j:], scale[c, j:]
            for i in range(row.shape[0]):
                row[i] -= value * column[i]
    stats.counts[target] += n
    _update_posterior(stats, target)


@implements(contract.draw, NIWStats)
def _draw(rng, stats, k, out):
    # t = m + L √D z sqrt(spread / (2 g)) with g ~ Gamma(ν'/2): Ψ carries the factor ν' of the scale.
    d = stats.prior_mean.shape[0]
    strength = stats.prior_strength + stats.counts[k]
    freedom = stats.degrees_of_freedom + stats.counts[k] - d + 1.0
    stretch = math.sqrt((strength + 1.0) / strength / (2.0 * rng.standard_gamma(0.5 * freedom)))
    for j in range(d):
        out[j] = stats.means[k, j]
    for c in range(d):
        value = stretch * math.sqrt(stats.factors[k, c, c]) * rng.standard_normal()
        out[c] += value
        for r in range(c + 1, d):
            out[r] += value * stats.factors[k, c, r]


contract.use_defaults(NIWStats, contract.clear_members, contract.project, contract.add_vector)
