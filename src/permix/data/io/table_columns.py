"""Tables as named columns, from a CSV file or a data frame, with a way to say where a row stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from permix.data.io.column_names import column_places
from permix.data.io.containers.lines import Lines
from permix.data.io.text_files import PathLike
from permix.data.labels import Array, Label, as_objects, is_missing, repeats, some_names
from permix.errors import Argument, DataError, FileFormatError, Message, Part

BLANK = frozenset({"", "NA", "NaN", "nan", "N/A", "n/a", "#N/A", "NULL", "null", "<NA>"})
DECIMAL_COMMA = r"[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?"
# Where the comma that a number may have separates no entries.
DECIMAL_COMMAS_BESIDE = (";", "\t")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})\Z")  # fits 64 bits; longer ones stay text


class Table(NamedTuple):
    """Columns by place, their names, and words for where a row stands."""

    names: list[Label]
    columns: list[Array]
    where: Callable[[int], str]
    source: str
    numbered: bool = False  # whether the columns are called 1, 2, … for want of names
    items: frozenset[str] = frozenset()  # columns known to be items, whatever they are called

    @classmethod
    def of_frame(cls, frame: Any) -> Table:
        """Read a pandas, polars or other data frame that narwhals knows."""
        import narwhals as nw

        try:
            known = nw.from_native(frame, eager_only=True)
        except TypeError:
            raise DataError(
                f"a {type(frame).__name__} is not a data frame; pass a pandas or polars DataFrame, or build "
                "Rankings or Preferences from arrays with their own constructors"
            ) from None
        names = [int(name) if isinstance(name, int | np.integer) else str(name) for name in known.columns]
        columns = []
        for series in known.iter_columns():
            column = np.asarray(series.to_numpy())
            columns.append(column if column.dtype.kind in "iufO" else column.astype(object))
        return cls(names, columns, lambda row: f"row {row + 1} of the frame", "the frame")

    @classmethod
    def of_lines(cls, path: PathLike, names: list[Label], lines: Lines) -> Table:
        """Return the lines of a file as columns that know where they stand."""
        columns = [as_objects(list(fields)) for fields in zip(*lines.fields, strict=True)]
        return cls(names, columns, lambda row: f"{path}, {lines.unit} {lines.numbers[row]}", str(path))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0]) if self.columns else 0

    def places(self, role: str) -> list[int]:
        """Places of the columns whose name says that they have this role."""
        return column_places(["" if str(name) in self.items else name for name in self.names], role)

    def named(self, wanted: object, purpose: str) -> int:
        """Place of the column of this name or number; the purpose goes into the error if there is none."""
        names: list[object] = [*self.names, *map(str, self.names)]
        if wanted not in names and self.numbered:  # nobody named them: v1, V1 and column1 are the first
            wanted = re.sub(r"\A(?:v|x|col|column)(?=[0-9])", "", str(wanted).lower())
        if wanted not in names:
            raise no_column(self.source, wanted, purpose, self.names)
        return names.index(wanted) % len(self.names)

    def find(self, wanted: object, role: str) -> int | None:
        """Place of the column the caller named, else of the one with a usual name, else None."""
        if wanted is False:
            return None
        if wanted is not None:
            return self.named(wanted, f" for the {role}")
        places = self.places(role)
        if len(places) > 1:
            found = " and ".join(repr(self.names[place]) for place in places)
            named = Argument(f"{role}_column")
            named_items = (", or say which is an item with ", Argument("item_columns"))
            way_out = (
                ("name it with ", named, *named_items)
                if role in ("agent", "count")
                else ("rename the other",)
            )
            raise DataError(f"{self.source}: {found} could both be the {role}; ", *way_out)
        return places[0] if places else None

    def without(self, ignored: Label | Iterable[Label]) -> Table:
        """Return the table without some of its columns."""
        ignored = [ignored] if isinstance(ignored, str | int) else list(ignored)
        dropped = {self.named(name, " to ignore") for name in ignored}
        kept = [place for place in range(len(self.names)) if place not in dropped]
        if ignored and not kept:
            raise DataError(f"{self.source}: every column is ignored; leave one")
        names = [self.names[place] for place in kept]
        return self._replace(names=names, columns=[self.columns[place] for place in kept])

    def set_apart(self, wanted: Label | Iterable[Label]) -> tuple[Table, dict[str, Array]]:
        """Return the table without some of its columns, and these by name."""
        wanted = [wanted] if isinstance(wanted, str | int) else list(wanted)
        places = {str(name): self.named(name, " of the agents") for name in wanted}
        return self.without(wanted), {name: self.columns[place] for name, place in places.items()}

    def take(self, rows: Array) -> Table:
        """Return some of the rows, which still know where they stood."""
        columns = [column[rows] for column in self.columns]
        return self._replace(columns=columns, where=lambda row: self.where(int(rows[row])))

    def refuse(self, bad: Any, why: str) -> None:
        """Raise an error about the first bad row, if there is one."""
        if bad.any():
            raise DataError(f"{self.where(int(np.argmax(bad)))}: {why}")

    def filled(self, place: int, way_out: str) -> Array:
        """Return a column in which every row needs an entry; whole numbers are integers."""
        column, name = self.columns[place], self.names[place]
        self.refuse(missing_mask(column), f"nothing in column {name!r}{way_out}")
        return naturals(column)


def no_column(source: object, wanted: object, purpose: str, names: Iterable[Label]) -> DataError:
    """Return the error about a column that is not there."""
    columns = some_names(list(names))
    return DataError(f"{source}: there is no column {wanted!r}{purpose}; the columns are {columns}")


def missing_mask(column: Array) -> Array:
    """Say which entries are blank: None, NaN, the empty string, and 'NA' or 'NaN' in text."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "iub":
        return np.zeros(len(column), dtype=np.bool_)
    return np.array([is_blank(entry) for entry in column], dtype=np.bool_)


def is_blank(entry: object) -> bool:
    """Say whether nothing is in a cell: None, NaN, blank text, and NA or NaN in text."""
    return entry in BLANK if isinstance(entry, str) else is_missing(entry)


def numbers(column: Array) -> Array | None:
    """Return the column as floats with NaN for blanks, or None where some entry is no number."""
    if column.dtype.kind in "iuf":
        return column.astype(np.float64)
    values = np.full(len(column), np.nan)
    blank = missing_mask(column)
    filled = column[~blank]
    if any(isinstance(entry, str) and "_" in entry for entry in filled):
        return None  # Python's own way of grouping digits, 1_0, which files do not mean
    try:
        values[~blank] = [float(entry) for entry in filled]
    except (TypeError, ValueError):
        return None
    return values


def numbers_of(table: Table, place: int, what: str, *way_out: Part) -> Array:
    """Return a column as floats; refuse what is no number."""
    column = table.columns[place]
    values = numbers(column)
    if values is None:
        row = next(row for row in range(len(column)) if numbers(column[row : row + 1]) is None)
        raise DataError(f"{table.where(row)}{what} {column[row]!r} is not a number", *way_out)
    return values


def decimal_points(column: Array, delimiter: str) -> Array:
    """Read 1,5 as 1.5 where all entries are such numbers: so spreadsheets write where the mark is a comma.

    Between semicolons it is one. Between tabs 1,234 may be a thousand: there some number must tell.
    """
    entries = column.tolist()
    if delimiter not in DECIMAL_COMMAS_BESIDE or not all(
        entry in BLANK or re.fullmatch(DECIMAL_COMMA, entry) for entry in entries
    ):
        return column
    if delimiter == "\t" and not any(re.search(r",(?![0-9]{3}(?![0-9]))", entry) for entry in entries):
        return column
    return as_objects([entry.replace(",", ".") for entry in entries])


def refuse_commas_in_numbers(table: Table) -> None:
    """Refuse columns of numbers such as 1,5 where a comma says nothing: they would be taken for names."""
    for name, column in zip(table.names, table.columns, strict=True):
        entries = column.tolist()
        commas = [row for row, entry in enumerate(entries) if isinstance(entry, str) and "," in entry]
        if commas and all(entry in BLANK or re.fullmatch(DECIMAL_COMMA, str(entry)) for entry in entries):
            said = (
                f"{table.where(commas[0])}, column {name!r}: {entries[commas[0]]!r} could have decimals or "
            )
            raise DataError(
                f"{said}be a number of thousands; write decimals with a point, thousands without a mark"
            )


def naturals(column: Array) -> Array:
    """Turn text that is whole numbers throughout, written plainly, into integers; leave the rest alone."""
    if column.dtype.kind == "f":
        known = column[~np.isnan(column)]
        if known.size and np.all(np.mod(known, 1) == 0):
            return as_objects([None if np.isnan(entry) else int(entry) for entry in column])
        return column.astype(object)
    if column.dtype.kind != "O":
        return column
    blank = missing_mask(column)
    entries = column[~blank]
    if all(type(entry) is int or (isinstance(entry, str) and _INTEGER.match(entry)) for entry in entries):
        entries = np.array([int(entry) for entry in entries], dtype=object)
    result = np.full(len(column), None, dtype=object)
    result[~blank] = entries
    small = entries.size and all(type(entry) is int and abs(entry) < 2**62 for entry in entries)
    return result.astype(np.int64) if small and not blank.any() else result


def refuse_same_names(path: PathLike, names: list[str], line: int) -> None:
    """Refuse a header with two columns of one name."""
    for first, _ in repeats(names):
        called = f"are called {names[first]!r}; rename one" if names[first] else "have no name; name them"
        where = f"{path}, line {line}" if line else str(path)  # names that stand in no line
        is_number = re.fullmatch(r"[-+]?[0-9]+([.,][0-9]+)?", str(names[first]).strip()) is not None
        way_out = ("; if the line is a row, say ", Argument("header", False)) if line and is_number else ()
        raise FileFormatError(Message(f"{where}: two columns {called}", *way_out), path, line or None)
