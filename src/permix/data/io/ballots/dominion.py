"""Dominion cast vote records: a folder or zip of manifests and ``CvrExport*.json`` files.

A session is a ballot; what was adjudicated (``Modified``) takes the place of the ``Original``. Marks that the
scanner called ambiguous do not count, and neither does a contest that it called invalid, in which the voter
had no vote. Files may be numbered with gaps; all that are there are read. One export alone is read too, with
the manifests beside it where there are any; without them contests and candidates are called by their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from permix.data.ballots import MOST_RANKS, Ballots, Entry, parties_of
from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.ballots.source import Source
from permix.data.labels import Array
from permix.errors import DataError

TITLE = "Dominion cast vote records"
_EXPORT = re.compile(r"CvrExport(_\d+)?\.json")
_UNTOLD = "ballots on which the contest is invalid cannot be told and are read"
MANIFESTS = ("ContestManifest.json", "CandidateManifest.json")


def recognized(source: Source) -> str | None:
    """Say by what the format is recognized; None where it is another."""
    if source.is_one_file:
        if b'"Sessions"' not in source.head or b'"TabulatorId"' not in source.head:
            return None
        beside = all(source.path.with_name(name).is_file() for name in MANIFESTS)
        named = "the manifests beside it name" if beside else "without manifests, numbers stand for"
        return f"one CvrExport file; {named} contests and candidates"
    base = {name.rpartition("/")[2] for name in source.names}
    for name in sorted(base):
        if name.lower().startswith("cvrexport") and name.lower().endswith(".json"):
            _refuse_other_names(source, name)
    folders = {name.rpartition("/")[0] for name in source.names if _EXPORT.fullmatch(name.rpartition("/")[2])}
    if len(folders) > 1:
        raise DataError(f"{source.path} has exports in {len(folders)} folders; give one of them alone")
    exports = [name for name in base if _EXPORT.fullmatch(name)]
    missing = [name for name in MANIFESTS if name not in base]
    if exports and missing:
        raise DataError(
            f"{source.path} has CvrExport files and lacks {' and '.join(missing)}, which name contests and "
            "candidates; put the manifests of the export beside them, or give one CvrExport file alone"
        )
    if exports:
        return f"{len(exports)} CvrExport files beside ContestManifest.json and CandidateManifest.json"
    return None


def _refuse_other_names(source: Source, name: str) -> None:
    """Refuse exports that are not called as exports are, and would not be read."""
    if not _EXPORT.fullmatch(name):
        raise DataError(
            f"{source.path}: {name!r} is not called CvrExport.json or CvrExport_1.json, as exports are; "
            "rename it if it is one, or take it out if it is a copy"
        )


def contests(source: Source) -> dict[str, str]:
    """Return the names of the contests by id."""
    listed = _manifest(source, "ContestManifest.json")
    if not listed and source.is_one_file:
        found = sorted({held["Id"] for _, shown in _ballots_of(source) for held in _contests_of(shown)})
        return {str(number): f"contest {number}" for number in found}
    return {str(entry["Id"]): str(entry["Description"]) for entry in listed}


def read(source: Source, contest: str | None) -> Ballots:
    """Read the marks of one contest; a ballot without the contest is not among them."""
    known = contests(source)
    number = int(chosen_contest(known, contest, source.path))
    about: dict[str, Any] = next(
        (entry for entry in _manifest(source, "ContestManifest.json") if entry["Id"] == number), {}
    )
    named = _manifest(source, "CandidateManifest.json")
    listed = [entry for entry in named if entry["ContestId"] == number]
    if not named and source.is_one_file:
        listed = _candidates_by_number(source, number)
    codes = {entry["Id"]: code for code, entry in enumerate(listed)}
    names = _told_apart([str(entry["Description"]).strip() for entry in listed])
    write_ins = [name for name, entry in zip(names, listed, strict=True) if "WriteIn" in str(entry["Type"])]
    parties = _named(source, "PartyManifest.json")
    portions, groups = (
        _named(source, "PrecinctPortionManifest.json"),
        _named(source, "CountingGroupManifest.json"),
    )
    conditions = _named(source, "OutstackConditionManifest.json")
    invalid = {number for number, name in conditions.items() if name == "InvalidContest"}
    n_invalid, n_idle, n_gone, plain = 0, 0, 0, _decoder()[1]
    # Where voters rank, a mark without a rank says nothing; elsewhere all marks stand alike.
    unranked = 0 if int(about.get("NumOfRanks") or 1) > 1 else 1
    ballot: list[int] = []
    rank: list[int] = []
    item: list[int] = []
    agents: list[str] = []
    precinct: list[str] = []
    counting: list[str] = []
    for session, shown in _ballots_of(source):
        if shown is session.get("Modified") and _only_in_original(session, number):
            n_gone += 1
        for held in _contests_of(shown):
            if held.get("Id") != number:
                continue
            n_idle += not shown.get("IsCurrent")
            if invalid and not invalid.isdisjoint(plain(held.get("OutstackConditionIds", ()))):
                n_invalid += 1
                continue
            for mark in plain(held.get("Marks", ())):
                if mark.get("IsAmbiguous"):
                    continue
                if mark["CandidateId"] not in codes:
                    raise DataError(
                        f"{source.path}: candidate {mark['CandidateId']} of contest {number} is not in "
                        "CandidateManifest.json"
                    )
                ballot.append(len(agents))
                at = mark.get("Rank") or unranked
                if not isinstance(at, int) or not 1 <= at <= MOST_RANKS:
                    raise DataError(f"{source.path}: a mark of contest {number} has the rank {at!r}")
                rank.append(at - 1)
                item.append(codes[mark["CandidateId"]])
            agents.append(f"{session['TabulatorId']}-{session['BatchId']}-{session['RecordId']}")
            precinct.append(portions.get(shown.get("PrecinctPortionId"), ""))
            counting.append(groups.get(session.get("CountingGroupId"), ""))
    if not agents:
        raise DataError(f"{source.path}: no ballot has contest {number} ({known[str(number)]})")
    invalid_ones = Entry("ballots on which the contest is invalid", "left out", n_invalid, left_out=n_invalid)
    audit = [invalid_ones] * (n_invalid > 0)
    if n_gone:
        found = "ballots whose contest is in the original and not in the adjudicated version"
        audit.append(Entry(found, "left out", n_gone, left_out=n_gone))
    if n_idle:
        done = "read: the adjudicated version where there is one, else the original"
        audit.append(Entry("ballots of which no version is called current", done, n_idle))
    marks = np.array([ballot, rank, item], np.int64)
    stays = _once(marks, [code for code, name in enumerate(names) if name not in set(write_ins)])
    if not stays.all():
        n_twice = len(np.unique(marks[0, ~stays]))
        audit.append(Entry("candidates marked twice at one rank", "one of the marks counts", n_twice))
    if source.is_one_file and not conditions:
        audit.append(Entry("no manifest of conditions", _UNTOLD, len(agents)))
    of_party = {
        name: parties.get(next(iter(entry.get("Affiliations") or ()), None), "")
        for name, entry in zip(names, listed, strict=True)
    }
    return Ballots(
        items=tuple(names),
        n_ranks=max(int(about.get("NumOfRanks") or 1), max(rank, default=0) + 1),
        counts=np.ones(len(agents), np.int64),
        ballot=marks[0, stays],
        rank=marks[1, stays].astype(np.int32),
        item=marks[2, stays].astype(np.int32),
        agents=np.array(agents, dtype=object),
        covariates={"precinct": np.array(precinct, object), "counting group": np.array(counting, object)},
        attributes=parties_of(names, of_party),
        write_ins=tuple(write_ins),
        n_choices=int(about.get("VoteFor") or 0),
        metadata={"TITLE": known[str(number)], "FORMAT": TITLE},
        audit=tuple(audit),
    )


def _ballots_of(source: Source) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield sessions with what counts of each: the adjudicated ballot where there is one."""
    names = source.names
    if not source.is_one_file:
        names = [name for name in names if _EXPORT.fullmatch(name.rpartition("/")[2])]
    decode, _ = _decoder()
    for name in source.each(names):
        try:
            whole = decode(source.read(name).removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError) as error:
            raise source.fail(name, f"not JSON as exports have it ({error})") from error
        if "Sessions" not in whole:
            raise source.fail(name, "no 'Sessions' as exports have them")
        for session in whole["Sessions"]:
            versions = [found for kind in ("Modified", "Original") if (found := session.get(kind))]
            shown = next((each for each in versions if each.get("IsCurrent")), next(iter(versions), None))
            if shown is None:
                raise source.fail(name, "a session has no 'Original' ballot")
            yield session, shown


def _decoder() -> tuple[Callable[[bytes], Any], Callable[[Any], Any]]:
    """Return a reader of exports, and one of what it leaves unread; loaded when they are needed."""
    from permix.data.io.ballots.dominion_export import decode, plain

    return decode, plain


def _only_in_original(session: dict[str, Any], number: int) -> bool:
    """Whether a contest is on the ballot as it was scanned, and not on it as it was adjudicated."""
    on = [
        any(held.get("Id") == number for held in _contests_of(session.get(kind) or {}))
        for kind in ("Original", "Modified")
    ]
    return on[0] and not on[1]


def _once(marks: Array, codes: list[int]) -> Array:
    """Say which marks (ballot, rank, item) to keep: of some candidates, one at each rank of a ballot."""
    keys = (marks[0] * (MOST_RANKS + 1) + marks[1]) * (marks[2].max(initial=0) + 1) + marks[2]
    stays = ~np.isin(marks[2], codes)
    stays[np.unique(keys, return_index=True)[1]] = True
    return stays


def _contests_of(shown: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the contests of a ballot, of all its cards."""
    for card in shown.get("Cards") or [shown]:
        yield from card.get("Contests", ())


def _candidates_by_number(source: Source, number: int) -> list[dict[str, Any]]:
    """Return candidates as a manifest would have them, called by their numbers."""
    plain = _decoder()[1]
    found = sorted(
        {
            mark["CandidateId"]
            for _, shown in _ballots_of(source)
            for held in _contests_of(shown)
            if held.get("Id") == number
            for mark in plain(held.get("Marks", ()))
        }
    )
    return [{"Id": each, "Description": f"candidate {each}", "Type": "Regular"} for each in found]


def _manifest(source: Source, name: str) -> list[dict[str, Any]]:
    if source.is_one_file:
        beside = source.path.with_name(name)
        return _manifest(Source(source.path.parent), name) if beside.is_file() else []
    full = next((each for each in source.names if each.rpartition("/")[2] == name), None)
    listed = None if full is None else source.json(full).get("List")
    if full is not None and not isinstance(listed, list):
        raise source.fail(full, "no 'List' as manifests have it")
    return listed or []


def _named(source: Source, name: str) -> dict[Any, str]:
    """Descriptions of a manifest by id; nothing where there is none."""
    return {entry["Id"]: str(entry["Description"]) for entry in _manifest(source, name)}


def _told_apart(names: list[str]) -> list[str]:
    """Number candidates of the same name."""
    seen: dict[str, int] = {}
    told = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told
