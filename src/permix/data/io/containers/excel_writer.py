"""Excel files out, by openpyxl: names are text, whatever they begin with, and never formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from permix.data.io.text_files import PathLike
from permix.errors import DataError
from permix.files import atomic_writer

# Rows of a sheet, its header among them.
MOST_ROWS = 1_048_576


def write_sheet(path: PathLike, header: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
    """Write one sheet; whole numbers are numbers, all else is text."""
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.utils.exceptions import IllegalCharacterError
    except ImportError:
        raise DataError(
            f'{path}: Excel files are written by openpyxl: pip install "permix[excel]", or write .csv'
        ) from None
    book = Workbook(write_only=True)
    sheet = book.create_sheet("votes")

    def cell(entry: object) -> object:
        if entry is None or entry == "" or type(entry) is int:
            return None if entry == "" else entry
        try:
            found = WriteOnlyCell(sheet, value=str(entry))
        except IllegalCharacterError:
            raise DataError(
                f"{path}: Excel has no place for a character of {str(entry)!r}; rename it"
            ) from None
        found.data_type = "s"  # = at the beginning makes no formula
        return found

    sheet.append([cell(str(name)) for name in header])
    for number, row in enumerate(rows, start=2):
        if number > MOST_ROWS:
            raise DataError(
                f"{path}: more rows than a sheet of Excel has ({MOST_ROWS:,}); write .csv or .parquet"
            )
        sheet.append([cell(entry) for entry in row])
    with atomic_writer(path) as stream:
        book.save(stream)
