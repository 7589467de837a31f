"""Rows as the full rankings that agree with them, and sums over these."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.distances.agreeing import MOST_PLACES, agreeing_rankings

# With more items, rankings are no whole numbers of 64 bits.
MOST_CODED = 15
# Sums below this, of numbers up to one, are taken row by row.
TINY = 1e-250


@dataclass(frozen=True, eq=False)
class Listed:
    """Different full rankings, and which of them each row agrees with."""

    orders: Array  # int32 (U, items), best first
    # (M,): numbers of rankings, those of a row after those of the row before; None where row i has ranking i.
    entries: Array | None
    starts: Array  # int64 (rows + 1,): where the entries of each row begin

    @classmethod
    def of(cls, table: Preferences, distance: str) -> Listed:
        """List the rankings that agree with each row; refused where they are too many."""
        found = agreeing_rankings(table, distance)
        if len(found.orders) == len(table):
            return cls(found.orders, None, found.starts)
        orders, entries = _different(found.orders)
        return cls(orders, entries, found.starts)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.starts) - 1

    @property
    def row_of(self) -> Array:
        """The row of each entry."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.starts))

    @cached_property
    def _agrees(self) -> Any:
        """Which ranking each row agrees with, as a matrix (rows, U) of ones."""
        from scipy.sparse import csr_array

        entries = np.asarray(self.entries)
        return csr_array((np.ones(len(entries)), entries, self.starts), (self.n_rows, len(self.orders)))

    def log_sums(self, scores: Array) -> Array:
        """Return ln Σ exp(score) over the rankings of each row; ``scores`` is (U,)."""
        if self.entries is None:
            return scores
        sums, largest = self._sums(scores)
        if sums.min() > TINY:
            return np.asarray(largest + np.log(sums))
        values = scores[self.entries]
        most = np.maximum.reduceat(values, self.starts[:-1])
        values -= np.repeat(most, np.diff(self.starts))
        return np.asarray(most + np.log(np.add.reduceat(np.exp(values), self.starts[:-1])))

    def _sums(self, scores: Array) -> tuple[Array, float]:
        """Return the sums over the largest score, which may be too small for a number, and that score."""
        largest = float(scores.max())
        return self._agrees @ np.exp(scores - largest), largest

    def means(self, scores: Array, sums: Array, values: Array) -> Array:
        """Return the mean of values (U,) over the rankings of each row, in proportion to exp(score)."""
        if self.entries is None:
            return values
        shares = np.exp(scores[self.entries] - np.repeat(sums, np.diff(self.starts)))
        return np.asarray(np.add.reduceat(shares * values[self.entries], self.starts[:-1]))

    def weights(self, scores: Array, sums: Array, rows: Array) -> Array:
        """Share the weights of ``rows`` out to their rankings, in proportion to exp(score); (U,).

        ``sums`` is what :meth:`log_sums` says of the scores.
        """
        if self.entries is None:
            return rows
        largest = float(scores.max())
        if sums.min() - largest > math.log(TINY):
            each = rows * np.exp(largest - sums)
            return np.asarray(np.exp(scores - largest) * (self._agrees.T @ each))
        n = np.diff(self.starts)
        shares = np.exp(scores[self.entries] - np.repeat(sums, n)) * np.repeat(rows, n)
        return np.bincount(self.entries, shares, len(self.orders))


def _different(orders: Array) -> tuple[Array, Array]:
    """Return the different rows of a table of orderings, and which of them each row is."""
    n = orders.shape[1]
    if n > MOST_CODED:
        found, which = np.unique(orders, axis=0, return_inverse=True)
        return np.ascontiguousarray(found), which.ravel()
    codes = orders.astype(np.int64) @ n ** np.arange(n - 1, -1, -1, dtype=np.int64)
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    return np.ascontiguousarray(orders[first]), which.ravel()


def n_agreeing(table: Preferences) -> Array:
    """Return how many full rankings agree with the levels of each row; comparisons leave fewer."""
    n, lengths = table.n_items, np.diff(table.level_indptr)
    log_factorial = np.array([math.lgamma(k + 1.0) for k in range(n + 1)])
    row = np.repeat(np.arange(len(table)), lengths)
    of_level, sizes = np.unique(row * (n + 1) + table.levels, return_counts=True)
    logs = np.bincount(of_level // (n + 1), log_factorial[sizes], minlength=len(table))
    rest = np.where(table.rest_below, log_factorial[n - lengths], log_factorial[n] - log_factorial[lengths])
    return np.exp(logs + rest)


def in_blocks(table: Preferences, distance: str) -> Iterator[tuple[slice, Listed]]:
    """List rows a part at a time, as many as there is memory for."""
    places = np.cumsum(n_agreeing(table)) * table.n_items
    first = 0
    while first < len(table):
        done = places[first - 1] if first else 0.0
        last = max(first + 1, int(np.searchsorted(places, done + MOST_PLACES / 2, side="right")))
        yield slice(first, last), Listed.of(table[first:last], distance)
        first = last
