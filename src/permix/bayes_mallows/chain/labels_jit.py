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

from permix.bayes_mallows.chain.blocks_jit import BLOCK, block_distances, ranks_by_item
from permix.bayes_mallows.chain.statistics_jit import distance_of, gap_cost
from permix.distributions.distances.table_jit import LOG_Z, table_value
from permix.kernels.distances import KENDALL
from permix.kernels.jit import kernel
from permix.kernels.random import categorical_log
from permix.kernels.streams import new_stream, open_stream, uniform

# So many products of a block are left, each of 16 factors, which do not overflow below this decay.
LOGARITHMS, MODERATE = 16, 40.0


@kernel
def weigh(metric, members, centers, decays, offsets, free, weights, distances, first, last):
    """Write P(group | ranking) of each agent from ``first`` on, (groups, agents), and distances.

    ``offsets`` are ln (share / Z) of groups, -inf for those that take no part; those who are not ``free``
    are in none.
    """
    n_groups, n = offsets.size, centers.shape[1]
    order, x, far = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(BLOCK, np.int32)
    ranks, largest, total = np.empty((n, BLOCK), np.int32), np.empty(BLOCK), np.empty(BLOCK)
    for begin in range(first, last, BLOCK):
        end = min(begin + BLOCK, last)
        size = end - begin
        ranks_by_item(members, begin, end, ranks)
        for at in range(size):
            largest[at], total[at] = -np.inf, 0.0
        for k in range(n_groups):
            block = weights[k, begin:end]
            if offsets[k] == -np.inf:
                continue
            block_distances(metric, members, begin, end, ranks, centers[k], order, x, far)
            for at in range(size):
                distances[k, begin + at] = far[at]
                block[at] = offsets[k] - decays[k] * far[at]
                largest[at] = max(largest[at], block[at])
        for k in range(n_groups):
            block = weights[k, begin:end]
            for at in range(size):
                block[at] = math.exp(block[at] - largest[at]) if offsets[k] > -np.inf else 0.0
                total[at] += block[at]
        for k in range(n_groups):
            block = weights[k, begin:end]
            for at in range(size):
                block[at] = block[at] / total[at] if free[begin + at] else 0.0


@kernel
def change_of_swap(metric, ranks, a, b, place):
    """Return how much farther a ranking is from a center whose items a, b at a place and the next swap."""
    if metric == KENDALL:
        return 1 if ranks[a] < ranks[b] else -1
    after = gap_cost(metric, ranks[a] - place - 1) + gap_cost(metric, ranks[b] - place)
    return after - gap_cost(metric, ranks[a] - place) - gap_cost(metric, ranks[b] - place - 1)


@kernel
def log_of_product(chances, above, below, up, down, factors):
    """Return the sum of ln (1 + chance x), where x is ``up`` for agents with ``above`` above ``below``.

    Halves of ``factors`` (BLOCK) are multiplied with each other, so that few logarithms are left.
    """
    total = 0.0
    for begin in range(0, chances.size, BLOCK):
        size = min(BLOCK, chances.size - begin)
        chance, first, second = chances[begin:], above[begin:], below[begin:]
        for at in range(size):
            factors[at] = 1.0 + chance[at] * (up if first[at] < second[at] else down)
        for at in range(size, BLOCK):
            factors[at] = 1.0
        left = BLOCK
        while left > LOGARITHMS:
            left //= 2
            for at in range(left):
                factors[at] *= factors[at + left]
        for at in range(LOGARITHMS):
            total += math.log(factors[at])
    return total


@kernel
def swap_neighbors(rng, metric, members, bound, offsets, weights, centers, decays, prior):
    """Propose to swap neighbors in centers, with groups of agents summed out who are not ``bound``.

    These have weights. Given who is in a group its center hardly moves, and given the center nobody changes
    groups: so both are changed together (Metropolis). Each group that takes part gets as many proposals as
    there are neighbors. Returns how many were accepted.
    """
    rankings, ranking_of, labels = members
    n, n_groups, n_agents = rankings.shape[1], offsets.size, labels.size
    order, made = np.empty(n, np.int64), 0
    ranks = np.empty((n, n_agents), np.int16)  # more items than this type has room for have no costs either
    ranks_by_item(members, 0, n_agents, ranks)
    most = 2 * n  # no swap of neighbors changes a distance by more
    growth, factors = np.empty(2 * most + 1), np.empty(BLOCK)
    for k in range(n_groups):
        if offsets[k] == -np.inf:
            continue
        chances = weights[k]
        for item in range(n):
            order[centers[k, item]] = item
        for change in range(-most, most + 1):
            growth[change + most] = math.expm1(-decays[k] * change)
        for _ in range(n - 1):
            place = np.int64(rng.random() * (n - 1))
            a, b = order[place], order[place + 1]
            log_ratio = 0.0
            if prior.center_decay > 0.0:
                log_ratio = -prior.center_decay * change_of_swap(metric, prior.center, a, b, place)
            for agent in bound:
                if labels[agent] == k:
                    change = change_of_swap(metric, rankings[ranking_of[agent]], a, b, place)
                    log_ratio -= decays[k] * change
            if metric == KENDALL and decays[k] < MODERATE:
                up, down = growth[most + 1], growth[most - 1]
                log_ratio += log_of_product(chances, ranks[a], ranks[b], up, down, factors)
            else:
                for agent in range(n_agents):
                    if chances[agent] > 0.0:
                        change = change_of_swap(metric, rankings[ranking_of[agent]], a, b, place)
                        chance = min(chances[agent], 1.0)  # rounding may make it more
                        log_ratio += math.log1p(chance * growth[change + most])
            if log_ratio < -rng.standard_exponential():
                continue
            made += 1
            order[place], order[place + 1] = b, a
            centers[k, a], centers[k, b] = place + 1, place
            for agent in range(n_agents):
                if chances[agent] == 0.0:
                    continue
                change = change_of_swap(metric, rankings[ranking_of[agent]], a, b, place)
                grown = 1.0 + min(chances[agent], 1.0) * growth[change + most]
                chances[agent] *= 1.0 + growth[change + most]
                for other in range(n_groups):
                    weights[other, agent] /= grown
    return made


@kernel
def choose(key, free, weights, labels, first, last):
    """Draw the groups of free agents from ``first`` on."""
    stream = new_stream()
    for agent in range(first, last):
        if not free[agent]:
            continue
        total = 0.0
        for k in range(weights.shape[0]):
            total += weights[k, agent]
        open_stream(stream, key[0], key[1], 0, agent)
        target = uniform(stream) * total
        last_possible = 0
        for k in range(weights.shape[0]):
            if weights[k, agent] > 0.0:
                last_possible = k
                target -= weights[k, agent]
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
