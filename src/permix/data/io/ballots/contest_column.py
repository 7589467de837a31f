"""A column that says which contest a row is of, in a table of ballots in several contests.

It is called contest, race or office, and no candidate stands in two of its contests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from permix.data.io.column_names import plain
from permix.data.io.marks import is_mark
from permix.data.io.table_columns import is_blank
from permix.data.labels import Label

_CALLED = frozenset(
    [
        *("contest", "contestname", "contestid", "contesttitle", "race", "racename", "raceid"),
        *("office", "officename", "officeid", "seat", "election", "electionname", "electionid"),
    ]
)


def contest_column(
    names: Sequence[Label], columns: Sequence[Any], candidates: Sequence[int]
) -> tuple[int, list[str]] | None:
    """Return the place of a column that says the contest, and its contests; None where there is none.

    ``candidates`` are the places of the columns that hold candidates.

    Examples
    --------
    >>> columns = [["Mayor", "Mayor", "Clerk"], ["a", "b", "x"], ["b", "a", "y"]]
    >>> contest_column(["Office", "rank1", "rank2"], columns, [1, 2])
    (0, ['Mayor', 'Clerk'])
    """
    for place, name in enumerate(names):
        if plain(name) not in _CALLED or place in candidates:
            continue
        said = [str(entry).strip() for entry in columns[place]]
        if any(map(is_blank, columns[place])):
            continue
        stands: dict[str, str] = {}  # candidate -> contest
        for at in candidates:
            for contest, entry in zip(said, columns[at], strict=True):
                told = str(entry).strip()
                nobody = is_blank(entry) or is_mark(told) or plain(told) in ("writein", "uwi")
                if not nobody and stands.setdefault(told, contest) != contest:
                    return None
        found = list(dict.fromkeys(said))
        return (place, found) if len(set(stands.values())) > 1 else None
    return None
