"""Text files in and out: plain or gzipped, UTF-8, written whole or not at all."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from permix.errors import DataError, FileFormatError
from permix.files import atomic_writer, read_unpacked

PathLike = str | os.PathLike[str]

# Endings of PrefLib files and of tables.
PREFLIB = ("soc", "soi", "toc", "toi", "cat")
TEXT_TABLES = ("csv", "tsv", "tab")
EXCEL = ("xlsx", "xlsm")
JSON_RECORDS = ("jsonl", "ndjson", "json")
TABLES = (*TEXT_TABLES, *EXCEL, "parquet", *JSON_RECORDS)
# Those that are written, too.
WRITTEN_TABLES = (*TEXT_TABLES, "parquet")


def check_file(path: PathLike) -> None:
    """Refuse what is no file, before it is opened: to wait for a pipe may take forever."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if file.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    if not file.is_file():
        raise DataError(f"{path} is a pipe or a device; the data must be a file, which can be read twice")


def read_text(path: PathLike) -> str:
    """Return the text of a UTF-8 file; gzip is recognized by content, not by name."""
    check_file(path)
    raw = read_unpacked(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FileFormatError(
            f"{path}, line {line}: byte 0x{raw[error.start]:02x} is not UTF-8; convert the file to UTF-8 "
            "(a spreadsheet program: save as 'CSV UTF-8')",
            path,
            line,
        ) from error
    if not text.strip():
        raise FileFormatError(f"{path}: the file is empty", path)
    return text


def first_line(path: PathLike) -> str:
    """Return the first line that is not blank of a file that :func:`read_text` has read before."""
    with open(path, "rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if packed else open(path, "rb") as lines:
        for line in lines:
            if line.strip():
                return line.decode("utf-8-sig")
    return ""


def write_text(path: PathLike, text: str) -> None:
    """Write UTF-8 text atomically, gzipped when the name ends in ``.gz``.

    The gzip header carries neither name nor time, so equal text gives equal bytes.
    """
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError as error:
        around = text[max(error.start - 20, 0) : error.end + 20]
        raise DataError(
            f"{path}: {text[error.start]!r} in {around!r} is half a character, which UTF-8 cannot hold; "
            "mend the name"
        ) from error
    with atomic_writer(path) as stream:
        stream.write(gzip.compress(raw, mtime=0) if str(path).endswith(".gz") else raw)


def plain_suffix(path: PathLike) -> str:
    """Return the ending that says what is inside: ``votes.soi.gz`` gives ``soi``."""
    name = Path(path).name.lower().removesuffix(".gz")
    return name.rpartition(".")[2] if "." in name else ""


def shorten(text: str, width: int = 60) -> str:
    """Cut a line to what an error message can carry."""
    text = text.strip()
    return text if len(text) <= width else text[: width - 1] + "…"
