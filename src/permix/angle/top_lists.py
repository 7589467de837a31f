"""Top lists as angle-based models see them where the items are few: no completion needs to be drawn."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from permix.angle.data import AngleData, Wanted, Weighed
from permix.data.labels import Array
from permix.runtime.threads import run_in_threads

# With fewer items the tables are too small to be worth a thread each.
THREADED_ITEMS = 13


class TopLists(AngleData):
    """Full rankings and top lists: one E-step is exact, by one table over subsets for each component."""

    def weighed(
        self, tilts: Array, offsets: Array, *, probabilities: Wanted = None, densities: Wanted = None
    ) -> Weighed:
        """One E-step: Σ ln density, Σ p E[y | list] (items, K) and Σ p (K,); see :class:`AngleData`."""
        from permix.distributions.angle.lists_jit import add_lists, weigh_lists

        k, t, n = len(offsets), self.n_items, len(self.rankings)
        listed, lengths = self._arrays
        rest = np.empty((k, 1 << t))
        subsets, joint = np.empty((k, n), np.int64), np.empty((k, n))

        def weigh(g: int) -> Any:
            return weigh_lists(
                listed, lengths, np.ascontiguousarray(tilts[g]), self.scores, rest[g], subsets[g], joint[g]
            )

        tables = self._of_all(weigh, k)
        joint += offsets[:, None]
        largest = joint.max(axis=0)
        shares = np.exp(joint - largest)
        totals = shares.sum(axis=0)
        shares /= totals
        values = largest + np.log(totals)
        if probabilities is not None:
            probabilities[:] = shares.T
        if densities is not None:
            densities[:] = values
        shares *= self.counts

        def add(g: int) -> Array:
            sums, scratch = np.zeros(t), (rest[g], subsets[g], np.empty(1 << t))
            add_lists(listed, lengths, shares[g], self.scores, *tables[g], *scratch, sums)
            return sums

        return float(self.counts @ values), np.stack(self._of_all(add, k), axis=1), shares.sum(axis=1)

    @cached_property
    def _arrays(self) -> tuple[Array, Array]:
        """Items and lengths of the lists, writable: compiled code is specialized for that."""
        listed = np.array(self.rankings.orders, dtype=np.int32, order="C")
        return listed, np.array(self.rankings.lengths, dtype=np.int64)

    def _of_all(self, task: Any, k: int) -> list[Any]:
        if k == 1 or self.n_items < THREADED_ITEMS:
            return [task(g) for g in range(k)]
        return run_in_threads(task, list(range(k)), self.n_jobs)

    def total_log_density(self, tilts: Array, offsets: Array) -> float:
        """Return Σ ln density over all agents."""
        return self.weighed(tilts, offsets)[0]

    def dense(self) -> Array:
        """Return the mean of y over all rankings that agree with a row, scaled to length one."""
        t = self.n_items
        below = np.append(np.cumsum(self.scores[::-1])[::-1] / np.arange(t, 0, -1), 0.0)
        y = np.repeat(below[self.rankings.lengths][:, None], t, axis=1)
        rows, ranks = np.nonzero(np.arange(self.rankings.orders.shape[1]) < self.rankings.lengths[:, None])
        y[rows, self.rankings.orders[rows, ranks]] = self.scores[ranks]
        size = np.linalg.norm(y, axis=1, keepdims=True)
        return np.asarray(np.divide(y, size, out=np.zeros_like(y), where=size > 0.0))
