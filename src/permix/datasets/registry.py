"""What permix knows about public data sets: files, publishers, checksums and licenses, from ``sources.toml``.

A data set whose files cannot be checked, or which no publisher offers in a form that can be read, is not
downloaded: the error then says what to get and where to put it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Source:
    """A public data set and where its files come from."""

    key: str  # its name, and the folder of its files under ``PERMIX_DATA`` and in the cache
    title: str
    size: str
    license: str
    citation: str
    homepage: str
    url: str | None = None  # an archive, or a folder of single files; None when there is no download
    checksum: str | None = None  # ``"md5:…"`` or ``"sha256:…"`` of the archive
    # Path of each file in the archive, or below ``url``, to the sha256 of its (decompressed) bytes; empty
    # where none is known. Here a file has the last part of its path for a name.
    files: Mapping[str, str] = field(default_factory=dict)
    manual: str = ""  # what to do by hand when there is no download

    @property
    def members(self) -> dict[str, str]:
        """Path of each file by its name here."""
        return {path.rpartition("/")[2]: path for path in self.files}

    @property
    def sha256(self) -> dict[str, str]:
        """Known checksums by name."""
        return {path.rpartition("/")[2]: digest for path, digest in self.files.items() if digest}


_TOLD = tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8"))
SOURCES = {told["key"]: Source(**told) for told in _TOLD.values()}
SUSHI, APA_1980, MOVIELENS_100K, MOVIELENS_1M, JESTER, AP, PREFLIB = SOURCES.values()
