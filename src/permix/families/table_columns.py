"""The columns of a table as people have them: what kind each is, and its cells as plain values."""

from __future__ import annotations

import datetime
import re
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import is_missing
from permix.errors import CellError, DataError, Wording
from permix.families.base import DATES, refuse_odd_cells

#: What a column may be; an ordered category is a category whose order is shown but not used.
KINDS = ("number", "count", "category", "ordered")
# Numbers with so few different values, each of them so often on average, are categories.
FEW_VALUES = 10
ENTRIES_PER_VALUE = 5
# Text with more different entries than this, and more than one for every two rows, names the rows.
FEWEST_NAMES = 20

_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
# Text that is a date: 2024-01-31, 31.1.2024, 1/31/24, with or without a time.
_DATE_TEXT = re.compile(r"(\d{4}-\d\d?-\d\d?|\d\d?([./-])\d\d?\2(\d{4}|\d\d))([ T]\d\d?:\d\d.*)?")


class CellTypeError(CellError, TypeError):
    """A cell holds something that is neither a number nor a category."""


class Column(NamedTuple):
    """One column: its cells, and what its type says."""

    name: str | int  # its place, from 0 on, where it has no name
    cells: np.ndarray  # of numbers, NaN where missing, or of objects
    missing: np.ndarray  # of truth values
    declared: tuple[Any, ...] | None = None  # the categories that its type lists, in order
    ordered: bool = False
    date: bool = False

    @property
    def present(self) -> np.ndarray:
        """The cells that are not missing."""
        return self.cells[~self.missing]

    @property
    def numeric(self) -> bool:
        """Whether cells are numbers."""
        return self.cells.dtype.kind == "f"


def columns_of(X: Any) -> list[Column]:
    """Take a frame, an array or a list of rows apart."""
    if hasattr(X, "columns") and not isinstance(X, np.ndarray):
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True)
        # By place: names may be numbers, which narwhals takes for places.
        return [_of_series(*column) for column in zip(frame.columns, frame.iter_columns(), strict=True)]
    refuse_odd_cells(X)
    # dtype=object for lists: [["yes", 1]] must not become text.
    array = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if array.ndim != 2:
        raise DataError(f"expected a table of rows and columns, got an array of shape {array.shape}")
    return [_of_cells(j, array[:, j]) for j in range(array.shape[1])]


def _of_series(name: str | int, series: Any) -> Column:
    import narwhals as nw

    if series.dtype in (nw.Date, nw.Datetime, nw.Duration, nw.Time):
        cells = np.array(series.to_list(), dtype=object)
        return Column(name, cells, np.zeros(len(cells), np.bool_), date=True)
    native = series.to_native()
    categories = getattr(getattr(native, "cat", None), "categories", None)
    if categories is not None:  # pandas, whose categories may be anything, intervals too
        declared, ordered = tuple(map(label, categories)), bool(native.cat.ordered)
        return _of_cells(name, np.array(native.astype(object), dtype=object))._replace(
            declared=declared, ordered=ordered
        )
    if series.dtype == nw.Enum:
        return _of_cells(name, np.array(series.to_list(), dtype=object))._replace(
            declared=tuple(series.dtype.categories), ordered=True
        )
    if series.dtype.is_numeric() and (numbers := series.to_numpy()).dtype.kind in "iuf":
        return _of_cells(name, numbers)
    return _of_cells(name, np.array(series.to_list(), dtype=object))


def _of_cells(name: str | int, cells: np.ndarray) -> Column:
    """Return cells as numbers where all that are there are numbers."""
    if cells.dtype.kind in "iuf":
        numbers = cells.astype(np.float64)
        return Column(name, numbers, np.isnan(numbers))
    entries = cells.tolist()
    missing = np.array([is_missing(entry) for entry in entries], dtype=np.bool_)
    present = [entry for entry, gap in zip(entries, missing, strict=True) if not gap]
    if present and all(isinstance(entry, int | float) and not isinstance(entry, bool) for entry in present):
        numbers = np.full(len(entries), np.nan)
        numbers[~missing] = present
        return Column(name, numbers, missing)
    dates = any(_is_date(entry) for entry in present) or (
        bool(present) and all(isinstance(e, str) and _DATE_TEXT.fullmatch(e.strip()) for e in present)
    )
    objects = np.empty(len(entries), dtype=object)
    objects[:] = entries
    return Column(name, objects, missing, date=dates)


def _is_date(entry: Any) -> bool:
    """Whether an entry is a date, a time or, as pandas has them, a period such as a month."""
    return isinstance(entry, _DATES) or type(entry).__name__ == "Period"


def label(value: Any) -> Any:
    """Return a category as text or a plain number, which files can hold; whole floats count as integers."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    # Truth values and intervals are named as they are printed.
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else str(value)


def kind_of(place: int, column: Column) -> str:
    """Say what kind of column this is; one that names the rows or holds dates is refused."""
    if column.date:
        raise CellError(None, place, f"{{place}} holds dates or times (such as {_shown(column)}); {DATES}")
    present = column.present
    if column.ordered:
        return "ordered"
    if column.declared is not None:
        return "category"
    if not len(present):
        raise CellError(None, place, "{place} has no entry at all: leave it out")
    if column.numeric:
        n_different = len(np.unique(present))
        if n_different <= FEW_VALUES and len(present) >= ENTRIES_PER_VALUE * n_different:
            return "category"
        whole = bool(np.all(present == np.floor(present)))
        if len(present) > FEWEST_NAMES and np.all(np.diff(present) == 1.0):
            way_out = _way_out(column.name, "number")
            said = f"{{place}} numbers the rows, from {present[0]:g} to {present[-1]:g}: "
            raise CellError(None, place, said, way_out=way_out)
        # Whole numbers from zero on count something; ages, years and sizes do not begin at zero.
        return "count" if whole and present.min() == 0.0 else "number"
    for row in np.flatnonzero(~column.missing):
        cell = column.cells[row]
        if not isinstance(cell, str | int | float | np.generic) and type(cell).__name__ != "Interval":
            said = f"{{place}} holds a {type(cell).__name__}: the argument must be a string or a number"
            raise CellTypeError(int(row), place, said)
    n_different = len(set(map(label, present.tolist())))
    if n_different > FEWEST_NAMES and 2 * n_different > len(present):
        way_out = _way_out(column.name, "category")
        raise CellError(
            None,
            place,
            f"{{place}} has {n_different} different entries in {len(present)} rows, such as "
            f"{_shown(column)}, and seems to name the rows: ",
            way_out=way_out,
        )
    return "category"


def levels_of(place: int, column: Column) -> tuple[Any, ...]:
    """Return the categories of a column: those that its type lists, else those that occur, sorted."""
    if column.declared:
        return column.declared
    found = dict.fromkeys(map(label, column.present.tolist()))
    if not found:
        raise CellError(None, place, "{place} has no entry at all: leave it out")
    try:
        return tuple(sorted(found))
    except TypeError:
        return tuple(sorted(found, key=str))


def codes_of(place: int, column: Column, levels: Sequence[Any]) -> np.ndarray:
    """Return codes of categories, NaN where missing; the error names one that is not known."""
    # A column of a small file may have been read as numbers where it was text, and the other way round.
    code_of = {str(level): float(code) for code, level in enumerate(levels)}
    code_of |= {level: float(code) for code, level in enumerate(levels)}
    codes = np.full(len(column.cells), np.nan)
    for row in np.flatnonzero(~column.missing):
        value = label(column.cells[row])
        value = value if value in code_of else str(value)
        if value not in code_of:
            known = ", ".join(map(str, levels[:8])) + (", ..." if len(levels) > 8 else "")
            said = f"{value!r} is not one of the known categories ({known}); leave the cell empty if unknown"
            raise CellError(int(row), place, "{place}: " + said.replace("{", "{{").replace("}", "}}"))
        codes[row] = code_of[value]
    return codes


def numbers_of(place: int, column: Column) -> np.ndarray:
    """Return numbers, NaN where missing; the error names a cell that is none, or infinite."""
    if not column.numeric:
        for row in np.flatnonzero(~column.missing):
            cell = column.cells[row]
            if isinstance(cell, bool) or not isinstance(cell, int | float):
                said = repr(str(cell)).replace("{", "{{").replace("}", "}}")
                raise CellError(int(row), place, f"{{place}} is {said}, and the column holds numbers")
        return np.where(column.missing, np.nan, np.zeros(len(column.cells)))  # every cell is missing
    endless = np.flatnonzero(np.isinf(column.cells))
    if endless.size:
        raise CellError(int(endless[0]), place, "{place} is infinite: mend the cell, or leave it empty")
    return column.cells.copy()


def counts_of(place: int, column: Column) -> np.ndarray:
    """Return whole numbers from zero on, NaN where missing."""
    counts = numbers_of(place, column)
    bad = np.flatnonzero((counts < 0) | (counts != np.floor(counts)) & ~np.isnan(counts))
    if bad.size:
        said = f"{{place}} is {counts[bad[0]]:g}, and counts are whole numbers from 0 on"
        raise CellError(int(bad[0]), place, said)
    return counts


def _way_out(name: str | int, kind: str) -> tuple[Wording]:
    """Say what to do with a column that names or numbers the rows."""
    called = shlex.quote(str(name))
    python = f"leave the column out, or say what it is with permix.Mixed({{{name!r}: {kind!r}}})"
    option = (
        f"leave it out with --ignore {called}, name the rows by it with --id {called}, or say what it is "
        f"with --column {shlex.quote(f'{name}={kind}')}"
    )
    return (Wording(python, option),)


def _shown(column: Column) -> str:
    present = column.present
    return str(present[0] if len(present) else "").replace("{", "{{").replace("}", "}}")
