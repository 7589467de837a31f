"""Predictions where every cell has drawn its own row cluster and column cluster.

LDCC as published (Wang, Laskey, Domeniconi & Jordan 2011, section 2): a draw says how many cells of each row
are in each cluster of rows, the same for columns, and what the cells of every pair of clusters add up to.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.cocluster.block_predict import BlockSums, level_values
from permix.cocluster.cells.blocks_jit import CountLaw, MomentLaw
from permix.cocluster.cells.encoded_matrix import EncodedMatrix
from permix.cocluster.cells.families import CategoricalCells, CellFamily
from permix.cocluster.grid.mixed_fold_jit import fold_row, weigh_row
from permix.cocluster.grid.mixed_jit import MixedCells
from permix.errors import PermixWarning

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
# Cells that are scored against all pairs of clusters at once.
CHUNK = 4096
# New rows: how often one is folded in, over all draws; sweeps of Gibbs each time; where chance begins.
N_TRIES, N_SWEEPS, SEED = 200, 20, 0
# An estimate that rests on fewer tries is rough.
FEW = 10
# Counts as no cell, but shares of clusters that hold none are defined.
SMALL = 1e-9


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


class _Tried(NamedTuple):
    """A new row whose cells have clusters."""

    rng: np.random.Generator
    law: CountLaw | MomentLaw
    others: Array
    codes: Array
    mixed: MixedCells
    proposals: FloatArray
    fitted: MixedDraw

    @property
    def draw(self) -> MixedDraw:
        """The draw with the new row's cells counted; ``row_cells`` are those of the new row alone."""
        mixed = self.mixed
        blocks = BlockSums(mixed.cells, mixed.sums)
        return MixedDraw(mixed.row_counts, mixed.column_counts, blocks, self.fitted.pseudo_counts)

    def weight(self) -> float:
        """Estimate ln p(cells of the row); its cells are given other clusters on the way."""
        return float(weigh_row(*self[:-1]))


class MixedPredictive:
    """Predictions averaged over draws of mixed memberships.

    A further cell of a row and a column draws their clusters by membership, then its value from the block.
    The cells of a new row are given clusters by sweeps of Gibbs, at least once under each draw, and all draws
    count alike: weights by the probability of a long row would leave next to none of them, and are known too
    roughly. The same row always gets the same answer, whatever rows come with it.
    """

    def __init__(self, matrix: EncodedMatrix, draws: Sequence[MixedDraw]) -> None:
        self.matrix = matrix
        self.draws = draws

    @property
    def family(self) -> CellFamily:
        """What cells of a block are made of."""
        return self.matrix.family

    def values(self, rows: Array | None = None, columns: Array | None = None) -> FloatArray:
        """Return the probability of every level, or the mean; see ``block_predict``."""
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
        """Return ln p(filled cells of a new row) of each, p averaged over draws.

        Warns where the average rests on few of its terms.
        """
        out, effective = np.empty(new.n_rows), np.empty(new.n_rows)
        for row in range(new.n_rows):
            weights = np.array([tried.weight() for tried in self._folded(new, row)])
            total = np.logaddexp.reduce(weights)
            effective[row] = np.exp(2.0 * total - np.logaddexp.reduce(2.0 * weights))
            out[row] = total - np.log(len(weights)) + self.family.log_constant(_cells_of(new, row)[1])
        rough = np.flatnonzero(effective < FEW)
        if rough.size:
            warnings.warn(
                f"under mixed membership the probability of a row is estimated, and for {rough.size:,} of "
                f"{new.n_rows:,} rows the estimate rests on fewer than {FEW} of {len(weights)} tries: their "
                "log probabilities are rough, within a unit or two",
                PermixWarning,
                stacklevel=2,
            )
        return out

    def row_shares(self, new: EncodedMatrix, labels: Array) -> FloatArray:
        """Return the shares of given clusters of fitted rows in each new row.

        The row has shares of the row clusters of a draw, and of the cells in one of these, shares belong to
        rows of each given cluster.

        Parameters
        ----------
        new : EncodedMatrix
        labels : ndarray of int
            The given cluster, 0 ... without gaps, of each fitted row.
        """
        member = np.eye(int(labels.max()) + 1)[labels]
        out = np.zeros((new.n_rows, member.shape[1]))
        for row in range(new.n_rows):
            n = 0
            for tried in self._folded(new, row):
                cells = tried.fitted.row_cells.T @ member + SMALL * member.sum(axis=0)
                out[row] += tried.draw.rows[0] @ (cells / cells.sum(axis=1, keepdims=True))
                n += 1
            out[row] /= n
        return out

    def new_row_values(
        self, new: EncodedMatrix, rows: Array | None = None, columns: Array | None = None
    ) -> FloatArray:
        """Return, for cells of new rows, the probability of every level, or the mean.

        Parameters and result are those of :meth:`BlockPredictive.new_row_values`.
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
        values = []
        for tried in self._folded(new, row):
            draw = tried.draw
            by_block = np.tensordot(draw.rows[0], level_values(self.family, *draw.blocks), 1)
            values.append(_shares(draw.column_cells[columns], draw.pseudo_counts[1]) @ by_block)
        return np.asarray(np.mean(values, axis=0))

    def _folded(self, new: EncodedMatrix, row: int) -> Iterator[_Tried]:
        """Give the cells of a new row their clusters, again and again."""
        others, codes = _cells_of(new, row)
        rng = np.random.default_rng(SEED)
        for draw in self.draws:
            for _ in range(-(-N_TRIES // len(self.draws))):
                mixed = MixedCells(
                    np.zeros((2, len(codes)), dtype=np.int32),
                    np.zeros((1, draw.row_cells.shape[1]), dtype=np.int64),
                    np.array(draw.column_cells, dtype=np.int64),
                    np.array(draw.blocks.n, dtype=np.int64),
                    np.array(draw.blocks.sums, dtype=self.family.sums_dtype),
                    np.array(draw.pseudo_counts),
                )
                proposals = np.empty((N_SWEEPS, draw.row_cells.shape[1]))
                fold_row(rng, self.matrix.law, others, codes, mixed, proposals)
                yield _Tried(rng, self.matrix.law, others, codes, mixed, proposals, draw)

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
