"""Kendall's distance where rankings are partial.

A pair of items that both rankings order costs 1 when they disagree; a pair that only one of them orders
costs a penalty p (Fagin et al. 2006: a metric on rankings with ties for p in [1/2, 1]); a pair that neither
orders costs nothing.

Two forms of a partial order: *levels* (one number per item below the number of items, small is good,
equal = not ordered, -1 = nothing said about the item), and *keys*: the transitively closed pairs as sorted
numbers ``better * n_items + worse``, for orders that are not made of levels.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel


@kernel
def ordered_pairs(levels, work):
    """Count the pairs of items that a level vector orders; ``work`` has one entry per item."""
    work[:] = 0
    listed = 0
    for item in range(levels.size):
        if levels[item] >= 0:
            listed += 1
            work[levels[item]] += 1
    ordered = listed * (listed - 1) // 2
    for level in range(levels.size):
        ordered -= np.int64(work[level]) * (work[level] - 1) // 2
    return ordered


@kernel
def common_and_discordant(levels_a, levels_b, scratch):
    """Count the pairs that both level vectors order, and those of them on which they disagree.

    ``scratch`` has shape (3, n + 1). Items are taken by level of a; a Fenwick tree over levels of b
    counts those before. O(n log n).
    """
    n = levels_a.size
    start, tree, group = scratch[0], scratch[1], scratch[2]
    start[:] = 0
    tree[:] = 0
    n_common = 0
    for item in range(n):
        if levels_a[item] >= 0 and levels_b[item] >= 0:
            start[levels_a[item] + 1] += 1
            n_common += 1
    for level in range(n):
        start[level + 1] += start[level]
    for item in range(n):  # counting sort; afterwards start[level] is the end of the level
        if levels_a[item] >= 0 and levels_b[item] >= 0:
            group[start[levels_a[item]]] = levels_b[item]
            start[levels_a[item]] += 1
    common = 0
    discordant = 0
    first = 0
    for level in range(n):
        last = start[level]
        for position in range(first, last):
            not_larger = 0
            node = group[position] + 1
            while node > 0:
                not_larger += tree[node]
                node -= node & -node
            smaller = 0
            node = group[position]
            while node > 0:
                smaller += tree[node]
                node -= node & -node
            discordant += first - not_larger
            common += first - not_larger + smaller
        for position in range(first, last):
            node = group[position] + 1
            while node <= n:
                tree[node] += 1
                node += node & -node
        first = last
        if last == n_common:
            break
    return common, discordant


@kernel
def kendall_of_levels(levels_a, levels_b, ordered_a, ordered_b, penalty, work):
    """Kendall's distance with penalty between two level vectors whose ordered pairs are counted already."""
    common, discordant = common_and_discordant(levels_a, levels_b, work)
    return discordant + penalty * (ordered_a + ordered_b - 2 * common)


@kernel
def _in_both(keys_a, keys_b):
    """Count the keys that two sorted arrays have in common."""
    common = 0
    i = j = 0
    while i < keys_a.size and j < keys_b.size:
        common += keys_a[i] == keys_b[j]
        if keys_a[i] <= keys_b[j]:
            i += 1
        else:
            j += 1
    return common


@kernel
def kendall_of_keys(keys_a, keys_b, n_items, penalty):
    """Kendall's distance with penalty between two closed partial orders given by sorted keys."""
    reversed_b = np.empty(keys_b.size, np.int64)
    for j in range(keys_b.size):
        reversed_b[j] = (keys_b[j] % n_items) * n_items + keys_b[j] // n_items
    reversed_b.sort()
    agreed, discordant = _in_both(keys_a, keys_b), _in_both(keys_a, reversed_b)
    return discordant + penalty * (keys_a.size + keys_b.size - 2 * (agreed + discordant))


@kernel
def kendall_matrix_of_levels(start, stop, levels_a, levels_b, penalty, out):
    """Fill rows ``start`` to ``stop`` of the Kendall distances with penalty between level vectors."""
    if start == stop:
        return
    n, n_b = levels_a.shape[1], levels_b.shape[0]
    work = np.empty((3, n + 1), np.int64)
    ordered_b = np.empty(n_b, np.int64)
    for j in range(n_b):
        ordered_b[j] = ordered_pairs(levels_b[j], work[0])
    for i in range(start, stop):
        ordered_a = ordered_pairs(levels_a[i], work[0])
        for j in range(n_b):
            out[i, j] = kendall_of_levels(levels_a[i], levels_b[j], ordered_a, ordered_b[j], penalty, work)


@kernel
def kendall_rows_of_levels(levels_a, levels_b, penalty):
    """Kendall distance with penalty of row i from row i, where one row stands for all rows of the other."""
    n_a, n_b, n = levels_a.shape[0], levels_b.shape[0], levels_a.shape[1]
    work = np.empty((3, n + 1), np.int64)
    out = np.empty(max(n_a, n_b))
    for row in range(out.size):
        a, b = levels_a[min(row, n_a - 1)], levels_b[min(row, n_b - 1)]
        out[row] = kendall_of_levels(
            a, b, ordered_pairs(a, work[0]), ordered_pairs(b, work[0]), penalty, work
        )
    return out


@kernel
def kendall_matrix_of_keys(start, stop, indptr_a, keys_a, indptr_b, keys_b, n_items, penalty, out):
    """Fill rows of the Kendall distances with penalty between closed partial orders (keys in CSR form)."""
    for i in range(start, stop):
        mine = keys_a[indptr_a[i] : indptr_a[i + 1]]
        for j in range(indptr_b.size - 1):
            out[i, j] = kendall_of_keys(mine, keys_b[indptr_b[j] : indptr_b[j + 1]], n_items, penalty)


@kernel
def kendall_rows_of_keys(indptr_a, keys_a, indptr_b, keys_b, n_items, penalty):
    """As :func:`kendall_rows_of_levels`, for closed partial orders."""
    n_a, n_b = indptr_a.size - 1, indptr_b.size - 1
    out = np.empty(max(n_a, n_b))
    for row in range(out.size):
        i, j = min(row, n_a - 1), min(row, n_b - 1)
        out[row] = kendall_of_keys(
            keys_a[indptr_a[i] : indptr_a[i + 1]], keys_b[indptr_b[j] : indptr_b[j + 1]], n_items, penalty
        )
    return out
