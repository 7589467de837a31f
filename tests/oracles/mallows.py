"""Mallows and repeated-insertion models: distributions by enumeration, and their numbers in many digits.

A distribution is a dictionary from orderings (tuples, best first) to probabilities. The broken twins at the
end have one deliberate mistake each, which the tests must notice.
"""

from __future__ import annotations

from itertools import permutations

import mpmath
import numpy as np

from tests.oracles.ranking_models import kendall


def weighted_mallows(center, dispersions):
    """P(r) ∝ Π_i φ_i^(items that the center puts before its i-th item and r puts after it)."""
    weights = {}
    for r in permutations(center):
        weight = 1.0
        for i, item in enumerate(center):
            passed = sum(r.index(other) > r.index(item) for other in center[:i])
            weight *= dispersions[i] ** passed
        weights[r] = weight
    total = sum(weights.values())
    return {r: weight / total for r, weight in weights.items()}


def conditional_insertion(center, rule):
    """Insert center[i] at place k of the ranking so far with probability rule(ranking, item)[k]."""
    distribution = {(): 1.0}
    for item in center:
        grown = {}
        for r, weight in distribution.items():
            for place, chance in enumerate(rule(r, item)):
                grown[(*r[:place], item, *r[place:])] = weight * chance
        distribution = grown
    return distribution


# What follows from a distribution.


def entropy(distribution):
    return -sum(p * np.log(p) for p in distribution.values() if p > 0)


def expected_distance(distribution, center):
    return sum(p * kendall(r, center) for r, p in distribution.items())


def pairwise(distribution, items):
    """P(a before b)."""
    return np.array(
        [[sum(p for r, p in distribution.items() if r.index(a) < r.index(b)) for b in items] for a in items]
    )


def rank_marginals(distribution, items):
    return np.array(
        [[sum(p for r, p in distribution.items() if r[k] == a) for k in range(len(items))] for a in items]
    )


def top_list_probability(distribution, top):
    return sum(p for r, p in distribution.items() if r[: len(top)] == tuple(top))


# Many digits.


def moments(decay, sizes, digits=60):
    """ln Z, mean and variance of the distance over each number of items, as mpmath numbers."""
    found = {}
    total, mean, variance = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(0)
    with mpmath.workdps(digits):
        decay = mpmath.mpf(decay)
        terms = (total, mean, variance)
        for i in range(2, max(sizes) + 1):
            if decay * (i - 1) < 200:  # beyond, the terms no longer change within 80 digits
                terms = _terms(decay, i)
            total, mean, variance = total + terms[0], mean + terms[1], variance + terms[2]
            if i in sizes:
                found[i] = (total, mean, variance)
    return found


def _terms(decay, i):
    if decay * i < mpmath.mpf(10) ** -18:  # two terms of the expansion at 0: the next is below 1e-36
        return (
            mpmath.log(i) - decay * (i - 1) / 2,
            mpmath.mpf(i - 1) / 2 - decay * (i * i - 1) / 12,
            mpmath.mpf(i * i - 1) / 12,
        )
    near, far = mpmath.expm1(decay), mpmath.expm1(i * decay)
    return (
        mpmath.log(far / near) - (i - 1) * decay,
        1 / near - i / far,
        (near + 1) / near**2 - i * i * (far + 1) / far**2,
    )


def discordance(decay, gap, digits=400):
    """P(worse item first) for two items ``gap`` apart in the center, 1 - h(g+1) + h(g)."""
    if decay == 0:
        return mpmath.mpf(1) / 2
    if decay == mpmath.inf:
        return mpmath.mpf(0)
    with mpmath.workdps(digits):
        better_first = [-k / mpmath.expm1(-k * mpmath.mpf(decay)) for k in (gap, gap + 1)]
        return 1 - better_first[1] + better_first[0]


# Broken twins.


def sample_off_by_one(rng, center, dispersion, size):
    """Draw as repeated insertion does, but never insert at the last place after the second item."""
    draws = []
    for _ in range(size):
        r = []
        for i, item in enumerate(center):
            places = np.arange(i + 1) if i < 2 else np.arange(i)
            weights = dispersion ** (i - places.astype(float))
            r.insert(int(rng.choice(places, p=weights / weights.sum())), item)
        draws.append(tuple(r))
    return np.array(draws)


def weights_by_rank(center, dispersions):
    """Take φ_i for the item at rank i of the drawn ranking instead of the i-th item of the center."""
    place = {item: i for i, item in enumerate(center)}
    weights = {}
    for r in permutations(center):
        weight = 1.0
        for i, item in enumerate(r):
            weight *= dispersions[i] ** sum(place[other] > place[item] for other in r[:i])
        weights[r] = weight
    total = sum(weights.values())
    return {r: weight / total for r, weight in weights.items()}


def naive_mean_distance(decay, n):
    """Compute the mean distance as textbooks write it; loses all digits near decay 0."""
    phi = np.exp(-decay)
    i = np.arange(2, n + 1)
    return float(np.sum(phi / (1 - phi) - i * phi**i / (1 - phi**i)))
