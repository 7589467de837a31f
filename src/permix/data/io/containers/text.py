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
# What spreadsheets write where a formula has no value.
_SPREADSHEET_ERRORS = frozenset(
    ["#REF!", "#VALUE!", "#NAME?", "#N/A", "#DIV/0!", "#NUM!", "#NULL!", "#SPILL!", "#CALC!"]
)
# Characters of a file in which its delimiter is looked for.
LOOKED_AT, LINES_LOOKED_AT = 100_000, 12


def guess_delimiter(path: PathLike, text: str) -> str:
    """Return a tab for ``.tsv``, else the most frequent of ``, ; tab |`` in the header, outside quotes.

    Where the first lines have none of them, and are numbers with blanks or ``::`` between them, these are,
    in a file called ``.csv`` as well: such a line would be taken for one name.
    """
    if plain_suffix(path) in ("tsv", "tab"):
        return "\t"
    bare = re.sub(r'"[^"]*"', "", text[:LOOKED_AT]).replace("\r", "\n")
    begin = [line for line in bare.split("\n") if line.strip()][:LINES_LOOKED_AT]
    best = max(DELIMITERS, key=(begin or [""])[0].count)
    if best not in (begin or [""])[0] or (len(begin) > 1 and begin[0].count(best) != begin[1].count(best)):
        best = _most_steady(begin, best)  # the first line may be a title
    lines = text[:LOOKED_AT].lstrip().split("\n", 3)[:3]
    if any(best in line for line in begin[:3]) or not begin:
        return best
    if all(_NUMBERS_BY_COLONS.fullmatch(line.strip()) for line in lines if line.strip()):
        return COLONS
    fields = [line.split() for line in lines if line.strip()]
    by_blanks = len(fields[0]) > 1 and all(_NUMBER.fullmatch(entry) for row in fields for entry in row)
    return " " if by_blanks else best


def _most_steady(lines: list[str], otherwise: str) -> str:
    """Return the delimiter that most lines have equally often; among those, the most frequent one."""

    def steadiness(delimiter: str) -> tuple[int, int]:
        counts = [line.count(delimiter) for line in lines]
        usual = max(set(counts) - {0}, key=counts.count, default=0)
        return (counts.count(usual) if usual else 0, usual)

    best = max(DELIMITERS, key=steadiness)
    return best if steadiness(best)[0] > 1 else otherwise


def said_delimiter(text: str) -> tuple[str | None, str]:
    """Return the delimiter that a first line ``sep=;`` names, as Excel writes it, and the text without it."""
    found = re.match(r"sep=(.)\r?(?:\n|\Z)", text)
    return (None, text) if found is None else (found[1], "\n" + text[found.end() :])


def evened(path: PathLike, numbers: list[int], rows: list[list[str]], delimiter: str, ragged: bool) -> None:
    """Give all lines as many fields as the first, or, where they may be ``ragged``, as the longest.

    Blank fields at the end of a line are no fields of a table; other differences are refused.
    """
    width = max(map(len, rows), default=0) if ragged else len(rows[0]) if rows else 0
    for number, fields in zip(numbers, rows, strict=True):
        if len(fields) > width and not any(fields[width:]):
            del fields[width:]
        elif ragged:
            fields += [""] * (width - len(fields))
        elif len(fields) != width:
            found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
            top = "the first line" if numbers[0] == 1 else f"line {numbers[0]}"
            said = (
                f"{path}, line {number}: {found} where {top} has {width}: "
                f"{shorten(delimiter.join(fields))!r}. If lines list as many items as they like, best first, "
                "say "
            )
            raise FileFormatError(Message(said, Argument("layout", "orders")), path, number)


def file_rows(path: PathLike, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and stripped fields of every line; blank lines are skipped."""
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


def refuse_spreadsheet_errors(path: PathLike, text: str, numbers: list[int], rows: list[list[str]]) -> None:
    """Refuse cells that hold an error of a spreadsheet, such as ``#REF!``."""
    if not any(error in text for error in _SPREADSHEET_ERRORS):
        return
    for number, row in zip(numbers, rows, strict=True):
        for place, entry in enumerate(row):
            if entry.strip() in _SPREADSHEET_ERRORS:
                where = f"{path}, line {number}, column {place + 1}"
                said = f"{where}: {entry.strip()!r} is an error of a spreadsheet"
                raise FileFormatError(f"{said}; mend it there, or empty the cell", path, number)
