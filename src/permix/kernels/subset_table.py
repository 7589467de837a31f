"""Rank models with weights exp(tilt_i score_r), item i at rank r: exact sums and draws over all t! orderings.

The sum over orderings is a permanent. f(S) = Σ_{i ∈ S} f(S∖i) exp(tilt_i score_|S|), the total weight
of placing the items S on the best |S| ranks, costs O(2^t t) and serves draws as well.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.bits import popcount
from permix.kernels.jit import kernel


@kernel
def log_subset_table(tilts, scores):
    """Return ln f(S) for all subsets S of the items, S as a bit mask."""
    t = tilts.size
    table = np.empty(1 << t)
    table[0] = 0.0
    for subset in range(1, 1 << t):
        score = scores[popcount(np.uint64(subset)) - 1]
        largest = -np.inf
        for i in range(t):
            if subset >> i & 1:
                largest = max(largest, table[subset ^ (1 << i)] + tilts[i] * score)
        total = 0.0
        for i in range(t):
            if subset >> i & 1:
                total += np.exp(table[subset ^ (1 << i)] + tilts[i] * score - largest)
        table[subset] = largest + np.log(total)
    return table


@kernel
def sample_from_subset_table(rng, table, tilts, scores, out):
    """Fill the rows of ``out`` with orderings (item at each rank, best first), exactly."""
    t = tilts.size
    for row in range(out.shape[0]):
        subset = (1 << t) - 1
        for rank in range(t - 1, -1, -1):
            remaining = rng.random()
            chosen = -1
            for i in range(t):
                if subset >> i & 1:
                    chosen = i
                    remaining -= np.exp(table[subset ^ (1 << i)] + tilts[i] * scores[rank] - table[subset])
                    if remaining < 0.0:
                        break
            out[row, rank] = chosen
            subset ^= 1 << chosen


@kernel
def metropolis_swaps(rng, tilts, scores, n_swaps, out):
    """Move every row of ``out`` by ``n_swaps`` Metropolis proposals that exchange two items.

    The chain leaves the model invariant; how near the rows come to it depends on ``n_swaps``.
    """
    t = tilts.size
    for row in range(out.shape[0]):
        for _ in range(n_swaps):
            a = np.int64(rng.random() * t)
            b = np.int64(rng.random() * t)
            gain = (tilts[out[row, a]] - tilts[out[row, b]]) * (scores[b] - scores[a])
            if gain >= 0.0 or rng.random() < np.exp(gain):
                held = out[row, a]
                out[row, a] = out[row, b]
                out[row, b] = held
