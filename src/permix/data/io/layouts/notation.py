"""Rankings in one cell, in the one notation that is read, ``A>B=C``, from those that people write.

Arrows, ``∼`` for ties, tied items in brackets (``A>{B,C}``, ``A>(B=C)``), a line for each item, and lists as
JSON and Python write them (``["A", "B"]``, in which a list within the list is a tie).
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterable
from typing import Any

from permix.data.io.column_names import BLANKS
from permix.data.io.table_columns import Table, is_blank
from permix.data.io.text_files import shorten
from permix.data.labels import Array, as_objects
from permix.errors import DataError

_ARROWS = re.compile(BLANKS + r"(?:(?<!-)-++>|->|→|≻|»)\s*")
_INDIFFERENT = re.compile(BLANKS + r"[∼≈≃]\s*")
_LINES = re.compile(r"(?:(?<!\s)[^\S\r\n]++)?[\r\n]\s*")
_BRACES = re.compile(r"\{([^{}]*)\}")
# What stands in brackets as a whole between two arrows, and a whole ranking in brackets.
_GROUP = re.compile(r"(^|>)\s*[(\[]([^()\[\]>]*)[)\]]\s*(?=>|$)")
_WHOLE = re.compile(r"\s*[(\[]([^()\[\]{}]*>[^()\[\]{}]*)[)\]]\s*")
_BETWEEN = re.compile(BLANKS + r"[,;|=~]\s*")
_OUTSIDE = re.compile(BLANKS + r"[,;|]\s*")
_LIST = re.compile(r"\s*\[.*\]\s*", re.DOTALL)
_QUOTED = re.compile(r"[\s\[(]*[\"']")
# A count before a ranking, as in 5: A>B, (5) A>B and 5 A>B.
_COUNT_BEFORE = re.compile(r"(?:[0-9]{1,15}\s*:|\(\s*[0-9]{1,15}\s*\)|[0-9]{1,15}(?=\s))\s*(\S.*)")
# Characters of one list that are read.
MOST_CHARACTERS = 100_000
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))


def unified(table: Table, place: int, named: bool) -> Array:
    """Return a column with its rankings in one notation; one that holds none is unchanged.

    ``named`` says that the column is called as columns of rankings are: elsewhere ``["A", "B"]`` may be a
    list of anything.
    """
    column = table.columns[place]
    if column.dtype.kind != "O":
        return column
    entries = column.tolist()
    texts = [entry for entry in entries if isinstance(entry, str) and not is_blank(entry)]
    if not texts:
        return column
    if named and all(_LIST.fullmatch(text) and (_QUOTED.match(text) or ">" not in text) for text in texts):
        return as_objects([_of_list(table, row, entry) for row, entry in enumerate(entries)])
    if not any(_ARROWS.search(text) or _MARKS.search(text) for text in texts):
        return column
    found = [_plain(entry) if isinstance(entry, str) else entry for entry in entries]
    ranked = any(isinstance(entry, str) and ">" in entry for entry in found)
    if named and not ranked and any(isinstance(entry, str) and "{" in entry for entry in found):
        found = [_of_braces(entry) if isinstance(entry, str) else entry for entry in found]
        ranked = True
    if not ranked:
        return as_objects(found)
    alone = {part.strip() for entry in found if isinstance(entry, str) for part in re.split("[>=]", entry)}
    return as_objects(
        [_without_brackets(entry, alone) if isinstance(entry, str) else entry for entry in found]
    )


_MARKS = re.compile(r"[>∼≈≃\r\n{]|&gt;")


def _plain(text: str) -> str:
    """Write arrows as ``>`` and lines as a list with semicolons."""
    if "&gt;" in text:
        text = html.unescape(text)
    text = _ARROWS.sub(">", text)
    if "\n" in text or "\r" in text:
        text = _without_lines_at_arrows(text) if ">" in text else _LINES.sub(";", text.strip())
    return _INDIFFERENT.sub("=", text) if ">" in text else text


def _without_lines_at_arrows(text: str) -> str:
    """Leave out ends of lines beside ``>`` and ``=``."""

    def kept(found: re.Match[str]) -> str:
        blanks, beside = (
            found[0],
            text[max(0, found.start() - 1) : found.start()] + text[found.end() : found.end() + 1],
        )
        ends = "\n" in blanks or "\r" in blanks
        return "" if ends and (">" in beside or "=" in beside) else blanks

    return re.sub(r"\s++", kept, text)


def _without_brackets(text: str, alone: set[str]) -> str:
    """Write tied items in brackets with ``=``; what brackets are part of a name stays.

    Braces always hold tied items, other brackets where all that they hold stands alone elsewhere.
    """
    text = _BRACES.sub(lambda found: "=".join(_names(found[1])), text)
    whole = _WHOLE.fullmatch(text)
    text = text if whole is None else whole[1]

    def ties(found: re.Match[str]) -> str:
        names = _names(found[2])
        tied = len(names) > 1 and ("=" in found[2] or all(name in alone for name in names))
        return found[1] + "=".join(names) if tied else found[0]

    return _GROUP.sub(ties, text)


def _of_braces(text: str) -> str:
    """Write ``{A,B},C`` as ``A=B>C``."""
    held: list[str] = []

    def kept(found: re.Match[str]) -> str:
        held.append("=".join(_names(found[1])))
        return f"\0{len(held) - 1}\0"

    outside = [part for part in _OUTSIDE.split(_BRACES.sub(kept, text).strip()) if part]
    return re.sub("\0([0-9]+)\0", lambda found: held[int(found[1])], ">".join(outside))


def _names(text: str) -> list[str]:
    names = [name.strip() for name in _BETWEEN.split(text.strip()) if name.strip()]
    quoted = names and all(len(name) > 1 and name[0] == name[-1] and name[0] in "'\"" for name in names)
    return [name[1:-1] for name in names] if quoted else names


def _of_list(table: Table, row: int, entry: object) -> object:
    """Write a list as ``A>B``; what is listed within the list is tied."""
    if not isinstance(entry, str) or is_blank(entry):
        return entry
    listed = _parsed(entry)
    groups = [each if isinstance(each, list | tuple) else [each] for each in listed or ()]
    names = [str(name).strip() for group in groups for name in group]
    scalars = all(isinstance(name, str | int | float) for group in groups for name in group)
    if listed is None or not scalars or not all(names):
        raise DataError(
            f'{table.where(row)}: {shorten(entry, 40)!r} is no list of items, such as ["Ann", "Bo"], in '
            "which tied items stand in a list of their own"
        )
    odd = next((name for name in names if re.search("[>=]", name)), None)
    if odd is not None:
        raise DataError(
            f"{table.where(row)}: the name {odd!r} has > or =, which stand between items; rename it"
        )
    return ">".join("=".join(str(name).strip() for name in group) for group in groups if group)


def _parsed(text: str) -> list[Any] | None:
    """Parse a list of JSON, or of Python's literals; None where it is neither."""
    if len(text) > MOST_CHARACTERS:
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return found if isinstance(found, list) else None
    return None


def refuse_counts(table: Table, firsts: Iterable[object], items: Iterable[object]) -> None:
    """Refuse rankings with a count before them: ``5: A`` is no item where A is one.

    ``firsts`` is the first item of each row, and ``items`` are those of all rows.
    """
    known = set(map(str, items))
    for row, first in enumerate(firsts):
        found = _COUNT_BEFORE.fullmatch(str(first))
        if found is not None and found[1] in known:
            raise DataError(
                f"{table.where(row)}: {shorten(str(first), 40)!r} seems to be {found[1]!r} with a count "
                "before it: give counts a column of their own, called count, or write lines '12: A>B' into "
                "a file .abif; rename the item if the number is part of its name"
            )


def open_brackets(item: str) -> bool:
    """Whether a name has a bracket that is not closed, as half of a group in brackets has."""
    return any(item.count(left) != item.count(right) for left, right in _BRACKETS)
