"""What is known of agents, or of items, beside the answers: precinct, age; party, color, text.

No model looks at it. It goes where the rows (or items) go, so that groups can be compared with it afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from permix.data.labels import Array, Label, factorize, is_missing, some_names
from permix.errors import DataError

MISSING = -1  # code of an entry that is not known
# Written as numbers, these are names: nobody means the average of two of them.
CODES = frozenset(
    [
        *("precinct", "ward", "district", "division", "batch", "tabulator", "zip", "zipcode", "postcode"),
        *("code", "id", "group", "groupid", "cluster", "region", "area", "county", "box", "style", "party"),
    ]
)


class Column(NamedTuple):
    """One column: numbers (NaN is missing), or codes of words (-1 is missing)."""

    values: Array  # float64 where there are no levels, else int32
    levels: tuple[str, ...] | None = None

    def take(self, rows: Array) -> Column:
        """Return some entries; those asked for by -1 are missing."""
        taken = self.values[rows]
        taken[rows < 0] = np.nan if self.levels is None else MISSING
        return self._replace(values=taken)

    def entries(self) -> Array:
        """Return numbers, or words with "" for what is missing."""
        if self.levels is None:
            return self.values
        return np.array([*self.levels, ""], dtype=object)[self.values]

    def codes(self) -> tuple[Array, tuple[str, ...]]:
        """Return the entries as codes of words; numbers are written plainly."""
        if self.levels is not None:
            return self.values, self.levels
        known = ~np.isnan(self.values)
        distinct, code = np.unique(self.values[known], return_inverse=True)
        codes = np.full(len(self.values), MISSING, np.int32)
        codes[known] = code
        return codes, tuple(f"{value:.12g}" for value in distinct.tolist())


class Attributes(Mapping[str, Array]):
    """Columns by name, with one entry for each agent (or item); never changed.

    Parameters
    ----------
    columns : mapping of str to sequence
        Numbers, NaN where one is missing; or text, "" where it is missing.

    Examples
    --------
    >>> known = Attributes({"precinct": ["north", "south", "north"], "age": [31, 58, None]})
    >>> known
    Attributes: precinct (2 values), age (31 to 58, 1 missing)
    >>> known["precinct"].tolist(), known.take([2, 0])["age"].tolist()
    (['north', 'south', 'north'], [nan, 31.0])
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, Any] | None = None) -> None:
        built = {str(name): _column(values) for name, values in (columns or {}).items()}
        if len({len(column.values) for column in built.values()}) > 1:
            sizes = ", ".join(f"{name}: {len(column.values)}" for name, column in built.items())
            raise DataError(f"columns have different lengths ({sizes}); give one entry for each row")
        self._columns = built

    @classmethod
    def of(cls, columns: Mapping[str, Column]) -> Self:
        """Return columns that are built already."""
        made = cls()
        made._columns = dict(columns)
        return made

    def __getitem__(self, name: str) -> Array:
        return self._columns[name].entries()

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Attributes) or set(self) != set(other):
            return False
        return all(
            np.array_equal(mine, other[name], equal_nan=mine.dtype.kind == "f") for name, mine in self.items()
        )

    def __hash__(self) -> int:
        return hash(frozenset(self))

    def __repr__(self) -> str:
        return f"Attributes: {self.described() or 'none'}"

    def described(self) -> str:
        """Say which columns there are, and what is in them."""
        return ", ".join(map(self._described, self))

    def column(self, name: str) -> Column:
        """Return a column, or say which there are."""
        if name not in self._columns:
            known = some_names(list(self)) if self else "none"
            raise DataError(f"there is no column {name!r}; known are: {known}")
        return self._columns[name]

    def checked(self, n: int, what: str) -> Self:
        """Return the same; there must be an entry for each of n rows."""
        for name, column in self._columns.items():
            if len(column.values) != n:
                said = f"column {name!r} has {len(column.values):,} entries for {n:,} {what}"
                raise DataError(f"{said}; give one for each")
        return self

    def select(self, names: Iterable[str]) -> Self:
        """Return some of the columns."""
        return self.of({name: self.column(name) for name in names})

    def take(self, rows: Any) -> Self:
        """Return the entries of some rows, in this order; those asked for by -1 are missing."""
        places = np.asarray(rows, dtype=np.int64)
        return self.of({name: column.take(places) for name, column in self._columns.items()})

    def over(self, old: Sequence[Label], new: Sequence[Label]) -> Self:
        """Return attributes of items for other items: by name, missing where an item is new."""
        if not self or old == new:
            return self
        place = {name: at for at, name in enumerate(old)}
        return self.take([place.get(name, -1) for name in new])

    @classmethod
    def joined(cls, parts: Sequence[Attributes], what: str = "parts") -> Self:
        """Return rows one after the other; all parts must have the same columns."""
        names = list(parts[0])
        for part in parts[1:]:
            if set(part) != set(names):
                odd = sorted(set(part) ^ set(names))
                raise DataError(f"only some {what} have a column {odd[0]!r}; give it to all or to none")
        return cls({name: np.concatenate([part[name] for part in parts]) for name in names})

    def keys_of_rows(self) -> Array:
        """Return a number for each row, the same for rows with the same entries."""
        codes = [column.codes()[0] for column in self._columns.values()]
        return np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].ravel()

    def _described(self, name: str) -> str:
        column = self._columns[name]
        missing = int(np.count_nonzero(column.codes()[0] == MISSING))
        some = f", {missing:,} missing" if missing else ""
        if column.levels is not None:
            return f"{name} ({len(column.levels):,} value{'s' * (len(column.levels) != 1)}{some})"
        known = column.values[~np.isnan(column.values)]
        span = f"{known.min():g} to {known.max():g}" if known.size else "nothing"
        return f"{name} ({span}{some})"


NONE = Attributes()


def item_labels(names: Sequence[Label], known: Attributes, most: int = 60) -> list[str]:
    """Return what items are called in tables and pictures: "Name (Party)", or a statement with its text.

    Examples
    --------
    >>> item_labels(["Ann", "Bo"], Attributes({"party": ["Green", ""]}))
    ['Ann (Green)', 'Bo']
    >>> item_labels(["7"], Attributes({"text": ["Buses should run at night"]}), most=20)
    ['7: Buses should run at…']
    """
    parties, texts = (
        known[name].tolist() if name in known else [""] * len(names) for name in ("party", "text")
    )
    # "Orange (O)" needs no second pair of brackets.
    parties = [re.sub(r"(\S)\s*\([^()]*\)$", r"\1", str(party)) for party in parties]
    return [
        f"{name}{f' ({party})' if party else ''}{f': {in_short(text, most)}' if text else ''}"
        for name, party, text in zip(names, parties, texts, strict=True)
    ]


def in_short(text: str, most: int) -> str:
    """Return a text on one line, cut after a word where it is long."""
    words = " ".join(str(text).split())
    if len(words) <= most:
        return words
    cut = words[: most - 1]
    at_word = cut.rpartition(" ")[0] if words[most - 1] != " " else cut
    # A single long word is cut within.
    return (at_word if len(at_word) > most // 2 else cut).rstrip(" ,.;:") + "…"


def from_text(columns: Mapping[str, Iterable[Any]]) -> Attributes:
    """Return columns of a file: numbers where all entries are, unless the name says that they are codes."""
    return Attributes({name: _of_text(name, list(values)) for name, values in columns.items()})


def _of_text(name: str, values: list[Any]) -> Any:
    texts = ["" if is_missing(value) else str(value).strip() for value in values]
    if "".join(char for char in name.lower() if char.isalnum()) in CODES:
        return texts
    filled = [text for text in texts if text]
    # 0101 is no number, though it could be read as one.
    if not filled or any(text[0] == "0" and text[1:2].isdecimal() for text in filled):
        return texts
    try:
        numbers = np.array([float(text) if text else np.nan for text in texts])
    except ValueError:
        return texts
    return texts if np.isinf(numbers).any() or any("_" in text for text in filled) else numbers


def _column(values: Any) -> Column:
    if isinstance(values, Column):
        return values
    raw = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if raw.ndim != 1:
        raise DataError(f"a column has one entry for each row, not shape {raw.shape}")
    if raw.dtype.kind == "O" and all(is_missing(v) or _is_number(v) for v in raw):
        raw = np.array([np.nan if is_missing(v) else float(v) for v in raw])
    if raw.dtype.kind in "iuf":
        numbers = raw.astype(np.float64)
        if np.isinf(numbers).any():
            raise DataError("a column of numbers holds infinity; use NaN for what is missing")
        return Column(numbers)
    distinct, code = factorize(np.array(["" if is_missing(v) else str(v) for v in raw], dtype=object))
    kept = [place for place, word in enumerate(distinct.tolist()) if word != ""]
    new = np.full(len(distinct), MISSING, np.int32)
    new[kept] = np.arange(len(kept))
    return Column(new[code] if len(code) else np.zeros(0, np.int32), tuple(distinct[kept].tolist()))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
