# mypy: ignore-errors
"""The filled cells of a matrix, row by row and column by column, for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.kernels.jit import kernel


class Lines(NamedTuple):
    """Filled cells by line: those of line i are ``starts[i] ... starts[i + 1] - 1``."""

    starts: np.ndarray  # (lines + 1,) int64
    others: np.ndarray  # (cells,) int32: where the cell is on the other axis, ascending within a line
    codes: np.ndarray  # (cells,) int64 levels, or float64 numbers


@kernel
def transpose_lines(starts, others, codes, new_starts, new_others, new_codes):
    """Fill the ``new_`` arrays with the same cells by line of the other axis."""
    for i in range(new_starts.shape[0]):
        new_starts[i] = 0
    for cell in range(others.shape[0]):
        new_starts[others[cell] + 1] += 1
    for i in range(1, new_starts.shape[0]):
        new_starts[i] += new_starts[i - 1]
    place = new_starts[:-1].copy()
    for line in range(starts.shape[0] - 1):
        for cell in range(starts[line], starts[line + 1]):
            target = place[others[cell]]
            place[others[cell]] += 1
            new_others[target] = line
            new_codes[target] = codes[cell]


def lines_of(rows: np.ndarray, columns: np.ndarray, codes: np.ndarray, n_rows: int) -> Lines:
    """Return cells that are sorted by row, then column, as lines of rows."""
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=starts[1:])
    # Copies: compiled code takes a read-only array for another type than a writable one.
    return Lines(starts, columns.astype(np.int32), np.array(codes, order="C"))


def transposed(lines: Lines, n_columns: int) -> Lines:
    """Return the lines of the other axis."""
    new = Lines(
        np.empty(n_columns + 1, dtype=np.int64), np.empty_like(lines.others), np.empty_like(lines.codes)
    )
    transpose_lines(*lines, *new)
    return new
