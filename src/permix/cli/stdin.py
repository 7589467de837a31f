"""Data from standard input, for ``-`` in the place of a file: kept as a file while the command runs."""

from __future__ import annotations

import atexit
import re
import shutil
import sys
import tempfile
from pathlib import Path

from permix.errors import DataError

_CHUNK = 2**20
_PREFIX = "permix-stdin-"


def spooled(file: Path) -> Path:
    """Return a file as it is, and for ``-`` one with what standard input holds, named by what that is."""
    if str(file) != "-":
        return file
    from permix.files import read_unpacked, too_large, unpacking_limit

    if sys.stdin is None or sys.stdin.isatty():
        raise DataError("- stands for standard input, and nothing is piped into it")
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    raw, n_bytes, most = folder / "raw", 0, unpacking_limit()
    with open(raw, "wb") as stream:
        while chunk := sys.stdin.buffer.read(_CHUNK):
            n_bytes += len(chunk)
            if n_bytes > most:
                raise DataError(too_large(most, "standard input: "))
            stream.write(chunk)
    content = bytes(read_unpacked(raw))
    if not content.strip():
        raise DataError("standard input is empty")
    target = folder / f"stdin.{_ending(content)}"
    target.write_bytes(content)
    return target


def is_stdin(file: Path) -> bool:
    """Whether a file holds what came from standard input, so that its ending was chosen by its content."""
    return file.stem == "stdin" and file.parent.name.startswith(_PREFIX)


def _ending(content: bytes) -> str:
    """Return the ending that a file of this content would have."""
    from permix.data.io.profiles import abif

    if content.startswith(b"PAR1"):
        return "parquet"
    if content.startswith(b"PK"):
        return "xlsx" if b"xl/workbook.xml" in content else "zip"
    head = content.removeprefix(b"\xef\xbb\xbf")[:65_536].decode("utf-8", errors="replace").lstrip()
    if preflib := re.search(r"^#\s*DATA TYPE\s*:\s*(soc|soi|toc|toi|cat)\s*$", head, re.MULTILINE):
        return preflib[1]
    if head.startswith(("{", "[")) and not abif.looks_like(head):
        return "json"
    if head.startswith("<"):
        return "xml"
    if abif.looks_like(head):
        return "abif"
    if re.match(r"[0-9]+ +1\r?\n0 +[0-9]+ ", head):
        return "order"
    return "csv"
