"""What people bring: a file, a folder, or a zip of files; read within limits, never unpacked to disk."""

from __future__ import annotations

import json
import zipfile
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from permix.data.io.text_files import PathLike
from permix.errors import DataError, FileFormatError
from permix.files import check_sizes, read_unpacked, unpacking_limit

# What is looked at to find the format of a file.
HEAD = 65_536
# Files of a folder that nobody would bring as one election.
MOST_FILES = 2_000_000


class Source:
    """Files by name, whatever holds them; names are without folders and never become paths."""

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise FileNotFoundError(f"there is no file {path}")
        if not (self.path.is_dir() or self.path.is_file()):
            raise DataError(f"{path} is a pipe or a device; the data must be a file, which can be read twice")

    @cached_property
    def is_zip(self) -> bool:
        """Whether this is a zip of files, and not a spreadsheet, which is a zip as well."""
        if self.path.is_dir() or not zipfile.is_zipfile(self.path):
            return False
        return "[Content_Types].xml" not in self._zip_members

    @cached_property
    def _zip_members(self) -> dict[str, zipfile.ZipInfo]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                check_sizes(archive, self.path.stat().st_size, unpacking_limit())
                return {info.filename: info for info in archive.infolist() if not info.is_dir()}
        except zipfile.BadZipFile as error:
            raise FileFormatError(f"{self.path}: a damaged zip ({error})", self.path) from error

    @cached_property
    def names(self) -> list[str]:
        """Names of the files, sorted; of one file its own."""
        if self.path.is_dir():
            files = [entry.name for entry in self.path.iterdir() if entry.is_file()]
        elif self.is_zip:
            files = list(self._zip_members)
        else:
            return [self.path.name]
        if len(files) > MOST_FILES:
            raise DataError(f"{self.path}: {len(files):,} files are more than any election has")
        return sorted(name for name in files if not name.rpartition("/")[2].startswith((".", "__MACOSX")))

    @property
    def is_one_file(self) -> bool:
        """Whether there is one file, not a folder and not a zip."""
        return not self.path.is_dir() and not self.is_zip

    def read(self, name: str) -> bytes:
        """Return the content of one of the files."""
        if self.path.is_dir():
            return bytes(read_unpacked(self.path / name))
        if not self.is_zip:
            return bytes(read_unpacked(self.path))
        try:
            with zipfile.ZipFile(self.path) as archive:
                return archive.read(self._zip_members[name])
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, zlib.error) as error:
            raise FileFormatError(f"{self.path}, {name}: cannot be unpacked ({error})", self.path) from error

    @cached_property
    def head(self) -> bytes:
        """The beginning of the file, unpacked; of a folder or a zip, nothing."""
        return self.read(self.names[0])[:HEAD] if self.is_one_file else b""

    def fail(self, name: str, why: str) -> FileFormatError:
        """Return an error about one of the files."""
        where = str(self.path) if self.is_one_file else f"{self.path}, {name}"
        return FileFormatError(f"{where}: {why}", self.path)

    def json(self, name: str) -> Any:
        """Return a file of JSON."""
        try:
            return json.loads(self.read(name))
        except (ValueError, RecursionError) as error:
            raise self.fail(name, f"not JSON ({error})") from error

    def xml(self, name: str) -> ElementTree.Element:
        """Return a file of XML that defines no entities: these can grow without bound or name other files."""
        content = self.read(name)
        if b"\0" in content:
            raise self.fail(name, "XML that is not UTF-8 is not read; convert it to UTF-8")
        if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
            raise self.fail(name, "XML with a DOCTYPE, which ballots do not need, is not read")
        try:
            return ElementTree.fromstring(content)
        except ElementTree.ParseError as error:
            raise self.fail(name, f"not XML ({error})") from error

    def text(self, name: str) -> str:
        """Return a file of UTF-8 text."""
        content = self.read(name)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise self.fail(name, f"line {line} is not UTF-8; convert the file to UTF-8") from error
