"""VoteKit profiles: their CSV files, and objects of the package, which are told by what they have.

A rank is a set of candidates; those of a set are tied, which is no overvote. VoteKit wrote its files in
several ways: since 3.2 under a head that explains short names (``VoteKit RankProfile``, before that
``VoteKit PreferenceProfile``, which may hold scores as well), before that under a line of candidates, at
first as a column of rankings; and people save the data frame of a profile. Nothing is evaluated but literals.
"""

from __future__ import annotations

import ast
import csv
import inspect
import io
import re
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from permix.data.ballots import Ballots, Entry
from permix.data.io.ballots.source import Source
from permix.data.io.preflib_writer import level_groups
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError

TITLE = "VoteKit profile"
_HEADED = ("VoteKit RankProfile", "VoteKit PreferenceProfile")
_SCORES = "VoteKit ScoreProfile"
# A set that stands in a row without quotes, as some write it by hand.
_BARE_SET = re.compile(r"(?:(?<=,)|^)\{[^{}\"]*\}(?=,|$)")
# The candidate that VoteKit writes where a ranking has ended.
_ENDED = "~"


def recognized(source: Source) -> str | None:
    """Say by what the format is recognized; None where it is another."""
    if not source.is_one_file:
        return None
    lines = source.head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace").splitlines()[:4]
    first = lines[0].strip() if lines else ""
    if first.startswith((*_HEADED, _SCORES)):
        return f"the first line says {first.partition(',')[0]}"
    if first == "Candidates" and len(lines) > 2 and "Ranking_1" in lines[2]:
        return "a line of candidates above columns Ranking_1 and so on"
    under = lines[1] if len(lines) > 1 else ""
    if "Ranking_1" in first.replace('"', "").split(",") and "frozenset(" in under:
        return "columns Ranking_1 and so on hold sets"
    names = {name.strip().lower() for name in first.split(",")}
    if names in ({"weight", "ranking"}, {"weight", "ranking", "scores"}) and "({" in under:
        return "a column of rankings, which are sets of candidates"
    return None


def contests(source: Source) -> dict[str, str]:
    """Return the one contest of a profile."""
    return {"1": "the only contest"}


class _Body(NamedTuple):
    """The table of a profile: where it begins, what its columns are called, and who stands."""

    at: int
    columns: list[str]
    names: dict[str, str] | None  # candidates by short name; None where sets hold the names
    items: list[str] | None  # all candidates, where the file lists them


def read(source: Source, contest: str | None) -> Ballots:
    """Read a profile."""
    lines = source.text(source.names[0]).splitlines()
    body = _body(source, lines)
    places = sorted(
        (int(name[8:]), at) for at, name in enumerate(body.columns) if re.fullmatch(r"Ranking_\d{1,6}", name)
    )
    whole = body.columns.index("ranking") if "ranking" in body.columns else None
    if "Weight" not in body.columns or [rank for rank, _ in places] != list(range(1, len(places) + 1)):
        raise source.fail("", f"line {body.at + 1}: no columns Weight and Ranking_1, Ranking_2, …")
    weight_at = body.columns.index("Weight")
    marks = [at for at, name in enumerate(body.columns) if name == "&"]
    scored, n_scored = _score_columns(body.columns, marks, places), 0
    rows, counts, numbers = [], [], []
    for number, line in enumerate(lines[body.at + 1 :], start=body.at + 2):
        if not line.strip():
            continue
        entries = next(csv.reader(io.StringIO(_BARE_SET.sub(r'"\g<0>"', line))))
        if len(entries) <= max([weight_at, *marks, *(at for _, at in places)]):
            raise source.fail("", f"line {number}: {len(entries)} entries are too few")
        if any(entries[at] != "&" for at in marks):
            raise source.fail("", f"line {number}: no & where the line of names has one")
        sets = _whole_ranking(entries[whole]) if whole is not None else [entries[at] for _, at in places]
        rows.append(_ballot(source, number, body.names, sets))
        count = _whole(_weight(entries[weight_at]), f"{source.path}, line {number}")
        n_scored += count if any(entries[at] not in ("", "()") for at in scored) else 0
        counts.append(count)
        numbers.append(number)
    for row, number in zip(rows, numbers, strict=True):
        for name in (name for rank in row for name in rank):
            if body.items is not None and name not in body.items:
                raise source.fail("", f"line {number}: {name!r} is not one of the candidates")
    audit = (Entry("ballots with scores beside their rankings", "scores are not read", n_scored),)
    about = {"metadata": {"TITLE": "", "FORMAT": TITLE}, "audit": audit * (n_scored > 0)}
    return Ballots.from_rows(rows, body.items, counts, ties=True, **about)


def _body(source: Source, lines: list[str]) -> _Body:
    """Find the table in a file, whichever version wrote it."""
    first = lines[0].strip()
    if first.startswith(_SCORES):
        raise source.fail(
            "",
            "a VoteKit profile of scores, which ranks nobody; a table with a column for each candidate, as "
            "profile.df.to_csv writes it, is read as ratings",
        )
    if not first.startswith(_HEADED):
        at = 2 if first == "Candidates" else 0
        columns = [name.strip() for name in next(csv.reader([lines[at]]))]
        columns = ["Weight" if name.lower() == "weight" else name for name in columns]
        columns = ["ranking" if name.lower() == "ranking" else name for name in columns]
        listed = [name.strip() for name in next(csv.reader([lines[1]]))] if at else None
        return _Body(at, columns, None, listed)
    try:
        listed_at = lines.index("Candidates") + 1
        at = next(at for at, line in enumerate(lines) if re.search(r"(^|,)Ranking_1(,|$)", line))
        fields = next(csv.reader([lines[listed_at]]))
    except (ValueError, IndexError, StopIteration):
        raise source.fail("", "a VoteKit profile without candidates or rankings") from None
    names: dict[str, str] = {}
    for field in map(str.strip, fields):
        # In version 2 of the format ``(Ann:str:A)``, before that ``(Ann:A)``.
        parts = field[1:-1].rsplit(":", 2 if first.endswith(",v2") else 1)
        if field[:1] != "(" or field[-1:] != ")" or len(parts) < 2 or parts[-1] in names:
            raise source.fail(
                "", f"the candidates cannot be told apart: {field!r} has no short name, or that of another"
            )
        names[parts[-1]] = parts[0]
    return _Body(at, next(csv.reader([lines[at]])), names, list(names.values()))


def _score_columns(columns: list[str], marks: list[int], places: list[tuple[int, int]]) -> list[int]:
    """Return the columns of scores, which stand before the first & where rankings stand after it."""
    before = range(marks[0]) if marks and places and places[0][1] > marks[0] else range(0)
    return [*before, *(at for at, name in enumerate(columns) if name.lower() == "scores")]


def _ballot(source: Source, number: int, names: dict[str, str] | None, sets: list[str]) -> list[list[str]]:
    """Return who is at each rank."""
    ballot = []
    for entry in sets:
        found = _set(entry)
        if found is None or (names is not None and any(short not in names for short in found)):
            raise source.fail("", f"line {number}: {entry!r} is no set of candidates")
        ballot.append([short if names is None else names[short] for short in sorted(found)])
    return ballot


def _whole_ranking(text: str) -> list[str]:
    """Return the sets of a ranking that is written as ``({'A'}, {'B', 'C'})``, which must be all of it."""
    sets = re.findall(r"\{[^{}]*\}", text)
    rest = re.sub(r"\{[^{}]*\}", "", text)
    return sets if re.fullmatch(r"\([ ,]*\)", rest) and sets else [text]


def _weight(text: str) -> float | Fraction:
    """Return a weight, which may be a fraction such as 3/2; not a number where it is none."""
    try:
        return Fraction(text.strip()) if "/" in text else float(text)
    except (ValueError, ZeroDivisionError):
        return float("nan")


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
    return Ballots.from_rows(rows, items, counts, ties=True, metadata={"TITLE": "", "FORMAT": TITLE})


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


def _whole(weight: float | Fraction, where: str) -> int:
    if not (0 <= weight < 2**53 and weight == int(weight)):
        raise DataError(f"{where}: the weight {weight} is not a whole number; multiply all weights, or round")
    return int(weight)


def _set(entry: str) -> set[str] | None:
    """Return a written set of names; nothing is evaluated but literals."""
    text = entry.strip()
    if text in ("", "{}", "set()", "frozenset()"):
        return set()
    try:
        found = ast.literal_eval(
            text.removeprefix("frozenset(").removesuffix(")") if "frozenset" in text else text
        )
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return {str(name) for name in found} - {_ENDED} if isinstance(found, set) else None
