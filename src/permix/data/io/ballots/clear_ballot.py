"""Clear Ballot cast vote records: a CSV file with a column of 0 and 1 for each candidate at each rank.

Columns are called ``Choice_17_1:CONTEST:RANK:Vote For 1:CANDIDATE:PARTY``; in contests without ranks
``Choice_17_1:CONTEST:Vote For 1:CANDIDATE:PARTY``.
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

# How many candidates a voter may choose; what is before it is the rank, if it is a number, or the contest.
_ALLOWED = re.compile(r"\s*vote\s*for\D{0,20}([0-9]{0,4})\s*", re.IGNORECASE)


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
    return f"{n} columns Choice_…:CONTEST:…:CANDIDATE" if n and re.search(r"\bRowNumber\b", first) else None


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
        choice = _parsed(place, name.split(":"))
        if choice is None:
            raise source.fail("", f"column {name!r} does not say contest, rank and candidate")
        found.append(choice)
    return found


def _parsed(place: int, parts: list[str]) -> _Choice | None:
    """Return what the name of a column says; names of contests and of candidates may hold colons."""
    told = next((at for at in range(2, len(parts)) if _ALLOWED.fullmatch(parts[at])), None)
    at = 3 if told is None else told
    ranked = at > 2 and parts[at - 1].isdecimal()
    if not ranked and told is None:
        return None
    rank = int(parts[at - 1][:10]) if ranked else 1
    who = parts[at + 1 :]
    if not who or rank < 1:
        return None
    party = who.pop() if len(who) > 1 else ""
    allowed = "" if told is None else _ALLOWED.fullmatch(parts[told])[1]  # type: ignore[index]
    return _Choice(place, ":".join(parts[1 : at - ranked]), rank, ":".join(who), party, int(allowed or 0))
