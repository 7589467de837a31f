"""Ranks as people write them: ``1st``, ``Second choice``, ``Rank 3``, ``=2``, ``1 (best)``, ``Not ranked``.

A column is read so where all of its entries are such words or numbers; a warning says which words were read
as what. Labels that say that 1 is the worst make it no rank.
"""

from __future__ import annotations

import re
import warnings

import numpy as np

from permix.data.io.column_names import FOREIGN_ORDINAL, FOREIGN_PLACE, plain
from permix.data.io.marks import is_no_word
from permix.data.io.table_columns import Table, is_blank, numbers
from permix.data.labels import Array
from permix.errors import Argument, DataError, PermixWarning

ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    *("eleventh", "twelfth"),
)
CARDINALS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_PLACE = f"(?:choice|place|rank|ranking|rang|preference|position|pick|pref|{FOREIGN_PLACE})"
_RANK = re.compile(
    rf"=?t?(?:{_PLACE}|no|nr|#)?([0-9]{{1,4}})(?:st|nd|rd|th|{FOREIGN_ORDINAL}|\))?{_PLACE}?=?|({'|'.join(ORDINALS)}){_PLACE}?|"
    rf"{_PLACE}({'|'.join(CARDINALS)})"
)
_LABELED = re.compile(r"\s*([0-9]{1,4})\s*(?:[-–—:.=]\s+|\()\s*(.*?)\)?\s*")
# Words for what has no rank.
UNRANKED = frozenset(
    [
        *("notranked", "unranked", "norank", "noopinion", "nopreference", "nochoice", "didnotrank", "none"),
        *("notapplicable", "donotrank", "notselected", "blank", "skipped", "–", "—", "n/a"),
    ]
)
_BEST = re.compile(r"best|most|highest|top|favou?rite|love|like most|first", re.IGNORECASE)
_WORST = re.compile(r"worst|least|lowest|bottom|last|hate", re.IGNORECASE)


def rank_of(text: str) -> float | None:
    """Return the rank that a word says, NaN where it says that there is none; None where it is no rank.

    Examples
    --------
    >>> [rank_of(word) for word in ("1st", "Second choice", "=2", "Rank 3", "Not ranked", "Tea")]
    [1.0, 2.0, 2.0, 3.0, nan, None]
    """
    word = plain(text)
    if word in UNRANKED or is_no_word(text):
        return float("nan")
    found = _RANK.fullmatch(word)
    if found is not None:
        if found[1]:
            return float(found[1])
        words = ORDINALS if found[2] else CARDINALS
        return float(words.index(found[2] or found[3]) + 1)
    labeled = _LABELED.fullmatch(text)
    return None if labeled is None else float(labeled[1])


def with_ranks(table: Table, places: list[int], layout: str) -> Table:
    """Return a table with numbers for ranks in words, where all entries of some columns are such."""
    asked = layout == "ranks"
    texts = [place for place in places if numbers(table.columns[place]) is None]
    found: dict[int, Array] = {}
    read: dict[str, float] = {}
    for place in texts:
        entries = [str(entry).strip() for entry in table.columns[place].tolist() if not is_blank(entry)]
        words = {entry: rank_of(entry) for entry in dict.fromkeys(entries)}
        ranked = [rank for rank in words.values() if rank is not None and rank == rank]
        if None in words.values() or not ranked:
            continue
        found[place] = _column(table.columns[place], words)
        read |= {word: rank for word, rank in words.items() if rank is not None and not word.isdecimal()}
    all_ranks = len(found) + len(places) - len(texts)
    if not found or (not asked and (all_ranks < 2 or all_ranks < len(places))):
        return table
    if any("worst" in word.lower() or _says_worst_first(word) for word in read if read[word] == 1):
        word = next(word for word in read if read[word] == 1)
        raise DataError(
            f"{table.source}: {word!r} says that 1 is the worst, so these are ratings, of which the highest "
            "is the best: say ",
            Argument("layout", "ratings"),
        )
    _say(table, read)
    columns = [found.get(place, column) for place, column in enumerate(table.columns)]
    return table._replace(columns=columns)


def _says_worst_first(word: str) -> bool:
    labeled = _LABELED.fullmatch(word)
    label = "" if labeled is None else labeled[2]
    return bool(_WORST.search(label)) and not _BEST.search(label)


def _column(column: Array, words: dict[str, float | None]) -> Array:
    values = np.full(len(column), np.nan)
    for row, entry in enumerate(column.tolist()):
        if not is_blank(entry):
            rank = words[str(entry).strip()]
            values[row] = np.nan if rank is None else rank
    return values


def _say(table: Table, read: dict[str, float]) -> None:
    ranks = [f"{word!r} as {rank:g}" for word, rank in read.items() if rank == rank]
    nothing = [repr(word) for word, rank in read.items() if rank != rank]
    said: list[str | Argument] = []
    if ranks:
        said.append(f"ranks in words: {', '.join(ranks[:3])}{', …' if len(ranks) > 3 else ''}")
    if nothing:
        said += [
            f"{'; ' if ranks else ''}{', '.join(nothing[:3])} as not ranked, so below what is ranked (not "
            "asked about with ",
            *(Argument("unlisted", "unknown"), ")"),
        ]
    if said:
        warnings.warn(PermixWarning(f"{table.source}: read ", *said), stacklevel=4)
