"""Tables with a row for each agent: columns are places of an ordering, or items with ranks or ratings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from permix.data.ballots import Ballots
from permix.data.io.forms import scales
from permix.data.io.layouts import detection
from permix.data.io.layouts.notation import refuse_counts
from permix.data.io.table_columns import Table, missing_mask, naturals, numbers, numbers_of
from permix.data.labels import Array, Label, clean_items, encode_items
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings, repeated_item
from permix.errors import Argument, DataError, Part, Wording


def read_orders(
    table: Table,
    names: tuple[Label, ...] | None,
    places: list[int],
    below: Array,
    marks: bool = False,
    **about: Any,
) -> Rankings | Ballots:
    """Read rows that list items, best first.

    ``marks`` says that rules are there for places left out and for items listed again: where rows have
    some, the marks are returned.
    """
    flat = naturals(np.column_stack([table.columns[place].astype(object) for place in places]).ravel())
    width = len(places)
    flat = _without_zeros(table, flat, width, names)
    if flat.dtype.kind == "O" and all(entry is None for entry in flat):
        raise DataError(f"{table.source}: no row lists an item")

    def where(position: int) -> str:
        row, column = divmod(position, width)
        return f"{table.where(row)}, column {table.names[places[column]]!r}"

    if flat.dtype.kind == "O":
        refuse_counts(table, flat[::width], flat)
    items, codes = encode_items(flat, names, None, where)
    orders = codes.reshape(-1, width)
    listed = orders >= 0
    table.refuse(~listed.any(axis=1), "no item is listed; drop the row")
    gap = (listed[:, 1:] & ~listed[:, :-1]).any(axis=1)
    row, item = repeated_item(orders, len(items))
    if (gap.any() or row >= 0) and marks and below.all():
        ballot, rank = np.nonzero(listed)
        return Ballots(
            items=tuple(items),
            n_ranks=width,
            ballot=ballot.astype(np.int64),
            rank=rank.astype(np.int32),
            item=orders[ballot, rank].astype(np.int32),
            **about,
        )
    if gap.any():
        raise DataError(
            f"{table.where(int(np.argmax(gap)))}: an entry is blank, but another follows; close the gap, or ",
            *_rule("skipped", "close-up", "moves later entries up, and counts such rows"),
        )
    if row >= 0:
        raise DataError(
            f"{table.where(row)}: {items[item]!r} is listed twice; mend it, or ",
            *_rule("repeats", "first", "takes the first entry, and counts such rows"),
        )
    return Rankings._from_arrays(orders, items, unlisted_below=below, **about)


def _rule(name: str, value: str, does: str) -> tuple[Part, ...]:
    """Name a rule of cleaning, which files have and data frames do not."""
    option = f"--{name} {value} {does}"
    return (Wording(f"permix.read(path, {name}={value!r}) {does}", option),)


def refuse_numbers_among_names(table: Table, places: list[int]) -> None:
    """Refuse a column of numbers next to columns of names, unless all are called places of an ordering."""
    if all(detection.position(table.names[place]) for place in places):
        return
    values = [numbers(table.columns[place]) for place in places]
    text = [place for place, column in zip(places, values, strict=True) if column is None]
    for place in text if table.numbered else ():
        _refuse_mostly_numbers(table, place)
    for place, column in zip(places, values, strict=True):
        if text and column is not None and not np.isnan(column).all():
            raise DataError(
                f"{table.source}: column {table.names[place]!r} holds numbers while "
                f"{table.names[text[0]]!r} holds names, so they are not places of one ordering. A column "
                "that counts or names agents is set apart with ",
                *(Argument("count_column"), " or ", Argument("agent_column")),
                "; if numbers are names of items, ",
                Wording("pass items=[...]", "call the columns pos1, pos2, …"),
            )


def _refuse_mostly_numbers(table: Table, place: int) -> None:
    """Refuse a column of numbers with a few words, such as its name, or that of another table below."""
    entries = table.columns[place][~missing_mask(table.columns[place])].tolist()
    words = [entry for entry in entries if not re.fullmatch(r"[-+]?[0-9]+([.,][0-9]+)?", str(entry))]
    if 2 * len(words) < len(entries):
        row = table.columns[place].tolist().index(words[-1])
        raise DataError(
            f"{table.where(row)}: {words[-1]!r} stands in a column of numbers, as names of columns do. If "
            "the file holds several tables, put each into a file; if line 1 names the columns, say ",
            Argument("header", True),
            "; if numbers are names of items, ",
            Wording("pass items=[...]", "call the columns pos1, pos2, …"),
        )


def _without_zeros(table: Table, flat: Array, width: int, names: tuple[Label, ...] | None) -> Array:
    """Decide whether 0 is an item or padding, and put None where it is padding."""
    zero = np.asarray(flat == 0).reshape(-1, width)
    if names is not None:
        padding = 0 not in names
    elif not zero.any():
        return flat
    else:
        entries = flat.reshape(-1, width)
        given = np.asarray(entries != None) & ~zero  # noqa: E711 (elementwise)
        followed = zero & (np.cumsum(given[:, ::-1], axis=1)[:, ::-1] > 0)
        repeated = zero.sum(axis=1) > 1
        if repeated.any() and followed.any():
            row = int(np.argmax(followed.any(axis=1)))
            raise DataError(
                f"{table.where(row)}: 0 stands before another item here, but twice in one row on "
                f"{table.where(int(np.argmax(repeated)))}; leave places without an item blank"
            )
        if not repeated.any() and not followed.any():
            row = int(np.argmax(zero.any(axis=1)))
            raise DataError(
                f"{table.where(row)}: 0 could be an item or a place left empty; ",
                Wording(
                    "pass items= with the names, with or without 0",
                    "leave such places blank, or call the item otherwise",
                ),
            )
        padding = bool(repeated.any())
    if not padding:
        return flat
    result = flat.astype(object)
    result[zero.ravel()] = None
    return result


def read_ranks(
    table: Table, names: tuple[Label, ...] | None, places: list[int], below: Array, **about: Any
) -> Rankings | Preferences:
    """Read ranks in a column for each item, 1 = best; blank or 0 is not ranked."""
    columns = {table.names[place]: place for place in places}
    if names is not None:
        for name in names:
            if name not in columns:
                raise DataError(f"{table.source}: no column for item {name!r}")
        places = [columns[name] for name in names]
    items = clean_items(table.names[place] for place in places)
    ranks = np.empty((table.n_rows, len(places)))
    for target, place in enumerate(places):
        column = table.columns[place]
        left_out = ("; columns that hold no ranks are left out with ", Wording("items=[...]", "--ignore"))
        values = numbers_of(table, place, f", column {table.names[place]!r}: rank", *left_out)
        bad = (values < 0) | np.isinf(values)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"{table.where(row)}, column {table.names[place]!r}: rank {column[row]!r} is not a "
                "positive number; ranks count from 1, blank or 0 = not ranked"
            )
        if names is None and np.nanmax(values, initial=0) > len(places):
            raise DataError(
                f"{table.source}: column {table.names[place]!r} goes up to {np.nanmax(values):g}, but "
                f"ranks of {len(places)} items end at {len(places)}. If it counts agents, say ",
                Argument("count_column", table.names[place]),
                "; columns that are no items are left out ",
                Wording("by naming the items: items=[...]", "with --ignore"),
            )
        ranks[:, target] = values
    ranks[ranks == 0] = np.nan
    given = ~np.isnan(ranks)
    table.refuse(~given.any(axis=1), "no item is ranked; drop the row")
    ascending = np.sort(ranks, axis=1)
    if np.any(ascending[:, 1:] == ascending[:, :-1]):
        tied = Preferences.from_ranks(ranks, items=items, **about)
        return tied._replaced(rest_below=below)
    strict = Rankings.from_ranks(ranks, items=items, **about)
    return strict._replaced(unlisted_below=below)


def read_wide_ratings(
    table: Table,
    names: tuple[Label, ...] | None,
    places: list[int],
    below: Array,
    categories: Iterable[str] | None,
    **about: Any,
) -> Preferences:
    """Ratings in a column for each item, higher is better."""
    if names is not None:
        columns = {table.names[place]: place for place in places}
        missing = [name for name in names if name not in columns]
        if missing:
            raise DataError(f"{table.source}: no column for item {missing[0]!r}")
        places = [columns[name] for name in names]
    items = clean_items(table.names[place] for place in places)
    scored = scales.scored(table, places, categories)
    scales.refuse_codes(table, scored)
    ratings = np.column_stack(scored)
    bad = np.isinf(ratings)
    table.refuse(bad.any(axis=1), "a rating is not finite")
    given = ~np.isnan(ratings)
    table.refuse(~given.any(axis=1), "no item is rated; drop the row")
    read = Preferences.from_ratings(ratings, items=items, layout="matrix", **about)
    return read._replaced(rest_below=below | given.all(axis=1))
