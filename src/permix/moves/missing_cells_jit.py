# mypy: ignore-errors
"""Rows with missing cells that cannot be left out of statistics: their clusters and cells, compiled."""

from __future__ import annotations

import numpy as np

from permix.families.contract_jit import add, fill, remove
from permix.kernels.jit import kernel
from permix.kernels.random import categorical_log_overwrite
from permix.moves.gibbs_jit import conditional, take_out


@kernel
def sweep_gaps(
    rng, joining, opening, stats, data, empty_scores, labels, sizes, scores, order, start, n_clusters
):
    """Draw the cluster of each datum by what was observed of it, then what it lacks given the cluster.

    Arguments and answer are those of :func:`permix.moves.gibbs_jit.gibbs_sweep`; each datum is visited even
    where it stays, since what it lacks is drawn anew.
    """
    n_moved = 0
    for position in range(start, order.shape[0]):
        if n_clusters == sizes.shape[0]:
            return position, n_clusters, n_moved
        i = order[position]
        n_options = conditional(
            joining, opening, stats, data, empty_scores, labels, sizes, n_clusters, i, scores
        )
        chosen = categorical_log_overwrite(rng, scores, n_options)
        if chosen < 0:
            return -1 - i, n_clusters, n_moved
        own = np.int64(labels[i])
        if chosen == own:
            remove(stats, data, i, own)
        else:
            n_moved += 1
            n_clusters, chosen = take_out(stats, data, labels, sizes, i, own, chosen, n_clusters)
            sizes[chosen] += 1
        fill(rng, stats, data, i, chosen)
        add(stats, data, i, chosen)
        labels[i] = chosen
    return order.shape[0], n_clusters, n_moved


@kernel
def refill(rng, stats, data, labels, order):
    """Draw what each datum of ``order`` lacks given the members of its cluster, which stays."""
    for position in range(order.shape[0]):
        i = order[position]
        own = np.int64(labels[i])
        remove(stats, data, i, own)
        fill(rng, stats, data, i, own)
        add(stats, data, i, own)
