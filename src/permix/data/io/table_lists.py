"""Rankings in one cell: ``Ann>Bob>Cy``, with ``=`` for ties, or ``Ann;Bob;Cy``."""

from __future__ import annotations

import re

from permix.data.io.column_names import plain
from permix.data.io.table_columns import Table, missing_mask, naturals
from permix.data.io.table_layouts import position
from permix.data.labels import Array, Label, as_objects
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError

SEPARATORS = (">", ";", "|", ",")
# A name that no column has.
LISTED = "a ranking in each cell"


# What columns of rankings are called; in others, marks that may be parts of names separate nothing.
LISTS = frozenset(
    [
        *("ranking", "rankings", "ballot", "ballots", "order", "orders", "ordering", "preferences", "list"),
        *("votes", "vote", "choices", "ranks", "ranked", "preference", "answer", "response"),
    ]
)


def with_lists(table: Table, layout: str) -> Table:
    """Call a column of rankings in one cell ``LISTED``, so that it is taken for nothing else."""
    if layout not in ("auto", "orders"):
        return table
    said = layout == "orders" and len(table.names) == 1
    for place, column in enumerate(table.columns):
        called = table.names[place]
        if position(called) is not None or re.fullmatch(r"rank\d+", plain(called)):
            continue  # one item of an ordering, whatever marks are in its name
        mark = _separator(column)
        if mark == ">" or (mark and (said or table.numbered or plain(called) in LISTS)):
            if mark == "," and layout != "orders" and not _parts_move(column):
                row = next(row for row, entry in enumerate(column) if "," in str(entry))
                raise DataError(
                    f"{table.where(row)}: the comma in {str(column[row])!r} could separate items or be part "
                    "of a name. If it separates items, say ",
                    Argument("layout", "orders"),
                    "; if not, call the column otherwise",
                )
            names = list(table.names)
            names[place] = LISTED
            return table._replace(names=names)
    return table


def _parts_move(column: Array) -> bool:
    """Whether what commas separate stands at different places, as items do and parts of names do not."""
    places: dict[str, set[int]] = {}
    for entry in column[~missing_mask(column)]:
        for place, part in enumerate(str(entry).split(",")):
            places.setdefault(part.strip(), set()).add(place)
    moving = sum(len(found) > 1 for found in places.values())
    return 2 * moving >= len(places)


def _separator(column: Array) -> str | None:
    if column.dtype.kind != "O":
        return None
    texts = [str(entry) for entry in column[~missing_mask(column)]]
    for mark in SEPARATORS:
        several = sum(mark in text.strip(mark) for text in texts)
        if 2 * several >= len(texts) > 0:  # one item alone is a list as well
            return mark
    return None


def read_lists(
    table: Table,
    place: int,
    names: tuple[Label, ...] | None,
    below: Array,
    counts: Array,
    agents: Array | None,
) -> Rankings | Preferences:
    """Read a column of lists, best first."""
    column = table.columns[place]
    mark = _separator(column)
    assert mark is not None
    rows: list[list[list[str]]] = []
    for row, entry in enumerate(column.tolist()):
        text = str(entry).strip()
        if missing_mask(column[row : row + 1])[0]:
            raise DataError(f"{table.where(row)}: no item is listed; drop the row")
        other = next((each for each in SEPARATORS[:2] if each != mark and each in text), None)
        if other is not None:
            raise DataError(
                f"{table.where(row)}: {mark!r} and {other!r} both separate items; use one: {text!r}"
            )
        groups = [
            [part.strip() for part in (re.split("=", group) if mark == ">" else [group])]
            for group in text.rstrip(mark).split(mark)
        ]
        if any(not item for group in groups for item in group):
            raise DataError(f"{table.where(row)}: an item is missing in {text!r}")
        flat = [item for group in groups for item in group]
        if len(set(flat)) < len(flat):
            twice = next(item for item in flat if flat.count(item) > 1)
            raise DataError(f"{table.where(row)}: {twice!r} is listed twice")
        rows.append(groups)
    entries = naturals(as_objects([item for groups in rows for group in groups for item in group])).tolist()
    named = iter(entries)
    levels = [[[next(named) for _ in group] for group in groups] for groups in rows]
    read = Preferences.from_levels(levels, items=names, rest_below=below, counts=counts, agents=agents)
    return read if any(len(group) > 1 for groups in rows for group in groups) else read.to_rankings()
