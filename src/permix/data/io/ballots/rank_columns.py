"""Tables of ballots: a column for each rank, names and marks in them, and what else is known of a ballot.

This is how ES&S exports them (a spreadsheet, or CSV), how RCTab and cities publish them, and how people save
them: ``Precinct, rank1, rank2, …, weight``. Entries such as ``undervote``, ``skipped`` or ``overvote`` are
marks, not candidates. Columns that are no ranks are kept with the ballots.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any, NamedTuple

import numpy as np

from permix.data.ballots import UNNAMED, Ballots, Entry
from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.ballots.source import Source
from permix.data.io.column_names import USUAL_NAMES, plain
from permix.data.labels import Array
from permix.errors import DataError

TITLE = "Table of ballots, a column for each rank"
NOTHING = frozenset(["", "undervote", "skipped", "skippedrank", "blank", "none", "novote", "nan", "na"])
SEVERAL = frozenset(["overvote", "overvoted"])
WEIGHTS = USUAL_NAMES["count"] | {"weight"}
IDS = USUAL_NAMES["agent"] | {"castvoterecord", "cvr", "ballotid", "id", "recordid", "ballot"}
# ``For Mayor Choice 3 (55 ...)``: the contest, the rank, and whatever the machine adds.
_RANK = re.compile(r"\s*(.*?)[\s_:-]*\b(?:rank|choice|ranking)[\s_#]*(\d+)\s*(?:\(.*\))?\s*", re.IGNORECASE)
_NTH = re.compile(
    r"\s*(.*?)[\s_:-]*\b(\d+)(?:st|nd|rd|th)[\s_](?:choice|rank|pref\w*)\s*(?:\(.*\))?\s*", re.IGNORECASE
)
MOST_COLUMNS = 10_000


def is_write_in(name: str) -> bool:
    """Whether a name says that it stands for people who were written in."""
    return "writein" in plain(name) or plain(name) == "uwi"


class Header(NamedTuple):
    """What the columns of a table of ballots are."""

    ranks: dict[str, dict[int, int]]  # contest -> rank -> column
    weight: int | None
    agent: int | None
    others: dict[str, int]


def recognized(source: Source) -> str | None:
    """Say by what the format is recognized; None where it is another."""
    if not source.is_one_file:
        return None
    if source.path.suffix.lower() == ".xlsx":
        names, _ = _sheet(source)
    elif source.path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".tab")):
        first = source.head.decode("utf-8-sig", errors="replace").splitlines()[:1]
        names = next(csv.reader(first, delimiter=_delimiter(first[0])), []) if first else []
    else:
        return None
    found = header_of(names)
    if found is None:
        return None
    if source.path.suffix.lower() != ".xlsx" and not (
        _names_candidates(source, found) and (found.others or _has_marks(source))
    ):
        return None  # plain orders, or numbers that may be ranks: the reader of tables knows, or asks
    some = next(iter(found.ranks.values()))
    return f"columns {names[some[1]]!r} to {names[some[max(some)]]!r} hold the ranks"


def header_of(names: list[str]) -> Header | None:
    """Read the names of the columns; None where no two are ranks that begin at 1."""
    ranks: dict[str, dict[int, int]] = {}
    weight = agent = None
    others: dict[str, int] = {}
    for place, name in enumerate(names[:MOST_COLUMNS]):
        match = _RANK.fullmatch(str(name)) or _NTH.fullmatch(str(name))
        if match is not None:
            ranks.setdefault(match[1].strip(), {})[int(match[2])] = place
        elif plain(name) in WEIGHTS and weight is None:
            weight = place
        elif (plain(name) in IDS or not str(name).strip()) and agent is None:
            agent = place
        else:
            others[str(name)] = place
    whole = {contest: by for contest, by in ranks.items() if sorted(by) == list(range(1, len(by) + 1))}
    enough = any(len(by) > 1 for by in whole.values())
    return Header(whole, weight, agent, others) if enough and len(whole) == len(ranks) else None


def contests(source: Source) -> dict[str, str]:
    """Return the contests by the name that the columns of their ranks begin with."""
    header = header_of(_rows(source)[0])
    assert header is not None
    return {name or "1": name or "the only contest" for name in header.ranks}


def read(source: Source, contest: str | None) -> Ballots:
    """Read the marks of one contest."""
    names, rows = _rows(source)
    header = header_of(names)
    assert header is not None
    listed = {name or "1": name or "the only contest" for name in header.ranks}
    chosen = chosen_contest(listed, contest, source.path)
    by_rank = header.ranks["" if chosen == "1" and "" in header.ranks else chosen]
    marks = _Marks()
    for rank in range(1, len(by_rank) + 1):
        place = by_rank[rank]
        marks.add(rank - 1, [row[place] if place < len(row) else "" for row in rows])
    ballot, order = marks.arrays()
    counts, kept = _counts(rows, header.weight, source)
    if not len(marks.codes):
        raise DataError(f"{source.path}: no ballot names a candidate")

    def column(place: int) -> Array:
        return np.array([row[place] if place < len(row) else "" for row in rows], dtype=object)

    about = {"TITLE": "" if chosen == "1" else chosen, "FORMAT": TITLE}
    whole = Ballots(
        items=tuple(marks.codes),
        n_ranks=len(by_rank),
        counts=counts,
        ballot=ballot[order],
        rank=np.array(marks.rank, np.int32)[order],
        item=np.array(marks.item, np.int32)[order],
        agents=None if header.agent is None else column(header.agent),
        covariates={name: column(place) for name, place in header.others.items()},
        write_ins=tuple(name for name in marks.codes if is_write_in(name)),
        metadata=about,
    )
    return whole if kept.all() else _some_rows(whole, kept)


class _Marks:
    """Marks, as they are found rank by rank; the same entry is looked at once."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.ballot: list[int] = []
        self.rank: list[int] = []
        self.item: list[int] = []
        self._known: dict[Any, int | None] = {}

    def add(self, rank: int, entries: list[Any]) -> None:
        for row, entry in enumerate(entries):
            if entry not in self._known:
                self._known[entry] = self._code(entry)
            code = self._known[entry]
            if code is not None:
                self.ballot.append(row)
                self.rank.append(rank)
                self.item.append(code)

    def _code(self, entry: Any) -> int | None:
        text = "" if entry is None else str(entry).strip()
        word = plain(text)
        if word in NOTHING:
            return None
        if word in SEVERAL:
            return UNNAMED
        return self.codes.setdefault(text, len(self.codes))

    def arrays(self) -> tuple[Array, Array]:
        ballot = np.array(self.ballot, np.int64)
        return ballot, np.lexsort((np.array(self.rank, np.int32), ballot))


def _some_rows(ballots: Ballots, kept: Array) -> Ballots:
    """Leave out rows of count 0, and say so."""
    from dataclasses import replace

    of = np.cumsum(kept) - 1
    stays = kept[ballots.ballot]
    n = int(np.count_nonzero(~kept))
    return replace(
        ballots,
        counts=ballots.counts[kept],
        ballot=of[ballots.ballot[stays]],
        rank=ballots.rank[stays],
        item=ballots.item[stays],
        agents=None if ballots.agents is None else ballots.agents[kept],
        covariates={name: values[kept] for name, values in ballots.covariates.items()},
        audit=(*ballots.audit, Entry("rows with a count of 0", f"left out, {n} of them", 0)),
    )


def _counts(rows: list[list[Any]], place: int | None, source: Source) -> tuple[Array, Array]:
    """Return how many ballots each row stands for, and which stand for any."""
    if place is None:
        return np.ones(len(rows), np.int64), np.ones(len(rows), np.bool_)
    counts = np.empty(len(rows), np.int64)
    for row, entries in enumerate(rows):
        try:
            value = float(entries[place])
        except (ValueError, TypeError, IndexError):
            value = -1.0
        if not (0 <= value < 2**53 and value == int(value)):
            shown = entries[place] if place < len(entries) else ""
            raise DataError(
                f"{source.path}, line {row + 2}: the weight {shown!r} is not a whole number from 0 on"
            )
        counts[row] = int(value)
    return counts, counts > 0


def _rows(source: Source) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of a table."""
    if source.path.suffix.lower() == ".xlsx":
        return _sheet(source)
    text = source.text(source.names[0])
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text.partition("\n")[0]))
    names = next(lines)
    return names, [row for row in lines if row]


def _sheet(source: Source) -> tuple[list[str], list[list[Any]]]:
    from permix.data.io.ballots.spreadsheets import first_sheet

    rows = first_sheet(source)
    return [str(name) for name in rows[0]], rows[1:]


def _delimiter(line: str) -> str:
    return max(",\t;|", key=line.count)


def _names_candidates(source: Source, header: Header) -> bool:
    """Whether the first lines have names at some rank: numbers alone could be ranks of items."""
    text = source.head.decode("utf-8-sig", errors="replace")
    lines = text.splitlines()[:200]
    places = [place for by_rank in header.ranks.values() for place in by_rank.values()]
    for row in csv.reader(lines[1:], delimiter=_delimiter(lines[0])):
        for place in places:
            entry = row[place].strip() if place < len(row) else ""
            if plain(entry) not in NOTHING | SEVERAL and not re.fullmatch(r"[-+]?[0-9.]+", entry):
                return True
    return False


def _has_marks(source: Source) -> bool:
    """Whether the beginning of a file has entries that are marks and no candidates."""
    text = source.head.decode("utf-8-sig", errors="replace")
    found = {plain(entry) for entry in re.split(r'[,;\t|\n\r"]', text)}
    return bool(found & (NOTHING | SEVERAL) - {"", "none", "na", "nan", "blank"})
