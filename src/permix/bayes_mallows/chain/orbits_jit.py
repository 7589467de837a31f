# mypy: ignore-errors
"""Two items swapped in a center, and in the rankings behind what its members say.

Given the rankings of its members a center hardly moves, and given the center they stay near it. But to swap
two items a, b everywhere changes no distance. So a swap in a center is proposed with each member choosing
between its ranking r and τr, where a and b change places: the choice is summed out in the proposal
(Metropolis), and drawn anew where it is accepted. As d(τr, τc) = d(r, c) and d(r, τc) = d(τr, c), which is
d(r, c) + δ, a member whose statements are e^gain times as probable under τr multiplies the ratio by
(e^(-λδ) + e^gain) / (1 + e^(gain - λδ)). Full rankings cannot choose: e^gain is 0.
"""

from __future__ import annotations

import math

import numpy as np

from permix.bayes_mallows.chain.errors_jit import log_one
from permix.bayes_mallows.chain.labels_jit import change_of_swap
from permix.bayes_mallows.chain.latent_jit import may_swap
from permix.bayes_mallows.chain.places_jit import order_of
from permix.bayes_mallows.chain.statistics_jit import distance_of, has_costs
from permix.distributions.conditioning.local_moves_jit import Limits, State, limits_by_step
from permix.kernels.jit import kernel


@kernel
def exchange(ranks, a, b):
    """Let two items change places."""
    ranks[a], ranks[b] = ranks[b], ranks[a]


@kernel
def change_of(metric, ranks, center, a, b, place, order, x):
    """Return by how much a ranking gets farther from the center if a and b change places in either."""
    if has_costs(metric):
        return change_of_swap(metric, ranks, a, b, place)
    before = distance_of(metric, ranks, center, order, x)
    exchange(ranks, a, b)
    after = distance_of(metric, ranks, center, order, x)
    exchange(ranks, a, b)
    return after - before


@kernel
def gain_of(arrays, soft, row, ranks, a, b, level, slope, identity, state):
    """Return ln of how much more probable statements are if a, b change places; -inf if they may not."""
    begin, end = arrays.pair_indptr[row], arrays.pair_indptr[row + 1]
    said = limits_by_step(arrays, row, identity)
    firm = said.has_pairs and not soft
    if firm or arrays.level_indptr[row + 1] > arrays.level_indptr[row]:
        for item in range(ranks.size):
            state.rank[item] = ranks[item]
        order_of(state.rank, state.order)
        limits = Limits(
            said.low, said.high, firm, said.above_start, said.above_items, said.below_start, said.below_items
        )
        if not may_swap(state, limits, min(ranks[a], ranks[b]), max(ranks[a], ranks[b])):
            return -np.inf
    if not soft or begin == end:
        return 0.0
    total = 0.0
    for p in range(begin, end):
        better, worse = arrays.pairs[p, 0], arrays.pairs[p, 1]
        if better in (a, b) or worse in (a, b):
            total -= log_one(ranks[worse] - ranks[better], level, slope)
            above = ranks[b] if better == a else ranks[a] if better == b else ranks[better]
            below = ranks[b] if worse == a else ranks[a] if worse == b else ranks[worse]
            total += log_one(below - above, level, slope)
    return total


@kernel
def swap_together(
    rng, metric, arrays, soft, row_of, n_known, members, centers, decays, errors, n_groups, prior
):
    """Propose swaps of some neighbors in all centers; returns how many were accepted."""
    rankings, ranking_of, labels = members
    n, made = rankings.shape[1], 0
    gains, changes = np.empty(labels.size), np.empty(labels.size)
    order, x, centered = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    identity = np.arange(n)
    state = State(np.empty(n, np.int32), np.empty(n, np.int64), np.empty(0, np.int64))
    for k in range(n_groups):
        for item in range(n):
            centered[centers[k, item]] = item
        for _ in range(max(n // 3, 1)):
            place = np.int64(rng.random() * (n - 1))
            a, b = centered[place], centered[place + 1]
            log_ratio = 0.0
            if prior.center_decay > 0.0:
                change = change_of(metric, prior.center, centers[k], a, b, place, order, x)
                log_ratio -= prior.center_decay * change
            for agent in range(labels.size):
                if labels[agent] != k:
                    continue
                ranks = rankings[ranking_of[agent]]
                changes[agent] = decays[k] * change_of(metric, ranks, centers[k], a, b, place, order, x)
                gains[agent] = -np.inf
                if ranking_of[agent] >= n_known:
                    mine = agent if errors.shape[0] > 1 else 0
                    level, slope = errors[mine, 0], errors[mine, 1]
                    gains[agent] = gain_of(
                        arrays, soft, row_of[agent], ranks, a, b, level, slope, identity, state
                    )
                if gains[agent] == -np.inf:
                    log_ratio -= changes[agent]
                    continue
                high = max(gains[agent], -changes[agent])
                gap = abs(gains[agent] + changes[agent])
                log_ratio += high + math.log1p(math.exp(-gap))
                together = gains[agent] - changes[agent]
                log_ratio -= max(together, 0.0) + math.log1p(math.exp(-abs(together)))
            if log_ratio < -rng.standard_exponential():
                continue
            made += 1
            centered[place], centered[place + 1] = b, a
            exchange(centers[k], a, b)
            for agent in range(labels.size):
                if labels[agent] == k and gains[agent] > -np.inf:
                    odds = gains[agent] + changes[agent]
                    if rng.random() * (1.0 + math.exp(-odds)) < 1.0:
                        exchange(rankings[ranking_of[agent]], a, b)
    return made
