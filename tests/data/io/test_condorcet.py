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


@pytest.mark.parametrize("name", ["x.cvotes", "x.txt"])
def test_counts_after_rankings(read, name):
    votes = read("Ann>Bo>Cy 3X\nBo>Ann 2 x\n", name)
    assert votes.items == ("Ann", "Bo", "Cy")
    assert votes.counts.tolist() == [3, 2]


@pytest.mark.parametrize(
    ("text", "line"),
    [("Ann>Bo 3X\nBo>Ann * 2\n", 1), ("Bo>Ann\nAnn>Bo 3X\n", 2), ("Plan 1x>Plan 2x\nPlan 2x>Plan 1x\n", 1)],
)
def test_ends_that_could_be_counts_or_names_are_refused(read, text, line):
    with pytest.raises(FileFormatError, match=f"line {line}: the end could be a count or part of a name"):
        read(text, "x.cvotes")
    with pytest.raises(DataError):
        read(text, "x.txt")


def test_listed_names_may_end_like_counts(read):
    votes = read("#/Candidates: Plan 1x ; Plan 2x\nPlan 1x>Plan 2x\nPlan 2x>Plan 1x * 4\n", "x.cvotes")
    assert votes.items == ("Plan 1x", "Plan 2x")
    assert votes.counts.tolist() == [1, 4]
    with pytest.raises(DataError, match="seems to hold a count"):
        read("Ann>Bo>Cy 3X\nBo>Ann>Cy 2X\n", header=False)
