"""One generalized Mallows model by enumeration: lists, maximum likelihood, posterior of the center.

Lists are tuples of items 0..n-1, best first; a data set is a sequence of (list, count). Everything is written
from the definitions, with SciPy's own optimizer and quadrature. Broken twins have one deliberate mistake
each.
"""

from __future__ import annotations

from itertools import permutations
from math import inf

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from tests.reference.permutations import inversion_code, ranks_of, stage_code


def skip_distribution(decay, m):
    """P(s), s = 0..m."""
    if decay == inf:
        return [1.0] + [0.0] * m
    weights = [np.exp(-decay * s) for s in range(m + 1)]
    return [w / sum(weights) for w in weights]


def list_probability(order, center, theta):
    """Product over the stages of a list."""
    n, code = len(center), stage_code(order, center)
    return float(
        np.prod([skip_distribution(theta[j], n - 1 - j)[code[j]] for j in range(min(len(order), n - 1))])
    )


def list_distribution(center, theta, length):
    return {top: list_probability(top, center, theta) for top in permutations(center, length)}


def by_inversion_codes(center, theta):
    """Twin: the model of Meilă & Chen's V codes, which belong to the center's ranks, not to the list's."""
    n = len(center)
    distribution = {}
    for order in permutations(range(n)):
        code = inversion_code(order, center)
        distribution[order] = float(
            np.prod([skip_distribution(theta[j], n - 1 - j)[code[j]] for j in range(n - 1)])
        )
    return distribution


def one_place_too_many(order, center, theta):
    """Twin: the normalizer of a stage with one item more than there are."""
    n, code = len(center), stage_code(order, center)
    return float(
        np.prod([skip_distribution(theta[j], n - j)[code[j]] for j in range(min(len(order), n - 1))])
    )


# Statistics.


def totals(data, center):
    """N_j and S_j of all stages that a list reaches."""
    n = len(center)
    n_stages = max(min(len(order), n - 1) for order, _ in data)
    lists, skips = np.zeros(n_stages), np.zeros(n_stages)
    for order, count in data:
        for j, s in enumerate(stage_code(order, center)[: n - 1]):
            lists[j] += count
            skips[j] += count * s
    return lists, skips


def log_likelihood(data, center, theta):
    return sum(count * np.log(list_probability(order, center, theta)) for order, count in data)


# Maximum likelihood.


def best_stage(skips, lists, m):
    """Largest -θ S - N ln ψ(θ) over θ >= 0, by a bounded search."""
    if skips == 0:
        return 0.0, inf

    def loss(theta):
        return theta * skips + lists * np.log(np.exp(-theta * np.arange(m + 1)).sum())

    found = minimize_scalar(loss, bounds=(0.0, 40.0), method="bounded", options={"xatol": 1e-12})
    return min((-loss(0.0), 0.0), (-found.fun, float(found.x)), key=lambda pair: -pair[0])


def maximum_likelihood(data, n):
    """Log-likelihood of every center at its best decays, and those decays."""
    out = {}
    for center in permutations(range(n)):
        lists, skips = totals(data, center)
        stages = [best_stage(skips[j], lists[j], n - 1 - j) for j in range(len(lists))]
        out[center] = (sum(value for value, _ in stages), [theta for _, theta in stages])
    return out


# Posterior.


def log_beta(a, c, m):
    """ln ∫ exp(-a θ) ψ_m(θ)^-c dθ by adaptive quadrature."""

    def exponent(theta):
        return -a * theta - c * np.log(np.exp(-theta * np.arange(m + 1)).sum())

    peak = max(exponent(t) for t in np.linspace(0.0, 20.0, 400))
    value, _ = quad(
        lambda t: np.exp(exponent(t) - peak), 0.0, 20.0 + 60.0 / a, limit=500, points=[0.1, 1.0, 5.0, 20.0]
    )
    return peak + np.log(value)


def log_beta_infinite(a, c, m):
    """Twin: the paper's approximation of infinitely many items, B(a, c + 1)."""
    from scipy.special import betaln

    return betaln(a, c + 1)


def prior_averages(prior, center, n_stages):
    """Mean skip of prior lists at each stage, over those that reach it."""
    out = np.zeros(n_stages)
    if prior:
        lists, skips = totals(prior, center)
        out[: len(lists)] = skips / lists
    return out


def averages_over_all(prior, center, n_stages):
    """Twin: prior lists that are too short to reach a stage count as having skipped nothing."""
    out = np.zeros(n_stages)
    if prior:
        lists, skips = totals(prior, center)
        out[: len(lists)] = skips / lists[0]
    return out


def center_log_weights(
    data, n, strength, rates, prior=(), beta=log_beta, averages=prior_averages, n_stages=None
):
    """ln Π_j B̃eta(ν r_j + ν S⁰_j + S_j, ν + N_j + 1, n - 1 - j) of every center; no data leave the prior."""
    reach = max(min(len(order), n - 1) for order, _ in (*data, *prior)) if n_stages is None else n_stages
    cache, out = {}, {}
    for center in permutations(range(n)):
        lists, skips = np.zeros(reach), np.zeros(reach)
        if data:
            found = totals(data, center)
            lists[: len(found[0])], skips[: len(found[1])] = found
        skips += strength * averages(prior, center, reach)
        total = 0.0
        for j in range(reach):
            key = (round(strength * rates[j] + skips[j], 10), strength + lists[j], n - 1 - j)
            if key not in cache:
                cache[key] = beta(*key)
            total += cache[key]
        out[center] = total
    return out


def normalized(log_weights):
    peak = max(log_weights.values())
    total = sum(np.exp(w - peak) for w in log_weights.values())
    return {center: float(np.exp(w - peak) / total) for center, w in log_weights.items()}


def log_total(log_weights):
    values = np.array(list(log_weights.values()))
    return float(values.max() + np.log(np.exp(values - values.max()).sum()))


def rank_distribution(distribution, n):
    """P(item has rank) of a distribution over orderings."""
    out = np.zeros((n, n))
    for center, p in distribution.items():
        for item, rank in enumerate(ranks_of(center)):
            out[item, rank] += p
    return out


def theta_mean(data, n, strength, rates, stage):
    """Posterior mean of one decay: E[θ] = -d ln B̃eta / da, averaged over centers, by a central difference."""
    distribution = normalized(center_log_weights(data, n, strength, rates))
    mean, step, cache = 0.0, 1e-4, {}
    for center, p in distribution.items():
        lists, skips = totals(data, center)
        a, c = strength * rates[stage] + skips[stage], strength + lists[stage]
        if a not in cache:
            m = n - 1 - stage
            cache[a] = (log_beta(a - step, c, m) - log_beta(a + step, c, m)) / (2 * step)
        mean += p * cache[a]
    return mean
