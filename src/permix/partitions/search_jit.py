# mypy: ignore-errors
"""Compiled steps of the search for the partition of least expected loss.

In the spirit of salso (Dahl, Johnson & Müller 2022), on the expected loss itself.

With the table f of the loss (see geometry_kernel), weights w_m of the draws and their sum W, the
part of the total loss that depends on the estimate is

    objective = W sum_k f[a_k] - 2 sum_m w_m sum_kl f[c_mkl],

a_k the size of cluster k of the estimate and c_mkl its overlap with cluster l of draw m. With
g[x] = f[x + 1] - f[x], putting observation i into cluster k changes it by

    W g[a_k] - 2 sum_m w_m g[c_mk z_m(i)],

so all clusters are scored by one walk over the draws. For each cluster l of each draw m the overlaps
c_mkl are kept in a *table* over k, with w_m g[c_mkl] beside them so that scoring is adding rows, or,
where cluster l has fewer members than the table would have columns, in a *list* of the k that meet
it. Memory thus follows the draws × observations, whatever the number of clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.kernels.jit import inlined, kernel

BLOCK = 32  # observations scored together


class Draws(NamedTuple):
    """What all runs share, read-only.

    ``places[i, m]`` says where the overlaps of the cluster of observation i in draw m are: from there on
    in ``Estimate.lists``, or, where negative, in row ``-1 - place`` of the tables. ``all_places`` and
    ``place_weights`` have the place and the weight of each cluster of each draw.
    """

    places: np.ndarray
    all_places: np.ndarray
    place_weights: np.ndarray
    weights: np.ndarray
    f: np.ndarray
    g: np.ndarray
    total_weight: float


class Estimate(NamedTuple):
    """One run's partition and its overlaps with the draws."""

    labels: np.ndarray  # -1: not allocated
    sizes: np.ndarray
    table_counts: np.ndarray
    table_scores: np.ndarray
    lists: np.ndarray  # length of the list, then its (cluster, count) pairs
    scores: np.ndarray  # workspace, (1 + BLOCK, clusters)


# Below, fields are unpacked before loops: taking one inside costs a reference count, an atomic operation.


@kernel
def insert(draws, state, i, cluster):
    """Put an unallocated observation into a cluster; returns the change of the objective."""
    places, weights, g = draws.places, draws.weights, draws.g
    table_counts, table_scores, lists = state.table_counts, state.table_scores, state.lists
    gain = 0.0
    for m in range(len(weights)):
        place = places[i, m]
        if place < 0:
            row = -1 - place
            gain += table_scores[row, cluster]
            table_counts[row, cluster] += 1
            table_scores[row, cluster] = weights[m] * g[table_counts[row, cluster]]
            continue
        end = place + lists[place, 0]
        e = place + 1
        while e <= end and lists[e, 0] != cluster:
            e += 1
        if e > end:
            lists[place, 0] += 1
            lists[e, 0] = cluster
            lists[e, 1] = 1
        else:
            gain += weights[m] * g[lists[e, 1]]
            lists[e, 1] += 1
    change = draws.total_weight * g[state.sizes[cluster]] - 2.0 * gain
    state.sizes[cluster] += 1
    state.labels[i] = cluster
    return change


@kernel
def remove(draws, state, i):
    """Take an observation out of its cluster; returns the change of the objective."""
    places, weights, g = draws.places, draws.weights, draws.g
    table_counts, table_scores, lists = state.table_counts, state.table_scores, state.lists
    cluster = state.labels[i]
    gain = 0.0
    for m in range(len(weights)):
        place = places[i, m]
        if place < 0:
            row = -1 - place
            table_counts[row, cluster] -= 1
            table_scores[row, cluster] = weights[m] * g[table_counts[row, cluster]]
            gain += table_scores[row, cluster]
            continue
        e = place + 1
        while lists[e, 0] != cluster:
            e += 1
        lists[e, 1] -= 1
        gain += weights[m] * g[lists[e, 1]]
        if lists[e, 1] == 0:
            last = place + lists[place, 0]
            lists[e, 0] = lists[last, 0]
            lists[e, 1] = lists[last, 1]
            lists[place, 0] -= 1
    state.sizes[cluster] -= 1
    state.labels[i] = -1
    return 2.0 * gain - draws.total_weight * g[state.sizes[cluster]]


@kernel
def score(draws, state, observations, scores):
    """Sum over draws of w_m g[overlap], for each observation and each cluster.

    Draw by draw, so that the overlaps of one draw stay in the cache while the observations pass by.
    An observation's own cluster is scored as if it were not there.
    """
    places, weights, g = draws.places, draws.weights, draws.g
    labels, sizes = state.labels, state.sizes
    table_scores, lists = state.table_scores, state.lists
    used = len(sizes)
    while used > 0 and sizes[used - 1] == 0:
        used -= 1
    for b in range(len(observations)):
        for cluster in range(used):
            scores[b, cluster] = 0.0
    for m in range(len(weights)):
        for b in range(len(observations)):
            place = places[observations[b], m]
            if place < 0:
                row = -1 - place
                for cluster in range(used):
                    scores[b, cluster] += table_scores[row, cluster]
            else:
                for e in range(place + 1, place + 1 + lists[place, 0]):
                    scores[b, lists[e, 0]] += weights[m] * g[lists[e, 1]]
    for b in range(len(observations)):
        own = labels[observations[b]]
        if own >= 0:
            scores[b, own] = _own_score(draws, state, observations[b], own)


@inlined
def _own_score(draws, state, i, own):
    places, weights, g = draws.places, draws.weights, draws.g
    table_counts, lists = state.table_counts, state.lists
    total = 0.0
    for m in range(len(weights)):
        place = places[i, m]
        if place < 0:
            count = table_counts[-1 - place, own]
        else:
            e = place + 1
            while lists[e, 0] != own:
                e += 1
            count = lists[e, 1]
        total += weights[m] * g[count - 1]
    return total


@inlined
def best_cluster(draws, state, i, scores, tolerance):
    """Cluster to which observation i adds the least, a new one included; its own unless another is better."""
    sizes, g = state.sizes, draws.g
    own = state.labels[i]
    best = -1
    least = np.inf
    empty = -1
    for cluster in range(len(sizes)):
        if sizes[cluster] == 0:
            empty = cluster if empty < 0 else empty
            continue
        added = draws.total_weight * g[sizes[cluster] - (cluster == own)] - 2.0 * scores[cluster]
        if cluster == own:
            added -= tolerance
        if added < least:
            best, least = cluster, added
    # A cluster of its own adds g[0] = 0.
    return empty if empty >= 0 and least > tolerance else best


@kernel
def insert_all(draws, state, observations, clusters):
    """:func:`insert` each observation into the cluster named beside it; returns the change."""
    change = 0.0
    for index in range(len(observations)):
        change += insert(draws, state, observations[index], np.int64(clusters[index]))
    return change


@kernel
def remove_all(draws, state, observations):
    """:func:`remove` each observation; returns the change."""
    change = 0.0
    for i in observations:
        change += remove(draws, state, i)
    return change


@kernel
def allocate(draws, state, order, tolerance, stop):
    """Put the observations one after another where each adds the least; returns the change."""
    scores = state.scores
    change = 0.0
    for index in range(len(order)):
        if stop[0]:
            break
        score(draws, state, order[index : index + 1], scores)
        best = best_cluster(draws, state, order[index], scores[0], tolerance)
        change += insert(draws, state, order[index], best)
    return change


@kernel
def sweeten(draws, state, order, tolerance, stop):
    """Move one observation at a time while that lowers the objective; returns the change.

    Observations are scored in blocks. Moves within the block make its scores stale: whoever wants to
    move is scored again, and only a sweep without any move ends the work.
    """
    labels = state.labels
    scores, fresh = state.scores[1:], state.scores[:1]
    change = 0.0
    moved = True
    while moved:
        moved = False
        for first in range(0, len(order), BLOCK):
            if stop[0]:
                return change
            block = order[first : first + BLOCK]
            score(draws, state, block, scores)
            stale = False
            for b in range(len(block)):
                i = block[b]
                best = best_cluster(draws, state, i, scores[b], tolerance)
                if best != labels[i] and stale:
                    score(draws, state, block[b : b + 1], fresh)
                    best = best_cluster(draws, state, i, fresh[0], tolerance)
                if best != labels[i]:
                    change += remove(draws, state, i)
                    change += insert(draws, state, i, best)
                    moved = stale = True
    return change


@kernel
def best_merge(draws, state, occupied):
    """The pair of ``occupied`` clusters whose union lowers the objective most: (k, l, change)."""
    index_of = np.empty(len(state.sizes), np.int64)
    for index in range(len(occupied)):
        index_of[occupied[index]] = index
    met = np.empty(len(occupied), np.int64)
    counts = np.empty(len(occupied), np.int64)
    f = draws.f
    best_k, best_l, least = -1, -1, 0.0
    block = 256  # clusters at a time, so that the table of gains stays small
    for first in range(0, len(occupied), block):
        gains = np.zeros((min(block, len(occupied) - first), len(occupied)))
        for p in range(len(draws.all_places)):
            place = draws.all_places[p]
            n_met = 0
            if place < 0:
                for index in range(len(occupied)):
                    count = state.table_counts[-1 - place, occupied[index]]
                    if count > 0:
                        met[n_met], counts[n_met] = index, count
                        n_met += 1
            else:
                for e in range(place + 1, place + 1 + state.lists[place, 0]):
                    met[n_met], counts[n_met] = index_of[state.lists[e, 0]], state.lists[e, 1]
                    n_met += 1
            for x in range(n_met):
                row = met[x] - first
                if 0 <= row < len(gains):
                    for y in range(n_met):
                        if y != x:
                            joint = f[counts[x] + counts[y]] - f[counts[x]] - f[counts[y]]
                            gains[row, met[y]] += draws.place_weights[p] * joint
        for row in range(len(gains)):
            k = occupied[first + row]
            for other in range(first + row + 1, len(occupied)):
                l = occupied[other]  # noqa: E741
                joint = f[state.sizes[k] + state.sizes[l]] - f[state.sizes[k]] - f[state.sizes[l]]
                change = draws.total_weight * joint - 2.0 * gains[row, other]
                if change < least:
                    best_k, best_l, least = k, l, change
    return best_k, best_l, least
