# mypy: ignore-errors
"""Gaussian clusters with unknown mean and covariance under a normal-inverse-Wishart prior, compiled.

A cluster of n points has strength κ_n = κ + n, degrees of freedom ν_n = ν + n, mean
m_n = (κ m + Σx)/κ_n and scale Ψ_n. Adding x changes Ψ by a rank-one term,
Ψ_{n+1} = Ψ_n + κ_n/(κ_n+1) (x - m_n)(x - m_n)ᵀ, so its Cholesky factor is updated in O(d²). The
predictive is Student's t with ν_n - d + 1 degrees of freedom and scale Ψ_n (κ_n+1)/(κ_n (ν_n-d+1)).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.kernels.jit import implements, kernel

LOG_PI = math.log(math.pi)
# Rounding may not make a covariance singular: relative size of the smallest squared pivot.
SMALLEST_PIVOT = 1e-14


class NIWStats(NamedTuple):
    """Statistics of normal-inverse-Wishart clusters; d dimensions, room for ``capacity`` clusters."""

    prior_mean: np.ndarray  # (d,)
    prior_strength: float  # κ
    degrees_of_freedom: float  # ν
    prior_cholesky: np.ndarray  # (d, d) lower factor of Ψ
    counts: np.ndarray  # (capacity,)
    sums: np.ndarray  # (d, capacity)
    means: np.ndarray  # (d, capacity) m_n
    cholesky: np.ndarray  # (d, d, capacity) lower factor of Ψ_n
    log_det: np.ndarray  # (capacity,) ln |Ψ_n|
    log_height: np.ndarray  # (capacity,) log of the predictive density at its mode
    work: np.ndarray  # (d, capacity) scratch


@kernel
def _update_posterior(stats, k):
    d = stats.prior_mean.shape[0]
    n = stats.counts[k]
    strength = stats.prior_strength + n
    freedom = stats.degrees_of_freedom + n - d + 1.0
    log_det = 0.0
    for j in range(d):
        stats.means[j, k] = (stats.prior_strength * stats.prior_mean[j] + stats.sums[j, k]) / strength
        log_det += 2.0 * math.log(stats.cholesky[j, j, k])
    stats.log_det[k] = log_det
    spread = (strength + 1.0) / strength
    stats.log_height[k] = (
        math.lgamma(0.5 * (freedom + d))
        - math.lgamma(0.5 * freedom)
        - 0.5 * d * (LOG_PI + math.log(spread))
        - 0.5 * log_det
    )


@kernel
def _rank_one(factor, k, vectors, sign):
    """Turn the factor of A into that of A + sign·v vᵀ, overwriting v, column k of ``vectors``.

    A downdate that would lose positive definiteness by rounding is stopped at a tiny pivot.
    """
    d = vectors.shape[0]
    vector = vectors[:, k]
    for j in range(d):
        pivot = factor[j, j, k]
        squared = pivot * pivot + sign * vector[j] * vector[j]
        smallest = SMALLEST_PIVOT * pivot * pivot
        if squared < smallest:
            squared = smallest
        root = math.sqrt(squared)
        c = root / pivot
        s = vector[j] / pivot
        factor[j, j, k] = root
        for i in range(j + 1, d):
            entry = (factor[i, j, k] + sign * s * vector[i]) / c
            vector[i] = c * vector[i] - s * entry
            factor[i, j, k] = entry


@implements(contract.clear, NIWStats)
def _clear(stats, k):
    stats.counts[k] = 0.0
    for i in range(stats.sums.shape[0]):
        stats.sums[i, k] = 0.0
        for j in range(i + 1):
            stats.cholesky[i, j, k] = stats.prior_cholesky[i, j]
    _update_posterior(stats, k)


@implements(contract.add, NIWStats)
def _add(stats, data, i, k):
    d = stats.prior_mean.shape[0]
    strength = stats.prior_strength + stats.counts[k]
    scale = math.sqrt(strength / (strength + 1.0))
    for j in range(d):
        stats.work[j, k] = scale * (data[i, j] - stats.means[j, k])
        stats.sums[j, k] += data[i, j]
    _rank_one(stats.cholesky, k, stats.work, 1.0)
    stats.counts[k] += 1.0
    _update_posterior(stats, k)


@implements(contract.remove, NIWStats)
def _remove(stats, data, i, k):
    if stats.counts[k] <= 1.0:
        contract.clear(stats, k)
        return
    d = stats.prior_mean.shape[0]
    strength = stats.prior_strength + stats.counts[k]
    scale = math.sqrt(strength / (strength - 1.0))
    for j in range(d):
        stats.work[j, k] = scale * (data[i, j] - stats.means[j, k])
        stats.sums[j, k] -= data[i, j]
    _rank_one(stats.cholesky, k, stats.work, -1.0)
    stats.counts[k] -= 1.0
    _update_posterior(stats, k)


@implements(contract.log_predictive, NIWStats)
def _log_predictive(stats, data, i, n_clusters, out):
    # Forward substitution L y = x - m for all clusters at once: rows of `work` are y_0 ... y_{d-1}.
    d = stats.prior_mean.shape[0]
    for k in range(n_clusters):
        out[k] = 0.0
    for row in range(d):
        y = stats.work[row]
        mean = stats.means[row]
        x = data[i, row]
        for k in range(n_clusters):
            y[k] = x - mean[k]
        for column in range(row):
            solved = stats.work[column]
            entry = stats.cholesky[row, column]
            for k in range(n_clusters):
                y[k] -= entry[k] * solved[k]
        pivot = stats.cholesky[row, row]
        for k in range(n_clusters):
            y[k] /= pivot[k]
            out[k] += y[k] * y[k]
    for k in range(n_clusters):
        strength = stats.prior_strength + stats.counts[k]
        half_power = 0.5 * (stats.degrees_of_freedom + stats.counts[k] - d + 1.0 + d)
        out[k] = stats.log_height[k] - half_power * math.log1p(out[k] * (1.0 / ((strength + 1.0) / strength)))


@implements(contract.log_predictive_without, NIWStats)
def _log_predictive_without(stats, data, i, k):
    # With c = κ_n/(κ_n-1), u = x - m_n and q = uᵀΨ_n⁻¹u: Ψ₋ = Ψ_n - c u uᵀ, so |Ψ₋| = |Ψ_n|(1 - c q), and
    # x - m₋ = c u, so the quadratic form of the predictive without x is c q/(1 - c q).
    d = stats.prior_mean.shape[0]
    n = stats.counts[k]
    strength = stats.prior_strength + n
    ratio = strength / (strength - 1.0)
    freedom = stats.degrees_of_freedom + n - d
    q = 0.0
    y = stats.work[:, k]
    for row in range(d):
        value = data[i, row] - stats.means[row, k]
        for column in range(row):
            value -= stats.cholesky[row, column, k] * y[column]
        y[row] = value / stats.cholesky[row, row, k]
        q += y[row] * y[row]
    left = math.log(max(1.0 - ratio * q, SMALLEST_PIVOT))
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
    prior_log_det = 0.0
    total = -0.5 * n * d * LOG_PI + 0.5 * d * math.log(strength / (strength + n))
    for j in range(d):
        prior_log_det += 2.0 * math.log(stats.prior_cholesky[j, j])
        total += math.lgamma(0.5 * (freedom + n - j)) - math.lgamma(0.5 * (freedom - j))
    return total + 0.5 * freedom * prior_log_det - 0.5 * (freedom + n) * stats.log_det[k]


@implements(contract.copy_cluster, NIWStats)
def _copy_cluster(stats, source, target):
    stats.counts[target] = stats.counts[source]
    for i in range(stats.sums.shape[0]):
        stats.sums[i, target] = stats.sums[i, source]
        stats.means[i, target] = stats.means[i, source]
        for j in range(i + 1):
            stats.cholesky[i, j, target] = stats.cholesky[i, j, source]
    stats.log_det[target] = stats.log_det[source]
    stats.log_height[target] = stats.log_height[source]


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
    scale = np.empty((d, d))
    for i in range(d):
        for j in range(i + 1):
            value = 0.0
            for column in range(j + 1):
                value += stats.cholesky[i, column, target] * stats.cholesky[j, column, target]
                value += stats.cholesky[i, column, source] * stats.cholesky[j, column, source]
                value -= stats.prior_cholesky[i, column] * stats.prior_cholesky[j, column]
            a_i, b_i = (
                stats.means[i, target] - stats.prior_mean[i],
                stats.means[i, source] - stats.prior_mean[i],
            )
            a_j, b_j = (
                stats.means[j, target] - stats.prior_mean[j],
                stats.means[j, source] - stats.prior_mean[j],
            )
            both_i, both_j = strength_a * a_i + strength_b * b_i, strength_a * a_j + strength_b * b_j
            scale[i, j] = value + strength_a * a_i * a_j + strength_b * b_i * b_j - both_i * both_j / strength
    # Far from the prior mean the sum above may lose all its digits: then the factor is not a number.
    for j in range(d):
        stats.sums[j, target] += stats.sums[j, source]
        for i in range(j, d):
            value = scale[i, j]
            for column in range(j):
                value -= stats.cholesky[i, column, target] * stats.cholesky[j, column, target]
            if i > j:
                stats.cholesky[i, j, target] = value / stats.cholesky[j, j, target]
            elif value > SMALLEST_PIVOT * scale[j, j]:
                stats.cholesky[j, j, target] = math.sqrt(value)
            else:
                stats.cholesky[j, j, target] = np.nan
    stats.counts[target] += n
    _update_posterior(stats, target)


@implements(contract.draw, NIWStats)
def _draw(rng, stats, k, out):
    # t = m + L z sqrt(spread / (2 g)) with g ~ Gamma(ν'/2): Ψ carries the factor ν' of the scale.
    d = stats.prior_mean.shape[0]
    strength = stats.prior_strength + stats.counts[k]
    freedom = stats.degrees_of_freedom + stats.counts[k] - d + 1.0
    stretch = math.sqrt((strength + 1.0) / strength / (2.0 * rng.standard_gamma(0.5 * freedom)))
    z = np.empty(d)
    for j in range(d):
        z[j] = rng.standard_normal()
    for i in range(d):
        value = 0.0
        for j in range(i + 1):
            value += stats.cholesky[i, j, k] * z[j]
        out[i] = stats.means[i, k] + stretch * value


contract.use_defaults(
    NIWStats, contract.clear_members, contract.extend, contract.project, contract.add_vector
)
