"""Where work on shards of data runs: in this process, or on the workers of a Dask cluster (``on_dask``).

A shard is made where it is needed, by its recipe, and kept there: a sweep sends what is shared and gets back
what is reduced. Whoever loses a shard, because its process died or memory was short, makes it anew; so work
must depend on the shard and on what is shared alone, and may keep in the shard only what can be found again.
"""

from __future__ import annotations

import pickle
import tempfile
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from permix.errors import PermixError, ShardError
from permix.runtime.threads import run_in_threads, threads_here

Reduce = Callable[[Any, Any], Any]


class Recipe(NamedTuple):
    """How to make a shard anew, anywhere: a function of a module, and what it takes."""

    token: str  # the same for the same shard of the same data
    name: str  # what messages call it
    build: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    hint: str = ""  # what may be done where it cannot be made

    def make(self) -> Any:
        """Make the shard; errors name it."""
        try:
            return self.build(*self.arguments)
        except Exception as error:
            reason = str(error)
            if (
                not isinstance(error, PermixError | OSError) or not reason
            ):  # such as of a library that reads files
                reason = f"{type(error).__name__}: {reason}".removesuffix(": ")
            named = reason if reason.startswith(self.name) else f"{self.name}: {reason}"
            raise ShardError(f"{named}{self.hint}") from error


def new_token() -> str:
    """Return a name that no other data have."""
    return uuid.uuid4().hex


class Executor(Protocol):
    """What fits need of an engine."""

    #: Whether work is done in other processes, so that more than shards may be left to it.
    remote: bool

    def map_shards(
        self,
        work: Callable[[Any, Any], Any],
        shards: Sequence[Recipe],
        shared: Any = None,
        reduce: Reduce | None = None,
    ) -> Any:
        """Return ``work(shard, shared)`` of all shards as a list, or reduced, in the order of the shards.

        Neighbors may be reduced before others, so ``reduce`` must be associative, to the last bit where
        results are to be the same everywhere: as integers and sums on grids (``runtime.exact_sums``) are.
        """

    def forget(self, shards: Sequence[Recipe]) -> None:
        """Let go of the shards that are kept."""


class Held:
    """Shards that a process keeps: the first ``most`` in memory, the others in temporary files of its own.

    So are those for which there is no ``room``. Sweeps go through all shards in turn, so that keeping those
    used last would keep none until its turn. What work found out about a shard is kept in memory alone.
    """

    def __init__(self, most: int | None = None, room: Callable[[], bool] = lambda: True) -> None:
        self.most, self._room = most, room
        self._kept: dict[str, Any] = {}
        self._files: dict[str, Path] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()

    def get(self, recipe: Recipe) -> Any:
        """Return a shard, made if it is not here."""
        token = recipe.token
        with self._lock:
            if token in self._kept:
                return self._kept[token]
            file = self._files.get(token)
        if file is not None:
            return pickle.loads(file.read_bytes())
        made = recipe.make()  # not under the lock: others need theirs
        room = self._room()
        with self._lock:
            if room and (self.most is None or len(self._kept) < self.most):
                self._kept[token] = made
                return made
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="permix-shards-")  # others cannot write
            file = Path(self._folder.name, f"{len(self._files)}-{token}")
        file.write_bytes(pickle.dumps(made, protocol=pickle.HIGHEST_PROTOCOL))
        with self._lock:
            self._files[token] = file
        return made

    def forget(self, tokens: Sequence[str]) -> None:
        """Let go of some."""
        with self._lock:
            for token in tokens:
                self._kept.pop(token, None)
                file = self._files.pop(token, None)
                if file is not None:
                    file.unlink(missing_ok=True)


class InOrder:
    """Results that come in any order, taken in theirs: a list, or reduced as soon as it is their turn."""

    def __init__(self, reduce: Reduce | None) -> None:
        self._reduce, self._waiting, self._next = reduce, dict[int, Any](), 0
        self._results: list[Any] = []
        self._lock = threading.Lock()

    def add(self, index: int, result: Any) -> None:
        """Take one in."""
        with self._lock:
            self._waiting[index] = result
            while self._next in self._waiting:
                result = self._waiting.pop(self._next)
                self._next += 1
                if self._reduce is None or not self._results:
                    self._results.append(result)
                else:
                    self._results[0] = self._reduce(self._results[0], result)

    @property
    def result(self) -> Any:
        """What came of all."""
        return self._results if self._reduce is None else self._results[0]


class Here:
    """This process: shards one after another, or several at once in threads.

    Parameters
    ----------
    n_jobs : int, optional
        Shards at the same time; left out, as many as there are processors. 1: one after another.
    most_held : int, optional
        Shards kept in memory; others wait in temporary files (``TMPDIR``). Left out, all are in memory.
    """

    remote = False

    def __init__(self, n_jobs: int | None = None, most_held: int | None = None) -> None:
        self.n_jobs = n_jobs
        self._held = Held(most_held)

    def map_shards(
        self,
        work: Callable[[Any, Any], Any],
        shards: Sequence[Recipe],
        shared: Any = None,
        reduce: Reduce | None = None,
    ) -> Any:
        """Return ``work(shard, shared)`` of all shards as a list, or reduced, in the order of the shards."""
        found = InOrder(reduce)

        def one(index: int) -> None:
            found.add(index, work(self._held.get(shards[index]), shared))

        if len(shards) == 1 or threads_here(self.n_jobs) == 1:  # all threads for the rows of one shard
            for index in range(len(shards)):
                one(index)
        else:
            run_in_threads(one, range(len(shards)), self.n_jobs)
        return found.result

    def forget(self, shards: Sequence[Recipe]) -> None:
        """Let go of the shards that are kept."""
        self._held.forget([shard.token for shard in shards])
