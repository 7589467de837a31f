"""Rankings and preferences written to tables: what comes back, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from permix import Preferences, Rankings
from permix.data import from_frame, read, read_table, write, write_table
from permix.data.io import table_writer
from permix.errors import DataError, PermixWarning

FULL = Rankings.from_orders([["b", "a", "c"], ["c", "b", "a"]], counts=[3, 1], agents=["x", "y"])
MIXED = Rankings.from_orders([["b", "a"], ["c"]], items=["a", "b", "c"], unlisted=["unknown", "below"])
NUMBERS = Rankings.from_orders([[1, 2, 3], [3, 1, 2], [2]])
LEVELS = Preferences.from_levels([[["a", "b"], ["c"]], [["c"]]], items=["a", "b", "c"], counts=[2, 1])
RATED = Preferences.from_ratings([(1, "a", 5), (1, "b", 5), (1, "c", 2), (4, "b", 1)])
PAIRS = Preferences.from_pairs([("x", "a", "b"), ("x", "a", "c"), ("y", "c", "b")])


@pytest.mark.parametrize(
    ("obj", "layout", "how"),
    [
        (FULL, "auto", {}),
        (FULL, "ranks", {"items": ["b", "a", "c"]}),
        (MIXED, "orders", {"items": ["a", "b", "c"]}),
        (MIXED, "ranks", {}),
        (NUMBERS, "auto", {}),
        (LEVELS, "auto", {}),
        (RATED, "ratings", {}),
        (PAIRS, "auto", {}),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz"])
def test_round_trip(tmp_path, obj, layout, how, ending):
    path = tmp_path / f"t.{ending}"
    write_table(obj, path, layout)
    assert read_table(path, **how) == obj
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("obj", [FULL, MIXED, NUMBERS])
def test_frames_of_rankings_are_read_back(obj):
    assert from_frame(obj.to_frame(), items=obj.items) == obj._replaced(agents=obj.agents)


@pytest.mark.parametrize(
    ("obj", "layout", "words"),
    [
        (LEVELS, "orders", "ties or comparisons"),
        (LEVELS, "ratings", "puts the unlisted items below"),
        (PAIRS, "ranks", "use layout='pairs'"),
        (PAIRS, "ratings", "use layout='pairs'"),
        (FULL, "wide", "layout is one of"),
        (Rankings.from_orders([["agent", "b"]], agents=[5]), "ranks", "an item is called 'agent'"),
        (Preferences.from_pairs([(0, "a", "b")], agents=[0, 1]), "pairs", "states nothing"),
    ],
)
def test_what_a_layout_cannot_hold(tmp_path, obj, layout, words):
    with pytest.raises(DataError, match=words):
        write_table(obj, tmp_path / "t.csv", layout)
    assert list(tmp_path.iterdir()) == []


LAYOUTS = ["orders", "ranks", "pairs", "ratings"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NA", "the item name 'NA' would be read as an empty cell; rename the item"),
        ("NaN", "'NaN' would be read as an empty cell"),
        ("nan", "'nan' would be read as an empty cell"),
        (" y", "' y' begins or ends with blanks, which are taken off"),
        ("y\u2003", "begins or ends with blanks"),
        ("x\ry", "spans lines"),
        ("x\ny", "spans lines"),
        ("\ufeffx", "byte order mark"),
        ("-1", "reads as a negative number"),
        ("1", "item names 1 and '1' look the same in a file"),
        ("\ud800x", "half a character"),
    ],
)
def test_item_names_that_would_not_come_back_are_refused(tmp_path, layout, name, words):
    items = [1, "b", name]
    obj = Rankings.from_orders([[name, "b", 1], [1, "b", name]], items=items)
    with pytest.raises(DataError, match=words):
        write_table(obj, tmp_path / "t.csv", layout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("agents", "words"),
    [
        (["NA", "x"], "the agent name 'NA' would be read as an empty cell; rename the agent"),
        (["x", "x "], "the agent name 'x ' begins or ends with blanks"),
        ([1, "1"], "agent names 1 and '1' look the same"),
    ],
)
def test_agents_that_would_not_come_back_are_refused(tmp_path, layout, agents, words):
    with pytest.raises(DataError, match=words):
        write_table(FULL._replaced(agents=agents), tmp_path / "t.csv", layout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("layout", ["pairs", "ratings"])
def test_two_rows_of_one_agent_do_not_become_one(tmp_path, layout):
    twice = FULL._replaced(agents=["x", "x"])
    with pytest.raises(DataError, match=r"rows 1 and 2 are both of agent 'x'.* use layout='ranks'"):
        write_table(twice, tmp_path / "t.csv", layout)


ODD = ["none", "a;b;c", "d|e\tf", 'g"h,i;"j', "0.5", "ex\u2028y", "k l", "#", "'", "1e3"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_odd_names_that_are_written_come_back(tmp_path, layout, ending):
    agents = ["a;b", "c,d", '"', "e\u2028f"]
    odd = ODD[layout == "orders" :]  # none may say that nobody is listed
    orders = [odd, odd[::-1], odd[3:] + odd[:3], odd[6:] + odd[:6]]
    obj = Rankings.from_orders(orders, items=odd, agents=agents)
    write_table(obj, tmp_path / f"t.{ending}", layout)
    back = read_table(tmp_path / f"t.{ending}", items=odd)
    assert set(read_table(tmp_path / f"t.{ending}").items) == set(odd)
    assert back.agents.tolist() == agents
    assert np.array_equal(back.pairwise_counts(), obj.pairwise_counts())


@pytest.mark.parametrize("name", ["null", "N/A", "NA", "none", "No preference"])
def test_names_that_read_as_nothing_are_not_written(tmp_path, name):
    obj = Rankings.from_orders([[name, "a"], ["a", name]])
    with pytest.raises(DataError, match=r"would be read as an empty cell|may be read as a place left empty"):
        write_table(obj, tmp_path / "t.csv", "orders")


@pytest.mark.parametrize("items", [["a;b;c", "d"], ["a|b|c", "d"], ["a\tb\tc", "d"]])
def test_marks_in_names_do_not_change_the_delimiter(tmp_path, items):
    obj = Rankings.from_orders([items, items[::-1]])
    write_table(obj, tmp_path / "t.csv", "ranks")
    assert read_table(tmp_path / "t.csv") == obj


@pytest.mark.parametrize(
    ("items", "agents", "words"),
    [
        (["N", "b"], None, r"an item is called 'N', like a column of the table \(role: count\)"),
        (["a", "Name"], None, r"an item is called 'Name', .*\(role: agent\)"),
        (["unlisted", "b"], None, r"\(role: unlisted\)"),
        (["winner", "loser", "c"], None, "looks like one of pairs"),
        (["movie", "stars", "c"], [3, 4], "looks like one of ratings"),
        (["first", "second"], None, "looks like one of orders"),
    ],
)
def test_ranks_of_items_called_like_other_columns_are_refused(tmp_path, items, agents, words):
    obj = Rankings.from_orders([items, items[::-1]], agents=agents)
    with pytest.raises(DataError, match=words):
        write_table(obj, tmp_path / "t.csv", "ranks")
    write_table(obj, tmp_path / "t.csv", "orders")
    assert read_table(tmp_path / "t.csv", "orders") == obj


def test_items_with_usual_names_are_written_as_ranks_where_the_columns_are_clear(tmp_path):
    obj = Rankings.from_orders([["user", "freq"], ["freq", "user"]], counts=[2, 1], agents=["x", "y"])
    write_table(obj, tmp_path / "t.csv", "ranks")
    assert read_table(tmp_path / "t.csv") == obj


@pytest.mark.parametrize("layout", ["orders", "pairs", "ratings"])
def test_items_that_no_row_mentions_are_named_in_a_warning(tmp_path, layout):
    obj = Rankings.from_orders([["a", "b"]], items=["a", "b", "c"], unlisted="unknown")
    with pytest.warns(PermixWarning, match=rf"no row mentions 'c', and a table of {layout} .*items=") as seen:
        write_table(obj, tmp_path / "t.csv", layout)
    assert seen[0].filename == __file__
    assert read_table(tmp_path / "t.csv").n_items == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_table(obj, tmp_path / "t.csv", "ranks")
        write_table(FULL, tmp_path / "t.csv", layout)
        if layout == "pairs":  # the rest is compared
            write_table(Rankings.from_orders([["a"]], items=["a", "b"]), tmp_path / "t.csv", layout)


@pytest.mark.filterwarnings("ignore:no row mentions")
def test_rankings_and_levels_as_pairs_say_the_same(tmp_path):
    both = Preferences.from_levels([[["a", "b"], "c"], ["d", "a"]], items=["a", "b", "c", "d"])
    unknown = Preferences.from_levels([[["a", "b"], "c"]], items=["a", "b", "c", "d"], rest_below=False)
    for obj, n_pairs in ((FULL, 4), (MIXED, 3), (both, 2 + 1 + 1 + 2), (unknown, 2)):
        write_table(obj, tmp_path / "t.csv", "pairs")
        back = read_table(tmp_path / "t.csv", items=obj.items)
        stated = obj if isinstance(obj, Preferences) else Preferences.from_rankings(obj)
        assert len(back.pairs) == n_pairs
        assert np.array_equal(back.pairwise_counts(), stated.pairwise_counts())
    repeated = Preferences.from_pairs(
        [("x", "a", "b")] * 9 + [("x", "b", "a"), ("y", "b", "a"), ("y", "b", "a")], on_cycle="keep"
    )
    write_table(repeated, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv", on_cycle="keep") == repeated
    levels_too = repeated._replaced(level_indptr=[0, 2, 2], level_items=[0, 1], levels=[0, 1])
    write_table(levels_too, tmp_path / "t.csv")
    back = read_table(tmp_path / "t.csv", on_cycle="keep")
    assert np.array_equal(back.pairwise_counts(), levels_too.pairwise_counts())
    joined = PAIRS._replaced(level_indptr=[0, 2, 2], level_items=[0, 1], levels=[0, 1])
    write_table(joined, tmp_path / "t.csv")
    back = read_table(tmp_path / "t.csv", items=joined.items)
    assert np.array_equal(back.pairwise_counts(), joined.pairwise_counts())


def test_too_many_pairs_are_counted_before_they_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(table_writer, "MOST_PAIRS", 3)
    with pytest.raises(DataError, match=r"these are 4 pairs.*layout='ranks'"):
        write_table(FULL, tmp_path / "t.csv", "pairs")
    write_table(MIXED, tmp_path / "t.csv", "pairs")
    with pytest.raises(DataError, match="states nothing"):
        write_table(Preferences.from_levels([[["a", "b"]]]), tmp_path / "u.csv", "pairs")


@pytest.mark.parametrize("name", ["x.soi", "x.csv"])
def test_only_rankings_and_preferences_are_written(tmp_path, name):
    for obj in ("x", [["a", "b"]], pd.DataFrame({"a": [1]})):
        with pytest.raises(DataError, match="only Rankings and Preferences can be written"):
            write(obj, tmp_path / name)


@pytest.mark.parametrize("name", ["v.soi", "v.csv"])
def test_missing_files_and_folders(tmp_path, name):
    with pytest.raises(FileNotFoundError) as caught:
        read(tmp_path / name)
    assert str(caught.value) == f"there is no file {tmp_path / name}"
    (tmp_path / name).mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read(tmp_path / name)
