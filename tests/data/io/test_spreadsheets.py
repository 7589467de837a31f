"""Old Excel files, OpenDocument sheets, and Excel files that are written."""

from __future__ import annotations

import io
import warnings
import zipfile

import numpy as np
import pytest
import xlwt

import permix
from permix.errors import DataError, FileFormatError, PermixError

ROWS = [["precinct", "rank1", "rank2", "weight"], ["N", "Ann", "undervote", 3], ["S", "Bo", "Ann", 2]]
OPEN = (
    '<?xml version="1.0" encoding="UTF-8"?><office:document-content '
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>'
    "{}</office:spreadsheet></office:body></office:document-content>"
)


MANIFEST = (
    '<?xml version="1.0"?><manifest:manifest '
    'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
)


def xls(path, rows, extra=None):
    book = xlwt.Workbook()
    sheet = book.add_sheet("Ballots")
    for at, row in enumerate(rows):
        for place, entry in enumerate(row):
            sheet.write(at, place, entry)
    if extra is not None:
        extra(book, sheet)
    book.save(str(path))
    return path


def cell(entry, times=1):
    kind = "float" if isinstance(entry, int) else "string"
    value = f' office:value="{entry}"' if kind == "float" else ""
    again = f' table:number-columns-repeated="{times}"' if times > 1 else ""
    about = f'office:value-type="{kind}"{value}{again}'
    return f"<table:table-cell {about}><text:p>{entry}</text:p></table:table-cell>"


def ods(path, rows, more=""):
    lines = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    blank = '<table:table-cell table:number-columns-repeated="16384"/>'
    rest = f'<table:table-row table:number-rows-repeated="1048570">{blank}</table:table-row>'
    table = f'<table:table table:name="Ballots">{lines}{more}{rest}</table:table>'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", OPEN.format(table))
        archive.writestr("META-INF/manifest.xml", MANIFEST)
    return path


@pytest.mark.parametrize(("write", "ending"), [(xls, "xls"), (ods, "ods")])
def test_they_read_as_the_csv_file_would(write, ending, tmp_path):
    text = tmp_path / "x.csv"
    text.write_text("\n".join(",".join(map(str, row)) for row in ROWS) + "\n")
    path = write(tmp_path / f"x.{ending}", ROWS)
    assert permix.read(path) == permix.read(text)
    named = path.rename(tmp_path / "x")  # told by its content
    ranks = [["voter", "A", "B"], ["a", 1, 2], ["b", 2, 1]]
    assert permix.read(write(named, ranks)).items == ("A", "B")
    assert permix.read_cells(write(tmp_path / f"y.{ending}", ranks)).n_cells == 4


def test_cells_with_errors_are_named(tmp_path):
    def error(book, sheet):
        sheet.write(3, 0, "N")
        sheet.row(3).set_cell_error(1, "#REF!")

    with pytest.raises(DataError, match="cell B4 of a sheet holds an error"):
        permix.read(xls(tmp_path / "x.xls", ROWS, error))
    bad = '<table:table-cell calcext:value-type="error"><text:p>#REF!</text:p></table:table-cell>'
    with pytest.raises(DataError, match="cell A4 holds #REF!"):
        permix.read(ods(tmp_path / "x.ods", ROWS, f"<table:table-row>{bad}</table:table-row>"))


def test_what_expands_is_refused(tmp_path, monkeypatch):
    many = f'<table:table-row table:number-rows-repeated="1000000">{cell("x", 16384)}</table:table-row>'
    with pytest.raises(FileFormatError, match="goes over 1,000,003 rows"):
        permix.read(ods(tmp_path / "x.ods", ROWS, many))
    path = xls(tmp_path / "x.xls", [["a", "b"], *([["long " * 1000] * 2] * 40)])
    monkeypatch.setenv("PERMIX_MAX_BYTES", "500000")
    with pytest.raises(FileFormatError, match="unpack"):
        permix.read(path)
    path = tmp_path / "y.ods"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>')
    with pytest.raises(FileFormatError, match="entities"):
        permix.read(path)


def test_long_tables_of_texts_in_several_records(tmp_path):
    """Texts that go on in another record say anew how wide their characters are."""
    names = [f"{'Ä' if k % 3 else 'Ж'}lonso {k} " + "x" * (k % 40) for k in range(600)]
    rows = [["pos1", "pos2"], *([a, b] for a, b in zip(names[::2], names[1::2], strict=True))]
    votes = permix.read(xls(tmp_path / "x.xls", rows))
    assert set(votes.items) == {name.strip() for name in names}


@pytest.mark.parametrize("write", [xls, ods])
def test_a_hundred_damaged_copies(write, tmp_path):
    path = write(tmp_path / f"x.{write.__name__}", ROWS)
    whole, rng, refused = path.read_bytes(), np.random.default_rng(2), 0
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
    assert refused > 10


def test_what_is_written_comes_back_and_is_no_formula(tmp_path):
    items = ["=1+1", "+2", "Müsli, warm", "7up", "a;b"]
    votes = permix.Rankings.from_orders([items, items[::-1]], counts=[3, 4], agents=["x", "=y"])
    for layout in ("orders", "ranks", "pairs"):
        path = tmp_path / f"{layout}.xlsx"
        permix.write(votes, path, layout=layout)
        back = permix.read(path, items=items) if layout != "pairs" else permix.read(path, layout="pairs")
        order = [back.items.index(item) for item in items]
        assert np.array_equal(back.pairwise_counts()[np.ix_(order, order)], votes.pairwise_counts())
        with zipfile.ZipFile(path) as archive:
            sheet = archive.read("xl/worksheets/sheet1.xml")
        assert b"<f>" not in sheet
    with pytest.raises(DataError, match="Excel has no place for a character"):
        permix.write(permix.Rankings.from_orders([["a\x01b", "c"]]), tmp_path / "x.xlsx")


def test_a_gap_in_the_sheet_is_counted(tmp_path):
    from openpyxl import Workbook

    book = Workbook()
    for row in (["Poll of May", None, None], [None] * 3, ["voter", "A", "B"], ["x", 1, 2], ["y", 2, 1]):
        book.active.append(row)
    book.save(stream := io.BytesIO())
    path = tmp_path / "x.xlsx"
    path.write_bytes(stream.getvalue())
    with pytest.warns(permix.errors.PermixWarning, match=r"row 1 \('Poll of May'\) is taken for a title"):
        assert permix.read(path).items == ("A", "B")


def test_what_is_hidden_is_told(tmp_path):
    """Rows that a filter hides are in the file, and were read without a word."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["voter", "rank1", "note", "rank2"], *([k, "Ann", "x", "Bo"] for k in range(6))):
        book.active.append(row)
    book.active.row_dimensions[9].hidden = True  # nothing stands there
    book.save(tmp_path / "x.xlsx")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        permix.read(tmp_path / "x.xlsx")
    for number in (3, 4, 5, 6):
        book.active.row_dimensions[number].hidden = True
    book.active.column_dimensions["C"].hidden = True
    book.save(tmp_path / "x.xlsx")
    with pytest.warns(permix.errors.PermixWarning, match="rows 3, 4, 5 and 1 more, column C; all"):
        assert permix.read(tmp_path / "x.xlsx").n_agents == 6
