"""Matrices with missing cells from arrays, lists of rows and sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.cells_checks import checked_shape, shown
from permix.data.cells_codes import MissingCodes
from permix.data.io.table_columns import is_blank
from permix.data.labels import Array
from permix.errors import DataError

#: Rows, columns and values of cells, and the shape of their matrix.
Entries = tuple[Array, Array, Array, tuple[int, int]]


def sparse_entries(matrix: Any, codes: MissingCodes) -> Entries:
    """Take what a scipy sparse matrix stores."""
    if len(matrix.shape) != 2:
        raise DataError(f"a sparse matrix has rows and columns; this one has shape {matrix.shape}")
    shape = checked_shape(matrix.shape)
    if matrix.format == "dia":  # its own conversion forgets zeros that are stored
        rows, columns, values = _diagonals(matrix)
    else:
        stored = matrix.tocoo()
        rows, columns, values = stored.row, stored.col, stored.data
    return rows, columns, codes.blanked(values), shape


def _diagonals(matrix: Any) -> tuple[Array, Array, Array]:
    column = np.arange(matrix.data.shape[1], dtype=np.int64)[None, :]
    row = column - np.asarray(matrix.offsets, dtype=np.int64)[:, None]
    inside = (row >= 0) & (row < matrix.shape[0]) & (column < matrix.shape[1])
    return row[inside], np.broadcast_to(column, row.shape)[inside], matrix.data[inside]


def dense_entries(X: Any, codes: MissingCodes) -> Entries:
    """Take an array, a masked array or a list of rows."""
    mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    if hasattr(X, "__array__"):
        table = np.asarray(X)
    else:
        table = _from_lists(X)
    if table.ndim != 2:
        raise DataError(
            f"a matrix has rows and columns; this has {table.ndim} axes (shape {table.shape})"
            + ("; one row alone goes into double brackets, [[...]]" if table.ndim == 1 else "")
        )
    shape = checked_shape(table.shape)
    flat = codes.blanked(table.reshape(-1))
    if mask is not None:
        place = np.flatnonzero(~mask.reshape(-1))
    elif flat.dtype.kind == "f":
        place = np.flatnonzero(~np.isnan(flat))
    else:
        place = np.arange(flat.size)
    rows, columns = np.divmod(place, shape[1])
    values = flat[place]
    if values.dtype.kind == "O":
        _refuse_mixtures(values, rows, columns)
    return rows, columns, values, shape


def _refuse_mixtures(values: Array, rows: Array, columns: Array) -> None:
    """Say in which cell text first stands among numbers."""
    kinds: dict[bool, int] = {}
    for at, entry in enumerate(values.tolist()):
        if not is_blank(entry):
            kinds.setdefault(isinstance(entry, str), at)
    if len(kinds) == 2:
        text, other = kinds[True], kinds[False]
        raise DataError(
            f"row {rows[text] + 1}, column {columns[text] + 1} holds text ({values[text]!r}) and row "
            f"{rows[other] + 1}, column {columns[other] + 1} does not ({shown(values[other])}); write all as "
            "text, or all as numbers"
        )


def _from_lists(X: Any) -> Array:
    try:
        listed = [list(row) if not isinstance(row, str | bytes) else None for row in X]
    except TypeError:
        flat = "; one row alone goes into double brackets, [[...]]" if isinstance(X, list | tuple) else ""
        raise DataError(
            f"a {'flat ' if flat else ''}{type(X).__name__} is not a matrix; pass a list of rows, an array, "
            f"a sparse matrix or a frame{flat}"
        ) from None
    if not listed or None in listed:
        raise DataError("a matrix is a list of rows, each a list of values; this has none, or text for a row")
    widths = [len(row) for row in listed if row is not None]
    odd = [place for place, width in enumerate(widths) if width != widths[0]]
    if odd:
        raise DataError(
            f"row {odd[0] + 1} has {widths[odd[0]]} values and row 1 has {widths[0]}; give every row as "
            "many, with None for missing ones"
        )
    table = np.empty((len(listed), widths[0]), dtype=object)
    for place, row in enumerate(listed):
        table[place] = row
    return table
