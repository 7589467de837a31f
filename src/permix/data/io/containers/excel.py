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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from xml.etree import ElementTree

from permix.data.io.containers.sheet_scan import Scan, scan_opendocument, scan_sheet, text_lengths
from permix.data.io.containers.xls_scan import MAGIC, scan_xls
from permix.data.io.text_files import PathLike
from permix.errors import Argument, DataError, FileFormatError, PermixWarning
from permix.files import check_sizes, read_unpacked, too_large, unpacking_limit

# Cells of the rectangle that a sheet fills.
MOST_CELLS = 50_000_000
_HAS_CELLS = re.compile(rb"<(?:\w+:)?c[\s/>]")
_TEXTS = "sharedstrings"


class _Workbook(NamedTuple):
    content: bytes
    sheets: dict[str, bytes]  # by name: the XML of each, where there are cells
    texts: bytes | None  # the XML of texts that cells refer to


def read_sheet(path: PathLike, sheet: str | None = None) -> tuple[list[int], list[list[str]]]:
    """Return the rows of a sheet as text with their numbers; an error lists the sheets where it is open."""
    content = bytes(read_unpacked(path))
    if content[:8] == MAGIC:
        return _rows_of_xls(path, content, sheet)
    if _is_opendocument(content):
        return _rows_of_opendocument(path, content, sheet)
    book = _workbook(path, content)
    name = _chosen(path, list(book.sheets), sheet)
    scan = _scanned(path, name, book)
    _look_over(path, name, scan)
    return _rows(path, book.content, name)


def _is_opendocument(content: bytes) -> bool:
    return content[:4] == b"PK\x03\x04" and b"application/vnd.oasis.opendocument.spreadsheet" in content[:200]


def _rows_of_xls(path: PathLike, content: bytes, sheet: str | None) -> tuple[list[int], list[list[str]]]:
    """Read an old Excel file, which is looked over as a whole."""
    try:
        scan = scan_xls(content)
    except ValueError as error:
        raise FileFormatError(
            f"{path}: a damaged .xls file ({error}); save it as .xlsx or CSV", path
        ) from error
    if scan.most_bytes > unpacking_limit():
        raise FileFormatError(too_large(unpacking_limit(), f"{path}: "), path)
    if scan.errors:
        n = len(scan.errors)
        more = f", and {n - 1} others do" if n > 1 else ""
        raise DataError(
            f"{path}: cell {scan.errors[0]} of a sheet holds an error{more}; mend it, or empty the cell"
        )
    names = [name for name in _calamine(path, content).sheet_names if _filled(path, content, name)]
    return _rows(path, content, _chosen(path, names, sheet))


def _filled(path: PathLike, content: bytes, name: str) -> bool:
    book = _calamine(path, content)
    with _damage(path):
        found = book.get_sheet_by_name(name)
        return bool(found.height and found.width)


def _rows_of_opendocument(
    path: PathLike, content: bytes, sheet: str | None
) -> tuple[list[int], list[list[str]]]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_sizes(archive, len(content), unpacking_limit())
            scans = scan_opendocument(archive.read("content.xml"))
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}", path) from error
    except (
        *(zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, RuntimeError),
        *(NotImplementedError, UnicodeDecodeError),
    ) as error:
        why = str(error) or type(error).__name__
        raise FileFormatError(f"{path}: a damaged OpenDocument file ({why}); save it as CSV", path) from error
    name = _chosen(path, list(scans), sheet)
    _look_over(path, name, scans[name])
    return _rows(path, content, name)


def _calamine(path: PathLike, content: bytes) -> Any:
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise DataError(
            f'{path}: Excel files are read by python-calamine: pip install "permix[excel]", or save '
            "the sheet as CSV UTF-8"
        ) from None
    with _damage(path):
        return CalamineWorkbook.from_filelike(io.BytesIO(content))


@contextmanager
def _damage(path: PathLike) -> Iterator[None]:
    """Say that a file is damaged where the library stumbles, or panics: that is no Exception."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ not in ("CalamineError", "PanicException", "WorksheetNotFound"):
            raise
        raise FileFormatError(f"{path}: not an Excel file, or damaged ({error})", path) from error


def _rows(path: PathLike, content: bytes, name: str) -> tuple[list[int], list[list[str]]]:
    book = _calamine(path, content)
    with _damage(path):
        found = book.get_sheet_by_name(name)
        rows: list[list[Any]] = found.to_python(skip_empty_area=True)
        first = (found.start or (0, 0))[0] + 1
    _warn_of_dates(path, rows, first)
    lines = [(first + place, [_entry(entry) for entry in row]) for place, row in enumerate(rows)]
    lines = [(number, row) for number, row in lines if any(row)]
    if not lines:
        raise FileFormatError(f"{path}: sheet {name!r} is empty", path)
    return [number for number, _ in lines], [row for _, row in lines]


def _chosen(path: PathLike, names: list[str], sheet: str | None) -> str:
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


def _workbook(path: PathLike, content: bytes) -> _Workbook:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_sizes(archive, len(content), unpacking_limit())
            members = archive.namelist()
            if len({member.casefold() for member in members}) < len(members):
                raise ValueError("a part of it is there twice")
            targets = _targets(archive)
            texts = [member for member in members if _TEXTS in member.casefold().rpartition("/")[2]]
            if len(texts) > 1:
                raise ValueError("it has two tables of texts")
            shared = archive.read(texts[0]) if texts else None
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
    return _Workbook(content, {name: xml for name, xml in sheets.items() if _HAS_CELLS.search(xml)}, shared)


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


def _scanned(path: PathLike, name: str, book: _Workbook) -> Scan:
    try:
        return scan_sheet(book.sheets[name], [] if book.texts is None else text_lengths(book.texts))
    except ValueError as error:
        raise FileFormatError(
            f"{path}, sheet {name!r}: {error}; save it again as .xlsx or CSV", path
        ) from error


def _look_over(path: PathLike, name: str, scan: Scan) -> None:
    """Refuse a rectangle or texts that are too large, and cells that calamine would give as blanks."""
    if scan.height * scan.width > MOST_CELLS:
        raise FileFormatError(
            f"{path}: sheet {name!r} goes over {scan.height:,} rows and {scan.width:,} columns; delete what "
            "stands far away from the table, or save the sheet as CSV",
            path,
        )
    if scan.n_bytes > unpacking_limit():
        raise FileFormatError(too_large(unpacking_limit(), f"{path}, sheet {name!r}: "), path)
    if scan.without_value:
        at, shown = scan.without_value
        more = f" (so do {scan.n_without_value - 1} others)" if scan.n_without_value > 1 else ""
        raise DataError(f"{path}, sheet {name!r}: cell {at} holds {shown}{more}; mend it, or empty the cell")
    if scan.merged:
        more = f" and {len(scan.merged) - 3} more" if len(scan.merged) > 3 else ""
        said = f"{path}, sheet {name!r}: cells {', '.join(scan.merged[:3])}{more} are merged: what they hold "
        warnings.warn(
            f"{said}counts for the first of them, the others are blank", PermixWarning, stacklevel=6
        )
    if scan.hidden:
        said = f"{path}, sheet {name!r}: hidden, by a filter or otherwise: {', '.join(scan.hidden)}; all"
        warnings.warn(f"{said} of it is read, so delete what is not to count", PermixWarning, stacklevel=6)
    if scan.unavailable:
        n = scan.n_unavailable
        said = f"{path}, sheet {name!r}: {n} cell{'s' * (n > 1)} with #N/A, the first {scan.unavailable}"
        warnings.warn(f"{said}, are read as blank", PermixWarning, stacklevel=6)


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
