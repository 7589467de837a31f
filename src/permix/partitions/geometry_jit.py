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

# Loops instead of np.zeros, np.full, copies and slices: each of those is more for a first run to compile.


@kernel
def canonicalise(labels, out, n_values):
    """Renumber each row of ``labels`` (values 0 .. n_values - 1) by first appearance."""
    names = np.empty(n_values, np.int32)
    for value in range(n_values):
        names[value] = -1
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
    starts = np.empty(n_clusters + 2, np.int64)
    for cluster in range(n_clusters + 2):
        starts[cluster] = 0
    for i in range(len(labels)):
        starts[labels[i] + 2] += 1
    for cluster in range(1, n_clusters + 1):
        starts[cluster + 1] += starts[cluster]
    # Filling a cluster takes the entry after its own from its beginning to its end, the next one's beginning.
    order = np.empty(len(labels), np.int32)
    for i in range(len(labels)):
        order[starts[labels[i] + 1]] = i
        starts[labels[i] + 1] += 1
    return order, starts


@inlined
def sum_over_overlaps(labels, n_clusters, order, starts, other, n_other, counts, f):
    """Sum of f over all overlaps of a partition (given also grouped) with ``other``.

    ``counts`` is workspace, zero before and after; clusters, and cells of the short table, never exceed n.
    """
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
        for at in range(starts[cluster], starts[cluster + 1]):
            counts[other[order[at]]] += 1
        for at in range(starts[cluster], starts[cluster + 1]):
            count = counts[other[order[at]]]
            if count > 0:
                total += f[count]
                counts[other[order[at]]] = 0
    return total


@kernel
def losses_to_draws(labels, n_clusters, draws, n_clusters_of_draws, sums, f):
    """Unscaled loss between one partition and each draw; ``sums`` is the sum of f over sizes in each."""
    order, starts = group_by_cluster(labels, n_clusters)
    own = 0.0
    for cluster in range(n_clusters):
        own += f[starts[cluster + 1] - starts[cluster]]
    losses = np.empty(len(draws))
    counts = np.empty(len(labels) + 1, np.int32)
    for cell in range(len(counts)):
        counts[cell] = 0
    for m in range(len(draws)):
        n_other = n_clusters_of_draws[m]
        both = sum_over_overlaps(labels, n_clusters, order, starts, draws[m], n_other, counts, f)
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
    counts = np.empty(n_clusters, np.int64)
    alone = np.empty(n_clusters, np.int64)
    for cluster in range(n_clusters):
        counts[cluster] = 0
        alone[cluster] = 0
    for i in range(len(draw)):
        alone[draw[i]] += 1
    for cluster in range(len(sizes)):
        for at in range(starts[cluster], starts[cluster + 1]):
            counts[draw[order[at]]] += 1
        for at in range(starts[cluster], starts[cluster + 1]):
            i = order[at]
            if sizes[cluster] == 1:
                agreement[i] += alone[draw[i]] == 1
            else:
                agreement[i] += (counts[draw[i]] - 1) / (sizes[cluster] - 1)
        for at in range(starts[cluster], starts[cluster + 1]):
            counts[draw[order[at]]] = 0
