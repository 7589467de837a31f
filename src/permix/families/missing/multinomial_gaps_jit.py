# mypy: ignore-errors
"""Rows of counts that lack columns, compiled: data augmentation.

Of a row with the columns o observed, the total n of these is taken as given, as totals are elsewhere: its
counts are multinomial with the probabilities p_o/P, P = Σ p_o. No Dirichlet prior is conjugate to that, but
with missing counts y from the negative multinomial of n and p,

    n!/Πx! Π(p_o/P)^x_o  ·  Γ(n+|y|)/(Γ(n)Πy!) P^n Πp^y  =  n Γ(n+|y|)/(Πx! Πy!) Π p^x p^y,

so filled rows count as complete ones. Statistics are those of filled rows. A row is scored by what was
observed of it: given filled rows of a cluster, p_o/P is independent of P, and the score is that of a
Dirichlet-multinomial in the observed columns alone. For the same reason P has the distribution that it has
without the row, and y is Poisson of u w_j with u ~ Gamma(n)/W, where w_j and W are gamma variables of the
missing columns' weights and of the total of the observed ones'.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.families.multinomial_jit import Counts, MultinomialStats, _clear, _copy_cluster
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import implements, inlined, kernel

# Larger counts are drawn again: sums of log-gamma functions of them would lose digits. Where observed columns
# have pseudo-counts of one together, as the family sees to, a row that n was counted in has one with
# probability n/1e10 at most.
LARGEST_FILLED = 1e10


@by_reference
class CountGapStats(NamedTuple):
    """The arrays of :class:`MultinomialStats`, and those of the rows as they are filled."""

    pseudo_counts: np.ndarray
    log_pseudo_counts: np.ndarray
    pseudo_total: float
    document_length: int
    counts: np.ndarray
    log_weights: np.ndarray
    totals: np.ndarray
    log_coefficient: np.ndarray
    filled: np.ndarray  # the values of filled rows, where those of observed ones are NaN
    filled_totals: np.ndarray  # (n,)
    filled_coefficient: np.ndarray  # (n,)


def with_gaps(stats: MultinomialStats, filled: Counts) -> CountGapStats:
    """Return the same statistics as ones that score rows by what was observed of them."""
    return CountGapStats(*stats, filled.values, filled.totals, filled.log_coefficient)


@kernel
def _change(stats, data, i, k, sign):
    for position in range(data.indptr[i], data.indptr[i + 1]):
        word = data.indices[position]
        stats.counts[word, k] += sign * stats.filled[position]
        stats.log_weights[word, k] = math.log(stats.pseudo_counts[word] + stats.counts[word, k])
    stats.totals[k] += sign * stats.filled_totals[i]
    stats.log_coefficient[k] += sign * stats.filled_coefficient[i]


@inlined
def _log_observed(stats, data, i, k, inside):
    """Log probability of the observed counts; a datum inside of the cluster is taken out of it first."""
    # Counts are whole numbers, exactly, and are taken from each other before pseudo-counts join them.
    total, pseudo, score = stats.totals[k], stats.pseudo_total, data.log_coefficient[i]
    if inside:
        total -= stats.filled_totals[i]
    for position in range(data.indptr[i], data.indptr[i + 1]):
        word = data.indices[position]
        left = stats.counts[word, k]
        if inside:
            left -= stats.filled[position]
        repeats = data.values[position]
        if repeats != repeats:
            total -= left
            pseudo -= stats.pseudo_counts[word]
        else:
            weight = stats.pseudo_counts[word] + left
            score += math.lgamma(weight + repeats) - math.lgamma(weight)
    if data.totals[i] > 0.0:
        score += math.lgamma(pseudo + total) - math.lgamma(pseudo + total + data.totals[i])
    return score


implements(contract.clear, CountGapStats)(_clear)
implements(contract.copy_cluster, CountGapStats)(_copy_cluster)


@implements(contract.add, CountGapStats)
def _add(stats, data, i, k):
    _change(stats, data, i, k, 1.0)


@implements(contract.remove, CountGapStats)
def _remove(stats, data, i, k):
    _change(stats, data, i, k, -1.0)


@implements(contract.log_predictive, CountGapStats)
def _log_predictive(stats, data, i, n_clusters, out):
    for k in range(n_clusters):
        out[k] = _log_observed(stats, data, i, k, False)


@implements(contract.log_predictive_without, CountGapStats)
def _log_predictive_without(stats, data, i, k):
    return _log_observed(stats, data, i, k, True)


contract.use_defaults(CountGapStats, contract.log_predictive_above)


@implements(contract.fill, CountGapStats)
def _fill(rng, stats, data, i, k):
    observed, pseudo, n_missing = stats.totals[k], stats.pseudo_total, 0
    for position in range(data.indptr[i], data.indptr[i + 1]):
        if data.values[position] != data.values[position]:
            word = data.indices[position]
            observed -= stats.counts[word, k]
            pseudo -= stats.pseudo_counts[word]
            n_missing += 1
    if n_missing > 0 and data.totals[i] > 0.0:
        too_large = True
        while too_large:
            too_large = False
            rate = rng.standard_gamma(data.totals[i]) / rng.standard_gamma(pseudo + observed)
            total, coefficient = data.totals[i], math.log(data.totals[i])
            for position in range(data.indptr[i], data.indptr[i + 1]):
                if data.values[position] != data.values[position]:
                    word = data.indices[position]
                    mean = rate * rng.standard_gamma(stats.pseudo_counts[word] + stats.counts[word, k])
                    if mean > LARGEST_FILLED:
                        too_large = True
                    else:
                        stats.filled[position] = rng.poisson(mean)
                        total += stats.filled[position]
                coefficient -= math.lgamma(stats.filled[position] + 1.0)
            stats.filled_totals[i] = total
            stats.filled_coefficient[i] = coefficient + math.lgamma(total)
