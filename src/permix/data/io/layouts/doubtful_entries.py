"""Entries among the items of ballots that are none, by where and how often they stand.

A line below all others with one entry of its own and a large count is a total; a number far beyond all others
says that there is no answer; one sign alone in several columns marks a box.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from permix.data.io.marks import NO_ANSWER
from permix.data.io.table_columns import Table, is_blank, missing_mask, naturals
from permix.data.labels import Array
from permix.errors import Argument, DataError, PermixWarning

# Last lines that are looked at, and the fewest above them.
_MOST_NOTES, _FEWEST_ABOVE = 10, 2
# Short scales end below these codes, a gap between them.
_NEAR_CODES, _MOST_BELOW = (8, 9), 6
_LETTER = re.compile(r"[^\W\d_]")


def refuse_counted_notes(
    columns: Sequence[Sequence[Any]],
    counts: Array,
    where: Callable[[int], str],
    is_nothing: Callable[[Any], bool] = is_blank,
    parts: Callable[[Any], Collection[str]] = lambda entry: (str(entry).strip(),),
) -> None:
    """Ask about last lines with one entry that stands nowhere else, counted as often as half of all others.

    With a smaller count this is said where all others list several items. ``columns`` hold items by rank.
    """

    def listed(row: int) -> list[str]:
        cells = (column[row] for column in columns)
        return [part for cell in cells if not is_nothing(cell) for part in parts(cell)]

    n_rows = len(counts)
    last: list[str] = []
    while len(last) < min(_MOST_NOTES, n_rows - _FEWEST_ABOVE):
        found = listed(n_rows - 1 - len(last))
        if len(found) != 1 or not _LETTER.search(found[0]):
            break
        last.append(found[0])
    if not last:
        return
    above = [listed(row) for row in range(n_rows - len(last))]
    known = {entry for row in above for entry in row}
    while last and (last[-1] in known or last.count(last[-1]) > 1):
        known.add(last[-1])
        above.append([last.pop()])
    if not last or max(map(len, above)) < 2:
        return
    whole, first = int(counts[: len(above)].sum()), len(above)
    for row in range(first, n_rows):
        entry, n = last[n_rows - 1 - row], int(counts[row])
        if 2 * n >= whole and n > 1:
            raise DataError(
                f"{where(row)}: {entry!r} stands alone below all others, nowhere else, and with a count of "
                f"{n:,}, where those above have {whole:,} together: it may say how many voters there are. If "
                "so, take the line out; if it is an item, move the line up"
            )
    if min(map(len, above)) > 1 and counts[first:].max() > 1:
        warnings.warn(
            f"{where(n_rows - 1)}: {last[0]!r} stands alone below all others, which list several, and is "
            "read like them; if it says how many did something, take it out",
            PermixWarning,
            stacklevel=5,
        )


def refuse_codes_among_numbers(source: object, entries: Collection[Any], of_cells: bool = True) -> None:
    """Ask about numbers such as 99 where items are called by small numbers.

    Examples
    --------
    >>> refuse_codes_among_numbers("x.csv", range(100))
    """
    known = naturals(np.array(list(entries), dtype=object))
    if not len(known) or not all(isinstance(entry, int | np.integer) for entry in known.tolist()):
        return
    numbers = {int(entry) for entry in known.tolist()}
    others = numbers - {*NO_ANSWER, *_NEAR_CODES, -1}
    most = max(others, default=0)
    if len(others) < 2 or min(others) < 0 or most > 2 * len(others):
        return
    beyond = [code for code in NO_ANSWER if code in numbers and (code < 0 or code > 2 * most)]
    if most <= _MOST_BELOW or beyond:
        beyond += [code for code in _NEAR_CODES if code in numbers and code > most + 2 and 7 not in numbers]
    if -1 in numbers:
        beyond.append(-1)
    if beyond:
        code = min(beyond, key=abs) if len(beyond) == 1 else beyond[0]
        settles = (
            ("say ", Argument("missing", code), ", or call the item otherwise")
            if of_cells
            else ("take it out of the lists, or call the item otherwise",)
        )
        raise DataError(
            f"{source}: {code} stands among numbers of items that go up to {most}, and may say that there is "
            "no answer: ",
            *settles,
        )


def refuse_codes_in_columns(table: Table, places: Sequence[int]) -> None:
    """Ask about numbers for no answer in columns whose entries are items."""
    entries: set[Any] = set()
    for place in places:
        column = table.columns[place]
        entries.update(
            entry.item() if hasattr(entry, "item") else entry for entry in column[~missing_mask(column)]
        )
        if any(isinstance(entry, str) and _LETTER.search(entry) for entry in entries):
            return
    refuse_codes_among_numbers(table.source, entries)


def refuse_one_mark(source: object, name: str, n_columns: int) -> None:
    """Ask about ballots in which one entry is all that stands, in several columns."""
    if n_columns > 1:
        raise DataError(
            f"{source}: {name!r} is all that stands at the ranks, in {n_columns} of their columns, as where "
            "boxes are checked: it marks the rank of something else and is no item. Write a row for each "
            "ballot with the items at the ranks, or a row for each item with its rank in one column"
        )


def refuse_several_counts(
    source: object, columns: dict[str, Sequence[str]], ballots: Sequence[tuple[Any, ...]]
) -> None:
    """Ask about two or more columns of whole numbers beside ballots of which no two are alike.

    They may say how often each ballot was given here and there. ``columns`` are those nobody spoke of.
    """
    if len(ballots) < 2 or len(set(ballots)) < len(ballots):
        return
    numbers: dict[str, list[int]] = {}
    for name, entries in columns.items():
        said = [entry.strip() for entry in entries]
        if all(re.fullmatch(r"[0-9]{1,9}", entry) for entry in said):
            numbers[name] = list(map(int, said))
    counting = [
        name
        for name, each in numbers.items()
        if len(set(each)) > 1 and each not in (list(range(len(each))), list(range(1, len(each) + 1)))
    ]
    # One of them may hold the same number by chance, but not all.
    if len(numbers) > 1 and counting:
        names = list(numbers)
        raise DataError(
            f"{source}: columns {names[0]!r} and {names[1]!r} hold whole numbers, and no two ballots are "
            "alike: they may say how many ballots a row stands for, in two parts. If so, add them up in one "
            "column called count; if not, leave them out with ",
            Argument("ignore", names[0]),
            *(", or keep them beside the votes with ", Argument("group_columns", [names[0]])),
        )
