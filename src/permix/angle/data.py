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
from permix.distributions.angle.scores import standard_scores
from permix.errors import DataError
from permix.estimators.preference_input import _over_items
from permix.runtime.threads import run_in_threads

# A part of the rows, which one thread handles, has about so many entries; there are at most so many parts.
PART_ENTRIES = 100_000
MOST_PARTS = 64
# What one E-step finds: Σ ln density, Σ p y (items, K) and Σ p (K,); and what else it fills where given.
Weighed = tuple[float, Array, Array]
Wanted = Array | None


@dataclass(frozen=True, eq=False)
class AngleData:
    """Rows of a table of rankings: full ones, top lists, rankings of subsets, in any mixture."""

    rankings: Rankings
    scores: Array  # y of the ranks
    n_jobs: int | None = None

    @classmethod
    def of(cls, rankings: Rankings, n_jobs: int | None = None) -> AngleData:
        """Prepare rows that a model is fitted to or asked about."""
        return cls(rankings, standard_scores(rankings.n_items), n_jobs)

    @property
    def items(self) -> tuple[Label, ...]:
        """Item names."""
        return self.rankings.items

    @cached_property
    def n_agents(self) -> int:
        """Number of agents."""
        return self.rankings.n_agents

    @cached_property
    def counts(self) -> Array:
        """Agents of each row, as floats."""
        return self.rankings.counts.astype(np.float64)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.rankings.n_items

    @cached_property
    def parts(self) -> list[tuple[int, int]]:
        """Ranges of rows that threads share; they depend on the data alone."""
        n = len(self.rankings)
        size = max(1, PART_ENTRIES // self.n_items, -(-n // MOST_PARTS))
        return [(first, min(first + size, n)) for first in range(0, n, size)]

    def over_parts(self, task: Callable[[tuple[int, int]], Any]) -> list[Any]:
        """Return ``task(part)`` for all parts in their order, in threads where there are several."""
        return run_in_threads(task, self.parts, self.n_jobs)

    @cached_property
    def is_full(self) -> bool:
        """Whether every row ranks every item."""
        return self.rankings.is_full

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
        by_item = np.ascontiguousarray(tilts.T)
        shares = np.empty((0, k)) if probabilities is None else probabilities
        values = np.empty(0) if densities is None else densities

        known = (self.rankings.orders, self.counts, self.scores, by_item, offsets)

        def weigh(part: tuple[int, int], sums: Array, masses: Array) -> float:
            return responsibilities(*part, *known, shares, values, sums, masses)

        return self.added_up(weigh, k)

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
            return type(self).of(self.rankings[rows], self.n_jobs)
        # A row with a count stands for that many agents.
        counts = rng.multinomial(n_rows, self.counts / self.counts.sum())
        rows = np.flatnonzero(counts)
        return type(self).of(self.rankings[rows]._replaced(counts=counts[rows]), self.n_jobs)

    def dense(self) -> Array:
        """Return y of every row (rows, items); rows must be full."""
        y = np.empty((len(self.rankings), self.n_items))
        np.put_along_axis(y, self.rankings.orders.astype(np.int64), self.scores[None, :], axis=1)
        return y


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
