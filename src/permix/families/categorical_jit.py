# mypy: ignore-errors
"""Clusters of categorical vectors with missing entries under Dirichlet priors, compiled.

Each column j has its own levels 0 ... V_j - 1 and prior a_jv; -1 is a missing entry and says nothing.
ln p(x | cluster) = Σ_j ln(a_jx + c_jx) - ln(A_j + N_j), with c the cluster's counts and N_j its number of
non-missing entries in column j. Both logs are kept, cluster-last, so that scoring only adds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import implements, kernel


@by_reference
class CategoricalStats(NamedTuple):
    """Statistics of categorical clusters; the levels of column j are rows offsets[j] ... offsets[j+1]-1."""

    offsets: np.ndarray  # (p + 1,)
    pseudo_counts: np.ndarray  # (levels,) a_jv
    pseudo_totals: np.ndarray  # (p,) A_j
    counts: np.ndarray  # (levels, capacity) c_jv
    log_weights: np.ndarray  # (levels, capacity) ln(a_jv + c_jv)
    totals: np.ndarray  # (p, capacity) N_j
    log_totals: np.ndarray  # (p, capacity) ln(A_j + N_j)


@kernel
def _change(stats, data, i, k, sign):
    for j in range(data.shape[1]):
        if data[i, j] >= 0:
            level = stats.offsets[j] + data[i, j]
            stats.counts[level, k] += sign
            stats.log_weights[level, k] = math.log(stats.pseudo_counts[level] + stats.counts[level, k])
            stats.totals[j, k] += sign
            stats.log_totals[j, k] = math.log(stats.pseudo_totals[j] + stats.totals[j, k])


@implements(contract.clear, CategoricalStats)
def _clear(stats, k):
    for level in range(stats.counts.shape[0]):
        stats.counts[level, k] = 0.0
        stats.log_weights[level, k] = math.log(stats.pseudo_counts[level])
    for j in range(stats.totals.shape[0]):
        stats.totals[j, k] = 0.0
        stats.log_totals[j, k] = math.log(stats.pseudo_totals[j])


@implements(contract.add, CategoricalStats)
def _add(stats, data, i, k):
    _change(stats, data, i, k, 1.0)


@implements(contract.remove, CategoricalStats)
def _remove(stats, data, i, k):
    _change(stats, data, i, k, -1.0)


@implements(contract.clear_members, CategoricalStats)
def _clear_members(stats, data, order, first, last, k):
    # Levels nobody has are empty already.
    for place in range(first, last):
        i = order[place]
        for j in range(data.shape[1]):
            if data[i, j] >= 0 and stats.totals[j, k] > 0.0:
                stats.totals[j, k] = 0.0
                stats.log_totals[j, k] = math.log(stats.pseudo_totals[j])
    for place in range(first, last):
        i = order[place]
        for j in range(data.shape[1]):
            if data[i, j] >= 0:
                level = stats.offsets[j] + data[i, j]
                if stats.counts[level, k] > 0.0:
                    stats.counts[level, k] = 0.0
                    stats.log_weights[level, k] = math.log(stats.pseudo_counts[level])


@implements(contract.log_predictive, CategoricalStats)
def _log_predictive(stats, data, i, n_clusters, out):
    for k in range(n_clusters):
        out[k] = 0.0
    for j in range(data.shape[1]):
        if data[i, j] >= 0:
            log_weight = stats.log_weights[stats.offsets[j] + data[i, j]]
            log_total = stats.log_totals[j]
            for k in range(n_clusters):
                out[k] += log_weight[k] - log_total[k]


@implements(contract.log_predictive_without, CategoricalStats)
def _log_predictive_without(stats, data, i, k):
    score = 0.0
    for j in range(data.shape[1]):
        if data[i, j] >= 0:
            level = stats.offsets[j] + data[i, j]
            # a + (c - 1), not (a + c) - 1: a tiny pseudo-count must not drown.
            weight = stats.pseudo_counts[level] + (stats.counts[level, k] - 1.0)
            score += math.log(weight / (stats.pseudo_totals[j] + (stats.totals[j, k] - 1.0)))
    return score


@implements(contract.log_marginal, CategoricalStats)
def _log_marginal(stats, k):
    total = 0.0
    for j in range(stats.totals.shape[0]):
        if stats.totals[j, k] > 0.0:
            prior = stats.pseudo_totals[j]
            total += math.lgamma(prior) - math.lgamma(prior + stats.totals[j, k])
            for level in range(stats.offsets[j], stats.offsets[j + 1]):
                count = stats.counts[level, k]
                if count > 0.0:
                    weight = stats.pseudo_counts[level]
                    total += math.lgamma(weight + count) - math.lgamma(weight)
    return total


@implements(contract.project, CategoricalStats)
def _project(stats, data, i, direction):
    # A row is the vector of its indicators; a missing entry has none.
    total = 0.0
    for j in range(data.shape[1]):
        if data[i, j] >= 0:
            total += direction[stats.offsets[j] + data[i, j]]
    return total


@implements(contract.add_vector, CategoricalStats)
def _add_vector(stats, data, i, weight, direction):
    for j in range(data.shape[1]):
        if data[i, j] >= 0:
            direction[stats.offsets[j] + data[i, j]] += weight


@implements(contract.copy_cluster, CategoricalStats)
def _copy_cluster(stats, source, target):
    for level in range(stats.counts.shape[0]):
        stats.counts[level, target] = stats.counts[level, source]
        stats.log_weights[level, target] = stats.log_weights[level, source]
    for j in range(stats.totals.shape[0]):
        stats.totals[j, target] = stats.totals[j, source]
        stats.log_totals[j, target] = stats.log_totals[j, source]


@implements(contract.merge, CategoricalStats)
def _merge(stats, source, target):
    for level in range(stats.counts.shape[0]):
        stats.counts[level, target] += stats.counts[level, source]
        stats.log_weights[level, target] = math.log(stats.pseudo_counts[level] + stats.counts[level, target])
    for j in range(stats.totals.shape[0]):
        stats.totals[j, target] += stats.totals[j, source]
        stats.log_totals[j, target] = math.log(stats.pseudo_totals[j] + stats.totals[j, target])


@implements(contract.draw, CategoricalStats)
def _draw(rng, stats, k, out):
    for j in range(stats.totals.shape[0]):
        first = stats.offsets[j]
        left = rng.random() * (stats.pseudo_totals[j] + stats.totals[j, k])
        level = first
        while level < stats.offsets[j + 1] - 1:
            left -= stats.pseudo_counts[level] + stats.counts[level, k]
            if left < 0.0:
                break
            level += 1
        out[j] = level - first


contract.use_defaults(CategoricalStats, contract.log_predictive_above, contract.extend)
