"""Which layout a table of cells has, and which of its columns names the rows: found, or asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from permix.data.cells_checks import meant
from permix.data.io.column_names import USUAL_NAMES, plain
from permix.data.io.headers import unsure_of_header
from permix.data.io.table_columns import BLANK, Table, missing_mask, numbers
from permix.data.io.text_files import PathLike
from permix.data.labels import Array
from permix.errors import Argument, DataError, PermixWarning, Wording

ROW_NAMES = USUAL_NAMES["agent"] | {"row", "rows", "rowname", "name", "id", "document", "doc", "gene", "i"}
COLUMN_NAMES = USUAL_NAMES["item"] | {"column", "columns", "columnname", "col", "feature", "variable"}
COLUMN_NAMES |= {"word", "term", "question", "j"}
VALUE_NAMES = USUAL_NAMES["rating"] | {"values", "cell", "answer", "count", "level", "entry", "x"}


# From so many rows on, a column of different whole numbers is likely to name the rows.
MANY_ROWS = 20
# Lines of a long table may be repeated by a slip; a wide one repeats pairs of values all the time.
LEAST_DIFFERENT = 0.95


class LongPlaces(NamedTuple):
    """Places of the columns of a long table."""

    row: int
    column: int
    value: int


def long_places(names: list[Any]) -> LongPlaces | None:
    """Places of the columns for row, column and value, where names say which they are."""
    plain_names = [plain(str(name)) for name in names]
    found = []
    for exact, usual in (("row", ROW_NAMES), ("column", COLUMN_NAMES), ("value", VALUE_NAMES)):
        called = {exact} if exact in plain_names else usual
        found.append([place for place, name in enumerate(plain_names) if name in called])
    return LongPlaces(*(places[0] for places in found)) if all(len(p) == 1 for p in found) else None


def latest(table: Table, layout: str) -> Table:
    """Keep the last line of each cell of a long table."""
    places = long_places(table.names)
    if places is None and layout == "long" and len(table.names) == 3:
        places = LongPlaces(0, 1, 2)
    if places is None:
        raise DataError(f"{table.source}: ", Argument("repeated", "last"), " is for long tables")
    last = {
        key: line
        for line, key in enumerate(zip(table.columns[places.row], table.columns[places.column], strict=True))
    }
    return table.take(np.array(sorted(last.values()), dtype=np.int64))


def is_usual_cell_name(name: str) -> bool:
    """Whether the columns of a matrix or of a long table are usually called so."""
    return plain(name) in ROW_NAMES | COLUMN_NAMES | VALUE_NAMES | {"index"}


def long_has_header(path: PathLike, fields: list[list[str]], number: Callable[[str], bool]) -> bool:
    """Whether the first line of a long table holds names; an error where that is open.

    Values tell: names of rows and columns may be anything. Where values are words, those of a row come back
    below, and names of columns do not.
    """
    first, body = fields[0], fields[1:]
    if number(first[2]):
        return False
    below = [[row[place] for row in body] for place in range(3)]
    if all(number(value) for value in below[2]):
        return True
    new = [first[place] not in set(below[place]) for place in range(3)]
    usual = (ROW_NAMES, COLUMN_NAMES, VALUE_NAMES)
    if any(is_new and plain(name) in names for is_new, name, names in zip(new, first, usual, strict=False)):
        return True
    if not all(new):
        return False
    if len(set(below[2])) < len(below[2]):
        return True
    raise unsure_of_header(path, first)


def has_no_names(table: Table) -> bool:
    """Whether nobody named the columns: a file without a header, or a frame whose columns count from 0."""
    return table.numbered or list(table.names) == list(range(len(table.names)))


def could_be_long(table: Table) -> bool:
    """Whether a table without telling names has cells in its lines as well as a matrix in its columns."""
    n = len(table.names)
    if n != 3 and not (n == 4 and has_no_names(table)):
        return False
    if any(missing_mask(column).any() for column in table.columns[:2]) or not any(
        str(entry) not in BLANK for entry in table.columns[2]
    ):
        return False
    first, second = ([str(entry) for entry in column] for column in table.columns[:2])
    if len(set(first)) == len(first) or len(set(second)) == len(second):
        return False
    different = len(set(zip(first, second, strict=True)))
    if has_no_names(table) and table.n_rows >= 50 and all(_whole(column) for column in table.columns[:2]):
        return different >= LEAST_DIFFERENT * table.n_rows
    return n == 3 and different == table.n_rows


def _whole(column: Array) -> bool:
    """Whether a column could hold names: text, or whole numbers."""
    values = numbers(column)
    return values is None or bool(np.all(values == np.floor(values)))


def places_to_read(table: Table) -> LongPlaces:
    """Places of the columns of a table that the caller calls long."""
    places = long_places(table.names)
    if places is not None:
        return places
    n = len(table.names)
    if n == 4 and has_no_names(table):
        warnings.warn(
            f"{table.source}: no line names the columns; the first three are taken for row, column and "
            "value, and the fourth is not used",
            PermixWarning,
            stacklevel=5,
        )
        return LongPlaces(0, 1, 2)
    if n != 3:
        looks: tuple[str | Argument, ...] = (" Rename its columns",)
        if n > 3:
            looks = (" This looks wide: say ", Argument("layout", "wide"), ", or rename its columns")
        these = f"{n} without names" if has_no_names(table) else ", ".join(map(repr, table.names[:8]))
        raise DataError(
            f"{table.source}: a long table has columns row, column and value (or user, item, rating and "
            f"the like); this one has {these}.",
            *looks,
        )
    first = [str(entry) for entry in table.columns[0]]
    if len(first) > 2 and len(set(first)) == len(first) and numbers(table.columns[1]) is not None:
        said = (
            f"{table.source}: no two lines agree in the first column, so that every row has one filled cell; "
            "this looks wide: "
        )
        warnings.warn(PermixWarning(said, Argument("layout", "wide")), stacklevel=5)
    return LongPlaces(0, 1, 2)


def row_name_place(
    table: Table, row_column: str | Literal[False] | None, index: list[str] | None
) -> int | None:
    """Place of the column that names the rows, None where there is none; an error where it is unclear."""
    if row_column is False:
        return None
    if row_column is not None:
        return table.named(row_column, f"{meant(row_column, table.names)} to name the rows")
    if index is not None or len(table.names) < 2:
        return None
    first, name = table.columns[0], table.names[0]
    if plain(str(name)) in ROW_NAMES | {"", "index", "unnamed0"}:
        return 0
    here = numbers(first)
    others = [numbers(column) for column in table.columns[1:]]
    if here is None:
        if all(column is not None for column in others):
            return 0
        elsewhere = {str(entry) for column in table.columns[1:] for entry in column.tolist()}
        entries = {str(entry) for entry in first.tolist()}
        return 0 if len(first) > 2 and len(entries) == len(first) and not elsewhere & entries else None
    if counts_up(here) and not all(column is not None and counts_up(column) for column in others):
        raise DataError(
            f"{table.source}: the first column, {name!r}, holds {here[0]:g}, {here[1]:g}, {here[2]:g}, "
            "…: it could number the rows or be part of the matrix; say ",
            *(Argument("row_column", name), " or ", Wording("row_column=False", '--id ""')),
        )
    return None


def warn_of_identifiers(table: Table, kept: list[int], named: int | None) -> None:
    """Warn of a column among the cells in which every row has a whole number of its own."""
    if table.n_rows < MANY_ROWS or len(kept) < 2:
        return
    found = [place for place in kept if _identifies(table.columns[place])]
    if not found or 2 * len(found) > len(kept):  # where most are so, the matrix is made of such numbers
        return
    name = table.names[found[0]]
    ignored = Wording("leave it out", f"--ignore {name} leaves it out")
    way_out: tuple[str | Argument | Wording, ...] = ("if it is no part of the matrix, ", ignored)
    if named is None and not has_no_names(table):
        way_out = ("if it names the rows, say ", Argument("row_column", name))
    more = f" (so have {len(found) - 1} others)" if len(found) > 1 else ""
    said = f"{table.source}: column {name!r} has a different value in every row{more}; "
    warnings.warn(PermixWarning(said, *way_out), stacklevel=5)


def _identifies(column: Array) -> bool:
    different = len(set(column.tolist())) == len(column) and not missing_mask(column).any()
    return different and numbers(column) is not None and _whole(column)


def counts_up(values: Array) -> bool:
    """Whether numbers go 0, 1, 2, … or 1, 2, 3, …, at least three of them."""
    if len(values) < 3 or values[0] not in (0.0, 1.0):
        return False
    return np.array_equal(values, values[0] + np.arange(len(values)))
