"""Categories of PrefLib files: which is best, in the words of the file or of the caller."""

from __future__ import annotations

import warnings

import pytest

from permix.data import read_preflib, read_table, write_preflib, write_table
from permix.data.io.categories import category_order
from permix.errors import DataError, PermixWarning


def put(path, categories, body, first=1, items=("Ann", "Bob", "Cy")):
    lines = ["# FILE NAME: x.cat", "# TITLE: A vote", "# DATA TYPE: cat"]
    lines += [f"# NUMBER ALTERNATIVES: {len(items)}", f"# NUMBER VOTERS: {len(body)}"]
    lines += [f"# NUMBER UNIQUE PREFERENCES: {len(body)}", f"# NUMBER CATEGORIES: {len(categories)}"]
    lines += [f"# CATEGORY NAME {i}: {name}" for i, name in enumerate(categories, first)]
    lines += [f"# ALTERNATIVE NAME {i}: {name}" for i, name in enumerate(items, first)]
    path.write_text("\n".join([*lines, *(f"1: {row}" for row in body)]) + "\n")
    return path


@pytest.mark.parametrize(
    ("names", "order"),
    [
        ("Yes No", (0, 1)),
        ("Yes Maybe No", (0, 1, 2)),
        ("Yes No Maybe", (0, 2, 1)),
        ("No Yes", (1, 0)),
        ("Disapproved Neutral/Skipped Approved", (2, 1, 0)),
        ("agree disagree pass", (0, 2, 1)),
        ("Dislike Like", (1, 0)),
        ("Excellent|Very good|Good|Fair|Poor|To be seen|Reject", (0, 1, 2, 3, 4, 5, 6)),
        ("strongly disagree|disagree|neutral|agree|strongly agree", (4, 3, 2, 1, 0)),
        ("yes|maybe|no response|no|conflict", (0, 1, 2, 3, 4)),
        ("1 star|2 stars|3 stars", (2, 1, 0)),
        ("-1 0 1", (2, 1, 0)),
        ("Not approved|Approved", (1, 0)),
        ("Category 1 (best)|Category 2|Category 3 (worst)", (0, 1, 2)),
        ("Whatever", (0,)),
    ],
)
def test_names_tell(names, order):
    assert category_order(names.split("|") if "|" in names else names.split(), None, "x.cat") == order


@pytest.mark.parametrize(
    "names",
    [["Category 1", "Category 2"], ["1", "2", "3"], ["Yes", "Other"], ["Oui", "Non"], ["Yes", "Liked"]],
)
def test_names_that_do_not_tell(names):
    with pytest.raises(DataError, match=f"x.cat.*'{names[0]}', '{names[1]}'.*categories='best-first'"):
        category_order(names, None, "x.cat")
    forward = tuple(range(len(names)))
    assert category_order(names, "best-first", "x.cat") == forward
    assert category_order(names, "worst-first", "x.cat") == forward[::-1]
    assert category_order(names, names[::-1], "x.cat") == forward[::-1]


@pytest.mark.parametrize("said", ["upwards", ["Yes"], ["Yes", "Yes"], ["Yes", "No", "Maybe"]])
def test_orders_that_do_not_fit(said):
    with pytest.raises(DataError, match="'Yes', 'No'"):
        category_order(["Yes", "No"], said, "x.cat")


UP = ("Disapproved", "Neutral", "Approved")
BODY = ("1,{},{2,3}", "{},{},{1,2}", "{},3,{}", "3,2,1")


def test_worst_first_is_turned_round_and_told(tmp_path):
    path = put(tmp_path / "x.cat", UP, BODY)
    with pytest.warns(PermixWarning, match="best first as 'Approved', 'Neutral', 'Disapproved'"):
        votes = read_preflib(path)
    same = put(tmp_path / "y.cat", UP[::-1], ("{2,3},{},1", "{1,2},{},{}", "{},3,{}", "1,2,3"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_preflib(same) == votes
        said = read_preflib(path, categories="worst-first")
        assert read_preflib(path, categories=["Approved", "Neutral", "Disapproved"]) == said == votes
        wrong = read_preflib(path, categories="best-first")
    assert wrong != votes  # the twin: the order of the file
    assert wrong.levels.tolist() == [0, 1, 1, 0, 0, 0, 0, 1, 2]
    (tmp_path / "again").mkdir()
    write_preflib(votes, tmp_path / "again" / "x.cat")
    assert (tmp_path / "again" / "x.cat").read_bytes() == path.read_bytes()


def test_numbers_from_0(tmp_path):
    from_0 = ("0,{},{1,2}", "{},{},{0,1}", "{},2,{}", "2,1,0")
    votes = read_preflib(put(tmp_path / "x.cat", UP, from_0, first=0), categories="worst-first")
    other = read_preflib(put(tmp_path / "y.cat", UP, BODY), categories="worst-first")
    assert votes == other
    assert votes.metadata["CATEGORY NAME 1"] == "Disapproved"
    write_preflib(votes, tmp_path / "z.cat")
    assert read_preflib(tmp_path / "z.cat", categories="worst-first") == votes
    with pytest.raises(DataError, match=r"alternative '3' is not one of 0\.\.2"):
        read_preflib(put(tmp_path / "x.cat", UP, ("3,{},{}",), first=0))


def test_ratings_keep_the_category(tmp_path):
    votes = read_preflib(put(tmp_path / "x.cat", UP, BODY), categories="worst-first")
    write_table(votes, tmp_path / "x.csv", layout="ratings")
    rows = (tmp_path / "x.csv").read_text().splitlines()
    assert rows[0] == "agent,item,rating"
    assert sorted(rows[1:]) == sorted(
        ["1,Ann,1", "1,Bob,3", "1,Cy,3", "2,Ann,3", "2,Bob,3", "3,Cy,2", "4,Cy,1", "4,Bob,2", "4,Ann,3"]
    )
    back = read_table(tmp_path / "x.csv", items=votes.items)
    assert back.levels.tolist() == votes.levels.tolist()


def test_categories_are_for_cat_files(tmp_path):
    path = tmp_path / "x.soc"
    path.write_text("# DATA TYPE: soc\n# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n1: 1,2\n")
    with pytest.raises(DataError, match=r"categories is for \.cat files"):
        read_preflib(path, categories="best-first")
