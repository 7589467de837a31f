"""Predictions where every cell has drawn its own row cluster and column cluster.

LDCC as published (Wang, Laskey, Domeniconi & Jordan 2011, section 2): a draw says how many cells of each row
are in each cluster of rows, the same for columns, and what the cells of every pair of clusters add up to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.families.cells import CategoricalCells, CellFamily
from permix.families.encoded_matrix import EncodedMatrix
from permix.posterior.blocks import BlockSums, level_values

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
# Cells that are scored against all pairs of clusters at once.
CHUNK = 4096


class MixedDraw(NamedTuple):
    """Mean memberships (lines × clusters, lines sum to one) and sums of blocks (clusters × clusters)."""

    rows: FloatArray
    columns: FloatArray
    blocks: BlockSums


def mixed_draw(
    row_cells: Array,
    column_cells: Array,
    blocks: BlockSums,
    row_pseudo_count: float,
    column_pseudo_count: float,
) -> MixedDraw:
    """Return a draw from numbers of cells of lines (axis 0) in clusters (axis 1)."""
    return MixedDraw(_shares(row_cells, row_pseudo_count), _shares(column_cells, column_pseudo_count), blocks)


def _shares(cells: Array, pseudo_count: float) -> FloatArray:
    weights = cells + pseudo_count
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class MixedPredictive:
    """Predictions of cells of fitted rows, averaged over draws of mixed memberships.

    A further cell of a row and a column draws their clusters by membership, then its value from the block.
    """

    def __init__(self, matrix: EncodedMatrix, draws: Sequence[MixedDraw]) -> None:
        self.matrix = matrix
        self.draws = draws

    @property
    def family(self) -> CellFamily:
        """What cells of a block are made of."""
        return self.matrix.family

    def values(self, rows: Array | None = None, columns: Array | None = None) -> FloatArray:
        """Return the probability of every level, or the mean; see :class:`~permix.posterior.blocks`."""
        total: Any = 0.0
        for draw in self.draws:
            by_block = level_values(self.family, *draw.blocks)
            if rows is None:
                total = total + np.einsum("ig,ghv,jh->ijv", draw.rows, by_block, draw.columns, optimize=True)
            else:
                # Row by row of the pairs asked for: clusters of rows first, then those of columns.
                half = np.tensordot(draw.rows[rows], by_block, 1)
                total = total + np.einsum("chv,ch->cv", half, draw.columns[columns])
        return np.asarray(total / len(self.draws))

    def log_probability(self, rows: Array, columns: Array, codes: Array) -> FloatArray:
        """Return ln p(cell) of encoded cells of fitted rows, p averaged over draws."""
        total = np.full(len(codes), -np.inf)
        for draw in self.draws:
            one = self._of_levels if isinstance(self.family, CategoricalCells) else self._of_numbers
            np.logaddexp(total, one(draw, rows, columns, codes), out=total)
        return np.asarray(total - np.log(len(self.draws)))

    def _of_levels(self, draw: MixedDraw, rows: Array, columns: Array, codes: Array) -> FloatArray:
        by_block = level_values(self.family, *draw.blocks)
        out = np.empty(len(codes))
        for level in range(by_block.shape[2]):
            here = codes == level
            shares = draw.rows[rows[here]] @ by_block[:, :, level]
            out[here] = np.einsum("ch,ch->c", shares, draw.columns[columns[here]])
        return np.log(out)

    def _of_numbers(self, draw: MixedDraw, rows: Array, columns: Array, codes: Array) -> FloatArray:
        n, sums = draw.blocks
        log_rows, log_columns = np.log(draw.rows), np.log(draw.columns)
        out = np.empty(len(codes))
        for start in range(0, len(codes), CHUNK):
            part = slice(start, start + CHUNK)
            log_values = self.family.log_predictive(codes[part, None, None], n, sums)
            log_values += log_rows[rows[part], :, None] + log_columns[columns[part], None, :]
            out[part] = np.logaddexp.reduce(log_values.reshape(len(log_values), -1), axis=1)
        return out
