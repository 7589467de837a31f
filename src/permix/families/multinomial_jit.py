# mypy: ignore-errors
"""Multinomial clusters of sparse counts under a Dirichlet prior, compiled; work follows non-zero entries.

ln p(x | cluster) = ln multinomial coefficient + ln Γ(A+N)/Γ(A+N+|x|) + Σ_w ln Γ(a_w+c_w+x_w)/Γ(a_w+c_w),
where c_w are the cluster's counts, N their total and A = Σ a_w. Most words occur once in a document,
so the logs of a_w + c_w are kept, cluster-last, and the inner loop is a sum of table rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import implements, kernel

# Beyond this many repeats of one word in one document, two log-gammas are cheaper than a sum of logs.
MAX_SUMMED_REPEATS = 8


class Counts(NamedTuple):
    """Documents as compressed sparse rows, without repeated columns.

    Missing counts are NaN, and zeros are there only where such are filled in. The totals and coefficients of
    documents that lack counts are those of what was observed.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    totals: np.ndarray  # |x| of each document
    log_coefficient: np.ndarray  # ln |x|! - Σ ln x_w!


@by_reference
class MultinomialStats(NamedTuple):
    """Statistics of multinomial clusters; v words, room for ``capacity`` clusters."""

    pseudo_counts: np.ndarray  # (v,) a_w
    log_pseudo_counts: np.ndarray  # (v,)
    pseudo_total: float  # A
    document_length: int  # how long a drawn document is
    counts: np.ndarray  # (v, capacity) c_w
    log_weights: np.ndarray  # (v, capacity) ln(a_w + c_w)
    totals: np.ndarray  # (capacity,) N
    log_coefficient: np.ndarray  # (capacity,) Σ over members


@kernel
def _change(stats, data, i, k, sign):
    for position in range(data.indptr[i], data.indptr[i + 1]):
        word = data.indices[position]
        stats.counts[word, k] += sign * data.values[position]
        stats.log_weights[word, k] = math.log(stats.pseudo_counts[word] + stats.counts[word, k])
    stats.totals[k] += sign * data.totals[i]
    stats.log_coefficient[k] += sign * data.log_coefficient[i]


@implements(contract.clear, MultinomialStats)
def _clear(stats, k):
    stats.totals[k] = 0.0
    stats.log_coefficient[k] = 0.0
    for word in range(stats.counts.shape[0]):
        stats.counts[word, k] = 0.0
        stats.log_weights[word, k] = stats.log_pseudo_counts[word]


@implements(contract.add, MultinomialStats)
def _add(stats, data, i, k):
    _change(stats, data, i, k, 1.0)


@implements(contract.remove, MultinomialStats)
def _remove(stats, data, i, k):
    _change(stats, data, i, k, -1.0)


@implements(contract.clear_members, MultinomialStats)
def _clear_members(stats, data, order, first, last, k):
    stats.totals[k] = 0.0
    stats.log_coefficient[k] = 0.0
    for place in range(first, last):
        i = order[place]
        for position in range(data.indptr[i], data.indptr[i + 1]):
            word = data.indices[position]
            stats.counts[word, k] = 0.0
            stats.log_weights[word, k] = stats.log_pseudo_counts[word]


@implements(contract.log_predictive, MultinomialStats)
def _log_predictive(stats, data, i, n_clusters, out):
    length = data.totals[i]
    for k in range(n_clusters):
        total = stats.pseudo_total + stats.totals[k]
        out[k] = data.log_coefficient[i] + math.lgamma(total) - math.lgamma(total + length)
    for position in range(data.indptr[i], data.indptr[i + 1]):
        word = data.indices[position]
        repeats = data.values[position]
        if repeats == 0.0:  # a missing count that is filled in
            continue
        if repeats <= MAX_SUMMED_REPEATS:
            log_weight = stats.log_weights[word]
            for k in range(n_clusters):
                out[k] += log_weight[k]
            for extra in range(1, int(repeats)):
                for k in range(n_clusters):
                    out[k] += math.log(stats.pseudo_counts[word] + stats.counts[word, k] + extra)
        else:
            for k in range(n_clusters):
                weight = stats.pseudo_counts[word] + stats.counts[word, k]
                out[k] += math.lgamma(weight + repeats) - math.lgamma(weight)


@implements(contract.log_predictive_without, MultinomialStats)
def _log_predictive_without(stats, data, i, k):
    # a + (c - x), not (a + c) - x: a tiny pseudo-count must not drown in the count before the datum leaves.
    others = stats.totals[k] - data.totals[i]
    score = data.log_coefficient[i] + math.lgamma(stats.pseudo_total + others)
    score -= math.lgamma(stats.pseudo_total + stats.totals[k])
    for position in range(data.indptr[i], data.indptr[i + 1]):
        word = data.indices[position]
        repeats = data.values[position]
        pseudo = stats.pseudo_counts[word]
        left = stats.counts[word, k] - repeats
        if repeats <= MAX_SUMMED_REPEATS:
            for extra in range(int(repeats)):
                score += math.log(pseudo + (left + extra))
        else:
            score += math.lgamma(pseudo + stats.counts[word, k]) - math.lgamma(pseudo + left)
    return score


@implements(contract.log_marginal, MultinomialStats)
def _log_marginal(stats, k):
    total = stats.log_coefficient[k] + math.lgamma(stats.pseudo_total)
    total -= math.lgamma(stats.pseudo_total + stats.totals[k])
    for word in range(stats.counts.shape[0]):
        count = stats.counts[word, k]
        if count > 0.0:
            weight = stats.pseudo_counts[word]
            total += math.lgamma(weight + count) - math.lgamma(weight)
    return total


@implements(contract.project, MultinomialStats)
def _project(stats, data, i, direction):
    # A document is the vector of its word frequencies: its length says nothing about its words.
    total = 0.0
    for position in range(data.indptr[i], data.indptr[i + 1]):
        total += direction[data.indices[position]] * data.values[position]
    return total / max(data.totals[i], 1.0)


@implements(contract.add_vector, MultinomialStats)
def _add_vector(stats, data, i, weight, direction):
    share = weight / max(data.totals[i], 1.0)
    for position in range(data.indptr[i], data.indptr[i + 1]):
        direction[data.indices[position]] += share * data.values[position]


@implements(contract.copy_cluster, MultinomialStats)
def _copy_cluster(stats, source, target):
    for word in range(stats.counts.shape[0]):
        stats.counts[word, target] = stats.counts[word, source]
        stats.log_weights[word, target] = stats.log_weights[word, source]
    stats.totals[target] = stats.totals[source]
    stats.log_coefficient[target] = stats.log_coefficient[source]


@implements(contract.merge, MultinomialStats)
def _merge(stats, source, target):
    for word in range(stats.counts.shape[0]):
        if stats.counts[word, source] > 0.0:
            stats.counts[word, target] += stats.counts[word, source]
            stats.log_weights[word, target] = math.log(stats.pseudo_counts[word] + stats.counts[word, target])
    stats.totals[target] += stats.totals[source]
    stats.log_coefficient[target] += stats.log_coefficient[source]


@implements(contract.draw, MultinomialStats)
def _draw(rng, stats, k, out):
    # Pólya's urn, by first drawing the word probabilities from their Dirichlet posterior.
    cumulative = np.empty(out.shape[0])
    total = 0.0
    for word in range(out.shape[0]):
        total += rng.standard_gamma(stats.pseudo_counts[word] + stats.counts[word, k])
        cumulative[word] = total
        out[word] = 0.0
    for _ in range(stats.document_length):
        word = np.searchsorted(cumulative, rng.random() * total, side="right")
        out[min(word, out.shape[0] - 1)] += 1.0


contract.use_defaults(MultinomialStats, contract.log_predictive_above, contract.extend)
