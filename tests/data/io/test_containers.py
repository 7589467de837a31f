"""A table reads the same from text, Excel, Parquet and JSON; what is hostile or broken in them is refused."""

from __future__ import annotations

import csv
import datetime
import io
import json
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest

import permix
from permix.data.io.containers.sheet_scan import column_number
from permix.data.io.frames import read_frame
from permix.errors import DataError, FileFormatError, PermixError, PermixWarning

openpyxl = pytest.importorskip("openpyxl")

TABLES = {
    "orders": ("agent,pos1,pos2,pos3,count\nann,tea,milk,,2\nbob,milk,tea,cola,1\n", {}),
    "ranks": ("voter,tea,milk,cola\n1,1,2,3\n2,2,1,\n3,1,1,2\n", {}),
    "pairs": ("agent,better,worse\nann,tea,milk\nbob,milk,cola\n", {}),
    "ratings": ("user,item,rating\n1,tea,5\n1,milk,3.5\n2,tea,1\n2,cola,4\n", {}),
    "matches": ("model_a,model_b,winner,judge\nx,y,model_a,1\ny,z,tie,1\nx,z,model_b,2\n", {}),
    "choices": ("respondent,item1,item2,item3,choice\n1,a,b,c,a\n2,b,c,d,d\n", {}),
    "best-worst": ("respondent,task,item,best,worst\n1,1,a,1,0\n1,1,b,0,0\n1,1,c,0,1\n", {}),
    "lists": ("id,ranking\n1,tea>milk=cola\n2,milk>tea\n", {}),
    "ballots": ("precinct,rank1,rank2,rank3\nA,Ann,skipped,Bo\nB,overvote,Ann,\nA,Bo,Ann,Cy\n", {}),
}


def _cell(text: str):
    try:
        return float(text) if text else None
    except ValueError:
        return text


def put(kind: str, text: str, folder):
    """The table of a CSV text as a file of another kind, numbers as numbers."""
    names, *rows = csv.reader(io.StringIO(text))
    path = folder / f"table.{kind}"
    if kind == "csv":
        path.write_text(text)
    elif kind == "xlsx":
        book = openpyxl.Workbook()
        for row in (names, *([_cell(entry) for entry in row] for row in rows)):
            book.active.append(row)
        book.create_sheet("nothing in it")
        book.save(path)
    elif kind == "parquet":
        arrow = pytest.importorskip("pyarrow")
        import pyarrow.parquet as parquet

        columns = [[_cell(entry) for entry in column] for column in zip(*rows, strict=True)]
        parquet.write_table(arrow.table([arrow.array(c) for c in columns], names=names), path)
    else:
        records = [{n: _cell(e) for n, e in zip(names, row, strict=True)} for row in rows]
        lines = "\n".join(map(json.dumps, records))
        path.write_text(lines if kind == "jsonl" else json.dumps(records))
    return path


@pytest.mark.parametrize("kind", ["xlsx", "parquet", "jsonl", "json"])
@pytest.mark.parametrize("layout", TABLES)
def test_a_table_reads_alike_from_each_kind_of_file(layout, kind, tmp_path):
    text, options = TABLES[layout]
    plain = permix.read(put("csv", text, tmp_path), **options)
    other = permix.read(put(kind, text, tmp_path), **options)
    assert type(other) is type(plain)
    assert other.items == plain.items
    assert other.agents.tolist() == plain.agents.tolist()
    assert other.counts.tolist() == plain.counts.tolist()
    for ours, theirs in zip(plain.arrays(), other.arrays(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert other.metadata.get("CLEANING") == plain.metadata.get("CLEANING")


@pytest.mark.parametrize("kind", ["xlsx", "parquet", "jsonl"])
def test_matrices_and_frames_read_alike(kind, tmp_path):
    wide = "name,q1,q2,q3\na,1,,3\nb,2.5,1,\nc,1,1,1\n"
    first, second = (permix.read_cells(put(each, wide, tmp_path)) for each in ("csv", kind))
    np.testing.assert_array_equal(first.dense(), second.dense())
    assert second.row_names == first.row_names
    long = "user,item,rating\n1,x,5\n1,y,2\n2,x,1\n"
    first, second = (permix.read_cells(put(each, long, tmp_path)) for each in ("csv", kind))
    np.testing.assert_array_equal(first.dense(), second.dense())
    frames = [read_frame(put(each, wide, tmp_path)) for each in ("csv", kind)]
    assert frames[0].equals(frames[1])


def test_written_as_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    votes = permix.Rankings.from_orders([["b", "a", "c"], ["c"]], counts=[2, 5], agents=["x", "y"])
    for layout in ("orders", "ranks", "pairs"):
        permix.write(votes, tmp_path / "v.parquet", layout=layout)
        back = permix.read(tmp_path / "v.parquet")
        np.testing.assert_array_equal(back.pairwise_counts(), votes.pairwise_counts())
    with pytest.raises(DataError, match="known endings"):
        permix.write(votes, tmp_path / "v.ods")


# -- Excel -------------------------------------------------------------------------------------------


def _book(folder, rows, **sheets):
    book = openpyxl.Workbook()
    book.active.title = "votes"
    for name, lines in {"votes": rows, **sheets}.items():
        sheet = book[name] if name == "votes" else book.create_sheet(name)
        for line in lines:
            sheet.append(line)
    book.save(folder / "x.xlsx")
    return folder / "x.xlsx"


@contextmanager
def _parts(path):
    """The parts of a workbook by name, to be changed."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    yield parts
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_of_several_sheets_one_is_asked_for(tmp_path):
    other = [["pos1", "pos2"], ["c", "d"]]
    path = _book(tmp_path, [["pos1", "pos2"], ["a", "b"]], Other=other)
    with pytest.raises(DataError, match=r"2 sheets: 'votes', 'Other'\. Say which with sheet"):
        permix.read(path)
    assert permix.read(path, sheet="other").items == ("c", "d")
    with pytest.raises(DataError, match="no sheet 'x'"):
        permix.read(path, sheet="x")
    (tmp_path / "x.csv").write_text("pos1,pos2\na,b\n")
    with pytest.raises(DataError, match="for Excel files"):
        permix.read(tmp_path / "x.csv", sheet="votes")


def _error_cell(path, value):
    book = openpyxl.load_workbook(path)
    book["votes"]["B2"].value = value
    book["votes"]["B2"].data_type = "e" if value.startswith("#") else "f"
    book.save(path)


@pytest.mark.parametrize(("value", "words"), [("#REF!", "B2 holds #REF!"), ("=A2", "never computed")])
def test_cells_without_a_value_are_named(tmp_path, value, words):
    path = _book(tmp_path, [["pos1", "pos2"], ["a", "b"], ["b", "a"]])
    _error_cell(path, value)
    with pytest.raises(DataError, match=words):
        permix.read(path)


def test_not_available_is_blank_and_told(tmp_path):
    path = _book(tmp_path, [["pos1", "pos2"], ["a", "b"], ["b", "a"]])
    _error_cell(path, "#N/A")
    with pytest.warns(PermixWarning, match=r"1 cell with #N/A, the first B2"):
        assert permix.read(path).lengths.tolist() == [1, 2]


def test_dates_among_names_are_named(tmp_path):
    path = _book(tmp_path, [["pos1", "pos2"], ["a", datetime.date(2024, 3, 1)], ["b", "a"]])
    with pytest.warns(PermixWarning, match="row 2, column 'pos2': a date"):
        permix.read(path)


def test_far_away_cells_do_not_take_memory(tmp_path):
    path = _book(tmp_path, [["pos1", "pos2"], ["a", "b"]])
    book = openpyxl.load_workbook(path)
    book["votes"].cell(1_048_576, 16_384, "x")
    book.save(path)
    with pytest.raises(FileFormatError, match="1,048,576 rows and 16,384 columns"):
        permix.read(path)


def test_entities_in_a_workbook_are_refused(tmp_path):
    path = _book(tmp_path, [["pos1", "pos2"], ["a", "b"]])
    entity = b'<!DOCTYPE x [<!ENTITY a "aaa">]>'
    for part in ("workbook.xml", "worksheets/sheet1.xml", "sharedStrings.xml"):
        with _parts(path) as parts:
            parts.setdefault("xl/sharedStrings.xml", b"<sst></sst>")
            before = parts[f"xl/{part}"]
            declaration, mark, rest = before.rpartition(b"?>")
            parts[f"xl/{part}"] = declaration + mark + entity + rest
        with pytest.raises(FileFormatError, match="entities"):
            permix.read(path)
        with _parts(path) as parts:
            parts[f"xl/{part}"] = before


def test_sheets_with_other_quotes_are_looked_over_as_well(tmp_path):
    path = _book(tmp_path, [["pos1", "pos2"], ["a", "b"], ["b", "a"]])
    _error_cell(path, "#REF!")
    with _parts(path) as parts:
        parts["xl/worksheets/sheet1.xml"] = parts["xl/worksheets/sheet1.xml"].replace(b'"', b"'")
    with pytest.raises(DataError, match="cell B2 holds #REF!"):
        permix.read(path)
    with _parts(path) as parts:
        parts["xl/worksheets/sheet1.xml"] = parts["xl/worksheets/sheet1.xml"].replace(b"'B2'", b"'XFD300000'")
    with pytest.raises(FileFormatError, match="300,000 rows and 16,384 columns"):
        permix.read(path)


def test_a_long_text_that_many_cells_refer_to(tmp_path, monkeypatch):
    path = _book(tmp_path, [["pos1", "pos2"]])
    texts = ["pos1", "pos2", "a" * 1000, "b"]
    cells = [(0, 1), *[(2, 3)] * 300]
    rows = ["".join(f"<c t='s'><v>{text}</v></c>" for text in row) for row in cells]
    with _parts(path) as parts:
        sheet = (
            f"<worksheet><sheetData>{''.join(f'<row>{row}</row>' for row in rows)}</sheetData></worksheet>"
        )
        parts["xl/worksheets/sheet1.xml"] = sheet.encode()
        shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
        parts["xl/sharedStrings.xml"] = f"<sst>{shared}</sst>".encode()
    assert permix.read(path).items == ("a" * 1000, "b")
    monkeypatch.setenv("PERMIX_MAX_BYTES", "200000")
    with pytest.raises(FileFormatError, match="sheet 'votes': it would unpack to more than 200000 bytes"):
        permix.read(path)
    with _parts(path) as parts:
        parts["xl/sharedStrings.xml"] = b"<sst></sst>"
    with pytest.raises(FileFormatError, match="cell 1 of row 1 refers to a text that is not there"):
        permix.read(path)


def test_missing_libraries_are_told(tmp_path, monkeypatch):
    import sys

    path = _book(tmp_path, [["pos1", "pos2"], ["a", "b"]])
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(DataError, match=r'pip install "permix\[excel\]"'):
        permix.read(path)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r'pip install "permix\[parquet\]"'):
        permix.read(tmp_path / "x.parquet")


# -- Parquet and JSON ----------------------------------------------------------------------------------


def test_parquet_that_declares_too_much_is_refused(tmp_path, monkeypatch):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    column = arrow.DictionaryArray.from_arrays(np.zeros(100_000, np.int8), ["tea"])
    parquet.write_table(arrow.table([column, column], names=["pos1", "pos2"]), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 10_000
    monkeypatch.setenv("PERMIX_MAX_BYTES", "1000000")
    with pytest.raises(FileFormatError, match="unpack to more than 1000000 bytes"):
        permix.read(tmp_path / "x.parquet")


def test_columns_of_lists_are_left_out(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    table = {"model_a": ["x"], "model_b": ["y"], "winner": ["model_b"], "talk": [[{"role": "user"}]]}
    parquet.write_table(arrow.table(table), tmp_path / "x.parquet")
    (tmp_path / "x.jsonl").write_text(json.dumps({name: column[0] for name, column in table.items()}))
    for name in ("x.parquet", "x.jsonl"):
        with pytest.warns(PermixWarning, match="'talk'"):
            assert permix.read(tmp_path / name).prefers(0, "y", "x")


@pytest.mark.parametrize("kind", ["binary", "large_binary", "fixed"])
def test_columns_of_bytes_are_left_out(tmp_path, kind):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    of = arrow.binary(1) if kind == "fixed" else getattr(arrow, kind)()
    columns = {"pos1": ["a", "b"], "pos2": ["b", "a"], "pos3": arrow.array([b"c", b"d"], type=of)}
    parquet.write_table(arrow.table(columns), tmp_path / "x.parquet")
    with pytest.warns(PermixWarning, match="bytes are left out: 'pos3'"):
        assert permix.read(tmp_path / "x.parquet").items == ("a", "b")


def test_keys_and_columns_that_are_there_twice(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"pos1": "a", "pos2": "b"}\n{"pos1": "a", "pos2": "b", "pos1": "c"}\n')
    with pytest.raises(FileFormatError, match="line 2: a record has the key 'pos1' twice"):
        permix.read(path)
    path.write_text('{"pos1": "a", "pos1 ": "b"}\n')
    with pytest.raises(FileFormatError, match=r"x\.jsonl: two columns are called 'pos1'"):
        permix.read(path)


def test_deep_json_is_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": ' * 100_000 + "1" + "}" * 100_000)
    with pytest.raises(FileFormatError, match="not JSON"):
        permix.read(path)
    path.write_text("[1, 2]")
    with pytest.raises(FileFormatError, match="record 1"):
        permix.read(path)


def test_more_columns_than_any_table_has(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(",".join(map(str, range(200_001))) + "\n")
    with pytest.raises(DataError, match="200,001 columns"):
        permix.read(path, layout="orders")


@pytest.mark.parametrize("kind", ["xlsx", "parquet", "jsonl"])
def test_damaged_files_give_a_typed_error_or_a_reading(kind, tmp_path):
    path = put(kind, TABLES["orders"][0], tmp_path)
    whole, rng = path.read_bytes(), np.random.default_rng(3)
    refused = 0
    for _ in range(100):
        content = bytearray(whole)
        at, length = int(rng.integers(len(whole))), int(rng.integers(1, 20))
        if rng.integers(2):
            content[at : at + length] = bytes(rng.integers(0, 256, size=length, dtype=np.uint8))
        else:
            del content[at : at + length]
        path.write_bytes(bytes(content))
        try:
            permix.read(path)
        except (PermixError, OSError):
            refused += 1
    assert refused > 0


def test_columns_of_letters():
    assert [column_number(letters) for letters in ("A", "Z", "AA", "XFD")] == [1, 26, 27, 16_384]
