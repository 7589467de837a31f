"""Exports as vendors and programs write them, beside the samples: each is read right, or refused with why."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

import permix
from permix.errors import DataError, FileFormatError, PermixWarning
from tests.data.io.ballots import writers


def said(votes):
    """What each row says, as groups of names, best first."""
    if isinstance(votes, permix.Rankings):
        return [[{str(votes.items[item])} for item in order if item >= 0] for order in votes.orders]
    rows = []
    for start, end in zip(votes.level_indptr[:-1], votes.level_indptr[1:], strict=True):
        levels: dict[int, set[str]] = {}
        for item, level in zip(votes.level_items[start:end], votes.levels[start:end], strict=True):
            levels.setdefault(int(level), set()).add(str(votes.items[item]))
        rows.append([levels[level] for level in sorted(levels)])
    return rows


def found(votes):
    return {entry["found"]: entry["ballots"] for entry in votes.metadata.get("CLEANING", ())}


@pytest.fixture
def read(tmp_path):
    def of(text, name="x.csv", **options):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return permix.read(path, **options)

    return of


# -- VoteKit -----------------------------------------------------------------------------------------

HEAD = "Max Ranking Length\n3\nIncludes Voter Set\nTrue\n=,=,=,=,=,=,=,=,=,=\n"
TIED = "\"{'A', 'B'}\",{},{'C'}"
VOTEKIT = {
    "RankProfile": f"VoteKit RankProfile\nCandidates\n(Ann:A),(Bo:B),(Cy:C)\n{HEAD}"
    f"Ranking_1,Ranking_2,Ranking_3,&,Weight,&,Voter Set\n{TIED},&,2.0,&,x,y\n{{'C'}},{{'A'}},,&,1.0,&\n",
    "RankProfile,v2": "VoteKit RankProfile,v2\nCandidates\n(Ann:str:A),(Bo:str:B),(Cy:str:C)\n"
    f"{HEAD}Ranking_1,Ranking_2,Ranking_3,&,Weight,&,Voter Set\n{TIED},&,2.0,&\n{{'C'}},{{'A'}},,&,1.0,&\n",
    "PreferenceProfile": f"VoteKit PreferenceProfile\nCandidates\n(Ann:A),(Bo:B),(Cy:C)\n{HEAD}"
    f"A,B,C,&,Ranking_1,Ranking_2,Ranking_3,&,Weight,&,Voter Set\n,,,&,{TIED},&,4/2,&, x , y\n"
    ",,,&,{'C'},{'A'},,&,1/1,&\n",
    "a line of candidates": "Candidates\nAnn,Bo,Cy\n"
    "Ballot Index,Ranking_1,Ranking_2,Ranking_3,Weight,Voter Set\n"
    "0,\"frozenset({'Bo', 'Ann'})\",frozenset(),frozenset({'Cy'}),2,\"{'x', 'y'}\"\n"
    "1,frozenset({'Cy'}),frozenset({'Ann'}),,1,set()\n",
    "a saved frame": "Ballot Index,Ranking_1,Ranking_2,Ranking_3,Weight,Voter Set\n"
    "0,\"frozenset({'Bo', 'Ann'})\",frozenset(),frozenset({'Cy'}),2.0,set()\n"
    "1,frozenset({'Cy'}),frozenset({'Ann'}),frozenset({'~'}),1.0,set()\n",
    "a column of rankings": "weight,ranking,scores\n2.0,\"({'Ann', 'Bo'}, {}, {'Cy'})\",()\n"
    "1.0,\"({'Cy'}, {'Ann'})\",()\n",
}


@pytest.mark.parametrize("version", VOTEKIT)
def test_every_version_of_votekits_files(read, version):
    votes = read(VOTEKIT[version], tied_ranks="keep")
    assert said(votes) == [[{"Ann", "Bo"}, {"Cy"}], [{"Cy"}, {"Ann"}]]
    assert votes.counts.tolist() == [2, 1]


@pytest.mark.parametrize("head", ["precinct,rank1,rank2", "pos1,pos2"])
def test_sets_elsewhere_are_no_candidates(read, head):
    first = "N\t" if "precinct" in head else ""
    rows = f"{first}frozenset({{'A'}})\tfrozenset({{'B'}})\n{first}frozenset({{'B'}})\tfrozenset({{'~'}})\n"
    with pytest.raises(DataError, match="set of candidates"):
        read(head.replace(",", "\t") + "\n" + rows, "x.tsv")


def test_scores_beside_rankings_are_counted_and_scores_alone_refused(read):
    text = VOTEKIT["PreferenceProfile"].replace(",,,&,{'C'}", "5,1,0,&,{'C'}")
    assert found(read(text))["ballots with scores beside their rankings"] == 1
    with pytest.raises(FileFormatError, match="profile of scores"):
        read("VoteKit ScoreProfile\nCandidates\n(Ann:A)\nIncludes Voter Set\nFalse\nA,&,Weight,&\n2,&,1,&\n")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("{'C'},{'A'},,&,1.0,&", "{'C'},{'A'},,&,1", "too few"),
        ("{'C'},{'A'},,&", "{'C'},{'A'},,,&", "no &"),
        ("2.0", "3/2", "3/2"),
        ("{'C'},{'A'}", "{'C'},A", "set"),
    ],
)
def test_votekit_lines_that_are_no_ballots(read, old, new, why):
    with pytest.raises(DataError, match=why):
        read(VOTEKIT["RankProfile"].replace(old, new))


# -- ES&S --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "DEM Mayor Choice {} of 5 Citywide (026916)",  # New York
        "Rep. to Congress {} Choice District 2",  # Maine
        "{} CHOICE MAYOR MINNEAPOLIS",
        "For Mayor Choice {} (45 3)",
    ],
)
def test_names_of_columns_with_a_district_after_the_rank(read, name):
    ordinals = ["1st", "2nd", "3rd"] if "of 5" not in name and "(45" not in name else [1, 2, 3]
    head = ",".join(name.format(each) for each in ordinals)
    votes = read(f"Cast Vote Record,Precinct,{head}\n1,N,Ann,Bo,undervote\n2,S,Bo,overvote,Ann\n")
    assert said(votes) == [[{"Ann"}, {"Bo"}], [{"Bo"}]]
    assert votes.agents.tolist() == ["1", "2"]


def test_candidates_that_are_numbers_beside_undervotes(read):
    head = "Precinct," + ",".join(f"DEM Mayor Choice {rank} of 5 Citywide (026916)" for rank in (1, 2))
    votes = read(f"{head}\nN,219978,221126\nS,221126,undervote\n")
    assert said(votes) == [[{"219978"}, {"221126"}], [{"221126"}]]
    with pytest.raises(DataError, match="Precinct"):  # points of two choices, as it may be
        read("Precinct,Choice 1,Choice 2\nN,70,30\nS,40,60\n")


def test_reasons_beside_choices_are_no_contest(read):
    votes = read("1st choice,1st choice reason,2nd choice,2nd choice reason\nAnn,x,Bo,y\nBo,z,overvote,y\n")
    assert said(votes) == [[{"Ann"}, {"Bo"}], [{"Bo"}]]


def test_a_blank_contest_is_no_candidate(read):
    assert read("precinct,rank1,rank2\nN,Blank contest,\nS,Ann,Bo\n").items == ("Ann", "Bo")


# -- Dominion ----------------------------------------------------------------------------------------


def dominion(tmp_path, sessions, name="CvrExport_1.json", raw=b"") -> Path:
    folder = writers.dominion([[["Ann"]]] * 4, ["Ann", "Bo"], tmp_path)
    for file in folder.glob("CvrExport*"):
        file.unlink()
    (folder / name).write_bytes(raw + json.dumps({"Sessions": sessions}).encode())
    return folder


def session(number, *marks, **original):
    held = {"Id": 3, "Marks": [{"CandidateId": 100 + code, "Rank": rank} for code, rank in marks]}
    shown = {"IsCurrent": True, "Cards": [{"Id": 1, "Contests": [{"Id": 9}]}, {"Id": 2, "Contests": [held]}]}
    return {"TabulatorId": 1, "BatchId": 1, "RecordId": number, "Original": {**shown, **original}}


def test_a_byte_order_mark_before_an_export(tmp_path):
    folder = dominion(tmp_path, [session(1, (1, 1), (0, 2))], raw=b"\xef\xbb\xbf")
    assert said(permix.read(folder, contest="3")) == [[{"Bo"}, {"Ann"}]]


def test_versions_of_a_ballot(tmp_path):
    """The current one counts; where none is called so, the adjudicated one, and that is counted."""
    both, neither, other = (
        session(1, (0, 1), IsCurrent=False),
        session(2, (0, 1), IsCurrent=False),
        session(3, (0, 1)),
    )
    for each, current in ((both, True), (neither, False), (other, False)):
        each["Modified"] = {**session(0, (1, 1))["Original"], "IsCurrent": current}
    gone = session(4, (0, 1), IsCurrent=False)
    gone["Modified"] = {"IsCurrent": True, "Cards": [{"Id": 1, "Contests": [{"Id": 9}]}]}
    votes = permix.read(dominion(tmp_path, [both, neither, other, gone]), contest="3")
    assert said(votes) == [[{"Bo"}], [{"Bo"}], [{"Ann"}]]
    assert found(votes) == {
        "ballots of which no version is called current": 1,
        "ballots whose contest is in the original and not in the adjudicated version": 1,
    }
    left_out = [entry["left_out"] for entry in votes.metadata["CLEANING"]]
    assert sum(left_out) + votes.n_agents == 4


def test_one_mark_given_twice_is_no_overvote(tmp_path):
    votes = permix.read(dominion(tmp_path, [session(1, (0, 1), (0, 1), (1, 2))]), contest="3")
    assert said(votes) == [[{"Ann"}, {"Bo"}]]
    assert found(votes) == {"candidates marked twice at one rank": 1}


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("CvrExport_1 (1).json", '{"Sessions": []}', r"CvrExport_1 \(1\)"),
        ("cvrexport_2.json", '{"Sessions": []}', "cvrexport_2"),
        ("CvrExport_2.json", "{}", "no 'Sessions'"),
    ],
)
def test_no_export_is_passed_over(tmp_path, name, text, why):
    folder = dominion(tmp_path, [session(1, (0, 1))])
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=why):
        permix.read(folder, contest="3")


def test_a_folder_without_manifests_says_so(tmp_path):
    folder = dominion(tmp_path, [session(1, (0, 1))])
    (folder / "CandidateManifest.json").unlink()
    with pytest.raises(DataError, match=r"lacks CandidateManifest\.json"):
        permix.read(folder)


# -- Hart --------------------------------------------------------------------------------------------


def hart(tmp_path, *contests) -> Path:
    for number, (names, more) in enumerate(contests):
        options = "".join(f"<Option><Name>{name}</Name><Value>1</Value></Option>" for name in names)
        contest = f"<Contest><Name>Board</Name><Id>b</Id><Options>{options}</Options>{more}</Contest>"
        text = f'<Cvr xmlns="http://tempuri.org/CVRDesign.xsd"><Contests>{contest}</Contests>'
        (tmp_path / f"{number}.xml").write_text(f"{text}<CvrGuid>{number}</CvrGuid></Cvr>", encoding="utf-8")
    return tmp_path


def test_votes_that_were_not_used_say_how_many_there_are(tmp_path):
    """Of two votes few use both; without the undervotes they would be overvotes."""
    one = "<Undervotes>1</Undervotes>"
    votes = permix.read(
        hart(tmp_path, ("AB", ""), ("A", one), ("B", one), ("A", one), ("ABC", "<Overvoted />"))
    )
    assert said(votes) == [[{"A", "B"}], [{"A"}], [{"B"}], [{"A"}]]
    assert found(votes)["ballots with more than 2 choices"] == 1


def test_overvotes_that_are_told_are_no_choices(tmp_path):
    """Of one vote most mark two; without the mark of overvotes these would be choices."""
    over = ("AB", "<Overvoted />")
    votes = permix.read(hart(tmp_path, ("A", ""), ("B", ""), over, over, over))
    assert said(votes) == [[{"A"}], [{"B"}]]
    assert found(votes)["ballots without a choice"] == 3


def test_other_xml_among_the_sheets_is_named(tmp_path):
    folder = hart(tmp_path, ("A", ""), ("B", ""))
    (folder / "notes.xml").write_text("<notes/>")
    with pytest.raises(FileFormatError, match=r"notes\.xml"):
        permix.read(folder)


# -- NIST --------------------------------------------------------------------------------------------


def report(tmp_path, *selections, of=None) -> Path:
    listed = of or [{"@id": "A", "Selection": "Yes"}, {"@id": "B", "Selection": "No"}]
    records = [
        {
            "CurrentSnapshotId": "s",
            "CVRSnapshot": [{"@id": "s", "CVRContest": [{"ContestId": "m", "CVRContestSelection": each}]}],
        }
        for each in selections
    ]
    election = {"Contest": [{"@id": "m", "Name": "Measure", "ContestSelection": listed}]}
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"@type": "CVR.CastVoteRecordReport", "CVR": records, "Election": [election]}))
    return path


def marked(name, **position):
    return {"ContestSelectionId": name, "SelectionPosition": [{"HasIndication": "yes", **position}]}


@pytest.mark.parametrize("field", ["HasIndication", "IsAllocable"])
@pytest.mark.parametrize("no", [False, "no", "false"])
def test_marks_that_are_none(tmp_path, field, no):
    path = report(tmp_path, [marked("A", **{field: no}), marked("B")], [marked("A")])
    assert said(permix.read(path)) == [[{"No"}], [{"Yes"}]]


def test_marks_of_which_nothing_tells_whether_they_are_some(tmp_path):
    unsure = marked("A", HasIndication="unknown")
    path = report(tmp_path, [unsure, marked("B")], [marked("A")])
    with pytest.warns(PermixWarning, match=r"1 positions \(the first for 'Yes'\) say HasIndication"):
        assert said(permix.read(path)) == [[{"No"}], [{"Yes"}]]
    for told in ({"IsAllocable": "yes"}, {"NumberVotes": 1}):
        path = report(tmp_path, [marked("A", HasIndication="unknown", **told)], [marked("B")])
        assert said(permix.read(path)) == [[{"Yes"}], [{"No"}]]


def test_selections_without_a_position(tmp_path):
    path = report(tmp_path, [{"ContestSelectionId": "A", "TotalNumberVotes": 0}, marked("B")])
    assert said(permix.read(path)) == [[{"No"}]]
    with pytest.raises(DataError, match="no SelectionPosition"):
        permix.read(report(tmp_path, [{"ContestSelectionId": "A", "Rank": 1}, marked("B")]))


# -- Scottish councils, Clear Ballot --------------------------------------------------------------------

WARD = (
    '3,1,\n5,2,1,\n2,3,\n"Candidate 1","Ann","R",\n"Candidate 2","Bo","B",\n'
    '"Candidate 3","Cy","G",\n"Old Town",\n'
)


@pytest.mark.parametrize(
    "change", [lambda t: t.replace('"', ""), str.upper, lambda t: t.replace(",\n", "\n")]
)
def test_wards_as_others_write_them(read, change):
    votes = read(change(WARD))
    assert [[name.lower() for each in row for name in each] for row in said(votes)] == [["bo", "ann"], ["cy"]]


def test_candidates_who_withdrew(read):
    votes = read(WARD.replace("3,1,\n", "3,1,\n-2,\n"))
    assert said(votes) == [[{"Ann"}], [{"Cy"}]]
    assert votes.items == ("Ann", "Cy")
    assert found(votes) == {"candidates who withdrew": 5}
    with pytest.raises(FileFormatError, match="line 2"):
        read(WARD.replace("3,1,\n", "3,1,\n-4,\n"))


CLEAR = (
    "RowNumber,BallotID,Choice_1_1:Mayor:1:Vote For 1:Ann:R,Choice_2_1:Mayor:1:Vote For 1:Bo:B\n"
    "1,b1,1,0\n2,b2,0,1\n"
)


@pytest.mark.parametrize("change", ['"RowNumber","BallotID"', "BallotID,RowNumber"])
def test_clear_ballots_columns_in_quotes_or_another_order(read, change):
    assert said(read(CLEAR.replace("RowNumber,BallotID", change))) == [[{"Ann"}], [{"Bo"}]]


def test_a_choice_that_is_not_called_so_is_not_passed_over(read):
    with pytest.raises(FileFormatError, match="Choi_2_1"):
        read(CLEAR.replace("Choice_2_1", "Choi_2_1"))


# -- numbers without bound -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["precinct,rank1,rank2,weight\n{}", "pos1,pos2,count\n{}"])
def test_sums_of_counts_do_not_begin_anew(read, form):
    """Of 64 bits, the sum was a smaller number."""
    row = "Ann,Bo,9007199254740991\n"
    row = f"N,{row}" if "precinct" in form else row
    with pytest.raises(DataError, match="add up to"):
        read(form.format(row * 3000))
    assert read(form.format(row)).n_agents == 9007199254740991


def test_statements_of_polis_with_endless_numbers(read):
    votes = read(f"timestamp,datetime,comment-id,voter-id,vote\n1,x,{'9' * 5000},0,1\n1,x,3,0,-1\n")
    assert votes.items == ("3", "9" * 5000)


def test_a_report_without_contests(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"@type": "CVR.CastVoteRecordReport", "CVR": [], "Election": []}))
    with pytest.raises(DataError, match="lists no contests"):
        permix.read(path)


def test_a_zip_of_something_else_is_told(tmp_path):
    path = tmp_path / "votes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("votes.csv", "rank1,rank2\nAnn,Bo\n")
    with pytest.raises(DataError, match=r"a zip of 'votes\.csv'.* unpack"):
        permix.read(path)
