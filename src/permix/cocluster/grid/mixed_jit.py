# mypy: ignore-errors
"""Collapsed Gibbs where every cell draws its own row cluster and column cluster, compiled.

Latent Dirichlet co-clustering (section 2 of Wang, Laskey, Domeniconi & Jordan 2011, after Shan & Banerjee
2008): a row has shares of row clusters with a Dirichlet prior, a column shares of column clusters; a filled
cell draws one of each, z1 and z2, and its value from the block (z1, z2). With shares and block parameters
integrated out and all else given,

    p(z1 = k | z2 = j) ∝ (cells of the row in k + a) × p(value | other cells of block (k, j)),

and the same for z2 given z1: the work of a cell is the number of row clusters plus that of column clusters.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.cocluster.cells.block_sums_jit import move_cell
from permix.cocluster.cells.blocks_jit import CountPrior, MomentPrior, log_moments, log_rising
from permix.kernels.jit import implements, kernel

ROWS, COLUMNS = 0, 1


class MixedCells(NamedTuple):
    """Clusters of all cells, and what these add up to."""

    clusters: np.ndarray  # (2, cells) row cluster and column cluster of each cell
    row_counts: np.ndarray  # (rows, row clusters) cells
    column_counts: np.ndarray  # (columns, column clusters) cells
    cells: np.ndarray  # (row clusters, column clusters) of each block
    sums: np.ndarray  # (row clusters, column clusters, slots)
    pseudo_counts: np.ndarray  # (2,) of one row cluster, of one column cluster


def log_cell(stats, n, sums, code):
    """Return ln p(value | block) of one more cell, without ln x! of a count."""
    raise NotImplementedError("log_cell is implemented per prior; call it from compiled code")


@implements(log_cell, of=CountPrior)
def _log_level(stats, n, sums, code):
    pseudo_count = stats.pseudo_count
    return math.log((sums[code] + pseudo_count) / (n + pseudo_count * stats.n_levels[0]))


@implements(log_cell, of=MomentPrior)
def _log_number(stats, n, sums, code):
    after = log_moments(stats, n + 1, sums[0] + code, sums[1] + code * code)
    return after - log_moments(stats, n, sums[0], sums[1])


def weigh_blocks(stats, cells, sums, code, axis, fixed, n, out):
    """Multiply ``out[:n]`` by p(value | block), up to a common factor.

    The blocks are (k, fixed), k < n, along ``axis`` 0, and (fixed, k) along ``axis`` 1.
    """
    raise NotImplementedError("weigh_blocks is implemented per prior; call it from compiled code")


@implements(weigh_blocks, of=CountPrior)
def _weigh_by_level(stats, cells, sums, code, axis, fixed, n, out):
    pseudo_count = stats.pseudo_count
    pseudo_total = pseudo_count * stats.n_levels[0]
    if axis == ROWS:
        for k in range(n):
            out[k] *= (sums[k, fixed, code] + pseudo_count) / (cells[k, fixed] + pseudo_total)
    else:
        for k in range(n):
            out[k] *= (sums[fixed, k, code] + pseudo_count) / (cells[fixed, k] + pseudo_total)


@implements(weigh_blocks, of=MomentPrior)
def _weigh_by_number(stats, cells, sums, code, axis, fixed, n, out):
    # A value far from all blocks must not make all weights zero: the largest comes first.
    logs = np.empty(n)
    largest = -np.inf
    for k in range(n):
        row, column = (k, fixed) if axis == ROWS else (fixed, k)
        logs[k] = log_cell(stats, cells[row, column], sums[row, column], code)
        largest = max(largest, logs[k])
    for k in range(n):
        out[k] *= math.exp(logs[k] - largest)


@kernel
def mixed_sweep(rng, prior, starts, others, codes, mixed):
    """Draw z1 and then z2 of every cell given all else; returns how many cells changed their block."""
    cells, sums, clusters = mixed.cells, mixed.sums, mixed.clusters
    row_counts, column_counts = mixed.row_counts, mixed.column_counts
    n_k, n_j = cells.shape
    weights = np.empty(max(n_k, n_j))
    n_moved = 0
    for row in range(starts.shape[0] - 1):
        for cell in range(starts[row], starts[row + 1]):
            column = others[cell]
            old_k, old_j = clusters[ROWS, cell], clusters[COLUMNS, cell]
            row_counts[row, old_k] -= 1
            column_counts[column, old_j] -= 1
            move_cell(prior, cells[old_k], sums[old_k], codes[cell], old_j, -1)
            for k in range(n_k):
                weights[k] = row_counts[row, k] + mixed.pseudo_counts[ROWS]
            weigh_blocks(prior, cells, sums, codes[cell], ROWS, old_j, n_k, weights)
            new_k = draw_index(rng, weights, n_k)
            for j in range(n_j):
                weights[j] = column_counts[column, j] + mixed.pseudo_counts[COLUMNS]
            weigh_blocks(prior, cells, sums, codes[cell], COLUMNS, new_k, n_j, weights)
            new_j = draw_index(rng, weights, n_j)
            clusters[ROWS, cell] = new_k
            clusters[COLUMNS, cell] = new_j
            row_counts[row, new_k] += 1
            column_counts[column, new_j] += 1
            move_cell(prior, cells[new_k], sums[new_k], codes[cell], new_j, 1)
            n_moved += new_k != old_k or new_j != old_j
    return n_moved


@kernel
def draw_index(rng, weights, n):
    """Draw an index with probability proportional to its weight."""
    total = 0.0
    for k in range(n):
        total += weights[k]
    left = rng.random() * total
    chosen = k = 0
    while left >= 0.0 and k < n:
        if weights[k] > 0.0:
            chosen = k
            left -= weights[k]
        k += 1
    return chosen


@kernel
def log_memberships(counts, pseudo_count):
    """Return ln p(clusters of the cells of all lines), shares integrated out."""
    n_clusters = counts.shape[1]
    value = 0.0
    for i in range(counts.shape[0]):
        total = 0
        for k in range(n_clusters):
            total += counts[i, k]
            if counts[i, k] > 0:
                value += log_rising(pseudo_count, counts[i, k])
        value -= log_rising(pseudo_count * n_clusters, total)
    return value
