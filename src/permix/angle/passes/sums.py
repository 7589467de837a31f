"""What one pass over rankings finds, and what is made of it.

Sums are exact (:mod:`permix.runtime.exact_sums`): they depend neither on the order of rows nor on how rows
are divided into parts, shards and threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import Array, Label
from permix.distributions.angle.normalizers import log_sums_and_gradients
from permix.runtime.exact_sums import grid_of, rounders_of
from permix.runtime.threads import run_in_threads

# What one E-step finds: Σ ln density, Σ p y (items, K) and Σ p (K,).
Weighed = tuple[float, Array, Array]
# Where a climb stands: Σ ln density, its gradient in the tilts (K, items), and Σ p (K,).
Uphill = tuple[float, Array, Array]
# With fewer items the tables of top lists are too small to be worth a thread each.
THREADED_ITEMS = 13


class Asked(NamedTuple):
    """What a pass takes: tilts (K, items), offsets (K,), and how sums are rounded (``rounding``)."""

    tilts: Array
    offsets: Array
    normalized: bool  # top lists: whether the sum over all rankings is to be taken off the offsets
    rounding: Array


class Sums(NamedTuple):
    """What a pass returns: Σ ln density, rounded, and the rest (2,); Σ p y (items, K); Σ p (K,)."""

    totals: Array
    sums: Array
    masses: Array
    # Of top lists: subsets of items that are listed, and the shares of lists of just these (subsets, K).
    subsets: Array
    flow: Array

    @classmethod
    def zeros(cls, n_items: int, k: int) -> Sums:
        """Return sums of nothing."""
        none = np.empty(0, dtype=np.int64), np.empty((0, k))
        return cls(np.zeros(2), np.zeros((n_items, k)), np.zeros(k), *none)

    def plus(self, other: Sums) -> Sums:
        """Return the sums over both."""
        subsets, flow = self.subsets, self.flow
        if len(other.subsets):
            subsets, places = np.unique(np.append(self.subsets, other.subsets), return_inverse=True)
            flow = np.zeros((len(subsets), self.flow.shape[1]))
            flow[places[: len(self.subsets)]] += self.flow
            flow[places[len(self.subsets) :]] += other.flow
        added = (self.totals + other.totals, self.sums + other.sums, self.masses + other.masses)
        return Sums(*added, subsets, flow)


class Passes:
    """Rankings of agents that can be summed over: full ones, or such as have tables over subsets of items.

    A subclass has the attributes, ``_pass``, ``sum_of_scores`` and ``some``.
    """

    items: tuple[Label, ...]
    n_items: int
    n_agents: int
    n_rows: int
    is_full: bool
    scores: Array
    n_jobs: int | None

    def _pass(self, asked: Asked) -> Sums:
        raise NotImplementedError

    @cached_property
    def sum_of_scores(self) -> Array:
        """Σ y over all agents; rows must be full."""
        raise NotImplementedError

    def some(self, n_rows: int, rng: np.random.Generator) -> Any:
        """Return so many agents at random, as a table."""
        raise NotImplementedError

    def rounding(self, tilts: Array, offsets: Array) -> Array:
        """Return what rounds shares, logarithms and their rests to grids on which sums are exact."""
        # y has length one, and what is below a list may be arranged in at most t! ways.
        far = 2.0 * np.linalg.norm(tilts, axis=1)
        least = float((offsets - far).max()) - math.lgamma(self.n_items + 1)
        most = float((offsets + far).max()) + math.lgamma(self.n_items + 1) + math.log(len(offsets))
        logs = grid_of(self.n_agents, max(abs(least), abs(most), 1.0))
        return rounders_of(grid_of(self.n_agents, 1.0), logs, grid_of(self.n_agents, 0.5 / logs))

    def weighed(self, tilts: Array, offsets: Array) -> Weighed:
        """One E-step: of top lists, Σ p E[y | list] in place of Σ p y."""
        tilts = np.ascontiguousarray(tilts)
        found = self._pass(Asked(tilts, offsets, False, self.rounding(tilts, offsets)))
        sums = found.sums if self.is_full else self._below(tilts, found, np.zeros(len(offsets)))
        return float(found.totals.sum()), sums, found.masses

    def uphill(self, tilts: Array, log_weights: Array, normalizer: str) -> Uphill:
        """Return the log-likelihood and its gradient in the tilts (K, items), by a proper normalizer.

        The table of top lists has the sum over all rankings and its gradient as well: of the empty list.
        """
        if self.is_full:
            log_sums, expected = log_sums_and_gradients(normalizer, tilts, self.scores)
            total, sums, masses = self.weighed(tilts, log_weights - log_sums)
            return total, sums.T - masses[:, None] * expected, masses
        assert normalizer == "exact"
        tilts = np.ascontiguousarray(tilts)
        found = self._pass(Asked(tilts, log_weights, True, self.rounding(tilts, log_weights)))
        return float(found.totals.sum()), self._below(tilts, found, found.masses).T, found.masses

    def total_log_density(self, tilts: Array, offsets: Array) -> float:
        """Return Σ ln density over all agents; for one component of full rankings Σ y says it."""
        if len(offsets) == 1 and self.is_full:
            return float(tilts[0] @ self.sum_of_scores + self.n_agents * offsets[0])
        return self.weighed(tilts, offsets)[0]

    def _below(self, tilts: Array, found: Sums, less: Array) -> Array:
        """Return Σ p E[y | list] (items, K), less what is expected without a list, so often."""
        from permix.distributions.angle.lists_jit import LANES, add_below

        sums = found.sums.copy()
        nobody = np.empty((0, 0), np.int32), np.empty(0, np.int64), np.empty(0, np.int64)
        tables = list_tables(self, tilts, nobody, np.empty((len(tilts), 0)), np.empty(len(tilts)))

        def add(first: int) -> None:
            flow = np.zeros((1 << self.n_items, LANES))
            here = found.flow[:, first : first + LANES]
            flow[found.subsets, : here.shape[1]] = here
            flow[0, : here.shape[1]] -= less[first : first + LANES]
            add_below(first, self.scores, *tables[first], flow, sums)

        of_lanes(self, add, list(tables))
        return sums


def list_tables(
    data: Passes, tilts: Array, lists: tuple[Array, Array, Array], joint: Array, log_totals: Array
) -> dict[int, tuple[Array, Array]]:
    """Fill ``joint`` (K, rows) and ``log_totals`` (K,) by ``weigh_lists``; return tables by component."""
    from permix.distributions.angle.lists_jit import LANES, weigh_lists

    t = data.n_items
    tables = {
        first: (np.empty((t, t, LANES)), np.empty((1 << t, LANES))) for first in range(0, len(tilts), LANES)
    }

    def weigh(first: int) -> None:
        weigh_lists(first, *lists, tilts, data.scores, *tables[first], joint, log_totals)

    of_lanes(data, weigh, list(tables))
    return tables


def of_lanes(data: Passes, task: Callable[[int], None], firsts: list[int]) -> None:
    """Run a task for all components, several at once."""
    run_in_threads(task, firsts, data.n_jobs if data.n_items >= THREADED_ITEMS else 1)
