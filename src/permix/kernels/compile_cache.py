"""Compiled code kept on disk, found by the content of everything it was compiled from.

Numba's own cache knows a function by the time stamp of its file. It misses that a function *called* from
another file changed, forgets everything at a reinstallation, and fails where neither the package's folder nor
the home folder can be written. Here an entry is named by a digest of

- the source file of the function and of all files of its package that it imports, directly or not, each with
  its place in the package;
- the files that define the NamedTuples among its arguments, since kernels dispatch on their types, and the
  files that implement contracts for them;
- the signature, the processor, and the versions of Python and Numba.

So an entry can never be stale, one edited file recompiles only what depends on it, and trees of the same
content share their entries. One entry is one file: processes that write at once cannot disturb each other,
and a process that needs what another is compiling waits for it. A file begins with a digest of the rest:
machine code that a disk or a copy has damaged would end the process, so it is compiled again.
"""

from __future__ import annotations

import ast
import hashlib
import os
import pickle
import re
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event, types
from numba.core.caching import CompileResultCacheImpl, dumps
from numba.core.runtime import rtsys

from permix.errors import PermixWarning
from permix.kernels.pipelines import rebuild
from permix.runtime.compiling import COMPILING

# Entries that nobody read or wrote for so many days are removed.
KEPT_DAYS = 60
# A process that compiles the same thing is waited for so long at most.
WAIT_SECONDS = 60.0
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))", re.MULTILINE
)
PACKAGE = Path(__file__).resolve().parents[1]
# They decide where compiled code is kept and what errors are called, not what is compiled.
NOT_COMPILED = {str(PACKAGE / "kernels" / "compile_cache.py"), str(PACKAGE / "errors.py")}
DIGEST_BYTES = 16
# The locks of the entries that this process compiles now.
_CLAIMS: dict[Path, Any] = {}
_IMPLEMENTS = re.compile(r"@implements\(\s*\w+,\s*(?:of=)?(\w+)")
# Files of other packages that implement contracts, by the file that defines the type they do it for.
_IMPLEMENTED_IN: dict[str, set[str]] = {}


def note_implementation(of: type, implementation: Callable[..., object]) -> None:
    """Remember that compiled code which handles ``of`` may contain ``implementation``."""
    file = implementation.__code__.co_filename
    if Path(file).is_relative_to(PACKAGE):
        return  # those of permix are known, imported or not, so that all processes name entries alike
    _IMPLEMENTED_IN.setdefault(_file_of_module(of.__module__), set()).add(file)
    _closure(file)


def cache_folder() -> Path:
    """Return where compiled code is kept: PERMIX_COMPILED if set, else the user's cache folder."""
    chosen = os.environ.get("PERMIX_COMPILED")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("permix", appauthor=False)) / "compiled"


class ContentCache:
    """What a Numba dispatcher asks for compiled code, and gives it to."""

    def __init__(self, function: Callable[..., object], form: str = "", *, wrapped: bool = False) -> None:
        """``wrapped`` says that more is compiled around what was kept, in every process."""
        self._function = function
        self._wrapped = wrapped
        self._form = form
        self._format = _Format(function)
        # Read now, while what is on disk is what was imported: a file may be edited before its first call.
        _closure(function.__code__.co_filename)

    @property
    def cache_path(self) -> str:
        """The folder of all entries."""
        return str(cache_folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled for this signature from the present sources, or None."""
        # Compiled code needs Numba's allocator. Numba loads all that it can compile as well, a fifth of a
        # second, which its compiler does anyway before it begins.
        rtsys.initialize(target_context)
        if self._wrapped:
            target_context.refresh()
        path = self.path(sig, target_context.codegen())
        if path is None:
            COMPILING.begin((self._function, sig))
            return None
        content = _read(path) or self._missing(path, sig)
        if content is None:
            return None
        release(path)
        try:
            return rebuild(target_context, pickle.loads(content))
        except (
            pickle.UnpicklingError,
            EOFError,
            LookupError,
            ValueError,
            AttributeError,
            ImportError,
            RuntimeError,
            TypeError,
        ):
            # A foreign file: what it stands for is compiled again and written over it.
            return None

    def _missing(self, path: Path, sig: Any) -> bytes | None:
        """Return what another process compiles just now; None if it is for this one to do."""
        _watch_failures()
        COMPILING.begin(path)
        try:
            if not self._form:
                from permix.kernels.first_runs import note_missing

                note_missing(self._function, sig)
            claim(path, WAIT_SECONDS)
            content = _read(path)
        except BaseException:  # an interrupt
            release(path)
            raise
        return content

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for this signature."""
        path = self.path(sig, data.codegen)
        if path is None:
            COMPILING.end((self._function, sig))
            return
        try:
            if not self._format.check_cachable(data):
                return
            handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.stem[:40], suffix=".tmp")
            with os.fdopen(handle, "wb") as file:
                content = dumps(self._format.reduce(data))
                file.write(_digest(content) + content)
            os.replace(draft, path)
        except OSError as error:
            _say_not_kept(path.parent, error)
        finally:
            release(path)

    def path(self, sig: Any, codegen: Any) -> Path | None:
        """Return the file of the entry for this signature, there or not yet; None if none is kept."""
        folder = self._folder()
        return None if folder is None else folder / self._entry(sig, codegen)

    def give_up(self, sig: Any, codegen: Any) -> None:
        """Note that something cannot be compiled."""
        path = self.path(sig, codegen)
        if path is None:
            COMPILING.end((self._function, sig))
        else:
            release(path)

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    def disable(self) -> None:
        """Do nothing: the cache is always on."""

    def flush(self) -> None:
        """Do nothing: entries follow the sources, so none is ever out of date."""

    def _folder(self) -> Path | None:
        """Return the folder of entries; None for functions that their files do not tell apart.

        Those typed into a notebook have no file; those made inside a function depend on what it was given.
        """
        told_apart = self._function.__closure__ is None and _content(self._function.__code__.co_filename)[1]
        return usable_folder() if told_apart else None

    def _entry(self, sig: Any, codegen: Any) -> str:
        function = self._function
        files = {function.__code__.co_filename, *_files_of_types(sig.args if hasattr(sig, "args") else sig)}
        digest = hashlib.sha256(
            repr(
                (
                    function.__module__,
                    function.__qualname__,
                    self._form,
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


def claim(path: Path, seconds: float) -> bool:
    """Say that this process compiles an entry; False if another does, and is not done in so many seconds."""
    from filelock import FileLock, Timeout

    global WAIT_SECONDS
    if path in _CLAIMS:
        return True
    lock = FileLock(path.with_suffix(".lock"), thread_local=False)
    try:
        lock.acquire(timeout=seconds, poll_interval=0.05)
    except Timeout:
        if seconds:  # whoever compiles it is stopped or hangs: nothing is waited for any more
            WAIT_SECONDS = 0.0
        return False
    except (OSError, NotImplementedError):  # a file system without locks: both compile it
        return True
    _CLAIMS[path] = lock
    return True


def release(path: Path) -> None:
    """End what began with a missing entry: it is there now, or cannot be compiled."""
    COMPILING.end(path)
    lock = _CLAIMS.pop(path, None)
    if lock is not None:
        lock.release()
        with suppress(OSError):  # on Windows, while another process waits for it
            path.with_suffix(".lock").unlink()


@cache
def _watch_failures() -> None:
    """Give up the claim on what cannot be compiled: Numba tells its cache of success alone."""

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            pass

        def on_end(self, event: Any) -> None:
            if event._exc_details is not None:  # ``is_failed`` says the contrary (Numba 0.61 to 0.68)
                dispatcher, arguments = event.data["dispatcher"], event.data["args"]
                if isinstance(dispatcher._cache, ContentCache):
                    dispatcher._cache.give_up(tuple(arguments), dispatcher.targetctx.codegen())

    event.register("numba:compile", Listener())


def _read(path: Path) -> bytes | None:
    """Return what is in an entry; None where there is none, or not as it was written."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    content = whole[DIGEST_BYTES:]
    return content if content and _digest(content) == whole[:DIGEST_BYTES] else None


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


class _Format(CompileResultCacheImpl):
    """Numba's serialization of compiled code, without its search for a folder."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = self
        self._py_file = function.__code__.co_filename


@cache
def _own_implementations() -> dict[str, set[str]]:
    """Return the files of permix that implement contracts, by the file that defines the type."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*_jit.py")):
        text = _content(str(path))[1]
        for name in set(_IMPLEMENTS.findall(text)):
            for module, names, _ in _IMPORT.findall(text):
                if name in re.findall(r"\w+", names):
                    found.setdefault(_file_of(module, PACKAGE.parent), set()).add(str(path))
    return found


def _implementations() -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((file, tuple(sorted(by))) for file, by in sorted(_IMPLEMENTED_IN.items()))


@cache
def sources_digest(
    files: frozenset[str], implementations: tuple[tuple[str, tuple[str, ...]], ...] = ()
) -> str:
    """Return a digest of the files and of all they are built on."""
    own, others = _own_implementations(), dict(implementations)
    found: set[str] = set()
    waiting = list(files)
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        new = _closure(file) - found
        found |= new
        waiting.extend(by for built_on in new for by in (*own.get(built_on, ()), *others.get(built_on, ())))
    # Places within the package: where that lies changes nothing.
    parts = sorted((Path(file).relative_to(_root_of(file)).as_posix(), _content(file)[0]) for file in found)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@cache
def _closure(file: str) -> frozenset[str]:
    """Return a file with all files it imports, directly or not; their contents are read along the way."""
    found: set[str] = set()
    waiting = [file]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting.extend(_imported(at))
    return frozenset(found)


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
    text = _content(file)[1]
    if Path(file).is_relative_to(PACKAGE):
        # A third of the time of parsing; permix's own imports are all of the plain sort.
        named = [
            name
            for module, names, plain in _IMPORT.findall(text)
            for name in [module or plain, *(f"{module}.{n}" for n in re.findall(r"\w+", names) if module)]
        ]
    else:
        named = list(_parsed_imports(file, text))
    root = _root_of(file)
    if (
        "site-packages" in root.parts
    ):  # everybody's packages lie there: only its own, and permix, are followed
        own = {PACKAGE.name, Path(file).relative_to(root).parts[0]}
        named = [name for name in named if name.split(".")[0] in own]
    found = {path for name in named if (path := _file_of(name, root))}
    return tuple(sorted(found - NOT_COMPILED - {file}))


def _parsed_imports(file: str, text: str) -> Iterator[str]:
    """Yield all modules that a file may import, relative ones by their full names."""
    folders = Path(file).parent.relative_to(_root_of(file)).parts
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folders[: len(folders) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{name.name}" for name in node.names)


@cache
def _root_of(file: str) -> Path:
    """Return the folder that the top package of a file lies in; its own folder if it is in no package."""
    folder = Path(file).parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


@cache
def _file_of(module: str, root: Path) -> str:
    """Return the file of a module of permix, or of the package that lies under ``root``; "" for others."""
    if module.split(".")[0] == PACKAGE.name:
        root = PACKAGE.parent
    base = root.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return str(path)
    return ""


def _file_of_module(module: str) -> str:
    """Return the file that a module was imported from; "" where there is none."""
    return getattr(sys.modules.get(module), "__file__", None) or ""


def _files_of_types(kinds: Any) -> Iterator[str]:
    """Yield the files that define the NamedTuples among types of arguments."""
    for kind in kinds:
        if isinstance(kind, types.BaseNamedTuple):
            yield _file_of_module(kind.instance_class.__module__)
        if isinstance(kind, types.BaseTuple):
            yield from _files_of_types(kind.types if hasattr(kind, "types") else (kind.dtype,))


@cache
def usable_folder() -> Path | None:
    """Return the folder of entries, made and tidied, or None, with a warning, where it cannot be written."""
    folder = cache_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"{folder} cannot be written")
        # Entries are unpickled, as Numba's own are: nobody else may be able to put one here.
        status = folder.stat()
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & stat.S_IWOTH):
            raise PermissionError(f"{folder} can be written by others")
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
