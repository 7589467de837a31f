"""Rankings as angle-based models see them: full rows to sum over, and incomplete rows to complete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from permix.angle.passes.sums import Asked, Passes, Sums, Weighed, list_tables, of_lanes
from permix.data.labels import Array, Label
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.angle.scores import standard_scores
from permix.errors import DataError
from permix.estimators.preference_input import _over_items
from permix.runtime.exact_sums import grid_of, on_grid
from permix.runtime.threads import run_in_threads

# A part of the rows, which one thread handles, has about so many entries; there are at most so many parts.
PART_ENTRIES = 100_000
MOST_PARTS = 64
# What a pass fills beside its sums, where given.
Wanted = Array | None


@dataclass(eq=False)
class AngleData(Passes):
    """Rows of a table of rankings: full ones, top lists, rankings of subsets, in any mixture."""

    rankings: Rankings
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        rankings = self.rankings
        self.items, self.n_items, self.is_full = rankings.items, rankings.n_items, rankings.is_full
        self.n_agents, self.counts = rankings.n_agents, rankings.counts.astype(np.float64)
        self.n_rows = len(rankings)
        self.scores = standard_scores(rankings.n_items)  # y of the ranks

    def over_parts(self, task: Callable[[tuple[int, int]], Any]) -> list[Any]:
        """Return ``task(part)`` of ranges of rows, which depend on the data alone, in threads where many."""
        n = len(self.rankings)
        size = max(1, PART_ENTRIES // self.n_items, -(-n // MOST_PARTS))
        parts = [(first, min(first + size, n)) for first in range(0, n, size)]
        return run_in_threads(task, parts, self.n_jobs)

    @cached_property
    def sum_of_scores(self) -> Array:
        return self.summed_scores(self.n_agents)

    def summed_scores(self, n_all: int) -> Array:
        """Return Σ y, rounded as sums over ``n_all`` agents are."""
        from permix.angle.mixture_jit import add_scores

        rounded = on_grid(self.scores, grid_of(n_all, 1.0))

        def add(part: tuple[int, int]) -> Array:
            sums = np.zeros(self.n_items)
            add_scores(*part, self.rankings.orders, self.counts, rounded, sums)
            return sums

        return np.asarray(sum(self.over_parts(add)))

    def posterior(
        self, tilts: Array, offsets: Array, *, probabilities: Wanted = None, densities: Wanted = None
    ) -> None:
        """Fill P(component | row) (rows, K) and ln density (rows,)."""
        tilts = np.ascontiguousarray(tilts)
        asked = Asked(tilts, offsets, False, self.rounding(tilts, offsets))
        self._pass(asked, probabilities, densities)

    def _pass(self, asked: Asked, shares: Wanted = None, densities: Wanted = None) -> Sums:
        from permix.angle.mixture_jit import responsibilities

        k = len(asked.offsets)
        shares = np.empty((0, k)) if shares is None else shares
        values = np.empty(0) if densities is None else densities
        by_item = np.ascontiguousarray(asked.tilts.T)
        known = (self.rankings.orders, self.counts, self.scores, by_item, asked.offsets, asked.rounding)

        def weigh(part: tuple[int, int]) -> Sums:
            found = Sums.zeros(self.n_items, k)
            responsibilities(*part, *known, shares, values, found.sums, found.masses, found.totals)
            return found

        return reduce(Sums.plus, self.over_parts(weigh))

    def added_up(self, task: Callable[[tuple[int, int], Array, Array], float], k: int) -> Weighed:
        """Return the sums of all parts, each of which returns a number and adds to sums and masses."""

        def run(part: tuple[int, int]) -> Weighed:
            sums, masses = np.zeros((self.n_items, k)), np.zeros(k)
            return task(part, sums, masses), sums, masses

        totals, sums, masses = zip(*self.over_parts(run), strict=True)
        return float(sum(totals)), sum(sums), sum(masses)

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

    def _pass(self, asked: Asked, shares: Wanted = None, densities: Wanted = None) -> Sums:
        from permix.distributions.angle.lists_jit import LANES, count_lists

        (tilts, offsets, normalized, rounding), k = asked, len(asked.offsets)
        joint, log_totals = np.empty((k, self.n_rows)), np.empty(k)
        tables = list_tables(self, tilts, self._lists, joint, log_totals)
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
        by_lanes = {first: Sums.zeros(self.n_items, k) for first in tables}
        flows = {first: np.zeros((1 << self.n_items, LANES)) for first in tables}

        def count(first: int) -> None:
            own, known = by_lanes[first], (*self._lists, self.counts, joint, rounding[0], tilts, self.scores)
            count_lists(first, *known, tables[first][1], flows[first], own.sums, own.masses)

        of_lanes(self, count, list(tables))
        found = reduce(Sums.plus, by_lanes.values())
        subsets = self._subsets
        flow = np.hstack([each[subsets] for each in flows.values()])[:, :k]
        rounded = (values + rounding[1]) - rounding[1]
        rest = ((values - rounded) + rounding[2]) - rounding[2]
        totals = np.array([self.counts @ rounded, self.counts @ rest])
        return found._replace(totals=totals, subsets=subsets, flow=flow)

    @cached_property
    def _lists(self) -> tuple[Array, Array, Array]:
        """Items and lengths of the lists, writable as compiled code is specialized for, and their sets."""
        from permix.distributions.angle.lists_jit import item_sets

        listed = np.array(self.rankings.orders, dtype=np.int32, order="C")
        return listed, np.array(self.rankings.lengths, dtype=np.int64), item_sets(listed)

    @cached_property
    def _subsets(self) -> Array:
        return np.unique(self._lists[2])

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
