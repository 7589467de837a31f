"""Which family a table gets where none is asked for: one of numbers, or one column by column."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.dp_mixture.parameters import as_family
from permix.errors import CellError
from permix.families import Categorical, Family, GaussianDiagonal, Mixed, MixedNIW
from permix.families.table_columns import ENTRIES_PER_VALUE, columns_of, kind_of

# A value that fewer rows have may be an accident of a small table.
OFTEN = ENTRIES_PER_VALUE


def chosen_family(asked: Any, table: Any) -> Family:
    """Return the family that was asked for; else one of numbers, or of mixed columns where they do not do.

    A covariance matrix of d columns has d(d+1)/2 entries. With fewer rows than that nothing in the data could
    tell what they are, and columns of numbers are taken as independent within a group. Columns of two values,
    such as 0 and 1, are categories: as numbers they would make a group around each value.
    """
    family: Family = as_family(asked)
    if asked is not None:
        return family
    if not is_numbers(table):
        n, d = _numbers_in(table)
        return MixedNIW() if d > 1 and n >= d * (d + 1) // 2 else Mixed()
    shape = _shape_of(table)
    if len(shape) != 2:  # no table: refused elsewhere, by messages that say so
        return family
    n, d = shape
    two_values = _columns_of_two_values(table)
    if any(two_values):
        kinds = ["category" if two else "number" for two in two_values]
        d -= sum(two_values)
        return MixedNIW(kinds) if d > 1 and n >= d * (d + 1) // 2 else Mixed(kinds)
    return family if n >= d * (d + 1) // 2 else GaussianDiagonal()


def _numbers_in(table: Any) -> tuple[int, int]:
    """Return the number of rows, and of columns that are read as numbers; 0 where a column cannot be read."""
    columns = columns_of(table)
    try:
        kinds = [kind_of(j, column) for j, column in enumerate(columns)]
    except CellError:  # the family refuses it where the names of columns are known
        return 0, 0
    return len(columns[0].cells), kinds.count("number")


def _columns_of_two_values(table: Any) -> list[bool]:
    """Say which columns of a dense table of numbers have two values, each often enough to be no accident."""
    plain = isinstance(table, np.ndarray) and table.dtype.kind in "iuf"
    if not plain and (isinstance(table, np.ndarray) or not hasattr(table, "iloc")):
        return []  # sparse, or to be refused elsewhere
    found = []
    for column in columns_of(table):
        present = column.present
        low, high = (present.min(), present.max()) if present.size else (0.0, 0.0)
        n_low, n_high = np.sum(present == low), np.sum(present == high)
        found.append(bool(low < high and n_low + n_high == present.size and min(n_low, n_high) >= OFTEN))
    return found


def _shape_of(table: Any) -> tuple[int, ...]:
    """Return the shape of an array, frame, sparse matrix or list of rows; () of rows of different lengths."""
    try:
        return tuple(getattr(table, "shape", None) or np.shape(table))
    except ValueError:
        return ()


def default_like(family: Family) -> Family:
    """Return the default that such a family may be."""
    kinds = Mixed | GaussianDiagonal | Categorical  # answers where rows are in shards
    return type(family)() if isinstance(family, kinds) else as_family(None)


def is_numbers(table: Any) -> bool:
    """Say whether every column holds numbers, where it holds anything; what is no table is left to others."""
    if hasattr(table, "indptr"):
        return True
    if hasattr(table, "columns") and not isinstance(table, np.ndarray):
        import narwhals as nw

        if not isinstance(nw.from_native(table, eager_only=True, pass_through=True), nw.DataFrame):
            return True
    else:
        try:
            array = np.asarray(table)
        except (TypeError, ValueError):  # rows of different lengths, or no rows at all: refused elsewhere
            return True
        if array.ndim != 2 or array.dtype.kind not in "bOUS":
            return True
        table = table if isinstance(table, np.ndarray) else np.array(table, dtype=object)
    return all(column.numeric for column in columns_of(table))
