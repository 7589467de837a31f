# mypy: ignore-errors
"""One iteration of the Metropolis–Hastings algorithm of Vitelli et al. (2018), compiled.

Written from the mathematics: centers move by leap-and-shift, each judged by all members of its group; ln
decay moves by normal steps; agents get groups given shares; what agents leave open moves by one leap or
swap each.
"""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.distances.table_jit import LOG_Z, table_value
from permix.kernels.distances import distance_between
from permix.kernels.jit import kernel


@kernel
def far_apart(metric, ranks, center, order, x):
    """Return the distance of two rank vectors."""
    for item in range(ranks.size):
        order[ranks[item]] = item
    return distance_between(metric, order, ranks, center, x)


@kernel
def shift(ranks, item, new):
    """Give an item a new rank; those in between move by one."""
    old = ranks[item]
    for other in range(ranks.size):
        if old < ranks[other] <= new:
            ranks[other] -= 1
        elif new <= ranks[other] < old:
            ranks[other] += 1
    ranks[item] = new


@kernel
def n_leaps(rank, leap, n):
    """Return to how many ranks an item may leap."""
    return min(n - 1, rank + leap) - max(0, rank - leap)


@kernel
def leap_and_shift(rng, ranks, leap):
    """Propose another ranking in place; returns ln P(way back) - ln P(way there)."""
    n = ranks.size
    item = np.int64(rng.random() * n)
    old = ranks[item]
    low = max(0, old - leap)
    new = low + np.int64(rng.random() * n_leaps(old, leap, n))
    if new >= old:
        new += 1
    shift(ranks, item, new)
    if abs(new - old) == 1:  # either of two neighbors may have leapt, both ways
        return 0.0
    return math.log(n_leaps(old, leap, n)) - math.log(n_leaps(new, leap, n))


@kernel
def sum_from(metric, members, k, center, order, x):
    """Return how far the members of a group are from a center, together."""
    rankings, ranking_of, labels = members
    total = 0.0
    for agent in range(labels.size):
        if labels[agent] == k:
            total += far_apart(metric, rankings[ranking_of[agent]], center, order, x)
    return total


@kernel
def move_groups(rng, metric, table, prior, members, leap, step, centers, decays):
    """Propose one center and one decay for each group."""
    n = centers.shape[1]
    order, x = np.empty(n, np.int64), np.empty(n, np.int64)
    proposed = np.empty(n, centers.dtype)
    for k in range(decays.size):
        for item in range(n):
            proposed[item] = centers[k, item]
        log_ways = leap_and_shift(rng, proposed, leap)
        now = sum_from(metric, members, k, centers[k], order, x)
        after = sum_from(metric, members, k, proposed, order, x)
        if -rng.standard_exponential() < log_ways - decays[k] * (after - now):
            for item in range(n):
                centers[k, item] = proposed[item]
            now = after
        size = 0
        for agent in range(members[2].size):
            size += members[2][agent] == k
        new = decays[k] * math.exp(step * rng.standard_normal())
        log_ratio = prior.shape * math.log(new / decays[k]) - (prior.rate + now) * (new - decays[k])
        log_ratio -= size * (table_value(table, LOG_Z, new) - table_value(table, LOG_Z, decays[k]))
        if -rng.standard_exponential() < log_ratio:
            decays[k] = new


@kernel
def assign(rng, metric, table, members, shares, centers, decays):
    """Draw everybody's group given the shares of all."""
    rankings, ranking_of, labels = members
    n, n_groups = centers.shape[1], decays.size
    order, x, scores = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n_groups)
    offsets = np.empty(n_groups)
    for k in range(n_groups):
        offsets[k] = math.log(shares[k]) - table_value(table, LOG_Z, decays[k])
    for agent in range(labels.size):
        largest, total = -np.inf, 0.0
        for k in range(n_groups):
            far = far_apart(metric, rankings[ranking_of[agent]], centers[k], order, x)
            scores[k] = offsets[k] - decays[k] * far
            largest = max(largest, scores[k])
        for k in range(n_groups):
            scores[k] = math.exp(scores[k] - largest)
            total += scores[k]
        target, chosen = rng.random() * total, n_groups - 1
        for k in range(n_groups - 1):
            target -= scores[k]
            if target < 0.0:
                chosen = k
                break
        labels[agent] = chosen


@kernel
def leap_between(rng, metric, arrays, row, ranks, center, decay, order, x):
    """Propose a rank for one item of an agent's ranking, among those that the agent's comparisons leave."""
    n = ranks.size
    item = np.int64(rng.random() * n)
    low, high = 0, n - 1
    for p in range(arrays.pair_indptr[row], arrays.pair_indptr[row + 1]):
        if arrays.pairs[p, 1] == item:
            low = max(low, ranks[arrays.pairs[p, 0]] + 1)
        elif arrays.pairs[p, 0] == item:
            high = min(high, ranks[arrays.pairs[p, 1]] - 1)
    old, now = ranks[item], far_apart(metric, ranks, center, order, x)
    shift(ranks, item, low + np.int64(rng.random() * (high - low + 1)))
    after = far_apart(metric, ranks, center, order, x)
    if rng.standard_exponential() < decay * (after - now):
        shift(ranks, item, old)


@kernel
def count_wrong(arrays, row, ranks):
    """Return how many comparisons of a row contradict a ranking."""
    wrong = 0
    for p in range(arrays.pair_indptr[row], arrays.pair_indptr[row + 1]):
        wrong += ranks[arrays.pairs[p, 0]] > ranks[arrays.pairs[p, 1]]
    return wrong


@kernel
def swap_neighbors(rng, metric, arrays, row, ranks, center, decay, log_odds, order, x):
    """Propose to swap two neighbors of an agent's ranking; ``log_odds`` are of a comparison to be right."""
    place = np.int64(rng.random() * (ranks.size - 1))
    now, wrong = far_apart(metric, ranks, center, order, x), count_wrong(arrays, row, ranks)
    first = order[place]
    shift(ranks, first, place + 1)
    after, wrong_after = far_apart(metric, ranks, center, order, x), count_wrong(arrays, row, ranks)
    if rng.standard_exponential() < decay * (after - now) + log_odds * (wrong_after - wrong):
        shift(ranks, first, place)


@kernel
def move_rankings(rng, metric, arrays, row_of, open_agents, members, centers, decays, log_odds):
    """Propose once for each agent who leaves something open; returns how many comparisons are wrong.

    ``log_odds`` is infinite where comparisons are taken at their word.
    """
    rankings, ranking_of, labels = members
    n, wrong = rankings.shape[1], 0
    order, x = np.empty(n, np.int64), np.empty(n, np.int64)
    for turn in range(open_agents.size):
        agent = open_agents[turn]
        ranks, k = rankings[ranking_of[agent]], labels[agent]
        given = (rng, metric, arrays, row_of[agent], ranks, centers[k], decays[k])
        if log_odds == np.inf:
            leap_between(*given, order, x)
        else:
            swap_neighbors(*given, log_odds, order, x)
        wrong += count_wrong(arrays, row_of[agent], ranks)
    return wrong
