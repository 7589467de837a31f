"""Mixtures of Mallows models under any distance, by enumeration of all rankings and all centers.

A mixture is a list of (weight, center, decay); an agent is what ``tests.oracles.bayes_mallows`` writes:
``full``, ``top``, ``subset``, ``levels``, ``compared``. The broken twins at the end have one mistake each.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from tests.oracles.bayes_mallows import distances, no_errors, orderings, ranks


def agreeing(agent, n):
    """Which orderings agree with an agent, as 0 and 1."""
    return np.array([no_errors(order, agent) for order in orderings(n)])


def rankings(distance, center, decay):
    """P of every ordering around a center."""
    n = len(center)
    weights = np.exp(-decay * distances(distance, n)[:, orderings(n).index(tuple(center))])
    return weights / weights.sum()


def joint(distance, mixture, agent):
    """π_k P(ordering | k) of the orderings that agree, (K, orderings)."""
    n = len(mixture[0][1])
    agrees = agreeing(agent, n)
    return np.array([w * rankings(distance, center, decay) * agrees for w, center, decay in mixture])


def log_probabilities(distance, mixture, agents):
    """ln P(what each agent said)."""
    return np.log([joint(distance, mixture, agent).sum() for agent in agents])


def posterior(distance, mixture, agent):
    """P(k, ordering | what the agent said), (K, orderings)."""
    found = joint(distance, mixture, agent)
    return found / found.sum()


def before(distance, mixture, agent):
    """P(a before b | what the agent said), (items, items)."""
    n = len(mixture[0][1])
    places = np.array([ranks(order) for order in orderings(n)])
    p = posterior(distance, mixture, agent).sum(axis=0)
    return np.array([[p @ (places[:, a] < places[:, b]) for b in range(n)] for a in range(n)])


def best_sum(distance, weights, n):
    """The least Σ weight × distance over all centers."""
    return float((weights @ distances(distance, n)).min())


def best_single(distance, agents, n, most):
    """The largest ln P(data) of one component, over all centers and decays up to ``most``."""
    agrees = np.array([agreeing(agent, n) for agent in agents])
    apart = distances(distance, n)

    def loss(decay, column):
        weights = np.exp(-decay * apart[:, column])
        return -np.log(agrees @ weights / weights.sum()).sum()

    found = []
    for column in range(apart.shape[1]):
        grid = np.linspace(0.0, most, 25)
        at = int(np.argmin([loss(decay, column) for decay in grid]))
        ends = grid[max(at - 1, 0)], grid[min(at + 1, 24)]
        found.append(-minimize_scalar(loss, bounds=ends, args=(column,), options={"xatol": 1e-10}).fun)
    return max(found)


def best_pair(distance, agents, n, most, n_rounds=150):
    """The largest ln P(data) that two components reach by EM from every pair of centers, which stay.

    Decays are up to ``most``.
    """
    agrees = np.array([agreeing(agent, n) for agent in agents])
    apart, best = distances(distance, n), -np.inf
    grid = np.linspace(1e-4, most, 4000)
    weights = np.exp(-grid[:, None] * apart[0])
    means = weights @ apart[0] / weights.sum(axis=1)  # falling; the same for all centers
    for first in range(apart.shape[1]):
        for second in range(first, apart.shape[1]):
            share, decays, value = 0.5, np.array([0.9, 0.3]) if first == second else np.array([0.6, 0.6]), 0.0
            columns = apart[:, [first, second]].T
            for _ in range(n_rounds):
                p = np.exp(-decays[:, None] * columns)
                p = (
                    np.array([share, 1 - share])[:, None]
                    * p
                    / np.exp(-np.outer(decays, apart[0])).sum(1)[:, None]
                )
                totals = p @ agrees.T
                evidence = totals.sum(axis=0)
                new = float(np.log(evidence).sum())
                if abs(new - value) < 1e-7:
                    break
                value = new
                wanted = p * ((1.0 / evidence) @ agrees)
                members = wanted.sum(axis=1)
                share = members[0] / members.sum()
                mean = (wanted * columns).sum(axis=1) / np.maximum(members, 1e-12)
                decays = np.interp(-mean, -means, grid)
            best = max(best, value)
    return best


# Each with one deliberate mistake.


def without_normalizers(distance, mixture, agents):
    """Components differ in Z, which is forgotten."""
    n = len(mixture[0][1])
    found = []
    for agent in agents:
        agrees, total = agreeing(agent, n), 0.0
        for weight, center, decay in mixture:
            apart = distances(distance, n)[:, orderings(n).index(tuple(center))]
            total += weight * (np.exp(-decay * apart) @ agrees)
        found.append(np.log(total))
    return np.array(found)


def nearest_alone(distance, mixture, agents):
    """Of all rankings that agree, the most probable one is taken for what was said."""
    return np.log([joint(distance, mixture, agent).max(axis=1).sum() for agent in agents])


def of_other_distance(distance, mixture, agents):
    """Kendall's distance, or for Kendall the footrule."""
    return log_probabilities("footrule" if distance == "kendall" else "kendall", mixture, agents)
