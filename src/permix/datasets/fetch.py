"""Find the files of a public data set: on this machine first, at the publisher last.

The search runs through the folder named by ``PERMIX_DATA``, then the per-user cache (or the folder named
by ``PERMIX_CACHE``). What is downloaded is checked before it is kept, and kept whole or not at all.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from permix.datasets.registry import Source
from permix.errors import DataError, FileFormatError
from permix.files import atomic_writer
from permix.runtime.telling import tell

TIMEOUT = 30.0  # seconds without an answer
MOST_BYTES = 200_000_000  # no file of any source comes near
_CHUNK = 1 << 18


class DataNotFound(DataError):
    """A data set is not on this machine and could not be fetched; the message says what to do."""


def cache_folder() -> Path:
    """Return the folder that keeps downloaded data: ``PERMIX_CACHE``, or the user's cache."""
    from platformdirs import user_cache_dir

    return Path(os.environ.get("PERMIX_CACHE") or user_cache_dir("permix", appauthor=False))


def data_folders() -> list[Path]:
    """Return the folders searched for data, in order."""
    named = os.environ.get("PERMIX_DATA")
    return [*([Path(named)] if named else []), cache_folder()]


def find(source: Source, name: str) -> Path | None:
    """Return the file ``name`` of a data set if it is on this machine, plain or with ``.gz``."""
    places = (f / source.key / f"{name}{ending}" for f in data_folders() for ending in ("", ".gz"))
    return next((path for path in places if path.is_file()), None)


def obtain(source: Source, *names: str, download: bool = True) -> list[Path]:
    """Return paths of the named files, downloading what is missing."""
    missing = [name for name in names if find(source, name) is None]
    if missing:
        if not download or source.url is None or any(name not in source.members for name in missing):
            raise DataNotFound(_what_to_do(source, missing, download))
        _download(source, missing)
    return [path for name in names if (path := find(source, name)) is not None]


def _what_to_do(source: Source, missing: list[str], download: bool) -> str:
    how = source.manual or f"get it from {source.homepage}"
    if not download and source.url is not None and all(name in source.members for name in missing):
        how = "allow the download (download=True)"
    files = ", ".join(missing)
    return f"{source.title}: {files} not found. {how[0].upper()}{how[1:]}; the folder is {_places(source)}"


def _places(source: Source) -> str:
    return " or ".join(str(folder / source.key) for folder in data_folders())


def _by_hand(source: Source, missing: list[str]) -> str:
    """What to do when a download fails: which file goes into which folder."""
    single = source.url is not None and source.url.endswith("/")
    inside = "" if single else f" from the archive ({', '.join(source.members[name] for name in missing)})"
    return f"Try again, or put {', '.join(missing)}{inside} into {_places(source)}"


def _download(source: Source, missing: list[str]) -> None:
    assert source.url is not None
    if source.url.endswith("/"):
        for name in missing:
            url = source.url + quote(source.members[name])
            _keep(source, name, _get(url, _by_hand(source, [name])))
        return
    archive = _get(source.url, _by_hand(source, missing))
    if source.checksum is not None:
        _check(archive, source.checksum, source.url)
    for name in missing:
        _keep(source, name, _member(archive, source.members[name], source.url))


def _keep(source: Source, name: str, raw: bytes) -> None:
    if name in source.sha256:
        _check(raw, f"sha256:{source.sha256[name]}", name)
    elif source.checksum is None:
        raise DataNotFound(_what_to_do(source, [name], download=True))
    folder = cache_folder() / source.key
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_writer(folder / name) as stream:
        stream.write(raw)


def _get(url: str, by_hand: str) -> bytes:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost"):
        raise DataError(f"{url}: data are fetched by https only")
    tell(f"downloading {url} to {cache_folder()}")
    content = bytearray()
    try:
        with urlopen(Request(url, headers={"User-Agent": "permix"}), timeout=TIMEOUT) as response:
            stated = response.headers.get("Content-Length")
            while piece := response.read(_CHUNK):
                content += piece
                if len(content) > MOST_BYTES:
                    raise FileFormatError(f"{url}: more than {MOST_BYTES:,} bytes; this is not the file", url)
    except (URLError, HTTPException, OSError) as error:  # error codes, unreachable hosts, time-outs
        raise DataNotFound(f"could not download {url}: {error}. {by_hand}") from error
    if stated is not None and int(stated) != len(content):
        came = f"only {len(content):,} of {int(stated):,} bytes came"
        raise DataNotFound(f"could not download {url}: {came}. {by_hand}")
    return bytes(content)


def _check(raw: bytes, checksum: str, what: str) -> None:
    kind, _, expected = checksum.partition(":")
    found = hashlib.new(kind, raw, usedforsecurity=False).hexdigest()
    if found != expected:
        raise FileFormatError(
            f"{what}: the {kind} checksum is {found}, but {expected} is expected; the download is damaged "
            "or the publisher has changed the file. Nothing was kept",
            what,
        )


def _member(archive: bytes, name: str, url: str) -> bytes:
    try:
        if zipfile.is_zipfile(io.BytesIO(archive)):
            with zipfile.ZipFile(io.BytesIO(archive)) as files, files.open(name) as stream:
                raw = stream.read(MOST_BYTES + 1)
        else:
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                extracted = tar.extractfile(name)
                if extracted is None:
                    raise KeyError(name)
                raw = extracted.read(MOST_BYTES + 1)
    except KeyError as error:
        raise FileFormatError(f"{url}: the archive has no file {name}", url) from error
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        raise FileFormatError(f"{url}: the archive is damaged ({error})", url) from error
    if len(raw) > MOST_BYTES:
        raise FileFormatError(
            f"{url}: {name} holds more than {MOST_BYTES:,} bytes; this is not the file", url
        )
    return raw
