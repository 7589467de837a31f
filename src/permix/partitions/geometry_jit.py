# mypy: ignore-errors
"""Compiled geometry of partitions: canonical labels, losses through contingency counts, similarity.

Every loss here has one form. With a table f, cluster sizes a_k and b_l of two partitions and the
counts c_kl of their overlaps,

    loss = (sum_k f[a_k] + sum_l f[b_l] - 2 sum_kl f[c_kl]) / scale;

f[x] = x log x gives the variation of information, f[x] = x (x - 1) / 2 Binder's loss.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import inlined, kernel


@kernel
def canonicalise(labels, out, n_values):
    """Renumber each row of ``labels`` (values 0 .. n_values - 1) by first appearance."""
    names = np.full(n_values, -1, np.int32)
    for row in range(labels.shape[0]):
        n_clusters = 0
        for i in range(labels.shape[1]):
            value = labels[row, i]
            if names[value] < 0:
                names[value] = n_clusters
                n_clusters += 1
            out[row, i] = names[value]
        for i in range(labels.shape[1]):
            names[labels[row, i]] = -1


@inlined
def group_by_cluster(labels, n_clusters):
    """Observations sorted by cluster: cluster k is ``order[starts[k]:starts[k + 1]]``."""
    starts = np.zeros(n_clusters + 1, np.int64)
    for label in labels:
        starts[label + 1] += 1
    for cluster in range(n_clusters):
        starts[cluster + 1] += starts[cluster]
    order = np.empty(len(labels), np.int32)
    place = starts.copy()
    for i in range(len(labels)):
        order[place[labels[i]]] = i
        place[labels[i]] += 1
    return order, starts


@inlined
def sum_over_overlaps(labels, order, starts, other, n_other, counts, f):
    """Sum of f over all overlaps of a partition (given also grouped) with ``other``.

    ``counts`` is workspace, zero before and after; clusters, and cells of the short table, never exceed n.
    """
    n_clusters = len(starts) - 1
    total = 0.0
    n_cells = n_clusters * n_other
    if n_cells <= len(labels):  # a full table of counts is short: fill it in one pass
        for i in range(len(labels)):
            counts[labels[i] * n_other + other[i]] += 1
        for cell in range(n_cells):
            total += f[counts[cell]]
            counts[cell] = 0
        return total
    for cluster in range(n_clusters):
        members = order[starts[cluster] : starts[cluster + 1]]
        for i in members:
            counts[other[i]] += 1
        for i in members:
            count = counts[other[i]]
            if count > 0:
                total += f[count]
                counts[other[i]] = 0
    return total


@kernel
def losses_to_draws(labels, n_clusters, draws, n_clusters_of_draws, sums, f):
    """Unscaled loss between one partition and each draw; ``sums`` is the sum of f over sizes in each."""
    order, starts = group_by_cluster(labels, n_clusters)
    own = 0.0
    for cluster in range(n_clusters):
        own += f[starts[cluster + 1] - starts[cluster]]
    losses = np.empty(len(draws))
    counts = np.zeros(len(labels) + 1, np.int32)
    for m in range(len(draws)):
        both = sum_over_overlaps(labels, order, starts, draws[m], n_clusters_of_draws[m], counts, f)
        losses[m] = own + sums[m] - 2.0 * both
    return losses


@kernel
def similarity_rows(draws, first, last, tile, out):
    """Add to ``out`` in how many draws observations i (first .. last - 1) and j <= i share a cluster.

    ``draws`` (at most 65,535 of them) has the observations contiguous, so that the innermost loop
    runs over them and vectorizes; a tile of counts stays in the cache while the draws pass by.
    Both triangles are written; ranges of i may run in different threads.
    """
    counts = np.empty((last - first, tile), draws.dtype)
    for start in range(0, last, tile):
        end = min(start + tile, last)
        counts[:] = 0
        for m in range(len(draws)):
            others = draws[m, start:end]
            for i in range(first, last):
                row = counts[i - first]
                label = draws[m, i]
                for j in range(len(others)):
                    row[j] += others[j] == label
        for i in range(first, last):
            for j in range(start, min(end, i + 1)):
                out[i, j] += counts[i - first, j - start]
                if j < i:
                    out[j, i] = out[i, j]


@kernel
def add_agreement(labels, sizes, draw, n_clusters, agreement):
    """Add, for each observation, the fraction of its cluster's other members beside it in ``draw``.

    An observation alone in its cluster counts 1 where the draw leaves it alone too.
    """
    order, starts = group_by_cluster(labels, len(sizes))
    counts = np.zeros(n_clusters, np.int64)
    alone = np.zeros(n_clusters, np.int64)
    for label in draw:
        alone[label] += 1
    for cluster in range(len(sizes)):
        members = order[starts[cluster] : starts[cluster + 1]]
        for i in members:
            counts[draw[i]] += 1
        for i in members:
            if sizes[cluster] == 1:
                agreement[i] += alone[draw[i]] == 1
            else:
                agreement[i] += (counts[draw[i]] - 1) / (sizes[cluster] - 1)
        for i in members:
            counts[draw[i]] = 0
