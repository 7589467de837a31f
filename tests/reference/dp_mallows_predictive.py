"""Predictions of a mixture of generalized Mallows models, straight from definitions; slow, meant to be read.

Clusters come as a list of draws; a draw is ``(clusters, weight of a new one)``, a cluster is
``(weight, center, decays)``. Stages beyond the decays have none: their decay is integrated over the prior
density ∝ exp(-ν r θ) ψ(θ)^-ν.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
from scipy.integrate import quad


def skips(order, center):
    """At each stage, how many items left stand before the one chosen, in the center."""
    left, found = list(center), []
    for item in order:
        found.append(left.index(item))
        left.remove(item)
    return found


def psi(theta, m):
    return sum(math.exp(-i * theta) for i in range(m + 1))


def stage_probability(skip, j, n, decays, strength, rate):
    """P(skip) at stage j (0-based) of lists over n items."""
    m = n - 1 - j
    if m == 0:
        return 1.0
    if j < len(decays):
        return math.exp(-decays[j] * skip) / psi(decays[j], m)
    return stage_probability_under_the_prior(skip, m, strength, rate)


@cache
def stage_probability_under_the_prior(skip, m, strength, rate):
    def density(theta):
        return math.exp(-strength * rate * theta) * psi(theta, m) ** -strength

    def joint(theta):
        return density(theta) * math.exp(-theta * skip) / psi(theta, m)

    ends = (0.0, math.inf)
    accuracy = {"epsabs": 0.0, "epsrel": 1e-11, "limit": 500}
    return quad(joint, *ends, **accuracy)[0] / quad(density, *ends, **accuracy)[0]


def list_probability(order, center, decays, strength, rate):
    result = 1.0
    for j, skip in enumerate(skips(order, center)):
        result *= stage_probability(skip, j, len(center), decays, strength, rate)
    return result


def uniform_probability(order, n):
    return math.factorial(n - len(order)) / math.factorial(n)


def predictive(order, draws, n, strength=1.0, rate=1.0):
    """P(list), averaged over draws."""
    return float(np.mean(predictive_by_draw(order, draws, n, strength, rate)))


def predictive_by_draw(order, draws, n, strength=1.0, rate=1.0):
    return [
        sum(w * list_probability(order, center, decays, strength, rate) for w, center, decays in clusters)
        + new * uniform_probability(order, n)
        for clusters, new in draws
    ]


def all_lists(n, length):
    return list(itertools.permutations(range(n), length))


def next_distribution(order, draws, n, strength=1.0, rate=1.0):
    """P(next item | list) by Bayes' rule from probabilities of lists."""
    whole = predictive(order, draws, n, strength, rate)
    return [
        0.0 if item in order else predictive((*order, item), draws, n, strength, rate) / whole
        for item in range(n)
    ]


def pairwise(order, draws, n, strength=1.0, rate=1.0):
    """P(a before b | list), summed over all full rankings that begin with the list."""
    rest = [item for item in range(n) if item not in order]
    result, whole = np.zeros((n, n)), 0.0
    for tail in itertools.permutations(rest):
        full = (*order, *tail)
        p = predictive(full, draws, n, strength, rate)
        whole += p
        for i, j in itertools.combinations(range(n), 2):
            result[full[i], full[j]] += p
    return result / whole


def assignment(order, draws, members, n_estimated, n, strength=1.0, rate=1.0):
    """P(estimated cluster | list), the last entry that of a new one.

    ``members[d][k]`` are the estimated clusters of the agents in cluster k of draw d.
    """
    result = np.zeros(n_estimated + 1)
    for (clusters, new), those in zip(draws, members, strict=True):
        for (w, center, decays), agents in zip(clusters, those, strict=True):
            p = w * list_probability(order, center, decays, strength, rate)
            for e in agents:
                result[e] += p / len(agents)
        result[-1] += new * uniform_probability(order, n)
    return result / result.sum()
