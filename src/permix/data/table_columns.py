"""Tables as named columns, from a CSV file or a data frame, with a way to say where a row stands."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from permix.data.labels import Array, Label, is_missing
from permix.data.text_files import PathLike, plain_suffix, read_text, shorten
from permix.errors import DataError, FileFormatError

BLANK = frozenset({"", "NA", "NaN", "nan"})
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})\Z")  # fits 64 bits; longer ones stay text

# What columns are called, compared in lower case without blanks, dots, dashes and underscores.
AGENT = frozenset(
    ["agent", "assessor", "judge", "participant", "rater", "respondent", "user", "userid", "voter", "voterid"]
)
BETTER = frozenset(["better", "winner", "preferred", "topitem"])
WORSE = frozenset(["worse", "loser", "bottomitem"])
ITEM = frozenset(["item", "itemid", "movie", "movieid", "joke", "product", "alternative", "object"])
RATING = frozenset(["rating", "score", "stars"])
COUNT = frozenset(
    ["ballots", "count", "counts", "freq", "frequency", "multiplicity", "n", "nagents", "nvoters", "votes"]
)
UNLISTED = frozenset({"unlisted"})


@dataclass(frozen=True)
class Table:
    """Columns by place, their names, and words for where a row stands."""

    names: list[Label]
    columns: list[Array]
    where: Callable[[int], str]
    source: str

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0]) if self.columns else 0

    def places(self, called: frozenset[str]) -> list[int]:
        """Places of the columns with one of these names."""
        return [place for place, name in enumerate(self.names) if plain(name) in called]

    def find(self, wanted: object, called: frozenset[str], what: str) -> int | None:
        """Place of the column the caller named, else of the one with a usual name, else None."""
        if wanted is False:
            return None
        if wanted is not None:
            if wanted not in self.names:
                raise DataError(
                    f"{self.source}: there is no column {wanted!r} for the {what}; the columns are "
                    f"{', '.join(map(repr, self.names))}"
                )
            return self.names.index(wanted)
        places = self.places(called)
        if len(places) > 1:
            found = " and ".join(repr(self.names[place]) for place in places)
            raise DataError(f"{self.source}: {found} could both be the {what}; name it with {what}_column=")
        return places[0] if places else None

    def take(self, rows: Array) -> Table:
        """Return some of the rows, which still know where they stood."""
        before = self.where
        return Table(
            self.names,
            [column[rows] for column in self.columns],
            lambda row: before(int(rows[row])),
            self.source,
        )


def plain(name: Label) -> str:
    """Column name in lower case without blanks, dots, dashes and underscores."""
    return re.sub(r"[\s._-]", "", str(name)).lower()


def missing_mask(column: Array) -> Array:
    """Say which entries are blank: None, NaN, the empty string, and 'NA' or 'NaN' in text."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "iub":
        return np.zeros(len(column), dtype=np.bool_)
    return np.fromiter(
        (is_missing(entry) or (isinstance(entry, str) and entry in BLANK) for entry in column),
        dtype=np.bool_,
        count=len(column),
    )


def numbers(column: Array) -> Array | None:
    """Return the column as floats with NaN for blanks, or None where some entry is no number."""
    if column.dtype.kind in "iuf":
        return column.astype(np.float64)
    values = np.full(len(column), np.nan)
    blank = missing_mask(column)
    try:
        values[~blank] = [float(entry) for entry in column[~blank]]
    except (TypeError, ValueError):
        return None
    return values


def naturals(column: Array) -> Array:
    """Turn text that is whole numbers throughout, written plainly, into integers; leave the rest alone."""
    if column.dtype.kind == "f":
        known = column[~np.isnan(column)]
        if known.size and np.all(np.mod(known, 1) == 0):
            result = np.empty(len(column), dtype=object)
            result[:] = [None if np.isnan(entry) else int(entry) for entry in column]
            return result
        return column.astype(object)
    if column.dtype.kind != "O":
        return column
    blank = missing_mask(column)
    entries = column[~blank]
    if all(type(entry) is int or (isinstance(entry, str) and _INTEGER.match(entry)) for entry in entries):
        entries = np.array([int(entry) for entry in entries], dtype=object)
    result = np.full(len(column), None, dtype=object)
    result[~blank] = entries
    return result if blank.any() or not entries.size else _as_integers(result)


def _as_integers(column: Array) -> Array:
    if all(type(entry) is int and abs(entry) < 2**62 for entry in column):
        return column.astype(np.int64)
    return column


def table_from_frame(frame: Any) -> Table:
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
    return Table(names, columns, lambda row: f"row {row} of the frame (counting from 0)", "the frame")


def table_from_file(path: PathLike, delimiter: str | None = None) -> Table:
    """Read a CSV or TSV file with a header line, plain or gzipped."""
    text = read_text(path)
    header = text.split("\n", 1)[0]
    if delimiter is None:
        delimiter = "\t" if plain_suffix(path) in ("tsv", "tab") else _guess_delimiter(header)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines: list[int] = []
    rows: list[list[str]] = []
    names: list[str] = []
    while True:
        # A quoted field may span lines: name the line on which the row starts.
        start = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise FileFormatError(f"{path}, line {start}: {error}", path, start) from error
        if row is None:
            break
        if not row or row == [""]:
            continue
        if not names:
            names = [name.strip() for name in row]
            continue
        if len(row) != len(names):
            raise FileFormatError(
                f"{path}, line {start}: {len(row)} fields where the header has {len(names)}: "
                f"{shorten(delimiter.join(row))!r}",
                path,
                start,
            )
        rows.append([field.strip() for field in row])
        lines.append(start)
    if not rows:
        raise FileFormatError(f"{path}: a header, but no rows after it", path)
    for place, name in enumerate(names):
        if name in names[:place]:
            raise FileFormatError(f"{path}, line 1: two columns are called {name!r}; rename one", path, 1)
    columns = []
    for fields in zip(*rows, strict=True):
        column = np.empty(len(fields), dtype=object)
        column[:] = fields
        columns.append(column)
    return Table(list(names), columns, lambda row: f"{path}, line {lines[row]}", str(path))


def _guess_delimiter(header: str) -> str:
    counts = {mark: header.count(mark) for mark in (",", "\t", ";")}
    return max(counts, key=lambda mark: counts[mark])
