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


def distribution(distance, center, dispersion):
    """P of every ordering around a center."""
    weights = {
        order: float(dispersion) ** naive.METRICS[distance](list(center), list(order))
        for order in permutations(sorted(center))
    }
    total = sum(weights.values())
    return {order: weight / total for order, weight in weights.items()}


# Draws of displacements of n items, with one mistake each.


def cayley_draws_without_weights(rng, n, dispersion, size):
    """Each item changes places with any other, or none, without regard to how many there are."""
    out = np.tile(np.arange(n), (size, 1))
    for row in out:
        for i in range(1, n):
            if rng.random() < dispersion / (1 + dispersion):
                j = rng.integers(i)
                row[i], row[j] = row[j], row[i]
    return out


def hamming_draws_with_fixed_places(rng, n, dispersion, size):
    """The right number of items is shuffled, and some of them come to lie where they were."""
    found = counts("hamming", n)
    d = np.array(sorted(found))
    chances = np.array([found[each] * dispersion**each for each in d])
    out = np.tile(np.arange(n), (size, 1))
    for row in out:
        moved = rng.permutation(n)[: rng.choice(d, p=chances / chances.sum())]
        row[moved] = row[rng.permutation(moved)]
    return out


def footrule_draws_of_the_nearest(rng, n, dispersion, size):
    """Rank vectors made of independent places near the center, in their order."""
    spread = -1 / np.log(dispersion)
    return np.argsort(np.arange(n) + rng.laplace(scale=spread, size=(size, n)), axis=1)


def ulam_draws_by_single_moves(rng, n, dispersion, size):
    """The right number of moves, any of them, from the center: several ways lead to one ranking."""
    found = counts("ulam", n)
    d = np.array(sorted(found))
    chances = np.array([found[each] * dispersion**each for each in d])
    out = np.tile(np.arange(n), (size, 1))
    for row in out:
        for _ in range(rng.choice(d, p=chances / chances.sum())):
            item, place = rng.integers(n, size=2)
            row[:] = np.insert(np.delete(row, item), place, row[item])
    return out


def spearman_draws_with_noise(rng, n, dispersion, size):
    return np.argsort(
        np.arange(n) + rng.normal(scale=np.sqrt(-0.5 / np.log(dispersion)), size=(size, n)), axis=1
    )


BROKEN_DRAWS = {
    "footrule": footrule_draws_of_the_nearest,
    "spearman": spearman_draws_with_noise,
    "cayley": cayley_draws_without_weights,
    "hamming": hamming_draws_with_fixed_places,
    "ulam": ulam_draws_by_single_moves,
}
