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
NOTHING = frozenset(
    [
        *("", "undervote", "undervoted", "skipped", "skip", "skippedrank", "blank", "none", "novote"),
        *("noselection", "exhausted", "n/a"),
    ]
)
# Missing values as programs write them: a person may be called Na.
MISSING = frozenset(["NA", "NaN", "nan", "NULL", "null", "<NA>", "-"])
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


def is_nothing(text: str) -> bool:
    """Whether an entry says that nobody was marked."""
    return plain(text) in NOTHING or text in MISSING


def is_several(text: str) -> bool:
    """Whether an entry says that several were marked: ``overvote``, ``Overvote (2)``."""
    return re.fullmatch(r"overvoted?(\(.*\))?", plain(text)) is not None


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
    looks = _looks(source, found)
    is_sheet = source.path.suffix.lower() == ".xlsx"
    answers = looks.repeats and not looks.marks
    if not looks.names or answers or not (found.others or looks.marks or is_sheet):
        return None  # plain orders, ranks or answers: the reader of tables knows, or asks
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
            of_contest = ranks.setdefault(match[1].strip(), {})
            if int(match[2]) in of_contest:
                return None  # two columns for one rank: the reader of tables says so
            of_contest[int(match[2])] = place
        elif plain(name) in WEIGHTS and weight is None:
            weight = place
        elif (plain(name) in IDS or not str(name).strip()) and agent is None:
            agent = place
        elif str(name) in others:
            return None
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
    counts = _counts(rows, header.weight, source)
    if not len(marks.codes):
        raise DataError(f"{source.path}: no ballot names a candidate")

    def column(place: int) -> Array:
        return np.array([row[place] if place < len(row) else "" for row in rows], dtype=object)

    about = {"TITLE": "" if chosen == "1" else chosen, "FORMAT": TITLE}
    told = tuple(sorted(marks.marks))
    done = "read as ranks left empty, or as overvotes"
    n_told = int(counts[marks.rows_with_marks].sum()) if told else 0
    audit = (Entry("entries that are marks and no candidates", done, n_told, told),) if told else ()
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
        audit=audit,
    )
    return whole.without_empty_rows()


class _Marks:
    """Marks, as they are found rank by rank; the same entry is looked at once."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.ballot: list[int] = []
        self.rank: list[int] = []
        self.item: list[int] = []
        self._marked_rows: set[int] = set()
        self.marks: set[str] = set()  # entries that are no candidates
        self._known: dict[Any, int | None] = {}

    @property
    def rows_with_marks(self) -> list[int]:
        return sorted(self._marked_rows)

    def add(self, rank: int, entries: list[Any]) -> None:
        for row, entry in enumerate(entries):
            if entry not in self._known:
                self._known[entry] = self._code(entry)
            code = self._known[entry]
            if (code is None or code == UNNAMED) and entry not in (None, ""):
                self._marked_rows.add(row)
            if code is not None:
                self.ballot.append(row)
                self.rank.append(rank)
                self.item.append(code)

    def _code(self, entry: Any) -> int | None:
        text = "" if entry is None else str(entry).strip()
        if is_nothing(text):
            self.marks |= {text} if text else set()
            return None
        if is_several(text):
            self.marks.add(text)
            return UNNAMED
        return self.codes.setdefault(text, len(self.codes))

    def arrays(self) -> tuple[Array, Array]:
        ballot = np.array(self.ballot, np.int64)
        return ballot, np.lexsort((np.array(self.rank, np.int32), ballot))


def _counts(rows: list[list[Any]], place: int | None, source: Source) -> Array:
    """Return how many ballots each row stands for."""
    if place is None:
        return np.ones(len(rows), np.int64)
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
    return counts


def _rows(source: Source) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of a table."""
    if source.path.suffix.lower() == ".xlsx":
        return _sheet(source)
    text = source.text(source.names[0])
    delimiter = _delimiter(text.partition("\n")[0])
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names, rows = next(lines), []
    for row in lines:
        if not row:
            continue
        if len(row) != len(names):
            raise source.fail(
                source.names[0],
                f"line {lines.line_num} has {len(row)} fields where the first line has {len(names)}; put "
                "names with a comma into quotes",
            )
        if any("\n" in entry or "\0" in entry for entry in row):
            raise source.fail(source.names[0], f"line {lines.line_num}: an entry goes over several lines")
        rows.append(row)
    return names, rows


def _sheet(source: Source) -> tuple[list[str], list[list[Any]]]:
    from permix.data.io.ballots.spreadsheets import first_sheet

    rows = first_sheet(source)
    return [str(name) for name in rows[0]], rows[1:]


def _delimiter(line: str) -> str:
    return max(",\t;|", key=line.count)


class _Looks(NamedTuple):
    """What entries at the ranks look like, all of them."""

    names: bool  # whether some are names: numbers and ordinals alone could be ranks of items
    marks: bool  # whether some are marks that no candidate is called
    repeats: bool  # whether most rows have an entry twice, as answers to questions do


def _looks(source: Source, header: Header) -> _Looks:
    rows = _rows(source)[1]
    places = [place for by_rank in header.ranks.values() for place in by_rank.values()]
    entries = {entry for row in rows for entry in (str(row[place]).strip() for place in places)}
    candidates = {entry for entry in entries if not (is_nothing(entry) or is_several(entry))}
    plain_names = {e for e in candidates if not re.fullmatch(r"[-+]?[0-9.]+(st|nd|rd|th)?", e)}
    again = 0
    for row in rows:
        listed = [e for e in (str(row[place]).strip() for place in places) if e in candidates]
        again += len(set(listed)) < len(listed)
    telling = {plain(entry) for entry in entries} - {"", "none", "blank", "-"}
    marked = any(is_several(entry) or plain(entry) in NOTHING & telling for entry in entries)
    return _Looks(len(plain_names) > len(candidates) / 2, marked, 2 * again > len(rows))
