# mypy: ignore-errors
"""Rows with missing cells under full covariances, compiled: data augmentation.

Statistics are those of rows whose gaps are filled in by the present draw of what is missing. A row is scored
by what was observed of it alone: with u = x - m_n, whatever stands in the gaps, P = (Ψ_n⁻¹) in the columns
that are missing and g = Ψ_n⁻¹u there, the observed columns o have

    u_oᵀ(Ψ_oo)⁻¹u_o = uᵀΨ_n⁻¹u - gᵀP⁻¹g    and    |Ψ_oo| = |Ψ_n| |P|,

and their predictive is Student's t with the same ν_n - d + 1 degrees of freedom. Given them, what is missing
is Student's t of ν_n - d + 1 + |o| degrees about u - P⁻¹g in the gaps, with a scale proportional to P⁻¹.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.families.niw_jit import LOG_PI, SMALLEST_PIVOT, NIWStats, _change, _clear, _copy_cluster
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import implements, inlined, kernel


@by_reference
class GapStats(NamedTuple):
    """The arrays of :class:`NIWStats`, those that fill gaps, and room to work in."""

    prior_mean: np.ndarray
    prior_strength: float
    degrees_of_freedom: float
    prior_factors: np.ndarray
    counts: np.ndarray
    sums: np.ndarray
    means: np.ndarray
    factors: np.ndarray
    log_det: np.ndarray
    log_height: np.ndarray
    work: np.ndarray
    filled: np.ndarray  # (n, d) the rows without gaps
    solved: np.ndarray  # (d + 1, d) L⁻¹ of x - m_n and of the unit vectors of missing columns
    gram: np.ndarray  # (d + 1, d + 1) their inner products under D⁻¹
    places: np.ndarray  # (d,) which columns are missing


def with_gaps(stats: NIWStats, filled: np.ndarray) -> GapStats:
    """Return the same statistics as ones that score rows by what was observed of them."""
    d = len(stats.prior_mean)
    room = (np.zeros((d + 1, d)), np.zeros((d + 1, d + 1)), np.zeros(d, dtype=np.int64))
    return GapStats(*stats, filled, *room)


@kernel
def _products(stats, data, i, k, inside):
    """Write the inner products that a score needs; returns how many cells are missing.

    Where the datum is inside of the cluster its gaps are as they are filled, elsewhere at the mean.
    """
    d = stats.work.shape[0]
    solved, factors, places = stats.solved, stats.factors, stats.places
    n_missing = 0
    for j in range(d):
        x = data[i, j]
        missing = x != x
        if missing:
            places[n_missing] = j
            n_missing += 1
        if inside:
            x = stats.filled[i, j]
        solved[0, j] = 0.0 if missing and not inside else x - stats.means[k, j]
    for a in range(n_missing):
        for j in range(d):
            solved[a + 1, j] = 1.0 if j == places[a] else 0.0
    for a in range(n_missing + 1):
        row = solved[a]
        for c in range(0 if a == 0 else places[a - 1], d):
            value = row[c]
            below, column = row[c + 1 :], factors[k, c, c + 1 :]
            for r in range(below.shape[0]):
                below[r] -= value * column[r]
        for b in range(a + 1):
            total = 0.0
            for c in range(d):
                total += row[c] * solved[b, c] / factors[k, c, c]
            stats.gram[a, b] = total
    return n_missing


@inlined
def _observed(gram, n_missing):
    """Factor P = C Cᵀ and solve C w = g, both in place; returns the quadratic form and ln |P|."""
    squared = gram[0, 0]
    log_det = 0.0
    for a in range(1, n_missing + 1):
        for b in range(1, a + 1):
            value = gram[a, b]
            for c in range(1, b):
                value -= gram[a, c] * gram[b, c]
            gram[a, b] = math.sqrt(max(value, SMALLEST_PIVOT * gram[a, a])) if a == b else value / gram[b, b]
        value = gram[a, 0]
        for c in range(1, a):
            value -= gram[a, c] * gram[c, 0]
        gram[a, 0] = value / gram[a, a]
        squared -= gram[a, 0] * gram[a, 0]
        log_det += 2.0 * math.log(gram[a, a])
    return max(squared, 0.0), log_det


@inlined
def _log_student(freedom, d, spread, log_det, squared):
    """Log density of d columns with these degrees of freedom, where ``spread`` is (κ_n+1)/κ_n."""
    power = 0.5 * (freedom + d)
    return (
        math.lgamma(power)
        - math.lgamma(0.5 * freedom)
        - 0.5 * d * (LOG_PI + math.log(spread))
        - 0.5 * log_det
        - power * math.log1p(squared / spread)
    )


implements(contract.clear, GapStats)(_clear)
implements(contract.copy_cluster, GapStats)(_copy_cluster)


@implements(contract.add, GapStats)
def _add(stats, data, i, k):
    _change(stats, stats.filled, i, k, 1.0)


@implements(contract.remove, GapStats)
def _remove(stats, data, i, k):
    if stats.counts[k] <= 1.0:
        contract.clear(stats, k)
    else:
        _change(stats, stats.filled, i, k, -1.0)


@implements(contract.log_predictive, GapStats)
def _log_predictive(stats, data, i, n_clusters, out):
    d = stats.prior_mean.shape[0]
    for k in range(n_clusters):
        n_missing = _products(stats, data, i, k, False)
        squared, log_det = _observed(stats.gram, n_missing)
        strength = stats.prior_strength + stats.counts[k]
        freedom = stats.degrees_of_freedom + stats.counts[k] - d + 1.0
        spread = (strength + 1.0) / strength
        out[k] = _log_student(freedom, d - n_missing, spread, stats.log_det[k] + log_det, squared)


@implements(contract.log_predictive_without, GapStats)
def _log_predictive_without(stats, data, i, k):
    # With c = κ_n/(κ_n-1), x - m₋ = c u and Ψ₋ = Ψ_n - c u uᵀ, so that inner products under Ψ₋⁻¹ are
    # aᵀΨ_n⁻¹b + c (aᵀΨ_n⁻¹u)(uᵀΨ_n⁻¹b)/(1 - c uᵀΨ_n⁻¹u).
    d = stats.prior_mean.shape[0]
    gram = stats.gram
    n_missing = _products(stats, data, i, k, True)
    strength = stats.prior_strength + stats.counts[k]
    ratio = strength / (strength - 1.0)
    left = max(1.0 - ratio * gram[0, 0], SMALLEST_PIVOT)
    for a in range(1, n_missing + 1):
        for b in range(1, a + 1):
            gram[a, b] += ratio * gram[a, 0] * gram[b, 0] / left
    for a in range(1, n_missing + 1):
        gram[a, 0] *= ratio / left
    gram[0, 0] *= ratio * ratio / left
    squared, log_det = _observed(gram, n_missing)
    freedom = stats.degrees_of_freedom + stats.counts[k] - d
    log_det += stats.log_det[k] + math.log(left)
    return _log_student(freedom, d - n_missing, ratio, log_det, squared)


contract.use_defaults(GapStats, contract.log_predictive_above)


@implements(contract.fill, GapStats)
def _fill(rng, stats, data, i, k):
    gram, places = stats.gram, stats.places
    n_missing = _products(stats, data, i, k, False)
    if n_missing > 0:
        squared, _ = _observed(gram, n_missing)
        strength = stats.prior_strength + stats.counts[k]
        spread = (strength + 1.0) / strength
        freedom = stats.degrees_of_freedom + stats.counts[k] + 1.0 - n_missing
        stretch = math.sqrt((spread + squared) / (2.0 * rng.standard_gamma(0.5 * freedom)))
        # Cᵀ y = stretch z - w, from the last on.
        for a in range(n_missing, 0, -1):
            value = stretch * rng.standard_normal() - gram[a, 0]
            for c in range(a + 1, n_missing + 1):
                value -= gram[c, a] * stats.work[c - 1]
            stats.work[a - 1] = value / gram[a, a]
        for a in range(n_missing):
            stats.filled[i, places[a]] = stats.means[k, places[a]] + stats.work[a]
