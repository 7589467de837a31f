# mypy: ignore-errors
"""Chains of local moves for many agents under the components of a mixture: rankings, pairs, ranges of ranks.

Weighted draws of AMP, resampled, are near the posterior of a component; some sweeps of local moves
(``local_moves``), which leave that posterior as it is, bring them there (resample-move).
"""

from __future__ import annotations

import numpy as np

from permix.distributions.conditioning.local_moves_jit import (
    limits_by_step,
    local_sweep,
    new_scratch,
    new_state,
    set_places,
)
from permix.kernels.jit import kernel
from permix.kernels.streams import fill_uniform, padded


@kernel
def move_rows(first, last, first_row, key, arrays, agents, clusters, starts, models, n_sweeps, orders):
    """Make ``n_sweeps`` sweeps of job first..last-1 and keep where it ends.

    ``first_row`` is the number of the first of these jobs in all work; with ``key`` it names the random
    numbers. ``starts`` (J, m) are insertion places of orderings that agree with the agents; ``models`` are
    centers and their rank vectors, (K, m), and the LocalModels of the components.
    """
    centers, ranks, tables = models
    n = centers.shape[1]
    state, scratch = new_state(n), new_scratch(n)
    uniforms = np.empty(padded(n + 1))
    places = np.empty(n, np.int64)
    for job in range(first, last):
        k = clusters[job]
        for i in range(n):
            places[i] = starts[job, i]
        set_places(state, places)
        if n_sweeps > 0:
            limits = limits_by_step(arrays, agents[job], ranks[k])
            for sweep in range(n_sweeps):
                fill_uniform(key[0], key[1], sweep, first_row + job, uniforms)
                local_sweep(state, tables, k, limits, uniforms, scratch)
        for r in range(n):
            orders[job, r] = centers[k, state.order[r]]


@kernel
def pair_rows(
    first,
    last,
    first_row,
    key,
    arrays,
    agents,
    chains,
    models,
    n_burn_in,
    n_kept,
    asks,
    everything,
    means,
    variances,
    ranges,
):
    """Estimate P(a before b | v) of agents first..last-1 of the work, from chains of sweeps.

    Chains ``chain_start[j]..chain_start[j + 1] - 1`` belong to agent ``agents[j]``, those of one component
    together, each with its share of the component's probability; at least two for each component, whose
    spread gives the variance of the estimate whatever the states of a chain have to do with each other.
    ``doubts`` are the standard errors of ln P(v | component), which make P(component | v) uncertain, and
    ``n_kept`` states count after ``n_burn_in`` sweeps. The other arguments are those of :func:`move_rows`.

    The agent is asked about pairs (a, b) number ``pair_start[j, 0]..pair_start[j, 1] - 1``; the answers begin
    at ``out_start[j]`` of ``means`` and ``variances``. Where ``everything``, all are asked about all pairs
    a < b, in this order: they are quicker to count. ``ranges`` (agents, 2, m), or (0, 0, 0), is filled at
    ``agents`` with 5 % and 95 % ranks, see :func:`rank_range`.
    """
    chain_start, clusters, shares, doubts, starts = chains
    centers, ranks, tables = models
    pair_start, pair_first, pair_second, out_start = asks
    n = centers.shape[1]
    state, scratch = new_state(n), new_scratch(n)
    places = np.empty(n, np.int64)
    rank = np.empty(n, np.int32)
    uniforms = np.empty(padded(n + 1))
    for j in range(first, last):
        begin, out = pair_start[j, 0], out_start[j]
        n_pairs = pair_start[j, 1] - begin
        counts = np.empty(n_pairs, np.int32)
        sums = np.zeros(n_pairs)
        squares = np.zeros(n_pairs)
        # Σ_k (p_k error_k)² (mean_k - mean)², the variance that comes from the p_k, multiplied out.
        of_one, of_mean, of_square = 0.0, np.zeros(n_pairs), np.zeros(n_pairs)
        shown = np.zeros((n, n) if ranges.shape[0] > 0 else (0, 0))
        for p in range(n_pairs):
            means[out + p] = variances[out + p] = 0.0
        n_chains = 0
        for chain in range(chain_start[j], chain_start[j + 1]):
            k = clusters[chain]
            for i in range(n):
                places[i] = starts[chain, i]
            set_places(state, places)
            limits = limits_by_step(arrays, agents[j], ranks[k])
            counts[:] = 0
            for sweep in range(n_burn_in + n_kept):
                fill_uniform(key[0], key[1], sweep, first_row + chain, uniforms)
                local_sweep(state, tables, k, limits, uniforms, scratch)
                if sweep >= n_burn_in:
                    for i in range(n):
                        rank[centers[k, i]] = state.rank[i]
                    if everything:
                        p = 0
                        for a in range(n):
                            mine, later = rank[a], rank[a + 1 :]
                            found = counts[p : p + later.size]
                            for i in range(later.size):
                                found[i] += np.int32(mine < later[i])
                            p += later.size
                    else:
                        for p in range(n_pairs):
                            counts[p] += rank[pair_first[begin + p]] < rank[pair_second[begin + p]]
                    for x in range(shown.shape[0]):
                        shown[x, rank[x]] += shares[chain]
            for p in range(n_pairs):
                share = counts[p] / n_kept
                sums[p] += share
                squares[p] += share * share
            n_chains += 1
            if chain + 1 == chain_start[j + 1] or clusters[chain + 1] != k:
                share = shares[chain] * n_chains  # of the component
                doubt = (share * doubts[chain]) ** 2
                of_one += doubt
                for p in range(n_pairs):
                    mean = sums[p] / n_chains
                    of_mean[p] += doubt * mean
                    of_square[p] += doubt * mean * mean
                    spread = max(squares[p] / n_chains - mean * mean, 0.0)
                    means[out + p] += share * mean
                    variances[out + p] += share * share * spread / max(n_chains - 1, 1)
                    sums[p] = squares[p] = 0.0
                n_chains = 0
        for p in range(n_pairs):
            mean = means[out + p]
            if mean > 1.0 - 1e-12:  # shares add up to one but for rounding
                means[out + p] = mean = 1.0
            variances[out + p] += max(of_square[p] - mean * (2.0 * of_mean[p] - mean * of_one), 0.0)
        if ranges.shape[0] > 0:
            rank_range(shown, ranges[agents[j]])


@kernel
def rank_range(weights, out):
    """From weights of ranks, (m, m), write the ranks 1..m between which items are, less 5 % on either side.

    ``out[0, x]``: better ranks than this have 5 % at most; ``out[1, x]``: worse ones have.
    """
    n = weights.shape[0]
    for x in range(n):
        total = 0.0
        for r in range(n):
            total += weights[x, r]
        passed = 0.0
        out[0, x] = out[1, x] = 0
        for r in range(n):
            passed += weights[x, r]
            if out[0, x] == 0 and passed > 0.05 * total * (1.0 + 1e-9):
                out[0, x] = r + 1
            if out[1, x] == 0 and passed >= 0.95 * total * (1.0 - 1e-9):
                out[1, x] = r + 1


@kernel
def range_rows(first, last, orders, ranges):
    """Fill ``ranges`` (J, 2, m) from draws (J, S, m) of equal weight."""
    n = orders.shape[2]
    for j in range(first, last):
        weights = np.zeros((n, n))
        for s in range(orders.shape[1]):
            for r in range(n):
                weights[orders[j, s, r], r] += 1.0
        rank_range(weights, ranges[j])
