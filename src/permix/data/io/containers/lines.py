"""The lines of a table, whatever file holds it: a table reads the same from each kind of file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from permix.data.io.containers import text
from permix.data.io.containers.trimming import end_of, trimmed
from permix.data.io.text_files import EXCEL, JSON_RECORDS, PathLike, check_file, plain_suffix, read_text
from permix.errors import Argument, DataError, FileFormatError, FileWithoutRows, about_parameters
from permix.runtime.progress import Display

# Columns that no table of votes, ratings or measurements has.
MOST_COLUMNS = 200_000
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_ZIP, _PARQUET = b"PK\x03\x04", b"PAR1"


class Lines(NamedTuple):
    """Lines of a table as text: where each stands in the file, counted from 1, and its entries."""

    numbers: list[int]
    fields: list[list[str]]
    delimiter: str = ","
    named: bool = False  # whether the first line holds the names of the columns for sure
    unit: str = "line"  # what a line is called in messages


def container(path: PathLike) -> str:
    """Return what kind of file holds a table: ``parquet``, ``excel``, ``json`` or ``text``."""
    check_file(path)
    with open(path, "rb") as stream:
        head = stream.read(4)
    ending = plain_suffix(path)
    if head == _PARQUET or ending == "parquet":
        return "parquet"
    if ending in EXCEL or head == _OLD_EXCEL or (head == _ZIP and _is_workbook(path)):
        return "excel"
    return "json" if ending in JSON_RECORDS else "text"


def _is_workbook(path: PathLike) -> bool:
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            opendocument = "content.xml" in names and b"spreadsheet" in archive.read("mimetype")[:100]
            return "xl/workbook.xml" in names or opendocument
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, KeyError, RuntimeError, EOFError):
        return False


def read_lines(
    path: PathLike, delimiter: str | None = None, sheet: str | None = None, *, ragged: bool = False
) -> Lines:
    """Return the lines of a table; blank ones are skipped.

    ``sheet`` names one of an Excel file that has several. ``ragged`` allows lines of a text file to have
    fewer entries than others: they are filled up with blanks.
    """
    with Display(None) as display:
        display.begin(f"reading {Path(path).name}")
        return _read_lines(path, delimiter, sheet, ragged)


def _read_lines(path: PathLike, delimiter: str | None, sheet: str | None, ragged: bool) -> Lines:
    kind = container(path)
    if sheet is not None and kind != "excel":
        with about_parameters():
            raise DataError(Argument("sheet"), f" is for Excel files; {path} is another kind")
    if delimiter is not None and kind != "text":
        with about_parameters():
            raise DataError(f"a delimiter is for text files; {path} is another kind")
    if kind == "excel":
        from permix.data.io.containers.excel import read_sheet

        numbers, fields = trimmed(path, *read_sheet(path, sheet), unit="row")
        found = Lines(numbers, fields, unit="row")
    elif kind in ("parquet", "json"):
        if kind == "parquet":
            from permix.data.io.containers.parquet import read_columns
        else:
            from permix.data.io.containers.json_records import read_columns
        names, columns = read_columns(path)
        fields = [names, *map(list, zip(*columns, strict=True))]
        found = Lines(list(range(len(fields))), fields, named=True, unit="row")
    else:
        said, content = text.said_delimiter(read_text(path))
        if "\0" in content:
            number = content[: content.index("\0")].count("\n") + 1
            raise FileFormatError(f"{path}, line {number}: a NUL character, which no text has", path)
        chosen = delimiter or said or text.guess_delimiter(path, content)
        read = list(text.file_rows(path, content, chosen))
        numbers, fields = [line for line, _ in read], [row for _, row in read]
        text.refuse_spreadsheet_errors(path, content, numbers, fields)
        if ragged:
            last = end_of(path, numbers, fields, lists=True)
            numbers, fields = numbers[:last], fields[:last]
        else:
            numbers, fields = trimmed(path, numbers, fields)
        text.evened(path, numbers, fields, chosen, ragged)
        found = Lines(numbers, fields, chosen)
    if not found.fields:
        raise FileWithoutRows(f"{path}: there are no rows", path)
    if len(found.fields[0]) > MOST_COLUMNS:
        raise DataError(
            f"{path}: {len(found.fields[0]):,} columns are more than are read ({MOST_COLUMNS:,}); if they "
            "are cells, write a line for each: row, column, value"
        )
    return found


def name_of(path: PathLike) -> str:
    """Return the name of a file without its folder."""
    return Path(path).name
