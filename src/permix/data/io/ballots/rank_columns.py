"""Tables of ballots: a column for each rank, names and marks in them, and what else is known of a ballot.

This is how ES&S exports them (a spreadsheet, or CSV), how RCTab and cities publish them, and how people save
them: ``Precinct, rank1, rank2, …, weight``. Entries such as ``undervote``, ``skipped`` or ``overvote`` are
marks, not candidates. Columns that are no ranks are kept with the ballots.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from permix.data.ballots import UNNAMED, Ballots, Entry
from permix.data.io.ballots.contest_column import (
    ContestColumn,
    column_holding,
    column_of_agents,
    contest_column,
    known_columns,
    rows_of,
    warn_of_perhaps,
)
from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.ballots.source import Said, Source
from permix.data.io.column_names import FOREIGN_ORDINAL, FOREIGN_PLACE, HARDLY_ITEMS, USUAL_NAMES, plain
from permix.data.io.containers.lines import container, read_lines
from permix.data.io.containers.text import refuse_spreadsheet_errors, said_delimiter
from permix.data.io.containers.trimming import MOST_TITLES, TITLES, end_of, say_left_out, without_names_again
from permix.data.io.layouts.counts import POINTS, may_count, without_marks
from permix.data.io.layouts.detection import joined_items
from permix.data.io.layouts.doubtful_entries import (
    refuse_counted_notes,
    refuse_one_mark,
    refuse_several_counts,
)
from permix.data.io.marks import codes_among, is_write_in, refuse_sets, says_nobody, says_several
from permix.data.labels import Array
from permix.errors import Argument, DataError, Part, PermixWarning

TITLE = "Table of ballots, a column for each rank"
# Missing values as programs write them: a person may be called Na.
MISSING = frozenset(["NA", "NaN", "nan", "NULL", "null", "<NA>", "-"])
WEIGHTS = USUAL_NAMES["count"]
IDS = USUAL_NAMES["agent"] | {"castvoterecord", "cvr", "ballotid", "id", "recordid", "ballot"}
# ``For Mayor Choice 3 (55 ...)``: the contest, the rank, and whatever the machine adds.
# Looked for in names without the blanks at their ends, blanks in them being one each.
_RANK = re.compile(
    rf"\b(?:ranking|rank|choice|rang|{FOREIGN_PLACE})[ _#]*([0-9]{{1,6}}) ?(?:\(.*\))?\Z", re.IGNORECASE
)
_NTH = re.compile(
    rf"\b([0-9]{{1,6}})(?:st|nd|rd|th|\.|{FOREIGN_ORDINAL})[ _](?:choice|rank|pref\w*|{FOREIGN_PLACE}) ?"
    r"(?:\(.*\))?\Z",
    re.IGNORECASE,
)
# The same with the district after it: ``DEM Mayor Choice 1 of 5 Citywide (026916)``, ``Rep. to Congress 1st
# Choice District 2``. Looked for where no name ends with a rank.
_INSIDE = re.compile(
    r"\b(?:(?:ranking|rank|choice)[ _#]*([0-9]{1,6}) of [0-9]{1,6}|([0-9]{1,6})(?:st|nd|rd|th)[ _]choice)\b"
    r"((?: [^()\[\]]*?)?) ?(?:\(.*\))?\Z",
    re.IGNORECASE,
)
_ABOUT_A_CHOICE = re.compile(r"reason|comment|why|expla|other|text|specify|score", re.IGNORECASE)
MOST_CHARACTERS = 500  # of a name that may say a rank
MOST_COLUMNS = 10_000
# Codes of entries at a rank that are no candidates, besides UNNAMED: a word for nothing, and nothing.
MARK, BLANK = -2, -3


def is_nothing(text: str) -> bool:
    """Whether an entry says that nobody was marked."""
    return not text or text in MISSING or says_nobody(text)


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
    held = container(source.path)
    if held == "text":
        if b"\0" in source.head:
            return None
        names = _first_names(source)
    else:
        names = _table(source).names
    found = header_of(names, source.said)
    if found is None or not set(source.said.all) <= set(names):
        return None
    looks = _looks(source, found)
    is_sheet = held == "excel"
    answers = looks.repeats and not looks.marks
    if not looks.names or answers or not (found.others or looks.marks or is_sheet or len(found.ranks) > 1):
        return None  # plain orders, ranks or answers: the reader of tables knows, or asks
    some = next(iter(found.ranks.values()))
    return f"columns {names[some[1]]!r} to {names[some[max(some)]]!r} hold the ranks"


def _first_names(source: Source) -> list[str]:
    """Return the first line of a text file that names ranks; titles may stand above it."""
    said, text = said_delimiter(source.head.decode("utf-8-sig", errors="replace"))
    lines = [line for line in text.splitlines()[: MOST_TITLES + 1] if line.strip()]
    for line in lines:
        names = next(csv.reader([line], delimiter=said or _delimiter(line)), [])
        if header_of(names, source.said) is not None:
            return names
        if sum(1 for name in names if name.strip()) > 1:
            break
    return next(csv.reader(lines[:1], delimiter=_delimiter(lines[0])), []) if lines else []


def rank_in(name: str, inside: bool = False) -> tuple[str, int] | None:
    """Return the contest and the rank that the name of a column says; None where it says none.

    ``inside`` looks for ranks in the middle of a name as well.
    """
    if len(name) > MOST_CHARACTERS:
        return None
    text = " ".join(name.split())
    within = _INSIDE.search(text) if inside else None
    if within is not None and not _ABOUT_A_CHOICE.search(within[3]):
        contest = " ".join([text[: within.start()].rstrip(" _:-"), within[3].strip(" _:-")])
        return contest.strip(), int(within[1] or within[2])
    match = _RANK.search(text) or _NTH.search(text)
    return None if match is None else (text[: match.start()].rstrip(" _:-"), int(match[1]))


def header_of(names: list[str], columns: Said) -> Header | None:
    """Read the names of the columns; None where no two are ranks that begin at 1."""
    return _header(names, columns, inside=False) or _header(names, columns, inside=True)


def _header(names: list[str], columns: Said, inside: bool) -> Header | None:
    names = list(names)
    while names and not str(names[-1]).strip():  # columns without a name at the end must be empty
        names.pop()
    if {"best", "worst"} <= {plain(name) for name in names}:
        return None  # items that were shown, of which one is best and one worst
    ranks: dict[str, dict[int, int]] = {}
    weight = agent = None
    others: dict[str, int] = {}
    for place, name in enumerate(names[:MOST_COLUMNS]):
        if name in columns.ignore:
            continue
        said = rank_in(str(name), inside)
        if name == columns.agent:
            agent = place
        elif name == columns.counts:
            weight = place
        elif said is not None:
            of_contest = ranks.setdefault(said[0], {})
            if said[1] in of_contest:
                return None  # two columns for one rank: the reader of tables says so
            of_contest[said[1]] = place
        elif plain(name) in WEIGHTS and columns.counts is None:
            if weight is not None:
                return None  # two columns could count ballots: the reader of tables asks
            weight = place
        elif (
            (plain(name) in IDS or (place == 0 and not str(name).strip()))
            and agent is None
            and columns.agent is None
        ):
            agent = place
        elif not str(name).strip():
            return None  # a column without a name may be a rank: the reader of tables says so
        elif str(name) in others:
            return None
        else:
            others[str(name)] = place
    whole = {contest: by for contest, by in ranks.items() if sorted(by) == list(range(1, len(by) + 1))}
    enough = any(len(by) > 1 for by in whole.values())
    return Header(whole, weight, agent, others) if enough and len(whole) == len(ranks) else None


def contests(source: Source) -> dict[str, str]:
    """Return the contests by the name that the columns of their ranks begin with."""
    table = _table(source)
    header = header_of(table.names, source.said)
    assert header is not None
    column = _contest_column(source, table, header)
    if column is not None:
        return {name: name for name in column.contests}
    return {name or "1": name or "the only contest" for name in header.ranks}


def _contest_column(source: Source, table: _Table, header: Header) -> ContestColumn | None:
    """Return the column that says of which contest a row is, where the names of ranks do not."""
    if len(header.ranks) > 1:
        return None
    roles = {table.names[at] for at in (header.weight, header.agent) if at is not None}
    names = known_columns(table.names, {*source.said.ignore, *source.said.beside, *roles})
    if "contest column" not in source.kept:
        by_rank = next(iter(header.ranks.values()))
        places = list(by_rank.values())
        found = contest_column(names, table.columns, places)
        asked: str | None = source.kept.get("asked for")
        others = ["" if place in places else name for place, name in enumerate(names)]
        if asked is not None and (found is None or asked not in found.contests):
            found = column_holding(others, table.columns, asked, source.path) or found
        if found is None and header.agent is not None and header.weight is None:
            found = column_of_agents(others, table.columns, header.agent)
        source.kept["contest column"] = found
    kept: ContestColumn | None = source.kept["contest column"]
    return kept


def read(source: Source, contest: str | None) -> Ballots:
    """Read the marks of one contest."""
    table = _table(source)
    names, columns, numbers = table
    header = header_of(names, source.said)
    assert header is not None
    column = _contest_column(source, table, header)
    way_out = () if column is None else column.way_out()
    chosen = chosen_contest(contests(source), contest, source.path, way_out=way_out)
    if column is None:
        by_rank = header.ranks["" if chosen == "1" and "" in header.ranks else chosen]
    else:
        by_rank = next(iter(header.ranks.values()))
        rows = rows_of(columns[column.place], chosen).tolist()
        if column.n_blank:
            said = f"{source.path}: {column.n_blank:,} of {len(columns[0]):,} rows name no contest in column "
            warnings.warn(f"{said}{column.name!r}, and are left out", PermixWarning, stacklevel=4)
        columns = [tuple(entries[row] for row in rows) for entries in columns]
        numbers = [numbers[row] for row in rows]
    n_rows = len(columns[0])
    counts = _counts(source, numbers, None if header.weight is None else columns[header.weight], n_rows)
    marks = _Marks(_zero_among(source, by_rank, columns, numbers))
    codes = np.column_stack([marks.coded(columns[by_rank[rank]]) for rank in range(1, len(by_rank) + 1)])
    if not marks.candidates:
        raise DataError(f"{source.path}: no ballot names a candidate")
    refuse_sets(source.path, marks.candidates)
    if len(marks.candidates) == 1:
        refuse_one_mark(source.path, next(iter(marks.candidates)), int((codes >= 0).any(axis=0).sum()))
    if header.weight is not None:
        refuse_counted_notes(
            [columns[by_rank[rank]] for rank in sorted(by_rank)],
            counts,
            lambda row: f"{source.path}, line {numbers[row]}",
            lambda entry: is_nothing(entry.strip()),
        )
    for joined in joined_items(marks.candidates):
        row = int(np.argmax((codes == marks.candidates[joined]).any(axis=1)))
        raise DataError(
            f"{source.path}, line {numbers[row]}: {joined!r} seems to be several candidates at one rank, who "
            "stand alone elsewhere; write overvote there, or give the candidate another name"
        )
    unsaid = {name: columns[place] for name, place in header.others.items() if name not in source.said.beside}
    if column is None and len(header.ranks) == 1:
        warn_of_perhaps(source.path, list(unsaid), list(unsaid.values()))
    for name, place in header.others.items():
        if name not in source.said.beside:
            _ask_about(source, name, columns[place], marks.candidates, header.weight is None)
    if header.weight is None and header.agent is None:
        told = {name: each for name, each in unsaid.items() if plain(name) not in HARDLY_ITEMS}
        refuse_several_counts(source.path, told, list(map(tuple, codes.tolist())))
    roles = {
        "columns": list(names),
        "agent": None if header.agent is None else names[header.agent],
        "count": None if header.weight is None else names[header.weight],
        **({} if column is None else {"contest": chosen, "contest column": column.name}),
    }
    ballot, rank = np.nonzero((codes >= 0) | (codes == UNNAMED))
    told = tuple(sorted(marks.marks))
    done = "read as ranks left empty, or as overvotes"
    n_told = int(counts[((codes == MARK) | (codes == UNNAMED)).any(axis=1)].sum())
    audit = (
        (Entry("ballots with entries that are marks and no candidates", done, n_told, told),) if told else ()
    )
    whole = Ballots(
        items=tuple(marks.candidates),
        n_ranks=len(by_rank),
        counts=counts,
        ballot=ballot.astype(np.int64),
        rank=rank.astype(np.int32),
        item=codes[ballot, rank],
        agents=None if header.agent is None else np.array(columns[header.agent], dtype=object),
        covariates={name: np.array(columns[place], dtype=object) for name, place in header.others.items()},
        write_ins=tuple(name for name in marks.candidates if is_write_in(name)),
        metadata={"TITLE": "" if chosen == "1" else chosen, "FORMAT": TITLE, "TABLE": roles},
        audit=audit,
    )
    return whole.without_empty_rows()


def _ask_about(
    source: Source, name: str, entries: Sequence[str], candidates: Collection[str], no_counts: bool
) -> None:
    """Refuse a column that may be a rank or say how many ballots a row stands for, and is called neither."""
    found = Counter(entry.strip() for entry in entries)
    for entry in [entry for entry in found if is_nothing(entry) or says_several(entry)]:
        del found[entry]  # a last rank may hold hardly anything else
    way_out = (" Leave it out with ", Argument("ignore", name), ", or keep it beside the votes with ")
    leave: tuple[Part, ...] = (*way_out, Argument("group_columns", [name]))
    if 2 * sum(n for entry, n in found.items() if entry in candidates) > found.total():
        said = f"{source.path}: column {name!r} holds candidates; if it is a rank, call it so, as rank1 is."
        raise DataError(said, *leave)
    if no_counts and may_count(name, found):
        said = f"{source.path}: column {name!r} may say how many ballots a row stands for: "
        raise DataError(said, Argument("count_column", name), " (whole numbers).", *leave)


def _zero_among(
    source: Source, by_rank: dict[int, int], columns: list[tuple[str, ...]], numbers: Sequence[int]
) -> list[str]:
    """Return 0 where it stands among names, and so for nobody; refuse other numbers that may say so."""
    entries = [entry.strip() for place in by_rank.values() for entry in dict.fromkeys(columns[place])]
    found = codes_among(entry for entry in entries if not is_nothing(entry) and not is_write_in(entry))
    for code in found:
        if float(code) != 0:
            row = next(
                row
                for row, line in enumerate(zip(*(columns[at] for at in by_rank.values()), strict=True))
                if code in map(str.strip, line)
            )
            raise DataError(
                f"{source.path}, line {numbers[row]}: {code!r} stands among names and may say that nobody "
                "was marked; leave such ranks blank, or give the candidate a name"
            )
    return found


class _Marks:
    """Candidates by code, as they are found column by column; the same entry is looked at once."""

    def __init__(self, nothing: Collection[str]) -> None:
        self.nothing = nothing
        self.candidates: dict[str, int] = {}
        self.marks: set[str] = set()  # entries that are no candidates
        self._known: dict[str, int] = {}

    def coded(self, entries: Sequence[str]) -> Array:
        """Return candidates of a column as codes, UNNAMED for overvotes, MARK and BLANK for nothing."""
        for entry in dict.fromkeys(entries):
            if entry not in self._known:
                self._known[entry] = self._code(entry.strip())
        return np.fromiter(map(self._known.__getitem__, entries), np.int32, len(entries))

    def _code(self, text: str) -> int:
        if is_nothing(text) or text in self.nothing:
            self.marks |= {text} if text else set()
            return MARK if text else BLANK
        if says_several(text):
            self.marks.add(text)
            return UNNAMED
        return self.candidates.setdefault(text, len(self.candidates))


def _counts(source: Source, numbers: Sequence[int], weights: Sequence[str] | None, n_rows: int) -> Array:
    """Return how many ballots each row stands for."""
    if weights is None:
        return np.ones(n_rows, np.int64)
    found = {entry: _count(entry) for entry in dict.fromkeys(weights)}
    for row, entry in enumerate(weights):
        if found[entry] < 0:
            raise DataError(
                f"{source.path}, line {numbers[row]}: the weight {entry!r} is not a whole number from 0 on, "
                "and so does not count ballots; fit without such weights: leave the column out with ",
                Argument("ignore"),
            )
    return np.fromiter(map(found.__getitem__, weights), np.int64, n_rows)


def _count(entry: str) -> int:
    """A weight, or -1 where it is none; 1.000 could be a thousand."""
    if POINTS.fullmatch(entry.strip()):
        return -1
    try:
        value = float(without_marks(entry.strip()))
    except ValueError:
        return -1
    return int(value) if 0 <= value < 2**53 and value == int(value) else -1


class _Table(NamedTuple):
    names: list[str]
    columns: list[tuple[str, ...]]
    numbers: Sequence[int]  # of the lines


def _table(source: Source) -> _Table:
    """Return the columns of a table; they are read once."""
    kept: dict[str, _Table] = source.kept
    if "rank columns" not in kept:
        kept["rank columns"] = _of_lines(source) if container(source.path) == "text" else _of_file(source)
    return kept["rank columns"]


def _of_file(source: Source) -> _Table:
    lines = read_lines(source.path, sheet=source.sheet)
    columns = list(zip(*lines.fields[1:], strict=True)) or [()] * len(lines.fields[0])
    return _Table(lines.fields[0], columns, lines.numbers[1:])


def _of_lines(source: Source) -> _Table:
    name = source.names[0]
    said, text = said_delimiter(source.text(name))
    wanted = _first_names(source)
    top = next(line for line in text.splitlines() if line.strip())
    delimiter = said or next((d for d in ",\t;|" if wanted == next(csv.reader([top], delimiter=d))), "")
    delimiter = delimiter or _delimiter_of(text, wanted)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names = next(lines)
    above: list[tuple[int, list[str]]] = []
    while names != wanted:
        above += [(lines.line_num, names)] if any(names) else []
        names = next(lines)
    if above:
        say_left_out(source.path, [n for n, _ in above], [row for _, row in above], TITLES)
    rows, numbers, n_read, before = [], [], 0, lines.line_num
    for row in lines:
        n_read += 1
        if not row:
            continue
        numbers.append(lines.line_num)
        rows.append(row)
    if lines.line_num - before > n_read or "\0" in text:
        spread = (n for n, row in zip(numbers, rows, strict=True) if any({"\n", "\0"} & set(e) for e in row))
        raise source.fail(name, f"line {next(spread, 1)}: an entry goes over several lines")
    refuse_spreadsheet_errors(source.path, text, numbers, rows)
    last = end_of(source.path, numbers, rows)
    for number, row in zip(numbers[:last], rows[:last], strict=True):
        if len(row) != len(names):
            way_out = "fill it up" if len(row) < len(names) else "put names with a comma into quotes"
            raise source.fail(
                name,
                f"line {number} has {len(row)} fields where the first line has {len(names)}; {way_out}",
            )
    both = without_names_again(source.path, [0, *numbers[:last]], [names, *rows[:last]], names=True)
    numbers, rows = both[0][1:], both[1][1:]
    while names and not names[-1].strip():
        if any(row[len(names) - 1].strip() for row in rows):
            raise source.fail(
                name, f"column {len(names)} has no name; name it, so that it is clear what it is"
            )
        names = names[:-1]
        rows = [row[: len(names)] for row in rows]
    return _Table(names, list(zip(*rows, strict=True)) or [()] * len(names), numbers)


def _delimiter(line: str) -> str:
    return max(",\t;|", key=line.count)


def _delimiter_of(text: str, names: list[str]) -> str:
    """Return the delimiter of the line with these names, which stands under titles."""
    for line in text.splitlines()[: 2 * MOST_TITLES]:
        delimiter = _delimiter(line)
        if line.strip() and next(csv.reader([line], delimiter=delimiter)) == names:
            return delimiter
    return _delimiter(text.partition("\n")[0])


class _Looks(NamedTuple):
    """What entries at the ranks look like, all of them."""

    names: bool  # whether some are names: numbers and ordinals alone could be ranks of items
    marks: bool  # whether some are marks that no candidate is called
    repeats: bool  # whether most rows have an entry twice, as answers to questions do


def _looks(source: Source, header: Header) -> _Looks:
    columns = _table(source).columns
    marks, repeated = _Marks(()), 0
    for by_rank in header.ranks.values():
        codes = np.sort(np.column_stack([marks.coded(columns[place]) for place in by_rank.values()]), axis=1)
        again = (codes[:, 1:] == codes[:, :-1]) & (codes[:, 1:] >= 0)
        repeated = max(repeated, int(again.any(axis=1).sum()))
    numeric = [e for e in marks.candidates if re.fullmatch(r"[-+]?[0-9.]+(st|nd|rd|th)?", e)]
    telling = {plain(entry) for entry in marks.marks - MISSING} - {"none", "blank", "n/a"}
    n, most = len(marks.candidates), max(map(len, header.ranks.values()))
    # Beside words such as undervote, numbers beyond the number of ranks are candidates, as in New York.
    ids = bool(telling) and any(re.fullmatch(r"[0-9]{1,15}", e) and int(e) > most for e in numeric)
    return _Looks(ids or n - len(numeric) > n / 2, bool(telling), 2 * repeated > len(columns[0]))
