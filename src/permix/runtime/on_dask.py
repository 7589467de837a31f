"""The workers of a Dask cluster (extra ``dask``): each keeps its shards, and sends sums.

What travels is what ``dask.distributed`` serializes between one's own client and workers: functions of
permix by name, recipes of shards (paths and options), parameters, and sums. A worker that dies takes no
result along: its tasks go to others, which make the shards anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from permix.errors import DataError, ShardError
from permix.runtime.executors import Held, InOrder, Recipe, Reduce

# How often work on one shard may be lost with its worker before something else must be wrong.
MOST_LOSSES = 20
# How long a result that is there may take to arrive; longer after each loss.
RESULT_SECONDS = 10.0
WAIT_SECONDS = 60.0
FORGET_SECONDS = 5.0
LOOK_SECONDS = 2.0

_held = Held()  # of this worker process


def _on_worker(work: Callable[[Any, Any], Any], recipe: Recipe, shared: Any) -> Any:
    return work(_held.get(recipe), shared)


def _forget_on_worker(tokens: list[str]) -> None:
    _held.forget(tokens)


class OnDask:
    """An executor over a ``distributed.Client``."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def map_shards(
        self,
        work: Callable[[Any, Any], Any],
        shards: Sequence[Recipe],
        shared: Any = None,
        reduce: Reduce | None = None,
    ) -> Any:
        """Return ``work(shard, shared)`` of all shards as a list, or reduced, in the order of the shards."""
        from distributed import KilledWorker

        found, losses = InOrder(reduce), [0] * len(shards)
        workers = self._workers()

        def submit(index: int) -> Any:
            # The same worker for the same shard, as long as it lives.
            return self.client.submit(
                _on_worker,
                work,
                shards[index],
                shared,
                workers=[workers[index % len(workers)]],
                allow_other_workers=True,
                pure=False,
            )

        index_of = {submit(index): index for index in range(len(shards))}
        try:
            while index_of:
                for future in self._done(list(index_of)):
                    index = index_of.pop(future)
                    try:
                        # A result may die with its worker after it was announced, and then never come.
                        found.add(index, future.result(timeout=RESULT_SECONDS * (1 + losses[index])))
                    except (KilledWorker, TimeoutError) as error:
                        losses[index] += 1
                        if losses[index] > MOST_LOSSES:
                            raise ShardError(
                                f"{shards[index].name}: its worker died, or was lost, {losses[index]} times "
                                "in one step; is there memory enough for it?"
                            ) from error
                        workers = self._workers()
                        index_of[submit(index)] = index
                    future.cancel()
        finally:
            self.client.cancel(list(index_of))
        return found.result

    def forget(self, shards: Sequence[Recipe]) -> None:
        """Let go of the shards that workers keep."""
        from distributed import wait

        tokens = [shard.token for shard in shards]
        # Not Client.run, which waits for ever for a worker that dies meanwhile.
        asked = [
            self.client.submit(_forget_on_worker, tokens, workers=[worker], pure=False)
            for worker in self.client.scheduler_info(n_workers=-1)["workers"]
        ]
        with suppress(TimeoutError):  # a dead worker keeps nothing
            wait(asked, timeout=FORGET_SECONDS)
        self.client.cancel(asked)

    def _done(self, futures: list[Any]) -> set[Any]:
        """Return those that are done, one at least; a cluster that lost all its workers is told."""
        from distributed import wait

        while True:
            try:
                done: set[Any] = wait(futures, timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                self._workers()
            else:
                return done

    def _workers(self) -> list[str]:
        """Return the addresses of all workers, in a fixed order."""
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        if not known:
            try:
                self.client.wait_for_workers(1, timeout=WAIT_SECONDS)
            except TimeoutError:
                raise DataError(
                    f"Dask has had no worker for {WAIT_SECONDS:.0f} s; start one with `dask worker SCHEDULER`"
                ) from None
            known = self.client.scheduler_info(n_workers=-1)["workers"]
        return sorted(known)
