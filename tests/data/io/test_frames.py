"""Tables of numbers and answers as pandas frames: delimiters, types, refusals with line numbers."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from permix.data.io.frames import read_frame
from permix.errors import FileFormatError


def put(tmp_path, raw, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return path


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_numbers_text_and_blanks(tmp_path, mark, pack, end):
    lines = ["n,x,answer,one of", "1,0.1, yes ,", "2,,None,NA", "", '3,1e-3,"a b",NULL']
    raw = end.join(lines).replace(",", mark).encode("utf-8-sig")
    frame = read_frame(put(tmp_path, pack(raw), "t.csv.gz" if pack is gzip.compress else "t.csv"))
    assert list(frame.columns) == ["n", "x", "answer", "one of"]
    assert frame["n"].dtype == np.int64
    assert frame["x"].tolist()[::2] == [0.1, 0.001]
    assert np.isnan(frame["x"][1])
    assert frame["answer"].tolist() == ["yes", "None", "a b"]
    assert frame["one of"].isna().all()


def test_what_is_in_quotes_counts_for_no_delimiter(tmp_path):
    frame = read_frame(put(tmp_path, '"a, b, c";d\n"1;2\n3";4\n'))
    assert frame.to_dict("list") == {"a, b, c": ["1;2\n3"], "d": [4]}
    assert list(read_frame(put(tmp_path, "a,b|c,d|e\n1,2|3,4|5\n")).columns) == ["a", "b|c", "d|e"]
    assert list(read_frame(put(tmp_path, "a|b,c\n1|2,3\n"), delimiter="|").columns) == ["a", "b,c"]
    assert list(read_frame(put(tmp_path, "a,b,c\td\n1\t2\n", "t.tsv")).columns) == ["a,b,c", "d"]


def test_blank_cells_of_a_single_column_are_rows_and_blank_lines_are_not(tmp_path):
    column = pd.DataFrame({"a": [1.0, np.nan, 3.0]})
    column.to_csv(tmp_path / "t.csv", index=False)
    pd.testing.assert_frame_equal(read_frame(tmp_path / "t.csv"), column)
    assert len(read_frame(put(tmp_path, "a\n1\n\n  \n3\n"))) == 2


def test_numbers_come_back(tmp_path):
    values = np.random.default_rng(1).normal(size=(2000, 3)) * 10.0 ** np.arange(-200, 201, 200)
    pd.DataFrame(values, columns=list("abc")).to_csv(tmp_path / "t.csv", index=False)
    assert np.allclose(read_frame(tmp_path / "t.csv").to_numpy(), values, rtol=1e-14, atol=0)


def test_a_column_without_a_name_such_as_a_saved_index_is_named_by_its_place(tmp_path):
    pd.DataFrame({"a": [5, 6]}).to_csv(tmp_path / "t.csv")
    assert read_frame(tmp_path / "t.csv").to_dict("list") == {"unnamed1": [0, 1], "a": [5, 6]}
    assert list(read_frame(put(tmp_path, "unnamed1, ,b\n1,2,3\n")).columns) == ["unnamed1", "unnamed2", "b"]
    with pytest.raises(FileFormatError, match="column 2 has no name, and another is called 'unnamed2'"):
        read_frame(put(tmp_path, "unnamed2,,b\n1,2,3\n"))


def test_decimal_commas_between_semicolons_are_numbers_where_the_whole_column_is(tmp_path):
    text = "x;y;n;who;code\n1,5;-2;7;anna;1,5\n;0,25;8;bo;A\n-10,0;1,5E+03;9;1,5;2\n"
    frame = read_frame(put(tmp_path, text))
    assert frame["x"].dtype == frame["y"].dtype == np.float64
    assert frame["x"].tolist()[::2] == [1.5, -10.0]
    assert np.isnan(frame["x"][1])
    assert frame["y"].tolist() == [-2.0, 0.25, 1500.0]
    assert frame["n"].dtype == np.int64
    assert frame["who"].tolist() == ["anna", "bo", "1,5"]
    assert frame["code"].tolist() == ["1,5", "A", "2"]


def test_commas_in_numbers_stay_text_where_they_may_mean_something_else(tmp_path):
    assert read_frame(put(tmp_path, 'a,b\n"1,500",2\n'))["a"].tolist() == ["1,500"]
    assert read_frame(put(tmp_path, "a\tb\n1,500\t2\n"))["a"].tolist() == ["1,500"]
    long = 123456789012345678901234567890
    frame = read_frame(put(tmp_path, f"a;b\n{long};True\n2;\n"))
    assert frame["a"].tolist() == [long, 2]
    assert frame["b"][0] is True
    assert read_frame(put(tmp_path, "a;b\n1.500,5;x\n"))["a"].tolist() == ["1.500,5"]


@pytest.mark.parametrize(
    ("raw", "words", "line"),
    [
        (b"", "the file is empty", None),
        (b"\n \n", "the file is empty", None),
        (b"a,b\n", "a header, but no rows after it", None),
        (b"a,b\n1,2\n\n3\n", "line 4: 1 field where the first line has 2: '3'", 4),
        (b"a,b\n1,2,3\n", "line 2: 3 fields where the first line has 2", 2),
        (b"a,b,a\n1,2,3\n", "line 1: two columns are called 'a'; rename one", 1),
        (b"a,,\n1,2,3\n", "line 1: two columns have no name", 1),
        ("a,b\n1,café\n2,caf".encode() + b"\xe9\n", r"line 3: byte 0xe9 is not UTF-8.*CSV UTF-8", 3),
        (b'a,b\n1,"2\n', "line 2: unexpected end of data", 2),
        (gzip.compress(b"a,b\n1,2\n" * 30, mtime=0)[:-5], "truncated", None),
    ],
)
def test_refusals(tmp_path, raw, words, line):
    with pytest.raises(FileFormatError, match=words) as caught:
        read_frame(put(tmp_path, raw))
    assert caught.value.line == line


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing\.csv"):
        read_frame(tmp_path / "nothing.csv")
