"""Tables in text files: commas, semicolons, tabs, bars, blanks or ``::`` between the entries."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from permix.data.io.text_files import PathLike, plain_suffix, shorten
from permix.errors import Argument, FileFormatError, Message

DELIMITERS = ",\t;|"
# As MovieLens has them; the csv module knows delimiters of one character.
COLONS = "::"
_NUMBERS_BY_COLONS = re.compile(r"[-+.\w]+(::[-+.\w]+)+")
_NUMBER = re.compile(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?")
# Characters of a file in which its delimiter is looked for.
LOOKED_AT = 100_000


def guess_delimiter(path: PathLike, text: str) -> str:
    """Return a tab for ``.tsv``, else the most frequent of ``, ; tab |`` in the header, outside quotes.

    Where the first lines have none of them, and are numbers with blanks or ``::`` between them, these are.
    """
    if plain_suffix(path) in ("tsv", "tab"):
        return "\t"
    lines = text[:LOOKED_AT].lstrip().split("\n", 3)[:3]
    header = re.sub(r'"[^"]*"', "", lines[0])
    best = max(DELIMITERS, key=header.count)
    if best in header or plain_suffix(path) == "csv":
        return best
    if all(_NUMBERS_BY_COLONS.fullmatch(line.strip()) for line in lines if line.strip()):
        return COLONS
    fields = [line.split() for line in lines if line.strip()]
    by_blanks = len(fields[0]) > 1 and all(_NUMBER.fullmatch(entry) for row in fields for entry in row)
    return " " if by_blanks else best


def file_rows(
    path: PathLike, text: str, delimiter: str, *, ragged: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and stripped fields of every line; blank lines are skipped.

    All lines have as many fields as the first, or, where they may be ``ragged``, as the longest.
    """
    if ragged:
        rows = list(_rows(path, text, delimiter))
        width = max((len(row) for _, row in rows), default=0)
        yield from ((line, row + [""] * (width - len(row))) for line, row in rows)
        return
    width = 0
    for start, fields in _rows(path, text, delimiter):
        width = width or len(fields)
        if len(fields) != width:
            found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
            said = (
                f"{path}, line {start}: {found} where the first line has {width}: "
                f"{shorten(delimiter.join(fields))!r}. If lines list as many items as they like, best first, "
                "say "
            )
            raise FileFormatError(Message(said, Argument("layout", "orders")), path, start)
        yield start, fields


def _rows(path: PathLike, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    if delimiter in (COLONS, " "):
        for line, entry in enumerate(text.split("\n"), start=1):
            if entry.strip():
                by = None if delimiter == " " else delimiter
                yield line, [field.strip() for field in entry.split(by)]
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    width = 0
    while True:
        # A quoted field may span lines: name the line on which the row starts.
        start = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise FileFormatError(f"{path}, line {start}: {error}", path, start) from error
        if row is None:
            return
        if not row or (len(row) == 1 and not row[0].strip() and not (row == [""] and width == 1)):
            continue  # a blank line; "" in quotes is a blank cell where there is one column
        width = width or len(row)
        yield start, [field.strip() for field in row]
