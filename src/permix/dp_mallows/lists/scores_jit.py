# mypy: ignore-errors
"""Top lists under many generalized Mallows models at once: the clusters of all posterior draws.

A cluster with center σ and decays θ gives a list π of t items the probability

    GM(π) = Π_j exp(-θ_j s_j) / ψ_{n-1-j}(θ_j),   j = 0..t-1

(Meilă & Chen 2010, equation 2), where s_j, the skip, is the rank of π_j in σ less the number of earlier
items of π that σ puts before π_j. Ranks are stored item by item with clusters last, so that every loop over
clusters runs along memory. A cluster nobody is in yet gives each list of t items the probability (n-t)!/n!
(lemma 1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.kernels.jit import kernel

# Clusters looked at together, so that their ranks stay in the processor's cache.
BLOCK = 2048
# Terms below e^-40 of the largest do not change a sum in double precision.
NEGLIGIBLE = 40.0


class ListTables(NamedTuple):
    """Clusters of all draws one after another, and what lists are scored by.

    Stages that no decay is known for, since no list of the data was so long, have skips from the
    prior: ``beyond``.
    """

    ranks: np.ndarray  # (items, clusters): rank of each item in each center; small integers
    centers: np.ndarray  # (clusters, items): the same as orderings
    theta: np.ndarray  # (stages, clusters)
    log_psi: np.ndarray  # (stages, clusters): ln ψ_{n-1-j}(θ_j)
    log_norms: np.ndarray  # (stages + 1, clusters): sums of log_psi over the first stages
    log_weights: np.ndarray  # (clusters,): share of each within its draw
    log_new: np.ndarray  # (draws,): share of a new cluster
    starts: np.ndarray  # (draws + 1,): first cluster of each draw
    beyond: np.ndarray  # (further stages, items): ln P(skip = s)


@kernel
def log_uniform(length, n_items):
    """Return ln (n-t)!/n!, the log-probability of a list under a cluster nobody is in."""
    total = 0.0
    for j in range(length):
        total -= np.log(n_items - j)
    return total


@kernel
def skips_at(order, j, ranks, low, high, codes):
    """Set ``codes[c - low]`` to s_j of the list ``order`` for clusters ``low`` to ``high - 1``."""
    own = ranks[order[j], low:high]
    size = high - low
    for c in range(size):
        codes[c] = own[c]
    for earlier in range(j):
        other = ranks[order[earlier], low:high]
        for c in range(size):
            codes[c] -= other[c] < own[c]


@kernel
def add_stage(j, tables, low, high, codes, out):
    """Add ln P(s_j), less the normalizer where θ_j is known, for clusters ``low`` to ``high - 1``."""
    n_stages = tables.theta.shape[0]
    size = high - low
    part = out[low:high]
    if j < n_stages:
        theta = tables.theta[j, low:high]
        for c in range(size):
            part[c] -= theta[c] * codes[c]
    else:
        chances = tables.beyond[j - n_stages]
        for c in range(size):
            part[c] += chances[codes[c]]


@kernel
def list_scores(order, length, tables, out):
    """Set ``out[c]`` to ln GM(list) under every cluster."""
    n_items, n_clusters = tables.ranks.shape
    codes = np.empty(min(BLOCK, n_clusters), tables.ranks.dtype)
    stages = min(length, n_items - 1)  # the last item of a full list says nothing
    norms = tables.log_norms[min(stages, tables.theta.shape[0])]
    for low in range(0, n_clusters, BLOCK):
        high = min(low + BLOCK, n_clusters)
        for c in range(low, high):
            out[c] = -norms[c]
        for j in range(stages):
            skips_at(order, j, tables.ranks, low, high, codes)
            add_stage(j, tables, low, high, codes, out)


@kernel
def score_rows(first, last, orders, lengths, tables, out):
    """Set ``out[row, d]`` to ln P(list) under draw ``d``, a new cluster included."""
    n_items, n_clusters = tables.ranks.shape
    scores = np.empty(n_clusters)
    for row in range(first, last):
        list_scores(orders[row], lengths[row], tables, scores)
        empty = log_uniform(lengths[row], n_items)
        for d in range(tables.log_new.size):
            new = tables.log_new[d] + empty
            largest = new
            for c in range(tables.starts[d], tables.starts[d + 1]):
                scores[c] += tables.log_weights[c]
                largest = max(largest, scores[c])
            total = np.exp(new - largest)
            for c in range(tables.starts[d], tables.starts[d + 1]):
                if scores[c] > largest - NEGLIGIBLE:
                    total += np.exp(scores[c] - largest)
            out[row, d] = largest + np.log(total)


@kernel
def joint_scores(order, length, tables, out):
    """Set ``out[c]`` to ln(weight of c in its draw × GM(list)); returns the like of all new clusters."""
    list_scores(order, length, tables, out)
    for c in range(out.size):
        out[c] += tables.log_weights[c]
    largest = tables.log_new.max()
    total = 0.0
    for d in range(tables.log_new.size):
        total += np.exp(tables.log_new[d] - largest)
    return largest + np.log(total) + log_uniform(length, tables.ranks.shape[0])


@kernel
def normalized(log_joint, log_new, weights):
    """Set ``weights`` that sum to one with the weight of a new cluster, which is returned."""
    largest = log_new
    for c in range(log_joint.size):
        largest = max(largest, log_joint[c])
    new = np.exp(log_new - largest)
    total = new
    for c in range(log_joint.size):
        weights[c] = np.exp(log_joint[c] - largest) if log_joint[c] > largest - NEGLIGIBLE else 0.0
        total += weights[c]
    for c in range(log_joint.size):
        weights[c] /= total
    return new / total


@kernel
def weigh(order, length, tables, weights):
    """Set ``weights[c]`` to P(cluster c of its draw | list); returns that of a new cluster."""
    return normalized(weights, joint_scores(order, length, tables, weights), weights)


@kernel
def weight_rows(first, last, orders, lengths, tables, out, out_new):
    """Set ``out[row]`` to the weights of clusters given the list, ``out_new[row]`` to that of a new one."""
    for row in range(first, last):
        out_new[row] = weigh(orders[row], lengths[row], tables, out[row])


@kernel
def assignment_rows(first, last, orders, lengths, tables, linked, out):
    """Set ``out[row, e]`` to P(estimated cluster e | list); the last column is that of a new cluster.

    Cluster c speaks for the estimated cluster ``linked[c]``.
    """
    weights = np.empty(tables.ranks.shape[1])
    for row in range(first, last):
        out[row] = 0.0
        out[row, out.shape[1] - 1] = weigh(orders[row], lengths[row], tables, weights)
        for c in range(weights.size):
            out[row, linked[c]] += weights[c]
