"""Which family a table gets where none is asked for: one of numbers, or one column by column."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.dp_mixture.parameters import as_family
from permix.families import Family, Mixed
from permix.families.table_columns import columns_of


def chosen_family(asked: Any, table: Any) -> Family:
    """Return the family that was asked for; else the default of numbers, or Mixed where they do not do."""
    family: Family = as_family(asked)
    return Mixed() if asked is None and not is_complete_numbers(table) else family


def is_complete_numbers(table: Any) -> bool:
    """Say whether every column holds numbers, in every row; what is no table at all is left to others."""
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
        if array.ndim != 2 or array.dtype.kind not in "OUSf":
            return True
        if array.dtype.kind == "f":
            return not bool(np.isnan(array).any())
        table = table if isinstance(table, np.ndarray) else np.array(table, dtype=object)
    return all(column.numeric and not column.missing.any() for column in columns_of(table))
