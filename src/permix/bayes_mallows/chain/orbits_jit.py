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

from permix.bayes_mallows.chain.errors_jit import gain_of
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
def pairs_allow(pairs, begin, end, ranks, a, b):
    """Whether comparisons, which a ranking agrees with, allow a and b to change places."""
    down, up = (a, b) if ranks[a] < ranks[b] else (b, a)
    first, last = ranks[down], ranks[up]
    for p in range(begin, end):
        better, worse = pairs[p, 0], pairs[p, 1]
        if (better == down and ranks[worse] <= last) or (worse == up and ranks[better] >= first):
            return False
    return True


@kernel
def levels_allow(arrays, row, ranks, a, b, identity, state):
    """Whether levels of an agent allow a and b to change places."""
    for item in range(ranks.size):
        state.rank[item] = ranks[item]
    order_of(state.rank, state.order)
    said = limits_by_step(arrays, row, identity)
    limits = Limits(
        said.low, said.high, False, said.above_start, said.above_items, said.below_start, said.below_items
    )
    return may_swap(state, limits, min(ranks[a], ranks[b]), max(ranks[a], ranks[b]))


@kernel
def swap_together(
    rng, metric, arrays, soft, row_of, n_known, members, centers, decays, errors, n_groups, prior
):
    """Propose swaps of some neighbors in all centers; returns how many were accepted."""
    rankings, ranking_of, labels = members
    n, made = rankings.shape[1], 0
    gains, changes = np.empty(labels.size), np.empty(labels.size)
    order, x, centered = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    pair_indptr, pairs, level_indptr = arrays.pair_indptr, arrays.pairs, arrays.level_indptr
    identity = np.arange(n)
    state = State(np.empty(n, np.int32), np.empty(n, np.int64), np.empty(0, np.int64))
    for k in range(n_groups):
        for item in range(n):
            centered[centers[k, item]] = item
        for _ in range(n):
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
                row, gains[agent] = row_of[agent], -np.inf
                begin, end = pair_indptr[row], pair_indptr[row + 1]
                if ranking_of[agent] >= n_known and (soft or pairs_allow(pairs, begin, end, ranks, a, b)):
                    levels = level_indptr[row + 1] > level_indptr[row]
                    if not levels or levels_allow(arrays, row, ranks, a, b, identity, state):
                        mine = agent if errors.shape[0] > 1 else 0
                        level, slope = errors[mine, 0], errors[mine, 1]
                        gains[agent] = gain_of(pairs, begin, end, ranks, a, b, level, slope) if soft else 0.0
                if gains[agent] == -np.inf:
                    log_ratio -= changes[agent]
                    continue
                if gains[agent] == 0.0:  # what is as probable either way weighs nothing
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
