# mypy: ignore-errors
"""Clusters for the cells of one new row, the cells of all fitted rows staying where they are, compiled.

Sweeps of Gibbs draw the clusters; they also say where the row's shares θ of row clusters may be. The
probability of the row is estimated by importance sampling: θ is drawn from the mixture of the Dirichlet
conditionals met in the sweeps, and given θ the cells are taken in turn (sequential imputation, Kong, Liu &
Wong 1994), each drawing its row cluster and column cluster given its value and the cells before it. Prior
over proposal density of θ, times the probabilities of the values met on the way, is a weight whose mean is
the probability of the row. Without θ the first cells of a long row would know nothing of the others, and
weights would differ by orders of magnitude.
"""

from __future__ import annotations

import math

import numpy as np

from permix.cocluster.cells.block_sums_jit import move_cell
from permix.cocluster.grid.mixed_jit import COLUMNS, ROWS, draw_index, log_cell, mixed_sweep
from permix.kernels.jit import kernel
from permix.kernels.random import log_dirichlet


@kernel
def fold_row(rng, prior, others, codes, mixed, proposals):
    """Draw clusters of the cells of one row, by columns and values, and add them to ``mixed``.

    There, ``clusters`` and ``row_counts`` are of the new row alone, the latter all zero; everything else is
    counted from the fitted rows. Each row of ``proposals`` is filled with the parameters of the Dirichlet
    conditional of the row's shares after a sweep; half as many sweeps come before these.
    """
    n_sweeps, n_k = proposals.shape
    _impute(rng, prior, others, codes, mixed, np.zeros(n_k))
    starts = np.array([0, codes.shape[0]])
    for sweep in range(-(n_sweeps // 2), n_sweeps):
        mixed_sweep(rng, prior, starts, others, codes, mixed)
        if sweep >= 0:
            for k in range(n_k):
                proposals[sweep, k] = mixed.row_counts[0, k] + mixed.pseudo_counts[ROWS]


@kernel
def weigh_row(rng, prior, others, codes, mixed, proposals):
    """Return ln of an unbiased estimate of p(cells of a row) after ``fold_row``, drawing clusters anew."""
    for cell in range(codes.shape[0]):
        _put(prior, others, codes, mixed, cell, -1)
    n_sweeps, n_k = proposals.shape
    log_shares = np.empty(n_k)
    log_dirichlet(rng, proposals[int(rng.random() * n_sweeps)], log_shares)
    log_proposal = -np.inf
    for sweep in range(n_sweeps):
        log_proposal = np.logaddexp(log_proposal, _log_density(log_shares, proposals[sweep]))
    pseudo_counts = np.full(n_k, mixed.pseudo_counts[ROWS])
    log_weight = _log_density(log_shares, pseudo_counts) - log_proposal + math.log(n_sweeps)
    return log_weight + _impute(rng, prior, others, codes, mixed, log_shares)


@kernel
def _log_density(log_shares, parameters):
    """Return the log density of shares under a Dirichlet, up to what all parameters have in common."""
    value = math.lgamma(parameters.sum())
    for k in range(parameters.shape[0]):
        value += parameters[k] * log_shares[k] - math.lgamma(parameters[k])
    return value


@kernel
def _impute(rng, prior, others, codes, mixed, log_shares):
    """Draw the clusters of all cells in turn given the row's shares; return ln p(values met on the way)."""
    n_k, n_j = mixed.cells.shape
    b = mixed.pseudo_counts[COLUMNS]
    weights = np.empty(n_k * n_j)
    value = 0.0
    for cell in range(codes.shape[0]):
        column, code = others[cell], codes[cell]
        in_column = 0
        highest = -np.inf
        for j in range(n_j):
            in_column += mixed.column_counts[column, j]
            log_share = math.log(mixed.column_counts[column, j] + b)
            for k in range(n_k):
                one = log_share + log_shares[k] + log_cell(prior, mixed.cells[k, j], mixed.sums[k, j], code)
                weights[k * n_j + j] = one
                highest = max(highest, one)
        total = 0.0
        for block in range(weights.shape[0]):
            weights[block] = math.exp(weights[block] - highest)
            total += weights[block]
        value += highest + math.log(total) - math.log(in_column + n_j * b)
        k, j = divmod(draw_index(rng, weights, weights.shape[0]), n_j)
        mixed.clusters[ROWS, cell] = k
        mixed.clusters[COLUMNS, cell] = j
        _put(prior, others, codes, mixed, cell, 1)
    return value


@kernel
def _put(prior, others, codes, mixed, cell, sign):
    """Count a cell where its clusters say, or no more (sign -1)."""
    k, j = mixed.clusters[ROWS, cell], mixed.clusters[COLUMNS, cell]
    mixed.row_counts[0, k] += sign
    mixed.column_counts[others[cell], j] += sign
    move_cell(prior, mixed.cells[k], mixed.sums[k], codes[cell], j, sign)
