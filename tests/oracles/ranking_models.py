"""Exact distributions of ranking models on few items, by enumeration, straight from their definitions."""

from __future__ import annotations

from functools import cache
from itertools import permutations

import numpy as np


def kendall(a, b):
    """Pairs of items in different order in two orderings."""
    place = {item: rank for rank, item in enumerate(b)}
    return sum(place[a[i]] > place[a[j]] for i in range(len(a)) for j in range(i + 1, len(a)))


@cache
def mallows(center, dispersion):
    """P(r) ∝ dispersion^kendall(r, center); not to be changed."""
    weights = {r: dispersion ** kendall(r, center) for r in permutations(center)}
    return _normalized(weights)


def generalized_mallows(center, theta, length):
    """Distribution of the first ``length`` items; s_j counts unused items before the j-th in the center."""
    distribution = {}
    n = len(center)
    for r in permutations(center):
        weight = 1.0
        left = list(center)
        for stage in range(n):
            skipped = left.index(r[stage])
            decay = theta[stage] if stage < len(theta) else 0.0
            weight *= np.exp(-decay * skipped)
            weight /= sum(np.exp(-decay * k) for k in range(n - stage))
            left.remove(r[stage])
        distribution[r[:length]] = distribution.get(r[:length], 0.0) + weight
    return distribution


def repeated_insertion(center, probabilities):
    """Insert center[i] at place k of the i items before it with probability probabilities[i][k]."""
    distribution = {(): 1.0}
    for i, item in enumerate(center):
        grown = {}
        for r, weight in distribution.items():
            for place in range(i + 1):
                longer = (*r[:place], item, *r[place:])
                grown[longer] = grown.get(longer, 0.0) + weight * probabilities[i][place]
        distribution = grown
    return distribution


def angle(direction, concentration):
    """P(R) ∝ exp(concentration direction'y), y the standardized rank vector."""
    t = len(direction)
    weights = {}
    for r in permutations(range(t)):
        ranks = np.empty(t)
        ranks[list(r)] = np.arange(1, t + 1)
        y = (ranks - (t + 1) / 2) / np.sqrt(t * (t * t - 1) / 12)
        weights[r] = float(np.exp(concentration * np.dot(direction, y)))
    return _normalized(weights)


def total_variation(draws, distribution):
    """Distance between the frequencies of the rows of ``draws`` and a distribution."""
    draws = np.asarray(draws)
    numbers = draws
    if draws.dtype.kind != "i":  # names of items
        numbers = np.unique(draws, return_inverse=True)[1].reshape(draws.shape)
    base = int(numbers.max()) + 2  # places left empty are -1
    assert base ** draws.shape[1] < 2**62
    codes = (numbers + 1) @ base ** np.arange(draws.shape[1])
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    found = dict(zip(map(tuple, draws[first].tolist()), (counts / len(draws)).tolist(), strict=True))
    return 0.5 * sum(abs(found.get(key, 0.0) - distribution.get(key, 0.0)) for key in {*found, *distribution})


def total_variation_bound(n_draws, n_outcomes, failure=1e-6):
    """What the distance of exact draws exceeds with probability at most ``failure``.

    Its mean is at most √(K/N)/2 (Cauchy-Schwarz over cells); one draw moves it by at most 1/N (McDiarmid).
    """
    return 0.5 * np.sqrt(n_outcomes / n_draws) + np.sqrt(np.log(1 / failure) / (2 * n_draws))


def _normalized(weights):
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}
