"""Contests in which voters may choose several candidates: what the file says counts."""

from __future__ import annotations

import json

import pytest

import permix
from permix.errors import DataError

BALLOTS = [["Ann", "Bo"], ["Ann"], ["Bo"], ["Cy"], ["Ann", "Bo", "Cy"]]
NAMES = ["Ann", "Bo", "Cy"]


def clear_ballot(path, allowed):
    columns = [f"Choice_{k}_1:Council:1:Vote For {allowed}:{name}:" for k, name in enumerate(NAMES)]
    return clear_ballot_of(path, columns)


def clear_ballot_without_ranks(path, allowed):
    columns = [f"Choice_{k}_1:Council:Vote For {allowed}:{name}:Red" for k, name in enumerate(NAMES)]
    return clear_ballot_of(path, columns)


def clear_ballot_of(path, columns):
    lines = [",".join(["RowNumber", "BallotID", *columns])]
    lines += [",".join([str(k), f"B{k}", *("01"[n in b] for n in NAMES)]) for k, b in enumerate(BALLOTS)]
    path = path / "clear.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def dominion_csv(path, allowed):
    contest, ids = f"Council (Vote For={allowed})", "CvrNumber,TabulatorNum,BatchId,BallotType"
    lines = [
        "Town,5.2.16.1" + "," * 5,
        ",,,," + ",".join([contest] * 3),
        f",,,,{','.join(NAMES)}",
        f"{ids},,,",
    ]
    lines += [f"{k},1,1,B,{','.join('01'[n in b] for n in NAMES)}" for k, b in enumerate(BALLOTS, start=1)]
    path = path / "export.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def cdf(path, allowed):
    contest = {"@id": "c", "Name": "Council", "VotesAllowed": allowed}
    contest["ContestSelection"] = [{"@id": f"s{k}", "CandidateIds": [f"p{k}"]} for k in range(3)]
    people = [{"@id": f"p{k}", "Name": name} for k, name in enumerate(NAMES)]

    def record(k, ballot):
        marked = [
            {"ContestSelectionId": f"s{NAMES.index(n)}", "SelectionPosition": [{"HasIndication": "yes"}]}
            for n in ballot
        ]
        held = [{"ContestId": "c", "CVRContestSelection": marked}]
        return {
            "UniqueId": str(k),
            "CurrentSnapshotId": "a",
            "CVRSnapshot": [{"@id": "a", "CVRContest": held}],
        }

    report = {"@type": "CVR.CastVoteRecordReport", "Election": [{"Contest": [contest], "Candidate": people}]}
    report["CVR"] = [record(k, ballot) for k, ballot in enumerate(BALLOTS)]
    path = path / "cvr.json"
    path.write_text(json.dumps(report))
    return path


@pytest.mark.parametrize("write", [clear_ballot, clear_ballot_without_ranks, dominion_csv, cdf])
def test_several_choices_are_no_overvote_where_several_are_allowed(write, tmp_path):
    votes = permix.read(write(tmp_path, 2))
    told = {entry["found"]: entry["ballots"] for entry in votes.metadata["CLEANING"]}
    assert told == {"ballots with more than 2 choices": 1, "a contest without ranks": 4}
    assert votes.n_agents == 4
    assert not votes.prefers(0, "Ann", "Bo")
    assert votes.prefers(0, "Bo", "Cy")
    votes = permix.read(write(tmp_path, 1))
    told = {entry["found"]: entry["ballots"] for entry in votes.metadata["CLEANING"]}
    assert told["overvotes: several candidates at one rank"] == 2
    assert votes.n_agents == 3


def test_positions_of_several_or_no_votes(tmp_path):
    """NumberVotes 0 is a mark that does not count; more than 1 is no ranking."""
    path = cdf(tmp_path, 3)
    whole = path.read_text()
    path.write_text(whole.replace('"HasIndication": "yes"', '"HasIndication": "yes", "NumberVotes": 1'))
    assert permix.read(path).n_agents == 5
    path.write_text(whole.replace('"HasIndication": "yes"', '"HasIndication": "yes", "NumberVotes": 0', 1))
    votes = permix.read(path)
    assert not votes.prefers(0, "Ann", "Cy")
    assert votes.prefers(0, "Bo", "Cy")
    path.write_text(whole.replace('"HasIndication": "yes"', '"HasIndication": "yes", "NumberVotes": 2', 1))
    with pytest.raises(DataError, match=r"selection 's0' has 2 votes of one voter \(NumberVotes\)"):
        permix.read(path)
