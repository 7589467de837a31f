"""Checks of what a matrix is made of: shape, positions, names, values."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from permix.data.io.table_columns import is_blank
from permix.data.labels import (
    MOST_ITEMS,
    Array,
    as_column,
    as_objects,
    factorize,
    is_missing,
    repeats,
    some_names,
)
from permix.errors import DataError, Wording

Names = tuple[str, ...] | None
#: Whole numbers up to here are exact as floats.
MOST_EXACT = 2**53
#: Names that a misspelled one is compared with.
MOST_COMPARED = 5000
TOO_LONG = (
    "the value {} has more digits than a number keeps (whole numbers are exact up to 2**53, about 9e15), so "
    "that different ones would become the same; write such values as text, for example with a letter in front"
)


def checked_shape(shape: Any) -> tuple[int, int]:
    """Check the shape of a matrix."""
    try:
        rows, columns = (int(size) for size in shape)
    except (TypeError, ValueError):
        raise DataError(f"the shape of a matrix is (rows, columns), not {shape!r}") from None
    for size, what in ((rows, "rows"), (columns, "columns")):
        if size < 1:
            raise DataError(f"the matrix has no {what} (shape {rows} x {columns}); it needs at least one")
        if size > MOST_ITEMS:
            raise DataError(
                f"the matrix has {size:,} {what}; more than {MOST_ITEMS:,} are not taken. Leave those "
                "without filled cells out"
            )
    return rows, columns


def checked_positions(values: object, size: int, what: str) -> npt.NDArray[np.int64]:
    """Check positions of rows or columns, counted from 0."""
    places = np.asarray(values)
    if places.ndim != 1:
        raise DataError(f"positions of {what}s must be a flat sequence; theirs have shape {places.shape}")
    if places.size == 0:
        return np.zeros(0, dtype=np.int64)
    if places.dtype.kind not in "iu":
        raise DataError(
            f"positions of {what}s are whole numbers from 0, not {places.dtype}; for names use "
            "Cells.from_long"
        )
    bad = np.flatnonzero((places < 0) | (places >= size))
    if bad.size:
        raise DataError(
            f"entry {int(bad[0]) + 1}: {what} {places[bad[0]]} does not exist; {what}s are counted from 0 "
            f"to {size - 1}"
        )
    return places.astype(np.int64)


def clean_names(names: Iterable[object] | None, n: int, what: str) -> Names:
    """Check names of rows or columns: one each, all different, text (numbers are written out)."""
    if names is None:
        return None
    if isinstance(names, str):
        raise DataError(f"{what}_names={names!r} is one string; pass a list with one name per {what}")
    cleaned = tuple(_name(name, what) for name in names)
    if len(cleaned) != n:
        raise DataError(f"there are {n} {what}s but {len(cleaned)} names for them; give one each")
    for first, again in repeats(cleaned):
        raise DataError(f"{what}s {first + 1} and {again + 1} are both called {cleaned[first]!r}; rename one")
    return cleaned


def _name(value: object, what: str) -> str:
    if is_missing(value):
        raise DataError(f"the name of a {what} is missing; every {what} needs one")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value)


def called(what: str, position: int, names: Names) -> str:
    """Words for a row or column; numbers count from 1."""
    return f"{what} {position + 1 if names is None else repr(names[position])}"


def index_of(name: object, names: Names, places: dict[str, int], n: int, what: str) -> int:
    """Find a row or column: by name first; by number where numbers are no names."""
    whole = isinstance(name, int | np.integer) and not isinstance(name, bool)
    if names is not None and (isinstance(name, str) or whole) and str(name) in places:
        return places[str(name)]
    numbered = names is None or not any(known.isdecimal() for known in names)
    if whole and numbered and 0 <= int(name) < n:  # type: ignore[call-overload]
        return int(name)  # type: ignore[call-overload]
    known = f"are numbered 0 to {n - 1}" if names is None else f"are {some_names(names)}"
    raise DataError(f"there is no {what} {name!r}{meant(name, names or ())}; the {what}s {known}")


def encode_names(values: object, names: Iterable[object] | None, what: str) -> tuple[Array, tuple[str, ...]]:
    """Turn a column of names into positions among ``names``, or among those found."""
    column = as_column(values, what)
    if column.ndim != 1:
        raise DataError(f"names of {what}s must be a flat sequence; theirs have shape {column.shape}")
    found, codes = factorize(column)
    distinct = found.tolist()
    for code in [code for code, value in enumerate(distinct) if is_missing(value)]:
        at = int(np.argmax(codes == code)) + 1
        raise DataError(f"entry {at}: the {what} is missing; name it or leave the entry out")
    written = [_name(value, what) for value in distinct]
    listed = list(dict.fromkeys(written) if names is None else names)
    chosen = clean_names(listed, len(listed), what) or ()
    place_of = {name: place for place, name in enumerate(chosen)}
    for code in [code for code, name in enumerate(written) if name not in place_of]:
        at = int(np.argmax(codes == code)) + 1
        known = some_names(chosen)
        raise DataError(f"entry {at}: there is no {what} {written[code]!r}; the {what}s are {known}")
    return np.array([place_of[name] for name in written], dtype=np.int64)[codes], chosen


def unless_plain(names: tuple[str, ...]) -> Names:
    """Names 0, 1, 2, … say nothing that positions do not."""
    return None if all(name == str(place) for place, name in enumerate(names)) else names


def meant(name: object, names: Sequence[object]) -> str:
    """Words that suggest the name which somebody is likely to mean; none where no name is near.

    Examples
    --------
    >>> meant("Person 1", ["person 1", "person 2"])
    " (did you mean 'person 1'?)"
    """
    known = [str(other) for other in names[:MOST_COMPARED]]
    same = [other for other in known if other.strip().lower() == str(name).strip().lower()]
    near = same or difflib.get_close_matches(str(name), known, n=1, cutoff=0.8)
    return f" (did you mean {near[0]!r}?)" if near else ""


def match_numbers(names: tuple[str, ...], n: int, what: str) -> Array:
    """Position of rows or columns among ``n`` without names: names must be numbers, from 0 or from 1."""
    if not all(name.isdecimal() and str(int(name)) == name for name in names):
        raise DataError(
            f"this matrix has names of {what}s ({some_names(names, 3)}), and the fitted one has none to "
            f"match them with: fit a matrix that has them, or give all {what}s in the same order without "
            "names, or their numbers from 0"
        )
    places = np.array([int(name) for name in names], dtype=np.int64)
    first = 0 if 0 in places else 1
    if places.max() > n - 1 + first:
        raise DataError(
            f"there is no {what} {places.max()}: the fitted ones have no names, and their numbers are 0 to "
            f"{n - 1}, or 1 to {n}"
        )
    if first == 1 and n not in places:
        raise DataError(
            f"the {what}s {some_names(names, 3)} could be numbered from 0 or from 1, and the fitted ones "
            f"have no names: give {what} 0 as well, or {what} {n}, with a blank cell, or fit a matrix that "
            "has names"
        )
    return places - first


def match_names(ours: Names, theirs: Names, n_ours: int, n_theirs: int, what: str) -> Array:
    """Position among theirs of each of our rows or columns: by name, or by number where theirs have none."""
    if ours is not None and theirs is None:
        return match_numbers(ours, n_theirs, what)
    if ours is None and n_ours != n_theirs:
        raise DataError(
            f"this matrix has {n_ours} {what}s and the one that was fitted {n_theirs}; without names on "
            "both sides they must be the same"
        )
    if ours is None or theirs is None or ours == theirs:
        return np.arange(n_ours)
    place_of = {name: place for place, name in enumerate(theirs)}
    for name in ours:
        if name not in place_of:
            new = ("; ", Wording("score_samples", "--what groups"), " is for new rows")
            raise DataError(
                f"the {what} {name!r} is unknown{meant(name, theirs)}; the fitted {what}s are "
                f"{some_names(theirs)}. Rename it or leave it out",
                *(new if what == "row" else ()),
            )
    return np.array([place_of[name] for name in ours], dtype=np.int64)


def clean_values(values: object) -> tuple[Array, Array]:
    """Return the values that are there, all floats or all text, and which are there."""
    column = as_flat(values)
    if column.ndim != 1:
        raise DataError(f"values must be a flat sequence; theirs have shape {column.shape}")
    if column.dtype.kind in "biuf":
        numbers = as_floats(column)
        present = ~np.isnan(numbers)
        return numbers[present], present
    if column.dtype.kind not in "OUT":
        raise DataError(f"values of type {column.dtype} are neither numbers nor text; convert them first")
    entries = column.tolist()
    present = np.array([not is_blank(entry) for entry in entries], dtype=np.bool_)
    kept = column[present].tolist()
    text = [isinstance(entry, str) for entry in kept]
    if kept and all(text):
        return as_objects([str(entry) for entry in kept]), present
    if any(text):
        at, other = text.index(True), text.index(False)
        raise DataError(
            f"some values are text ({kept[at]!r}) and some are not ({shown(kept[other])}); write all as "
            "text, or all as numbers"
        )
    return np.array([_as_float(entry) for entry in kept], dtype=np.float64), present


def _as_float(entry: Any) -> float:
    try:
        number = float(entry)
    except (TypeError, ValueError, OverflowError):
        if isinstance(entry, int):
            raise too_long(entry) from None
        what = f"the value {entry!r} of type {type(entry).__name__} is neither a number nor text"
        raise DataError(what) from None
    if isinstance(entry, int | np.integer) and int(entry) != number:
        raise too_long(int(entry))
    return number


def as_floats(column: Array) -> Array:
    """Turn numbers into floats; whole numbers that would change on the way are refused, not merged."""
    floats = column.astype(np.float64)
    if column.dtype.kind in "iu" and column.dtype.itemsize > 4 and column.size:
        for at in np.flatnonzero(np.abs(floats) >= MOST_EXACT).tolist():
            if int(floats[at]) != int(column[at]):
                raise too_long(int(column[at]))
    return floats


def too_long(value: int) -> DataError:
    """Return the error about a whole number that a float does not hold."""
    return DataError(TOO_LONG.format(shown(value)))


def shown(value: object) -> str:
    """Write a value for a message; absurdly long numbers and texts are not written out."""
    if isinstance(value, int) and abs(value) >= 10**25:
        return f"(a whole number of about {int(value.bit_length() * 0.30103) + 1:,} digits)"
    if isinstance(value, str) and len(value) > 60:
        return repr(value[:50] + "…")
    return repr(value)


def as_flat(values: object) -> Array:
    """Return a sequence of values as an array that keeps each as it is."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    try:
        return as_objects(list(values))  # type: ignore[call-overload]
    except TypeError:
        raise DataError(f"a {type(values).__name__} is not a sequence of values") from None
