"""Files that are safe: written whole or not at all, and read without trusting them.

A permix archive is a zip of ``manifest.json`` and ``arrays/<name>.npy``. Nothing in it is ever
executed or unpickled; every size is checked before memory is taken. No compressed file of any kind may
unpack to more than one limit, 1 GiB unless the environment variable ``PERMIX_MAX_BYTES`` says otherwise.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import stat
import struct
import sys
import tempfile
import threading
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from permix.errors import DataError, FileFormatError, Message, PermixWarning, Wording

Array = npt.NDArray[Any]
PathLike = str | os.PathLike[str]

FORMAT = "permix"
VERSION = 2
MANIFEST = "manifest.json"
# Keys of the manifest that this module writes; callers use others.
RESERVED = ("format", "version", "permix", "arrays")
# A compressed file that unpacks to more than this is refused unless the user allows more.
MAX_BYTES = 2**30
MAX_BYTES_VARIABLE = "PERMIX_MAX_BYTES"
# Deflate packs no more than this many bytes into one.
_MOST_DEFLATED = 1032
_GZIP_MAGIC = b"\x1f\x8b"
MAX_MANIFEST_BYTES = 64 * 2**20
_CHUNK = 2**20
# How hard members are compressed: labels of draws become 2 % larger than at level 6, in half the time.
FAST = 4

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.\-]*)*")
# The header NumPy writes for plain arrays, and nothing else: no evaluation of any expression.
_HEADER = re.compile(
    r"\{'descr': '(\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9][0-9]{0,5})', 'fortran_order': False, "
    r"'shape': \(((?:[0-9]{1,18},)?(?: [0-9]{1,18},)*(?: [0-9]{1,18})?)\), \} *\n"
)
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
# What the standard library raises on damaged or hostile zips and JSON (RuntimeError includes
# RecursionError and NotImplementedError).
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, LookupError),
    *(OverflowError, RuntimeError, TypeError, MemoryError),
)


def unpacking_limit(max_bytes: int | None = None) -> int:
    """Return the most bytes that a compressed file may unpack to.

    ``max_bytes`` where it is given, else the environment variable ``PERMIX_MAX_BYTES``, else 1 GiB.
    """
    if max_bytes is not None:
        return max_bytes
    said = os.environ.get(MAX_BYTES_VARIABLE, "").strip()
    if not said:
        return MAX_BYTES
    if not said.isdecimal() or int(said) == 0:
        raise DataError(
            f"the environment variable {MAX_BYTES_VARIABLE} is {said!r}; it must be a whole number of bytes, "
            f"such as {4 * 2**30} for 4 GiB"
        )
    return int(said)


def read_unpacked(path: PathLike, max_bytes: int | None = None) -> bytes | bytearray:
    """Return the content of a file, unpacked where it is gzipped (its first bytes tell, not its name)."""
    with open(path, "rb") as handle:
        packed = handle.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        handle.seek(0)
        if not packed:
            return handle.read()
        most, content = unpacking_limit(max_bytes), bytearray()
        try:
            with gzip.GzipFile(fileobj=handle) as stream:
                while chunk := stream.read(_CHUNK):
                    content += chunk
                    if len(content) > most:
                        raise FileFormatError(too_large(most, f"{os.fspath(path)}: "), path)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            said = f"the gzip stream is truncated or damaged ({error}); fetch the file again"
            raise FileFormatError(f"{os.fspath(path)}: {said}", path) from error
        return content


def too_large(most: int, before: str = "") -> Message:
    """Say that a file would unpack to more than ``most`` bytes, and how to allow it."""
    return Message(
        f"{before}it would unpack to more than {most} bytes; if you trust it, allow more by the environment "
        f"variable {MAX_BYTES_VARIABLE}",
        Wording(" (for a fitted model also by max_bytes=).", "."),
    )


@contextmanager
def atomic_writer(path: PathLike) -> Iterator[IO[bytes]]:
    """Yield a binary file that takes the place of ``path`` only when all went well.

    The bytes go to a temporary file in the same folder, reach the disk, and are then renamed. If anything
    fails, the file that was there before is untouched, and an OSError names ``path``; what a killed process
    left of an earlier write to the same name is removed.
    """
    target = Path(path)
    check_target(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        _remove_leftovers(target)
        with _open_locked(temporary) as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
            if sys.platform != "win32":  # renamed while it is locked: nobody takes it for a leftover
                os.replace(temporary, target)
        if sys.platform == "win32":
            os.replace(temporary, target)
        _sync_folder(target.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        own = isinstance(error, OSError) and error.filename in (None, os.fspath(temporary))
        if own and isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def _open_locked(path: Path) -> IO[bytes]:
    """Open a file for writing, and lock it where that is possible: the lock ends with the process."""
    while True:
        handle = open(path, "wb")  # noqa: SIM115 (the caller closes it)
        if not _try_lock(handle) or _is_at(handle, path):
            return handle
        handle.close()  # taken for a leftover and removed before it was locked


def _is_at(handle: IO[bytes], path: Path) -> bool:
    """Whether an open file is what its name stands for now."""
    try:
        return os.path.samestat(os.fstat(handle.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _try_lock(handle: IO[bytes]) -> bool:
    """Lock an open file; False where another process holds the lock or there are no locks."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of writes to ``target`` whose process has ended."""
    mine = re.compile(re.escape(f".{target.name}.") + r"\d+-\d+\.tmp")
    for entry in list(os.scandir(target.parent)):
        if not mine.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
            continue
        try:
            if sys.platform == "win32":  # where files that are open cannot be removed
                os.unlink(entry.path)
                continue
            with open(entry.path, "rb") as leftover:
                if _try_lock(leftover):
                    os.unlink(entry.path)
        except OSError:  # gone already, in use, or somebody else's: no reason not to write
            continue


def check_target(path: PathLike) -> None:
    """Refuse a path that no file can be put at: a folder, a device, or one in a folder that is not there.

    Writing replaces what is there by a rename, which would turn a device such as ``/dev/null`` into a file.
    """
    target = Path(path)
    if target.is_dir():
        raise DataError(f"{target} is a folder; give the name of a file")
    if target.exists() and not target.is_file():
        raise DataError(f"{target} is not an ordinary file and is left alone; give another name")
    if not target.parent.is_dir():
        raise DataError(f"the folder {target.parent} does not exist; make it first")
    try:  # permissions alone do not tell: a file system may be read-only, or full
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        why = f"no file can be written in {target.parent} ({error.strerror})"
        raise DataError(f"{target}: {why}; give another place") from error


def _sync_folder(folder: Path) -> None:
    """Make the rename itself last through a power cut, where folders can be synced (not on Windows)."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_archive(
    path: PathLike,
    manifest: Mapping[str, Any],
    arrays: Mapping[str, Array],
    *,
    max_bytes: int | None = None,
    tell: Callable[[int], object] | None = None,
) -> None:
    """Write ``manifest`` and ``arrays`` as one permix archive, whole or not at all.

    The same content gives the same bytes. The manifest holds what JSON holds, and its ``kind`` says what the
    file is; arrays are boolean, integer, real or of strings. A warning says when they take more than readers
    allow by default, or by ``max_bytes``. ``tell`` is called with numbers of bytes as they are done.
    """
    from permix import __version__

    taken = [key for key in RESERVED if key in manifest]
    if taken:
        raise DataError(f"manifest keys {taken} are written by permix itself; choose other names.")
    if not isinstance(manifest.get("kind"), str):
        raise DataError("manifest['kind'] must be a string that says what the file is.")
    ready = {name: _writable(name, array) for name, array in arrays.items()}
    n_bytes, most = sum(array.nbytes for array in ready.values()), unpacking_limit(max_bytes)
    if n_bytes > most:
        warnings.warn(
            f"{os.fspath(path)} unpacks to {n_bytes} bytes; readers take {most} unless they are told "
            f"otherwise, by max_bytes= or the environment variable {MAX_BYTES_VARIABLE}",
            PermixWarning,
            stacklevel=3,
        )
    head = {"format": FORMAT, "version": VERSION, "permix": __version__}
    text = _to_json({**head, **manifest, "arrays": list(ready)})
    with atomic_writer(path) as handle, zipfile.ZipFile(handle, "w") as archive:
        archive.writestr(_member(MANIFEST), text)
        for name in ready:
            # Zip64 only where it may be needed: sizes beyond 32 bits are known only afterwards.
            large = ready[name].nbytes > 2**30
            with archive.open(_member(f"arrays/{name}.npy"), "w", force_zip64=large) as member:
                file = member if tell is None else _Told(member, tell)
                np.lib.format.write_array(file, ready[name], version=(1, 0), allow_pickle=False)


class _Told:
    """A file that says how much is written to it, in small parts."""

    def __init__(self, file: Any, tell: Callable[[int], object]) -> None:
        self._file, self._tell = file, tell

    def write(self, content: Any) -> int:
        view = memoryview(content).cast("B")
        for first in range(0, len(view), _CHUNK):
            self._file.write(view[first : first + _CHUNK])
            self._tell(min(_CHUNK, len(view) - first))
        return len(view)


def _member(name: str) -> zipfile.ZipInfo:
    # A fixed date: the same content shall give the same bytes.
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    info._compresslevel = FAST  # type: ignore[attr-defined]  # has a public name in Python 3.13 only
    info.external_attr = 0o644 << 16
    return info


def _to_json(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"the manifest cannot be written as JSON: {error}") from error


def _writable(name: str, array: Array) -> Array:
    """Return the array as it is stored (C order, little-endian), or say why it cannot be."""
    if not _NAME.fullmatch(name):
        raise DataError(f"array name {name!r}: use letters, digits, '_', '.', '-' and '/' only.")
    array = np.asarray(array)
    if array.dtype.kind == "O":
        way_out = "turn it into numbers or strings first."
        raise DataError(f"array {name!r} holds Python objects, which cannot be stored safely; {way_out}")
    if array.dtype.kind == "U":
        if array.dtype.itemsize == 0:
            array = array.astype("<U1")
        _check_text(array, f"array {name!r}")
    array = np.ascontiguousarray(array).reshape(array.shape)
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if not _HEADER.match(f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': (), }}\n"):
        raise DataError(f"array {name!r} has type {array.dtype}, which the format does not hold.")
    return array


def _check_text(array: Array, what: str) -> None:
    native = array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
    codes = native.reshape(-1).view(np.uint32)
    if codes.size and (codes.max() > 0x10FFFF or np.any((codes >= 0xD800) & (codes < 0xE000))):
        raise DataError(f"{what} holds text with invalid characters (unpaired surrogates).")


def read_archive(
    path: PathLike,
    *,
    kind: str | None = None,
    max_bytes: int | None = None,
    with_arrays: bool = True,
    tell: Callable[[int, int], object] | None = None,
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the manifest and the arrays of a permix archive, which is not trusted.

    Anything but ``kind``, and what unpacks to more than ``max_bytes`` (left out, 1 GiB or what the
    environment variable ``PERMIX_MAX_BYTES`` says), is refused by a FileFormatError. Without ``with_arrays``
    these are not looked at. ``tell`` is called with the bytes read of each array and those of all.
    """
    # Opened first: that a file is missing or forbidden is no matter of its format.
    with open(path, "rb") as handle:
        try:
            with zipfile.ZipFile(handle) as archive:
                check_sizes(archive, os.fstat(handle.fileno()).st_size, unpacking_limit(max_bytes))
                members = _checked_members(archive)
                if MANIFEST not in members:
                    raise FileFormatError("not a permix file (it has no manifest).")
                manifest = parse_json(bytes(_read_bytes(archive, members.pop(MANIFEST))))
                _check_manifest(manifest, set(members), kind)
                arrays, of_all = {}, sum(info.file_size for info in members.values())
                for name in manifest["arrays"] if with_arrays else ():
                    arrays[name] = _read_array(archive, name, members[name])
                    if tell is not None:
                        tell(members[name].file_size, of_all)
        except FileFormatError as error:
            raise FileFormatError(f"{os.fspath(path)}: {error}", path) from error.__cause__
        except _DAMAGE as error:
            said = f"not a permix file, or damaged ({str(error) or type(error).__name__})."
            raise FileFormatError(f"{os.fspath(path)}: {said}", path) from error
    return manifest, arrays


def check_sizes(archive: zipfile.ZipFile, n_bytes: int, most: int) -> None:
    """Refuse a zip of ``n_bytes`` by what its directory declares, before anything is unpacked."""
    packed = unpacked = 0
    for info in archive.infolist():
        shown = repr(info.filename[:80])
        packed += info.compress_size
        unpacked += info.file_size
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FileFormatError(f"member {shown} is compressed by a method permix does not use.")
        if info.file_size > _MOST_DEFLATED * (info.compress_size + 1):
            declared = f"declares {info.file_size} bytes, which its {info.compress_size} cannot hold"
            raise FileFormatError(f"member {shown} {declared}.")
    if packed > n_bytes:
        raise FileFormatError(f"its members declare {packed} bytes, but the file has {n_bytes}.")
    if unpacked > most:
        raise FileFormatError(too_large(most))


def _checked_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the members by array name, after checking all that the directory of the zip declares."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        shown = repr(info.filename[:80])
        name = info.filename.removeprefix("arrays/").removesuffix(".npy")
        known = info.filename == (MANIFEST if name == MANIFEST else f"arrays/{name}.npy")
        if not known or not _NAME.fullmatch(name) or info.orig_filename != info.filename:
            raise FileFormatError(f"unexpected member {shown}.")
        if name in members:
            raise FileFormatError(f"member {shown} appears twice.")
        mode = info.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise FileFormatError(f"member {shown} is a link or another special file.")
        if info.flag_bits & 0x1:
            raise FileFormatError(f"member {shown} is encrypted.")
        if name == MANIFEST and info.file_size > MAX_MANIFEST_BYTES:
            raise FileFormatError(f"the manifest declares {info.file_size} bytes.")
        members[name] = info
    return members


def _read_bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytearray:
    """Unpack a member; memory grows with what is really there, not with what was declared."""
    content = bytearray()
    with archive.open(info) as member:
        while chunk := member.read(_CHUNK):
            content += chunk
    if len(content) != info.file_size:
        raise FileFormatError(f"member {info.filename!r} is cut short.")
    return content


def parse_json(content: bytes) -> dict[str, Any]:
    """Parse a JSON object; repeated keys, NaN, infinity and unpaired surrogates are refused."""
    try:
        text = content.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite
        )
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except FileFormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"the JSON text is malformed ({error}).") from error
    if not isinstance(value, dict):
        raise FileFormatError("the JSON text is not an object.")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise FileFormatError("a key of the JSON text appears twice.")
    return value


def _refuse_constant(name: str) -> float:
    raise FileFormatError(f"the JSON text holds {name}, which is no JSON number.")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise FileFormatError("the JSON text holds a number too large for a float.")
    return value


def _check_manifest(manifest: dict[str, Any], found: set[str], kind: str | None) -> None:
    check_version(manifest, FORMAT, VERSION)
    if not isinstance(manifest.get("kind"), str) or not isinstance(manifest.get("permix"), str):
        raise FileFormatError("the manifest does not say what the file is.")
    if kind is not None and manifest["kind"] != kind:
        raise FileFormatError(f"this is a file of kind {manifest['kind'][:80]!r}, not {kind!r}.")
    listed = manifest.get("arrays")
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise FileFormatError("the manifest does not list the arrays.")
    if set(listed) != found or len(listed) != len(found):
        odd = sorted(set(listed) ^ found)[:5]
        raise FileFormatError(f"the arrays are not those the manifest lists (see {odd}).")


def check_version(manifest: Mapping[str, Any], name: str, version: int) -> None:
    """Refuse a manifest of another format or of a newer version; the message says which permix wrote it."""
    if manifest.get("format") != name:
        raise FileFormatError(f"not a file of the format {name!r}.")
    found = manifest.get("version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise FileFormatError("the format version is missing or no positive integer.")
    if found > version:
        by = f"written by permix {str(manifest.get('permix'))[:40]} with format version {found}"
        raise FileFormatError(f"{by}; this permix reads up to {version}: update permix.")


def _read_array(archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> Array:
    with archive.open(info) as member:
        start = member.read(len(_NPY_MAGIC) + 2)
        if start[:-2] != _NPY_MAGIC or len(start) != len(_NPY_MAGIC) + 2:
            raise FileFormatError(f"array {name!r} is no .npy file of version 1.0.")
        header_length = int.from_bytes(start[-2:], "little")
        header = member.read(header_length).decode("latin-1")
    match = _HEADER.fullmatch(header)
    if match is None:
        raise FileFormatError(f"array {name!r} has a header that permix does not write: {header[:80]!r}.")
    dtype = np.dtype(match[1])
    shape = tuple(int(size) for size in match[2].replace(",", " ").split())
    offset = len(start) + header_length
    # An empty array may declare any other sizes, since zero times anything is zero: keep them sane.
    if len(shape) > 32 or any(size >= 2**48 for size in shape):
        raise FileFormatError(f"array {name!r} declares the absurd shape {shape[:5]}.")
    if math.prod(shape) * dtype.itemsize != info.file_size - offset:
        raise FileFormatError(f"array {name!r} declares shape {shape}, which is not the size of its data.")
    content = _read_bytes(archive, info)
    array = np.frombuffer(content, dtype, offset=offset).reshape(shape)
    if dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise FileFormatError(f"array {name!r} holds bytes that are neither true nor false.")
    if dtype.kind == "U":
        try:
            _check_text(array, f"array {name!r}")
        except DataError as error:
            raise FileFormatError(str(error)) from error
    return np.require(array, dtype.newbyteorder("="), "A")
