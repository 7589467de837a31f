# mypy: ignore-errors
"""Full rankings of agents who leave something open, given their groups and what they said.

Items are taken out one by one and put back with exactly the probability that each place has given the order
of the others, among the places that the agent's statements allow; where distances move all items in between,
pairs of items change places as well. Where comparisons may be wrong, they forbid nothing: each costs ln odds
of being right where it is violated. If these odds depend on how far apart two items are, all comparisons
with items in between change, and the new place is accepted or not (Metropolis).
"""

from __future__ import annotations

import math

import numpy as np

from permix.bayes_mallows.chain.errors_jit import gain_of, log_said
from permix.bayes_mallows.chain.places_jit import draw_place, order_of, put, swap, swap_cost, walk
from permix.bayes_mallows.chain.statistics_jit import cost_of_one, distance_of, has_costs
from permix.distributions.conditioning.local_moves_jit import (
    Limits,
    State,
    allowed_window,
    limits_by_step,
)
from permix.kernels.distances import KENDALL
from permix.kernels.jit import kernel
from permix.kernels.streams import exponential, new_stream, open_stream, uniform


@kernel
def fill_costs(metric, centers, n_groups, counts, costs):
    """Write what a ranking costs in each group, in distances from its center."""
    if has_costs(metric):
        for k in range(n_groups):
            cost_of_one(metric, centers[k], counts, costs[k])


@kernel
def walk_comparisons(
    item, order, at, first, last, above_start, above, below_start, below, level, net, weights
):
    """Add to ``weights`` what comparisons of the item cost at each place; ``net`` is zero, and left so."""
    for e in range(above_start[item], above_start[item + 1]):
        net[above[e]] -= 1
    for e in range(below_start[item], below_start[item + 1]):
        net[below[e]] += 1
    total = 0
    for place in range(first, last):
        total += net[order[place] if place < at else order[place + 1]]
        weights[place + 1] += level * total
    for e in range(above_start[item], above_start[item + 1]):
        net[above[e]] = 0
    for e in range(below_start[item], below_start[item + 1]):
        net[below[e]] = 0


@kernel
def window(item, rank, above_start, above, below_start, below):
    """Return the first and the last place that comparisons allow an item: ``allowed_window`` without levels.

    Few arrays: to pass whole tuples of them costs more than the work.
    """
    first, last = np.int64(0), np.int64(rank.size - 1)
    for e in range(above_start[item], above_start[item + 1]):
        first = max(first, rank[above[e]] + 1)
    for e in range(below_start[item], below_start[item + 1]):
        last = min(last, rank[below[e]] - 1)
    return first, last


@kernel
def place_by_powers(order, at, first, last, rank_there, center, powers, u, changes, weights):
    """Draw a place for the item at ``at`` whose center rank is ``rank_there``, by Kendall's distance.

    Each neighbor passed changes the distance by one, so that weights are powers of the dispersion, and none
    of them is computed here.
    """
    change, least = 0, 0
    changes[first] = 0
    for place in range(first, last):
        other = order[place] if place < at else order[place + 1]
        change += 1 if center[other] > rank_there else -1
        least = min(least, change)
        changes[place + 1] = change
    total = 0.0
    for place in range(first, last + 1):
        total += powers[changes[place] - least]
        weights[place] = total
    target = u * total
    for place in range(first, last):
        if weights[place] > target:
            return place
    return last


@kernel
def may_swap(state, limits, a, b):
    """Whether the items at places a < b may change places."""
    _, furthest = allowed_window(state.order[a], state, limits)
    if furthest < b:
        return False
    nearest, _ = allowed_window(state.order[b], state, limits)
    return nearest <= a


@kernel
def update_latents(
    key, metric, arrays, soft, agents, row_of, members, centers, decays, costs, errors, rounds, first, last
):
    """Draw the rankings of open agents from ``first`` on anew, item by item."""
    rankings, ranking_of, labels = members
    n = rankings.shape[1]
    pairwise, by_costs = metric == KENDALL, has_costs(metric)
    state = State(np.empty(n, np.int32), np.empty(n, np.int64), np.empty(0, np.int64))
    order, rank = state.order, state.rank
    identity, net = np.empty(n, np.int64), np.zeros(n, np.int64)
    weights, other, x = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    stream = new_stream()
    changes, powers = np.empty(n, np.int64), np.empty((decays.size, n + 1))
    for item in range(n):
        identity[item] = item
    for k in range(decays.size):
        for distance in range(n + 1):
            powers[k, distance] = math.exp(-decays[k] * distance)
    for turn in range(first, last):
        agent = agents[turn]
        row, k, ranks = row_of[agent], labels[agent], rankings[ranking_of[agent]]
        open_stream(stream, key[0], key[1], 0, agent)
        for item in range(n):
            rank[item] = ranks[item]
        order_of(rank, order)
        said = limits_by_step(arrays, row, identity)
        limits = Limits(
            said.low,
            said.high,
            said.has_pairs and not soft,
            said.above_start,
            said.above_items,
            said.below_start,
            said.below_items,
        )
        begin, end = arrays.pair_indptr[row], arrays.pair_indptr[row + 1]
        levels, firm = arrays.level_indptr[row + 1] > arrays.level_indptr[row], limits.has_pairs
        above_start, above = said.above_start, said.above_items
        below_start, below = said.below_start, said.below_items
        unsure = soft and end > begin
        mine = agent if errors.shape[0] > 1 else 0
        level, slope = errors[mine, 0], errors[mine, 1]
        by_walk = unsure and slope == 0.0 and by_costs
        decay, rank_in_center = decays[k], centers[k]
        now = 0.0 if by_costs else decay * distance_of(metric, rank, centers[k], other, x)
        log_now = log_said(arrays.pairs, begin, end, rank, level, slope) if unsure and not by_walk else 0.0
        for turn_of_item in range(rounds * n):
            item = turn_of_item % n
            at = new = rank[item]
            low, high = 0, n - 1
            if levels:
                low, high = allowed_window(item, state, limits)
            elif firm:
                low, high = window(item, rank, above_start, above, below_start, below)
            if low < high and pairwise and not unsure:
                given = (rank_in_center[item], rank_in_center, powers[k], uniform(stream), changes, weights)
                new = place_by_powers(order, at, low, high, *given)
            elif low < high and by_costs:
                for place in range(low, high + 1):
                    weights[place] = 0.0
                walk(order, at, low, high, pairwise, costs[k], decay, weights)
                if by_walk:
                    stated = (above_start, above, below_start, below)
                    walk_comparisons(item, order, at, low, high, *stated, level, net, weights)
                new = draw_place(uniform(stream), low, high, weights)
            elif low < high:
                new = low + np.int64(uniform(stream) * (high - low + 1))
            if new != at:
                put(order, rank, at, new)
                after, log_after = now, log_now
                if not by_costs:
                    after = decay * distance_of(metric, rank, centers[k], other, x)
                if unsure and not by_walk:
                    log_after = log_said(arrays.pairs, begin, end, rank, level, slope)
                if exponential(stream) >= after - now - log_after + log_now:
                    now, log_now = after, log_after
                else:
                    put(order, rank, new, at)
            # Whether two items change places must not depend on whether the one above could move.
            if pairwise:
                continue
            a, b = np.int64(uniform(stream) * n), np.int64(uniform(stream) * n)
            a, b = min(a, b), max(a, b)
            if a == b or (levels and not may_swap(state, limits, a, b)):
                continue
            if firm and not levels:
                if window(order[a], rank, above_start, above, below_start, below)[1] < b:
                    continue
                if window(order[b], rank, above_start, above, below_start, below)[0] > a:
                    continue
            cost = decay * swap_cost(order, a, b, pairwise, costs[k]) if by_costs else -now
            gain = (
                gain_of(arrays.pairs, begin, end, rank, order[a], order[b], level, slope) if unsure else 0.0
            )
            swap(order, rank, a, b)
            after = now
            if not by_costs:
                after = decay * distance_of(metric, rank, centers[k], other, x)
                cost += after
            if exponential(stream) >= cost - gain:
                now = after
                log_now += gain  # not read where comparisons are walked along
            else:
                swap(order, rank, a, b)
        for item in range(n):
            ranks[item] = rank[item]
