"""Clusters for the cells of one new row, the cells of all fitted rows staying where they are, compiled.

Sequential imputation (Kong, Liu & Wong 1994): the cells are taken in turn, each draws its row cluster and
column cluster given its value and the cells before it, and the probabilities of the values so found multiply
to a weight whose mean is the probability of the row. Sweeps of Gibbs afterwards leave the weight as it is.
"""

from __future__ import annotations

import math

import numpy as np

from permix.kernels.block_sums import move_cell
from permix.kernels.jit import kernel
from permix.kernels.mixed_membership import COLUMNS, ROWS, draw_index, log_cell, mixed_sweep


@kernel
def fold_row(rng, law, others, codes, mixed, n_sweeps):
    """Draw clusters of the cells of one row, add them to ``mixed``, and return the log weight.

    Parameters
    ----------
    rng, law
    others, codes : ndarray
        Columns and values of the row's cells.
    mixed : MixedCells
        ``clusters`` and ``row_counts`` are of the new row alone, the latter all zero; everything else is
        counted from the fitted rows.
    n_sweeps : int
    """
    n_k, n_j = mixed.cells.shape
    a, b = mixed.pseudo_counts[ROWS], mixed.pseudo_counts[COLUMNS]
    weights = np.empty(n_k * n_j)
    log_weight = 0.0
    for cell in range(codes.shape[0]):
        column, code = others[cell], codes[cell]
        in_column = 0
        highest = -np.inf
        for j in range(n_j):
            in_column += mixed.column_counts[column, j]
            log_share = math.log(mixed.column_counts[column, j] + b)
            for k in range(n_k):
                value = log_share + math.log(mixed.row_counts[0, k] + a)
                value += log_cell(law, mixed.cells[k, j], mixed.sums[k, j], code)
                weights[k * n_j + j] = value
                highest = max(highest, value)
        total = 0.0
        for block in range(weights.shape[0]):
            weights[block] = math.exp(weights[block] - highest)
            total += weights[block]
        log_weight += highest + math.log(total) - math.log(cell + n_k * a) - math.log(in_column + n_j * b)
        k, j = divmod(draw_index(rng, weights, weights.shape[0]), n_j)
        mixed.clusters[ROWS, cell] = k
        mixed.clusters[COLUMNS, cell] = j
        mixed.row_counts[0, k] += 1
        mixed.column_counts[column, j] += 1
        move_cell(law, mixed.cells, mixed.sums, code, k, j, 1)
    starts = np.array([0, codes.shape[0]])
    for _ in range(n_sweeps):
        mixed_sweep(rng, law, starts, others, codes, mixed)
    return log_weight
