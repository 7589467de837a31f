"""What an old Excel file (``.xls``) holds, before a library takes memory for it.

Such a file is a small file system with one stream of records. Cells with errors are found in it, which the
library gives as blanks, and how much text the cells refer to: a long text that many cells refer to is stored
once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from permix.data.io.containers.sheet_scan import column_letters

MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_END, _MOST_SECTORS = 0xFFFFFFFE, 10_000_000
_SST, _CONTINUE, _LABEL_SST, _BOOL_ERROR, _FORMULA = 0x00FC, 0x003C, 0x00FD, 0x0205, 0x0006


class XlsScan(NamedTuple):
    """What there is in all sheets of a file."""

    most_bytes: int  # of text that cells refer to, at the most
    errors: list[str]  # where cells with errors are, in whichever sheet


def scan_xls(content: bytes) -> XlsScan:
    """Look a file over; a ``ValueError`` where it is damaged."""
    n_texts, errors = 0, []
    texts: list[bytes] = []
    inside = False  # whether the record before was the table of texts, or went on with it
    try:
        for kind, body in _records(_workbook(content)):
            inside = kind == _SST or (inside and kind == _CONTINUE)
            if inside:
                texts.append(body)
            elif kind == _LABEL_SST:
                n_texts += 1
            elif (kind == _BOOL_ERROR and len(body) > 7 and body[7]) or (
                kind == _FORMULA and len(body) > 13 and body[12:14] == b"\xff\xff" and body[6] == 2
            ):
                errors.append(_place(body))
        longest = _longest(texts) if texts else 0
    except (struct.error, IndexError) as error:
        raise ValueError(f"its records end too early ({error})") from error
    return XlsScan(n_texts * longest, errors)


def _place(body: bytes) -> str:
    row, column = struct.unpack_from("<HH", body)
    return f"{column_letters(column + 1)}{row + 1}"


def _records(stream: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(stream):
        kind, length = struct.unpack_from("<HH", stream, at)
        body = stream[at + 4 : at + 4 + length]
        if len(body) < length:
            raise ValueError("its records end too early")
        if kind == 0 and length == 0:  # the rest of the last sector
            return
        yield kind, body
        at += 4 + length


def _workbook(content: bytes) -> bytes:
    """Return the stream of records, which may lie in pieces."""
    if content[:8] != MAGIC:
        raise ValueError("it does not begin as an .xls file does")
    shift, short_shift = struct.unpack_from("<HH", content, 30)
    first_directory = struct.unpack_from("<I", content, 48)[0]
    least, first_short, n_short, first_table, _ = struct.unpack_from("<IIIII", content, 56)
    if shift not in (9, 12) or short_shift != 6:
        raise ValueError("its sectors have an unusual size")
    size = 1 << shift

    def sector(number: int) -> bytes:
        return content[(number + 1) << shift : (number + 2) << shift]

    tables = list(struct.unpack_from("<109I", content, 76))
    seen = 0
    while first_table < _END:
        entries = struct.unpack(f"<{size // 4}I", sector(first_table))
        tables, first_table, seen = [*tables, *entries[:-1]], entries[-1], seen + 1
        if seen > _MOST_SECTORS // size:
            raise ValueError("its list of sectors does not end")
    following: list[int] = []
    for number in tables:
        if number < _END:
            following += struct.unpack(f"<{size // 4}I", sector(number).ljust(size, b"\xff"))

    def chain(first: int, links: list[int]) -> list[int]:
        found, number = [], first
        while number < _END:
            found.append(number)
            if len(found) > len(links) or number >= len(links):
                raise ValueError("a chain of its sectors does not end")
            number = links[number]
        return found

    directory = b"".join(map(sector, chain(first_directory, following)))
    listed = [directory[at : at + 128] for at in range(0, len(directory) - 127, 128)]
    root = next((entry for entry in listed if entry[66] == 5), None)
    for entry in listed:
        name = entry[: max(struct.unpack_from("<H", entry, 64)[0] - 2, 0)].decode("utf-16-le", "replace")
        if entry[66] == 2 and name.lower() in ("workbook", "book"):
            start, length = struct.unpack_from("<II", entry, 116)
            if length >= least or root is None:
                return b"".join(map(sector, chain(start, following)))[:length]
            of_root = b"".join(map(sector, chain(struct.unpack_from("<I", root, 116)[0], following)))
            table = b"".join(map(sector, chain(first_short, following))) if n_short else b""
            links = list(struct.unpack(f"<{len(table) // 4}I", table))
            pieces = chain(start, links)
            return b"".join(of_root[number << 6 : (number + 1) << 6] for number in pieces)[:length]
    raise ValueError("it has no stream of sheets")


def _longest(chunks: list[bytes]) -> int:
    """Return the bytes of the longest text of a table of texts, at the most."""
    n = struct.unpack_from("<I", chunks[0], 4)[0]
    at, place, longest = 0, 8, 0

    def take(length: int) -> bytes:
        nonlocal at, place
        taken = b""
        while len(taken) < length:
            if place >= len(chunks[at]):
                at, place = at + 1, 0
            part = chunks[at][place : place + length - len(taken)]
            taken, place = taken + part, place + len(part)
        return taken

    for _ in range(n):
        if at == len(chunks) - 1 and place >= len(chunks[at]):
            break
        characters, flags = struct.unpack("<HB", take(3))
        runs = struct.unpack("<H", take(2))[0] if flags & 8 else 0
        extra = struct.unpack("<I", take(4))[0] if flags & 4 else 0
        longest, wide, left = max(longest, 3 * characters), flags & 1, characters
        while left:
            if place >= len(chunks[at]):  # a text that goes on says anew how wide its characters are
                at, place = at + 1, 0
                wide = take(1)[0] & 1
            room = (len(chunks[at]) - place) >> wide
            if not room:
                raise ValueError("a text is cut within a character")
            place, left = place + (min(room, left) << wide), left - min(room, left)
        take(4 * runs + extra)
    return longest
