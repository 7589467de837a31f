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

from permix.kernels.by_reference import by_reference
from permix.kernels.jit import inlined, kernel

# So many observations are scored together; so many draws are looked at together: they stay in the cache.
BLOCK, DRAWS = 512, 16


@by_reference
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


@by_reference
class Estimate(NamedTuple):
    """One run's partition and its overlaps with the draws."""

    labels: np.ndarray  # -1: not allocated
    sizes: np.ndarray
    margins: np.ndarray  # by how much its own cluster was better than any other when it was last scored
    table_counts: np.ndarray
    table_scores: np.ndarray
    lists: np.ndarray  # length of the list, then its (cluster, count) pairs
    scores: np.ndarray  # workspace, one row for each observation of a block and another


# Below, fields are unpacked before loops: taking one inside costs a reference count, an atomic operation.


@kernel
def move(draws, state, observations, clusters):
    """Put observations into the clusters beside them, -1 for none; returns the change of the objective."""
    places, weights, g = draws.places, draws.weights, draws.g
    labels, sizes = state.labels, state.sizes
    table_counts, table_scores, lists = state.table_counts, state.table_scores, state.lists
    gain = 0.0
    change = 0.0
    for start in range(0, len(weights), DRAWS):
        end = min(start + DRAWS, len(weights))
        for index in range(len(observations)):
            i = observations[index]
            old, new = labels[i], clusters[index]
            for m in range(start, end):
                weight, place = weights[m], places[i, m]
                if place < 0:
                    row = -1 - place
                    if old >= 0:
                        table_counts[row, old] -= 1
                        table_scores[row, old] = weight * g[table_counts[row, old]]
                        gain -= table_scores[row, old]
                    if new >= 0:
                        gain += table_scores[row, new]
                        table_counts[row, new] += 1
                        table_scores[row, new] = weight * g[table_counts[row, new]]
                    continue
                if old >= 0:
                    e = place + 1
                    while lists[e, 0] != old:
                        e += 1
                    lists[e, 1] -= 1
                    gain -= weight * g[lists[e, 1]]
                    if lists[e, 1] == 0:
                        last = place + lists[place, 0]
                        lists[e, 0] = lists[last, 0]
                        lists[e, 1] = lists[last, 1]
                        lists[place, 0] -= 1
                if new >= 0:
                    last = place + lists[place, 0]
                    e = place + 1
                    while e <= last and lists[e, 0] != new:
                        e += 1
                    if e > last:
                        lists[place, 0] += 1
                        lists[e, 0] = new
                        lists[e, 1] = 0
                    gain += weight * g[lists[e, 1]]
                    lists[e, 1] += 1
    for index in range(len(observations)):
        old, new = labels[observations[index]], clusters[index]
        if old >= 0:
            sizes[old] -= 1
            change -= g[sizes[old]]
        if new >= 0:
            change += g[sizes[new]]
            sizes[new] += 1
        labels[observations[index]] = new
    return draws.total_weight * change - 2.0 * gain


@kernel
def score(draws, state, observations, scores):
    """Sum over draws of w_m g[overlap], for each observation of a block and each cluster.

    An observation's own cluster is scored as if it were not there.
    """
    places, weights, g = draws.places, draws.weights, draws.g
    labels, sizes = state.labels, state.sizes
    table_counts, table_scores, lists = state.table_counts, state.table_scores, state.lists
    used = len(sizes)
    while used > 0 and sizes[used - 1] == 0:
        used -= 1
    for b in range(len(observations)):
        for cluster in range(used):
            scores[b, cluster] = 0.0
    for start in range(0, len(weights), DRAWS):
        end = min(start + DRAWS, len(weights))
        for b in range(len(observations)):
            i = observations[b]
            own = labels[i]
            for m in range(start, end):
                place = places[i, m]
                if place < 0:
                    row = -1 - place
                    for cluster in range(used):
                        scores[b, cluster] += table_scores[row, cluster]
                    if own >= 0:
                        scores[b, own] += weights[m] * g[table_counts[row, own] - 1] - table_scores[row, own]
                else:
                    for e in range(place + 1, place + 1 + lists[place, 0]):
                        cluster = lists[e, 0]
                        scores[b, cluster] += weights[m] * g[lists[e, 1] - (cluster == own)]


@inlined
def best_cluster(draws, state, i, scores, tolerance):
    """Cluster to which observation i adds the least, a new one included; its own unless another is better.

    Also writes its margin, by how much its own is better.
    """
    sizes, g = state.sizes, draws.g
    own = state.labels[i]
    best = -1
    least = np.inf
    stay = np.inf
    empty = -1
    for cluster in range(len(sizes)):
        if sizes[cluster] == 0:
            empty = cluster if empty < 0 else empty
            continue
        added = draws.total_weight * g[sizes[cluster] - (cluster == own)] - 2.0 * scores[cluster]
        if cluster == own:
            stay = added
        elif added < least:
            best, least = cluster, added
    # A cluster of its own adds g[0] = 0.
    if empty >= 0 and least > tolerance:
        best, least = empty, 0.0
    state.margins[i] = least - stay
    return own if stay - tolerance <= least else best


@kernel
def sweep(draws, state, order, clusters, block, tolerance, stop):
    """Put observations where each adds the least; returns the change of the objective and how many moved.

    Observations are scored in blocks. Moves within the block make its scores stale: whoever wants to move is
    scored again. Where ``clusters`` are given they :func:`move` there instead (another kernel for Python to
    call would compile all of that again).
    """
    if len(clusters) > 0:
        return move(draws, state, order, clusters), len(order)
    labels = state.labels
    scores, fresh = state.scores[1:], state.scores[:1]
    target = np.empty(1, np.int32)
    change = 0.0
    n_moved = 0
    for first in range(0, len(order), block):
        if stop[0]:
            break
        some = order[first : first + block]
        score(draws, state, some, scores)
        stale = False
        for b in range(len(some)):
            i = some[b]
            target[0] = best_cluster(draws, state, i, scores[b], tolerance)
            if target[0] != labels[i] and stale:
                score(draws, state, some[b : b + 1], fresh)
                target[0] = best_cluster(draws, state, i, fresh[0], tolerance)
            if target[0] != labels[i]:
                change += move(draws, state, some[b : b + 1], target)
                n_moved += 1
                stale = True
    return change, n_moved


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
        gains = np.empty((min(block, len(occupied) - first), len(occupied)))
        for row in range(len(gains)):
            for other in range(len(occupied)):
                gains[row, other] = 0.0
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
