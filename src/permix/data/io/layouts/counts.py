"""Columns that say how many agents a row stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from permix.data.io.column_names import plain
from permix.data.io.table_columns import Table, is_blank, numbers, numbers_of
from permix.data.io.text_files import shorten
from permix.data.labels import Array, Label, as_objects
from permix.errors import Argument, DataError, Part

# Numbers with marks between thousands: 1,234, 1 234 (also with blanks that do not break) and 1'234.
POINTS = re.compile(r"[0-9]{1,3}(\.[0-9]{3})+")
_GROUPED = re.compile(r"[0-9]{1,3}(?:(,| |'|\u2019|\u00a0|\u202f|\u2009)[0-9]{3})(?:\1[0-9]{3})*")
# What a column is called that may say how many ballots a row stands for, or which part of all.
_SAYS_COUNT = re.compile(
    r"\b(?:ballots|count|counts|fraction|freq|frequency|multiplicity|pct|percent|percentage|proportion|share|"
    r"tally|times|votes|voters|weight|weights|anzahl|anteil|stimmen|effectif|nombre|gewicht|voix|votos|peso|"
    r"people|persons|respondents|copies|repeats?|repetitions|occurrences|instances|quantity|total|multiplier|"
    r"amount|number of (?:people|persons|agents|respondents|students|times))\b"
)
# The same where nothing else stands in the name.
_COUNTS_ALONE = frozenset(["w", "wt", "wts", "wgt", "num", "number", "qty", "cnt", "ct", "k", "mult"])
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,' \u00a0\u202f]*%?")


def without_marks(entry: str) -> str:
    """Return a whole number without the marks between its thousands, and anything else as it is.

    Examples
    --------
    >>> [without_marks(entry) for entry in ("1,234", "12 345 678", "1'234", "1,23", "1.234")]
    ['1234', '12345678', '1234', '1,23', '1.234']
    """
    found = _GROUPED.fullmatch(entry)
    return entry if found is None else entry.replace(found[1], "")


def counts_of(table: Table, place: int) -> tuple[Table, Array, Array]:
    """Return the table without the rows that nobody stated, counts as integers, and the rows kept."""
    values = _whole_counts(table, place)
    bad = ~((values >= 0) & (values < 2**53) & (np.floor(values) == values))
    count = table.columns[place][np.argmax(bad)]
    if bad.any():
        raise DataError(
            f"{table.where(int(np.argmax(bad)))}: count {shorten(str(count), 30)!r} is not a whole number from "
            "0 on; ",
            *_no_weights(table.names[place]),
        )
    stated = np.flatnonzero(values > 0)
    if stated.size == 0:
        raise DataError(f"{table.source}: all counts are 0")
    return table.take(stated), values[stated].astype(np.int64), stated


def _no_weights(name: Label) -> tuple[Part, ...]:
    """Say why weights of a survey are not taken for counts."""
    return (
        "weights of a survey are no counts: each row is one respondent, and multiplied weights would make "
        "many agents who agree in everything of each. Fit without them: leave the column out with ",
        *(Argument("ignore", name), ", and set apart what the weights were made of with "),
        *(Argument("group_columns"), " (see 'Weights of a survey' in Bring your data)"),
    )


def refuse_weights_of_agents(table: Table, agent: int, place: int, counts: Array) -> None:
    """Ask about a column called weight where each row is an agent of its own, who is one and not many."""
    ids = table.columns[agent].tolist()
    name = table.names[place]
    if plain(name) in ("weight", "weights") and len(set(ids)) == len(ids) > 1 and counts.max() > 1:
        raise DataError(
            f"{table.source}: {table.names[agent]!r} names an agent in each row, and {name!r} would make "
            f"{int(counts.sum()):,} agents of {len(ids):,}. If so many different agents said the same, say ",
            *(Argument("count_column", name), "; "),
            *_no_weights(name),
        )


def may_count(name: str, entries: Iterable[object]) -> bool:
    """Whether a column that is not called as counts usually are may say how many agents a row stands for.

    Its name speaks of numbers, weights or shares, and nothing but numbers stand in it.
    """
    words = " ".join(map(str.lower, re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", name)))
    if not (_SAYS_COUNT.search(words) or "%" in name or plain(name) in _COUNTS_ALONE):
        return False
    said = [str(entry).strip() for entry in entries if not is_blank(entry)]
    return bool(said) and all(map(_NUMBER.fullmatch, dict.fromkeys(said)))


def holds_counts(table: Table, place: int) -> bool:
    """Whether nothing but numbers stand in a column, such as 1,234."""
    entries = dict.fromkeys(str(each).strip() for each in table.columns[place].tolist() if not is_blank(each))
    return bool(entries) and all(map(_NUMBER.fullmatch, entries))


def refuse_what_may_count(table: Table, places: Iterable[int]) -> None:
    """Refuse columns of a long table that no layout reads and that may say how often a row was stated."""
    for place in places:
        name = str(table.names[place])
        if may_count(name, table.columns[place].tolist()):
            said = f"{table.source}: column {name!r} may say how many agents a row stands for: "
            raise DataError(
                said,
                *(Argument("count_column", name), " (whole numbers). Leave it out with "),
                *(Argument("ignore", name), ", or keep it beside the votes with "),
                Argument("group_columns", [name]),
            )


def could_count(table: Table, place: int) -> bool:
    """Whether a column that may weigh rows, or be a measurement called weight, holds whole numbers."""
    if plain(table.names[place]) not in ("weight", "weights"):
        return True
    values = numbers(table.columns[place])
    return values is None or bool(np.all(values == np.floor(values)))


def _whole_counts(table: Table, place: int) -> Array:
    """Return counts; 1,234 is a number of thousands, 1.000 could be two numbers and is refused."""
    column = table.columns[place]
    entries = [entry if isinstance(entry, str) else "" for entry in column.tolist()]
    for row, entry in enumerate(entries):
        if POINTS.fullmatch(entry):
            raise DataError(
                f"{table.where(row)}: count {entry!r} could be {entry.replace('.', '')}, or a weight with "
                "decimals. Write counts without points; ",
                *_no_weights(table.names[place]),
            )
    if any(_GROUPED.fullmatch(entry) for entry in entries):
        whole = [without_marks(entry) if isinstance(entry, str) else entry for entry in column.tolist()]
        table = table._replace(
            columns=[*table.columns[:place], as_objects(whole), *table.columns[place + 1 :]]
        )
    return numbers_of(table, place, ": count")
