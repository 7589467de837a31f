"""Names and indices: item names, agent ids and counts are checked and turned into numbers here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Sized
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from permix.errors import DataError

Label = int | str
Array = npt.NDArray[Any]

MOST_ITEMS = 10_000_000  # more are a mistake, and would fill the memory
_MISSING_TYPES = ("NAType", "NaTType")  # pandas' own markers, named so that pandas need not be imported


class _HasItems(Protocol):
    @property
    def items(self) -> tuple[Label, ...]: ...


class OverItems:
    """Base of what has ``items``: also their number."""

    @property
    def n_items(self: _HasItems) -> int:
        """Number of items."""
        return len(self.items)


def is_missing(value: object) -> bool:
    """Say whether ``value`` stands for nothing: None, NaN, pandas' NA, the empty string."""
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return True
    if isinstance(value, str):
        return value == ""
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def clean_label(value: object, what: str = "item") -> Label:
    """Turn one name into a plain ``str`` or ``int``, or say why it cannot be one."""
    if isinstance(value, str):
        if value == "":
            raise DataError(f"an {what} name is empty; every {what} needs a name")
        return str(value)
    if isinstance(value, bool | np.bool_):
        raise DataError(f"{what} name {value!r} is a truth value; use strings or integers")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    if isinstance(value, int | np.integer):
        if what == "item" and value < 0:
            raise DataError(
                f"item name {int(value)} is negative; -1 marks the end of a row, so use 0 or more"
            )
        return int(value)
    if is_missing(value):
        raise DataError(f"an {what} name is missing ({value!r}); every {what} needs a name")
    raise DataError(
        f"{what} name {value!r} is a {type(value).__name__}; use strings or integers, for example str(name)"
    )


def clean_items(items: Iterable[object]) -> tuple[Label, ...]:
    """Check item names: strings or integers from 0, none twice."""
    if isinstance(items, str):
        raise DataError(f"items={items!r} is one string; pass a list of names, for example items=[{items!r}]")
    if isinstance(items, Sized):
        _refuse_too_many(len(items), "items has {} names")
    names = tuple(clean_label(name) for name in items)
    for first, again in repeats(names):
        raise DataError(
            f"item {names[first]!r} is listed twice in items (positions {first + 1} and {again + 1}); "
            "give every item its own name"
        )
    return names


def repeats(values: Iterable[Hashable]) -> Iterator[tuple[int, int]]:
    """Yield, for each value that was there before, its first place and this one."""
    first: dict[Hashable, int] = {}
    for place, value in enumerate(values):
        if first.setdefault(value, place) != place:
            yield first[value], place


def as_column(values: object, what: str) -> Array:
    """Turn a sequence into a flat array of int64 or of objects, without changing what it says."""
    if isinstance(values, np.ndarray):
        column = values
    elif hasattr(values, "to_numpy"):
        column = np.asarray(values.to_numpy())
    else:
        listed = list(values)  # type: ignore[call-overload]
        types = set(map(type, listed))
        if types and types <= {int}:
            return _as_int64(listed, what)
        return as_objects(listed)
    kind = column.dtype.kind
    if kind in "iu":
        if kind == "u" and column.size and int(column.max()) > np.iinfo(np.int64).max:
            raise DataError(f"an {what} number does not fit into 64 bits; use strings instead")
        return column
    if kind == "f" and bool(whole_numbers(column).all()):
        return column.astype(np.int64)
    if kind in "fOUT":
        return column.astype(object)
    raise DataError(f"{what} names of type {column.dtype} are not understood; use strings or integers")


def _as_int64(values: Array | list[int], what: str) -> Array:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        raise DataError(f"an {what} number does not fit into 64 bits; use strings instead") from None


def whole_numbers(values: Array) -> Array:
    """Say which entries are whole numbers that a float holds exactly; NaN and infinities are not."""
    return np.asarray((np.floor(values) == values) & (np.abs(values) < 2**53))


def as_objects(values: list[Any]) -> Array:
    """Put a list into an array of objects, one entry each, whatever they are."""
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return column


def factorize(values: Array) -> tuple[Array, Array]:
    """Return the distinct values and, for each entry, which one it is.

    Integers come out sorted, objects in order of first appearance. ``values`` is flat, from
    :func:`as_column`.
    """
    if values.dtype.kind in "iu":
        if values.size == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
        low, high = int(values.min()), int(values.max())
        if high - low < max(2 * values.size, 1 << 16):  # a table of everything in between is no larger
            offsets = values - low
            present = np.zeros(high - low + 1, dtype=np.bool_)
            present[offsets] = True
            numbers = np.cumsum(present, dtype=np.int32) - np.int32(1)
            return np.flatnonzero(present) + low, numbers[offsets]
        distinct = np.unique(values)
        return distinct.astype(np.int64), np.searchsorted(distinct, values).astype(np.int32)
    place_of: dict[Any, int] = {}

    def place(value: Any) -> int:
        try:
            return place_of.setdefault(value, len(place_of))
        except TypeError:  # a list, which has no hash
            why = f"{value!r} stands where one name should be; for ties use Preferences.from_levels"
            raise DataError(why) from None

    codes = np.fromiter(map(place, values), dtype=np.int32, count=values.size)
    return as_objects(list(place_of)), codes


def encode_items(
    values: Array,
    items: Iterable[object] | None,
    n_items: int | None,
    where: Callable[[int], str],
) -> tuple[tuple[Label, ...], Array]:
    """Turn a flat column of item names or indices into indices; missing entries become -1.

    Without ``items`` the names found are the items (sorted when all are integers, else in order of
    first appearance). With ``items``, entries are names; where no entry is a name, no name is an
    integer and all entries are integers, they are 0-based indices.

    ``where`` says in words where the entry at a flat position stands, for messages.
    """
    names = _known_items(items, n_items)
    if names is not None and names == tuple(range(len(names))) and values.dtype.kind in "iu":
        outside = (values < -1) | (values >= len(names))  # the common case needs no table
        if outside.any():
            at = int(np.argmax(outside))
            raise DataError(
                f"{where(at)}: {int(values[at])} is not an item; the {len(names)} items are numbered "
                f"0 to {len(names) - 1}. Count from 0, or pass items= with the names"
            )
        return names, values.astype(np.int32)

    found, codes = factorize(values)
    labels: list[Label | None] = []
    for code, value in enumerate(found.tolist()):
        padding = isinstance(value, int | float | np.number) and value == -1
        try:
            labels.append(None if padding or is_missing(value) else clean_label(value))
        except DataError as error:
            raise DataError(f"{where(int(np.argmax(codes == code)))}: {error}") from None
    stated = [label for label in labels if label is not None]
    all_numbers = all(isinstance(label, int) for label in stated)
    if names is None:
        names = tuple(dict.fromkeys(sorted(stated) if all_numbers else stated))
    index: dict[Label, int] = {name: position for position, name in enumerate(names)}
    by_index = all_numbers and bool(stated) and not any(isinstance(name, int) for name in names)
    table = np.full(len(found) + 1, -1, dtype=np.int32)
    for code, label in enumerate(labels):
        if label is None:
            continue
        place = index.get(label)
        if by_index and isinstance(label, int):
            place = label if label < len(names) else None
        if place is None:
            known = f"numbered 0 to {len(names) - 1}" if by_index else some_names(names)
            raise DataError(
                f"{where(int(np.argmax(codes == code)))}: {label!r} is not an item; the items are {known}. "
                "Mend the entry or add it to items="
            )
        table[code] = place
    return names, table[codes]


def _known_items(items: Iterable[object] | None, n_items: int | None) -> tuple[Label, ...] | None:
    if n_items is not None:
        if isinstance(n_items, bool) or not isinstance(n_items, int | np.integer) or n_items < 1:
            raise DataError(f"n_items={n_items!r} must be a positive integer")
        _refuse_too_many(int(n_items), "n_items is {}")
        if items is None:
            return tuple(range(int(n_items)))
    if items is None:
        return None
    names = clean_items(items)
    if n_items is not None and n_items != len(names):
        raise DataError(f"n_items={n_items} but items has {len(names)} names; leave n_items out")
    return names


def _refuse_too_many(number: int, said: str) -> None:
    if number > MOST_ITEMS:
        raise DataError(
            f"{said.format(number)}, and more than {MOST_ITEMS:,} items are not taken; leave both out, "
            "and the items are those that are found"
        )


def encode_agents(
    values: Array, agents: object | None, where: Callable[[int], str]
) -> tuple[int, Array | None, Array]:
    """Return the number of agents, their ids (None for 0..n-1) and the agent index of each entry.

    Without ``agents`` the ids found are taken: sorted when all are integers, else in order of first
    appearance.
    """
    found, codes = factorize(values)
    if found.dtype == object:
        for code, value in enumerate(found.tolist()):
            try:
                found[code] = clean_label(value, "agent")
            except DataError as error:
                raise DataError(f"{where(int(np.argmax(codes == code)))}: {error}") from None
    if agents is None:
        if found.dtype == object and all(isinstance(value, int) for value in found):
            found = _as_int64(found, "agent")
            order = np.argsort(found)
            found, codes = found[order], np.argsort(order).astype(np.int32)[codes]
        return len(found), clean_agents(found, len(found)), codes
    given = as_column(agents, "agent")
    ids = clean_agents(given, len(given))
    names = range(len(given)) if ids is None else ids.tolist()
    for first, _ in repeats(names):
        raise DataError(f"agent {names[first]!r} is listed twice in agents; give every agent its own id")
    index = {name: position for position, name in enumerate(names)}
    table = np.empty(len(found) + 1, dtype=np.int32)
    for code, value in enumerate(found.tolist()):
        place = index.get(value)
        if place is None:
            at = int(np.argmax(codes == code))
            raise DataError(f"{where(at)}: agent {value!r} is not among agents=; add it or leave the row out")
        table[code] = place
    return len(given), ids, table[codes]


def clean_agents(agents: object | None, n: int) -> Array | None:
    """Check agent ids; None stands for 0..n-1, which costs no memory."""
    if agents is None:
        return None
    if isinstance(agents, str):
        raise DataError(f"agents={agents!r} is one string; pass a list with one id per row")
    ids = as_column(agents, "agent")
    if ids.ndim != 1 or len(ids) != n:
        raise DataError(f"agents has shape {ids.shape} but there are {n} rows; give one id per row")
    if ids.dtype.kind in "iu":
        ids = ids.astype(np.int64)
        if n and ids[0] == 0 and np.array_equal(ids, np.arange(n)):
            return None
        return ids
    if not set(map(type, ids)) <= {int, str}:
        cleaned = np.empty(n, dtype=object)
        for position, value in enumerate(ids):
            try:
                cleaned[position] = clean_label(value, "agent")
            except DataError as error:
                raise DataError(f"row {position + 1}: {error}") from None
        ids = cleaned
    if n and set(map(type, ids)) == {int}:
        return clean_agents(_as_int64(ids, "agent"), n)
    return ids


def clean_counts(counts: object | None, n: int, name: Callable[[int], str]) -> Array:
    """Check multiplicities: positive whole numbers, one per row; None means one each."""
    if counts is None:
        return np.ones(n, dtype=np.int64)
    values = np.asarray(counts)
    if values.shape != (n,):
        raise DataError(f"counts has shape {values.shape} but there are {n} rows; give one count per row")
    if values.dtype.kind not in "iuf":
        raise DataError(f"counts of type {values.dtype} are not whole numbers; convert them to integers")
    bad = ~(whole_numbers(values) & (values > 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(
            f"{name(at)}: count {values[at]} is not a positive whole number; "
            "leave rows that nobody stated out"
        )
    return values.astype(np.int64)


# Beyond it, sums of counts are no whole numbers any more in floating point, and soon none at all.
MOST_AGENTS = 2**53


def refuse_sums_beyond(counts: Array) -> None:
    """Refuse counts whose sum would not be exact, or would start again at the least number."""
    total = float(counts.sum(dtype=np.float64))
    if total > MOST_AGENTS:
        raise DataError(
            f"the counts add up to {total:.3g} agents, more than can be counted exactly ({MOST_AGENTS:,}); "
            f"row {int(np.argmax(counts)) + 1} alone has {int(counts.max()):,}. Divide the counts"
        )


def resolve_item(item: object, items: Sequence[Label], index: dict[Label, int]) -> int:
    """Index of one item given by name, or by index where no name is an integer."""
    label = clean_label(item)
    if label in index:
        return index[label]
    if isinstance(label, int) and label < len(items) and not any(isinstance(name, int) for name in items):
        return label
    raise DataError(f"{label!r} is not an item; the items are {some_names(items)}")


def some_names(names: Sequence[Label], most: int = 8) -> str:
    """First few names for a message."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f", … ({len(names)} in all)" if len(names) > most else "")
