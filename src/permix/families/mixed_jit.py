# mypy: ignore-errors
"""Clusters of rows whose columns are of different kinds and independent within a cluster, compiled.

A cell that is missing (NaN) contributes nothing, so every column has its own number n of entries in a
cluster. With a table of numbers, in which categories are codes, a column is one of

* a number, x ~ N(μ, σ²) with μ ~ N(m, σ²/κ) and σ² ~ inverse gamma(a, b): m_n = (κm + Σx)/(κ+n) and
  b_n = b + ½ Σ κ_i/(κ_i+1) (x_i - m_i)², entry after entry, with κ_i = κ + i. The predictive is Student's t
  with 2a + n degrees of freedom;
* a number whose noise is known: the same with this σ, where b_n (from b = 0 on) is the quadratic form;
* a category under a Dirichlet prior, as in ``categorical_jit``;
* a count, negative binomial of given shape r and unknown success probability p ~ beta(a, b):
  ln p(x | cluster) = ln Γ(r+x)/(Γ(r) x!) + ln B(a + r(n+1), b + Σ + x) - ln B(a + rn, b + Σ).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import implements, inlined, kernel

LOG_2PI = math.log(2.0 * math.pi)
NUMBER, KNOWN_NOISE, CATEGORY, COUNT = range(4)  # numbers first
# Columns of ``priors``. What encoded numbers are multiplied by and added to comes last: drawn rows are in
# the user's units, and densities are those of cells in these units.
STRENGTH, MEAN, SHAPE, RATE, UNIT, ORIGIN = range(6)  # κ, m, a, b of numbers
PRECISION = SHAPE  # 1/σ² where noise is known
PSEUDO_COUNT, PSEUDO_TOTAL = range(2)  # of categories
ALPHA, BETA, SIZE = range(3)  # a, b, r of counts


@by_reference
class MixedStats(NamedTuple):
    """Statistics of clusters of mixed columns; levels of column j are rows offsets[j] ... of ``counts``.

    Columns before ``first`` are others' business (``mixed_niw_jit``).
    """

    first: int
    kinds: np.ndarray  # (d,)
    offsets: np.ndarray  # (d + 1,)
    priors: np.ndarray  # (d, 6)
    entries: np.ndarray  # (d, capacity) n
    means: np.ndarray  # (d, capacity) m_n of numbers, Σ of counts
    rates: np.ndarray  # (d, capacity) b_n of numbers, Σ ln Γ(r+x)/(Γ(r) x!) of counts
    heights: np.ndarray  # (d, capacity) what the log predictive begins with
    precisions: np.ndarray  # (d, capacity) of numbers: what squared distances from m_n are multiplied by
    counts: np.ndarray  # (levels, capacity)
    log_weights: np.ndarray  # (levels, capacity) ln of count and pseudo-count


@kernel
def _settle(stats, j, k):
    """Renew what is derived from the statistics of one column."""
    kind, prior, n = stats.kinds[j], stats.priors[j], stats.entries[j, k]
    if kind == CATEGORY:
        stats.heights[j, k] = -math.log(prior[PSEUDO_TOTAL] + n)
    elif kind == COUNT:
        alpha, beta = prior[ALPHA] + prior[SIZE] * n, prior[BETA] + stats.means[j, k]
        height = math.lgamma(alpha + prior[SIZE]) - math.lgamma(alpha)
        stats.heights[j, k] = height + math.lgamma(alpha + beta) - math.lgamma(beta)
    else:
        strength = prior[STRENGTH] + n
        share = strength / (strength + 1.0)
        height = 0.5 * math.log(share) - math.log(prior[UNIT])
        if kind == KNOWN_NOISE:
            stats.heights[j, k] = height - 0.5 * (LOG_2PI - math.log(prior[PRECISION]))
            stats.precisions[j, k] = 0.5 * share * prior[PRECISION]
        else:
            shape = prior[SHAPE] + 0.5 * n
            height += math.lgamma(shape + 0.5) - math.lgamma(shape)
            stats.heights[j, k] = height - 0.5 * (LOG_2PI + math.log(stats.rates[j, k]))
            stats.precisions[j, k] = 0.5 * share / stats.rates[j, k]


@kernel
def _clear_column(stats, j, k):
    number = stats.kinds[j] <= KNOWN_NOISE
    stats.entries[j, k] = 0.0
    stats.means[j, k] = stats.priors[j, MEAN] if number else 0.0
    stats.rates[j, k] = stats.priors[j, RATE] if number else 0.0
    for level in range(stats.offsets[j], stats.offsets[j + 1]):
        stats.counts[level, k] = 0.0
        stats.log_weights[level, k] = math.log(stats.priors[j, PSEUDO_COUNT])
    _settle(stats, j, k)


@implements(contract.clear, MixedStats)
def _clear(stats, k):
    for j in range(stats.first, stats.kinds.shape[0]):
        _clear_column(stats, j, k)


@inlined
def _log_coefficient(size, x):
    return math.lgamma(size + x) - math.lgamma(size) - math.lgamma(x + 1.0)


@kernel
def _change(stats, data, i, k, sign):
    """Add datum i to cluster k (sign 1) or take it out (-1)."""
    for j in range(stats.first, stats.kinds.shape[0]):
        x = data[i, j]
        if x != x:
            continue
        kind, prior, n = stats.kinds[j], stats.priors[j], stats.entries[j, k]
        if n + sign <= 0.0:
            # Nothing is left: free of rounding.
            _clear_column(stats, j, k)
            continue
        stats.entries[j, k] = n + sign
        if kind == CATEGORY:
            level = stats.offsets[j] + np.int64(x)
            stats.counts[level, k] += sign
            stats.log_weights[level, k] = math.log(prior[PSEUDO_COUNT] + stats.counts[level, k])
        elif kind == COUNT:
            stats.means[j, k] += sign * x
            stats.rates[j, k] += sign * _log_coefficient(prior[SIZE], x)
        else:
            strength = prior[STRENGTH] + n
            difference = x - stats.means[j, k]
            stats.means[j, k] += sign * difference / (strength + sign)
            rate = stats.rates[j, k] + 0.5 * sign * strength / (strength + sign) * difference * difference
            stats.rates[j, k] = max(rate, prior[RATE])
        _settle(stats, j, k)


@implements(contract.add, MixedStats)
def _add(stats, data, i, k):
    _change(stats, data, i, k, 1.0)


@implements(contract.remove, MixedStats)
def _remove(stats, data, i, k):
    _change(stats, data, i, k, -1.0)


@implements(contract.log_predictive, MixedStats)
def _log_predictive(stats, data, i, n_clusters, out):
    for k in range(n_clusters):
        out[k] = 0.0
    for j in range(stats.first, stats.kinds.shape[0]):
        x = data[i, j]
        if x != x:
            continue
        kind, heights, means = stats.kinds[j], stats.heights[j], stats.means[j]
        precisions, entries = stats.precisions[j], stats.entries[j]
        if kind == CATEGORY:
            log_weights = stats.log_weights[stats.offsets[j] + np.int64(x)]
            for k in range(n_clusters):
                out[k] += heights[k] + log_weights[k]
        elif kind == KNOWN_NOISE:
            for k in range(n_clusters):
                out[k] += heights[k] - precisions[k] * (x - means[k]) ** 2
        elif kind == NUMBER:
            half_power = stats.priors[j, SHAPE] + 0.5
            for k in range(n_clusters):
                squared = precisions[k] * (x - means[k]) ** 2
                out[k] += heights[k] - (half_power + 0.5 * entries[k]) * math.log1p(squared)
        else:
            alpha, beta, size = stats.priors[j, ALPHA], stats.priors[j, BETA], stats.priors[j, SIZE]
            coefficient = _log_coefficient(size, x)
            for k in range(n_clusters):
                after = beta + means[k] + x
                total = alpha + size * (entries[k] + 1.0) + after
                out[k] += coefficient + heights[k] + math.lgamma(after) - math.lgamma(total)


@implements(contract.log_predictive_without, MixedStats)
def _log_predictive_without(stats, data, i, k):
    total = 0.0
    for j in range(stats.first, stats.kinds.shape[0]):
        x = data[i, j]
        if x != x:
            continue
        kind, prior, n = stats.kinds[j], stats.priors[j], stats.entries[j, k] - 1.0
        if kind == CATEGORY:
            # a + (c - 1), not (a + c) - 1: a tiny pseudo-count must not drown.
            level = stats.offsets[j] + np.int64(x)
            weight = prior[PSEUDO_COUNT] + (stats.counts[level, k] - 1.0)
            total += math.log(weight / (prior[PSEUDO_TOTAL] + n))
        elif kind == COUNT:
            size, alpha = prior[SIZE], prior[ALPHA] + prior[SIZE] * n
            beta = prior[BETA] + (stats.means[j, k] - x)
            total += _log_coefficient(size, x) + math.lgamma(alpha + size) - math.lgamma(alpha)
            total += math.lgamma(alpha + beta) - math.lgamma(beta)
            total += math.lgamma(beta + x) - math.lgamma(alpha + beta + size + x)
        else:
            # x - m₋ = (x - m)(κ₋ + 1)/κ₋, with m₋ and κ₋ those without x.
            strength = prior[STRENGTH] + n
            share = strength / (strength + 1.0)
            squared = 0.5 * (x - stats.means[j, k]) ** 2 / share
            total += 0.5 * (math.log(share) - LOG_2PI) - math.log(prior[UNIT])
            if kind == KNOWN_NOISE:
                total += 0.5 * math.log(prior[PRECISION]) - squared * prior[PRECISION]
            else:
                shape = prior[SHAPE] + 0.5 * n
                rate = prior[RATE]
                if n > 0.0:
                    rate = max(stats.rates[j, k] - squared, rate)
                total += math.lgamma(shape + 0.5) - math.lgamma(shape) - 0.5 * math.log(rate)
                total -= (shape + 0.5) * math.log1p(squared / rate)
    return total


@implements(contract.log_marginal, MixedStats)
def _log_marginal(stats, k):
    total = 0.0
    for j in range(stats.first, stats.kinds.shape[0]):
        kind, prior, n = stats.kinds[j], stats.priors[j], stats.entries[j, k]
        if n == 0.0:
            continue
        if kind == CATEGORY:
            total += math.lgamma(prior[PSEUDO_TOTAL]) - math.lgamma(prior[PSEUDO_TOTAL] + n)
            for level in range(stats.offsets[j], stats.offsets[j + 1]):
                count = stats.counts[level, k]
                if count > 0.0:
                    total += math.lgamma(prior[PSEUDO_COUNT] + count) - math.lgamma(prior[PSEUDO_COUNT])
        elif kind == COUNT:
            alpha, beta = prior[ALPHA] + prior[SIZE] * n, prior[BETA] + stats.means[j, k]
            total += stats.rates[j, k] + math.lgamma(alpha) - math.lgamma(prior[ALPHA])
            total += math.lgamma(beta) - math.lgamma(prior[BETA])
            total += math.lgamma(prior[ALPHA] + prior[BETA]) - math.lgamma(alpha + beta)
        else:
            total += 0.5 * math.log(prior[STRENGTH] / (prior[STRENGTH] + n))
            total -= n * (0.5 * LOG_2PI + math.log(prior[UNIT]))
            if kind == KNOWN_NOISE:
                total += 0.5 * n * math.log(prior[PRECISION]) - stats.rates[j, k] * prior[PRECISION]
            else:
                shape, rate = prior[SHAPE], prior[RATE]
                total += math.lgamma(shape + 0.5 * n) - math.lgamma(shape)
                total += shape * math.log(rate) - (shape + 0.5 * n) * math.log(stats.rates[j, k])
    return total


@implements(contract.copy_cluster, MixedStats)
def _copy_cluster(stats, source, target):
    for j in range(stats.first, stats.kinds.shape[0]):
        stats.entries[j, target] = stats.entries[j, source]
        stats.means[j, target] = stats.means[j, source]
        stats.rates[j, target] = stats.rates[j, source]
        stats.heights[j, target] = stats.heights[j, source]
        stats.precisions[j, target] = stats.precisions[j, source]
    for level in range(stats.counts.shape[0]):
        stats.counts[level, target] = stats.counts[level, source]
        stats.log_weights[level, target] = stats.log_weights[level, source]


@implements(contract.merge, MixedStats)
def _merge(stats, source, target):
    for j in range(stats.first, stats.kinds.shape[0]):
        kind, prior, n = stats.kinds[j], stats.priors[j], stats.entries[j, source]
        if n == 0.0:
            continue
        if kind <= KNOWN_NOISE:
            # The members of the source, n of mean m + shift, are added to the posterior of the target.
            strength = prior[STRENGTH] + n
            shift = strength * (stats.means[j, source] - prior[MEAN]) / n
            spread = stats.rates[j, source] - prior[RATE]
            spread = max(spread - 0.5 * prior[STRENGTH] * n / strength * shift * shift, 0.0)
            before = prior[STRENGTH] + stats.entries[j, target]
            difference = prior[MEAN] + shift - stats.means[j, target]
            stats.means[j, target] += difference * n / (before + n)
            stats.rates[j, target] += spread + 0.5 * before * n / (before + n) * difference * difference
        else:
            stats.means[j, target] += stats.means[j, source]
            stats.rates[j, target] += stats.rates[j, source]
        stats.entries[j, target] += n
        for level in range(stats.offsets[j], stats.offsets[j + 1]):
            stats.counts[level, target] += stats.counts[level, source]
            weight = prior[PSEUDO_COUNT] + stats.counts[level, target]
            stats.log_weights[level, target] = math.log(weight)
        _settle(stats, j, target)


# A row is the vector of its numbers and counts, from the prior mean on, and of the indicators of its
# categories; a missing cell is where it would be without knowledge, at zero. Columns of numbers and counts
# have the places of their offsets too.


@inlined
def _origin(stats, j):
    # Encoded numbers are deviations already.
    return stats.priors[j, ORIGIN] if stats.kinds[j] == COUNT else stats.priors[j, MEAN]


@implements(contract.project, MixedStats)
def _project(stats, data, i, direction):
    total = 0.0
    for j in range(stats.kinds.shape[0]):
        x = data[i, j]
        if x == x:
            if stats.kinds[j] == CATEGORY:
                total += direction[j + stats.offsets[j] + np.int64(x)]
            else:
                total += direction[j + stats.offsets[j]] * (x - _origin(stats, j))
    return total


@implements(contract.add_vector, MixedStats)
def _add_vector(stats, data, i, weight, direction):
    for j in range(stats.kinds.shape[0]):
        x = data[i, j]
        if x == x:
            if stats.kinds[j] == CATEGORY:
                direction[j + stats.offsets[j] + np.int64(x)] += weight
            else:
                direction[j + stats.offsets[j]] += weight * (x - _origin(stats, j))


@implements(contract.draw, MixedStats)
def _draw(rng, stats, k, out):
    for j in range(stats.first, stats.kinds.shape[0]):
        kind, prior, n = stats.kinds[j], stats.priors[j], stats.entries[j, k]
        if kind == CATEGORY:
            left = rng.random() * (prior[PSEUDO_TOTAL] + n)
            chosen = stats.offsets[j + 1] - stats.offsets[j] - 1
            for level in range(chosen):
                left -= prior[PSEUDO_COUNT] + stats.counts[stats.offsets[j] + level, k]
                if left < 0.0:
                    chosen = level
                    break
            out[j] = chosen
        elif kind == COUNT:
            failures = rng.standard_gamma(prior[BETA] + stats.means[j, k])
            successes = rng.standard_gamma(prior[ALPHA] + prior[SIZE] * n)
            out[j] = rng.poisson(rng.standard_gamma(prior[SIZE]) * failures / successes)
        else:
            variance = 1.0 + 1.0 / (prior[STRENGTH] + n)
            if kind == NUMBER:
                variance *= stats.rates[j, k] / rng.standard_gamma(prior[SHAPE] + 0.5 * n)
            else:
                variance /= prior[PRECISION]
            drawn = stats.means[j, k] + math.sqrt(variance) * rng.standard_normal()
            out[j] = drawn * prior[UNIT] + prior[ORIGIN]


contract.use_defaults(MixedStats, contract.log_predictive_above, contract.extend, contract.clear_members)
