"""Tables of ballots with columns that no format knows: asked about, and read as the user says."""

from __future__ import annotations

import pytest

import permix
from permix.errors import DataError

ROWS = ["North,Ann,skipped,Bo,{}", "South,Bo,Ann,Cy,{}", "North,overvote,Bo,,{}", "South,Cy,Ann,Bo,{}"]


def put(tmp_path, last, entries):
    path = tmp_path / "ballots.csv"
    rows = [row.format(entry) for row, entry in zip(ROWS, entries, strict=True)]
    path.write_text("\n".join([f"precinct,rank1,rank2,rank3,{last}", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["rank", "rnk4", "fourth"])
def test_a_rank_that_is_not_called_so_is_not_dropped(tmp_path, name):
    """One damaged name took a rank from all ballots in silence."""
    path = put(tmp_path, name, ["skipped", "", "skipped", "Bo"])
    path.write_text(path.read_text() + "North,Ann,Bo,Cy,Bo\n")
    with pytest.raises(DataError, match=f"column '{name}' holds candidates"):
        permix.read(path)
    assert permix.read(path, ignore=name).n_agents == 4  # an overvote at the first rank ends the ballot
    assert permix.read_ballots(path, ignore=[name]).n_ranks == 3
    assert permix.read(path, group_columns=[name]).covariates[name][-1] == "Bo"


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("share", ["40%", "30%", "20%", "10%"]),
        ("percentage of ballots", ["40", "30.5", "20", "9.5"]),
        ("% of all", ["40,5", "29,5", "20", "10"]),
        ("nVotes cast", ["4", "3", "2", "1"]),
        ("wt", ["4", "3", "2", "1"]),
        ("W", ["4", "3", "2", "1"]),
        ("Qty", ["4", "3", "2", "1"]),
        ("multiplier", ["4", "3", "2", "1"]),
        ("number of respondents", ["4", "3", "2", "1"]),
    ],
)
def test_shares_and_counts_are_asked_about(tmp_path, name, entries):
    path = put(tmp_path, name, [f'"{entry}"' for entry in entries])
    with pytest.raises(DataError, match="may say how many ballots a row stands for: count_column="):
        permix.read(path)
    assert permix.read(path, ignore=[name]).n_agents == 3
    if entries[0] == "4":
        assert permix.read(path, count_column=name).n_agents == 8
    else:
        with pytest.raises(DataError, match="whole number"):
            permix.read(path, count_column=name)


def test_columns_are_named_beside_marks(tmp_path):
    """The rules for marks apply as well where the user names columns."""
    path = put(tmp_path, "times", ["1 234", "1'000", "12", "2\u202f345"])
    votes = permix.read(path, count_column="times", ignore="precinct")
    assert votes.counts.tolist() == [1234, 1000, 2345]
    assert "OTHER COLUMNS" not in votes.metadata
    assert {entry["found"] for entry in votes.metadata["CLEANING"]} >= {"skipped ranks"}
    votes = permix.read(path, agent_column="precinct", ignore="times")
    assert votes.agents.tolist() == ["North", "South", "South"]
    with pytest.raises(DataError, match="nobody"):
        permix.read(path, ignore="nobody")


def test_other_formats_have_no_columns_to_name(tmp_path):
    path = tmp_path / "ward.csv"
    path.write_text('2,1,\n3,1,2,\n"Candidate 1","Ann","Red (R)",\n"Candidate 2","Bo","Blue (B)",\n"Ward",\n')
    assert permix.read(path).n_agents == 3
    with pytest.raises(DataError, match="ignore says nothing about a file of ballots"):
        permix.read(path, ignore="precinct")


@pytest.mark.parametrize("nothing", ["0", ".", "?", "…", "_", "-"])
def test_signs_and_zero_among_names_are_nobody(tmp_path, nothing):
    """They were candidates, and could win."""
    path = tmp_path / "ballots.csv"
    path.write_text(f"precinct,rank1,rank2,rank3\nN,Ann,Bo,{nothing}\nN,Bo,Ann,Cy\nS,Cy,{nothing},Bo\n")
    votes = permix.read(path)
    assert votes.items == ("Ann", "Bo", "Cy")
    assert votes.metadata["CLEANING"][0]["which"] == (nothing,)
    assert votes.metadata["CLEANING"][0]["ballots"] == 2
    path.write_text(f"voter,first,second,third\n1,Ann,Bo,{nothing}\n2,Bo,Ann,Cy\n3,Cy,{nothing},{nothing}\n")
    with pytest.warns(permix.errors.PermixWarning, match="at the end of rows is read as no item"):
        assert permix.read(path).items == ("Ann", "Bo", "Cy")


def test_numbers_for_no_answer_among_names_are_refused(tmp_path):
    path = tmp_path / "ballots.csv"
    path.write_text("precinct,rank1,rank2,rank3\nN,Ann,Bo,Cy\nN,Bo,Ann,99\nS,Cy,-99,Bo\n")
    with pytest.raises(DataError, match="line 4: '-99' stands among names"):
        permix.read(path)
    path.write_text("voter,first,second,third\n1,Ann,Bo,99\n2,Bo,Ann,Cy\n")
    with pytest.raises(DataError, match=r"line 2, column 'third': '99' stands among names.*missing='99'"):
        permix.read(path)
    assert permix.read(path, missing=99).items == ("Ann", "Bo", "Cy")


def test_candidates_that_are_called_by_numbers_stay(tmp_path):
    path = tmp_path / "ballots.csv"
    path.write_text("precinct,rank1,rank2\nN,101,0\nN,99,undervote\nS,0,Write-in\n")
    assert permix.read(path).items == ("101", "99", "0", "Write-in")
