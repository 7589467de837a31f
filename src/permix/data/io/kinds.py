"""What kind of file holds votes: told by its ending, or by what is in it where the ending says nothing."""

from __future__ import annotations

import csv
import re
from typing import NamedTuple

from permix.data.io.ballots.source import Source
from permix.data.io.containers.lines import container
from permix.data.io.containers.text import COLONS, guess_delimiter
from permix.data.io.profiles import abif, blt, condorcet
from permix.data.io.text_files import PREFLIB, PROFILES, TABLES, TEXT_TABLES, PathLike, plain_suffix
from permix.data.labels import some_names
from permix.errors import DataError, Wording

TITLES = {
    "preflib": "PrefLib",
    "abif": abif.TITLE,
    "blt": blt.TITLE,
    "condorcet": condorcet.TITLE,
    "orders": "Lists of item numbers, as the sushi data have them",
    "table": "Table",
}
_CONTAINERS = {"parquet": "Parquet", "excel": "Excel", "json": "JSON records", "text": "text"}
_PREFLIB = re.compile(r"#\s*(FILE NAME|TITLE|DATA TYPE|NUMBER ALTERNATIVES)\s*:")
_HTML = re.compile(r"\s*<(?:!doctype\s+html|html|head|body|table)\b", re.IGNORECASE)
_ORDERS = re.compile(r"[0-9]+ +1\n(0 +[0-9]+( +[0-9]+)+ *\n)+")


class Kind(NamedTuple):
    """A kind of file, by a name of ``TITLES``, and by what it was recognized."""

    name: str
    why: str

    @property
    def title(self) -> str:
        """What the kind is called."""
        return TITLES[self.name]


def kind_of(path: PathLike) -> Kind:
    """Return the kind of a file of votes, or say that none was recognized."""
    ending = plain_suffix(path)
    if ending in PREFLIB:
        return Kind("preflib", f"the ending .{ending}")
    if ending in PROFILES:
        return Kind(PROFILES[ending], f"the ending .{ending}")
    source = Source(path)
    if _HTML.match(source.head.decode("utf-8-sig", errors="replace")):
        raise DataError(
            f"{path}: a web page (HTML), whatever it is called; open it in a spreadsheet, and save its table "
            "as .csv or .xlsx"
        )
    if ending in TABLES:
        if ending in TEXT_TABLES and _PREFLIB.match(_text(source)):
            return Kind("preflib", "its header, which is that of PrefLib")
        if ending in TEXT_TABLES and _is_abif(_text(source)):
            return Kind("abif", "lines of the form 'count: A>B'")
        return Kind("table", f"the ending .{ending}")
    if source.is_zip:
        raise DataError(
            f"{path}: a zip of {some_names(source.names, 3)}. Of zips, exports of Dominion and Hart are read "
            "as they are; unpack others and give the file",
            Wording("", f", or pipe it: unzip -p {path} | permix info -"),
        )
    held = container(path)
    if held != "text":
        return Kind("table", f"the content, which is {_CONTAINERS[held]}")
    found = _of_text(path, _text(source))
    if found is None:
        endings = ", ".join(f".{suffix}" for suffix in (*PREFLIB, *PROFILES, *TABLES))
        raise DataError(
            f"{path}: neither the ending nor the content says what this is. Files are read by their endings "
            f"({endings}, with .gz or without); with another ending, by what is in them: tables, PrefLib, "
            "ABIF, BLT, and ballots of Dominion, Hart, ES&S, Clear Ballot, NIST's common data format, "
            "Scottish councils and VoteKit"
        )
    return found


def _is_abif(head: str) -> bool:
    """Whether a file that is called a table is ABIF; with commas, ``5: A,B`` could be either."""
    return ">" in head and not re.search("[,;\t|]", head) and abif.looks_like(head)


def _text(source: Source) -> str:
    head = source.head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace")
    return head.replace("\r\n", "\n")


def _of_text(path: PathLike, head: str) -> Kind | None:
    if not head.strip() or "\0" in head or head.count("\ufffd") > 5:
        return None
    if _PREFLIB.match(head):
        return Kind("preflib", "its header, which is that of PrefLib")
    if abif.looks_like(head):
        return Kind("abif", "lines of the form 'count: A>B'")
    if condorcet.looks_like(head):
        return Kind(
            "condorcet", "lines of the form 'A > B * count' or '3X A > B', or parameters '#/Candidates: …'"
        )
    if blt.looks_like(head):
        return Kind("blt", "two numbers, then lines of numbers that end with 0")
    if _ORDERS.match(head) and not _ORDERS.sub("", head).strip(" 0123456789"):
        return Kind("orders", "a line '10 1', then lines '0 10' and item numbers")
    delimiter = guess_delimiter(path, head)
    lines = [line for line in head.split("\n") if line.strip()][:20]
    words = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "blanks", "::": "'::'"}
    whole = lines[: len(lines) - 1 or 1]  # the last may be cut
    if delimiter in (" ", COLONS):
        widths = {len(line.split(None if delimiter == " " else delimiter)) for line in whole}
    else:
        try:
            widths = {len(row) for row in csv.reader(whole, delimiter=delimiter)}
        except csv.Error:
            return None
    if max(widths) > 1 and len(widths) == 1:
        return Kind("table", f"lines with {words[delimiter]} between the entries")
    arrows = sum(1 for line in whole if re.fullmatch(r"[^>]+(>[^>]+)+>?", line))
    if 2 * arrows >= len(whole):
        return Kind("table", "lines of the form A>B>C")
    return None
