"""Searches for the ordering with fewest disagreements, on a matrix of pairwise weights.

``weights[a, b]`` is the weight of those who put a before b. An ordering pays ``weights[b, a]`` for each pair
it puts as a before b: its score. ``net = weights - weights.T``.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.bits import popcount
from permix.kernels.jit import kernel


@kernel
def order_score(weights, order):
    """Return the total weight of preferences against ``order``."""
    score = 0.0
    for later in range(1, order.size):
        for earlier in range(later):
            score += weights[order[later], order[earlier]]
    return score


@kernel
def improve_by_insertion(net, order, tolerance):
    """Move single items to their best places until no move gains more than ``tolerance``.

    Each item sees all its places in one walk, since stepping past a neighbor changes one pair only: O(n^2)
    for a pass over all items. The result is also a local Kemeny order (no adjacent exchange gains).
    """
    n = order.size
    unmoved = 0
    place = 0
    while unmoved < n:
        item = order[place]
        best_change, best_place = -tolerance, place
        change = 0.0
        for left in range(place - 1, -1, -1):
            change -= net[item, order[left]]
            if change < best_change:
                best_change, best_place = change, left
        change = 0.0
        for right in range(place + 1, n):
            change += net[item, order[right]]
            if change < best_change:
                best_change, best_place = change, right
        if best_place == place:
            unmoved += 1
            place += 1
        else:
            move_item(order, place, best_place)
            unmoved = 0
            # Walking on from the old place, unless the item jumped over it and left another there.
            place += best_place < place
        if place == n:
            place = 0


@kernel
def move_item(order, place, target):
    """Take the item at ``place`` out and insert it so that it stands at ``target``."""
    item = order[place]
    step = 1 if target > place else -1
    for i in range(place, target, step):
        order[i] = order[i + step]
    order[target] = item


@kernel
def iterated_local_search(rng, weights, net, order, n_kicks, tolerance):
    """Improve ``order``; then ``n_kicks`` times disturb the best one and improve again. Return its score."""
    n = order.size
    improve_by_insertion(net, order, tolerance)
    best = order_score(weights, order)
    trial = np.empty_like(order)
    for _ in range(n_kicks):
        trial[:] = order
        for _ in range(2 + np.int64(rng.random() * (1 + n // 8))):
            move_item(trial, np.int64(rng.random() * n), np.int64(rng.random() * n))
        improve_by_insertion(net, trial, tolerance)
        score = order_score(weights, trial)
        if score < best - tolerance:
            best = score
            order[:] = trial
    return best


@kernel
def _column_sums(weights, first, count):
    """Return ``sums[subset, i]``: total of ``weights[j, i]`` over j in a subset of first..first+count-1."""
    n = weights.shape[0]
    sums = np.zeros((1 << count, n))
    for subset in range(1, 1 << count):
        lowest = subset & -subset
        j = first + popcount(np.uint64(lowest - 1))
        for i in range(n):
            sums[subset, i] = sums[subset ^ lowest, i] + weights[j, i]
    return sums


@kernel
def best_order_by_subsets(weights, order):
    """Fill ``order`` with the ordering of least score, by dynamic programming over subsets; return the score.

    ``least[S]``: least score of an ordering of the items S. Putting i first in S costs the weights of all
    others of S over i, which two tables over half the items each give in two look-ups: O(2^n n) time and
    8 · 2^n bytes; no table of choices, since the way back costs only n^2 comparisons.
    Among equal orderings the one with the smallest item first (then second, ...) is taken.
    """
    n = order.size
    low = n // 2
    sums_low = _column_sums(weights, 0, low)
    sums_high = _column_sums(weights, low, n - low)
    low_mask = (1 << low) - 1
    least = np.empty(1 << n)
    least[0] = 0.0
    for subset in range(1, 1 << n):
        from_low = sums_low[subset & low_mask]
        from_high = sums_high[subset >> low]
        best = np.inf
        rest = subset
        while rest != 0:
            bit = rest & -rest
            rest ^= bit
            i = popcount(np.uint64(bit - 1))
            best = min(best, least[subset ^ bit] + (from_low[i] + from_high[i]))
        least[subset] = best
    subset = (1 << n) - 1
    for place in range(n):
        for i in range(n):
            bit = 1 << i
            if subset & bit:
                cost = sums_low[subset & low_mask, i] + sums_high[subset >> low, i]
                if least[subset ^ bit] + cost == least[subset]:
                    order[place] = i
                    subset ^= bit
                    break
    return least[(1 << n) - 1]


@kernel
def violated_triangles(before, threshold, violation, triangles):
    """List the 3-cycles a → b → c → a with ``before[a,b] + before[b,c] + before[c,a] > 2 + threshold``.

    ``before[a, b]`` in [0, 1] says how far a is before b, ``before[b, a] = 1 - before[a, b]``. Return how
    many there are; as many as fit are written.
    """
    n = before.shape[0]
    found = 0
    for a in range(n):
        for b in range(a + 1, n):
            for c in range(a + 1, n):
                if c != b:
                    excess = before[a, b] + before[b, c] + before[c, a] - 2.0
                    if excess > threshold:
                        if found < violation.size:
                            violation[found] = excess
                            triangles[found, 0] = a
                            triangles[found, 1] = b
                            triangles[found, 2] = c
                        found += 1
    return found
