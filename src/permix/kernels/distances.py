"""Distances between full rankings: one pair, row by row, and all pairs.

All six are right-invariant, d(a, b) = d(x, identity) with ``x[j]`` the rank in b of the j-th item of a.
Kendall, Cayley and Ulam are read off x; the other three are sums over items, with no relabeling.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.bits import popcount
from permix.kernels.fenwick import WORD, count_inversions
from permix.kernels.jit import kernel

KENDALL, FOOTRULE, SPEARMAN, CAYLEY, HAMMING, ULAM = range(6)
METRICS = {
    "kendall": KENDALL,
    "footrule": FOOTRULE,
    "spearman": SPEARMAN,
    "cayley": CAYLEY,
    "hamming": HAMMING,
    "ulam": ULAM,
}


@kernel
def transpositions(x):
    """Return items less cycles of the permutation ``x``, which is used up."""
    n = x.size
    cycles = 0
    for start in range(n):
        if x[start] >= 0:
            cycles += 1
            place = start
            while x[place] >= 0:
                following = x[place]
                x[place] = -1
                place = following
    return n - cycles


@kernel
def longest_increasing(x):
    """Return the length of a longest increasing subsequence of the permutation ``x``, which is used up.

    ``ends``: the smallest last elements of increasing subsequences of each length. A new element joins
    them and removes the next larger one.
    """
    n = x.size
    if n <= WORD:
        ends = np.uint64(0)
        for j in range(n):
            bit = np.uint64(1) << np.uint64(x[j])
            larger = ends & ~(bit | (bit - np.uint64(1)))
            ends = (ends & ~(larger & (~larger + np.uint64(1)))) | bit
        return popcount(ends)
    length = 0  # here the ends are kept in x[:length], always behind the reading place
    for j in range(n):
        value = x[j]
        low, high = 0, length
        while low < high:
            middle = (low + high) >> 1
            if x[middle] < value:
                low = middle + 1
            else:
                high = middle
        x[low] = value
        length = max(length, low + 1)
    return length


@kernel
def distance_between(metric, order_a, ranks_a, ranks_b, x):
    """Distance between two full rankings; ``x`` is scratch of one entry per item."""
    n = order_a.size
    if metric in (FOOTRULE, SPEARMAN, HAMMING):
        total = 0
        for item in range(n):
            gap = abs(np.int64(ranks_a[item]) - np.int64(ranks_b[item]))
            if metric == FOOTRULE:
                total += gap
            elif metric == SPEARMAN:
                total += gap * gap
            else:
                total += gap != 0
        return total
    for j in range(n):
        x[j] = ranks_b[order_a[j]]
    if metric == KENDALL:
        return count_inversions(x, n, n)
    if metric == CAYLEY:
        return transpositions(x)
    return n - longest_increasing(x)


@kernel
def row_distances(metric, orders_a, ranks_a, ranks_b):
    """Distance of row i of a from row i of b, where one row stands for all rows of the other."""
    n_a, n_b = ranks_a.shape[0], ranks_b.shape[0]
    out = np.empty(max(n_a, n_b), np.int64)
    x = np.empty(ranks_a.shape[1], np.int32)
    for row in range(out.size):
        i, j = min(row, n_a - 1), min(row, n_b - 1)
        out[row] = distance_between(metric, orders_a[i], ranks_a[i], ranks_b[j], x)
    return out


# All pairs. Functions of a range of pairs of rows run in threads. Work on row i of a symmetric matrix falls
# with i, so rows i and m-1-i are taken together.


@kernel
def distance_matrix(start, stop, metric, symmetric, orders_a, ranks_a, ranks_b, out):
    """Set ``out[i, j]`` to the distance of ``a[i]`` and ``b[j]``; with ``symmetric`` b is a.

    Pairs of rows i and m-1-i from ``start`` to ``stop`` of (m + 1) // 2.
    """
    m = ranks_a.shape[0]
    x = np.empty(ranks_a.shape[1], np.int32)
    for pair in range(start, stop):
        for i in (pair, m - 1 - pair):
            for j in range(i if symmetric else 0, ranks_b.shape[0]):
                out[i, j] = distance_between(metric, orders_a[i], ranks_a[i], ranks_b[j], x)
                if symmetric:
                    out[j, i] = out[i, j]


# Kendall for all pairs of many rankings: write each as n(n-1)/2 bits "i before j". A pair of rankings then
# costs an exclusive or and a population count per 64 pairs of items: measured 20 times less than counting
# inversions at n = 10 to 500, and equal near n = 4000.


@kernel
def pair_bits(ranks, out):
    """Write the bits "item i before item j", i < j, of one rank vector into the words ``out``."""
    word, used, index = np.uint64(0), 0, 0
    for i in range(ranks.size):
        for j in range(i + 1, ranks.size):
            word |= np.uint64(ranks[i] < ranks[j]) << np.uint64(used)
            used += 1
            if used == WORD:
                out[index] = word
                word, used = np.uint64(0), 0
                index += 1
    if used > 0:
        out[index] = word


def words_of_pairs(n):
    """Number of words that the pair bits of n items take."""
    return (n * (n - 1) // 2 + WORD - 1) // WORD


@kernel
def all_pair_bits(start, stop, ranks, out):
    """Write the pair bits of rows from ``start`` to ``stop``."""
    for row in range(start, stop):
        pair_bits(ranks[row], out[row])


@kernel
def kendall_matrix_of_bits(start, stop, symmetric, bits_a, bits_b, out):
    """Fill the Kendall distance matrix from pair bits; rows as in :func:`distance_matrix`."""
    m = bits_a.shape[0]
    for pair in range(start, stop):
        for i in (pair, m - 1 - pair):
            for j in range(i if symmetric else 0, bits_b.shape[0]):
                differing = 0
                for word in range(bits_a.shape[1]):
                    differing += popcount(bits_a[i, word] ^ bits_b[j, word])
                out[i, j] = differing
                if symmetric:
                    out[j, i] = differing
