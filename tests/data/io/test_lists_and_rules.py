"""Tables of lists with gaps and repeated items: refused with the rule that settles it, or read by it."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.data.ballots import Ballots
from permix.data.io.table_columns import decimal_points
from permix.data.labels import as_objects
from permix.errors import DataError

RULES = [{"skipped": "close-up"}, {"skipped": "stop-after-one", "repeats": "truncate"}, {"repeats": "first"}]


def orders(votes):
    return [[str(votes.items[item]) for item in row if item >= 0] for row in votes.orders.tolist()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pos1,pos2,pos3\nA,,B\nB,A,\n", r"line 2: .* skipped='close-up'\) moves later entries up"),
        ("pos1,pos2,pos3\nB,A,\nA,B,A\n", r"line 3: 'A' is listed twice; .* repeats='first'\) takes"),
    ],
)
def test_the_rule_that_settles_it_is_named(read, text, said):
    with pytest.raises(DataError, match=said):
        read(text)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("names", ["pos1,pos2,pos3,pos4", "1st,2nd,3rd,4th", "1,2,3,4"])
def test_rules_read_lists_as_they_read_ballots(read, rules, names):
    """The oracle is the same marks, as ballots; rows without an answer are counted by either."""
    rng = np.random.default_rng(3)
    drawn = rng.choice(["", "Ann", "Bo", "Cy", "Di"], size=(40, 4), p=[0.3, 0.2, 0.2, 0.2, 0.1])
    drawn[7] = ""
    text = "\n".join(["id," + names, *(f"{k},{','.join(row)}" for k, row in enumerate(drawn.tolist()))])
    votes = read(text + "\n", **rules)
    marked = Ballots.from_rows([[[name] if name else [] for name in row] for row in drawn.tolist()])
    wanted = permix.clean(marked, **rules)
    assert orders(votes) == orders(wanted)
    told, expected = (
        {entry["found"]: entry["ballots"] for entry in each.metadata["CLEANING"] if entry["rule"]}
        for each in (votes, wanted)
    )
    assert told == expected
    assert len(told) == 2
    left_out = sum(entry["left_out"] for entry in votes.metadata["CLEANING"])
    assert votes.n_agents == 40 - left_out
    assert set(votes.agents.tolist()) <= set(range(40)) - {7}
    assert votes.metadata["LAYOUT"] == "orders"


def test_counts_and_covariates_go_along(read):
    votes = read(
        "pos1,pos2,pos3,count,ward\nA,,B,3,x\nB,A,B,2,y\n,,,4,x\n", skipped="close-up", group_columns=["ward"]
    )
    assert orders(votes) == [["A", "B"], ["B", "A"]]
    assert votes.counts.tolist() == [3, 2]
    assert votes.covariates["ward"].tolist() == ["x", "y"]
    found = {entry["found"]: entry["left_out"] for entry in votes.metadata["CLEANING"]}
    assert found == {"rows without an answer": 4, "skipped ranks": 0, "candidates ranked again": 0}


def test_lists_that_leave_the_others_open_have_no_ranks(read):
    with pytest.raises(DataError, match="an entry is blank, but another follows"):
        read("pos1,pos2,pos3\nA,,B\n", unlisted="unknown", skipped="close-up")


@pytest.mark.parametrize(
    ("entries", "delimiter", "read_as"),
    [
        (["1,5", "2", ""], ";", ["1.5", "2", ""]),
        (["1,5", "2", ""], "\t", ["1.5", "2", ""]),
        (["1,500", "2"], ";", ["1.500", "2"]),
        (["1,500", "2"], "\t", ["1,500", "2"]),
        (["1,500", "2,25"], "\t", ["1.500", "2.25"]),
        (["1,5", "2"], ",", ["1,5", "2"]),
        (["1,5", "x"], "\t", ["1,5", "x"]),
    ],
)
def test_decimal_commas(entries, delimiter, read_as):
    assert decimal_points(as_objects(entries), delimiter).tolist() == read_as


def test_numbers_with_commas_never_become_names_of_rows(tmp_path):
    """Ratings of the first item were taken for the names of the people."""
    path = tmp_path / "x.txt"
    path.write_text("Tea\tMilk\n1,5\t2\n3,25\t1\n")
    assert permix.read_cells(path).values.tolist() == [1.5, 2.0, 3.25, 1.0]
    assert permix.read(path, layout="ratings").prefers(1, "Tea", "Milk")
    path.write_text("Tea\tMilk\n1,500\t2\n3,250\t1\n")
    with pytest.raises(DataError, match=r"line 2, column 'Tea': '1,500' could have decimals"):
        permix.read_cells(path)


@pytest.mark.parametrize("rows", [([2, 0, 1], [0, 1, 2]), ([2, 1, 3], [1, 2, 3])])
@pytest.mark.parametrize("called", ["ranks", "ranking"])
def test_lists_of_numbers_may_be_ranks(read, rows, called):
    text = "".join(f'{{"id": {at}, "{called}": {row}}}\n' for at, row in enumerate(rows))
    with pytest.raises(DataError, match="could list items, best first, or hold the rank of each item"):
        read(text, "x.jsonl")
    votes = read(text, "x.jsonl", layout="orders")
    assert [votes.items[item] for item in votes.orders[0]] == rows[0]
    assert read(text.replace(called, "order"), "x.jsonl").n_items == 3  # named so, it lists items
    assert read(text.replace(f"{rows[0]}", "[7, 3, 9]"), "x.jsonl").n_items == 6 - (3 in rows[1])


def test_columns_of_several_questions_are_no_ordering(read):
    text = "Voter,President 1,President 2,Clerk 1,Clerk 2\n1,Ann,Bo,Di,Ed\n2,Bo,Ann,Ed,Di\n"
    with pytest.raises(DataError, match=r"several questions, 'President', 'Clerk'.*ignore='Clerk 1'"):
        read(text, layout="orders")
    assert read(text, layout="orders", ignore=["Clerk 1", "Clerk 2"]).items == ("Ann", "Bo")


@pytest.mark.parametrize("called", ["Rank {} {}", "{}. choice {}", "{}th {}"])
def test_columns_of_several_questions_with_the_number_before(read, called):
    names = ",".join(called.format(rank, office) for office in ("Mayor", "Clerk") for rank in (1, 2))
    with pytest.raises(DataError, match="several questions"):
        read(f"{names}\nAnn,Bo,Di,Ed\nBo,Ann,Ed,Di\n", layout="orders", header=True)


def test_the_worst_item_is_not_above_those_that_are_not_listed(read):
    with pytest.raises(DataError, match="'worst' is below the items that a row does not list"):
        read("person,best,worst\na,tea,cola\nb,milk,tea\n", layout="orders")
    assert read("person,best,worst\na,tea,cola\nb,milk,tea\n", layout="orders", ignore="worst").n_items == 2
    whole = read("person,best,middle,worst\na,tea,milk,cola\nb,milk,cola,tea\n", layout="orders")
    assert [whole.items[item] for item in whole.orders[0]] == ["tea", "milk", "cola"]
