# mypy: ignore-errors
"""P(item a before item b | top list) under the clusters of all posterior draws.

Given a list of t items, what a cluster says about two others depends on nothing but their places among the
items left, in the order of the center, and on the decays from stage t on.
"""

from __future__ import annotations

import numpy as np

from permix.dp_mallows.lists.continuations_jit import continue_list
from permix.dp_mallows.lists.scores_jit import weigh
from permix.kernels.jit import kernel
from permix.kernels.streams import new_stream, open_stream


@kernel
def earlier_stage(chances, places, before):
    """Go one stage back: from P(place p comes before place q), p < q, of one item less, in place.

    The next item is p; or one in front of both, which then move up; one between them, and q moves up; or one
    behind both.
    """
    cumulated = np.zeros(places + 1)
    for s in range(places):
        cumulated[s + 1] = cumulated[s] + chances[s]
    total = cumulated[places]
    for q in range(places - 1, 0, -1):
        behind = total - cumulated[q + 1] if q < places - 1 else 0.0
        for p in range(q):
            value = chances[p]
            if p > 0:
                value += cumulated[p] * before[p - 1, q - 1]
            if q - p > 1:
                value += (cumulated[q] - cumulated[p + 1]) * before[p, q - 1]
            if behind > 0.0:
                value += behind * before[p, q]
            before[p, q] = value


@kernel
def pair_chances(first, last, clusters, tables, distinct_lengths, out):
    """Set ``out[i, k, p, q]`` to P(place p before place q) under cluster ``clusters[i]``.

    It is for lists of ``distinct_lengths[k]`` items; ``distinct_lengths`` ascend.
    """
    n_items = tables.ranks.shape[0]
    chances = np.empty(n_items)
    before = np.empty((n_items, n_items))
    n_stages = tables.theta.shape[0]
    for i in range(first, last):
        c = clusters[i]
        before[:] = 0.0
        k = distinct_lengths.size - 1
        while k >= 0 and distinct_lengths[k] > n_items - 2:
            out[i, k] = 0.0  # one item left at most: there is no pair
            k -= 1
        for j in range(n_items - 2, -1, -1):
            if k < 0:
                break
            for s in range(n_items - j):
                if j < n_stages:
                    chances[s] = np.exp(-tables.theta[j, c] * s - tables.log_psi[j, c])
                else:
                    chances[s] = np.exp(tables.beyond[j - n_stages, s])
            earlier_stage(chances, n_items - j, before)
            if j == distinct_lengths[k]:
                for q in range(n_items):
                    out[i, k, q, q] = 0.0
                    for p in range(q):
                        out[i, k, p, q] = before[p, q]
                        out[i, k, q, p] = 1.0 - before[p, q]
                k -= 1


@kernel
def certain(places, a, b):
    """Return P(a before b) where the list settles it, else -1; ``places`` as :func:`places_of` sets them."""
    if places[a] == places[b]:
        return -1.0
    return 1.0 if places[a] < places[b] else 0.0


@kernel
def places_of(order, length, places):
    """Set the rank of every listed item, and n for the others."""
    places[:] = places.size
    for j in range(length):
        places[order[j]] = j


@kernel
def add_pairs_rows(
    first, last, orders, lengths, length_of, clusters, weights, tables, all_chances, span, a, b, starts, out
):
    """Add, cluster by cluster, weight × P(a before b | list) for questions the list leaves open.

    Row ``row`` is asked about ``a`` and ``b`` from ``span[row, 0]`` to ``span[row, 1]``; answers go to
    ``out`` from ``starts[row]`` on. ``length_of[row]`` is the place of its length in ``all_chances``.
    """
    n_items = tables.ranks.shape[0]
    places = np.empty(n_items, np.int64)
    position = np.zeros(n_items, np.int64)
    for row in range(first, last):
        places_of(orders[row], lengths[row], places)
        begin, end = span[row, 0], span[row, 1]
        undecided = np.empty(end - begin, np.int64)
        n_undecided = 0
        for question in range(begin, end):
            if certain(places, a[question], b[question]) < 0.0:
                undecided[n_undecided] = question
                n_undecided += 1
        totals = np.zeros(n_undecided)
        for i in range(clusters.size):
            weight = weights[row, clusters[i]]
            if weight == 0.0:
                continue
            at = 0
            for rank in range(n_items):
                item = tables.centers[clusters[i], rank]
                if places[item] == n_items:
                    position[item] = at
                    at += 1
            chances = all_chances[i, length_of[row]]
            for u in range(n_undecided):
                totals[u] += weight * chances[position[a[undecided[u]]], position[b[undecided[u]]]]
        for u in range(n_undecided):
            out[starts[row] + undecided[u] - begin] += totals[u]


@kernel
def settle_pairs_rows(first, last, orders, lengths, new_weights, n_items, span, a, b, starts, out):
    """Answer what lists settle; elsewhere begin with what new clusters say, one half."""
    places = np.empty(n_items, np.int64)
    for row in range(first, last):
        places_of(orders[row], lengths[row], places)
        for question in range(span[row, 0], span[row, 1]):
            sure = certain(places, a[question], b[question])
            out[starts[row] + question - span[row, 0]] = sure if sure >= 0.0 else 0.5 * new_weights[row]


@kernel
def sampled_pairs_rows(first, last, key, orders, lengths, n_draws, tables, beyond, span, a, b, starts, out):
    """Answer questions by the share of ``n_draws`` drawn continuations in which a comes before b."""
    n_items, n_clusters = tables.ranks.shape
    weights = np.empty(n_clusters)
    full = np.empty(n_items, np.int32)
    places = np.empty(n_items, np.int64)
    stream = new_stream()
    for row in range(first, last):
        weigh(orders[row], lengths[row], tables, weights)
        cumulated = np.cumsum(weights)
        base = starts[row] - span[row, 0]
        for question in range(span[row, 0], span[row, 1]):
            out[base + question] = 0.0
        for j in range(lengths[row]):
            full[j] = orders[row, j]
        open_stream(stream, key[0], key[1], 0, row)
        for _ in range(n_draws):
            continue_list(stream, cumulated, 0, lengths[row], n_items, tables, beyond, full)
            places_of(full, n_items, places)
            for question in range(span[row, 0], span[row, 1]):
                if places[a[question]] < places[b[question]]:
                    out[base + question] += 1.0
        for question in range(span[row, 0], span[row, 1]):
            out[base + question] /= n_draws
