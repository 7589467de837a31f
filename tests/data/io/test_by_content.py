"""Files are known by what is in them, whatever they are called."""

from __future__ import annotations

import warnings

import pytest

import permix
from permix.errors import DataError, FileFormatError

BALLOTS = "precinct\trank1\trank2\nNorth\tAnn\tskipped\nSouth\tBob\tAnn\n"
PREFLIB = """# TITLE: x
# DATA TYPE: cat
# NUMBER ALTERNATIVES: 2
# NUMBER VOTERS: 3
# NUMBER UNIQUE PREFERENCES: 1
# NUMBER CATEGORIES: 2
# CATEGORY NAME 1: Red
# CATEGORY NAME 2: Blue
# ALTERNATIVE NAME 1: A
# ALTERNATIVE NAME 2: B
3: 1,2
"""


@pytest.mark.parametrize("name", ["x.txt", "x", "x.dat", "x.csv", "x.tsv", "x.csv.txt"])
def test_tables_of_ballots(read, name):
    votes = read(BALLOTS, name)
    assert votes.items == ("Ann", "Bob")
    assert votes.metadata["FORMAT"] == "Table of ballots, a column for each rank"


def test_sheets_of_ballots(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in BALLOTS.splitlines():
        book.active.append(row.split("\t"))
    book.save(tmp_path / "x.xlsx")
    for name in ("x", "x.txt"):
        path = (tmp_path / "x.xlsx").rename(tmp_path / "y.xlsx").rename(tmp_path / name)
        assert permix.read(path).metadata["FORMAT"] == "Table of ballots, a column for each rank"
        path.rename(tmp_path / "x.xlsx")


@pytest.mark.parametrize("name", ["x.csv", "x.txt", "x.tsv"])
def test_preflib_files_that_were_saved_as_tables(read, name):
    with pytest.raises(DataError, match="names of the categories"):
        read(PREFLIB, name)
    assert read(PREFLIB, name, categories="worst-first").prefers(0, "B", "A")


@pytest.mark.parametrize("mark", ["::", " "])
def test_numbers_with_marks_between_them_that_csv_files_do_not_have(tmp_path, mark):
    """The first line was taken for a name, and a matrix lost a row."""
    path = tmp_path / "x.csv"
    path.write_text(
        "".join(mark.join(line) + "\n" for line in (("1", "10", "3"), ("1", "11", "4"), ("2", "10", "5")))
    )
    assert permix.read_cells(path, layout="long").values.tolist() == [3.0, 4.0, 5.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert permix.read(path, layout="ratings", header=False).prefers(0, 11, 10)


@pytest.mark.parametrize(
    "names",
    ["left,right,choice", "Left,Right,Winner", "model_a,model_b,label", "left image,right image,result"],
)
def test_names_of_sides_are_names_though_winners_are_called_by_them(read, names):
    """``left, right, choice`` was a ballot for left, right and choice."""
    sides = names.split(",")
    votes = read(f"{names},judge\nx,y,{sides[0]},1\ny,z,{sides[1]},1\nz,x,both bad,2\n")
    assert votes.items == ("x", "y", "z")
    assert votes.prefers(0, "z", "y")


def test_sides_that_are_items(read):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read("left,right\nright,left\nup,left\n").n_agents == 3
    with pytest.raises(FileFormatError, match="could name the columns"):
        read("Left,Right\nup,down\n", layout="orders")


@pytest.mark.parametrize(
    ("rows", "renamed"),
    [
        ("ann,s1,pro\nann,s2,contra\nbo,s1,contra\n", "'b': 'item', 'c': 'rating'"),
        ("ann,x,y\nann,z,x\nbo,y,z\n", "'b': 'better', 'c': 'worse'"),
    ],
)
def test_advice_for_statements(read, rows, renamed):
    """Words of agreement were to be called the worse items."""
    with pytest.raises(DataError, match=renamed):
        read(f"a,b,c\n{rows}")
