"""Cells that are left out, by hand; and chains of co-clusterings that do not mix."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from permix.cocluster.block_predict import BlockPredictive, block_sums, log_cells
from permix.cocluster.cells.encoded_matrix import EncodedMatrix
from permix.kernels.lines_jit import lines_of
from tests.cocluster.cases import planted_grid, quick, quiet_fit


@pytest.mark.parametrize("family", ["categorical", "bernoulli", "poisson", "gaussian"])
def test_a_cell_is_predicted_from_the_others(family):
    """The sums of the block, computed anew from the matrix without the cell."""
    X, _, _ = planted_grid(np.random.default_rng(0), family, shape=(12, 8))
    fit = quiet_fit(quick(family=family, n_draws=4, n_burn_in=10), X)._fit
    matrix = fit.known_matrix
    draws = [fit.block_draw(t) for t in range(3)]
    chosen = np.arange(0, matrix.n_cells, 7)
    found = BlockPredictive(matrix, draws).log_left_out(chosen)
    rows, columns, codes = matrix.rows, matrix.by_row.others, matrix.by_row.codes
    for place, cell in enumerate(chosen):
        rest = np.arange(matrix.n_cells) != cell
        lines = lines_of(rows[rest], columns[rest], codes[rest], matrix.n_rows)
        without = EncodedMatrix(matrix.family, lines, matrix.n_rows, matrix.n_columns)
        predictive = BlockPredictive(without, draws)
        for draw, log_p in zip(draws, found[:, place], strict=True):
            at = draw.block_of(rows[[cell]], columns[[cell]])
            sums = block_sums(without, draw)
            expected = log_cells(predictive.family_of(draw), codes[[cell]], at, sums)[0]
            assert log_p == pytest.approx(expected, abs=1e-9)
    # The twin that forgets to leave the cell out says something else.
    naive = BlockPredictive(matrix, draws).log_cells_of(
        draws[0], rows[chosen], columns[chosen], codes[chosen]
    )
    assert np.abs(naive - found[0]).max() > 1e-3


def test_a_chain_that_does_not_predict_left_out_cells_hardly_counts():
    """One chain finds the blocks; the other is held at one group of rows and one of columns."""
    X, _, _ = planted_grid(np.random.default_rng(1))
    model = quiet_fit(quick(n_draws=40), X)
    arrays = {name: array.copy() for name, array in model._fit.draws.arrays.items()}
    arrays["row_labels"][1], arrays["column_labels"][1] = 0, 0
    arrays["n_row_groups"][1] = arrays["n_column_groups"][1] = arrays["n_blocks"][1] = 1
    arrays["log_joint"] = np.random.default_rng(0).normal(size=(2, 40)) + np.array([[0.0], [-99.0]])
    stuck = dataclasses.replace(model._fit, draws=dataclasses.replace(model._fit.draws, arrays=arrays))
    assert stuck.chain_weights[0] > 0.95
    of_first = sum(draw.n_blocks > 1 for draw in stuck.predictive.draws)
    assert of_first > 0.9 * len(stuck.predictive.draws)


def test_chains_that_agree_count_alike():
    X, _, _ = planted_grid(np.random.default_rng(1))
    fit = quiet_fit(quick(), X)._fit
    agree = {name: np.zeros((2, 60)) for name, array in fit.draws.arrays.items() if array.ndim == 2}
    arrays = {**fit.draws.arrays, **agree}
    same = dataclasses.replace(fit, draws=dataclasses.replace(fit.draws, arrays=arrays))
    assert same.chain_weights is None
