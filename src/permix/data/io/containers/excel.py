"""Excel files, by calamine, which executes nothing and reads values only.

Calamine gives blanks for cells that hold an error and for formulas that were never computed, and takes memory
for the whole rectangle between the first and the last cell. So the sheet is looked over first: such cells
are named, and rectangles that are too large are refused.
"""

from __future__ import annotations

import datetime
import io
import re
import warnings
import zipfile
import zlib
from typing import Any, NamedTuple
from xml.etree import ElementTree

from permix.data.io.text_files import PathLike
from permix.errors import Argument, DataError, FileFormatError, PermixWarning
from permix.files import check_sizes, read_unpacked, unpacking_limit

# Cells of the rectangle that a sheet fills.
MOST_CELLS = 50_000_000
_ROW = re.compile(rb"<(?:\w+:)?row\b([^>]*)>")
_CELL = re.compile(rb"<((?:\w+:)?)c\b([^>]*?)(?:/>|>(.*?)</\1c>)", re.DOTALL)
_PLACE = re.compile(rb'\br="([A-Z]{1,4})([0-9]{1,8})"')
_FORMULA, _VALUE = re.compile(rb"<(?:\w+:)?f\b"), re.compile(rb"<(?:\w+:)?v>[^<]")
_NUMBER = re.compile(rb'\br="([0-9]{1,8})"')


class _Workbook(NamedTuple):
    content: bytes
    sheets: dict[str, bytes]  # by name: the XML of each, where there are cells


def read_sheet(path: PathLike, sheet: str | None = None) -> tuple[list[int], list[list[str]]]:
    """Return the rows of a sheet as text with their numbers; an error lists the sheets where it is open."""
    book = _workbook(path)
    name = _chosen(path, book, sheet)
    _look_over(path, name, book.sheets[name])
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise DataError(
            f'{path}: Excel files are read by python-calamine: pip install "permix[excel]", or save '
            "the sheet as CSV UTF-8"
        ) from None
    try:
        found = CalamineWorkbook.from_filelike(io.BytesIO(book.content)).get_sheet_by_name(name)
        rows: list[list[Any]] = found.to_python(skip_empty_area=True)
        first = (found.start or (0, 0))[0] + 1
    except CalamineError as error:
        raise FileFormatError(f"{path}: not an Excel file, or damaged ({error})", path) from error
    _warn_of_dates(path, rows, first)
    lines = [(first + place, [_entry(entry) for entry in row]) for place, row in enumerate(rows)]
    lines = [(number, row) for number, row in lines if any(row)]
    if not lines:
        raise FileFormatError(f"{path}: sheet {name!r} is empty", path)
    return [number for number, _ in lines], [row for _, row in lines]


def sheet_names(path: PathLike) -> list[str]:
    """Return the names of the sheets that have cells."""
    return list(_workbook(path).sheets)


def _chosen(path: PathLike, book: _Workbook, sheet: str | None) -> str:
    names = list(book.sheets)
    if sheet is not None:
        found = [name for name in names if name.casefold() == str(sheet).strip().casefold()]
        if not found:
            raise DataError(f"{path}: there is no sheet {sheet!r} with cells; there are {_listed(names)}")
        return found[0]
    if not names:
        raise FileFormatError(f"{path}: no sheet has cells", path)
    if len(names) > 1:
        raise DataError(
            f"{path} has {len(names)} sheets: {_listed(names)}. Say which with ", Argument("sheet")
        )
    return names[0]


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:12])) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _workbook(path: PathLike) -> _Workbook:
    content = bytes(read_unpacked(path))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_sizes(archive, len(content), unpacking_limit())
            targets = _targets(archive)
            sheets = {name: archive.read(member) for name, member in targets.items()}
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}", path) from error
    except (
        *(zipfile.BadZipFile, zlib.error, ElementTree.ParseError, KeyError, ValueError, EOFError),
        *(RuntimeError, NotImplementedError, RecursionError, UnicodeDecodeError),
    ) as error:
        why = str(error) or type(error).__name__
        raise FileFormatError(
            f"{path}: not an Excel file of the kind .xlsx, or damaged ({why}); save it as .xlsx or CSV", path
        ) from error
    return _Workbook(content, {name: xml for name, xml in sheets.items() if _CELL.search(xml)})


def _targets(archive: zipfile.ZipFile) -> dict[str, str]:
    """Members of the zip that hold the sheets, by name of the sheet."""
    relations = {
        each.get("Id"): str(each.get("Target", "")) for each in _xml(archive, "xl/_rels/workbook.xml.rels")
    }
    found = {}
    for each in _xml(archive, "xl/workbook.xml").iter():
        if each.tag.rpartition("}")[2] != "sheet":
            continue
        number = next((value for key, value in each.attrib.items() if key.endswith("}id")), None)
        target = relations.get(number, "")
        member = target.removeprefix("/") if target.startswith("/") else f"xl/{target}"
        if "worksheets/" in member:  # not a sheet that is a chart
            found[str(each.get("name"))] = member
    return found


def _xml(archive: zipfile.ZipFile, member: str) -> ElementTree.Element:
    content = archive.read(member)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content or b"\0" in content:
        raise ValueError("XML with entities, or not UTF-8")
    return ElementTree.fromstring(content)


def _look_over(path: PathLike, name: str, xml: bytes) -> None:
    """Refuse a rectangle that is too large, and cells that calamine would give as blanks."""
    if b"<!DOCTYPE" in xml or b"<!ENTITY" in xml:
        raise FileFormatError(f"{path}: XML with entities is not read", path)
    rows: list[int] = []
    columns: list[int] = []
    without_value: list[tuple[str, str]] = []
    unavailable: list[str] = []
    in_row = n_cells = n_rows = 0
    pieces = _ROW.split(xml)
    for attributes, body in zip(pieces[1::2], pieces[2::2], strict=True):
        n_rows, in_row = n_rows + 1, 0
        if number := _NUMBER.search(attributes):
            rows.append(int(number[1]))
        for _, about, inside in _CELL.findall(body):
            in_row += 1
            place = _PLACE.search(about)
            at = (place[1] + place[2]).decode() if place else f"a cell of row {n_rows}"
            if place:
                columns.append(_column(place[1]))
                rows.append(int(place[2]))
            if b't="e"' in about:
                error = re.search(rb"v>([^<]*)</", inside)
                shown = error[1].decode(errors="replace") if error else "an error"
                if shown == "#N/A":
                    unavailable.append(at)
                else:
                    without_value.append((at, shown))
            elif b't="str"' not in about and _FORMULA.search(inside) and not _VALUE.search(inside):
                without_value.append((at, "a formula that was never computed"))
        n_cells = max(n_cells, in_row)
    height = max([*rows, n_rows]) - min([*rows, n_rows]) + 1
    width = max([*columns, n_cells])
    if height * width > MOST_CELLS:
        raise FileFormatError(
            f"{path}: sheet {name!r} goes over {height:,} rows and {width:,} columns; delete what stands far "
            "away from the table, or save the sheet as CSV",
            path,
        )
    if without_value:
        at, shown = without_value[0]
        more = f" (so do {len(without_value) - 1} others)" if len(without_value) > 1 else ""
        raise DataError(f"{path}, sheet {name!r}: cell {at} holds {shown}{more}; mend it, or empty the cell")
    if unavailable:
        n = len(unavailable)
        said = f"{path}, sheet {name!r}: {n} cell{'s' * (n > 1)} with #N/A, the first {unavailable[0]}"
        warnings.warn(f"{said}, are read as blank", PermixWarning, stacklevel=6)


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _warn_of_dates(path: PathLike, rows: list[list[Any]], first: int) -> None:
    """Name a date among other entries: so programs read names such as 1-2 or MAR1."""
    for place in range(max(map(len, rows), default=0)):
        column = [row[place] for row in rows[1:] if place < len(row)]
        dates = [isinstance(entry, datetime.date | datetime.time | datetime.timedelta) for entry in column]
        if any(dates) and not all(found or entry == "" for found, entry in zip(dates, column, strict=True)):
            at = dates.index(True)
            said = f"{path}, row {first + 1 + at}, column {rows[0][place] if rows else ''!r}: a date"
            warnings.warn(
                f"{said} ({column[at]}) among other entries; if a spreadsheet program took a name for a "
                "date, format the column as text and enter it again",
                PermixWarning,
                stacklevel=6,
            )


def _entry(entry: Any) -> str:
    """Return an entry as people see it: whole numbers without a point, dates as 2024-11-05."""
    if isinstance(entry, bool):
        return str(entry)
    if isinstance(entry, float):
        return str(int(entry)) if entry.is_integer() else repr(entry)
    if isinstance(entry, datetime.datetime) and entry.time() == datetime.time():
        entry = entry.date()
    return str(entry).strip()
