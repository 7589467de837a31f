# mypy: ignore-errors
"""Orderings of the data along directions, compiled (Liang et al. 2007, section 4.2)."""

from __future__ import annotations

import math

import numpy as np

from permix.families.contract_jit import add_vector, project
from permix.kernels.jit import inlined, kernel
from permix.moves.permutation_jit import group_members


@kernel
def project_all(stats, data, direction, scales, n_turns, labels, sizes, n_clusters, projections, means):
    """Project data on ``direction``, and write the mean of each cluster; then turn it within each of them.

    Within a cluster the direction is turned ``n_turns`` times towards the cluster's main axis (steps of the
    power method in coordinates measured by ``scales``).
    """
    n = labels.shape[0]
    for k in range(n_clusters):
        means[k] = 0.0
    for i in range(n):
        projections[i] = project(stats, data, i, direction)
        means[labels[i]] += projections[i] / sizes[labels[i]]
    if n_turns == 0:
        return
    order, firsts = np.empty(n, np.int64), np.empty(n_clusters + 1, np.int64)
    group_members(labels, sizes, np.arange(n_clusters), order, firsts)
    turned = np.empty(direction.shape[0])
    for k in range(n_clusters):
        if sizes[k] > 2:
            for _ in range(n_turns):
                turn(stats, data, order, firsts[k], firsts[k + 1], scales, projections, turned)


@inlined
def turn(stats, data, order, first, last, scales, projections, direction):
    """Project a cluster's data on the sum of its vectors weighed by their present, centered projections."""
    mean = 0.0
    for place in range(first, last):
        mean += projections[order[place]] / (last - first)
    for j in range(direction.shape[0]):
        direction[j] = 0.0
    for place in range(first, last):
        i = order[place]
        add_vector(stats, data, i, projections[i] - mean, direction)
    length = 0.0
    for j in range(direction.shape[0]):
        direction[j] *= scales[j] * scales[j]
        length += direction[j] * direction[j]
    if length == 0.0:
        return
    length = math.sqrt(length)
    for j in range(direction.shape[0]):
        direction[j] /= length
    for place in range(first, last):
        projections[order[place]] = project(stats, data, order[place], direction)
