# mypy: ignore-errors
"""What centers depend on: how often the members of a group put a before b, or an item at a rank.

A ranking of several agents is one row, so agents are taken in the order of their rankings.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.distances import CAYLEY, FOOTRULE, HAMMING, KENDALL, SPEARMAN, ULAM, distance_between
from permix.kernels.jit import kernel

# Agents whose ranks, item by item, stay in the fastest memory: processors compare several in one step.
BLOCK = 256


@kernel
def has_costs(metric):
    """Whether a center is judged by a matrix, so that the members need not be looked at."""
    return metric not in (CAYLEY, ULAM)


@kernel
def gap_cost(metric, gap):
    """Return what an item costs that is so many places away."""
    if metric == FOOTRULE:
        return abs(gap)
    if metric == SPEARMAN:
        return gap * gap
    return np.int64(gap != 0)


@kernel
def renumber(labels, in_turn, n_groups, first_of):
    """Number groups by first appearance; ``first_of[new]`` is what one was. Returns how many there are."""
    new_of = np.full(n_groups, -1, np.int64)
    found = 0
    for turn in range(labels.size):
        agent = in_turn[turn]
        label = labels[agent]
        if new_of[label] < 0:
            new_of[label] = found
            first_of[found] = label
            found += 1
        labels[agent] = new_of[label]
    return found


@kernel
def add_ranking(metric, ranks, times, order, counts):
    """Count a ranking so many times."""
    n = ranks.size
    if metric == KENDALL:
        for item in range(n):
            order[ranks[item]] = item
        for place in range(n):
            item = order[place]
            for above in range(place):
                counts[item, order[above]] += times
    else:
        for item in range(n):
            counts[item, ranks[item]] += times


@kernel
def finish_costs(metric, counts, costs):
    """Turn counts into costs: of a pair put one way, or of an item at each place."""
    n = counts.shape[0]
    for item in range(n):
        if metric in (KENDALL, HAMMING):
            total = 0.0
            if metric == HAMMING:
                for rank in range(n):
                    total += counts[item, rank]
            for other in range(n):
                costs[item, other] = counts[item, other] if metric == KENDALL else total - counts[item, other]
            continue
        for place in range(n):
            total = 0.0
            for rank in range(n):
                total += counts[item, rank] * gap_cost(metric, place - rank)
            costs[item, place] = total


@kernel
def count_pairs_of(ranks, size, counts):
    """Count who puts what above what: ``ranks`` are of so many agents, item by item."""
    n = ranks.shape[0]
    for item in range(n):
        for other in range(item):
            above, below, hits = ranks[other], ranks[item], np.int32(0)
            for at in range(size):
                hits += np.int32(above[at] < below[at])
            counts[item, other] += hits
            counts[other, item] += size - hits


@kernel
def gather(metric, rankings, ranking_of, labels, n_groups, sizes, counts, costs):
    """Set sizes and costs of groups from the labels; ``counts`` (n, n) is scratch for each group in turn."""
    n = rankings.shape[1]
    order, ranks = np.empty(n, np.int64), np.empty((n, BLOCK if metric == KENDALL else 0), np.int32)
    for k in range(n_groups):
        sizes[k] = 0
    for agent in range(labels.size):
        sizes[labels[agent]] += 1
    if not has_costs(metric):
        return
    for k in range(n_groups):
        for item in range(n):
            for other in range(n):
                counts[item, other] = 0.0
        size = 0
        for agent in range(labels.size):
            if labels[agent] != k:
                continue
            row = ranking_of[agent]
            if metric != KENDALL:
                add_ranking(metric, rankings[row], 1, order, counts)
                continue
            for item in range(n):
                ranks[item, size] = rankings[row, item]
            size += 1
            if size == BLOCK:
                count_pairs_of(ranks, size, counts)
                size = 0
        if size > 0:
            count_pairs_of(ranks, size, counts)
        finish_costs(metric, counts, costs[k])


@kernel
def cost_of_one(metric, ranks, counts, costs):
    """Write the costs of a single ranking."""
    n = ranks.size
    order = np.empty(n, np.int64)
    for item in range(n):
        for other in range(n):
            counts[item, other] = 0.0
    add_ranking(metric, ranks, 1, order, counts)
    finish_costs(metric, counts, costs)


@kernel
def distance_of(metric, ranks, center, order, x):
    """Return the distance of two rank vectors; ``order`` and ``x`` are scratch."""
    if metric == KENDALL or not has_costs(metric):
        for item in range(ranks.size):
            order[ranks[item]] = item
    return distance_between(metric, order, ranks, center, x)


@kernel
def sum_of_distances(metric, rankings, ranking_of, labels, k, center, order, x):
    """Return how far all members of a group are from a center, together."""
    total, times = 0, 0
    for agent in range(labels.size):
        times += labels[agent] == k
        following = agent + 1
        if times and (following == labels.size or ranking_of[following] != ranking_of[agent]):
            total += times * distance_of(metric, rankings[ranking_of[agent]], center, order, x)
            times = 0
    return float(total)
