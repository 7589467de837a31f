"""Compiled code kept on disk, found by the content of everything it was compiled from.

Numba's own cache knows a function by the time stamp of its file. It misses that a function *called* from
another file changed, forgets everything at a reinstallation, and fails where neither the package's folder nor
the home folder can be written. Here an entry is named by a digest of

- the source file of the function and of all files of its package that it imports, directly or not;
- the files that define the NamedTuples among its arguments, since kernels dispatch on their types, and the
  files that implement contracts for them;
- the signature, the processor, and the versions of Python and Numba.

So an entry can never be stale, one edited file recompiles only what depends on it, and trees of the same
content share their entries. One entry is one file: processes that write at once cannot disturb each other.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, dumps

from permix.errors import PermixWarning

# Entries that nobody read or wrote for so many days are removed.
KEPT_DAYS = 60
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))", re.MULTILINE
)
# Files that implement contracts, by the file that defines the type they implement them for.
_IMPLEMENTED_IN: dict[str, set[str]] = {}


def note_implementation(of: type, implementation: Callable[..., object]) -> None:
    """Remember that compiled code which handles ``of`` may contain ``implementation``."""
    _IMPLEMENTED_IN.setdefault(_file_of(of.__module__), set()).add(implementation.__code__.co_filename)


def cache_folder() -> Path:
    """Return where compiled code is kept: PERMIX_COMPILED if set, else the user's cache folder."""
    chosen = os.environ.get("PERMIX_COMPILED")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("permix", appauthor=False)) / "compiled"


class ContentCache:
    """What a Numba dispatcher asks for compiled code, and gives it to."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._format = _Format(function)

    @property
    def cache_path(self) -> str:
        """The folder of all entries."""
        return str(cache_folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled for this signature from the present sources, or None."""
        target_context.refresh()
        folder = self._folder()
        if folder is None:
            return None
        path = folder / self._entry(sig, target_context.codegen())
        try:
            content = path.read_bytes()
        except OSError:
            return None
        try:
            return self._format.rebuild(target_context, pickle.loads(content))
        except (pickle.UnpicklingError, EOFError, ValueError, AttributeError, ImportError, IndexError):
            # A torn or foreign file: what it stands for is compiled again and written over it.
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for this signature."""
        folder = self._folder()
        if folder is None or not self._format.check_cachable(data):
            return
        path = folder / self._entry(sig, data.codegen)
        try:
            handle, draft = tempfile.mkstemp(dir=folder, prefix=path.stem[:40], suffix=".tmp")
            with os.fdopen(handle, "wb") as file:
                file.write(dumps(self._format.reduce(data)))
            os.replace(draft, path)
        except OSError as error:
            _say_not_kept(folder, error)

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    def disable(self) -> None:
        """Do nothing: the cache is always on."""

    def flush(self) -> None:
        """Do nothing: entries follow the sources, so none is ever out of date."""

    def _folder(self) -> Path | None:
        """Return the folder of entries; None for functions typed into a notebook, which have no file."""
        return _usable_folder() if _content(self._function.__code__.co_filename)[1] else None

    def _entry(self, sig: Any, codegen: Any) -> str:
        function = self._function
        files = {function.__code__.co_filename, *_files_of_types(sig.args if hasattr(sig, "args") else sig)}
        digest = hashlib.sha256(
            repr(
                (
                    function.__module__,
                    function.__qualname__,
                    function.__code__.co_firstlineno,
                    str(sig),
                    codegen.magic_tuple(),
                    numba.__version__,
                    sys.version_info[:3],
                    sources_digest(frozenset(files), _implementations()),
                )
            ).encode()
        )
        return f"{function.__name__}-{digest.hexdigest()[:40]}.bin"


class _Format(CompileResultCacheImpl):
    """Numba's serialization of compiled code, without its search for a folder."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = self
        self._py_file = function.__code__.co_filename


def _implementations() -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((file, tuple(sorted(by))) for file, by in sorted(_IMPLEMENTED_IN.items()))


@cache
def sources_digest(
    files: frozenset[str], implementations: tuple[tuple[str, tuple[str, ...]], ...] = ()
) -> str:
    """Return a digest of the files and of all they are built on."""
    implemented_in = dict(implementations)
    found: set[str] = set()
    waiting = list(files)
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        waiting.extend(_imported(file))
        waiting.extend(implemented_in.get(file, ()))
    # Contents alone, in an order that does not hang on where the package lies.
    return hashlib.sha256("".join(sorted(_content(file)[0] for file in found)).encode()).hexdigest()


@cache
def _content(file: str) -> tuple[str, str]:
    """Return the digest and the text of a file, empty where there is none."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError:
        text = ""
    return hashlib.sha256(text.encode()).hexdigest(), text


@cache
def _imported(file: str) -> tuple[str, ...]:
    """Return the files, of permix and of the package that ``file`` belongs to, that it imports."""
    found = []
    for module, names, plain in _IMPORT.findall(_content(file)[1]):
        for candidate in [
            module or plain,
            *(f"{module}.{name}" for name in re.findall(r"\w+", names) if module),
        ]:
            path = _file_of(candidate)
            if path and path != file:
                found.append(path)
    return tuple(found)


@cache
def _file_of(module: str) -> str:
    """Return the file of a module of permix or of a package that lies beside its tests; "" for all others."""
    top, *rest = module.split(".")
    if not top or top in sys.stdlib_module_names:
        return ""
    package = sys.modules.get(top)
    folders = getattr(package, "__path__", None)
    if folders is None or ("site-packages" in (getattr(package, "__file__", None) or "") and top != "permix"):
        return getattr(package, "__file__", None) or "" if package is not None and not rest else ""
    for folder in folders:
        base = Path(folder, *rest)
        for path in (base.with_suffix(".py"), base / "__init__.py") if rest else (base / "__init__.py",):
            if path.is_file():
                return str(path)
    return ""


def _files_of_types(kinds: Any) -> Iterator[str]:
    """Yield the files that define the NamedTuples among types of arguments."""
    for kind in kinds:
        if isinstance(kind, types.BaseNamedTuple):
            yield _file_of(kind.instance_class.__module__)
        if isinstance(kind, types.BaseTuple):
            yield from _files_of_types(kind.types if hasattr(kind, "types") else (kind.dtype,))


@cache
def _usable_folder() -> Path | None:
    """Return the folder of entries, made and tidied, or None, with a warning, where it cannot be written."""
    folder = cache_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"{folder} cannot be written")
        _remove_old(folder)
    except OSError as error:
        _say_not_kept(folder, error)
        return None
    return folder


def _remove_old(folder: Path) -> None:
    """Remove entries that have not been used for long; at most once a day."""
    mark = folder / "tidied"
    now = time.time()
    if mark.exists() and now - mark.stat().st_mtime < 86_400:
        return
    mark.touch()
    for entry in folder.iterdir():
        try:
            status = entry.stat()
            if now - max(status.st_mtime, status.st_atime) > KEPT_DAYS * 86_400:
                entry.unlink()
        except FileNotFoundError:  # another process was quicker
            continue


@cache
def _say_not_kept(folder: Path, error: OSError) -> None:
    warnings.warn(
        f"compiled code is not kept, so every start compiles again: {error.strerror or error} ({folder}). "
        "Set PERMIX_COMPILED to a folder that can be written.",
        PermixWarning,
        stacklevel=2,
    )
