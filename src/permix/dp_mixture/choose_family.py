"""Which family a table gets where none is asked for: one of numbers, or one column by column."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.dp_mixture.parameters import as_family
from permix.families import Family, GaussianDiagonal, Mixed
from permix.families.table_columns import columns_of


def chosen_family(asked: Any, table: Any) -> Family:
    """Return the family that was asked for; else one of numbers, or Mixed where they do not do.

    A covariance matrix of d columns has d(d+1)/2 entries. With fewer rows than that nothing in the data could
    tell what they are, and columns are taken as independent within a group.
    """
    family: Family = as_family(asked)
    if asked is not None:
        return family
    if not is_numbers(table):
        return Mixed()
    shape = _shape_of(table)
    if len(shape) != 2:  # no table: refused elsewhere, by messages that say so
        return family
    n, d = shape
    return family if n >= d * (d + 1) // 2 else GaussianDiagonal()


def _shape_of(table: Any) -> tuple[int, ...]:
    """Return the shape of an array, frame, sparse matrix or list of rows; () of rows of different lengths."""
    try:
        return tuple(getattr(table, "shape", None) or np.shape(table))
    except ValueError:
        return ()


def default_like(family: Family) -> Family:
    """Return the default that such a family may be."""
    return type(family)() if isinstance(family, Mixed | GaussianDiagonal) else as_family(None)


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
        if array.ndim != 2 or array.dtype.kind not in "OUS":
            return True
        table = table if isinstance(table, np.ndarray) else np.array(table, dtype=object)
    return all(column.numeric for column in columns_of(table))
