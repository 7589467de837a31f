"""The Condorcet election format."""

from __future__ import annotations

import pytest

from permix.errors import DataError, FileFormatError

TEXT = """# My election
#/Candidates: A ; B ; C ; Dora Lee
#/Number of Seats: 1
A > B > C * 42
julien || C > A = B ^7
Dora Lee   # a comment
/EMPTY_RANKING/ * 3
"""


@pytest.mark.parametrize("name", ["x.cvotes", "x.txt"])
def test_it_is_read_by_ending_and_by_content(read, name):
    votes = read(TEXT, name)
    assert votes.items == ("A", "B", "C", "Dora Lee")
    assert votes.counts.tolist() == [42, 7, 1]
    assert votes.metadata["CLEANING"][0]["ballots"] == 3
    assert votes.prefers(1, "C", "A")
    assert not votes.prefers(1, "A", "B")
    assert votes.prefers(0, "C", "Dora Lee")


def test_parameters_count(read):
    votes = read(TEXT + "#/Implicit Ranking: false\n#/Weight allowed: false\n", "x.cvotes")
    assert votes.counts.tolist() == [42, 1, 1]
    assert not votes.prefers(0, "C", "Dora Lee")


def test_rankings_with_a_quantity_are_no_items(read):
    votes = read("A>B>C * 42\nB>A>C * 3\n", "x.txt")
    assert votes.items == ("A", "B", "C")
    assert votes.n_agents == 45


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("A > E", "line 8: 'E' is none of the candidates"),
        ("A > A", "line 8: a candidate is listed twice"),
        ("A > > B", "line 8: a candidate is missing"),
        ("A > B * many", "line 8: a vote is"),
    ],
)
def test_what_is_wrong_is_named(read, line, why):
    with pytest.raises(FileFormatError, match=why):
        read(f"{TEXT}{line}\n", "x.cvotes")


@pytest.mark.parametrize("name", ["x.cvotes", "x.txt"])
def test_counts_before_rankings(read, name):
    votes = read("3X Ann>Bo>Cy\n2x Bo>Ann\nCy\n", name)
    assert votes.items == ("Ann", "Bo", "Cy")
    assert votes.counts.tolist() == [3, 2, 1]
    assert votes.orders.tolist() == [[0, 1, 2], [1, 0, -1], [2, -1, -1]]


def test_counts_before_rankings_in_tables_are_no_names(read):
    with pytest.raises(DataError, match="'3X Ann' seems to hold a count"):
        read("3X Ann>Bo>Cy\n2X Bo>Ann>Cy\n", header=False)
