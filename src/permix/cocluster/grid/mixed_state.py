"""The state of latent Dirichlet co-clustering as published: every filled cell has clusters of its own.

Rows and columns belong to several clusters at once (:mod:`permix.cocluster.grid.mixed_jit`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Self

import numpy as np

from permix.cocluster.cells.block_sums_jit import add_cells, log_blocks
from permix.cocluster.cells.encoded_matrix import BlockSums, EncodedMatrix, grid_table
from permix.cocluster.cells.families import CellFamily
from permix.cocluster.cells.learned import LearnsCells
from permix.cocluster.grid.mixed_jit import COLUMNS, ROWS, MixedCells, log_memberships, mixed_sweep
from permix.cocluster.grid.state import GridState, seat_all_lines
from permix.errors import DataError
from permix.families.base import check_number
from permix.moves.base import Info, Move, check_at_least
from permix.partitions.priors import FiniteDirichlet, Gamma


class MixedState(LearnsCells):
    """Row cluster and column cluster of every filled cell of a matrix, which is shared between chains.

    Some clusters may stay empty. Pseudo-counts are the Dirichlet parameter of every cluster in the shares of
    a row, and of a column: small ones leave most rows in few clusters. A new state has all cells in the
    first cluster of both sides; :meth:`start` finds a better place.
    """

    def __init__(
        self,
        matrix: EncodedMatrix,
        n_row_clusters: int,
        n_column_clusters: int,
        row_pseudo_count: float,
        column_pseudo_count: float,
        learned: Gamma | None = None,
    ) -> None:
        check_at_least(n_row_clusters, "n_row_clusters", 1)
        check_at_least(n_column_clusters, "n_column_clusters", 1)
        check_number(row_pseudo_count, "row_pseudo_count")
        check_number(column_pseudo_count, "column_pseudo_count")
        self.matrix = matrix
        self.cell_family, self.learned = matrix.family, learned
        self._block_prior = matrix.block_prior
        self.n_moved = 0
        # Lines without cells: nothing says what clusters they are in, and every draw says another.
        self._idle = [np.flatnonzero(np.diff(line.starts) == 0) for line in (matrix.by_row, matrix.by_column)]
        self._idle_labels = [np.zeros(len(lines), dtype=np.int64) for lines in self._idle]
        blocks = (n_row_clusters, n_column_clusters)
        self.mixed = MixedCells(
            clusters=np.zeros((2, matrix.n_cells), dtype=np.int32),
            row_counts=np.zeros((matrix.n_rows, n_row_clusters), dtype=np.int64),
            column_counts=np.zeros((matrix.n_columns, n_column_clusters), dtype=np.int64),
            cells=np.zeros(blocks, dtype=np.int64),
            sums=np.zeros((*blocks, matrix.family.n_slots), dtype=matrix.family.sums_dtype),
            pseudo_counts=np.array([row_pseudo_count, column_pseudo_count], dtype=np.float64),
        )
        self.refresh()

    def start(self, rng: np.random.Generator) -> Self:
        """Put every cell where its row and its column are in a grid found by sequential prediction."""
        rows, columns = map(FiniteDirichlet, self.mixed.cells.shape, self.mixed.pseudo_counts.tolist())
        grid = seat_all_lines(rng, GridState(self.matrix, rows, columns))
        self.mixed.clusters[ROWS] = grid.rows.labels[self.matrix.rows]
        self.mixed.clusters[COLUMNS] = grid.columns.labels[self.matrix.by_row.others]
        self.refresh()
        return self

    def sweep(self, rng: np.random.Generator) -> int:
        """One collapsed Gibbs visit to every filled cell; returns how many changed their block."""
        self.n_moved = int(mixed_sweep(rng, self._block_prior, *self.matrix.by_row, self.mixed))
        sides = zip(self.mixed.cells.shape, self._idle, strict=True)
        self._idle_labels = [rng.integers(n, size=len(lines)) for n, lines in sides]
        return self.n_moved

    def log_likelihood(self) -> float:
        """Log marginal likelihood of the cells given their clusters."""
        return float(log_blocks(self._block_prior, *self.blocks())) + self.matrix.log_constant

    def log_prior(self) -> float:
        """Log prior of the clusters of all cells, and of the pseudo-count of cells where it is learned."""
        mixed = self.mixed
        value = self.log_hyper_prior() + log_memberships(mixed.row_counts, mixed.pseudo_counts[ROWS])
        return float(value + log_memberships(mixed.column_counts, mixed.pseudo_counts[COLUMNS]))

    def log_joint(self) -> float:
        """Log of prior × marginal likelihood, what a draw is weighed by."""
        return self.log_prior() + self.log_likelihood()

    def record(self) -> dict[str, float | int | np.ndarray]:
        """One draw; the label of a line is the cluster that most of its cells are in."""
        mixed = self.mixed
        log_likelihood = self.log_likelihood()
        row_labels, column_labels = mixed.row_counts.argmax(axis=1), mixed.column_counts.argmax(axis=1)
        row_labels[self._idle[ROWS]] = self._idle_labels[ROWS]
        column_labels[self._idle[COLUMNS]] = self._idle_labels[COLUMNS]
        return {
            "row_labels": row_labels,
            "column_labels": column_labels,
            "row_memberships": mixed.row_counts,
            "column_memberships": mixed.column_counts,
            "block_cells": mixed.cells,
            "block_sums": mixed.sums,
            "n_row_groups": int(mixed.cells.any(axis=1).sum()),
            "n_column_groups": int(mixed.cells.any(axis=0).sum()),
            "n_blocks": int(np.count_nonzero(mixed.cells)),
            "log_likelihood": log_likelihood,
            "log_joint": log_likelihood + self.log_prior(),
            **self.recorded(),
        }

    def progress(self) -> dict[str, float]:
        n_blocks = float(np.count_nonzero(self.mixed.cells))
        return {"blocks": n_blocks, "log joint": self.log_joint(), "moved": float(self.n_moved)}

    def refresh(self) -> None:
        """Recompute all counts and sums from the clusters of cells."""
        mixed, matrix = self.mixed, self.matrix
        for array in (mixed.row_counts, mixed.column_counts, mixed.cells, mixed.sums):
            array.fill(0)
        np.add.at(mixed.row_counts, (matrix.rows, mixed.clusters[ROWS]), 1)
        np.add.at(mixed.column_counts, (matrix.by_row.others, mixed.clusters[COLUMNS]), 1)
        # Every cell is a row and a column of its own here, whose classes are its clusters.
        starts = np.arange(matrix.n_cells + 1)
        each = (starts, starts[:-1].astype(np.int32), matrix.by_row.codes, *mixed.clusters)
        add_cells(matrix.block_prior, *each, grid_table(*mixed.cells.shape), *self.blocks())

    def blocks(self) -> BlockSums:
        """Cells and sums of blocks, one block after another: the same memory."""
        mixed = self.mixed
        return BlockSums(mixed.cells.reshape(-1), mixed.sums.reshape(mixed.cells.size, -1))

    def take_family(self, family: CellFamily) -> None:
        self.cell_family = family
        self._block_prior = family.block_prior(self.matrix.n_cells)

    def checkpoint(self) -> dict[str, np.ndarray]:
        idle_rows, idle_columns = self._idle_labels
        idle = {"idle_rows": idle_rows, "idle_columns": idle_columns}
        return {"clusters": self.mixed.clusters.copy(), **idle, **self.saved()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        clusters = np.asarray(arrays["clusters"])
        if clusters.shape != self.mixed.clusters.shape:
            n_saved, n_cells = clusters.shape[-1], self.matrix.n_cells
            raise DataError(f"the checkpoint is of {n_saved} cells, these are {n_cells}")
        # Compiled code does not check: a damaged checkpoint must not get there.
        if clusters.dtype.kind not in "iu":
            raise DataError("the checkpoint's groups are no whole numbers")
        if np.any(clusters < 0) or np.any(clusters.max(axis=1, initial=0) >= self.mixed.cells.shape):
            raise DataError("the checkpoint names groups that are not there")
        idle = [np.asarray(arrays[name]) for name in ("idle_rows", "idle_columns")]
        for labels, lines, n in zip(idle, self._idle, self.mixed.cells.shape, strict=True):
            fitting = labels.dtype.kind in "iu" and labels.shape == lines.shape
            if not fitting or np.any(labels < 0) or np.any(labels >= n):
                raise DataError("the checkpoint's lines without cells are other ones")
        self.take_saved(arrays)
        self._idle_labels = idle
        self.mixed.clusters[:] = clusters
        self.refresh()


@dataclasses.dataclass
class MixedGibbs(Move):
    """One sweep of collapsed Gibbs over all filled cells in their order."""

    def step(self, rng: np.random.Generator, state: MixedState) -> Info:
        """Visit every cell once; a visit is a draw from the full conditional and is always accepted."""
        state.sweep(rng)
        return Info("gibbs", state.matrix.n_cells, state.matrix.n_cells)
