# mypy: ignore-errors
"""Shares and decays of groups, with the groups of agents summed out.

Given who is where, the share and the decay of a group that overlaps with others hardly move, and given these
hardly anybody changes groups. So both are proposed with the groups of ``free`` agents summed out, not of
those ``bound`` (Metropolis). The log-odds of a share against all others move by δ, ln decay by ε. With α_k =
bound members less the discount, shares of groups are Dirichlet(α), so the ratio of their density and of free
agents is e^(δ α_k) C^(-Σ α - n) Π_i (1 + r_i (e^δ Z / Z' e^(-(λ' - λ) d_i) - 1)), where r_i is
P(group | ranking), d_i how far agent i is from the center, and C = 1 + w_k (e^δ - 1).
"""

from __future__ import annotations

import math

import numpy as np

from permix.bayes_mallows.chain.decays_jit import LEAST, MOST
from permix.bayes_mallows.chain.statistics_jit import distance_of
from permix.distributions.distances.table_jit import LOG_Z, table_value
from permix.kernels.jit import kernel

# Proposals for each group, and how far they go from least to most, in units of 1 / sqrt(members).
PROPOSALS, NEAREST, FARTHEST = 6, 0.2, 6.0
# Proposals under which a ranking is more or less probable by a larger factor, in ln, are not made.
LARGEST_CHANGE = 200.0


@kernel
def move_shares(
    rng,
    metric,
    table,
    prior,
    members,
    free,
    bound,
    taking,
    discount,
    shares,
    weights,
    distances,
    centers,
    decays,
):
    """Propose shares and decays of all groups that are ``taking`` part; returns how many were accepted.

    ``shares`` are those of these groups, and ``weights`` P(group | ranking) of all agents, kept right for
    those who are free; ``distances`` (groups, agents) are theirs from the centers.
    """
    labels, n_groups, n = members[2], shares.size, members[0].shape[1]
    order, x = np.empty(n, np.int64), np.empty(n, np.int64)
    far = np.empty(free.size, np.int64)
    own, rest, left = np.empty(free.size), np.empty(free.size), np.empty(free.size)
    n_bound, alphas, made = np.zeros(n_groups), 0.0, 0
    for agent in bound:
        n_bound[labels[agent]] += 1.0
    for k in range(n_groups):
        if taking[k]:
            alphas += n_bound[k] - discount
    for k in range(n_groups):
        if not taking[k]:
            continue
        largest, of_bound = 0, 0.0
        for at in range(free.size):
            far[at] = distances[k, free[at]]
            largest = max(largest, far[at])
            own[at], rest[at], left[at] = weights[k, free[at]], 0.0, 1.0
            for other in range(n_groups):
                if other != k:  # not 1 - own, which rounding may make negative
                    rest[at] += weights[other, free[at]]
        for agent in bound:
            if labels[agent] == k:
                of_bound += distance_of(metric, members[0][members[1][agent]], centers[k], order, x)
        times = np.empty(largest + 1)
        alpha = n_bound[k] - discount
        scale = 1.0 / math.sqrt(max(n_bound[k] * (free.size + bound.size) / max(bound.size, 1), 1.0))
        log_norm = table_value(table, LOG_Z, decays[k])
        for _ in range(PROPOSALS):
            step = scale * NEAREST * (FARTHEST / NEAREST) ** rng.random()
            delta, epsilon = step * rng.standard_normal(), step * rng.standard_normal()
            t = math.log(decays[k]) + epsilon
            if not LEAST < t < MOST:
                continue
            decay = math.exp(t)
            new_norm = table_value(table, LOG_Z, decay)
            change = decay - decays[k]
            nearest = delta + log_norm - new_norm
            if max(abs(nearest), abs(nearest - change * largest)) > LARGEST_CHANGE:
                continue
            for distance in range(largest + 1):
                times[distance] = math.exp(nearest - change * distance)
            grown = 1.0 + shares[k] * math.expm1(delta)
            log_ratio = delta * alpha - (alphas + free.size) * math.log(grown)
            log_ratio += prior.shape * epsilon - (prior.rate + of_bound) * change
            log_ratio -= n_bound[k] * (new_norm - log_norm)
            ratio = 1.0
            for at in range(free.size):
                ratio *= rest[at] + own[at] * times[far[at]]
                if ratio < 1e-200 or ratio > 1e200:
                    log_ratio += math.log(ratio)
                    ratio = 1.0
            if log_ratio + math.log(ratio) < -rng.standard_exponential():
                continue
            made += 1
            decays[k], log_norm = decay, new_norm
            for other in range(n_groups):
                shares[other] /= grown
            shares[k] *= math.exp(delta)
            for at in range(free.size):
                total = rest[at] + own[at] * times[far[at]]
                own[at] *= times[far[at]] / total
                rest[at] /= total
                left[at] /= total
        for at in range(free.size):
            agent = free[at]
            for other in range(n_groups):
                weights[other, agent] *= left[at]
            weights[k, agent] = own[at]
    return made
