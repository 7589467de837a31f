"""Dominion's CSV exports, as counties publish them."""

from __future__ import annotations

import pytest

from permix.data.io.ballots.formats import recognize
from permix.errors import DataError, FileFormatError

HEAD = (
    '"Town","5.10.50.85",,,,,,,,\n'
    ",,,,Mayor (Vote For=1),Mayor (Vote For=1),Council (Vote For=2),Council (Vote For=2),"
    "Council (Vote For=2),Council (Vote For=2)\n"
    ",,,,Ann,Bo,Cy,Di,Write-in,Write-in\n"
    "CvrNumber,RecordId,CountingGroup,PrecinctPortion,DEM,REP,DEM,,,\n"
)


@pytest.fixture
def read(tmp_path):
    def reader(body, contest="Mayor", head=HEAD):
        path = tmp_path / "export.csv"
        path.write_text(head + body)
        return recognize(path).read(contest)

    return reader


def test_contests_parties_and_what_is_known_of_ballots(read):
    body = '="1",="7",Mail,N 1,1,0,1,0,1,0\n="2",="8",Poll,N 2,0,1,,,,\n'
    mayor = read(body)
    assert mayor.items == ("Ann", "Bo")
    assert mayor.attributes["party"].tolist() == ["DEM", "REP"]
    assert mayor.agents.tolist() == ["1", "2"]
    assert mayor.covariates["precinct"].tolist() == ["N 1", "N 2"]
    assert mayor.covariates["counting group"].tolist() == ["Mail", "Poll"]
    council = read(body, "Council")
    assert council.items == ("Cy", "Di", "Write-in", "Write-in (2)")
    assert council.agents.tolist() == ["1"]  # the contest was not on the other ballot
    assert council.item.tolist() == [0, 2]
    assert council.n_choices == 2
    assert council.write_ins == ("Write-in", "Write-in (2)")
    with pytest.raises(DataError, match="2 contests: Mayor, Council"):
        read(body, None)


def test_lines_that_sum_up_ballots_are_no_ballots(read):
    redacted = "Redacted and Aggregated,,,N 1,3,1,0,0,0,0\n"
    found = read("1,7,Mail,N 1,1,0,1,0,1,0\n" + redacted)
    assert len(found) == 1
    assert [(entry.found, entry.ballots) for entry in found.audit] == [
        ("lines that sum up several ballots", 1)
    ]
    with pytest.raises(FileFormatError, match="line 6, 'Ann': '3' is neither 0 nor 1"):
        read("1,7,Mail,N 1,1,0,1,0,1,0\n2,,,N 1,3,1,0,0,0,0\n")


def test_ranked_choices_say_their_ranks(read):
    title = '"Mayor (Number of positions=1, Number of ranks=2)"'
    lines = ["Town,5.17.17.1,,,", f",{','.join([title] * 4)}", ",{}", "CvrNumber,,,,"]
    head = "\n".join(lines) + "\n"
    found = read("1,1,0,0,1\n2,0,0,1,0\n", None, head.format("Ann(1),Ann(2),Bo (B.) Lee(1),Bo (B.) Lee(2)"))
    assert found.items == ("Ann", "Bo (B.) Lee")
    marks = [tuple(map(int, mark)) for mark in zip(found.ballot, found.rank, found.item, strict=True)]
    assert marks == [(0, 0, 0), (0, 1, 1), (1, 0, 1)]
    with pytest.raises(FileFormatError, match="does not say its rank"):
        read("1,1,0,0,1\n", None, head.format("Ann,Ann,Bo,Bo"))
    with pytest.raises(FileFormatError, match="two columns are for"):
        read("1,1,0,0,1\n", None, head.format("Ann(1),Ann(1),Bo(1),Bo(2)"))
    with pytest.raises(DataError, match="ranks are more than any ballot"):
        read("1,1,0,0,1\n", None, head.format("Ann(1),Ann(999999),Bo(1),Bo(2)"))


def test_a_head_that_is_cut_is_damaged(read):
    with pytest.raises(FileFormatError, match="lines 2 to 4"):
        read("1,7,Mail,N 1,1,0,1,0,1,0\n", head=HEAD.replace(",,,,Ann,Bo", ",,,Ann,Bo"))
    with pytest.raises(FileFormatError, match="line 5 has 9 entries, the header 10"):
        read("1,7,Mail,N 1,1,0,1,0,1\n")
