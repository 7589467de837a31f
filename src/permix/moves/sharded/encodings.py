"""How rows of a shard are encoded for compiled code, which places them among groups and adds them up."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import numpy as np

from permix.data.cells import Cells
from permix.data.labels import Array
from permix.kernels.lines_jit import Lines
from permix.moves.sharded.vectors_jit import count_vectors, log_shares_of_vectors, place_vectors
from permix.moves.sharded.work_jit import count_rows, log_shares, place_rows
from permix.runtime.threads import over_rows


class Parameters(NamedTuple):
    """What rows are placed by."""

    columns: Array  # where the table has each column
    table: Array  # what groups score
    weights: Array  # (groups,)


class Draws(NamedTuple):
    """Names of the streams by which rows are placed: each row has one of its own."""

    key: Array
    turn: int
    ids: Array


class Encoding(abc.ABC):
    """How cells become rows of what compiled code reads; it travels to workers."""

    @abc.abstractmethod
    def rows(self, cells: Cells) -> Any:
        """Return the rows; what is wrong with a cell is said with its place."""

    @abc.abstractmethod
    def counts(self, k: int) -> Array:
        """Return counts of nothing, in ``k`` groups."""

    @abc.abstractmethod
    def count(self, rows: Any, labels: Array, rounding: Array, counts: Array) -> None:
        """Add the rows with labels to the counts of these."""

    @abc.abstractmethod
    def place(self, rows: Any, known: Parameters, draws: Draws, free: Array, labels: Array) -> None:
        """Draw the labels of those who are free."""

    @abc.abstractmethod
    def log_shares(self, rows: Any, known: Parameters, free: Array, labels: Array, out: Array) -> None:
        """Write ln P(label) of those who are free, were they drawn by ``place``."""


class LineEncoding(Encoding):
    """Rows of cells, some of them missing: levels, or numbers."""

    levels: bool
    n_columns: int
    #: Levels; or 2 where the sums of numbers matter, and 3 where those of their squares do as well.
    n_slots: int

    def counts(self, k: int) -> Array:
        return np.zeros((k, self.n_columns, self.n_slots if self.levels else 2 * self.n_slots - 1))

    def numbers(self, counts: Array) -> Array:
        """Return counts with one slot for each sum: two are counted, the second of what the first leaves."""
        if self.levels:
            return counts
        sums = counts[..., 1:].reshape(*counts.shape[:-1], self.n_slots - 1, 2).sum(axis=-1)
        return np.concatenate([counts[..., :1], sums], axis=-1)

    def count(self, rows: Lines, labels: Array, rounding: Array, counts: Array) -> None:
        count_rows(tuple(rows), self.levels, labels, rounding, counts)

    def place(self, rows: Lines, known: Parameters, draws: Draws, free: Array, labels: Array) -> None:
        given = (*draws, free, tuple(rows), self.levels, *known, labels)
        over_rows(place_rows, len(labels), _work(rows), *given)

    def log_shares(self, rows: Lines, known: Parameters, free: Array, labels: Array, out: Array) -> None:
        over_rows(log_shares, len(labels), _work(rows), free, tuple(rows), self.levels, *known, labels, out)


class VectorEncoding(Encoding):
    """Rows of numbers, none of them missing, which add up to sums and sums of products."""

    n_columns: int

    def counts(self, k: int) -> Array:
        d = self.n_columns
        return np.zeros((k, 1 + d + d * (d + 1) // 2, 2))

    def count(self, rows: Array, labels: Array, rounding: Array, counts: Array) -> None:
        count_vectors(rows, labels, rounding, counts)

    def place(self, rows: Array, known: Parameters, draws: Draws, free: Array, labels: Array) -> None:
        given = (*draws, free, rows, known.table, known.weights, labels)
        over_rows(place_vectors, len(labels), self._work(known), *given)

    def log_shares(self, rows: Array, known: Parameters, free: Array, labels: Array, out: Array) -> None:
        given = (free, rows, known.table, known.weights, labels, out)
        over_rows(log_shares_of_vectors, len(labels), self._work(known), *given)

    def _work(self, known: Parameters) -> int:
        return int(known.table.size)


def _work(lines: Lines) -> int:
    return 4 * max(1, len(lines.codes) // max(len(lines.starts) - 1, 1))
