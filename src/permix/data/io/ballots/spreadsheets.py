"""Excel files, by calamine, which executes nothing and reads values only."""

from __future__ import annotations

import io
from typing import Any

from permix.data.io.ballots.source import Source
from permix.errors import DataError


def first_sheet(source: Source) -> list[list[Any]]:
    """Return the rows of the first sheet, the first row being the names of the columns."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise DataError(
            f'{source.path}: Excel files are read by python-calamine: pip install "permix[excel]", or save '
            "the sheet as CSV UTF-8"
        ) from None
    try:
        sheet = CalamineWorkbook.from_filelike(io.BytesIO(source.read(source.names[0]))).get_sheet_by_index(0)
        rows: list[list[Any]] = sheet.to_python(skip_empty_area=True)
    except CalamineError as error:
        raise source.fail(source.names[0], f"not an Excel file ({error})") from error
    if not rows:
        raise source.fail(source.names[0], "the first sheet is empty")
    return [[_plain(entry) for entry in row] for row in rows]


def _plain(entry: Any) -> Any:
    """Whole numbers without .0, as people see them."""
    return int(entry) if isinstance(entry, float) and entry.is_integer() else entry
