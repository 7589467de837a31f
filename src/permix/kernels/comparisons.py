"""Votes for pairs of items in compiled code; see :mod:`permix.kernels.pairwise_counts`."""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel
from permix.kernels.pairwise_counts import weigh_levels
from permix.kernels.posets import build_graph, closure_bits, room_for_graphs, sort_graph

weigh_levels_compiled = kernel(weigh_levels)


@kernel
def weigh_comparisons(arrays, implied, weights, repeats, pair_counts, above_all):
    """Add what agents with comparisons say: where ``implied`` all that follows, levels included.

    Elsewhere stated comparisons that levels do not imply, each once. With ``repeats``, comparisons once more
    for every time they are stated after the first.
    """
    n_items = above_all.size
    graph = room_for_graphs(arrays, n_items, 0, weights.size)
    for i in range(weights.size):
        weight = weights[i]
        begin, end = arrays.pair_indptr[i], arrays.pair_indptr[i + 1]
        if begin == end:
            continue
        n_mentioned, n_listed, n_nodes = build_graph(arrays, i, graph)
        below = arrays.rest_below[i]
        if implied[i]:
            sort_graph(graph, n_nodes)
            bits = closure_bits(graph, n_mentioned, n_nodes)
            for u in range(n_mentioned):
                a = graph.items[u]
                above_rest = below and u < n_listed
                if above_rest:
                    above_all[a] += weight
                for v in range(n_mentioned):
                    said = (bits[u, v >> 6] >> np.uint64(v & 63)) & np.uint64(1) != 0
                    if said and not above_rest:
                        pair_counts[a, graph.items[v]] += weight
                    elif above_rest and not said:
                        pair_counts[a, graph.items[v]] -= weight
        keys = np.empty(end - begin, dtype=np.int64)  # equal comparisons together
        for p in range(begin, end):
            keys[p - begin] = np.int64(arrays.pairs[p, 0]) * n_items + arrays.pairs[p, 1]
        keys.sort()
        for place in range(keys.size):
            a, b = keys[place] // n_items, keys[place] % n_items
            if place > 0 and keys[place] == keys[place - 1]:
                wanted = repeats
            else:
                u, v = graph.local[a], graph.local[b]
                by_levels = u < n_listed and below
                if u < n_listed and v < n_listed:
                    first = arrays.level_indptr[i]
                    by_levels = arrays.levels[first + u] < arrays.levels[first + v]
                wanted = not (implied[i] or by_levels)
            if wanted:
                pair_counts[a, b] += weight
