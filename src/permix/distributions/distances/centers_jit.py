# mypy: ignore-errors
"""What neighbors of a center lose or gain: exchanges under Cayley's distance, moves under Ulam's."""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel


@kernel
def exchange_changes(ranks, weights, center, changes):
    """Set ``changes[p, q]`` to how Σ weight × Cayley distance changes if items at p < q do; else inf.

    An exchange splits a cycle that holds both places, and the distance falls by one, or it joins two cycles.
    """
    n = center.size
    x, cycle = np.empty(n, np.int64), np.empty(n, np.int64)
    for p in range(n):
        for q in range(n):
            changes[p, q] = 0.0 if p < q else np.inf
    for u in range(weights.size):
        weight = weights[u]
        if weight <= 0.0:
            continue
        for p in range(n):
            x[p] = ranks[u, center[p]]
            cycle[p] = -1
        for p in range(n):
            place = p
            while cycle[place] < 0:
                cycle[place] = p
                place = x[place]
        for p in range(n):
            for q in range(p + 1, n):
                changes[p, q] += -weight if cycle[p] == cycle[q] else weight


@kernel
def move_totals(ranks, weights, center, totals):
    """Set ``totals[p, q]`` to Σ weight × Ulam distance if the item at p of the center stood at q instead.

    A longest increasing sequence has the item that moves or not: with it, what can precede it and what can
    follow it are found once for all places. Up to 64 items: ``ends`` are the smallest last values of
    increasing sequences of each length, a bit for each value; a new one removes the next larger one.
    """
    n = center.size
    x, y, before = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    one, none = np.uint64(1), np.uint64(0)
    for p in range(n):
        for q in range(n):
            totals[p, q] = 0.0
    for u in range(weights.size):
        weight = weights[u]
        if weight <= 0.0:
            continue
        for p in range(n):
            x[p] = ranks[u, center[p]]
        for p in range(n):
            value, without, length, ends, lower = x[p], 0, 0, none, none
            for q in range(n - 1):
                y[q] = x[q] if q < p else x[q + 1]
                before[q] = length
                bit = one << np.uint64(y[q])
                larger = ends & ~(bit | (bit - one))
                without += larger == none
                ends = (ends & ~(larger & (~larger + one))) | bit
                if y[q] < value:
                    larger = lower & ~(bit | (bit - one))
                    length += larger == none
                    lower = (lower & ~(larger & (~larger + one))) | bit
            totals[p, n - 1] += weight * (n - max(without, length + 1))
            length, ends = 0, none
            for q in range(n - 2, -1, -1):
                if y[q] > value:  # read backwards, from the largest value
                    bit = one << np.uint64(n - 1 - y[q])
                    larger = ends & ~(bit | (bit - one))
                    length += larger == none
                    ends = (ends & ~(larger & (~larger + one))) | bit
                totals[p, q] += weight * (n - max(without, before[q] + 1 + length))
