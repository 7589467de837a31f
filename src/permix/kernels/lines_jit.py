# mypy: ignore-errors
"""The filled cells of a matrix, row by row and column by column, for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Lines(NamedTuple):
    """Filled cells by line: those of line i are ``starts[i] ... starts[i + 1] - 1``."""

    starts: np.ndarray  # (lines + 1,) int64
    others: np.ndarray  # (cells,) int32: where the cell is on the other axis, ascending within a line
    codes: np.ndarray  # (cells,) int64 levels, or float64 numbers


def lines_of(rows: np.ndarray, columns: np.ndarray, codes: np.ndarray, n_rows: int) -> Lines:
    """Return cells that are sorted by row, then column, as lines of rows."""
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=starts[1:])
    # Copies: compiled code takes a read-only array for another type than a writable one.
    return Lines(starts, columns.astype(np.int32), np.array(codes, order="C"))


def transposed(lines: Lines, n_columns: int) -> Lines:
    """Return the lines of the other axis."""
    order = np.argsort(lines.others, kind="stable")
    rows = np.repeat(np.arange(len(lines.starts) - 1), np.diff(lines.starts))
    return lines_of(lines.others[order], rows[order], lines.codes[order], n_columns)
