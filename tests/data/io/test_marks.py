"""Words that are no candidates are none in any format, or the reader says that they are taken for some."""

from __future__ import annotations

import pytest

import permix
from permix.errors import DataError, PermixWarning

MARKS = ["Invalid", "Spoiled ballot", "Abstain", "abstention", "Blank", "Void", "No preference", "—"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.csv"


@pytest.mark.parametrize("mark", [*MARKS, "Exhausted"])
def test_at_a_rank(path, mark):
    path.write_text(f"precinct,rank1,rank2\nN,Ann,{mark}\nS,Bo,Ann\nS,{mark},\n", encoding="utf-8")
    votes = permix.read(path)
    assert votes.items == ("Ann", "Bo")
    assert votes.n_agents == 2
    assert mark in {word for entry in votes.metadata["CLEANING"] for word in entry["which"]}


@pytest.mark.parametrize("mark", MARKS)
def test_at_a_place(path, mark):
    path.write_text(f"voter,1st,2nd\na,Ann,{mark}\nb,Bo,Ann\nc,{mark},\n", encoding="utf-8")
    with pytest.warns(PermixWarning, match="at the end of rows is read as no item"):
        votes = permix.read(path)
    assert votes.items == ("Ann", "Bo")
    assert votes.n_agents == 2


@pytest.mark.parametrize("mark", MARKS)
def test_in_a_cell_with_a_whole_ranking(path, mark):
    path.write_text(f"id,ranking\na,Ann>{mark}\nb,Bo>Ann\nc,{mark}\n", encoding="utf-8")
    with pytest.warns(PermixWarning, match="at the end of lists is read as no item"):
        votes = permix.read(path)
    assert votes.items == ("Ann", "Bo")
    assert votes.n_agents == 2
    path.write_text(f"id,ranking\na,Ann>{mark}>Bo\nb,Bo>Ann\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 2: .* is a mark, not an item"):
        permix.read(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "x.soi",
            "# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: Ann\n# ALTERNATIVE NAME 2: Abstain\n2: 1,2\n",
        ),
        ("x.blt", '2 1\n3 1 2 0\n2 2 0\n0\n"Ann"\n"Abstain"\n"Election"\n'),
        ("x.abif", "3:Ann>Abstain\n2:Abstain\n"),
        ("x.cvotes", "Ann>Abstain * 3\nAbstain * 2\n"),
        ("x.csv", "voter,Ann,Abstain\n1,1,2\n2,,1\n"),
        ("x.csv", "agent,better,worse\n1,Ann,Abstain\n2,Abstain,Ann\n"),
    ],
)
def test_items_of_files_that_list_them_are_told(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.warns(PermixWarning, match="'Abstain' is an item here"):
        assert permix.read(path).items == ("Ann", "Abstain")


def test_options_that_voters_may_prefer_are_items(path):
    path.write_text("precinct,rank1,rank2\nN,Ann,None of the above\nS,None of these candidates,Ann\n")
    with pytest.warns(PermixWarning, match="'None of the above' are items here"):
        assert set(permix.read(path).items) == {"Ann", "None of the above", "None of these candidates"}


LINES = "ballot,precinct,rank,candidate\n1,N,1,Ann\n1,N,2,{}\n1,N,3,Bo\n2,S,1,Bo\n2,S,2,Ann\n3,S,1,{}\n"


@pytest.mark.parametrize("mark", [*MARKS, "skipped", "undervote"])
def test_in_a_table_with_a_line_for_each_rank(path, mark):
    path.write_text(LINES.format(mark, mark), encoding="utf-8")
    votes = permix.read(path, group_columns=["precinct"])
    assert votes.items == ("Ann", "Bo")
    assert votes.agents.tolist() == [1, 2]
    assert votes.covariates["precinct"].tolist() == ["N", "S"]
    assert votes.prefers(0, "Ann", "Bo")
    told = votes.metadata["CLEANING"]
    assert [(entry["ballots"], entry["left_out"]) for entry in told] == [(2, 0), (1, 1)]
    assert told[0]["which"] == (mark,)


@pytest.mark.parametrize("mark", ["overvote", "Over Vote (2)"])
def test_overvotes_in_a_table_with_a_line_for_each_rank(path, mark):
    path.write_text(LINES.format(mark, mark), encoding="utf-8")
    with pytest.raises(DataError, match=r"line 3: .* is a mark and no item"):
        permix.read(path)
