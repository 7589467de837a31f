"""Every poset on few items, and what conditioning on one does to a ranking model, by enumeration.

A poset is a frozen set of pairs (better, worse), transitively closed. A model is its center and a function
``weight(i, place)``: the probability that the i-th item of the center is inserted at ``place`` of 0..i.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from itertools import combinations, permutations

import numpy as np


def closure(pairs, n):
    """Warshall over 0..n-1."""
    relation = set(pairs)
    for via in range(n):
        for a in range(n):
            for b in range(n):
                if (a, via) in relation and (via, b) in relation:
                    relation.add((a, b))
    return frozenset(relation)


def labeled_posets(n):
    """All of them: 19 on 3 items, 219 on 4. Each unordered pair is open, one way or the other."""
    pairs = list(combinations(range(n), 2))
    found = []
    for code in range(3 ** len(pairs)):
        relation = set()
        for a, b in pairs:
            code, way = divmod(code, 3)
            if way:
                relation.add((a, b) if way == 1 else (b, a))
        if closure(relation, n) == relation:
            found.append(frozenset(relation))
    return found


def random_posets(n, size, seed):
    """Closures of random pairs that agree with a random ordering."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(size):
        order = rng.permutation(n).tolist()
        density = rng.uniform(0.05, 0.7)
        pairs = {(a, b) for a, b in combinations(order, 2) if rng.random() < density}
        found.append(closure(pairs, n))
    return found


def respects(order, relation):
    place = {item: rank for rank, item in enumerate(order)}
    return all(place[a] < place[b] for a, b in relation)


def linear_extensions(relation, n):
    return list(_few_extensions(frozenset(relation), n)) if n <= 4 else _extensions(relation, n)


@cache
def _few_extensions(relation, n):
    return _extensions(relation, n)


def _extensions(relation, n):
    return [order for order in permutations(range(n)) if respects(order, relation)]


def is_partitioned(relation, n):
    """Incomparable is an equivalence: tied groups, one above the other."""
    tied = {(a, b) for a in range(n) for b in range(n) if (a, b) not in relation and (b, a) not in relation}
    return all((a, c) in tied for a, b in tied for d, c in tied if b == d)


def geometric(dispersions):
    """Insertion weights φ^(i - place), normalized; one dispersion, or one for each step."""
    return _geometric(dispersions if np.isscalar(dispersions) else tuple(dispersions))


@cache  # so that what is computed with these weights can be remembered
def _geometric(dispersions):

    @cache
    def weight(i, place):
        phi = dispersions if np.isscalar(dispersions) else dispersions[i]
        return phi ** (i - place) / sum(phi**k for k in range(i + 1))

    return weight


def insertion_places(order, center):
    """Where each item of the center stands among the items of the center before it."""
    rank = {item: place for place, item in enumerate(order)}
    return [sum(rank[other] < rank[item] for other in center[:i]) for i, item in enumerate(center)]


def probability(order, center, weight):
    return float(math.prod(weight(i, place) for i, place in enumerate(insertion_places(order, center))))


def posterior(relation, center, weight):
    """P(v) and the distribution of orderings given v, not to be changed; None where P(v) = 0."""
    return _posterior(frozenset(relation), tuple(center), weight)


@lru_cache(4000)
def _posterior(relation, center, weight):
    joint = {order: probability(order, center, weight) for order in linear_extensions(relation, len(center))}
    total = sum(joint.values())
    return total, {order: p / total for order, p in joint.items()} if total > 0 else None


def amp_distribution(relation, center, weight):
    """Algorithm 1 of Lu & Boutilier, every branch followed, by lists; its distribution is equation 15.

    Where all allowed places have weight zero (dispersion 0), the lowest one is taken: the limit. Not to be
    changed.
    """
    return _amp_distribution(frozenset(relation), tuple(center), weight)


@lru_cache(4000)
def _amp_distribution(relation, center, weight):
    distribution = {(): 1.0}
    for i, item in enumerate(center):
        grown = {}
        for order, mass in distribution.items():
            low = max((order.index(a) + 1 for a in order if (a, item) in relation), default=0)
            high = min((order.index(b) for b in order if (item, b) in relation), default=i)
            weights = [weight(i, place) for place in range(low, high + 1)]
            total = sum(weights)
            if total == 0.0:
                weights[-1] = total = 1.0
            for place, share in zip(range(low, high + 1), weights, strict=True):
                longer = (*order[:place], item, *order[place:])
                grown[longer] = grown.get(longer, 0.0) + mass * share / total
        distribution = grown
    return distribution


def pairwise(distribution, n):
    matrix = np.zeros((n, n))
    for order, mass in distribution.items():
        for a, b in combinations(order, 2):
            matrix[a, b] += mass
    return matrix


def rank_marginals(distribution, n):
    matrix = np.zeros((n, n))
    for order, mass in distribution.items():
        for rank, item in enumerate(order):
            matrix[item, rank] += mass
    return matrix
