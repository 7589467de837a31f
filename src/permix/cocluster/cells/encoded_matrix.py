"""A matrix as compiled code sees it: its filled cells, encoded, by row and by column."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from permix.cocluster.cells.blocks_jit import CountLaw, MomentLaw
from permix.cocluster.cells.cell_lines_jit import Lines, lines_of, transposed
from permix.cocluster.cells.families import CellFamily

Array = npt.NDArray[Any]


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
    def law(self) -> CountLaw | MomentLaw:
        """The prior of a block."""
        return self.family.law(self.n_cells)

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


def encode_matrix(
    family: CellFamily, rows: Array, columns: Array, values: Array, shape: tuple[int, int]
) -> EncodedMatrix:
    """Encode cells that are sorted by row, then column, under a resolved family."""
    return EncodedMatrix(family, lines_of(rows, columns, family.encode(values), shape[0]), *shape)
