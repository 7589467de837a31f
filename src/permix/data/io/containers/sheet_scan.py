"""What the XML of an Excel sheet holds, before a library takes memory for it.

The XML is gone through once, event by event, with what the library would make of it: the rectangle that the
cells fill, cells without a value, and how much text the cells refer to: a long text that many cells refer
to is stored once and read as often as they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.parsers import expat

_PLACE = re.compile(r"([A-Za-z]{1,3})([0-9]{1,8})")
_WHOLE = re.compile(r"[0-9]{1,8}")
_TRUE = ("1", "true")


class Scan(NamedTuple):
    """What there is in a sheet."""

    height: int
    width: int
    n_bytes: int  # of all text that cells refer to
    n_without_value: int
    without_value: tuple[str, str] | None  # where the first is, and what it holds
    n_unavailable: int
    unavailable: str | None  # where the first #N/A is
    merged: tuple[str, ...] = ()  # cells below the first row that are one
    hidden: tuple[str, ...] = ()  # rows with cells, and columns, that are not shown


def scan_sheet(xml: bytes, lengths: list[int]) -> Scan:
    """Look a sheet over; ``lengths`` are those of the texts that cells refer to by number."""
    found = _Cells(lengths)
    _parse(xml, found)
    return found.scan()


def text_lengths(xml: bytes) -> list[int]:
    """Return the bytes of each text that cells may refer to."""
    found = _Texts()
    _parse(xml, found)
    return found.lengths


def column_number(letters: str) -> int:
    """Return the number of a column: A is 1, AA is 27."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - 64
    return number


def column_letters(number: int) -> str:
    """Return the letters of a column: 1 is A, 27 is AA."""
    letters = ""
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


def scan_opendocument(xml: bytes) -> dict[str, Scan]:
    """Look all sheets of an OpenDocument file over, by name; cells and rows may be given as repeated."""
    found = _OpenCells()
    _parse(xml, found)
    return found.sheets


class _Events:
    def start(self, name: str, attributes: dict[str, str]) -> None:
        raise NotImplementedError

    def end(self, name: str) -> None:
        raise NotImplementedError

    def text(self, text: str) -> None:
        raise NotImplementedError


def _parse(xml: bytes, events: _Events) -> None:
    """Go through XML; a ``ValueError`` where it has entities, is no UTF-8, or is damaged."""

    def refuse(*_: object) -> None:
        raise ValueError("XML with entities")

    def declared(version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "utf8", "us-ascii"):
            raise ValueError(f"XML in {encoding[:40]}, not in UTF-8")

    if b"\0" in xml:
        raise ValueError("XML that is not UTF-8")
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.XmlDeclHandler = declared
    parser.StartElementHandler = events.start
    parser.EndElementHandler = events.end
    parser.CharacterDataHandler = events.text
    parser.buffer_text = True
    try:
        parser.Parse(xml, True)
    except expat.ExpatError as error:
        raise ValueError(f"damaged XML: {error}") from error


class _Texts(_Events):
    def __init__(self) -> None:
        self.lengths: list[int] = []
        self._inside = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(":")[2] == "si":
            self.lengths.append(0)
            self._inside = True

    def end(self, name: str) -> None:
        if name.rpartition(":")[2] == "si":
            self._inside = False

    def text(self, text: str) -> None:
        if self._inside:
            self.lengths[-1] += len(text.encode(errors="replace"))


class _Cells(_Events):
    def __init__(self, lengths: list[int]) -> None:
        self._lengths = lengths
        self._row, self._column, self._next = 1, 0, 1
        self._top, self._bottom, self._right = 2**62, 0, 0
        self._n_bytes = self._n_without = self._n_unavailable = 0
        self._without: tuple[str, str] | None = None
        self._unavailable: str | None = None
        self._merged: list[tuple[int, str]] = []
        self._hidden_columns: list[tuple[int, int]] = []
        self._hidden_rows: list[int] = []
        self._is_hidden = False
        self._at, self._type = "", ""
        self._formula = self._in_value = False
        self._value: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if local == "v":
            self._in_value = True
        elif local == "c":
            self._cell(attributes)
        elif local == "f":
            self._formula = True
        elif local == "mergeCell":
            place = _PLACE.match(attributes.get("ref", ""))
            if place is not None:
                self._merged.append((int(place[2]), attributes["ref"][:40]))
        elif local == "col" and attributes.get("hidden") in _TRUE:
            ends = [attributes.get(end, "") for end in ("min", "max")]
            if all(map(_WHOLE.fullmatch, ends)):
                self._hidden_columns.append((int(ends[0]), int(ends[1])))
        elif local == "row":
            self._is_hidden = attributes.get("hidden") in _TRUE
            number = attributes.get("r")
            if number is not None and not _WHOLE.fullmatch(number):
                raise ValueError(f"a row is numbered {number[:40]!r}")
            self._row, self._column = self._next if number is None else int(number), 0

    def _cell(self, attributes: dict[str, str]) -> None:
        at = attributes.get("r")
        if at is None:
            self._column += 1
            self._at = f"{self._column} of row {self._row}"
        else:
            place = _PLACE.fullmatch(at)
            if place is None:
                raise ValueError(f"a cell stands at {at[:40]!r}")
            self._column, self._row, self._at = column_number(place[1]), int(place[2]), at
        self._top, self._bottom = min(self._top, self._row), max(self._bottom, self._row)
        self._right = max(self._right, self._column)
        self._type, self._formula, self._value = attributes.get("t", ""), False, []

    def end(self, name: str) -> None:
        local = name.rpartition(":")[2]
        if local == "v":
            self._in_value = False
        elif local == "row":
            self._next = self._row + 1
        elif local == "c":
            value = "".join(self._value)
            if (
                self._is_hidden
                and (value or self._type == "inlineStr")
                and self._hidden_rows[-1:] != [self._row]
            ):
                self._hidden_rows.append(self._row)
            if self._type == "s" and value:
                number = int(value) if _WHOLE.fullmatch(value.strip()) else -1
                if not 0 <= number < len(self._lengths):
                    raise ValueError(f"cell {self._at} refers to a text that is not there")
                self._n_bytes += self._lengths[number]
            elif self._type == "e" and value.strip() == "#N/A":
                self._n_unavailable += 1
                self._unavailable = self._unavailable or self._at
            elif self._type == "e":
                self._lacks(value.strip()[:40] or "an error")
            elif self._type != "str" and self._formula and not value:
                self._lacks("a formula that was never computed")

    def _lacks(self, shown: str) -> None:
        self._n_without += 1
        self._without = self._without or (self._at, shown)

    def text(self, text: str) -> None:
        if self._in_value:
            self._value.append(text)

    def scan(self) -> Scan:
        return Scan(
            max(self._bottom - self._top + 1, 0),
            self._right,
            self._n_bytes,
            self._n_without,
            self._without,
            self._n_unavailable,
            self._unavailable,
            tuple(ref for row, ref in self._merged if row > self._top),
            tuple(self._hidden()),
        )

    def _hidden(self) -> Iterator[str]:
        """Yield the rows and the columns that are not shown, in words."""
        n = len(self._hidden_rows)
        if n:
            yield f"{'rows' if n > 1 else 'row'} {', '.join(map(str, self._hidden_rows[:3]))}" + (
                f" and {n - 3} more" if n > 3 else ""
            )
        for first, last in self._hidden_columns[:3]:
            if first <= self._right:
                ends = [column_letters(at) for at in dict.fromkeys((first, min(last, self._right)))]
                yield f"column{'s' * (len(ends) > 1)} {' to '.join(ends)}"


class _OpenCells(_Events):
    """Cells of OpenDocument sheets, which say how often each is repeated."""

    def __init__(self) -> None:
        self.sheets: dict[str, Scan] = {}
        self._name = ""
        self._begin("")

    def _begin(self, name: str) -> None:
        self._name, self._row, self._column = name, 0, 0
        self._bottom = self._right = self._top = self._n_bytes = self._n_errors = 0
        self._first_error: tuple[str, str] | None = None
        self._rows = self._cells = 1
        self._filled = self._error = False
        self._in_row: list[tuple[int, int]] = []  # bytes of filled cells, and how often each stands there
        self._text: list[str] = []
        self._depth = 0  # within a cell

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if local == "table":
            told = [value for key, value in attributes.items() if key.rpartition(":")[2] == "name"]
            self._begin(told[0] if told else "")
        elif local == "table-row":
            self._rows, self._column, self._in_row = self._repeated(attributes, "rows"), 0, []
        elif local in ("table-cell", "covered-table-cell"):
            self._cells, self._text, self._depth = self._repeated(attributes, "columns"), [], 1
            kinds = {key.rpartition(":")[2]: value for key, value in attributes.items()}
            self._filled = "value-type" in kinds
            self._error = attributes.get("calcext:value-type") == "error"

    def _repeated(self, attributes: dict[str, str], what: str) -> int:
        told = [v for key, v in attributes.items() if key.rpartition(":")[2] == f"number-{what}-repeated"]
        if not told:
            return 1
        if not _WHOLE.fullmatch(told[0]) or int(told[0]) == 0:
            raise ValueError(f"a number of repeated {what} is {told[0][:40]!r}")
        return int(told[0])

    def end(self, name: str) -> None:
        local = name.rpartition(":")[2]
        if local in ("table-cell", "covered-table-cell"):
            self._depth = 0
            text = "".join(self._text)
            if self._filled or text:
                self._right = max(self._right, self._column + self._cells)
                self._in_row.append((len(text.encode(errors="replace")), self._cells))
            if self._error or text.strip() in ("#REF!", "#DIV/0!", "#VALUE!", "#NAME?", "#NUM!", "Err:502"):
                self._n_errors += self._cells * self._rows
                at = f"{column_letters(self._column + 1)}{self._row + 1}"
                self._first_error = self._first_error or (at, text.strip()[:40] or "an error")
            self._column += self._cells
        elif local == "table-row":
            if self._in_row:
                self._top = self._top or self._row + 1
                self._bottom = self._row + self._rows
                self._n_bytes += self._rows * sum(length * times for length, times in self._in_row)
            self._row += self._rows
        elif local == "table" and self._bottom:
            height = self._bottom - self._top + 1
            about = (height, self._right, self._n_bytes, self._n_errors, self._first_error, 0, None)
            self.sheets[self._name] = Scan(*about)

    def text(self, text: str) -> None:
        if self._depth:
            self._text.append(text)
