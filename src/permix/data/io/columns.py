"""Long tables: three columns out of a data frame, an array or a list of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.io.column_names import column_places
from permix.data.labels import Array, as_column
from permix.errors import DataError


def is_frame(table: object) -> bool:
    """Say whether ``table`` is a data frame (pandas, polars and the like)."""
    return hasattr(table, "columns") and hasattr(table, "shape")


def frame_columns(table: Any) -> list[Any]:
    """Column names of a data frame."""
    return list(table.columns)


def long_columns(table: Any, names: tuple[str, str, str]) -> list[Array]:
    """Return three columns named ``names``, each flat: numbers as numbers, anything else as objects.

    A frame is read by column name, or by usual names for the same (:mod:`permix.data.io.column_names`); an
    array or list of rows by position.
    """
    if is_frame(table):
        import narwhals as nw

        frame = nw.from_native(table, eager_only=True)
        places = [column_places(frame.columns, name) for name in names]
        for name, found in zip(names, places, strict=True):
            if len(found) != 1:
                how_many = "more than one" if found else "no"
                raise DataError(
                    f"the frame has {how_many} column for {name!r}: it needs {', '.join(names)}, or usual "
                    f"names for them, and has {', '.join(map(str, frame.columns))}. Rename its columns; "
                    "permix.from_frame reads tables of other layouts"
                )
        return [frame[frame.columns[found[0]]].to_numpy() for found in places]
    if isinstance(table, np.ndarray):
        if table.ndim != 2 or table.shape[1] != 3:
            raise DataError(
                f"the table has shape {table.shape}; it needs three columns: {', '.join(names)} "
                "(one agent alone: put the same number in every row)"
            )
        return [table[:, place] for place in range(3)]
    try:
        rows = list(table)
    except TypeError:
        raise DataError(f"a {type(table).__name__} is not a table of rows ({', '.join(names)})") from None
    for row, entries in enumerate(rows):
        try:
            wrong = isinstance(entries, str) or len(entries) != 3
        except TypeError:
            wrong = True
        if wrong:
            raise DataError(f"row {row + 1} is {entries!r}; it needs ({', '.join(names)})")
    return [as_column([entries[place] for entries in rows], names[place]) for place in range(3)]


def in_row(position: int) -> str:
    """Name a row of a long table for a message."""
    return f"row {position + 1}"


def number_column(values: Array, what: str) -> Array:
    """Turn a column into floats; refuse what is missing, infinite or no number."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        for position, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                raise DataError(f"{in_row(position)}: {what} {value!r} is not a number") from None
        raise
    bad = ~np.isfinite(numbers)
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(
            f"{in_row(at)}: {what} {numbers[at]} is not a finite number; leave rows without a {what} out"
        )
    return numbers
