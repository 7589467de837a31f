"""Exports of Polis conversations: who agreed (1), disagreed (-1) or passed (0) on which statement, in words.

``votes.csv`` has a line for each vote; somebody may vote again on a statement, and the latest vote counts.
``participants-votes.csv`` is wide and has columns that are no statements, such as Polis's own groups. Where
``comments.csv`` lies beside them, the texts of statements are shown with their numbers. Statements that
moderators rejected, which Polis hides, are kept, since people voted on them, and are told.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from permix.data.attributes import NONE, Attributes, from_text
from permix.data.ballots import Entry
from permix.data.cells import Cells
from permix.data.cells_codes import MissingCodes
from permix.data.io.table_columns import Table, is_blank, no_column
from permix.data.io.text_files import PathLike, read_text
from permix.data.labels import as_objects
from permix.data.levels import Scores
from permix.data.preferences import Preferences
from permix.errors import Argument, DataError, FileFormatError, ParameterError

VOTES = ("timestamp", "comment-id", "voter-id", "vote")
WIDE = ("participant", "group-id", "n-comments", "n-votes", "n-agree", "n-disagree")
# Which columns count the votes of a participant.
COUNTED = {"1": "n-agree", "-1": "n-disagree"}
# What is known of statements, by their numbers.
_Comments = dict[str, dict[str, str | None]]
# Characters in which names of columns are looked for.
MOST_NAMES = 10_000
# What may be done about statements that moderators rejected.
MODERATED = ("keep", "drop")
# What the files write for each vote.
WORDS = {"1": "agree", "-1": "disagree", "0": "pass"}


def kind_by_names(names: Sequence[object]) -> str | None:
    """Say which file of a Polis export has these columns; None where none has."""
    known = {str(name).strip() for name in names}
    if set(VOTES) <= known:
        return "votes"
    # Somebody may have taken some of the columns out that Polis writes beside the votes.
    return "participants" if WIDE[0] in known and len(known.intersection(WIDE)) > 2 else None


class _Rows:
    """Rows of a table that is no plain text, as texts; ``line_num`` is that of the last one."""

    def __init__(self, table: Table) -> None:
        self.columns, self.line_num, self.n_rows = table.columns, 1, table.n_rows

    def __iter__(self) -> Iterator[list[str]]:
        for row in range(self.n_rows):
            self.line_num = row + 2
            yield [_text(column[row]) for column in self.columns]


def _text(entry: object) -> str:
    """Return an entry as a file of text has it."""
    if is_blank(entry):
        return ""
    return str(int(entry)) if isinstance(entry, float) and entry.is_integer() else str(entry)


def is_polis(path: PathLike) -> str | None:
    """Say which file of a Polis export this is, ``votes`` or ``participants``; None where it is another."""
    if not str(path).lower().removesuffix(".gz").endswith(".csv"):
        return None
    return kind_by_names(_names(read_text(path)[:MOST_NAMES].partition("\n")[0]))


def read_polis(
    path: PathLike,
    kind: str,
    codes: MissingCodes,
    new_rows: bool = False,
    group_columns: Sequence[str] = (),
    ignore: Sequence[str] = (),
    table: Table | None = None,
    moderated: str | None = None,
) -> Cells:
    """Read the votes of a Polis conversation as a matrix of participants and statements.

    ``codes`` are votes that count as missing, such as "pass", or 0, as the file writes it. Statements are
    called by their numbers, and have their texts as an attribute. Columns to ``ignore`` may be statements,
    or columns that somebody added. A ``table`` is what was read of a file that is no plain text.
    ``moderated`` says whether statements that moderators rejected stay: "keep", as where it is left out, or
    "drop".
    """
    return _read(path, kind, codes, new_rows, group_columns, ignore, table, moderated)[0]


def _read(
    path: PathLike,
    kind: str,
    codes: MissingCodes,
    new_rows: bool,
    group_columns: Sequence[str],
    ignore: Sequence[str],
    table: Table | None,
    moderated: str | None,
) -> tuple[Cells, list[Entry]]:
    """Return the matrix, and what was done to the votes."""
    if moderated not in (None, *MODERATED):
        raise ParameterError("moderated", moderated, " or ".join(map(repr, MODERATED)))
    lines: Iterable[list[str]]
    if table is None:
        lines = csv.reader(io.StringIO(read_text(path), newline=""))
        names = [name.strip() for name in next(lines)]
    else:
        lines, names = _Rows(table), [str(name).strip() for name in table.names]
    for name in ignore:
        if name not in names:
            raise no_column(path, name, " to ignore", names)
        if kind == "votes" and name in VOTES:
            raise DataError(f"{path}: column {name!r} says who voted how and when, and cannot be left out")
    cells, note, n_again = (
        _latest(path, names, lines) if kind == "votes" else _wide(path, names, lines, ignore)
    )
    audit = [Entry("votes that came later", "count instead of earlier ones", n_again)] if n_again else []
    comments = _comments(path)
    cells, said = _moderated(path, cells, comments, moderated)
    audit += said
    note += "".join(f"; {entry.found}: {entry.done}" for entry in said)
    if not cells:
        raise DataError(f"{path}: nobody voted")
    people = sorted({who for who, _ in cells}, key=_number)
    statements = sorted({what for _, what in cells}, key=_number)
    row_of, column_of = ({name: place for place, name in enumerate(each)} for each in (people, statements))
    rows = np.array([row_of[who] for who, _ in cells])
    columns = np.array([column_of[what] for _, what in cells])
    votes = codes.blanked(as_objects(list(cells.values()))).tolist()
    values = codes.blanked(as_objects([None if vote is None else WORDS[vote] for vote in votes]))
    codes.warn_of_unseen()
    texts = [" ".join((comments.get(number, {}).get("comment-body") or "").split()) for number in statements]
    known = Attributes({"text": texts}) if comments else NONE
    order = np.lexsort((columns, rows))
    found = Cells(
        rows[order],
        columns[order],
        values[order],
        (len(people), len(statements)),
        people,
        statements,
        f"from {path}, a Polis conversation{note}",
        new_rows=new_rows,
        covariates=_covariates(path, kind, people, group_columns, table),
        item_attributes=known,
    )
    if audit:
        found.metadata["CLEANING"] = [entry._asdict() for entry in audit]
    return found, audit


def _moderated(
    path: PathLike, cells: dict[tuple[str, str], str], comments: _Comments, wanted: str | None
) -> tuple[dict[tuple[str, str], str], list[Entry]]:
    """Keep or leave out votes on statements that moderators rejected, and say so."""
    told = [each.get("moderated") for each in comments.values()]
    if wanted is not None and not any(told):
        said = "; no comments.csv with a column 'moderated' lies beside it"
        raise DataError(f"{path}: ", Argument("moderated"), f" has nothing to go by{said}")
    voted = {what for _, what in cells}
    rejected = sorted(
        (number for number in voted if (comments.get(number, {}).get("moderated") or "").strip() == "-1"),
        key=_number,
    )
    if not rejected:
        return cells, []
    n, out = len(rejected), set(rejected)
    found = f"votes on {n:,} statement{'s' * (n != 1)} that moderators rejected"
    if wanted != "drop":
        on = sum(1 for _, what in cells if what in out)
        return cells, [Entry(found, "kept", on, tuple(rejected[:5]), 0, "moderated")]
    kept = {key: vote for key, vote in cells.items() if key[1] not in out}
    gone = len(cells) - len(kept)
    silent = len({who for who, _ in cells} - {who for who, _ in kept})
    audit = [Entry(found, "left out, with the statements", gone, tuple(rejected[:5]), 0, "moderated")]
    if silent:
        audit.append(Entry("participants who voted on no other statement", "left out", silent, (), silent))
    return kept, audit


def read_polis_votes(
    path: PathLike,
    group_columns: Sequence[str] = (),
    ignore: Sequence[str] = (),
    table: Table | None = None,
    moderated: str | None = None,
) -> Preferences:
    """Read a Polis conversation as preferences: what somebody agrees with is above what they pass or reject.

    Statements that were not shown are unknown. ``metadata["CLEANING"]`` says that votes were read so.
    """
    kind = is_polis(path) if table is None else kind_by_names(table.names)
    assert kind is not None
    cells, audit = _read(path, kind, MissingCodes(None), False, group_columns, ignore, table, moderated)
    score = {"agree": 1.0, "pass": 0.0, "disagree": -1.0}
    values = np.array([score[str(value)] for value in cells.values.tolist()])
    names = tuple(cells.column_names or ())
    people = np.array(cells.row_names, dtype=object)
    scores = Scores(
        names, cells.n_rows, people, cells.rows, cells.columns, values, lambda at: f"{path}, vote {at + 1}"
    )
    done = "statements agreed with are above those passed, and these above those disagreed with"
    told = [entry._asdict() for entry in (Entry("a Polis conversation", done, cells.n_rows), *audit)]
    read = Preferences._from_scores(scores, False, np.ones(cells.n_rows, dtype=np.int64))
    metadata = {"FORMAT": "Polis conversation", "CLEANING": told}
    return read._replaced(
        metadata=metadata, covariates=cells.covariates, item_attributes=cells.item_attributes
    )


def _covariates(
    path: PathLike, kind: str, people: list[str], wanted: Sequence[str], table: Table | None
) -> Attributes:
    """Return columns that Polis writes beside the votes of each participant, such as its own groups."""
    if not wanted:
        return NONE
    if kind == "votes":
        said = "votes.csv has no columns of participants; participants-votes.csv has"
        raise DataError(f"{path}: {said} {', '.join(WIDE[1:])}")
    if table is None:
        lines = list(csv.DictReader(io.StringIO(read_text(path), newline="")))
    else:
        lines = [dict(zip(map(str, table.names), row, strict=True)) for row in _Rows(table)]
    of = {line["participant"]: line for line in lines}
    for name in wanted:
        if name not in WIDE[1:]:
            raise no_column(path, name, " of the participants", WIDE[1:])
    return from_text({name: [of[who][name] for who in people] for name in wanted})


def _names(line: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([line]), [])]


def _number(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() and len(text) < 19 else (2**62, text)


def _latest(
    path: PathLike, names: list[str], lines: Iterable[list[str]]
) -> tuple[dict[tuple[str, str], str], str, int]:
    """Return the latest vote of everybody on each statement, and how many were replaced, also in words."""
    time, what, who, vote = (names.index(name) for name in VOTES)
    latest: dict[tuple[str, str], tuple[float, str]] = {}
    n_again = 0
    for line in lines:
        if not line:
            continue
        if len(line) != len(names):
            raise _wrong(path, lines, f"{len(line)} entries under {len(names)} names")
        try:
            at = float(line[time])
            if not math.isfinite(at):
                raise ValueError
        except ValueError:
            raise _wrong(path, lines, f"{line[time]!r} is no time") from None
        key, said = (line[who].strip(), line[what].strip()), _vote(path, lines, line[vote])
        n_again += key in latest
        if key not in latest or at >= latest[key][0]:
            latest[key] = (at, said)
    note = f"; {n_again:,} votes were replaced by later ones" if n_again else ""
    return {key: said for key, (_, said) in latest.items()}, note, n_again


def _wide(
    path: PathLike, names: list[str], lines: Iterable[list[str]], ignore: Sequence[str] = ()
) -> tuple[dict[tuple[str, str], str], str, int]:
    """Return the votes of a wide file, which has each once; the columns that count votes are left out."""
    cells: dict[tuple[str, str], str] = {}
    who = names.index("participant")
    statements = [place for place, name in enumerate(names) if name not in (*WIDE, *ignore)]
    for place in statements:
        if not names[place].isdecimal():
            said = f"column {names[place]!r} is no statement, which have numbers, and none that Polis writes"
            raise DataError(f"{path}: {said}; leave it out with ", Argument("ignore", names[place]))
    seen: set[str] = set()
    told = {"1": 0, "-1": 0}  # by the columns that count votes
    counted = {vote: names.index(name) for vote, name in COUNTED.items() if name in names}
    for line in lines:
        if not line:
            continue
        if len(line) != len(names):
            raise _wrong(path, lines, f"{len(line)} entries under {len(names)} names")
        for vote, place in counted.items():
            told[vote] += int(line[place]) if line[place].isdecimal() else 0
        if line[who] in seen:
            raise _wrong(path, lines, f"participant {line[who]!r} has a line already")
        seen.add(line[who])
        for place in statements:
            if line[place].strip():
                cells[line[who], names[place]] = _vote(path, lines, line[place])
    if len(counted) == 2:
        _refuse_turned_signs(path, list(cells.values()), told)
    return cells, f" without {', '.join(dict.fromkeys([*WIDE[1:], *ignore]))}", 0


def _refuse_turned_signs(path: PathLike, votes: list[str], told: dict[str, int]) -> None:
    """Refuse votes whose signs are the other way around than the columns that count them say."""
    found = {vote: votes.count(vote) for vote in told}
    as_told = abs(found["1"] - told["1"]) + abs(found["-1"] - told["-1"])
    turned = abs(found["1"] - told["-1"]) + abs(found["-1"] - told["1"])
    if turned < as_told:
        raise FileFormatError(
            f"{path}: there are {found['1']:,} votes of 1 and {found['-1']:,} of -1, but n-agree and "
            f"n-disagree add up to {told['1']:,} and {told['-1']:,}: the signs seem to be turned around. "
            "Multiply the votes by -1, or, if they are right, take these two columns out",
            path,
        )


def _vote(path: PathLike, lines: Iterable[list[str]], text: str) -> str:
    vote = text.strip().removesuffix(".0")
    if vote not in WORDS:
        raise _wrong(path, lines, f"{text!r} is no vote: these are 1, -1 and 0")
    return vote


def _wrong(path: PathLike, lines: Iterable[list[str]], why: str) -> FileFormatError:
    number = getattr(lines, "line_num", 0)
    return FileFormatError(f"{path}, line {number}: {why}", path, number)


def _comments(path: PathLike) -> _Comments:
    """Return what ``comments.csv`` in the same folder says of the statements, by their numbers."""
    for name in ("comments.csv", "comments.csv.gz"):
        beside = Path(path).with_name(name)
        if beside.is_file():
            lines = csv.DictReader(io.StringIO(read_text(beside), newline=""))
            if {"comment-id", "comment-body"} <= set(lines.fieldnames or ()):
                return {line["comment-id"]: line for line in lines}
    return {}
