"""Text files in and out: plain or gzipped, UTF-8, written whole or not at all."""

from __future__ import annotations

import gzip
import os
import re
import warnings
from pathlib import Path

from permix.errors import DataError, FileFormatError, PermixWarning
from permix.files import atomic_writer, read_unpacked

PathLike = str | os.PathLike[str]

# Endings of PrefLib files and of tables.
PREFLIB = ("soc", "soi", "toc", "toi", "cat")
# Other files of whole profiles by their endings; the first two are written, too.
PROFILES = {"abif": "abif", "blt": "blt", "cvotes": "condorcet"}
TEXT_TABLES = ("csv", "tsv", "tab")
EXCEL = ("xlsx", "xlsm", "xls", "ods")
JSON_RECORDS = ("jsonl", "ndjson", "json")
TABLES = (*TEXT_TABLES, *EXCEL, "parquet", *JSON_RECORDS)
# Those that are written, too.
WRITTEN_TABLES = (*TEXT_TABLES, "parquet", "xlsx")


def check_file(path: PathLike) -> None:
    """Refuse what is no file, before it is opened: to wait for a pipe may take forever."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if file.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    if not file.is_file():
        raise DataError(f"{path} is a pipe or a device; the data must be a file, which can be read twice")


# A character of several bytes, as UTF-8 has it.
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
# What names and sentences of western languages hold beside ASCII, and what they do not.
_WESTERN = re.compile(
    r"[\t\n\r\x20-\x7e\u00a0-\u00b4\u00b7\u00b8\u00ba-\u00d6\u00d8-\u00f6\u00f8-\u00feŠšŽžŒœ‘’“”–—…€•™]*"
)
_WEB_PAGE = re.compile(r"\s*<(?:!doctype html|html)\b", re.IGNORECASE)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_RUN = re.compile(r"[\u00c0-\u00ff]{3}")


def as_utf8(raw: bytes) -> bytes:
    """Return text as UTF-8 where its first bytes say that it is UTF-16, as Excel's "Unicode text" is."""
    if raw[:2] in _UTF_16:
        return raw[: len(raw) // 2 * 2].decode("utf-16", errors="replace").encode("utf-8", errors="replace")
    return raw


def decoded(raw: bytes, path: PathLike, where: str = "", western: bool = True) -> str:
    """Return bytes as text: UTF-8, UTF-16 with its mark, or, with a warning, Windows-1252.

    Bytes that are no UTF-8 in a file that has UTF-8 as well are damage, and refused; so are they where the
    format has no other encoding (``western=False``).
    """
    try:
        if raw[:2] in _UTF_16:
            return raw.decode("utf-16")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if raw[:2] in _UTF_16:
            said = (
                f"{where or path}: cut short or damaged: it begins as UTF-16 and does not go on so ({error})"
            )
            raise FileFormatError(said, path) from error
        line = raw.count(b"\n", 0, error.start) + 1
        text = _western(raw) if western and not _MULTIBYTE.search(raw) else None
        if text is None:
            raise FileFormatError(
                f"{where or path}, line {line}: byte 0x{raw[error.start]:02x} is not UTF-8; convert the file "
                "to UTF-8 (a spreadsheet program: save as 'CSV UTF-8')",
                path,
                line,
            ) from error
        at = next(place for place, character in enumerate(text) if ord(character) > 127)
        word = re.split(r"[\s,;|\t\"]", text[:at])[-1] + re.split(r"[\s,;|\t\"]", text[at:])[0]
        said = f"{where or path}, line {line}: not UTF-8, and read as Windows-1252 ({shorten(word, 30)!r})"
        warnings.warn(f"{said}; if names look wrong, save the file as UTF-8", PermixWarning, stacklevel=4)
        return text


def _western(raw: bytes) -> str | None:
    """Return text of western Europe in one byte a character; None where it seems to be another."""
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError:
        return None
    return text if _WESTERN.fullmatch(text) and not _RUN.search(text) else None


def read_text(path: PathLike, western: bool = True) -> str:
    """Return the text of a file; gzip is recognized by content, not by name."""
    check_file(path)
    text = decoded(bytes(read_unpacked(path)), path, western=western)
    if not text.strip():
        raise FileFormatError(f"{path}: the file is empty", path)
    if _WEB_PAGE.match(text):
        raise FileFormatError(
            f"{path}: a web page (HTML), not the file it was to be, as where a download leads to a page that "
            "asks to log in or says that there is none; fetch the file once more",
            path,
        )
    return text


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
