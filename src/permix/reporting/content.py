"""What a report is made of: a tree of plain values, which HTML, Markdown, JSON and the terminal show alike.

Models and shared sections make these; nothing here knows how they look. All text is as people read it, so
names of items must have gone through :func:`permix.reporting.words.shown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Cell = str | int | float | None
Level = Literal["good", "care", "bad"]


class Paragraph(NamedTuple):
    """Some sentences."""

    text: str


class Listing(NamedTuple):
    """Things one below the other."""

    entries: tuple[str, ...]


class Note(NamedTuple):
    """What is missing here, and how to get it; or what to be careful about."""

    text: str


class Code(NamedTuple):
    """Something to be typed."""

    text: str
    what: str


class Table(NamedTuple):
    """Numbers and words; the first cell of a row says what the row is about."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    # Shade of every cell from 0 to 10, or None: how a number compares, for the eye; the number is there too.
    shades: tuple[tuple[int | None, ...], ...] = ()


class Figure(NamedTuple):
    """A picture; ``numbers`` says the same as a table."""

    title: str
    description: str
    svg: str
    numbers: Table


class Verdict(NamedTuple):
    """How far to trust the rest: in a word, why, and what to do."""

    level: Level
    headline: str
    reasons: tuple[str, ...]
    advice: tuple[str, ...] = ()


class Brief(NamedTuple):
    """A verdict in one line, and the section that says more."""

    level: Level
    headline: str
    reason: str
    title: str  # of that section
    key: str


Block = Brief | Paragraph | Listing | Note | Code | Table | Figure | Verdict


class Section(NamedTuple):
    """A part of the report; ``key`` is the same in all reports."""

    key: str
    title: str
    blocks: tuple[Block, ...]
    sections: tuple[Section, ...] = ()


class Answer(NamedTuple):
    """What reports, ``fit`` and ``summary`` begin with: how far to trust it, and what was found."""

    verdict: Verdict
    sentences: tuple[str, ...]


class Report(NamedTuple):
    """All of it."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    kept: Mapping[str, Any] = MappingProxyType({})  # what the file of the fit may keep of it, tables by name
