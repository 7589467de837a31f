"""Scottish council elections, as Denis Mollison and VoteKit publish them.

The number of candidates and of seats; a line for each ballot, its count and the numbers of the candidates,
best first; a line ``"Candidate 3","Name","Party (P)"`` for each candidate; the name of the ward. A line
``-3`` before the ballots says that candidate 3 withdrew.
"""

from __future__ import annotations

import csv
import io
import re

from permix.data.ballots import Ballots, Entry, parties_of
from permix.data.io.ballots.source import Source

TITLE = "Scottish council election"
_FIRST = re.compile(rb"\s*\d+\s*,\s*\d+\s*,?\s*\r?\n\s*(-\d+\s*,?\s*\r?\n|\d+\s*,\s*\d+)")
_CANDIDATES = re.compile(rb"^\"?candidate 1\"?\s*,", re.IGNORECASE | re.MULTILINE)


def recognized(source: Source) -> str | None:
    """Say by what the format is recognized; None where it is another."""
    if not source.is_one_file or not _FIRST.match(source.head.removeprefix(b"\xef\xbb\xbf")):
        return None
    tail = source.read(source.names[0])[-20_000:]
    return "lines of counts and numbers, then 'Candidate 1' and so on" if _CANDIDATES.search(tail) else None


def contests(source: Source) -> dict[str, str]:
    """Return the ward."""
    return {"1": str(read(source, None).metadata["TITLE"])}


def _without_blank_end(row: list[str]) -> list[str]:
    while row and not row[-1]:
        row.pop()
    return row


def read(source: Source, contest: str | None) -> Ballots:
    """Read the ballots of the ward."""
    lines = csv.reader(io.StringIO(source.text(source.names[0]), newline=""))
    rows = [_without_blank_end([entry.strip() for entry in row]) for row in lines]
    rows = [row for row in rows if row]

    def fail(line: int, why: str) -> Exception:
        return source.fail("", f"line {line}: {why}")

    n_items = int(rows[0][0])
    names: dict[int, str] = {}
    parties: dict[str, str] = {}
    ballots, counts, title = [], [], ""
    withdrawn: set[int] = set()
    for line, row in enumerate(rows[1:], start=2):
        match = re.fullmatch(r"candidate (\d{1,6})", row[0], re.IGNORECASE)
        if match is not None:
            if len(row) < 2:
                raise fail(line, "a candidate without a name")
            names[int(match[1])] = row[1]
            if len(row) > 2:
                parties[row[1]] = row[2]
        elif row[0].isdecimal():
            if names or not all(entry.isdecimal() for entry in row):
                raise fail(line, "a ballot is a count and numbers of candidates, best first, without gaps")
            counts.append(int(row[0]))
            ballots.append([int(entry) for entry in row[1:]])
        elif re.fullmatch(r"-\d{1,6}", row[0]) and len(row) == 1 and not ballots:
            if not 1 <= -int(row[0]) <= n_items:
                raise fail(line, f"{row[0]} withdraws none of the candidates 1 to {n_items}")
            withdrawn.add(-int(row[0]))
        elif names and not title and len(row) == 1:
            title = row[0]
        else:
            raise fail(
                line, f"{','.join(row)!r} is neither a ballot nor a candidate nor the name of the ward"
            )
    if sorted(names) != list(range(1, n_items + 1)):
        raise source.fail("", f"{n_items} candidates are said to stand, {len(names)} are named")
    if len(set(names.values())) < n_items:
        raise source.fail("", "two candidates have the same name")
    if sum(counts) == 0:
        raise source.fail("", "no ballots")
    for line, ballot in enumerate(ballots, start=2 + len(withdrawn)):
        if any(not 1 <= number <= n_items for number in ballot):
            raise fail(line, f"a number that is not one of the candidates 1 to {n_items}")
    audit = []
    if withdrawn:
        touched = sum(n for n, ballot in zip(counts, ballots, strict=True) if withdrawn & set(ballot))
        who = tuple(names[number] for number in sorted(withdrawn))
        audit.append(Entry("candidates who withdrew", "left out; later ranks move up", touched, who))
    return Ballots.from_rows(
        [[[names[number]] for number in ballot if number not in withdrawn] for ballot in ballots],
        items=(items := [names[number] for number in range(1, n_items + 1) if number not in withdrawn]),
        counts=counts,
        attributes=parties_of(items, parties),
        metadata={"TITLE": title, "FORMAT": TITLE, "SEATS": int(rows[0][1])},
        audit=tuple(audit),
    )
