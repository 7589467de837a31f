"""NIST common data format of cast vote records, version 1: JSON, or XML with the same names."""

from __future__ import annotations

import warnings
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from permix.data.ballots import MOST_RANKS, Ballots
from permix.data.io.ballots.contests import chosen_contest
from permix.data.io.ballots.source import Source
from permix.errors import DataError, PermixWarning

TITLE = "NIST common data format of cast vote records"
# Elements that may come several times.
_LISTS = frozenset(
    [
        *("CVR", "CVRSnapshot", "CVRContest", "CVRContestSelection", "SelectionPosition", "Election"),
        *("Contest", "ContestSelection", "Candidate", "CandidateIds", "GpUnit"),
    ]
)


def recognized(source: Source) -> str | None:
    """Say by what the format is recognized; None where it is another."""
    if source.is_one_file and b"CastVoteRecordReport" in source.head:
        return "a CastVoteRecordReport"
    return None


def contests(source: Source) -> dict[str, str]:
    """Return the names of the contests by id."""
    return {
        contest["@id"]: _called(contest)
        for election in _report(source).get("Election", ())
        for contest in election.get("Contest", ())
    }


def read(source: Source, contest: str | None) -> Ballots:
    """Read the marks of one contest: of each record the snapshot that is current."""
    report = _report(source)
    chosen = chosen_contest(contests(source), contest, source.path)
    names, write_ins, listed, allowed = {}, [], [], 0
    for election in report.get("Election", ()):
        candidates = {each["@id"]: _called(each) for each in election.get("Candidate", ())}
        for held in election.get("Contest", ()):
            if held["@id"] != chosen:
                continue
            allowed = int(held.get("VotesAllowed") or 0)
            for selection in held.get("ContestSelection", ()):
                of = [candidates.get(number, number) for number in selection.get("CandidateIds", ())]
                written = str(selection.get("IsWriteIn", "false")).lower() == "true"
                other = str(selection.get("Selection") or selection["@id"])  # of a measure: Yes, No
                name = " / ".join(of) or (f"write-in {selection['@id']}" if written else other)
                names[selection["@id"]] = name
                listed.append(name)
                write_ins += [name] * written
    if len(set(listed)) < len(listed):
        raise DataError(f"{source.path}: two candidates of {chosen} have the same name")
    units = {unit["@id"]: str(unit.get("Name", "")) for unit in report.get("GpUnit", ())}
    rows: list[list[list[str]]] = []
    agents: list[str] = []
    precincts: list[str] = []
    ranked: set[bool] = set()
    unsure: list[str] = []
    for record in report.get("CVR", ()):
        snapshots = record.get("CVRSnapshot", ())
        current = next((s for s in snapshots if s.get("@id") == record.get("CurrentSnapshotId")), None)
        if current is None:
            raise DataError(f"{source.path}: record {len(agents) + 1} has no current snapshot")
        for held in current.get("CVRContest", ()):
            if held.get("ContestId") == chosen:
                rows.append(_marked(source, held, names, ranked, unsure))
                agents.append(
                    str(record.get("UniqueId") or record.get("BallotPrePrintedId") or len(agents) + 1)
                )
                precincts.append(units.get(record.get("BallotStyleUnitId"), ""))
    if not rows:
        raise DataError(f"{source.path}: no record has contest {chosen}")
    if unsure:
        some = f"{source.path}: of contest {chosen}, {len(unsure):,} positions (the first for {unsure[0]!r})"
        said = (
            "say HasIndication 'unknown', and nothing that they count: read as no marks; if one is, say 'yes'"
        )
        warnings.warn(f"{some} {said}", PermixWarning, stacklevel=5)
    if len(ranked) > 1:
        raise DataError(
            f"{source.path}: of contest {chosen}, some selections have a rank and others have none"
        )
    covariates = {"precinct": np.array(precincts, dtype=object)} if any(precincts) else {}
    return Ballots.from_rows(
        rows,
        items=listed,
        agents=np.array(agents, dtype=object),
        covariates=covariates,
        write_ins=tuple(write_ins),
        n_choices=max(allowed, 0),
        metadata={"TITLE": contests(source)[chosen], "FORMAT": TITLE},
    )


def _marked(
    source: Source, held: dict[str, Any], names: dict[str, str], ranked: set[bool], unsure: list[str]
) -> list[list[str]]:
    """Who is marked at which rank: positions with an indication that is not excluded from the count.

    A position is excluded where it is not allocable, or stands for no votes.

    ``ranked`` notes whether ranks are given, and ``unsure`` who is left out since nothing tells whether the
    position is marked.
    """
    marked: list[list[str]] = []
    for selection in held.get("CVRContestSelection", ()):
        number = selection.get("ContestSelectionId")
        if number not in names:
            raise DataError(f"{source.path}: selection {number!r} is not one of the contest's")
        positions = selection.get("SelectionPosition", ())
        if not positions and str(selection.get("TotalNumberVotes")) != "0":
            raise DataError(
                f"{source.path}: selection {number!r} has no SelectionPosition, which says its rank"
            )
        for position in positions:
            if _denied(position.get("HasIndication")) or _denied(position.get("IsAllocable")):
                continue
            votes = position.get("NumberVotes")
            if _is_unsure(position):
                unsure.append(names[number])
                continue
            if votes not in (None, "") and int(votes) != 1:
                if int(votes) == 0:
                    continue  # a mark that does not count
                raise DataError(
                    f"{source.path}: selection {number!r} has {votes} votes of one voter (NumberVotes), as "
                    "in cumulative voting: neither a ranking nor a choice"
                )
            given = [each for each in (position.get("Rank"), selection.get("Rank")) if each not in (None, "")]
            ranked.add(bool(given))
            said = given[0] if given else 1
            rank = int(said)
            if not 1 <= rank <= MOST_RANKS or float(said) != rank:
                raise DataError(f"{source.path}: rank {rank} of selection {number!r} is none")
            marked.extend([] for _ in range(rank - len(marked)))
            if names[number] not in marked[rank - 1]:
                marked[rank - 1].append(names[number])
    return marked


def _denied(said: Any) -> bool:
    """Whether a field says no; some write it as a truth value."""
    return said is False or str(said).strip().lower() in ("no", "false")


def _is_unsure(position: dict[str, Any]) -> bool:
    """Whether nothing tells if a position is marked: neither its indication nor what it counts for."""
    said = [
        str(position.get(name)).strip().lower() for name in ("HasIndication", "IsAllocable", "NumberVotes")
    ]
    return said[0] == "unknown" and said[1] not in ("yes", "true") and said[2] in ("none", "")


def _called(entry: dict[str, Any]) -> str:
    """Return the name of a candidate or contest, which may be a text in several languages; else its id."""
    name = entry.get("Name") or entry["@id"]
    if isinstance(name, dict) and isinstance(name.get("Text"), list) and name["Text"]:
        name = name["Text"][0].get("Content") or entry["@id"]
    return str(name)


def _report(source: Source) -> dict[str, Any]:
    name = source.names[0]
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        found = _as_json(source.xml(name))
    else:
        found = source.json(name)
    if not isinstance(found, dict) or "CVR" not in found:
        raise source.fail(name, "a CastVoteRecordReport without records")
    return found


def _as_json(element: Element) -> dict[str, Any]:
    """Return an element as the JSON form has it."""
    numbers = [value for key, value in element.attrib.items() if key.endswith("ObjectId")]
    found: dict[str, Any] = {"@id": numbers[0]} if numbers else {}
    for child in element:
        name = child.tag.rpartition("}")[2]
        value: Any = _as_json(child) if len(child) else (child.text or "").strip()
        if name in _LISTS:
            value = value.split() if name == "CandidateIds" else [value]
            found.setdefault(name, []).extend(value)
        else:
            found[name] = value
    return found
