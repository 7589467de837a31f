"""Rankings as angle-based models see them: full rows to sum over, and incomplete rows to complete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from permix.data.labels import Array, Label
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.angle.normalizers import log_sums_and_gradients
from permix.distributions.angle.scores import standard_scores
from permix.errors import DataError
from permix.estimators.preference_input import _over_items
from permix.runtime.threads import run_in_threads

# A part of the rows, which one thread handles, has about so many entries; there are at most so many parts.
PART_ENTRIES = 100_000
MOST_PARTS = 64
# With fewer items the tables of top lists are too small to be worth a thread each.
THREADED_ITEMS = 13
# What one E-step finds: Σ ln density, Σ p y (items, K) and Σ p (K,); and what else it fills where given.
Weighed = tuple[float, Array, Array]
Wanted = Array | None
# Where a climb stands: Σ ln density, its gradient in the tilts (K, items), and Σ p (K,).
Uphill = tuple[float, Array, Array]


@dataclass(eq=False)
class AngleData:
    """Rows of a table of rankings: full ones, top lists, rankings of subsets, in any mixture."""

    rankings: Rankings
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        rankings = self.rankings
        self.items, self.n_items, self.is_full = rankings.items, rankings.n_items, rankings.is_full
        self.n_agents, self.counts = rankings.n_agents, rankings.counts.astype(np.float64)
        self.scores = standard_scores(rankings.n_items)  # y of the ranks

    def over_parts(self, task: Callable[[tuple[int, int]], Any]) -> list[Any]:
        """Return ``task(part)`` of ranges of rows, which depend on the data alone, in threads where many."""
        n = len(self.rankings)
        size = max(1, PART_ENTRIES // self.n_items, -(-n // MOST_PARTS))
        parts = [(first, min(first + size, n)) for first in range(0, n, size)]
        return run_in_threads(task, parts, self.n_jobs)

    @cached_property
    def sum_of_scores(self) -> Array:
        """Σ y over all agents; rows must be full."""
        from permix.angle.mixture_jit import add_scores

        def add(part: tuple[int, int]) -> Array:
            sums = np.zeros(self.n_items)
            add_scores(*part, self.rankings.orders, self.counts, self.scores, sums)
            return sums

        return np.asarray(sum(self.over_parts(add)))

    def weighed(
        self, tilts: Array, offsets: Array, *, probabilities: Wanted = None, densities: Wanted = None
    ) -> Weighed:
        """One E-step over full rows, tilts (K, items); ``probabilities`` and ``densities`` are filled."""
        from permix.angle.mixture_jit import responsibilities

        k = len(offsets)
        shares = np.empty((0, k)) if probabilities is None else probabilities
        values = np.empty(0) if densities is None else densities
        by_item = np.ascontiguousarray(tilts.T)
        known = (self.rankings.orders, self.counts, self.scores, by_item, offsets)

        def weigh(part: tuple[int, int], sums: Array, masses: Array) -> float:
            return responsibilities(*part, *known, shares, values, sums, masses)

        return self.added_up(weigh, k)

    def uphill(self, tilts: Array, log_weights: Array, normalizer: str) -> Uphill:
        """Return the log-likelihood and its gradient in the tilts (K, items), by a proper normalizer."""
        log_sums, expected = log_sums_and_gradients(normalizer, tilts, self.scores)
        total, sums, masses = self.weighed(tilts, log_weights - log_sums)
        return total, sums.T - masses[:, None] * expected, masses

    def added_up(self, task: Callable[[tuple[int, int], Array, Array], float], k: int) -> Weighed:
        """Return the sums of all parts, each of which returns a number and adds to sums and masses."""

        def run(part: tuple[int, int]) -> Weighed:
            sums, masses = np.zeros((self.n_items, k)), np.zeros(k)
            return task(part, sums, masses), sums, masses

        totals, sums, masses = zip(*self.over_parts(run), strict=True)
        return float(sum(totals)), sum(sums), sum(masses)

    def total_log_density(self, tilts: Array, offsets: Array) -> float:
        """Return Σ ln density over all agents; for one component Σ y says it without a pass."""
        if len(offsets) == 1:
            return float(tilts[0] @ self.sum_of_scores + self.n_agents * offsets[0])
        return self.weighed(tilts, offsets)[0]

    def some(self, n_rows: int, rng: np.random.Generator) -> AngleData:
        """Return so many agents at random, or all where there are no more rows than that."""
        if len(self.rankings) <= n_rows:
            return self
        if self.n_agents == len(self.rankings):
            rows = np.sort(rng.choice(len(self.rankings), n_rows, replace=False))
            return type(self)(self.rankings[rows], self.n_jobs)
        # A row with a count stands for that many agents.
        counts = rng.multinomial(n_rows, self.counts / self.counts.sum())
        rows = np.flatnonzero(counts)
        return type(self)(self.rankings[rows]._replaced(counts=counts[rows]), self.n_jobs)

    def dense(self) -> Array:
        """Return y of every row (rows, items); rows must be full."""
        y = np.empty((len(self.rankings), self.n_items))
        np.put_along_axis(y, self.rankings.orders.astype(np.int64), self.scores[None, :], axis=1)
        return y


class TopLists(AngleData):
    """Full rankings and top lists of few items: one E-step is exact, by tables over subsets of the items."""

    def weighed(
        self, tilts: Array, offsets: Array, *, probabilities: Wanted = None, densities: Wanted = None
    ) -> Weighed:
        """One E-step, which finds Σ p E[y | list] in place of Σ p y."""
        total, sums, masses = self._passed(tilts, offsets, False, probabilities, densities)
        return total, sums.T, masses

    def uphill(self, tilts: Array, log_weights: Array, normalizer: str) -> Uphill:
        """The same pass has the sum over all rankings and its gradient: that of the empty list."""
        assert normalizer == "exact"
        return self._passed(tilts, log_weights, True)

    def _passed(
        self, tilts: Array, offsets: Array, normalized: bool, shares: Wanted = None, densities: Wanted = None
    ) -> Uphill:
        """Return Σ ln density, Σ p E[y | list] (K, items), less Σ p E[y] if ``normalized``, and Σ p (K,)."""
        from permix.distributions.angle.lists_jit import LANES, add_lists, weigh_lists

        k, t, tilts = len(tilts), self.n_items, np.ascontiguousarray(tilts)
        joint, log_totals, sums = np.empty((k, len(self.rankings))), np.empty(k), np.empty((k, t))
        firsts = list(range(0, k, LANES))
        tables = {first: (np.empty((t, t, LANES)), np.empty((1 << t, LANES))) for first in firsts}

        def weigh(first: int) -> None:
            weigh_lists(first, *self._lists, tilts, self.scores, *tables[first], joint, log_totals)

        self._of_all(weigh, firsts)
        joint += (offsets - log_totals if normalized else offsets)[:, None]
        largest = joint.max(axis=0)
        joint -= largest
        np.exp(joint, out=joint)
        weights = joint.sum(axis=0)
        joint /= weights
        values = largest + np.log(weights)
        if shares is not None:
            shares[:] = joint.T
        if densities is not None:
            densities[:] = values
        joint *= self.counts
        masses = joint.sum(axis=1)
        less = masses if normalized else np.zeros(k)

        def add(first: int) -> None:
            known = (*self._lists, joint, less, tilts, self.scores, *tables[first])
            add_lists(first, *known, np.empty((1 << t, LANES)), sums)

        self._of_all(add, firsts)
        return float(self.counts @ values), sums, masses

    @cached_property
    def _lists(self) -> tuple[Array, Array, Array]:
        """Items and lengths of the lists, writable as compiled code is specialized for, and their sets."""
        from permix.distributions.angle.lists_jit import item_sets

        listed = np.array(self.rankings.orders, dtype=np.int32, order="C")
        return listed, np.array(self.rankings.lengths, dtype=np.int64), item_sets(listed)

    def _of_all(self, task: Any, parts: list[Any]) -> None:
        run_in_threads(task, parts, self.n_jobs if self.n_items >= THREADED_ITEMS else 1)

    def total_log_density(self, tilts: Array, offsets: Array) -> float:
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


def are_top_lists(rankings: Rankings) -> bool:
    """Say whether every row is a top list or full: what it leaves out is below."""
    return bool(np.all(rankings.unlisted_below | (rankings.lengths == rankings.n_items)))


def as_rankings(data: Any, items: tuple[Label, ...] | None = None) -> Rankings:
    """Return data as rankings over the given items, where a model has them already.

    Preferences must amount to rankings without ties. Rows of an array are orderings, best first, padded by
    -1; what they leave out is below.
    """
    if isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind in "iu":
        data = Rankings.from_orders(data, items=items)
    if not isinstance(data, Rankings | Preferences):
        raise DataError(
            "angle-based models take Rankings, Preferences without ties, or a 2-D integer array of "
            f"orderings, not {type(data).__name__}; see Rankings.from_orders, Rankings.from_ranks"
        )
    if len(data) == 0:
        raise DataError("there are no rows; pass at least one")
    if items is not None and data.items != items:
        data = _over_items(data, items)
    if isinstance(data, Preferences):
        from permix.estimators.ranking_lists import rankings_of

        data = rankings_of(data)
    if data.n_items < 3:
        raise DataError(
            f"there are {data.n_items} items, but an angle needs three or more: two items can be ranked in "
            "two ways only, and their shares say all"
        )
    return data
