"""Profiles of VoteKit: its CSV files, and its objects, which are told by what they have.

In its files a rank is a set such as ``{'JOH', 'NIC'}`` of short names that the head of the file explains.
"""

from __future__ import annotations

import ast
import csv
import inspect
import io
import re
from typing import Any

import numpy as np

from permix.data.ballots import Ballots
from permix.data.io.ballots.source import Source
from permix.data.io.preflib_writer import level_groups
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError

TITLE = "VoteKit profile"


def recognized(source: Source) -> str | None:
    """Say by what the format is recognized; None where it is another."""
    if source.is_one_file and source.head.removeprefix(b"\xef\xbb\xbf").startswith(b"VoteKit RankProfile"):
        return "the first line says VoteKit RankProfile"
    return None


def contests(source: Source) -> dict[str, str]:
    """Return the one contest of a profile."""
    return {"1": "the only contest"}


def read(source: Source, contest: str | None) -> Ballots:
    """Read a profile."""
    lines = source.text(source.names[0]).splitlines()
    try:
        listed = lines[lines.index("Candidates") + 1]
        start = next(at for at, line in enumerate(lines) if line.startswith("Ranking_1"))
    except (ValueError, IndexError, StopIteration):
        raise source.fail("", "a VoteKit profile without candidates or rankings") from None
    pairs = re.findall(r"\(([^()]*):([^():]*)\)", listed)
    names = {short: name for name, short in pairs}
    rebuilt = ",".join(f"({name}:{short})" for name, short in pairs)
    if len(names) < len(pairs) or rebuilt != listed.strip():
        raise source.fail(
            "", "the candidates cannot be told apart: two short names are the same, or a name has brackets"
        )
    columns = lines[start].split(",")
    n_ranks = sum(name.startswith("Ranking_") for name in columns)
    rows, counts = [], []
    for number, line in enumerate(lines[start + 1 :], start=start + 2):
        if not line.strip():
            continue
        entries = next(csv.reader(io.StringIO(_quoted(line))))
        ballot = []
        for entry in entries[:n_ranks]:
            found = _set(entry)
            if found is None or any(short not in names for short in found):
                raise source.fail("", f"line {number}: {entry!r} is no set of candidates")
            ballot.append([names[short] for short in sorted(found)])
        rows.append(ballot)
        try:
            weight = float(entries[columns.index("Weight")])
        except (ValueError, IndexError):
            raise source.fail("", f"line {number}: no weight") from None
        counts.append(_whole(weight, f"{source.path}, line {number}"))
    return Ballots.from_rows(rows, list(names.values()), counts, metadata={"TITLE": "", "FORMAT": TITLE})


def from_votekit(profile: Any) -> Ballots:
    """Read a VoteKit profile: anything with ``ballots`` that have a ``ranking`` of sets and a ``weight``."""
    try:
        given = [(ballot.ranking, ballot.weight) for ballot in profile.ballots]
    except (AttributeError, TypeError):
        raise DataError(
            f"a {type(profile).__name__} is no VoteKit profile: it has no ballots with ranking and weight"
        ) from None
    items = [str(name) for name in getattr(profile, "candidates", ()) or ()] or None
    rows = [[sorted(map(str, rank)) for rank in ranking or ()] for ranking, _ in given]
    counts = [_whole(float(weight), f"ballot {row + 1}") for row, (_, weight) in enumerate(given)]
    return Ballots.from_rows(rows, items, counts, metadata={"TITLE": "", "FORMAT": TITLE})


def to_votekit(votes: Rankings | Preferences, ballot_class: Any, profile_class: Any) -> Any:
    """Build a VoteKit profile; permix does not import VoteKit, so its classes are passed.

    Parameters
    ----------
    votes : Rankings or Preferences
        Rankings, with ties or without. Comparisons are refused.
    ballot_class, profile_class : class
        ``votekit.RankBallot`` and ``votekit.RankProfile`` (``Ballot``, ``PreferenceProfile`` before version
        3.3): anything that takes ``ranking=`` and ``weight=``, and ``ballots=`` and ``candidates=``.

    Examples
    --------
    >>> profile = permix.to_votekit(votes, votekit.RankBallot, votekit.RankProfile)  # doctest: +SKIP
    """
    stated = votes.arrays()
    if len(stated.pairs):
        raise DataError("a VoteKit profile holds rankings; comparisons have no place in it")
    names = [str(name) for name in votes.items]
    rows = zip(level_groups(stated), votes.counts.tolist(), strict=True)
    ballots = tuple(
        ballot_class(
            ranking=tuple(frozenset(names[item] for item in group) for group in groups), weight=float(count)
        )
        for groups, count in rows
    )
    longest = {}
    if "max_ranking_length" in inspect.signature(profile_class).parameters:  # with ties, not what ranks tell
        longest = {"max_ranking_length": int(np.diff(stated.level_indptr).max())}
    return profile_class(ballots=ballots, candidates=tuple(names), **longest)


def _whole(weight: float, where: str) -> int:
    if not (0 <= weight < 2**53 and weight == int(weight)):
        raise DataError(f"{where}: the weight {weight} is not a whole number; multiply all weights, or round")
    return int(weight)


def _quoted(line: str) -> str:
    """Quote the sets, whose commas would split them."""
    return re.sub(r"\{[^{}]*\}", lambda match: '"' + match[0].replace('"', '""') + '"', line)


def _set(entry: str) -> set[str] | None:
    """Return a written set of names; nothing is evaluated but literals."""
    text = entry.strip()
    if text in ("", "{}", "set()", "frozenset()", "{'~'}"):
        return set()
    try:
        found = ast.literal_eval(
            text.removeprefix("frozenset(").removesuffix(")") if "frozenset" in text else text
        )
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return {str(name) for name in found} if isinstance(found, set) else None
