# mypy: ignore-errors
"""Who is in which group, given the groups: many at once, or one after another.

Many move at once by ``weigh`` and ``choose``. Some agents, drawn beforehand, are pinned; only groups with a
pinned agent take part, so that which groups there are does not depend on those who move. Given labels, shares
of these groups are Dirichlet(n_1 - d, n_2 - d, ...) for discount d (of all priors over partitions here), and
given shares, agents who are not pinned are independent. In between, ``swap_neighbors`` moves centers.

``visit`` moves agents one after another, who may also open a group, whose center and decay are drawn from
the prior (Neal 2000, algorithm 8, with one such group; of an agent who is alone, it is that agent's own).
"""

from __future__ import annotations

import math

import numpy as np

from permix.bayes_mallows.chain.statistics_jit import distance_of, gap_cost
from permix.distributions.distances.table_jit import LOG_Z, table_value
from permix.kernels.distances import KENDALL, distance_between
from permix.kernels.jit import kernel
from permix.kernels.random import categorical_log
from permix.kernels.streams import new_stream, open_stream, uniform


@kernel
def weigh(metric, members, centers, decays, offsets, free, weights, distances, first, last):
    """Write P(group | ranking) of each agent from ``first`` on, and how far it is from centers.

    ``offsets`` are ln (share / Z) of groups, -inf for those that take no part; only ``free`` agents are
    weighed.
    """
    rankings, ranking_of, _ = members
    n_groups, n = offsets.size, rankings.shape[1]
    order, x = np.empty(n, np.int64), np.empty(n, np.int64)
    before = -1
    for agent in range(first, last):
        if not free[agent]:
            continue
        if before >= 0 and ranking_of[agent] == ranking_of[before]:
            for k in range(n_groups):
                weights[agent, k] = weights[before, k]
                distances[agent, k] = distances[before, k]
            continue
        before = agent
        ranks = rankings[ranking_of[agent]]
        for item in range(n):
            order[ranks[item]] = item
        largest = -np.inf
        for k in range(n_groups):
            weights[agent, k] = offsets[k]
            if offsets[k] > -np.inf:
                distances[agent, k] = distance_between(metric, order, ranks, centers[k], x)
                weights[agent, k] -= decays[k] * distances[agent, k]
                largest = max(largest, weights[agent, k])
        total = 0.0
        for k in range(n_groups):
            weights[agent, k] = math.exp(weights[agent, k] - largest)
            total += weights[agent, k]
        for k in range(n_groups):
            weights[agent, k] /= total


@kernel
def change_of_swap(metric, ranks, a, b, place):
    """Return how much farther a ranking is from a center whose items a, b at a place and the next swap."""
    if metric == KENDALL:
        return 1 if ranks[a] < ranks[b] else -1
    after = gap_cost(metric, ranks[a] - place - 1) + gap_cost(metric, ranks[b] - place)
    return after - gap_cost(metric, ranks[a] - place) - gap_cost(metric, ranks[b] - place - 1)


@kernel
def swap_neighbors(rng, metric, members, free, bound, offsets, weights, centers, decays, prior):
    """Propose to swap neighbors in centers, with the groups of ``free`` agents summed out, not of ``bound``.

    Given who is in a group its center hardly moves, and given the center nobody changes groups: so both are
    changed together (Metropolis). Each group that takes part gets as many proposals as there are neighbors.
    Returns how many were accepted.
    """
    rankings, ranking_of, labels = members
    n, n_groups = rankings.shape[1], offsets.size
    order, made = np.empty(n, np.int64), 0
    most = 2 * n  # no swap of neighbors changes a distance by more
    times = np.empty(2 * most + 1)
    for k in range(n_groups):
        if offsets[k] == -np.inf:
            continue
        for item in range(n):
            order[centers[k, item]] = item
        for change in range(-most, most + 1):
            times[change + most] = math.exp(-decays[k] * change)
        for _ in range(n - 1):
            place = np.int64(rng.random() * (n - 1))
            a, b = order[place], order[place + 1]
            log_ratio, ratio = 0.0, 1.0
            if prior.center_decay > 0.0:
                log_ratio = -prior.center_decay * change_of_swap(metric, prior.center, a, b, place)
            for agent in bound:
                if labels[agent] == k:
                    change = change_of_swap(metric, rankings[ranking_of[agent]], a, b, place)
                    log_ratio -= decays[k] * change
            for agent in free:
                change = change_of_swap(metric, rankings[ranking_of[agent]], a, b, place)
                ratio *= 1.0 + weights[agent, k] * (times[change + most] - 1.0)
                if ratio < 1e-200 or ratio > 1e200:
                    log_ratio += math.log(ratio)
                    ratio = 1.0
            if log_ratio + math.log(ratio) < -rng.standard_exponential():
                continue
            made += 1
            order[place], order[place + 1] = b, a
            centers[k, a], centers[k, b] = place + 1, place
            for agent in free:
                change = change_of_swap(metric, rankings[ranking_of[agent]], a, b, place)
                grown = 1.0 + weights[agent, k] * (times[change + most] - 1.0)
                weights[agent, k] *= times[change + most]
                for other in range(n_groups):
                    weights[agent, other] /= grown
    return made


@kernel
def choose(key, free, weights, labels, first, last):
    """Draw the groups of free agents from ``first`` on."""
    stream = new_stream()
    for agent in range(first, last):
        if not free[agent]:
            continue
        total = 0.0
        for k in range(weights.shape[1]):
            total += weights[agent, k]
        open_stream(stream, key[0], key[1], 0, agent)
        target = uniform(stream) * total
        last_possible = 0
        for k in range(weights.shape[1]):
            if weights[agent, k] > 0.0:
                last_possible = k
                target -= weights[agent, k]
                if target < 0.0:
                    break
        labels[agent] = last_possible


@kernel
def visit(
    rng,
    metric,
    table,
    members,
    visits,
    fresh,
    fresh_decays,
    joining,
    opening,
    sizes,
    centers,
    decays,
    n_groups,
):
    """Visit agents one after another; returns the number of groups and of those who changed theirs.

    ``centers`` and ``decays`` have room for a group more than there will ever be; a group that empties is
    replaced by the last.
    """
    rankings, ranking_of, labels = members
    n, moved = rankings.shape[1], 0
    order, x = np.empty(n, np.int64), np.empty(n, np.int64)
    log_norms, scores = np.empty(decays.size), np.empty(decays.size)
    for k in range(n_groups):
        log_norms[k] = table_value(table, LOG_Z, decays[k])
    for turn in range(visits.size):
        agent = visits[turn]
        old = labels[agent]
        sizes[old] -= 1
        alone = sizes[old] == 0
        others = n_groups - alone
        if alone:  # the agent's own group stands for a new one, and is the last
            last = n_groups - 1
            if old != last:
                for other in range(labels.size):
                    if labels[other] == last:
                        labels[other] = old
                sizes[old] = sizes[last]
                decays[old], decays[last] = decays[last], decays[old]
                log_norms[old], log_norms[last] = log_norms[last], log_norms[old]
                for item in range(n):
                    centers[old, item], centers[last, item] = centers[last, item], centers[old, item]
            labels[agent] = last
        else:
            for item in range(n):
                centers[others, item] = fresh[turn, item]
            decays[others] = fresh_decays[turn]
            log_norms[others] = table_value(table, LOG_Z, decays[others])
        before = labels[agent]
        ranks = rankings[ranking_of[agent]]
        for k in range(others + 1):
            scores[k] = joining[sizes[k]] if k < others else opening[others]
            if scores[k] > -np.inf:
                scores[k] -= decays[k] * distance_of(metric, ranks, centers[k], order, x) + log_norms[k]
        new = categorical_log(rng, scores, others + 1)
        if new == others:
            sizes[new] = 0
        sizes[new] += 1
        labels[agent] = new
        n_groups = others + (new == others)
        moved += new != before
    return n_groups, moved
