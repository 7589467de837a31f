"""Exponential blurring mean-shift (Meilă & Bao 2008) in plain Python: slow, and meant to be read.

Points are tuples of items, best first; what a point leaves out is below, in no order.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

TIE = 1e-9


def before(point, a, b):
    """Whether the list says that a is better than b."""
    return a in point and (b not in point or point.index(a) < point.index(b))


def distance(one, other):
    """Pairs of items that the two lists put in opposite orders."""
    items = sorted(set(one) | set(other))
    return sum(
        (before(one, a, b) and before(other, b, a)) or (before(one, b, a) and before(other, a, b))
        for a, b in combinations(items, 2)
    )


def stage_code_sum(point, center, n_items):
    """Sum of stage codes given the center, whose unlisted items follow in the order that costs least."""
    rest = [item for item in point if item not in center]
    left = [*center, *rest]
    left += [item for item in range(n_items) if item not in left]
    total = 0
    for item in point:
        total += left.index(item)
        left.remove(item)
    return total


def mean_distance(points):
    """Over all pairs of agents; ``points`` counts agents."""
    n = sum(points.values())
    listed = sorted(points)
    total = sum(points[a] * points[b] * distance(a, b) for a, b in combinations(listed, 2))
    return 2.0 * total / (n * (n - 1)) if n > 1 else 0.0


def heuristic_decay(points):
    """θ at which a draw of the infinite model is as far from its center as two agents are on average."""
    n = sum(points.values())
    mean_length = sum(count * len(point) for point, count in points.items()) / n
    apart = mean_distance(points)
    return math.log1p(mean_length / apart) if apart > 0 else math.inf


def weights_around(point, points, decay):
    found = {}
    for other in sorted(points):
        d = distance(point, other)
        found[other] = points[other] * (math.exp(-decay * d) if d else 1.0)
    return found


def stagewise(own, weights, depth, tolerance):
    """Again and again the item which costs least in front of all that are left; ties as in ``own``."""
    items = {item for other in weights for item in other}
    left = [item for item in own if item in items] + sorted(items - set(own))
    order = []
    while left and len(order) < depth:
        costs = [
            sum(
                weight * sum(before(other, rival, item) for rival in left if rival != item)
                for other, weight in weights.items()
            )
            for item in left
        ]
        best = 0
        for k in range(1, len(left)):
            if costs[k] < costs[best] - tolerance:
                best = k
        order.append(left.pop(best))
    return order


def against(order, weights):
    """Weighted pairs that lists put against ``order``, of items in it."""
    return sum(
        weight * sum(before(other, b, a) for a, b in combinations(order, 2))
        for other, weight in weights.items()
    )


def improved(order, weights, tolerance):
    """Move one item after the other to its best place until none gains; walk on after a move."""
    order, place, unmoved = list(order), 0, 0
    while order and unmoved < len(order):
        now = against(order, weights)
        found = []
        for target in [*range(place - 1, -1, -1), *range(place + 1, len(order))]:
            trial = order[:place] + order[place + 1 :]
            trial.insert(target, order[place])
            found.append((against(trial, weights), target, trial))
        best, target, trial = now - tolerance, place, order
        for cost, where, moved in found:
            if cost < best:
                best, target, trial = cost, where, moved
        if target == place:
            unmoved, place = unmoved + 1, place + 1
        else:
            order, unmoved = trial, 0
            place += target < place
        if place == len(order):
            place = 0
    return order


def consensus(own, weights, length):
    total = sum(weights.values())
    listed = sum(weight * len(other) for other, weight in weights.items())
    backed = {
        item
        for item in {item for other in weights for item in other}
        if sum(weight for other, weight in weights.items() if item in other) > TIE * total
    }
    kept = {}
    for other, weight in weights.items():  # what nobody backs does not matter
        reduced = tuple(item for item in other if item in backed)
        kept[reduced] = kept.get(reduced, 0.0) + weight
    order = stagewise(own, kept, 2 * length, TIE * max(listed, total))
    return tuple(improved(order, kept, TIE * total)[:length])


def without_weights(own, weights, length):
    """Broken twin: all points weigh alike, however far they are."""
    return consensus(own, dict.fromkeys(weights, 1.0), length)


def ignoring_counts(points):
    """Broken twin: every distinct list once."""
    return heuristic_decay(dict.fromkeys(points, 1))


def blurring_mean_shift(lists, length, decay=None, max_iter=100, find=consensus, width=heuristic_decay):
    """Return where every list ends, the decays used, and whether it stopped by itself."""
    where = [tuple(point) for point in lists]
    decays = []
    for _ in range(max_iter):
        points = Counter(where)
        theta = width(points) if decay is None else decay
        decays.append(theta)
        moved = {point: find(point, weights_around(point, points, theta), length) for point in points}
        if all(point == new for point, new in moved.items()):
            return where, decays, True
        where = [moved[point] for point in where]
    return where, decays, False
