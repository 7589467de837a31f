"""Dominion cast vote records as a CSV file: contests, choices and parties above columns of 0 and 1.

The first line names the election and the version of the system, the next two the contest and the choice of
each column. Ranked contests have a column for each choice at each rank, ``Ann(2)``. Where a contest was not
on a ballot, its columns are blank.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from permix.data.ballots import Ballots, Entry, parties_of, refuse_ranks
from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.ballots.source import Source

TITLE = "Dominion cast vote records, CSV"
# Columns that say of a ballot what is kept.
KEPT = {"PrecinctPortion": "precinct", "CountingGroup": "counting group", "BallotType": "ballot type"}
_VERSION = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){2,4}")
_RANKED = re.compile(r"\(Number of positions=([0-9]{1,4}), *Number of ranks=([0-9]{1,6})\)\s*\Z")
_CHOSEN = re.compile(r"\(Vote For ?=? ?([0-9]{1,4})\)\s*\Z", re.IGNORECASE)
_AT_RANK = re.compile(r"\(([0-9]{1,6})\)\Z")


class _Contest(NamedTuple):
    title: str
    n_choices: int  # 0 where the file does not say
    n_ranks: int  # 0 where choices are not ranked
    places: list[int]


class _Head(NamedTuple):
    """The lines above the ballots."""

    contests: dict[str, _Contest]  # by title
    choices: list[str]
    names: list[str]  # of the columns of ids; parties in those of choices


def recognized(source: Source) -> str | None:
    """Say by what the format is recognized; None where it is another."""
    if not source.is_one_file or b"," not in source.head:
        return None
    text = source.head.decode("utf-8-sig", errors="replace")
    lines = text.split("\n", 3)
    if len(lines) < 4 or not re.match(r'\s*(""|)\s*,', lines[1]):
        return None
    first = [_plain(cell) for cell in next(csv.reader([lines[0]]), [])]
    versioned = len(first) > 1 and _VERSION.fullmatch(first[1]) is not None
    if versioned and "CvrNumber" in lines[3]:
        return f"contests and choices above a column CvrNumber, version {first[1]}"
    return None


def contests(source: Source) -> dict[str, str]:
    """Return the names of the contests, which are their ids."""
    return {title: title for title in _head(source, _rows(source)).contests}


def read(source: Source, contest: str | None) -> Ballots:
    """Read the marks of one contest."""
    rows = _rows(source)
    head = _head(source, rows)
    titles = {title: title for title in head.contests}
    chosen = head.contests[chosen_contest(titles, contest, source.path)]
    items, at = _columns(source, head, chosen)
    refuse_ranks(max(chosen.n_ranks, *(rank for rank, _ in at)))
    kept = {name: head.names.index(column) for column, name in KEPT.items() if column in head.names}
    about: dict[str, list[str]] = {name: [] for name in kept}
    agents: list[str] = []
    marks: list[tuple[int, int, int]] = []
    n_sums = 0
    number_at = head.names.index("CvrNumber")
    for number, row in rows:
        if len(row) != len(head.names):
            raise source.fail("", f"line {number} has {len(row)} entries, the header {len(head.names)}")
        cells = [row[place].strip() for place in chosen.places]
        if not any(cells):
            continue  # the contest was not on this ballot
        ident = _plain(row[number_at])
        if "aggregat" in ident.lower():
            n_sums += 1
            continue
        for place, cell in enumerate(cells):
            if cell not in ("0", "1", ""):
                column = chosen.places[place]
                why = "is neither 0 nor 1; if the line sums up several ballots, take it out"
                raise source.fail("", f"line {number}, {head.choices[column]!r}: {cell!r} {why}")
            if cell == "1":
                marks.append((len(agents), at[place][0] - 1, at[place][1]))
        agents.append(ident or f"line {number}")
        for name, place in kept.items():
            about[name].append(_plain(row[place]))
    if not agents:
        raise source.fail("", f"no ballot has the contest {chosen.title!r}")
    audit = (Entry("lines that sum up several ballots", "not read", n_sums),) * (n_sums > 0)
    ballot, rank, item = np.array(marks, np.int64).reshape(-1, 3).T
    party = {items[code]: head.names[place] for place, (_, code) in zip(chosen.places, at, strict=True)}
    return Ballots(
        items=tuple(items),
        n_ranks=max(chosen.n_ranks, *(rank for rank, _ in at)),
        counts=np.ones(len(agents), np.int64),
        ballot=ballot,
        rank=rank.astype(np.int32),
        item=item.astype(np.int32),
        agents=np.array(agents, dtype=object),
        covariates={name: np.array(values, dtype=object) for name, values in about.items()},
        attributes=parties_of(items, party),
        write_ins=tuple(name for name in items if "write-in" in name.lower()),
        n_choices=chosen.n_choices,
        metadata={"TITLE": chosen.title, "FORMAT": TITLE},
        audit=audit,
    )


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield lines that are not empty, with their numbers."""
    reader = csv.reader(io.StringIO(source.text(source.names[0]), newline=""))
    return ((reader.line_num, row) for row in reader if any(row))


def _head(source: Source, rows: Iterator[tuple[int, list[str]]]) -> _Head:
    """Read the four lines above the ballots."""
    above = [row for _, row in (next(rows, (0, [])) for _ in range(4))]
    titles, choices, names = (list(map(_plain, row)) for row in above[1:])
    if "CvrNumber" not in names or not len(titles) == len(choices) == len(names):
        raise source.fail("", "lines 2 to 4 do not name contest, choice and party of each column")
    found: dict[str, _Contest] = {}
    for place, title in enumerate(titles):
        if title and choices[place]:
            ranked, chosen = _RANKED.search(title), _CHOSEN.search(title)
            match = ranked or chosen
            n_choices = 0 if match is None else int(match[1])
            n_ranks = 0 if ranked is None else int(ranked[2])
            plain = title if match is None else title[: match.start()].strip()
            held = found.setdefault(title, _Contest(plain, n_choices, n_ranks, []))
            held.places.append(place)
    short = [each.title for each in found.values()]
    told = {(title if short.count(c.title) > 1 else c.title): c for title, c in found.items()}
    return _Head(told, choices, names)


def _columns(source: Source, head: _Head, contest: _Contest) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the candidates, and rank and candidate of each column of a contest."""
    items: list[str] = []
    at: list[tuple[int, int]] = []
    for place in contest.places:
        name = head.choices[place]
        match = _AT_RANK.search(name) if contest.n_ranks else None
        name = name if match is None else name[: match.start()].strip()
        rank = 1 if match is None else int(match[1])
        if contest.n_ranks and match is None:
            raise source.fail(
                "", f"the choice {name!r} of a ranked contest does not say its rank, as 'Ann(2)'"
            )
        if not contest.n_ranks and name in items:  # two lines for write-ins, or people of one name
            name = f"{name} ({sum(each.startswith(name) for each in items) + 1})"
        if name not in items:
            items.append(name)
        found = (rank, items.index(name))
        if rank < 1 or found in at:
            raise source.fail("", f"two columns are for {head.choices[place]!r}, or it has no rank")
        at.append(found)
    return items, at


def _plain(cell: str) -> str:
    """Return an entry without what keeps Excel from changing it: ``="1-1"``."""
    text = cell.strip()
    return text[2:-1] if text.startswith('="') and text.endswith('"') else text
