"""What the first run of a command compiles, known beforehand, so that several processes can do it at once.

``first_runs.json`` lists, for each command that compiles for long, the kernels that Python calls in a default
run, with their signatures. When one of them is missing from the cache, processes begin at the end of the list
while the run itself goes on from the beginning; whoever needs what another is compiling waits for it. A test
compares the list with what runs use; ``python -m benchmarks.start --list`` writes it anew.
"""

from __future__ import annotations

import importlib
import inspect
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from numba.core import types

from permix.errors import PermixWarning
from permix.kernels import compile_cache
from permix.kernels.by_reference import referred
from permix.kernels.jit import kernel
from permix.runtime.compiling import COMPILING
from permix.runtime.threads import n_processors

FILE = Path(__file__).with_name("first_runs.json")
# Set to 1, nobody compiles for others: neither in the processes started here, nor where that is not wanted.
ALONE = "PERMIX_COMPILE_ALONE"
# More processes wait for each other's inner kernels.
MOST_PROCESSES = 4
# A process of its own costs a second of start: it is not worth it for fewer kernels than this.
WORTH_PROCESSES = 10
POLL_SECONDS = 0.2
REPORT = "permix compiled "
_LAUNCH = "from permix.kernels.first_runs import compile_for_parent as run; import sys; run(sys.argv[1:])"


class Planned(NamedTuple):
    """A kernel that Python calls, for one signature."""

    function: str  # "module:name"
    signature: tuple[Any, ...]  # in the words of :func:`written`

    @property
    def dispatcher(self) -> Any:
        """The compiler of the kernel."""
        module, _, name = self.function.partition(":")
        found = getattr(importlib.import_module(module), name)
        if inspect.isfunction(found):  # small tasks run it as Python
            return kernel(found)
        return getattr(found, "_dispatcher", found)  # of a ufunc

    def place(self) -> tuple[Any, tuple[Any, ...], Path | None]:
        """Return its compiler, the types of its arguments, and the file that it is kept in."""
        dispatcher, kinds = self.dispatcher, tuple(map(as_type, self.signature))
        kept = getattr(dispatcher, "_cache", None) or dispatcher.cache
        return dispatcher, kinds, kept.path(kinds, _codegen())


@cache
def _codegen() -> Any:
    from numba.core.registry import cpu_target

    return cpu_target.target_context.codegen()


def written(kind: Any) -> Any:
    """Write a type of Numba as JSON can hold it."""
    if isinstance(kind, types.BaseTuple):
        parts = [written(part) for part in kind]
        named = getattr(kind, "instance_class", None)
        return parts if named is None else {f"{named.__module__}:{named.__qualname__}": parts}
    if isinstance(kind, types.Array):
        return f"{kind.dtype}[{kind.ndim}]{kind.layout}{'' if kind.mutable else ' readonly'}"
    return str(kind)


def as_type(text: Any) -> Any:
    """Return the type that :func:`written` wrote."""
    if isinstance(text, list):
        return types.BaseTuple.from_types([as_type(part) for part in text])
    if isinstance(text, dict):
        ((place, parts),) = text.items()
        module, _, name = place.partition(":")
        named = getattr(importlib.import_module(module), name)
        return referred(types.BaseTuple.from_types([as_type(part) for part in parts], named))
    if "[" in text:
        dtype, _, rest = text.partition("[")
        return types.Array(as_type(dtype), int(rest[0]), rest[2], readonly="readonly" in rest)
    return {"bool": types.boolean, "NumPyRandomGeneratorType": types.npy_rng}.get(text) or getattr(
        types, text
    )


@contextmanager
def recording(record: list[Planned]) -> Iterator[None]:
    """Note the kernels that Python calls, in the order of their first calls; compiled or not."""
    load = compile_cache.ContentCache.load_overload

    def noted(self: Any, sig: Any, target_context: Any) -> Any:
        if not self._form:
            record.append(planned(self._function, sig))
        return load(self, sig, target_context)

    compile_cache.ContentCache.load_overload = noted  # type: ignore[method-assign]
    try:
        yield
    finally:
        compile_cache.ContentCache.load_overload = load  # type: ignore[method-assign]


def planned(function: Callable[..., object], sig: Any) -> Planned:
    """Return a call of a kernel as lists have it."""
    arguments = sig.args if hasattr(sig, "args") else sig
    return Planned(f"{function.__module__}:{function.__qualname__}", tuple(map(written, arguments)))


@cache
def first_runs() -> dict[str, list[Planned]]:
    """Return the list of each command."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: [Planned(place, tuple(kinds)) for place, kinds in run] for name, run in found.items()}


def write_first_runs(runs: dict[str, list[Planned]]) -> None:
    """Write the lists, one kernel a line."""
    lines = [
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(call) for call in run) + "\n]"
        for name, run in runs.items()
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


_missing: list[Planned] = []
_started: set[str] = set()


def note_missing(function: Callable[..., object], sig: Any) -> None:
    """Let other processes help as soon as what is missing tells which command runs for the first time."""
    if os.environ.get(ALONE) or n_processors() < 2 or not _may_start():
        return
    _missing.append(planned(function, sig))
    possible = [name for name, run in first_runs().items() if all(call in run for call in _missing)]
    if len(possible) == 1 and not _started:
        _started.add(possible[0])
        if len(first_runs()[possible[0]]) < WORTH_PROCESSES:
            return
        start(possible, min(MOST_PROCESSES, n_processors()) - 1)


def _may_start() -> bool:
    """Say whether this process may start others: it is Python's own, and nobody's worker."""
    worker = multiprocessing.current_process().name != "MainProcess"
    return bool(sys.executable) and not getattr(sys, "frozen", False) and not worker


def start(names: Sequence[str], n_processes: int) -> list[threading.Thread]:
    """Compile what the first runs of some commands need in processes of their own.

    Returns threads that follow the processes, and end with them.
    """
    environment = {**os.environ, ALONE: "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-c", _LAUNCH, *names]
    pipe = subprocess.PIPE
    threads = []
    for _ in range(n_processes):
        said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (_follow ends it)
        try:
            # They end when this process does, since their standard input ends then.
            process = subprocess.Popen(
                command, env=environment, stdin=pipe, stdout=pipe, stderr=said, text=True
            )
        except OSError as error:
            _say_failed(str(error))
            break
        follow = threading.Thread(target=_follow, args=[process, said], name="permix-compiling", daemon=True)
        threads.append(follow)
        follow.start()
    return threads


def _follow(process: subprocess.Popen[str], said: IO[str]) -> None:
    """Take over what a process reports; say so if it failed."""
    assert process.stdout is not None
    with said, process:
        for line in process.stdout:
            if line.startswith(REPORT):
                COMPILING.done, COMPILING.total = map(int, line.removeprefix(REPORT).split())
        code = process.wait()
        said.seek(0)
        text = said.read().strip()
    if code > 0 and "KeyboardInterrupt" not in text:
        _say_failed(text.rpartition("\n")[2] or f"it ended with {code}")


def _say_failed(why: str) -> None:
    warnings.warn(
        f"a process that compiles for this one failed, which costs time and nothing else: {why}",
        PermixWarning,
        stacklevel=2,
    )


def compile_for_parent(names: Iterable[str]) -> None:
    """Compile all that the lists of some commands have, the last first, and report how much is there."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    places = [call.place() for name in names for call in reversed(first_runs()[name])]
    waiting = {path: (dispatcher, kinds) for dispatcher, kinds, path in places if path is not None}
    paths = list(waiting)
    threading.Thread(target=_keep_reporting, args=[paths], daemon=True).start()
    while waiting:
        for path, (dispatcher, kinds) in list(waiting.items()):
            if path.exists():
                del waiting[path]
            elif compile_cache.claim(path, 0):
                dispatcher.compile(kinds)
                del waiting[path]
        time.sleep(POLL_SECONDS if waiting else 0)
    _report(paths)


def _report(paths: Sequence[Path]) -> None:
    """Write in one piece how many entries are there: the process may end at any moment."""
    os.write(1, f"{REPORT}{sum(path.exists() for path in paths)} {len(paths)}\n".encode())


def _keep_reporting(paths: Sequence[Path]) -> None:
    while True:
        _report(paths)
        time.sleep(POLL_SECONDS)


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)
