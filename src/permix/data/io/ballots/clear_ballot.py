"""Clear Ballot cast vote records: a CSV file with a column of 0 and 1 for each candidate at each rank.

Columns are called ``Choice_17_1:CONTEST:RANK:Vote For 1:CANDIDATE:PARTY``.
"""

from __future__ import annotations

import csv
import io
import re
from typing import NamedTuple

import numpy as np

from permix.data.ballots import Ballots, parties_of, refuse_ranks
from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.ballots.source import Source

TITLE = "Clear Ballot cast vote records"
KEPT = {"BallotID": "ballot", "PrecinctID": "precinct", "PrecinctStyleName": "precinct style", "BoxID": "box"}


class _Choice(NamedTuple):
    place: int
    contest: str
    rank: int
    name: str
    party: str
    n_choices: int  # "Vote For 2"; 0 where the column does not say


def recognized(source: Source) -> str | None:
    """Say by what the format is recognized; None where it is another."""
    if not source.is_one_file:
        return None
    first = source.head.partition(b"\n")[0].decode("utf-8-sig", errors="replace")
    n = len(re.findall(r"(?:^|,)\"?Choice_[^:,\"]*:", first))
    return f"{n} columns Choice_…:CONTEST:RANK:…" if n and re.search(r"\bRowNumber\b", first) else None


def contests(source: Source) -> dict[str, str]:
    """Return the names of the contests, which are their ids."""
    return {choice.contest: choice.contest for choice in _choices(source, _lines(source)[0])}


def read(source: Source, contest: str | None) -> Ballots:
    """Read the marks of one contest."""
    names, *rows = _lines(source)
    choices = _choices(source, names)
    chosen = chosen_contest({choice.contest: choice.contest for choice in choices}, contest, source.path)
    choices = [choice for choice in choices if choice.contest == chosen]
    refuse_ranks(max(choice.rank for choice in choices))
    parties: dict[str, set[str]] = {}
    for choice in choices:
        parties.setdefault(choice.name, set()).add(choice.party)
    # People of one name and several parties are several people.
    choices = [
        choice._replace(name=f"{choice.name} ({choice.party})") if len(parties[choice.name]) > 1 else choice
        for choice in choices
    ]
    items = list(dict.fromkeys(choice.name for choice in choices))
    n_ranks = max(choice.rank for choice in choices)
    marked = []
    for number, row in enumerate(rows, start=2):
        if len(row) != len(names):
            raise source.fail("", f"line {number} has {len(row)} entries, the header {len(names)}")
        ballot: list[list[str]] = [[] for _ in range(n_ranks)]
        for choice in choices:
            entry = row[choice.place].strip()
            if entry not in ("0", "1", ""):
                raise source.fail("", f"line {number}, {names[choice.place]!r}: {entry!r} is neither 0 nor 1")
            if entry == "1":
                ballot[choice.rank - 1].append(choice.name)
        marked.append(ballot)
    kept = {name: names.index(column) for column, name in KEPT.items() if column in names}
    about = {name: np.array([row[place] for row in rows], dtype=object) for name, place in kept.items()}
    return Ballots.from_rows(
        marked,
        items=items,
        agents=about.pop("ballot", None),
        covariates=about,
        attributes=parties_of(items, {choice.name: choice.party for choice in choices}),
        write_ins=tuple(name for name in items if "write-in" in name.lower()),
        n_choices=max(choice.n_choices for choice in choices),
        metadata={"TITLE": chosen, "FORMAT": TITLE},
    )


def _lines(source: Source) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(source.text(source.names[0]), newline="")) if row]


def _choices(source: Source, names: list[str]) -> list[_Choice]:
    found = []
    for place, name in enumerate(names):
        if not name.startswith("Choice_"):
            if name.count(":") > 3:
                raise source.fail("", f"column {name!r} is not called Choice_…, and would not be counted")
            continue
        parts = name.split(":")
        if len(parts) < 5 or not parts[2].isdecimal() or int(parts[2]) < 1:
            raise source.fail("", f"column {name!r} does not say contest, rank and candidate")
        party = parts[-1] if len(parts) > 5 else ""
        name_of = ":".join(parts[4 : len(parts) - (len(parts) > 5)])
        allowed = re.search(r"vote\s*for\D*([0-9]{1,4})", parts[3], re.IGNORECASE)
        n_choices = 0 if allowed is None else int(allowed[1])
        found.append(_Choice(place, parts[1], int(parts[2]), name_of, party, n_choices))
    return found
