"""Predictions where every cell has drawn its own row cluster and column cluster.

LDCC as published (Wang, Laskey, Domeniconi & Jordan 2011, section 2): a draw says how many cells of each row
are in each cluster of rows, the same for columns, and what the cells of every pair of clusters add up to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.families.cells import CategoricalCells, CellFamily
from permix.families.encoded_matrix import EncodedMatrix
from permix.kernels.mixed_fold import fold_row
from permix.kernels.mixed_membership import MixedCells
from permix.posterior.blocks import BlockSums, level_values

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
# Cells that are scored against all pairs of clusters at once.
CHUNK = 4096
# New rows: how often one is folded in, over all draws; sweeps of Gibbs each time; where chance begins.
N_TRIES, N_SWEEPS, SEED = 200, 5, 0


class MixedDraw(NamedTuple):
    """Cells of every line (axis 0) in every cluster (axis 1), sums of blocks, and priors."""

    row_cells: Array
    column_cells: Array
    blocks: BlockSums
    pseudo_counts: tuple[float, float]  # of one row cluster, of one column cluster

    @property
    def rows(self) -> FloatArray:
        """Mean shares of row clusters; those of a row sum to one."""
        return _shares(self.row_cells, self.pseudo_counts[0])

    @property
    def columns(self) -> FloatArray:
        """Mean shares of column clusters; those of a column sum to one."""
        return _shares(self.column_cells, self.pseudo_counts[1])


def _shares(cells: Array, pseudo_count: float) -> FloatArray:
    weights = cells + pseudo_count
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class MixedPredictive:
    """Predictions averaged over draws of mixed memberships.

    A further cell of a row and a column draws their clusters by membership, then its value from the block.
    The cells of a new row are given clusters by sequential imputation and some sweeps of Gibbs, at least once
    under each draw; what follows from them is weighed by the probability of the row so found, which is right
    in the mean. The same row always gets the same answer, whatever rows come with it.
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

    def row_log_evidence(self, new: EncodedMatrix) -> FloatArray:
        """Return ln p(filled cells of a new row) of each, p averaged over draws."""
        out = np.empty(new.n_rows)
        for row in range(new.n_rows):
            weights = [log_weight for log_weight, _ in self._folded(new, row)]
            constant = self.family.log_constant(_cells_of(new, row)[1])
            out[row] = np.logaddexp.reduce(weights) - np.log(len(weights)) + constant
        return out

    def new_row_values(
        self, new: EncodedMatrix, rows: Array | None = None, columns: Array | None = None
    ) -> FloatArray:
        """Return, for cells of new rows, the probability of every level, or the mean.

        Parameters and result are those of :meth:`~permix.posterior.blocks.BlockPredictive.new_row_values`.
        """
        every_column = np.arange(self.matrix.n_columns)
        asked = dict.fromkeys(range(new.n_rows), every_column)
        if rows is not None:
            assert columns is not None
            asked = {row: columns[rows == row] for row in np.unique(rows).tolist()}
        found = {row: self._new_row_values(new, row, places) for row, places in asked.items()}
        if rows is None:
            return np.stack([found[row] for row in range(new.n_rows)])
        out = np.empty((len(rows), self.family.n_slots if self.family.has_levels else 1))
        for row, values in found.items():
            out[rows == row] = values
        return out

    def _new_row_values(self, new: EncodedMatrix, row: int, columns: Array) -> FloatArray:
        total, out, highest = 0.0, np.zeros(()), -np.inf
        for log_weight, draw in self._folded(new, row):
            # Sums so far were relative to the largest weight so far.
            higher = max(highest, log_weight)
            shrink, weight = np.exp(highest - higher), np.exp(log_weight - higher)
            by_block = np.tensordot(draw.rows[0], level_values(self.family, *draw.blocks), 1)
            shares = _shares(draw.column_cells[columns], draw.pseudo_counts[1])
            out = out * shrink + weight * (shares @ by_block)
            total = total * shrink + weight
            highest = higher
        return np.asarray(out / total)

    def _folded(self, new: EncodedMatrix, row: int) -> Iterator[tuple[float, MixedDraw]]:
        """Yield the log weight and what a draw becomes, ``row_cells`` those of the new row, for each try."""
        others, codes = _cells_of(new, row)
        rng = np.random.default_rng(SEED)
        for draw in self.draws:
            for _ in range(-(-N_TRIES // len(self.draws))):
                tried = MixedDraw(
                    np.zeros((1, draw.row_cells.shape[1]), dtype=np.int64),
                    np.array(draw.column_cells, dtype=np.int64),
                    BlockSums(*map(np.array, draw.blocks)),
                    draw.pseudo_counts,
                )
                clusters = np.zeros((2, len(codes)), dtype=np.int32)
                mixed = MixedCells(clusters, *tried[:2], *tried.blocks, np.array(tried.pseudo_counts))
                yield fold_row(rng, self.matrix.law, others, codes, mixed, N_SWEEPS), tried

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


def _cells_of(matrix: EncodedMatrix, row: int) -> tuple[Array, Array]:
    """Columns and encoded values of the filled cells of a row."""
    starts, others, codes = matrix.by_row
    own = slice(starts[row], starts[row + 1])
    return others[own], codes[own]
