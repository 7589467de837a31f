"""Distance-based models by enumeration, and normalizers with one mistake each that tests must notice."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from itertools import permutations

import numpy as np

from tests.reference import permutations as naive


@lru_cache
def counts(distance, n):
    """How many rankings of n items lie at each distance from one of them."""
    center = list(range(n))
    return Counter(naive.METRICS[distance](center, list(order)) for order in permutations(center))


def moments(distance, n, decay):
    """ln Z, without cancellation where all but the center are rare, mean and variance of the distance."""
    d, many = (np.array(column, float) for column in zip(*sorted(counts(distance, n).items()), strict=True))
    weights = many * np.exp(-decay * d)
    mean = weights @ d / weights.sum()
    return math.log1p(weights[1:].sum()), mean, weights @ (d - mean) ** 2 / weights.sum()


# Each with one deliberate mistake.


def footrule_without_fixed_places(n, decay):
    """The recursion with 2h in place of 2h + 1: no item may stay where it is."""
    ways = np.zeros(n + 2)
    ways[0] = 1.0
    h = np.arange(n + 2)
    for _ in range(n):
        following = 2 * h * ways
        following[1:] += ways[:-1]
        following[:-1] += h[1:] ** 2 * ways[1:]
        ways = following * np.exp(-2.0 * decay * h)
    return math.log(ways[0])


def cayley_one_step_short(n, decay):
    return sum(math.log1p(i * math.exp(-decay)) for i in range(1, n - 1))


def hamming_that_moves_single_items(n, decay):
    """Any d items elsewhere in d! ways, as if permutations had no fixed points among them."""
    return math.log(sum(math.comb(n, d) * math.factorial(d) * math.exp(-decay * d) for d in range(n + 1)))


def kendall_as_if_geometric(n, decay):
    return -n * math.log(-math.expm1(-decay))


def spearman_without_constraint(n, decay):
    """Ranks drawn independently for each item."""
    gaps = np.arange(n)[:, None] - np.arange(n)
    return float(np.log(np.exp(-decay * gaps**2).sum(axis=1)).sum())


def ulam_by_columns(n, decay):
    """Longest decreasing instead of increasing subsequences, for shapes that are not their own mirror."""
    found = counts("ulam", n)
    return math.log(sum(many * math.exp(-decay * (n - 1 - d)) for d, many in found.items()))


BROKEN = {
    "kendall": kendall_as_if_geometric,
    "footrule": footrule_without_fixed_places,
    "spearman": spearman_without_constraint,
    "cayley": cayley_one_step_short,
    "hamming": hamming_that_moves_single_items,
    "ulam": ulam_by_columns,
}
