"""Files that look plausible and would be misread: each is read right or refused."""

from __future__ import annotations

import re
import warnings
import zipfile

import numpy as np
import pytest

import permix
from permix.data.ballots import Ballots
from permix.data.cleaning_candidates import audit_of, names_alike
from permix.errors import DataError, PermixError, PermixWarning
from tests.data.io.ballots import writers

SCOTTISH = '3,1\n10,1,2,3\n{}\n"Candidate 1","A","P"\n"Candidate 2","B","P"\n"Candidate 3","C","P"\n"Ward"\n'
VOTEKIT = "VoteKit RankProfile\nCandidates\n{}\nRanking_1,Ranking_2,Weight\n{}\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("precinct,rank1,rank2,age\nP,Smith, J,Brown,33\n", "line 2 has 5 fields where the first line has 4"),
        ('precinct,rank1,rank2\nP,"Ann,b\nP,b,c\nP,b,"Ann"\n', "quote"),
        ('precinct,rank1,rank2\nP,"Ann\nLee",b\n', "several lines"),
        ("precinct,rank1,rank2,rank1,rank2\nP,a,b,x,y\nP,b,a,y,x\n", "rank1"),
        ("age,choice 1,choice 2\n3,agree,agree\n4,disagree,disagree\n5,agree,agree\n", "age|twice|place"),
        ("id,region,Choice 1,Choice 2\n1,N,1st,2nd\n2,S,2nd,1st\n", "region|place"),
    ],
)
def test_tables_that_are_refused(read, text, why):
    with pytest.raises(PermixError, match=why):
        read(text)


def test_marks_are_marks_wherever_they_stand(read):
    late = read("rank1,rank2,rank3\n" + "a,b,c\n" * 30_000 + "a,overvote,b\nskipped,b,a\n")
    assert late.items == ("a", "b", "c")
    others = read("precinct,rank1,rank2,rank3\nP,a,skip,b\nP,b,no selection,a\nP,c,OVERVOTE (2),-\n")
    assert others.items == ("a", "b", "c")
    said = audit_of(others.metadata)[0]
    assert said.which == ("-", "OVERVOTE (2)", "no selection", "skip")
    assert said.ballots == 3


def test_people_called_like_codes_stay(read):
    assert read("precinct,rank1,rank2\nP,Na,Kim\nP,Kim,Na\n").items == ("Na", "Kim")


def test_options_for_tables_mean_a_table(read):
    names = read("name,rank1,rank2\nann,a,b\nbob,b,a\n", agent_column="name")
    assert names.agents.tolist() == ["ann", "bob"]
    assert read("precinct,rank1,rank2\n1,a,b\n2,b,a\n", ignore=["precinct"]).items == ("a", "b")


@pytest.mark.parametrize("line", ["12.0,2,1", "-5,3", "+7,3,2", "5,1,,3", "5,4"])
def test_scottish_lines_that_are_no_ballots(read, line):
    with pytest.raises(DataError, match="line 3"):
        read(SCOTTISH.format(line))


@pytest.mark.parametrize("names", ["(Smith:SMI),(Smithers:SMI)", "(Smith:SMI),(Roe)", "(Smith:SMI),Roe:ROE"])
def test_votekit_names_that_cannot_be_told_apart(read, names):
    with pytest.raises(DataError, match="told apart"):
        read(VOTEKIT.format(names, "{'SMI'},,3.0"))


def test_rows_that_stand_for_nobody(read, tmp_path):
    rankings = read(VOTEKIT.format("(Smith:SMI),(Lee:LEE)", "{'SMI'},{'LEE'},0.0\n{'LEE'},{'SMI'},2.0"))
    assert rankings.n_agents == 2
    assert audit_of(rankings.metadata)[0].found == "rows with a count of 0"
    permix.write(rankings, tmp_path / "x.soc")
    assert permix.read(tmp_path / "x.soc").n_agents == 2


def test_people_of_one_name_and_two_parties(read):
    names = [f"Choice_{r}_{p}:Mayor:{r}:Vote For 1:Smith:{p}" for r in (1, 2) for p in ("A", "B")]
    rankings = read(f"RowNumber,{','.join(names)}\n1,1,0,0,1\n")
    assert rankings.items == ("Smith (A)", "Smith (B)")
    assert rankings.orders.tolist() == [[0, 1]]


def test_ranks_without_bound(read):
    with pytest.raises(DataError, match="ranks are more than any ballot has"):
        read("RowNumber,Choice_1_1:Mayor:1:V:A:,Choice_1_2:Mayor:300000000:V:B:\n1,1,1\n")


def test_two_elections_in_one_zip(tmp_path):
    path = writers.dominion([[["Ann"], ["Bo"]]] * 4, ["Ann", "Bo"], tmp_path, packed=True)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other/CvrExport_1.json", '{"Sessions": []}')
    with pytest.raises(DataError, match="2 folders"):
        permix.read(path, contest="3")


def test_entities_in_another_encoding(tmp_path):
    path = writers.hart([[["Ann"], ["Bo"]]] * 2, ["Ann", "Bo"], tmp_path)
    text = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x [<!ENTITY a "aaa">]><Cvr>&a;</Cvr>'
    (path / "0001.xml").write_bytes(text.encode("utf-16"))
    with pytest.raises(DataError, match="UTF-8"):
        permix.read(path, contest="Mayor")


def test_each_ballot_draws_for_itself():
    marked = Ballots.from_rows([[["A", "B"]], [["C"]], [["C"]], [["C"]]], counts=[1000, 400, 400, 400])
    first = permix.clean(marked, overvotes="random", random_state=0).orders[:1000, 0]
    assert 400 < np.count_nonzero(first == 0) < 600  # six standard errors


def test_what_was_cleaned_before_is_not_forgotten():
    once = permix.clean(Ballots.from_rows([[["A"], ["B", "C"]], [[], []], [["B"], ["A"]]]))
    twice = permix.clean(once, min_support=1)
    assert audit_of(twice.metadata)[:2] == audit_of(once.metadata)


def test_names_that_differ_by_marks_or_symbols():
    assert names_alike(["मीना", "नीमा", "C", "C++", "+1", "Ünal", "Unal"]) == []


def test_letters_of_other_alphabets_and_signs_that_cannot_be_seen():
    """A Cyrillic letter, a zero-width blank, a soft hyphen; and Cyrillic names that differ by case."""
    names = [
        "Anna",
        "\u0410nn\u0430",
        "Bo Lee",
        "Bo\u200b Lee",
        "Bo Le\xade",
        "\u0412\u043e\u0432\u0430",
        "Li",
    ]
    names += ["\u0412\u041e\u0412\u0410", "BOBA", "\u0412\u043e\u0432\u043e"]
    assert names_alike(names) == [names[:2], names[2:5], [names[5], *names[7:9]]]


def test_names_that_look_alike_are_noticed_in_every_table(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('pos1,pos2\n"Smith, J",Jones\nJ Smith,Jones\n')
    with pytest.warns(UserWarning, match="'Smith, J', 'J Smith' look alike"):
        assert permix.read(path).n_items == 3
    assert permix.read(path, names="merge").items == ("Smith, J", "Jones")


def test_words_of_machines_are_no_candidates(tmp_path):
    path = tmp_path / "x.csv"
    words = ["Blank Vote", "Skipped Ranking", "(blank)", "Not ranked", "RCV Under Vote"]
    rows = [*(f"N,Ann,{word}" for word in words), "S,RCV Over Vote,Bo", "S,overvote: Ann & Bo,Bo", "S,Bo,Ann"]
    path.write_text("precinct,rank1,rank2\n" + "\n".join(rows) + "\n")
    votes = permix.read(path)
    assert set(votes.items) == {"Ann", "Bo"}
    assert votes.n_agents == 6
    told = votes.metadata["CLEANING"][0]
    assert told["ballots"] == 7
    assert set(words) <= set(told["which"])


def test_two_columns_that_could_count_ballots_are_asked_about(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("precinct,rank1,rank2,weight,votes\nN,Ann,Bo,3,4\nS,Bo,Ann,1,1\n")
    with pytest.raises(DataError, match="'weight' and 'votes' could both be the count"):
        permix.read(path)


@pytest.mark.parametrize("kind", ["dominion", "cdf"])
def test_marks_without_a_rank_among_ranks_are_refused(kind, tmp_path):
    """They would be at the first rank: of ranks from 0 on, two would be one."""
    profile = [[["Ann"], ["Bo"]], [["Bo"], ["Ann"]]]
    path = getattr(writers, kind)(profile, ["Ann", "Bo"], tmp_path)
    file = path if kind == "cdf" else path / "CvrExport_20.json"
    whole = file.read_text()
    rank = '"Rank": 1' if kind == "cdf" else '"Rank": 1, "IsAmbiguous": false, "IsVote"'
    assert rank in whole
    for change in (rank.replace("1", "0", 1), rank.replace("1", "null", 1)):
        file.write_text(whole.replace(rank, change))
        with pytest.raises(DataError, match=r"has the rank 0|rank 0 of selection|and others have none"):
            permix.read(path, **({"contest": "Mayor"} if path.is_dir() else {}))


def test_ballots_given_twice_are_told(tmp_path):
    profile = [[["Ann"], ["Bo"]], [["Bo"], ["Ann"]], [["Ann"]], [["Bo"]]]
    path = writers.dominion(profile, ["Ann", "Bo"], tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert permix.read(path, contest="Mayor").n_agents == 4
    (path / "CvrExport_21.json").write_text((path / "CvrExport_20.json").read_text())
    with pytest.warns(PermixWarning, match="2 ballots have the id of another, such as '5-1-2'"):
        assert permix.read(path, contest="Mayor").n_agents == 6
    for file in path.glob("Cvr*"):  # numbers that were taken out tell nothing
        file.write_text(re.sub('"RecordId": [0-9]+', '"RecordId": "X"', file.read_text()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        permix.read(path, contest="Mayor")


@pytest.mark.parametrize("joined", ["Ann;Bo", "Ann | Bo", "Ann/Bo", '"Ann, Bo"', "Ann & Bo"])
@pytest.mark.parametrize("beside", ["precinct", "rank3"])
def test_several_candidates_in_one_cell_are_no_candidate(joined, beside, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"rank1,rank2,{beside}\nCy,Ann,Bo\n{joined},Cy,\nBo,Ann,Cy\n")
    with pytest.raises(DataError, match=r"line 3.*seems to be (several candidates|a tie)"):
        permix.read(path)


def test_ballots_that_machines_number_each_from_one_are_not_given_twice(tmp_path):
    path = tmp_path / "cvr.csv"
    rows = ["1,A,a,b", "2,A,b,a", "3,A,b,a", "1,B,a,b", "2,C,b,a"]
    text = "Record Id,Machine,rank1,rank2\n" + "\n".join(rows) + "\n"
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert permix.read(path).n_agents == 5
    path.write_text(text + "2,C,b,a\n", encoding="utf-8")  # the same ballot once more
    with pytest.warns(PermixWarning, match="1 ballot has the id of another, such as '2'"):
        assert permix.read(path).n_agents == 6
