"""Polis conversations, .cat files as matrices, and long tables whose columns are named."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix import read_cells
from permix.errors import DataError, FileFormatError

VOTES = """timestamp,datetime,comment-id,voter-id,vote
100,Mon,0,7,1
200,Mon,1,7,-1
150,Mon,0,8,0
300,Mon,0,7,-1
50,Mon,1,8,1
40,Mon,1,8,-1
"""
WIDE = """participant,group-id,n-comments,n-votes,n-agree,n-disagree,0,1
7,0,3,2,0,2,-1,-1
8,1,0,2,1,0,0,1
9,,0,0,0,0,,
"""
COMMENTS = """timestamp,datetime,comment-id,author-id,agrees,disagrees,moderated,comment-body
1,Mon,0,7,1,0,1,"Tea is
better, always"
1,Mon,1,7,1,0,1,Milk goes first
"""


def cells_of(path, **options):
    cells = permix.read_cells(path, **options)
    people = cells.row_names or [str(row) for row in range(cells.shape[0])]
    return {
        (str(people[row]), str(cells.column_names[column]).partition(":")[0]): value
        for row, column, value in zip(cells.rows, cells.columns, cells.values, strict=True)
    }


def test_the_latest_vote_counts(tmp_path, recwarn):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    found = cells_of(path)
    assert found == {("7", "0"): "disagree", ("7", "1"): "disagree", ("8", "0"): "pass", ("8", "1"): "agree"}
    assert "2 votes were replaced by later ones" in repr(permix.read_cells(path))
    assert not recwarn.list


def test_columns_that_count_votes_are_no_statements(tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    wide = tmp_path / "participants-votes.csv"
    wide.write_text(WIDE)
    assert cells_of(wide) == cells_of(tmp_path / "votes.csv")


def test_statements_are_called_by_their_text(tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "comments.csv").write_text(COMMENTS)
    cells = permix.read_cells(tmp_path / "votes.csv")
    assert cells.column_names == ("0", "1")
    assert cells.column_labels() == ["0: Tea is better, always", "1: Milk goes first"]


@pytest.mark.parametrize("missing", ["pass", 0])
def test_passes_may_be_missing(tmp_path, recwarn, missing):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    found = cells_of(path, missing=missing)
    assert ("8", "0") not in found
    assert len(found) == 3
    assert not recwarn.list


@pytest.mark.parametrize(("wrong", "line"), [("100,Mon,0,7,2", 2), ("noon,Mon,0,7,1", 2), ("100,Mon,0,7", 2)])
def test_a_vote_that_is_none_is_refused(tmp_path, wrong, line):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES.replace("100,Mon,0,7,1", wrong))
    with pytest.raises(FileFormatError, match=f"line {line}"):
        permix.read_cells(path)


def test_columns_of_a_long_table_are_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("when,what,who,said\n1,tea,ann,yes\n2,milk,ann,no\n3,tea,bo,no\n")
    cells = permix.read_cells(path, row="who", column="what", value="said")
    assert cells.shape == (2, 2)
    assert cells.row_names == ("ann", "bo")
    assert cells.column_names == ("tea", "milk")
    assert cells.values.tolist() == ["yes", "no", "no"]
    with pytest.raises(DataError, match="all three"):
        permix.read_cells(path, row="who")
    with pytest.raises(DataError, match="whom"):
        permix.read_cells(path, row="whom", column="what", value="said")


def test_of_repeated_cells_the_last_counts_if_asked(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("user,item,rating\nann,tea,1\nann,milk,2\nann,tea,5\n")
    with pytest.raises(DataError, match="given twice"):
        permix.read_cells(path)
    cells = permix.read_cells(path, repeated="last")
    assert dict(zip(cells.columns.tolist(), cells.values.tolist(), strict=True)) == {0: 2.0, 1: 5.0}


def test_categories_are_a_matrix(tmp_path):
    path = tmp_path / "x.cat"
    path.write_text(
        "# FILE NAME: x.cat\n# DATA TYPE: cat\n# NUMBER ALTERNATIVES: 3\n# NUMBER CATEGORIES: 2\n"
        "# CATEGORY NAME 1: No\n# CATEGORY NAME 2: Yes\n# ALTERNATIVE NAME 1: tea\n"
        "# ALTERNATIVE NAME 2: milk\n# ALTERNATIVE NAME 3: beer\n2: {1,2}, {3}\n1: {}, {1}\n"
    )
    cells = permix.read_cells(path)
    assert cells.shape == (3, 3)
    said = {
        (int(row), cells.column_names[column]): value
        for row, column, value in zip(cells.rows, cells.columns, cells.values, strict=True)
    }
    one = {"tea": "No", "milk": "No", "beer": "Yes"}
    assert said == {(row, name): word for row in (0, 1) for name, word in one.items()} | {(2, "tea"): "Yes"}


@pytest.mark.parametrize("ending", ["xlsx", "parquet", "jsonl", "tsv"])
@pytest.mark.parametrize("text", [VOTES, WIDE], ids=["votes", "participants"])
def test_in_other_files_than_csv(tmp_path, text, ending):
    """The columns that count votes became statements there."""
    pd = pytest.importorskip("pandas")
    (tmp_path / "x.csv").write_text(text)
    frame = pd.read_csv(tmp_path / "x.csv", dtype=str if ending == "tsv" else None)
    path = tmp_path / f"x.{ending}"
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    elif ending == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, sep="\t", index=False)
    assert cells_of(path) == cells_of(tmp_path / "x.csv")
    assert permix.read(path) == permix.read(tmp_path / "x.csv")
    if text is WIDE:
        known = permix.read(path, group_columns=["group-id"]).covariates["group-id"]
        assert (
            known.tolist()[:2]
            == permix.read(tmp_path / "x.csv", group_columns=["group-id"]).covariates["group-id"].tolist()[:2]
        )
        assert cells_of(path, ignore="group-id") == cells_of(path)


def test_columns_that_are_left_out_leave_the_others_what_they_are(tmp_path):
    """The columns that count votes became statements where another was left out."""
    wide = tmp_path / "participants-votes.csv"
    wide.write_text(WIDE)
    whole = cells_of(wide)
    assert cells_of(wide, ignore="group-id") == whole
    assert cells_of(wide, ignore=["1"]) == {key: vote for key, vote in whole.items() if key[1] == "0"}
    wide.write_text(
        WIDE.replace("participant,", "participant,xid,")
        .replace("\n7,", "\n7,a,")
        .replace("\n8,", "\n8,b,")
        .replace("\n9,", "\n9,c,")
    )
    with pytest.raises(DataError, match="leave it out with ignore='xid'"):
        permix.read(wide)
    assert cells_of(wide, ignore="xid") == whole
    assert permix.read(wide, ignore="xid").items == ("0", "1")
    with pytest.raises(DataError, match="no column 'yid'"):
        permix.read(wide, ignore="yid")


@pytest.mark.realdata
def test_both_files_of_a_real_conversation_say_the_same(data_folder):
    for name in ("scoop-hivemind.ubi", "15-per-hour-seattle"):
        folder = data_folder / "polis" / name
        votes, wide = (
            permix.read_cells(folder / file) for file in ("votes.csv.gz", "participants-votes.csv")
        )
        assert votes.shape == wide.shape
        assert votes.row_names == wide.row_names
        assert votes.column_names == wide.column_names
        np.testing.assert_array_equal(votes.values, wide.values)
        np.testing.assert_array_equal(votes.columns, wide.columns)


def test_other_tables_are_none(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("participant,a,b\n1,0,1\n2,1,1\n")
    assert permix.read_cells(path).shape == (2, 2)


def test_statements_are_no_votes(tmp_path):
    """They were described as a table of measurements."""
    path = tmp_path / "comments.csv"
    path.write_text("timestamp,datetime,comment-id,author-id,agrees,comment-body\n1,x,0,3,5,Tea is better\n")
    with pytest.raises(DataError, match=r"statements of a Polis conversation, and no votes; read votes\.csv"):
        permix.read(path)


def test_signs_that_are_turned_around_are_refused(tmp_path):
    path = tmp_path / "participants-votes.csv"
    names = "participant,group-id,n-comments,n-votes,n-agree,n-disagree,0,1,2"
    text = names + "\n1,0,0,3,{},{},1,1,-1\n2,,0,1,{},0,1,,\n"
    path.write_text(text.format(2, 1, 1))
    assert len(read_cells(path).values) == 4
    path.write_text(text.format(1, 2, 0))
    with pytest.raises(FileFormatError, match="the signs seem to be turned around"):
        read_cells(path)
    path.write_text(text.format(2, 1, 0))  # a comment that was taken out may be counted, or not
    assert len(read_cells(path).values) == 4


REJECTED = COMMENTS.replace("1,Mon,1,7,1,0,1,Milk", "1,Mon,1,7,1,0,-1,Milk")


def test_statements_that_moderators_rejected_are_told_and_may_be_left_out(tmp_path, recwarn):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES + "60,Mon,1,9,1\n")
    (tmp_path / "comments.csv").write_text(REJECTED)
    kept, dropped = permix.read_cells(path), permix.read_cells(path, moderated="drop")
    assert kept.column_names == ("0", "1")
    assert "votes on 1 statement that moderators rejected: kept" in repr(kept)
    assert dropped.column_names == ("0",)
    assert dropped.row_names == ("7", "8")  # 9 voted on the other alone
    assert permix.read_cells(path, moderated="keep").values.tolist() == kept.values.tolist()
    assert permix.read(path).items == ("0", "1")
    votes = permix.read(path, moderated="drop")
    assert votes.items == ("0",)
    told = {entry["found"]: entry for entry in votes.metadata["CLEANING"]}
    assert told["votes on 1 statement that moderators rejected"]["ballots"] == 3
    assert told["participants who voted on no other statement"]["left_out"] == 1
    assert told["votes that came later"]["ballots"] == 2
    assert not recwarn.list


def test_moderation_needs_a_file_that_tells_of_it(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    with pytest.raises(DataError, match="no comments"):
        permix.read(path, moderated="drop")
    with pytest.raises(DataError, match="'keep' or 'drop'"):
        permix.read_cells(path, moderated="perhaps")
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n2,1\n")
    with pytest.raises(DataError, match="moderated"):
        permix.read_cells(other, moderated="drop")
    with pytest.raises(DataError, match="Polis conversation"):
        permix.read(other, moderated="drop")
