# mypy: ignore-errors
"""One item of a ranking taken out and put elsewhere, by what each place costs.

A ranking r costs, in one of two forms,

    Σ over a above b of costs[a, b]      (``pairwise``: Kendall's distance from one ranking or from many),
    Σ over items of costs[item, place]   (footrule, Spearman, Hamming).

When an item passes a neighbor, the difference is one entry, or four, of the costs. So all places of an item
are weighed in one walk. Cayley's and Ulam's distance have no such form.
"""

from __future__ import annotations

import math

import numpy as np

from permix.kernels.jit import kernel

# What is this much less probable than the best is never drawn.
NEGLIGIBLE = 40.0


@kernel
def walk(order, at, first, last, pairwise, costs, scale, weights):
    """Add to ``weights[place]`` what the item at ``at`` would cost there, less what it costs at ``first``.

    Places run from ``first`` to ``last``, the other items staying in order; costs count ``scale`` times.
    """
    item = order[at]
    total = 0.0
    for place in range(first, last):
        # The item goes from this place to the next, and the one there comes here.
        other = order[place] if place < at else order[place + 1]
        if pairwise:
            total += costs[other, item] - costs[item, other]
        else:
            total += costs[item, place + 1] - costs[item, place]
            total += costs[other, place] - costs[other, place + 1]
        weights[place + 1] += scale * total


@kernel
def draw_place(u, first, last, weights):
    """Return a place with probability ∝ exp(-weights[place]); ``weights`` is used up."""
    least = np.inf
    for place in range(first, last + 1):
        least = min(least, weights[place])
    total = 0.0
    for place in range(first, last + 1):
        gap = weights[place] - least
        if gap < NEGLIGIBLE:
            total += math.exp(-gap)
        weights[place] = total
    target = u * total
    for place in range(first, last):
        if weights[place] > target:
            return place
    return last


@kernel
def put(order, ranks, at, new):
    """Put the item at ``at`` to ``new``; those between move by one."""
    item = order[at]
    step = -1 if new < at else 1
    for place in range(at, new, step):
        order[place] = order[place + step]
        ranks[order[place]] = place
    order[new] = item
    ranks[item] = new


@kernel
def swap_cost(order, a, b, pairwise, costs):
    """Return what it costs to let the items at places a < b change places."""
    x, y = order[a], order[b]
    if not pairwise:
        return costs[x, b] + costs[y, a] - costs[x, a] - costs[y, b]
    total = costs[y, x] - costs[x, y]
    for place in range(a + 1, b):
        z = order[place]
        total += costs[z, x] - costs[x, z] + costs[y, z] - costs[z, y]
    return total


@kernel
def swap(order, ranks, a, b):
    """Let the items at two places change places."""
    order[a], order[b] = order[b], order[a]
    ranks[order[a]] = a
    ranks[order[b]] = b


@kernel
def total_cost(order, pairwise, costs):
    """Return the cost of a ranking."""
    total = 0.0
    for place in range(order.size):
        if pairwise:
            for after in range(place + 1, order.size):
                total += costs[order[place], order[after]]
        else:
            total += costs[order[place], place]
    return total


@kernel
def order_of(ranks, order):
    """Write the ordering of a rank vector."""
    for item in range(ranks.size):
        order[ranks[item]] = item
