"""What people bring: a file, a folder, or a zip of files; read within limits, never unpacked to disk."""

from __future__ import annotations

import gzip
import json
import zipfile
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from permix.data.io.text_files import PathLike, as_utf8, decoded
from permix.errors import DataError, FileFormatError
from permix.files import check_sizes, read_unpacked, unpacking_limit
from permix.runtime.progress import Display

# What is looked at to find the format of a file.
HEAD = 65_536
# Files of a folder that nobody would bring as one election.
MOST_FILES = 2_000_000


class Said(NamedTuple):
    """What the user said of the columns of a table of ballots."""

    ignore: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()  # to be kept, as what is known of agents
    counts: str | None = None
    agent: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        """Columns that are named to be used or left out."""
        return (*self.ignore, *(name for name in (self.counts, self.agent) if name is not None))


class Source:
    """Files by name, whatever holds them; names are without folders and never become paths."""

    def __init__(self, path: PathLike, sheet: str | None = None, said: Said | None = None) -> None:
        self.path = Path(path)
        self.sheet = sheet  # of an Excel file with several
        self.said = said or Said()
        self.kept: dict[str, Any] = {}  # what readers need twice
        if not self.path.exists():
            raise FileNotFoundError(f"there is no file {path}")
        if not (self.path.is_dir() or self.path.is_file()):
            raise DataError(f"{path} is a pipe or a device; the data must be a file, which can be read twice")

    @cached_property
    def is_zip(self) -> bool:
        """Whether this is a zip of files, and not a spreadsheet, which is a zip as well."""
        if self.path.is_dir() or not zipfile.is_zipfile(self.path):
            return False
        members = self._zip_members
        return "[Content_Types].xml" not in members and not {"mimetype", "content.xml"} <= set(members)

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        """The zip, kept open: it may have thousands of members."""
        return zipfile.ZipFile(self.path)

    @cached_property
    def _zip_members(self) -> dict[str, zipfile.ZipInfo]:
        try:
            check_sizes(self._archive, self.path.stat().st_size, unpacking_limit())
            return {info.filename: info for info in self._archive.infolist() if not info.is_dir()}
        except FileFormatError as error:
            raise FileFormatError(f"{self.path}: {error}", self.path) from error
        except (zipfile.BadZipFile, NotImplementedError) as error:
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

    def each(self, names: list[str]) -> Iterator[str]:
        """Yield names of files to read one after the other, and show how far that is."""
        with Display(None) as display:
            display.begin(f"reading {self.path.name}", len(names))
            for name in names:
                yield name
                display.step()

    def read(self, name: str) -> bytes:
        """Return the content of one of the files."""
        if self.path.is_dir():
            return bytes(read_unpacked(self.path / name))
        if not self.is_zip:
            return bytes(read_unpacked(self.path))
        try:
            return self._archive.read(self._zip_members[name])
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, zlib.error) as error:
            raise FileFormatError(f"{self.path}, {name}: cannot be unpacked ({error})", self.path) from error

    @cached_property
    def head(self) -> bytes:
        """The beginning of the file, unpacked; of a folder or a zip, nothing."""
        if not self.is_one_file:
            return b""
        with open(self.path, "rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        try:
            with gzip.open(self.path, "rb") if packed else open(self.path, "rb") as stream:
                return as_utf8(stream.read(HEAD))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            said = f"{self.path}: the gzip stream is truncated or damaged ({error}); fetch the file again"
            raise FileFormatError(said, self.path) from error

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
        """Return a file of text."""
        return decoded(
            self.read(name), self.path, str(self.path) if self.is_one_file else f"{self.path}, {name}"
        )
