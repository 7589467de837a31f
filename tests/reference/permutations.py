"""Permutation functions straight from their definitions: slow, and meant to be read."""

from __future__ import annotations

import itertools

import numpy as np


def ranks_of(order):
    """Rank of each item, 0-based."""
    ranks = [0] * len(order)
    for rank, item in enumerate(order):
        ranks[item] = rank
    return ranks


def kendall(a, b):
    """Pairs on which two full orderings disagree."""
    ra, rb = ranks_of(a), ranks_of(b)
    return sum((ra[i] < ra[j]) != (rb[i] < rb[j]) for i, j in itertools.combinations(range(len(a)), 2))


def footrule(a, b):
    return sum(abs(x - y) for x, y in zip(ranks_of(a), ranks_of(b), strict=True))


def spearman(a, b):
    return sum((x - y) ** 2 for x, y in zip(ranks_of(a), ranks_of(b), strict=True))


def hamming(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))


def cayley(a, b):
    """Fewest transpositions: sort ``a`` into ``b`` by swapping each place right in turn."""
    a, swaps = list(a), 0
    for place, item in enumerate(b):
        if a[place] != item:
            other = a.index(item)
            a[place], a[other] = a[other], a[place]
            swaps += 1
    return swaps


def ulam(a, b):
    """Items less the longest common subsequence, by the textbook table."""
    n = len(a)
    table = np.zeros((n + 1, n + 1), int)
    for i in range(n):
        for j in range(n):
            table[i + 1, j + 1] = table[i, j] + 1 if a[i] == b[j] else max(table[i, j + 1], table[i + 1, j])
    return n - int(table[n, n])


METRICS = {
    "kendall": kendall,
    "footrule": footrule,
    "spearman": spearman,
    "cayley": cayley,
    "hamming": hamming,
    "ulam": ulam,
}


def stated(levels):
    """Pairs (better, worse) of a partial ranking given by levels; -1 = says nothing about this item."""
    n = len(levels)
    return {
        (i, j)
        for i in range(n)
        for j in range(n)
        if levels[i] >= 0 and levels[j] >= 0 and levels[i] < levels[j]
    }


def closure(pairs):
    """All pairs that follow from ``pairs``."""
    pairs = set(pairs)
    while True:
        more = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
        if not more:
            return pairs
        pairs |= more


def kendall_partial(one, other, penalty):
    """Fagin et al.: 1 for a pair ordered against each other, ``penalty`` for one ordered in one only."""
    total = 0.0
    items = {item for pair in one | other for item in pair}
    for i, j in itertools.combinations(sorted(items), 2):
        first = ((i, j) in one) - ((j, i) in one)
        second = ((i, j) in other) - ((j, i) in other)
        if first * second < 0:
            total += 1
        elif (first == 0) != (second == 0):
            total += penalty
    return total


def stage_code(order, reference):
    """Meilă & Chen's s_j by removing items from a list."""
    left, code = list(reference), []
    for item in order:
        code.append(left.index(item))
        left.remove(item)
    return code


def inversion_code(order, reference):
    ranks = ranks_of(order)
    return [
        sum(ranks[later] < ranks[item] for later in reference[a + 1 :]) for a, item in enumerate(reference)
    ]


def order_from_insertion_code(code, reference):
    """Lu & Boutilier's repeated insertion, by inserting into a list."""
    built = []
    for place, item in zip(code, reference, strict=True):
        built.insert(place, item)
    return built


def kemeny_score(order, weights):
    """Total weight of stated preferences against ``order``."""
    return sum(weights[b][a] for i, a in enumerate(order) for b in order[i + 1 :])


def kemeny_brute_force(weights):
    """Smallest score over all orderings, and all orderings that reach it (to rounding)."""
    weights = np.asarray(weights)
    scores = {order: kemeny_score(order, weights) for order in itertools.permutations(range(len(weights)))}
    best = min(scores.values())
    return best, [list(o) for o, s in scores.items() if s <= best + 1e-9 * (1 + abs(best))]
