"""AMP written down directly: a dense relation matrix and a list that is shifted at every insertion, O(m²)."""

from __future__ import annotations

import numba
import numpy as np

from permix.kernels.streams import new_stream, open_stream, uniform


@numba.njit(nogil=True)
def amp_dense(stream, better, center, phi, order):
    """Fill ``order`` by Algorithm 1 of Lu & Boutilier; return ln of equation 15.

    ``better[a, b]`` says that the agent's closed preferences put item a above item b.
    """
    log_q = 0.0
    for i in range(center.size):
        item = center[i]
        low, high = 0, i
        for place in range(i):
            other = order[place]
            if better[other, item]:
                low = place + 1
            if better[item, other] and place < high:
                high = place
        total = 0.0
        weight = 1.0
        for _ in range(low, high + 1):
            total += weight
            weight *= phi
        remaining = uniform(stream) * total
        place = high
        weight = 1.0
        while place > low and remaining >= weight:
            remaining -= weight
            weight *= phi
            place -= 1
        log_q += np.log(weight / total)
        for later in range(i, place, -1):
            order[later] = order[later - 1]
        order[place] = item
    return log_q


@numba.njit(nogil=True, parallel=True)
def amp_dense_many(key, better, agents, centers, clusters, phis, orders, log_qs):
    """Draw for every job: its agent's matrix is ``better[agents[job]]``."""
    for job in numba.prange(clusters.size):
        stream = new_stream()
        open_stream(stream, key[0], key[1], 0, job)
        for s in range(orders.shape[1]):
            k = clusters[job]
            log_qs[job, s] = amp_dense(stream, better[agents[job]], centers[k], phis[k], orders[job, s])


@numba.njit(nogil=True)
def relation_of_levels(items, levels, n_items):
    """Dense relation of one agent's levels; nothing is known about other items."""
    better = np.zeros((n_items, n_items), np.bool_)
    for a in range(items.size):
        for b in range(items.size):
            better[items[a], items[b]] = levels[a] < levels[b]
    return better
