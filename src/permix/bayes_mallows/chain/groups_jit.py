# mypy: ignore-errors
"""Centers and decays of groups given their members.

Given the decay λ, a center has probability ∝ exp(-λ Σ distances) times its prior, e^(-θ distance) from a
ranking where there is one. Items are taken out one by one and put back with exactly the probability of each
place given the order of the others (Gibbs), which costs as much as there are items. Under Hamming's distance
that moves all items in between, so pairs of items change places as well (Metropolis). Cayley's and Ulam's
distance have no short cut: members are compared with each proposal, of two items that change places, and of
an item that leaps to a place near or far while others shift (both symmetric).
"""

from __future__ import annotations

import numpy as np

from permix.bayes_mallows.chain.decays_jit import slice_decay
from permix.bayes_mallows.chain.places_jit import (
    draw_place,
    order_of,
    put,
    swap,
    swap_cost,
    total_cost,
    walk,
)
from permix.bayes_mallows.chain.statistics_jit import distance_of, has_costs, sum_of_distances
from permix.distributions.distances.table_jit import LOG_Z, table_value
from permix.kernels.distances import KENDALL
from permix.kernels.jit import kernel

# Draws of the decay for each round of the center: they cost next to nothing.
DECAYS = 3


@kernel
def move_by_costs(rng, pairwise, costs, scale, prior_costs, prior_scale, order, ranks, weights):
    """Put each item back where it may be, and let as many pairs change places; returns what changed."""
    n, changed = order.size, 0
    for item in range(n):
        at = ranks[item]
        for place in range(n):
            weights[place] = 0.0
        walk(order, at, 0, n - 1, pairwise, costs, scale, weights)
        if prior_scale > 0.0:
            walk(order, at, 0, n - 1, pairwise, prior_costs, prior_scale, weights)
        new = draw_place(rng.random(), 0, n - 1, weights)
        if new != at:
            put(order, ranks, at, new)
            changed += 1
    if pairwise:  # neighbors that should change places do so above
        return changed
    for _ in range(n):
        a, b = np.int64(rng.random() * n), np.int64(rng.random() * n)
        if a != b:
            cost = scale * swap_cost(order, a, b, pairwise, costs)
            if prior_scale > 0.0:
                cost += prior_scale * swap_cost(order, a, b, pairwise, prior_costs)
            if rng.standard_exponential() > cost:
                swap(order, ranks, a, b)
                changed += 1
    return changed


@kernel
def leap_or_swap(rng, order, ranks):
    """Let two items change places, or one leap and others shift, evenly."""
    n = order.size
    at, new = np.int64(rng.random() * n), np.int64(rng.random() * n)
    if rng.random() < 0.5:
        swap(order, ranks, at, new)
    else:
        if rng.random() < 0.5:  # near; what would lead out of the ranking is refused
            new = at + (1 if rng.random() < 0.5 else -1)
            if new < 0 or new >= n:
                new = at
        put(order, ranks, at, new)


@kernel
def move_by_members(rng, metric, members, k, decay, total, prior, order, ranks, scratch):
    """Propose so many changes as there are items; returns how many were made, and the sum of distances."""
    rankings, ranking_of, labels = members
    n, changed = order.size, 0
    before = scratch[2]
    from_prior = distance_of(metric, ranks, prior.center, scratch[0], scratch[1])
    for _ in range(n):
        for item in range(n):
            before[item] = ranks[item]
        leap_or_swap(rng, order, ranks)
        after = sum_of_distances(metric, rankings, ranking_of, labels, k, ranks, scratch[0], scratch[1])
        prior_after = distance_of(metric, ranks, prior.center, scratch[0], scratch[1])
        cost = decay * (after - total) + prior.center_decay * (prior_after - from_prior)
        if rng.standard_exponential() > cost:
            changed += after != total or prior_after != from_prior
            total, from_prior = after, prior_after
        else:
            for item in range(n):
                ranks[item] = before[item]
                order[ranks[item]] = item
    return changed, total


@kernel
def update_groups(
    rng, metric, table, prior, members, sizes, costs, centers, decays, totals, log_norms, n_groups, rounds
):
    """Move centers and decays so many times; ``totals`` are sums of distances, ``log_norms`` are ln Z.

    With no rounds, only these are brought up to date. Returns what changed.
    """
    rankings, ranking_of, labels = members
    n, changed, pairwise = centers.shape[1], 0, metric == KENDALL
    order, weights, scratch = np.empty(n, np.int64), np.empty(n), np.empty((3, n), np.int64)
    for k in range(n_groups):
        ranks = centers[k]
        order_of(ranks, order)
        if has_costs(metric):
            totals[k] = total_cost(order, pairwise, costs[k])
        else:
            totals[k] = sum_of_distances(
                metric, rankings, ranking_of, labels, k, ranks, scratch[0], scratch[1]
            )
        for _ in range(rounds):
            if has_costs(metric):
                changed += move_by_costs(
                    rng,
                    pairwise,
                    costs[k],
                    decays[k],
                    prior.costs,
                    prior.center_decay,
                    order,
                    ranks,
                    weights,
                )
                totals[k] = total_cost(order, pairwise, costs[k])
            else:
                made, totals[k] = move_by_members(
                    rng, metric, members, k, decays[k], totals[k], prior, order, ranks, scratch
                )
                changed += made
            for _ in range(DECAYS):
                decays[k] = slice_decay(rng, decays[k], totals[k], sizes[k], prior.shape, prior.rate, table)
        log_norms[k] = table_value(table, LOG_Z, decays[k])
    return changed
