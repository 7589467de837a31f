"""Columns of several questions in one table: a series of ranks for each office, or one choice for each."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.column_names import LONG_RANKS, plain
from permix.data.io.table_columns import Table, missing_mask, numbers
from permix.data.labels import some_names
from permix.errors import Argument, DataError

# In fewer rows, entries need not come back.
_FEW_ROWS = 4


def entries_of(table: Table, place: int) -> list[str]:
    """Return the different entries of a column."""
    column = table.columns[place]
    return list(dict.fromkeys(str(entry) for entry in column[~missing_mask(column)]))


def _series(table: Table, wide: Sequence[int]) -> dict[str, list[int]]:
    """Return columns by question where they are those of several: ``Mayor 1``, ``Mayor 2``, ``Clerk 1``."""
    series: dict[str, list[int]] = {}  # places of the columns
    numbered: dict[str, list[int]] = {}
    for place in wide:
        name = str(table.names[place])
        match = re.fullmatch(r"(\D*)([0-9]{1,4})(?:st|nd|rd|th)?(\D*)", name)
        called = "" if match is None else f"{match[1].strip(' ._#-')} {match[3].strip(' ._#-')}".strip()
        if match is None or not called:
            return {}
        series.setdefault(called, []).append(place)
        numbered.setdefault(called, []).append(int(match[2]))
    whole = all(found == list(range(1, len(found) + 1)) for found in numbered.values())
    return series if len(series) > 1 and whole else {}


def refuse_several_series(table: Table, wide: list[int]) -> None:
    """Refuse columns of several contests: ``Mayor 1``, ``Mayor 2``, ``Clerk 1``, or ``1st choice Clerk``."""
    series = _series(table, wide)
    if series:
        names = list(series)
        last = table.names[series[names[-1]][0]]
        raise DataError(
            f"{table.source}: the columns are those of several questions, {some_names(names)}, as it seems; "
            "read one with ",
            Argument("contest", names[0]),
            *(", or leave out the columns of the others, such as ", Argument("ignore", last)),
        )


def refuse_several_questions(table: Table, wide: list[int]) -> None:
    """Refuse columns that share no entry, each of which holds some several times: answers to questions."""
    if len(wide) < 2 or table.n_rows < _FEW_ROWS or table.numbered:
        return
    if any(plain(table.names[place]) in LONG_RANKS for place in wide):
        return
    found = [entries_of(table, place) for place in wide]
    n_given = [int(np.count_nonzero(~missing_mask(table.columns[place]))) for place in wide]
    again = all(len(each) < n for each, n in zip(found, n_given, strict=True))
    if again and len(set().union(*found)) == sum(map(len, found)):
        raise DataError(
            f"{table.source}: no entry of column {table.names[wide[0]]!r} stands in "
            f"{table.names[wide[1]]!r}, so they are answers to several questions, as it seems, and no first "
            "and second choice. Read one, and leave out the others with ",
            Argument("ignore", table.names[wide[1]]),
            "; if they are choices, call the columns pos1, pos2, …",
        )


def one_of_several_series(
    table: Table, contest: str | None, roles: Collection[object]
) -> tuple[Table, str] | None:
    """Return the columns of one question where a table has a series of ranks for each of several.

    Ask for the contest where nobody said it; None where the columns are others, or hold numbers alone.
    """
    apart = {at for role in ("agent", "count", "unlisted") for at in table.places(role)}
    apart |= {at for at, name in enumerate(table.names) if name in roles}
    wide = [at for at in range(len(table.names)) if at not in apart]
    wide = [at for at in wide if re.search("[0-9]", str(table.names[at]))]
    series = _series(table, wide)
    if not series or max(map(len, series.values())) < 2:
        return None
    if all(numbers(table.columns[place]) is not None for place in wide):
        return None
    if contest is None:
        found = [{entry for at in places for entry in entries_of(table, at)} for places in series.values()]
        if sum(map(len, found)) == len(set().union(*found)):
            refuse_several_series(table, wide)
        return None
    chosen = chosen_contest({name: name for name in series}, contest, table.source)
    left = {at for places in series.values() for at in places if places != series[chosen]}
    kept = [at for at in range(len(table.names)) if at not in left]
    called = {at: f"choice{rank}" for rank, at in enumerate(series[chosen], start=1)}
    names = [called.get(at, table.names[at]) for at in kept]
    return table._replace(names=names, columns=[table.columns[at] for at in kept]), chosen
