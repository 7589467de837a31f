# mypy: ignore-errors
"""Base co-clusterings of a matrix, the data of an ensemble: every cell has one block label in each of them.

Where some cells count and others do not, such as the filled ones, their labels are written down cell by cell
(:class:`LabelLines`). Where all cells count, there are too many (:class:`BaseLines`): a base is known by a
class of each row, a class of each column and a table of labels, and cells in rows of one class and columns of
one class have the same label. So what a row says is known from how many columns of each class there are, and
no cell is ever looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.kernels.lines_jit import Lines


class BaseLines(NamedTuple):
    """Labels of all cells in M bases, seen from one axis.

    Slots number the labels of all bases: those of base m follow those of base m - 1.
    """

    classes: np.ndarray  # (lines, M) int32: class of each line in each base
    other_classes: np.ndarray  # (lines of the other axis, M) int32
    n_other_classes: np.ndarray  # (M,) int64
    table_starts: np.ndarray  # (M,) int64: where the table of base m begins
    tables: np.ndarray  # int64: slot by (class, other class), row by row, base after base


class LabelLines(NamedTuple):
    """Labels of some cells in M bases, by line; slots as in :class:`BaseLines`."""

    starts: np.ndarray  # (lines + 1,) int64
    others: np.ndarray  # (cells,) int32: where the cell is on the other axis
    slots: np.ndarray  # (cells, M) int32


def label_lines(
    row_classes: np.ndarray,
    column_classes: np.ndarray,
    tables: list[np.ndarray],
    by_row: Lines,
    by_column: Lines,
) -> tuple[LabelLines, LabelLines]:
    """Return the labels of the cells of a matrix seen from its rows and from its columns."""
    sides = []
    for lines, transposed in ((by_row, False), (by_column, True)):
        own = np.repeat(np.arange(len(lines.starts) - 1), np.diff(lines.starts))
        rows, columns = (lines.others, own) if transposed else (own, lines.others)
        slots = [table[row_classes[rows, m], column_classes[columns, m]] for m, table in enumerate(tables)]
        sides.append(LabelLines(lines.starts, lines.others, np.column_stack(slots).astype(np.int32)))
    return sides[0], sides[1]


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
