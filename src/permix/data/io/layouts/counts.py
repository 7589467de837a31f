"""Columns that say how many agents a row stands for."""

from __future__ import annotations

import re

import numpy as np

from permix.data.io.column_names import plain
from permix.data.io.table_columns import Table, numbers, numbers_of
from permix.data.labels import Array, as_objects
from permix.errors import DataError

# Numbers with marks between thousands.
COMMAS, POINTS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+"), re.compile(r"[0-9]{1,3}(\.[0-9]{3})+")


def counts_of(table: Table, place: int) -> tuple[Table, Array, Array]:
    """Return the table without the rows that nobody stated, counts as integers, and the rows kept."""
    values = _whole_counts(table, place)
    bad = ~((values >= 0) & (values < 2**53) & (np.floor(values) == values))
    count = table.columns[place][np.argmax(bad)]
    table.refuse(bad, f"count {count!r} is not a whole number from 0 on")
    stated = np.flatnonzero(values > 0)
    if stated.size == 0:
        raise DataError(f"{table.source}: all counts are 0")
    return table.take(stated), values[stated].astype(np.int64), stated


def could_count(table: Table, place: int) -> bool:
    """Whether a column that may weigh rows, or be a measurement called weight, holds whole numbers."""
    if plain(table.names[place]) not in ("weight", "weights"):
        return True
    values = numbers(table.columns[place])
    return values is None or bool(np.all(values == np.floor(values)))


def _whole_counts(table: Table, place: int) -> Array:
    """Return counts; 1,234 is a number of thousands, 1.000 could be two numbers and is refused."""
    column = table.columns[place]
    entries = [entry if isinstance(entry, str) else "" for entry in column.tolist()]
    for row, entry in enumerate(entries):
        if POINTS.fullmatch(entry):
            raise DataError(
                f"{table.where(row)}: count {entry!r} could be {entry.replace('.', '')} or have decimals; "
                "write it without points"
            )
    if any(COMMAS.fullmatch(entry) for entry in entries):
        whole = [
            entry.replace(",", "") if COMMAS.fullmatch(str(entry)) else entry for entry in column.tolist()
        ]
        table = table._replace(
            columns=[*table.columns[:place], as_objects(whole), *table.columns[place + 1 :]]
        )
    return numbers_of(table, place, ": count")
