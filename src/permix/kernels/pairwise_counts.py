"""How many votes put item a before item b, for all pairs.

Rows that put the rest below would touch every item; instead a listed item gets its count once for all
others, and the listed items behind which it does not stand are taken out again. The cost of a row is the
square of its length, whatever the number of items.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel
from permix.kernels.posets import (
    Array,
    PreferenceArrays,
    build_graph,
    closure_bits,
    room_for_graphs,
    sort_graph,
)


@kernel
def ranking_pair_counts(
    orders: Array, lengths: Array, unlisted_below: Array, counts: Array, n_items: int
) -> Array:
    """Count pairs over padded orderings."""
    pair_counts = np.zeros((n_items, n_items))
    above_all = np.zeros(n_items)
    for row in range(len(orders)):
        count = counts[row]
        length = lengths[row]
        if unlisted_below[row] and length < n_items:
            for i in range(length):
                above_all[orders[row, i]] += count
                for j in range(i + 1, length):
                    pair_counts[orders[row, j], orders[row, i]] -= count
        else:
            for i in range(length):
                for j in range(i + 1, length):
                    pair_counts[orders[row, i], orders[row, j]] += count
    spread(pair_counts, above_all)
    return pair_counts


@kernel
def spread(pair_counts, above_all):
    """Give every item its wins over all others."""
    for a in range(len(above_all)):
        for b in range(len(above_all)):
            pair_counts[a, b] += above_all[a]
        pair_counts[a, a] = 0.0


@kernel
def preference_pair_counts(
    arrays: PreferenceArrays, implied: Array, counts: Array, n_items: int, repeats: bool
) -> Array:
    """Count pairs over preferences: what is implied where ``implied``, else levels and stated pairs.

    An agent counts for a pair as often as its comparisons state it where ``repeats``, else once.
    """
    n = len(counts)
    pair_counts = np.zeros((n_items, n_items))
    above_all = np.zeros(n_items)
    graph = room_for_graphs(arrays, n_items, 0, n)
    for i in range(n):
        has_pairs = arrays.pair_indptr[i + 1] > arrays.pair_indptr[i]
        if has_pairs and implied[i]:
            _add_closure(arrays, i, graph, counts[i], pair_counts, above_all)
        else:
            add_levels(arrays, i, counts[i], pair_counts, above_all)
            if has_pairs:
                _add_stated(arrays, i, graph, counts[i], pair_counts, n_items)
        if has_pairs and repeats:
            _add_repeats(arrays, i, counts[i], pair_counts, n_items)
    spread(pair_counts, above_all)
    return pair_counts


@kernel
def add_levels(arrays, i, count, pair_counts, above_all):
    """Add what agent i says by levels, with this weight; ``above_all`` as explained above."""
    first, last = arrays.level_indptr[i], arrays.level_indptr[i + 1]
    below = arrays.rest_below[i] and last - first < above_all.size
    for p in range(first, last):
        a = arrays.level_items[p]
        if below:
            above_all[a] += count
        for q in range(p + 1, last):
            b = arrays.level_items[q]
            tied = arrays.levels[q] == arrays.levels[p]
            if below:  # a and b each count as above everything; take out what is not said
                pair_counts[b, a] -= count
                if tied:
                    pair_counts[a, b] -= count
            elif not tied:
                pair_counts[a, b] += count


@kernel
def _add_stated(arrays, i, graph, count, pair_counts, n_items):
    """Add stated comparisons that levels do not already imply, each once."""
    _, n_listed, _ = build_graph(arrays, i, graph)
    level_from = arrays.level_indptr[i]
    keys = _sorted_keys(arrays, i, n_items)
    for place in range(len(keys)):
        if place > 0 and keys[place] == keys[place - 1]:
            continue
        a = keys[place] // n_items
        b = keys[place] % n_items
        node_a, node_b = graph.local[a], graph.local[b]
        if node_a < n_listed:
            if node_b < n_listed:
                if arrays.levels[level_from + node_a] < arrays.levels[level_from + node_b]:
                    continue
            elif arrays.rest_below[i]:
                continue
        pair_counts[a, b] += count


@kernel
def _add_repeats(arrays, i, count, pair_counts, n_items):
    """Add stated comparisons once more for every time they are stated after the first."""
    keys = _sorted_keys(arrays, i, n_items)
    for place in range(1, len(keys)):
        if keys[place] == keys[place - 1]:
            pair_counts[keys[place] // n_items, keys[place] % n_items] += count


@kernel
def _sorted_keys(arrays, i, n_items):
    """Comparisons of agent i as numbers, equal ones together."""
    first, last = arrays.pair_indptr[i], arrays.pair_indptr[i + 1]
    keys = np.empty(last - first, dtype=np.int64)
    for p in range(first, last):
        keys[p - first] = np.int64(arrays.pairs[p, 0]) * n_items + arrays.pairs[p, 1]
    keys.sort()
    return keys


@kernel
def _add_closure(arrays, i, graph, count, pair_counts, above_all):
    n_mentioned, n_listed, n_nodes = build_graph(arrays, i, graph)
    sort_graph(graph, n_nodes)
    bits = closure_bits(graph, n_mentioned, n_nodes)
    below = arrays.rest_below[i]
    for u in range(n_mentioned):
        a = graph.items[u]
        above_rest = below and u < n_listed
        if above_rest:
            above_all[a] += count
        for v in range(n_mentioned):
            said = (bits[u, v >> 6] >> np.uint64(v & 63)) & np.uint64(1) != 0
            if said and not above_rest:
                pair_counts[a, graph.items[v]] += count
            elif above_rest and not said:
                pair_counts[a, graph.items[v]] -= count
