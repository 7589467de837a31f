"""What is known beside the answers goes where rows and items go."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import permix
from permix import Cells, Preferences, Rankings
from permix.data.attributes import Attributes, from_text, in_short, item_labels
from permix.data.ballots import Ballots
from permix.errors import DataError

AGE, PRECINCT = [31.0, 58.0, np.nan, 44.0], ["north", "south", "", "north"]
PARTY = {"party": ["Red", "", "Blue"]}


def votes(kind=Rankings):
    rankings = Rankings.from_orders(
        [["a", "b", "c"], ["b"], ["c", "a"], ["a", "b", "c"]], items=["a", "b", "c"]
    )
    rankings = rankings.with_covariates({"age": AGE, "precinct": PRECINCT}).with_item_attributes(PARTY)
    return rankings if kind is Rankings else Preferences.from_rankings(rankings)


def same(found, rows):
    np.testing.assert_array_equal(found["age"], np.array(AGE)[rows])
    assert found["precinct"].tolist() == [PRECINCT[row] for row in rows]


@pytest.mark.parametrize("kind", [Rankings, Preferences])
def test_rows_take_their_covariates_along(kind):
    table = votes(kind)
    same(table[[3, 1]].covariates, [3, 1])
    same(table[np.array([False, True, True, False])].covariates, [1, 2])
    same(kind.concat([table[2:], table[:2]]).covariates, [2, 3, 0, 1])
    same(pickle.loads(pickle.dumps(table)).covariates, [0, 1, 2, 3])
    train, test = table.split(2, random_state=0)
    assert sorted([*train.covariates["precinct"], *test.covariates["precinct"]]) == sorted(PRECINCT)
    assert table[:1].item_attributes["party"].tolist() == PARTY["party"]
    moved = table._reindexed(("c", "a", "b"))
    assert moved.item_attributes["party"].tolist() == ["Blue", "Red", ""]


def test_equal_rows_with_different_covariates_stay_apart():
    table = votes()
    assert len(table.collapse()) == 4  # rows 1 and 4 say the same, and are of different ages
    merged = table.with_covariates({"precinct": PRECINCT}).collapse()
    assert merged.counts.tolist() == [2, 1, 1]
    assert merged.covariates["precinct"].tolist() == ["north", "south", ""]
    assert sorted(merged.expand().covariates["precinct"].tolist()) == sorted(PRECINCT)


def test_covariates_need_an_entry_for_each_row():
    with pytest.raises(DataError, match="3 entries for 4 rows"):
        votes().with_covariates({"age": [1, 2, 3]})
    with pytest.raises(DataError, match="only some parts have a column 'age'"):
        Rankings.concat([votes(), votes().with_covariates({"precinct": PRECINCT})])
    with pytest.raises(DataError, match="no column 'region'; known are: 'age', 'precinct'"):
        votes().covariates.column("region")


def test_numbers_in_files_are_numbers_unless_they_are_codes():
    known = from_text({"age": ["31", "", "58"], "precinct": ["12", "3", "12"], "box": ["a", "1", ""]})
    np.testing.assert_array_equal(known["age"], [31, np.nan, 58])
    assert known["precinct"].tolist() == ["12", "3", "12"]
    assert known["box"].tolist() == ["a", "1", ""]
    assert from_text({"x": ["0101", "0200"]})["x"].tolist() == ["0101", "0200"]


def test_labels_show_party_and_text():
    known = Attributes({"party": ["Red", ""], "text": ["", "A long statement about buses at night"]})
    assert item_labels(["Ann", "7"], known, most=20) == ["Ann (Red)", "7: A long statement…"]
    assert in_short("x" * 30, 10) == "x" * 9 + "…"


@pytest.mark.parametrize("layout", ["orders", "ranks", "pairs"])
def test_tables_hold_covariates_and_give_them_back(tmp_path, layout):
    table = votes()[[0, 1, 3]]
    path = tmp_path / "x.csv"
    permix.write(table, path, layout=layout)
    again = permix.read(path, layout=layout, group_columns=["precinct", "age"])
    assert again.covariates == table.covariates
    assert len(again) == 3


def test_cells_take_covariates_along(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("name,region,q1,q2,q3\nann,n,1,0,\nbo,s,,1,\ncy,n,1,1,0\n")
    cells = permix.read_cells(path, group_columns="region", row_column="name")
    assert cells.column_names == ("q1", "q2", "q3")
    assert cells.covariates["region"].tolist() == ["n", "s", "n"]
    kept = permix.clean(cells, min_support=2, min_answers=2)
    assert kept.row_names == ("ann", "cy")
    assert kept.column_names == ("q1", "q2")
    assert kept.covariates["region"].tolist() == ["n", "n"]
    said = [(entry["ballots"], entry["left_out"]) for entry in kept.metadata["CLEANING"]]
    assert said == [(1, 0), (1, 1)]
    assert cells.split(0.5, random_state=0)[0].covariates == cells.covariates
    assert isinstance(permix.clean(cells), Cells)
    with pytest.raises(DataError, match="overvotes"):
        permix.clean(cells, overvotes="skip")


def test_lines_of_a_row_must_agree(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("user,film,rating,region\na,x,1,n\na,y,2,n\nb,x,3,s\n")
    assert permix.read_cells(path, group_columns=["region"]).covariates["region"].tolist() == ["n", "s"]
    assert permix.read(path, group_columns=["region"]).covariates["region"].tolist() == ["n", "s"]
    path.write_text("user,film,rating,region\na,x,1,n\na,y,2,s\nb,x,3,s\n")
    for read in (permix.read_cells, permix.read):
        with pytest.raises(DataError, match=r"line 3: column 'region' differs"):
            read(path, group_columns=["region"])


def test_cleaning_takes_covariates_and_attributes_along():
    rows = [[["Ann"], ["Bo"]], [[]], [["Bo"], ["Cy"]], [["Smith, J"]], [["J Smith"], ["Ann"]]]
    marked = Ballots.from_rows(
        rows,
        items=["Ann", "Bo", "Cy", "Smith, J", "J Smith"],
        counts=[2, 1, 1, 1, 1],
        covariates={"precinct": np.array(list("nsnss"), dtype=object)},
        attributes=Attributes({"party": ["Red", "Blue", "Red", "Green", ""]}),
    )
    plain = permix.clean(marked)
    assert plain.covariates["precinct"].tolist() == list("nnss")
    merged = permix.clean(marked, names="merge", min_support=2)
    assert merged.items == ("Ann", "Bo", "Smith, J")
    assert merged.item_attributes["party"].tolist() == ["Red", "Blue", "Green"]
    assert permix.clean(marked, overvotes="random").covariates["precinct"].tolist() == list("nnss")
    rows[0] = [["Ann", "Bo"]]  # each of the two ballots has a row of its own then
    given = {"items": marked.items, "counts": marked.counts, "covariates": marked.covariates}
    drawn = permix.clean(Ballots.from_rows(rows, **given), overvotes="random")
    assert drawn.covariates["precinct"].tolist() == list("nnnss")


def test_a_table_of_items(tmp_path):
    data, items = tmp_path / "x.soi", tmp_path / "items.csv"
    permix.write(Rankings.from_orders([["a", "b"], ["b"]]), data)
    items.write_text("candidate,party,color\nb,Blue,#0000ff\na,Red,#ff0000\nz,Old,\n")
    with pytest.warns(UserWarning, match="1 are no items of the data: 'z'"):
        read = permix.read(data, item_table=items)
    assert read.item_attributes["party"].tolist() == ["Red", "Blue"]
    items.write_text("candidate,party\ny,Blue\nz,Red\n")
    with pytest.raises(DataError, match="names none of the items"):
        permix.read(data, item_table=items)
    items.write_text("candidate,party\na,Blue\na,Red\n")
    with pytest.raises(DataError, match="line 3: 'a' has a line already"):
        permix.read(data, item_table=items)
