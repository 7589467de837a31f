"""Searches for the ordering with fewest disagreements, on a matrix of pairwise weights.

``weights[a, b]`` is the weight of those who put a before b. An ordering pays ``weights[b, a]`` for each pair
it puts as a before b: its score. ``net = weights - weights.T``.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel
from permix.kernels.subset_orders import fill_best_order


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


fill_best_order_compiled = kernel(fill_best_order)
