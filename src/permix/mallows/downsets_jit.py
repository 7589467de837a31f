# mypy: ignore-errors
"""A mixture of Mallows models given preferences, exactly, where these have few down-sets.

As ``downsets``, with items under their own numbers, so that one lattice serves all components: appending x to
a set S adds, under each component, as many discordant pairs as items outside S stand before x in its center.
"""

from __future__ import annotations

import numpy as np

from permix.distributions.conditioning.amp_plans_jit import relation_bits
from permix.distributions.conditioning.downsets_jit import (
    build_downsets,
    downset_marginals,
    edge_probabilities,
    sums_below,
)
from permix.kernels.bits import popcount
from permix.kernels.jit import kernel
from permix.kernels.random import categorical_log_quantile
from permix.kernels.streams import new_stream, open_stream, uniform


@kernel
def items_before(centers):
    """Return, for every component and item, the items before it in the center as rows of bits."""
    n_components, n = centers.shape
    out = np.zeros((n_components, n, (n + 63) // 64), np.uint64)
    for k in range(n_components):
        for r in range(1, n):
            last, x = centers[k, r - 1], centers[k, r]
            for w in range(out.shape[2]):
                out[k, x, w] = out[k, last, w]
            out[k, x, last >> 6] |= np.uint64(1) << np.uint64(last & 63)
    return out


@kernel
def _lattice(arrays, agent, n, limit):
    """Down-sets of what the agent said, over all items; ``n_sets`` is -1 where there are too many."""
    nothing = np.zeros((1, 1), np.uint64)  # has two, more than the limit of one
    stated = arrays.level_indptr[agent + 1] - arrays.level_indptr[agent]
    stated += 2 * (arrays.pair_indptr[agent + 1] - arrays.pair_indptr[agent])
    if not arrays.rest_below[agent] and n - stated > 62:  # as many free items
        return build_downsets(nothing, nothing, 1, 1)
    items, some_below, some_above = relation_bits(arrays, agent, np.arange(n))
    # Items with as many above them are unrelated, and free ones to anybody: j of them alone have 2^j sets.
    alike = np.zeros(n, np.int64)
    most_alike = np.int64(0)
    for c in range(items.size):
        above_it = 0
        for w in range(some_above.shape[1]):
            above_it += popcount(some_above[c, w])
        alike[above_it] += 1
        most_alike = max(most_alike, alike[above_it])
    unrelated = n - items.size + most_alike
    if unrelated > 62 or (1 << unrelated) > limit:
        return build_downsets(nothing, nothing, 1, 1)
    above = np.zeros((n, (n + 63) // 64), np.uint64)
    below = np.zeros_like(above)
    for c in range(items.size):
        for d in range(items.size):
            bit = np.uint64(1) << np.uint64(d & 63)
            x, y = items[c], items[d]
            if some_below[c, d >> 6] & bit:
                below[x, y >> 6] |= np.uint64(1) << np.uint64(y & 63)
            if some_above[c, d >> 6] & bit:
                above[x, y >> 6] |= np.uint64(1) << np.uint64(y & 63)
    return build_downsets(above, below, n, limit)


@kernel
def _weights(lattice, before, decay):
    """Return ln φ^(discordant pairs added) of every edge; ``before`` are the component's rows of bits."""
    out = np.zeros(lattice.edge_item.size)
    for s in range(lattice.n_sets):
        for e in range(lattice.edge_start[s], lattice.edge_start[s + 1]):
            x = lattice.edge_item[e]
            passed = 0
            for w in range(before.shape[1]):
                passed += popcount(before[x, w] & ~lattice.masks[s, w])
            if passed > 0:  # kept apart because 0 · inf is no number
                out[e] = -decay * passed
    return out


@kernel
def normalizer_rows(first, last, arrays, agents, before, decays, log_totals, limit, out, n_sets, pairs):
    """Set ``out[j, k]`` to ln P(v | component k) for agents first..last-1 with at most ``limit`` down-sets.

    ``before`` is of :func:`items_before`; ``decays`` and ``log_totals`` are λ_k and ln Z_k. ``n_sets[j]`` is
    how many down-sets there are, -1 where too many. ``pairs`` (J, K, m, m), unless empty, is filled with
    P(a before b | v, component k).
    """
    n = before.shape[1]
    for j in range(first, last):
        lattice = _lattice(arrays, agents[j], n, limit)
        n_sets[j] = lattice.n_sets
        if lattice.n_sets < 0:
            continue
        for k in range(decays.size):
            weights = _weights(lattice, before[k], decays[k])
            below = sums_below(lattice, weights)
            out[j, k] = below[0] - log_totals[k]
            if pairs.size:
                found = downset_marginals(lattice, edge_probabilities(lattice, weights, below), n)[1]
                for a in range(n):
                    for b in range(n):
                        pairs[j, k, a, b] = found[a, b]


@kernel
def exact_pair_rows(first, last, arrays, agents, before, decays, shares, limit, asks, means):
    """Compute P(a before b | v); ``shares`` (J, K) is P(component | v), the rest as in ``pair_rows``."""
    pair_start, pair_first, pair_second, out_start = asks
    n = before.shape[1]
    for j in range(first, last):
        lattice = _lattice(arrays, agents[j], n, limit)
        passed = np.zeros(lattice.edge_item.size)
        for k in range(decays.size):
            if shares[j, k] > 0.0:
                weights = _weights(lattice, before[k], decays[k])
                passed += shares[j, k] * edge_probabilities(lattice, weights, sums_below(lattice, weights))
        found = downset_marginals(lattice, passed, n)[1]
        for p in range(pair_start[j, 1] - pair_start[j, 0]):
            a, b = pair_first[pair_start[j, 0] + p], pair_second[pair_start[j, 0] + p]
            means[out_start[j] + p] = found[a, b] if found[a, b] < 1.0 - 1e-12 else 1.0  # rounding


@kernel
def exact_draw_rows(first, last, key, arrays, agents, before, decays, limit, labels, orders):
    """Draw rankings (J, S, m) from P(r | v, component), of the components ``labels`` (J, S)."""
    n = before.shape[1]
    stream = new_stream()
    for j in range(first, last):
        lattice = _lattice(arrays, agents[j], n, limit)
        weights = np.empty((decays.size, lattice.edge_item.size))
        sums = np.empty((decays.size, lattice.n_sets))
        for k in range(decays.size):
            weights[k] = _weights(lattice, before[k], decays[k])
            sums[k] = sums_below(lattice, weights[k])
        open_stream(stream, key[0], key[1], 0, agents[j])
        options = np.empty(n)
        for draw in range(labels.shape[1]):
            k = labels[j, draw]
            s = 0
            for rank in range(n):
                start, stop = lattice.edge_start[s], lattice.edge_start[s + 1]
                for e in range(start, stop):
                    options[e - start] = weights[k, e] + sums[k, lattice.edge_target[e]]
                e = start + categorical_log_quantile(uniform(stream), options, stop - start)
                orders[j, draw, rank] = lattice.edge_item[e]
                s = lattice.edge_target[e]
