# mypy: ignore-errors
"""Many agents at once: their ranks item by item, so that processors compare several agents in one step."""

from __future__ import annotations

import numpy as np

from permix.bayes_mallows.chain.statistics_jit import BLOCK as BLOCK
from permix.bayes_mallows.chain.statistics_jit import distance_of, has_costs
from permix.kernels.distances import FOOTRULE, KENDALL, SPEARMAN
from permix.kernels.jit import kernel


@kernel
def ranks_by_item(members, first, last, ranks):
    """Write ranks of agents from ``first`` on, (items, agents)."""
    rankings, ranking_of, _ = members
    for agent in range(first, last):
        row = ranking_of[agent]
        for item in range(ranks.shape[0]):
            ranks[item, agent - first] = rankings[row, item]


@kernel
def add_inversions(above, below, size, far):
    """Add 1 for each agent who has two items the other way around than the center."""
    for at in range(size):
        far[at] += above[at] > below[at]


@kernel
def add_gaps(metric, ranks, rank, size, far):
    """Add what it costs that an item is elsewhere than in the center."""
    if metric == FOOTRULE:
        for at in range(size):
            far[at] += abs(ranks[at] - rank)
    elif metric == SPEARMAN:
        for at in range(size):
            far[at] += (ranks[at] - rank) ** 2
    else:
        for at in range(size):
            far[at] += ranks[at] != rank


@kernel
def block_distances(metric, members, first, last, ranks, center, order, x, far):
    """Write how far agents from ``first`` on are from a center; ``ranks`` are theirs, item by item."""
    n, size = center.size, last - first
    if not has_costs(metric):
        rankings, ranking_of, _ = members
        for agent in range(first, last):
            if agent > first and ranking_of[agent] == ranking_of[agent - 1]:
                far[agent - first] = far[agent - first - 1]
            else:
                far[agent - first] = distance_of(metric, rankings[ranking_of[agent]], center, order, x)
        return
    for at in range(size):
        far[at] = 0
    if metric != KENDALL:
        for item in range(n):
            add_gaps(metric, ranks[item], np.int32(center[item]), size, far)
        return
    for item in range(n):
        order[center[item]] = item
    for place in range(n):
        for after in range(place + 1, n):
            add_inversions(ranks[order[place]], ranks[order[after]], size, far)
