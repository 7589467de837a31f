"""Filled cells by row and by column."""

from __future__ import annotations

import numpy as np
import pytest

from permix.kernels.lines_jit import lines_of, transposed


def dense(lines, n_others):
    """The matrix that lines describe, NaN where nothing is."""
    table = np.full((len(lines.starts) - 1, n_others), np.nan)
    for i in range(len(table)):
        cells = slice(lines.starts[i], lines.starts[i + 1])
        assert np.all(np.diff(lines.others[cells]) > 0)
        table[i, lines.others[cells]] = lines.codes[cells]
    return table


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (6, 4), (3, 9)])
def test_columns_are_the_transpose(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    X = rng.integers(0, 5, shape).astype(float)
    X[rng.random(shape) < 0.5] = np.nan
    X[0, 0] = 2.0
    X[-1, 1:] = np.nan  # a row that is all but empty
    X[1:, -1] = np.nan
    rows, columns = np.nonzero(~np.isnan(X))
    lines = lines_of(rows, columns, X[rows, columns].astype(dtype), shape[0])
    assert lines.others.dtype == np.int32
    np.testing.assert_array_equal(dense(lines, shape[1]), X)
    across = transposed(lines, shape[1])
    assert across.codes.dtype == dtype
    np.testing.assert_array_equal(dense(across, shape[0]), X.T)
    for left, right in zip(transposed(across, shape[0]), lines, strict=True):
        np.testing.assert_array_equal(left, right)


def test_empty_lines():
    lines = lines_of(np.array([1]), np.array([2]), np.array([7]), 3)
    assert lines.starts.tolist() == [0, 0, 1, 1]
    assert transposed(lines, 4).starts.tolist() == [0, 0, 0, 1, 1]
