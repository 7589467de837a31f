"""Base co-clusterings of a matrix, the data of an ensemble: every cell has one block label in each of them.

A base is known by a class of each row, a class of each column and a table of labels: cells in rows of one
class and columns of one class have the same label. So what a row says is known from how many columns of each
class there are, and no cell is ever looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class BaseLines(NamedTuple):
    """Labels of all cells in M bases, seen from one axis.

    Slots number the labels of all bases: those of base m follow those of base m - 1.
    """

    classes: np.ndarray  # (lines, M) int32: class of each line in each base
    other_classes: np.ndarray  # (lines of the other axis, M) int32
    n_other_classes: np.ndarray  # (M,) int64
    table_starts: np.ndarray  # (M,) int64: where the table of base m begins
    tables: np.ndarray  # int64: slot by (class, other class), row by row, base after base


def base_lines(
    row_classes: np.ndarray, column_classes: np.ndarray, tables: list[np.ndarray]
) -> tuple[BaseLines, BaseLines]:
    """Return bases seen from the rows and from the columns.

    ``row_classes`` is (rows, M), ``column_classes`` (columns, M), and ``tables[m][row class, column class]``
    the slot of the label.
    """
    return (
        _one_side(row_classes, column_classes, tables),
        _one_side(column_classes, row_classes, [table.T for table in tables]),
    )


def _one_side(classes: np.ndarray, other_classes: np.ndarray, tables: list[np.ndarray]) -> BaseLines:
    sizes = [table.size for table in tables]
    return BaseLines(
        np.ascontiguousarray(classes, dtype=np.int32),
        np.ascontiguousarray(other_classes, dtype=np.int32),
        np.array([table.shape[1] for table in tables], dtype=np.int64),
        np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
        np.concatenate([np.ravel(table) for table in tables]).astype(np.int64),
    )
