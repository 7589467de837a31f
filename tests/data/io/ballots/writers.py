"""A profile of marks, written as each format has it: what the readers are held against.

A profile is a list of ballots; a ballot is a list of ranks; a rank is a list of the candidates marked there.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

Profile = list[list[list[str]]]


def dominion(profile: Profile, items: list[str], folder: Path, packed: bool = False) -> Path:
    """Two exports, numbered with a gap; the third ballot was adjudicated; a contest that is not asked for."""
    files: dict[str, object] = {
        "ContestManifest.json": _listed(
            [
                {"Id": 3, "Description": "Mayor", "NumOfRanks": 4},
                {"Id": 9, "Description": "Clerk", "NumOfRanks": 1},
            ]
        ),
        "CandidateManifest.json": _listed(
            [
                *(
                    {"Id": 100 + code, "Description": name, "ContestId": 3, "Type": "Regular"}
                    for code, name in enumerate(items)
                ),
                {"Id": 500, "Description": "Nobody", "ContestId": 9, "Type": "WriteIn"},
            ]
        ),
        "PrecinctPortionManifest.json": _listed([{"Id": 7, "Description": "North 1"}]),
    }
    sessions = [_session(number, ballot, items) for number, ballot in enumerate(profile)]
    if len(profile) > 2:
        sessions[2]["Modified"] = {**sessions[2]["Original"], "IsCurrent": True}
        wrong = _session(2, [[items[0]]] * 3, items)["Original"]
        sessions[2]["Original"] = {**wrong, "IsCurrent": False}
    half = len(sessions) // 2
    files["CvrExport_17.json"] = {"Sessions": sessions[:half]}
    files["CvrExport_20.json"] = {"Sessions": sessions[half:]}
    if packed:
        with zipfile.ZipFile(folder / "cvr.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(f"export/{name}", json.dumps(content))
        return folder / "cvr.zip"
    target = folder / "cvr"
    target.mkdir()
    for name, content in files.items():
        (target / name).write_text(json.dumps(content), encoding="utf-8")
    return target


def _listed(entries: list[dict[str, object]]) -> dict[str, object]:
    return {"Version": "5", "List": entries}


def _session(number: int, ballot: list[list[str]], items: list[str]) -> dict:
    marks = [
        {"CandidateId": 100 + items.index(name), "Rank": rank, "IsAmbiguous": False, "IsVote": True}
        for rank, marked in enumerate(ballot, start=1)
        for name in marked
    ]
    ambiguous = {"CandidateId": 100, "Rank": 1, "IsAmbiguous": True, "IsVote": False}
    contests = [
        {"Id": 9, "Marks": [{"CandidateId": 500, "Rank": 1, "IsAmbiguous": False}]},
        {"Id": 3, "Marks": [ambiguous, *marks]},
    ]
    shown = {"PrecinctPortionId": 7, "IsCurrent": True, "Cards": [{"Id": 1, "Contests": contests}]}
    return {"TabulatorId": 5, "BatchId": 1, "RecordId": number, "Original": shown}


def hart(profile: Profile, items: list[str], folder: Path) -> Path:
    target = folder / "hart"
    target.mkdir()
    for number, ballot in enumerate(profile):
        options = ""
        for name in items:
            value = "".join("01"[name in marked] for marked in ballot)
            if "1" in value:
                options += (
                    f"<Option><Name>{escape(name)}</Name><Id>{name[:3]}</Id><Value>{value}</Value></Option>"
                )
        text = (
            '<?xml version="1.0"?><Cvr xmlns="http://tempuri.org/CVRDesign.xsd"><Contests>'
            f"<Contest><Name>Mayor</Name><Id>m</Id><Options>{options}</Options></Contest>"
            "<Contest><Name>Clerk</Name><Id>c</Id><Options></Options></Contest></Contests>"
            f"<PrecinctSplit><Name>P1</Name></PrecinctSplit><CvrGuid>{number:04}</CvrGuid></Cvr>"
        )
        (target / f"{number:04}.xml").write_text(text, encoding="utf-8")
    return target


def clear_ballot(profile: Profile, items: list[str], folder: Path) -> Path:
    n_ranks = max(map(len, profile))
    names = [
        f"Choice_{rank}_{code}:Mayor:{rank}:Vote For 1:{name}:Party"
        for rank in range(1, n_ranks + 1)
        for code, name in enumerate(items)
    ]
    rows = [["RowNumber", "BallotID", "PrecinctID", *names]]
    for number, ballot in enumerate(profile):
        ranks = [ballot[rank] if rank < len(ballot) else [] for rank in range(n_ranks)]
        rows.append([number, f"B{number}", "7", *(int(name in marked) for marked in ranks for name in items)])
    return _csv(rows, folder / "clear.csv")


def dominion_csv(profile: Profile, items: list[str], folder: Path) -> Path:
    """A ranked contest beside one without ranks, which was not on every ballot; ids as Excel keeps them."""
    n_ranks = max(map(len, profile))
    columns = [(name, rank) for name in items for rank in range(1, n_ranks + 1)]
    ids = ["CvrNumber", "TabulatorNum", "RecordId", "ImprintedId", "PrecinctPortion", "BallotType"]
    ranked = f"Mayor (Number of positions=1, Number of ranks={n_ranks})"
    rows: list[list[object]] = [
        ["Town Election", "5.17.17.1"],
        [*[""] * len(ids), *[ranked] * len(columns), *["Clerk (Vote For=1)"] * 2],
        [*[""] * len(ids), *(f"{name}({rank})" for name, rank in columns), "Yes", "No"],
        [*ids, *(f"P{items.index(name)}" for name, _ in columns), "", ""],
    ]
    for number, ballot in enumerate(profile, start=1):
        marks = [int(rank <= len(ballot) and name in ballot[rank - 1]) for name, rank in columns]
        clerk = [1, 0] if number % 2 else ["", ""]
        rows.append([number, 2, number, f'="2-1-{number}"', f"N{number % 2}", "B", *marks, *clerk])
    return _csv(rows, folder / "export.csv")


def cdf(profile: Profile, items: list[str], folder: Path) -> Path:
    selections = [{"@id": f"cs-{k}", "CandidateIds": [f"c-{k}"]} for k in range(len(items))]
    records = []
    for number, ballot in enumerate(profile):
        marked = [
            {
                "ContestSelectionId": f"cs-{items.index(name)}",
                "SelectionPosition": [{"HasIndication": "yes", "IsAllocable": "unknown", "Rank": rank}],
            }
            for rank, names in enumerate(ballot, start=1)
            for name in names
        ]
        contests = [{"ContestId": "mayor", "CVRContestSelection": marked}]
        old = {"@id": f"old-{number}", "CVRContest": [{"ContestId": "mayor", "CVRContestSelection": []}]}
        now = {"@id": f"now-{number}", "CVRContest": contests}
        records.append(
            {"CVRSnapshot": [old, now], "CurrentSnapshotId": f"now-{number}", "UniqueId": str(number)}
        )
    report = {
        "@type": "CVR.CastVoteRecordReport",
        "CVR": records,
        "Election": [
            {
                "Candidate": [{"@id": f"c-{k}", "Name": name} for k, name in enumerate(items)],
                "Contest": [{"@id": "mayor", "Name": "Mayor", "ContestSelection": selections}],
            }
        ],
    }
    target = folder / "cvr.json"
    target.write_text(json.dumps(report), encoding="utf-8")
    return target


def cdf_xml(profile: Profile, items: list[str], folder: Path) -> Path:
    parts = ['<?xml version="1.0"?><CastVoteRecordReport xmlns="http://itl.nist.gov/ns/voting/1500-103/v1">']
    for number, ballot in enumerate(profile):
        chosen = "".join(
            f"<CVRContestSelection><ContestSelectionId>cs-{items.index(name)}</ContestSelectionId>"
            f"<SelectionPosition><HasIndication>yes</HasIndication><Rank>{rank}</Rank></SelectionPosition>"
            "</CVRContestSelection>"
            for rank, names in enumerate(ballot, start=1)
            for name in names
        )
        snapshot = f'<CVRSnapshot ObjectId="s{number}"><CVRContest><ContestId>mayor</ContestId>'
        parts.append(f"<CVR><CurrentSnapshotId>s{number}</CurrentSnapshotId>{snapshot}{chosen}")
        parts.append("</CVRContest></CVRSnapshot></CVR>")
    parts.append("<Election>")
    for k, name in enumerate(items):
        parts.append(f'<Candidate ObjectId="c-{k}"><Name>{escape(name)}</Name></Candidate>')
    parts.append('<Contest ObjectId="mayor"><Name>Mayor</Name>')
    parts += [
        f'<ContestSelection ObjectId="cs-{k}"><CandidateIds>c-{k}</CandidateIds></ContestSelection>'
        for k in range(len(items))
    ]
    parts.append("</Contest></Election></CastVoteRecordReport>")
    target = folder / "cvr.xml"
    target.write_text("".join(parts), encoding="utf-8")
    return target


def votekit(profile: Profile, items: list[str], folder: Path) -> Path:
    """As VoteKit writes it: by the csv module, which puts quotes around sets of several."""
    n_ranks = max(map(len, profile))
    rows: list[list[object]] = [
        ["VoteKit RankProfile"],
        ["Candidates"],
        [f"({name}:S{code})" for code, name in enumerate(items)],
        *(["Max Ranking Length"], [n_ranks], ["Includes Voter Set"], ["False"], ["="] * 10),
        [*(f"Ranking_{rank + 1}" for rank in range(n_ranks)), "&", "Weight", "&"],
    ]
    for ballot in profile:
        ranks = [ballot[rank] if rank < len(ballot) else [] for rank in range(n_ranks)]
        sets = [{f"S{items.index(name)}" for name in marked} for marked in ranks]
        rows.append([*(str(names) if names else "" for names in sets), "&", 1.0, "&"])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    target = folder / "profile.csv"
    target.write_text(text.getvalue(), encoding="utf-8")
    return target


def rank_columns(profile: Profile, items: list[str], folder: Path) -> Path:
    """Overvotes are told as such: who was marked is not."""
    return _csv(_table(profile), folder / "ballots.csv")


def spreadsheet(profile: Profile, items: list[str], folder: Path) -> Path:
    import pytest

    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in _table(profile):
        book.active.append(row)
    book.save(folder / "ballots.xlsx")
    return folder / "ballots.xlsx"


def _table(profile: Profile) -> list[list[object]]:
    n_ranks = max(map(len, profile))
    ranks_of = [f"For Mayor Choice {rank + 1} (45)" for rank in range(n_ranks)]
    rows: list[list[object]] = [["Cast Vote Record", "Precinct", *ranks_of]]
    for number, ballot in enumerate(profile):
        ranks = [ballot[rank] if rank < len(ballot) else [] for rank in range(n_ranks)]
        said = ["undervote" if not m else "overvote" if len(m) > 1 else m[0] for m in ranks]
        rows.append([number + 1, f"P{number % 3}", *said])
    return rows


def _csv(rows: list[list[object]], target: Path) -> Path:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    target.write_text(text.getvalue(), encoding="utf-8")
    return target


# Formats that say who was marked in an overvote, and those that say that there was one.
WHOLE = (dominion, hart, clear_ballot, dominion_csv, cdf, cdf_xml, votekit)
TABLES = (rank_columns, spreadsheet)
