"""The workers of a Dask cluster (extra ``dask``): each keeps its shards, and sends sums.

What travels is what ``dask.distributed`` serializes between one's own client and workers: functions of
permix by name, recipes of shards (paths and options), parameters, and sums. Shards are divided among threads
of workers, a run of neighbors to each, and stay there. Where results are reduced, a thread reduces those of
its own shards and sends one, so that what travels does not depend on the number of shards. A worker that dies
takes no result along: its work goes to others, which make the shards anew.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce as fold
from time import monotonic
from typing import Any, NamedTuple

from permix.errors import DataError, ShardError
from permix.runtime.allocation import keep_freed_memory
from permix.runtime.executors import Held, InOrder, Recipe, Reduce
from permix.runtime.fingerprint import fingerprint
from permix.runtime.threads import at_most

# How often work on one shard may be lost with its worker before something else must be wrong.
MOST_LOSSES = 20
# How long a result that is there may take to arrive; longer after each loss.
RESULT_SECONDS = 10.0
WAIT_SECONDS = 60.0
FORGET_SECONDS = 5.0
LOOK_SECONDS = 1.0
# How long Dask may hold work back from a worker whose memory is nearly full.
PAUSED_SECONDS = 60.0
# Share of a worker's memory that shards may fill with all else; Dask pauses workers at 0.8.
MOST_FILLED = 0.5
# Bytes for each thread of a worker that may keep memory which arrays leave.
LEAST_TO_KEEP = 10**9


def _is_room() -> bool:
    """Say whether this worker has memory for another shard; Dask gives no work to one that is nearly full."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # not on a worker
        return True
    limit = worker.memory_manager.memory_limit
    return not limit or worker.monitor.get_process_memory() < MOST_FILLED * limit


def _keep_memory() -> None:
    """Keep what arrays leave, on a worker with memory to spare; one with little gives it back."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # not on a worker
        return
    limit = worker.memory_manager.memory_limit
    if not limit or limit >= LEAST_TO_KEEP * worker.state.nthreads:
        keep_freed_memory()


_held = Held(room=_is_room)  # of this worker process
_runs: dict[str, Sequence[Recipe]] = {}  # neighboring shards that a thread has worked on, by a name


def _on_worker(work: Callable[[Any, Any], Any], recipe: Recipe, shared: Any) -> Any:
    _keep_memory()
    with at_most(1):  # a thread of Dask is a thread of permix
        return work(_held.get(recipe), shared)


class Unknown(NamedTuple):
    """What a worker answers that does not know the shards it is asked about, as it has started anew."""


def _reduced_on_worker(
    work: Callable[[Any, Any], Any], run: str, recipes: Sequence[Recipe] | None, shared: Any, reduce: Reduce
) -> Any:
    """Work on a run of shards; their recipes come the first time alone."""
    if recipes is None:
        recipes = _runs.get(run)
        if recipes is None:
            return Unknown()
    _runs[run] = recipes
    _keep_memory()
    with at_most(1):
        return fold(reduce, (work(_held.get(recipe), shared) for recipe in recipes))


def _forget_on_worker(tokens: list[str]) -> None:
    gone = set(tokens)
    for run, recipes in list(_runs.items()):
        if any(recipe.token in gone for recipe in recipes):
            _runs.pop(run, None)  # other threads forget as well
    _held.forget(tokens)


class Task(NamedTuple):
    """Work on some neighboring shards, on the worker that has them."""

    place: int
    group: int
    recipes: Sequence[Recipe]

    @property
    def run(self) -> str:
        """What workers know these shards by."""
        return fingerprint([recipe.token for recipe in self.recipes])


class OnDask:
    """An executor over a ``distributed.Client``."""

    remote = True

    def __init__(self, client: Any) -> None:
        self.client = client
        self._n_groups = 0
        self._homes: dict[int, str] = {}  # of groups of shards: addresses of workers
        self._told: set[tuple[str, str]] = set()  # workers, and runs of shards whose recipes they have
        self._later: dict[Any, str] = {}  # what busy workers will forget when they are free
        self._settling = threading.Lock()  # chains run in threads of the client

    def map_shards(
        self,
        work: Callable[[Any, Any], Any],
        shards: Sequence[Recipe],
        shared: Any = None,
        reduce: Reduce | None = None,
    ) -> Any:
        """Return ``work(shard, shared)`` of all shards as a list, or reduced, in the order of the shards."""
        self._settle(shards)
        groups = self._groups(shards)
        if reduce is None:
            each = [(at, [shard]) for at, group in enumerate(groups) for shard in group]
            tasks = [Task(place, at, recipes) for place, (at, recipes) in enumerate(each)]
        else:
            tasks = [Task(at, at, group) for at, group in enumerate(groups)]
        found, losses = InOrder(reduce), Counter[int]()

        def submit(task: Task) -> None:
            home = self._homes[task.group]
            where = {"workers": [home], "pure": False}
            if reduce is None:
                future = self.client.submit(_on_worker, work, task.recipes[0], shared, **where)
            else:
                recipes = None if (home, task.run) in self._told else task.recipes
                future = self.client.submit(
                    _reduced_on_worker, work, task.run, recipes, shared, reduce, **where
                )
            waiting[future] = task, home

        def again(task: Task, why: BaseException | None) -> None:
            losses[task.place] += 1
            if losses[task.place] > MOST_LOSSES:
                names = task.recipes[0].name
                if len(task.recipes) > 1:
                    names = f"{names} to {task.recipes[-1].name}"
                raise ShardError(
                    f"{names}: its worker died, or was lost, {losses[task.place]} times in one step; is "
                    "there memory enough for it?"
                ) from why
            self._settle(shards, grown=False)
            submit(task)

        waiting: dict[Any, tuple[Task, str]] = {}
        since: dict[str, float] = {}  # when workers were paused
        try:
            for task in tasks:
                submit(task)
            while waiting:
                for future in self._done(list(waiting)):
                    task, home = waiting.pop(future)
                    try:
                        # A result may die with its worker after it was announced, and then never come.
                        patience = RESULT_SECONDS * (1 + losses[task.place])
                        result = future.result(timeout=patience)
                        if isinstance(result, Unknown):
                            self._told.discard((home, task.run))
                            submit(task)
                        else:
                            self._told.add((home, task.run))
                            found.add(task.place, result)
                    except self._lost() as error:
                        again(task, error)
                    future.cancel()
                workers = self._alive() if waiting else {}
                since = {worker: since.get(worker, monotonic()) for worker in self._paused() if waiting}
                for future, (task, home) in list(waiting.items()):
                    if monotonic() - since.get(home, math.inf) > PAUSED_SECONDS:
                        raise ShardError(
                            f"{task.recipes[0].name}: Dask has given worker {home} no work for "
                            f"{PAUSED_SECONDS:.0f} s, as its memory is nearly full; restart it with a larger "
                            "--memory-limit, make files smaller, or use more workers"
                        )
                    if home not in workers:
                        del waiting[future]
                        future.cancel()
                        again(task, None)
        finally:
            self.client.cancel(list(waiting))
        return found.result

    def forget(self, shards: Sequence[Recipe]) -> None:
        """Let go of the shards that workers keep."""
        self._forget(list(self._threads()), [shard.token for shard in shards])

    def _forget(self, workers: Sequence[str], tokens: list[str]) -> None:
        from distributed import wait

        self._told.clear()
        # Not Client.run, which waits for ever for a worker that dies meanwhile.
        asked = {
            self.client.submit(_forget_on_worker, tokens, workers=[worker], pure=False): worker
            for worker in workers
        }
        with suppress(TimeoutError):  # one that is busy forgets later, and a dead one keeps nothing
            wait(list(asked), timeout=FORGET_SECONDS)
        alive, waiting = self._threads(), self._later | asked
        self.client.cancel([each for each, worker in waiting.items() if worker not in alive])
        self._later = {
            each: worker for each, worker in waiting.items() if not each.done() and worker in alive
        }

    def _groups(self, shards: Sequence[Recipe]) -> list[Sequence[Recipe]]:
        n = min(self._n_groups, len(shards))
        return [shards[len(shards) * at // n : len(shards) * (at + 1) // n] for at in range(n)]

    def _settle(self, shards: Sequence[Recipe], grown: bool = True) -> None:
        """Give every group of shards a worker: the one it had, where that lives and has not too many."""
        with self._settling:
            self._find_homes(shards, grown)

    def _find_homes(self, shards: Sequence[Recipe], grown: bool) -> None:
        threads, known = self._alive(), self._homes
        total = sum(threads.values())
        if total > self._n_groups and grown:  # the cluster has grown: shards are divided anew
            self._forget(list(threads), [shard.token for shard in shards])
            self._n_groups, known = total, {}
        most = {worker: -(-self._n_groups * n // total) for worker, n in threads.items()}
        load = Counter[str]()
        homes: dict[int, str] = {}
        for group, worker in known.items():
            if load[worker] < most.get(worker, 0):
                homes[group] = worker
                load[worker] += 1
        for group in range(self._n_groups):
            if group not in homes:
                homes[group] = min(sorted(threads), key=lambda worker: load[worker] / most[worker])
                load[homes[group]] += 1
        for group, recipes in enumerate(self._groups(shards)):
            before = known.get(group)
            if before in threads and before != homes[group]:
                self._forget([before], [shard.token for shard in recipes])
        self._homes = homes

    @staticmethod
    def _lost() -> tuple[type[BaseException], ...]:
        """Return the errors that say that work was lost with a worker."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        return (KilledWorker, TimeoutError, CancelledError, FutureCancelledError)

    def _done(self, futures: list[Any]) -> set[Any]:
        """Return those that are done; none after some time, to look whether workers still live."""
        from distributed import wait

        try:
            done: set[Any] = wait(futures, timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            return set()
        return done

    def _alive(self) -> dict[str, int]:
        """Return the addresses of all workers with their numbers of threads; there is one at least."""
        threads = self._threads()
        if not threads:
            try:
                self.client.wait_for_workers(1, timeout=WAIT_SECONDS)
            except TimeoutError:
                raise DataError(
                    f"Dask has had no worker for {WAIT_SECONDS:.0f} s; start one with `dask worker SCHEDULER`"
                ) from None
            threads = self._threads()
        return threads or self._alive()

    def _paused(self) -> list[str]:
        """Return the addresses of workers that get no work."""
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        return [address for address, about in known.items() if about["status"] == "paused"]

    def _threads(self) -> dict[str, int]:
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: int(about["nthreads"]) for address, about in known.items()}
