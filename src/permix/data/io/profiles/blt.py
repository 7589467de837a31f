"""BLT, the format of OpaVote, OpenSTV and other programs that count single transferable votes.

``4 2`` (candidates, seats); ``-2`` (candidates who withdrew); a line ``3 1 2=4 0`` for three ballots that
rank candidate 1 first and then 2 and 4 alike; ``0``; names in quotes, and the title. ``#`` begins a comment,
``-`` stands for a rank that was skipped, and ``(A17)`` before a ballot is its id.
"""

from __future__ import annotations

import re
import warnings
from typing import Any, NoReturn

from permix.data.agent_table import refuse_to_write
from permix.data.ballots import Entry
from permix.data.io.preflib_writer import level_groups
from permix.data.io.profiles.rows import as_votes, empty_and_idle
from permix.data.io.text_files import PathLike, read_text, shorten, write_text
from permix.data.io.written_names import refuse_names
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, FileFormatError, PermixWarning, Wording

TITLE = "BLT (OpaVote, OpenSTV)"
MOST_CANDIDATES = 1_000_000
_HEAD = re.compile(
    r"(?:\s*(?:#[^\n]*)?\n)*\s*\d{1,7}[ \t]+\d{1,7}[ \t]*(?:#[^\n]*)?\n(?P<rest>.*)", re.DOTALL
)
_LINE = re.compile(r"(?:\([^()]*\)\s*)?\d+(?:\.\d+)?(?:\s+(?:\d+(?:=\d+)*|-))*\s+0|0|(?:-\d+\s*)+")
_NAMED = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|(\S.*?))\s*')
_WEIGHT = re.compile(
    r"(?:\((?P<id>[^()]*)\)\s*)?(?P<weight>\d{1,15}(?:\.\d+)?)(?P<rest>(?:\s.*)?)", re.DOTALL
)


def looks_like(head: str) -> bool:
    """Whether a text, or its beginning, is BLT: two numbers, then lines of numbers that end with 0."""
    found = _HEAD.match(head.replace("\r", ""))
    if found is None:
        return False
    lines = [_bare(line) for line in found["rest"].split("\n")]
    lines = [line for line in lines[: 50 if len(lines) > 50 else len(lines)] if line]
    numbers = [line for line in lines if not line.startswith('"')]
    return (
        bool(numbers)
        and _LINE.fullmatch(numbers[0]) is not None
        and numbers[0] != "0"
        and (all(_LINE.fullmatch(line) for line in numbers) or any(line.startswith('"') for line in lines))
    )


def _bare(line: str) -> str:
    """Return a line without its comment; # in quotes is part of a name."""
    if "#" not in line:
        return line.strip()
    quoted = re.match(r'\s*"(?:[^"\\]|\\.)*"', line)
    return quoted[0].strip() if quoted is not None else line.partition("#")[0].strip()


def read_blt(path: PathLike, unlisted: str | None = "below") -> Rankings | Preferences:
    """Read a BLT file.

    Parameters
    ----------
    path : path
    unlisted : {"below", "unknown"}
        What it means for a candidate not to be on a ballot; None is "below".

    Returns
    -------
    Rankings, or Preferences where candidates are ranked alike
        A row for each line. Candidates who withdrew are left out; the audit in ``metadata["CLEANING"]`` says
        so, and how many ballots name nobody.

    Examples
    --------
    >>> permix.read("council.blt")  # doctest: +SKIP
    """
    if unlisted not in (None, "below", "unknown"):
        raise DataError(f"unlisted is 'below' or 'unknown', not {unlisted!r}")
    return _Reader(path).read(unlisted != "unknown")


class _Reader:
    """One pass over one file; holds what every error message needs."""

    def __init__(self, path: PathLike) -> None:
        self.path = path
        lines = read_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self.lines = [(number, bare) for number, line in enumerate(lines, start=1) if (bare := _bare(line))]

    def fail(self, line: int, why: str, text: str) -> NoReturn:
        raise FileFormatError(f"{self.path}, line {line}: {why}: {shorten(text)!r}", self.path, line)

    def read(self, below: bool) -> Rankings | Preferences:
        number, first = self.lines[0]
        if not re.fullmatch(r"\d{1,7}\s+\d{1,7}", first):
            self.fail(number, "the first line has the number of candidates and of seats", first)
        n_items, n_seats = map(int, first.split())
        if not 1 <= n_items <= MOST_CANDIDATES:
            self.fail(number, f"{n_items:,} candidates cannot be read", first)
        end = next((at for at, (_, text) in enumerate(self.lines[1:], start=1) if text == "0"), None)
        if end is None:
            raise FileFormatError(
                f"{self.path}: no line with 0 alone ends the ballots; is it cut short?", self.path
            )
        names, title = self._names(end, n_items)
        gone: set[int] = set()
        rows: list[list[list[str]]] = []
        counts, ids, skipped, blank, idle, touched = [], [], 0, 0, 0, 0
        for number, text in self.lines[1:end]:
            if re.fullmatch(r"-\d+(\s+-\d+)*", text) and not rows:
                gone |= {self._candidate(number, token[1:], n_items, text) for token in text.split()}
                continue
            who, count, groups, passed = self._ballot(number, text, n_items)
            kept = [[item for item in group if item not in gone] for group in groups]
            touched += count * (kept != groups)
            skipped += count * passed
            kept = [group for group in kept if group]
            if not kept:
                blank += count
            elif count == 0:
                idle += 1
            else:
                rows.append([[names[item] for item in group] for group in kept])
                counts.append(count)
                ids.append(who)
        if not rows:
            raise FileFormatError(f"{self.path}: no ballot names a candidate", self.path)
        audit = []
        if gone:
            which = tuple(names[item] for item in sorted(gone))
            audit.append(Entry("candidates who withdrew", "left out; later ranks move up", touched, which))
        if skipped:
            audit.append(Entry("skipped ranks", "later ranks move up", skipped))
        audit += empty_and_idle(blank, idle)
        metadata: dict[str, Any] = {"FORMAT": TITLE, "SEATS": n_seats, **({"TITLE": title} if title else {})}
        items = [name for item, name in enumerate(names) if item not in gone]
        agents = ids if all(ids) else None
        if agents is not None and len(set(agents)) < len(agents):
            raise FileFormatError(f"{self.path}: two ballots have the same id", self.path)
        return as_votes(rows, counts, items, metadata, audit, below, agents)

    def _names(self, end: int, n_items: int) -> tuple[list[str], str]:
        found = []
        for number, text in self.lines[end + 1 :]:
            name = _NAMED.fullmatch(text)
            if name is None or (text.count('"') % 2 and name[1] is None):
                self.fail(number, "a name stands in a line of its own, in quotes", text)
            told = name[2] if name[1] is None else re.sub(r"\\(.)", r"\1", name[1])
            found.append(told.strip())
            if not found[-1] and len(found) <= n_items:
                self.fail(number, "a candidate without a name", text)
        if not n_items <= len(found) <= n_items + 3:  # the title, and what some programs write after it
            said = f"{n_items} candidates are said to stand, and {len(found)} names and titles follow"
            raise FileFormatError(f"{self.path}: {said}", self.path)
        names = found[:n_items]
        if len(set(names)) < n_items:
            twice = next(name for name in names if names.count(name) > 1)
            raise FileFormatError(
                f"{self.path}: two candidates are called {twice!r}; tell them apart", self.path
            )
        if len(found) == n_items:
            warnings.warn(
                f"{self.path}: {n_items} names and no title follow; if the last, {names[-1]!r}, is the "
                "title, a name is missing, and others are at the wrong candidates",
                PermixWarning,
                stacklevel=4,
            )
            return names, ""
        return names, found[n_items]

    def _candidate(self, number: int, token: str, n_items: int, text: str) -> int:
        if not token.isdecimal() or not 1 <= int(token) <= n_items:
            self.fail(number, f"{token!r} is none of the candidates 1 to {n_items}", text)
        return int(token) - 1

    def _ballot(self, number: int, text: str, n_items: int) -> tuple[str, int, list[list[int]], bool]:
        """Return id, count, groups of candidates, and whether a rank was skipped before another."""
        found = _WEIGHT.fullmatch(text)
        if found is None:
            self.fail(number, "a ballot is a count, candidates by number, best first, and 0", text)
        weight = found["weight"]
        if "." in weight and float(weight) != int(float(weight)):
            self.fail(
                number, f"the weight {weight} is not a whole number; multiply all weights, or round", text
            )
        tokens = found["rest"].split()
        if not tokens or tokens[-1] != "0":
            self.fail(number, "a ballot ends with 0, on the same line", text)
        if "0" in tokens[:-1]:
            self.fail(number, "one ballot in a line: 0 ends it", text)
        groups: list[list[int]] = []
        skipped = passed = False
        for token in tokens[:-1]:
            if token == "-":
                skipped = True
                continue
            passed |= skipped
            groups.append([self._candidate(number, each, n_items, text) for each in token.split("=")])
        listed = [item for group in groups for item in group]
        if len(set(listed)) < len(listed):
            twice = next(item for item in listed if listed.count(item) > 1)
            self.fail(number, f"candidate {twice + 1} is listed twice", text)
        return (found["id"] or "").strip(), int(float(weight)), groups, passed


def write_blt(obj: Rankings | Preferences, path: PathLike) -> None:
    """Write rankings or tied preferences as BLT, with one seat unless the data came with a number of seats.

    Rows that say the same are one line. Comparisons, and rankings whose other items are unknown, have no
    place in the format; neither have agent ids.
    """
    refuse_to_write(obj)
    refuse_names(obj.items, "item")
    stated = obj.arrays()
    if len(stated.pairs):
        way_out = ("permix.write_table(obj, path, layout='pairs')", "a .csv file with --to-layout pairs")
        raise DataError("pairwise statements have no place in BLT; ", Wording(*way_out), " keeps them")
    if not stated.rest_below.all():
        raise DataError(
            "BLT cannot say that unlisted items are unknown; write a table with ", Argument("layout", "ranks")
        )
    tally: dict[str, int] = {}
    for groups, count in zip(level_groups(stated), obj.counts.tolist(), strict=True):
        text = " ".join("=".join(str(item + 1) for item in group) for group in groups)
        if not text:
            raise DataError("a row states nothing, which BLT cannot hold")
        tally[text] = tally.get(text, 0) + count
    metadata = obj.metadata or {}
    seats = metadata.get("SEATS", 1)
    title = str(metadata.get("TITLE") or metadata.get("FILE NAME") or "permix")
    lines = [f"{obj.n_items} {seats if isinstance(seats, int) and seats > 0 else 1}"]
    lines += [f"{count} {text} 0" for text, count in tally.items()]
    lines += ["0", *(_quoted(str(name)) for name in obj.items), _quoted(" ".join(title.split()))]
    write_text(path, "\n".join(lines) + "\n")


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
