# mypy: ignore-errors
"""Weighted counts of "a before b": what the M-step needs of rankings (Lu & Boutilier 2014, algorithm 4).

Rankings that were drawn come as insertion places around the center of their component. Many of one component
go side by side through vector instructions: a step of all lanes turns places into ranks, and a pair of
items is compared in all lanes at once.
"""

from __future__ import annotations

import numpy as np

from permix.distributions.insertion_jit import push_places
from permix.kernels.fenwick import count_below, insert, n_words
from permix.kernels.jit import kernel

LANES = 128


@kernel
def count_drawn(first, last, drawn, places, weights, wins):
    """Add rankings drawn[first..last-1], all of one component, to ``wins``.

    ``drawn`` lists rows of ``places`` (rows, m), insertion places around the component's center, in an order
    that puts equal ``weights`` together; ``wins[i, j]``, i < j, counts rankings with step i before step j.
    """
    n = places.shape[1]
    lanes = np.zeros((n, LANES), places.dtype)
    begin = first
    while begin < last:
        weight = weights[drawn[begin]]
        end = begin + 1
        while end < last and end - begin < LANES and weights[drawn[end]] == weight:
            end += 1
        for lane in range(end - begin):
            row = drawn[begin + lane]
            for i in range(n):
                lanes[i, lane] = places[row, i]
        push_places(lanes)
        for i in range(n):
            for lane in range(end - begin, LANES):
                lanes[i, lane] = 0  # equal ranks: nobody before anybody
        for i in range(n):
            mine = lanes[i]
            for j in range(i + 1, n):
                other = lanes[j]
                before = np.uint8(0)  # LANES fit
                for lane in range(LANES):
                    before = np.uint8(before + np.uint8(mine[lane] < other[lane]))
                wins[i, j] += np.float64(before) * weight
        begin = end


@kernel
def disagreements(first, last, arrays, rows, ranks, out):
    """Count the stated pairs that each center reverses; out[at, k] for rows[first..last-1].

    Pairs between levels, pairs of a listed item with the rest where that is below, and comparisons as stated
    (what they imply together is not worked out).
    """
    n_models, n = ranks.shape
    words = np.zeros(n_words(n + 1), np.uint64)
    tree = np.zeros(words.size + 1, np.int32)
    for at in range(first, last):
        i = rows[at]
        begin, end = arrays.level_indptr[i], arrays.level_indptr[i + 1]
        size = np.int64(end - begin)
        for k in range(n_models):
            mine = ranks[k]
            total = np.int64(0)
            if size > 0:
                for w in range(words.size):
                    words[w] = np.uint64(0)
                for w in range(tree.size):
                    tree[w] = 0
                p = begin
                while p < end:
                    level = arrays.levels[p]
                    q = p
                    while q < end and arrays.levels[q] == level:
                        # Members of better levels that the center puts behind this item.
                        total += (p - begin) - count_below(words, tree, mine[arrays.level_items[q]])
                        q += 1
                    for s in range(p, q):
                        insert(words, tree, mine[arrays.level_items[s]])
                    p = q
                if arrays.rest_below[i]:
                    before_all = np.int64(0)
                    for p in range(begin, end):
                        before_all += mine[arrays.level_items[p]]
                    total += before_all - size * (size - 1) // 2
            for p in range(arrays.pair_indptr[i], arrays.pair_indptr[i + 1]):
                total += np.int64(mine[arrays.pairs[p, 0]] > mine[arrays.pairs[p, 1]])
            out[at, k] = total
