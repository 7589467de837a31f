"""The workers of a Dask cluster (extra ``dask``): each keeps its shards, and sends sums.

What travels is what ``dask.distributed`` serializes between one's own client and workers: functions of
permix by name, recipes of shards (paths and options), parameters, and sums. A worker that dies takes no
result along: its tasks go to others, which make the shards anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from permix.errors import DataError
from permix.runtime.executors import Held, InOrder, Recipe, Reduce

# How often work on one shard may die with its worker before something else must be wrong.
MOST_DEATHS = 20
WAIT_SECONDS = 60.0

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
        from distributed import KilledWorker, as_completed

        found, deaths = InOrder(reduce), [0] * len(shards)
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
        running = as_completed(list(index_of))
        try:
            for future in running:
                index = index_of.pop(future)
                try:
                    result = future.result()
                except KilledWorker:
                    deaths[index] += 1
                    if deaths[index] > MOST_DEATHS:
                        raise
                    workers = self._workers()
                    again = submit(index)
                    index_of[again] = index
                    running.add(again)
                else:
                    found.add(index, result)
                future.release()
        finally:
            self.client.cancel(list(index_of))
        return found.result

    def forget(self, shards: Sequence[Recipe]) -> None:
        """Let go of the shards that workers keep."""
        self.client.run(_forget_on_worker, [shard.token for shard in shards], on_error="ignore")

    def _workers(self) -> list[str]:
        """Return the addresses of all workers, in a fixed order."""
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        if not known:
            try:
                self.client.wait_for_workers(1, timeout=WAIT_SECONDS)
            except TimeoutError:
                raise DataError(
                    f"the Dask cluster has had no worker for {WAIT_SECONDS:.0f} s; start one with "
                    "`dask worker SCHEDULER`"
                ) from None
            known = self.client.scheduler_info(n_workers=-1)["workers"]
        return sorted(known)
