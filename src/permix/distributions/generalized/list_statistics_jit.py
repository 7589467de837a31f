# mypy: ignore-errors
"""What a set of top lists says about the center and the decays of one generalized Mallows model.

The skips of all lists at stage j, given a center, add up to S_j = Σ R_j[i, k] over pairs with k before i in
the center, where R_j[i, k] counts the lists that have i at rank j and k not before it (Meilă & Chen 2010,
equations 5 and 6). R_j[i, k] is the number of lists with i at rank j, the same for all k, less those that
have k before it. The first is kept for the items that some list names, the second for the triples that occur:
nothing grows with the number of items that no list names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.kernels.jit import kernel


class ListStatistics(NamedTuple):
    """Weighted counts over lists. Items are numbered 0..m-1 among the m that some list names."""

    n_items: int
    items: np.ndarray  # (m,): what these items are
    lists: np.ndarray  # (stages,): weight N_j of lists that reach stage j
    totals: np.ndarray  # (stages, m): weight of lists with item i at rank j
    stage: np.ndarray  # (triples,)
    item: np.ndarray  # at rank `stage` ...
    earlier: np.ndarray  # ... with this item before it, ...
    weight: np.ndarray  # ... in lists of this weight


@kernel
def skip_totals(stats, ranks, out):
    """Set ``out[j]`` to the total S_j of skips; ``ranks`` are those of the named items in the center."""
    for j in range(out.size):
        total = 0.0
        for i in range(ranks.size):
            total += stats.totals[j, i] * ranks[i]
        out[j] = total
    for p in range(stats.weight.size):
        if ranks[stats.earlier[p]] < ranks[stats.item[p]]:
            out[stats.stage[p]] -= stats.weight[p]


@kernel
def pair_costs(stats, theta, costs):
    """Set ``costs[i, k]`` to Σ_j θ_j R_j[i, k], what a center pays that puts k before i; 0 on the diagonal.

    The column after the last stands for any item that no list names. Returned ``costs`` are the weights of a
    Kemeny problem: the center that minimizes Σ_j θ_j S_j is its best ordering.
    """
    m = stats.items.size
    for i in range(m):
        total = 0.0
        for j in range(theta.size):
            total += theta[j] * stats.totals[j, i]
        costs[i, :] = total
        costs[i, i] = 0.0
    for p in range(stats.weight.size):
        costs[stats.item[p], stats.earlier[p]] -= theta[stats.stage[p]] * stats.weight[p]
    for i in range(m):
        for k in range(m):
            costs[i, k] = max(costs[i, k], 0.0)  # a crumb of rounding may be left where nothing is


def dense_counts(stats: ListStatistics) -> np.ndarray:
    """Return R_j[i, k] at [i, k, j], with 0 on the diagonal."""
    m = len(stats.items)
    out = np.where(np.eye(m, dtype=np.bool_)[:, :, None], 0.0, stats.totals.T[:, None, :])
    out[stats.item, stats.earlier, stats.stage] -= stats.weight
    return out
