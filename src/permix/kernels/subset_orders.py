"""The ordering with fewest disagreements, by dynamic programming over subsets of items."""

from __future__ import annotations

import numpy as np

from permix.kernels.pairwise_counts import worth_compiling


def best_order_by_subsets(weights):
    """Return the ordering of least score, and the score; see :mod:`permix.kernels.kemeny_search`."""
    order = np.empty(len(weights), np.int64)
    if worth_compiling(order.size << order.size):
        from permix.kernels.kemeny_search import fill_best_order_compiled

        return order, float(fill_best_order_compiled(weights, order))
    return order, float(fill_best_order(weights, order))


def fill_best_order(weights, order):
    """Fill ``order`` with the ordering of least score; return the score.

    ``least[S]``: least score of an ordering of the items S. Putting i first in S costs the weights of all
    others of S over i, which two tables over half the items each give in two look-ups: O(2^n n) time and
    8 · 2^n bytes; no table of choices, since the way back costs only n^2 comparisons.
    Among equal orderings the one with the smallest item first (then second, ...) is taken.
    """
    n = order.size
    low = n // 2
    # sums[half, S, i]: total of weights[j, i] over j in S, a subset of that half.
    sums = np.zeros((2, 1 << (n - low), n))
    for j in range(n - 1, -1, -1):
        half = 0 if j < low else 1
        bit = 1 << (j - half * low)
        for subset in range(bit, 1 << (n - low if half else low), 2 * bit):  # those with j lowest
            for i in range(n):
                sums[half, subset, i] = sums[half, subset - bit, i] + weights[j, i]
    least = np.empty(1 << n)
    least[0] = 0.0
    for subset in range(1, 1 << n):
        from_low, from_high = sums[0, subset & ((1 << low) - 1)], sums[1, subset >> low]
        best = np.inf
        for i in range(n):
            if subset >> i & 1:
                best = min(best, least[subset - (1 << i)] + (from_low[i] + from_high[i]))
        least[subset] = best
    subset = (1 << n) - 1
    for place in range(n):
        for i in range(n):
            if subset >> i & 1:
                cost = sums[0, subset & ((1 << low) - 1), i] + sums[1, subset >> low, i]
                if least[subset - (1 << i)] + cost == least[subset]:
                    order[place] = i
                    subset -= 1 << i
                    break
    return least[(1 << n) - 1]
