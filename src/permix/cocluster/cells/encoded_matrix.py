"""A matrix as compiled code sees it: its filled cells, encoded, by row and by column."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import NamedTuple

import numpy as np

from permix.cocluster.cells.block_sums_jit import add_cells
from permix.cocluster.cells.blocks_jit import CountPrior, MomentPrior
from permix.cocluster.cells.families import CellFamily
from permix.data.labels import Array
from permix.kernels.lines_jit import Lines, lines_of, transposed


class BlockSums(NamedTuple):
    """Cells of each block, and what they add up to: ``n`` (blocks,), ``sums`` (blocks, slots)."""

    n: Array
    sums: Array


@dataclasses.dataclass(frozen=True)
class EncodedMatrix:
    """Filled cells of a matrix under a resolved cell family; shared between chains, never written."""

    family: CellFamily
    by_row: Lines
    n_rows: int
    n_columns: int

    @cached_property
    def by_column(self) -> Lines:
        """The same cells by column."""
        return transposed(self.by_row, self.n_columns)

    @cached_property
    def block_prior(self) -> CountPrior | MomentPrior:
        """The prior of a block."""
        return self.family.block_prior(self.n_cells)

    @cached_property
    def log_constant(self) -> float:
        """What the log likelihood has beyond the marginals of blocks."""
        return self.family.log_constant(self.by_row.codes)

    @property
    def n_cells(self) -> int:
        """Number of filled cells."""
        return len(self.by_row.codes)

    @property
    def rows(self) -> Array:
        """Row of each filled cell."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.by_row.starts))

    def block_sums(self, row_classes: Array, column_classes: Array, table: Array, n_blocks: int) -> BlockSums:
        """Add up the filled cells of every block; ``table`` says where classes of rows and columns meet."""
        n = np.zeros(n_blocks, dtype=np.int64)
        sums: Array = np.zeros((n_blocks, self.family.n_slots), dtype=self.family.sums_dtype)
        add_cells(self.block_prior, *self.by_row, row_classes, column_classes, table, n, sums)
        return BlockSums(n, sums)


def grid_table(n_rows: int, n_columns: int) -> Array:
    """Return a table in which every row class has blocks of its own."""
    return np.arange(n_rows * n_columns).reshape(n_rows, n_columns)


def encode_matrix(
    family: CellFamily, rows: Array, columns: Array, values: Array, shape: tuple[int, int]
) -> EncodedMatrix:
    """Encode cells that are sorted by row, then column, under a resolved family."""
    return EncodedMatrix(family, lines_of(rows, columns, family.encode(values), shape[0]), *shape)
