"""What blocks of a matrix say: about its cells, and about new rows.

Every draw of a co-clustering, a grid or a Mondrian, comes down to a :class:`BlockDraw`: classes of rows,
classes of columns, and a table that says in which block a row class and a column class meet. Everything later
works on these alone. Block parameters are integrated out, so a draw needs nothing but the partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from permix.cocluster.block_predict_jit import add_table, add_weighted, merge_own, score_rows
from permix.cocluster.cells.blocks_jit import CountPrior, MomentPrior
from permix.cocluster.cells.encoded_matrix import BlockSums, EncodedMatrix, grid_table
from permix.cocluster.cells.families import CategoricalCells, CellFamily
from permix.partitions.priors import PartitionPrior

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
AnyDraw = TypeVar("AnyDraw")
# Row classes with a smaller share of a new row are left out of its predictions.
NEGLIGIBLE = 1e-12


class BlockDraw(NamedTuple):
    """A partition of a matrix into blocks.

    A new row has a log prior weight of each class, and one of a class of its own, which has blocks of its
    own, one for each class of columns; minus infinity where there is no such thing.
    """

    row_classes: Array  # class of each row
    column_classes: Array  # class of each column
    table: Array  # (row classes, column classes) number of the block in which they meet
    row_log_weights: FloatArray  # (row classes,)
    new_row_log_weight: float
    pseudo_count: float | None = None  # of cells, where it is learned

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(self.table.max()) + 1

    def block_of(self, rows: Array, columns: Array) -> Array:
        """Block of each of some cells."""
        return np.asarray(self.table[self.row_classes[rows], self.column_classes[columns]])


def grid_draw(
    row_labels: Array, column_labels: Array, row_prior: PartitionPrior, pseudo_count: float | None = None
) -> BlockDraw:
    """Return the blocks of a grid: every group of rows by every group of columns, 0 ... without gaps.

    ``row_prior`` is at the concentration of the draw, where that is learned.
    """
    sizes = np.bincount(row_labels)
    weights = row_prior.sequential_log_weights(sizes)
    table = grid_table(len(sizes), int(column_labels.max()) + 1)
    classes = (_classes(row_labels), _classes(column_labels))
    return BlockDraw(*classes, table, weights[:-1], float(weights[-1]), pseudo_count)


def mondrian_draw(
    rows: Array, columns: Array, table: Array, row_lengths: FloatArray, pseudo_count: float | None = None
) -> BlockDraw:
    """Return the blocks of a Mondrian, by the intervals between neighboring cuts.

    A new row falls anywhere, into an interval with the probability that is its length.
    """
    with np.errstate(divide="ignore"):
        weights = np.log(np.asarray(row_lengths, dtype=np.float64))
    table = np.ascontiguousarray(table, dtype=np.int64)
    return BlockDraw(_classes(rows), _classes(columns), table, weights, -np.inf, pseudo_count)


def block_sums(matrix: EncodedMatrix, draw: BlockDraw) -> BlockSums:
    """Add up the filled cells of every block."""
    return matrix.block_sums(*draw[:3], draw.n_blocks)


class Predictive(Generic[AnyDraw]):
    """Predictions averaged over draws, which were made for the cells of a matrix.

    With ``moments``, what is averaged is the mean of a cell's block and its square, which say how sure the
    expected value of a cell is.
    """

    def __init__(self, matrix: EncodedMatrix, draws: Sequence[AnyDraw], *, moments: bool = False) -> None:
        self.matrix = matrix
        self.draws = draws
        self.moments = moments

    def with_moments(self) -> Self:
        """Return the same that averages means of blocks and their squares."""
        return type(self)(self.matrix, self.draws, moments=True)

    def said_of(self, family: CellFamily, n: Array, sums: Array) -> FloatArray:
        """Return what blocks say of a cell, values last."""
        if not self.moments:
            return level_values(family, n, sums)
        mean = np.asarray(family.means(n, sums))
        return np.stack([mean, mean**2 + family.mean_variances(n, sums)], axis=-1)

    @property
    def family(self) -> CellFamily:
        """What cells of a block are made of."""
        return self.matrix.family

    def family_of(self, draw: Any) -> CellFamily:
        """Return the family at the pseudo-count of a draw."""
        return self.family if draw.pseudo_count is None else self.family.at(draw.pseudo_count)

    def prior_of(self, draw: Any) -> CountPrior | MomentPrior:
        """Return the prior of a block at the pseudo-count of a draw."""
        # Without tables: what they save is less than what they cost, once for each draw.
        return self.matrix.block_prior if draw.pseudo_count is None else self.family_of(draw).block_prior(0)

    @property
    def n_values(self) -> int:
        """How many values a prediction has: a probability of every level, one mean, or two moments."""
        if self.moments:
            return 2
        return self.family.n_slots if self.family.has_levels else 1

    def log_probability(self, rows: Array, columns: Array, codes: Array) -> FloatArray:
        """Return ln p(cell) of encoded cells of fitted rows, p averaged over draws (equation 5.15)."""
        total = np.full(len(codes), -np.inf)
        for draw in self.draws:
            np.logaddexp(total, self.log_cells_of(draw, rows, columns, codes), out=total)
        return np.asarray(total - np.log(len(self.draws)))

    def log_cells_of(self, draw: AnyDraw, rows: Array, columns: Array, codes: Array) -> FloatArray:
        """Return ln p(cell) of encoded cells of fitted rows under one draw."""
        raise NotImplementedError


class BlockPredictive(Predictive[BlockDraw]):
    """Predictions averaged over draws of blocks."""

    def values(self, rows: Array | None = None, columns: Array | None = None) -> FloatArray:
        """Return, for cells of fitted rows, the probability of every level, or the mean.

        Shape (cells, values), or by default, all cells, (rows, columns, values).
        """
        out = self._nothing(self.matrix.n_rows, rows)
        for draw in self.draws:
            by_block = self.said_of(self.family_of(draw), *block_sums(self.matrix, draw))
            _add(by_block[draw.table], draw.row_classes, draw.column_classes, rows, columns, out)
        out /= len(self.draws)
        return out

    def log_cells_of(self, draw: BlockDraw, rows: Array, columns: Array, codes: Array) -> FloatArray:
        blocks, sums = draw.block_of(rows, columns), block_sums(self.matrix, draw)
        return log_cells(self.family_of(draw), codes, blocks, sums)

    def log_left_out(self, cells: Array) -> FloatArray:
        """Return ln p(cell | all other cells, blocks) of some filled cells under each draw, (draw, cell)."""
        matrix, m = self.matrix, len(cells)
        rows, columns, codes = matrix.rows[cells], matrix.by_row.others[cells], matrix.by_row.codes[cells]
        # Each cell as a block of its own: what it adds to the sums of the block it is in.
        lines = matrix.by_row._replace(
            starts=np.arange(m + 1, dtype=matrix.by_row.starts.dtype),
            others=np.zeros(m, matrix.by_row.others.dtype),
            codes=np.ascontiguousarray(codes),
        )
        classes = (_classes(np.arange(m)), _classes(np.zeros(1, np.int64)), grid_table(m, 1))
        own = EncodedMatrix(matrix.family, lines, m, 1).block_sums(*classes, m)
        out = np.empty((len(self.draws), m))
        for row, draw in zip(out, self.draws, strict=True):
            blocks, sums = draw.block_of(rows, columns), block_sums(matrix, draw)
            rest = (sums.n[blocks] - own.n, sums.sums[blocks] - own.sums)
            row[:] = self.family_of(draw).log_predictive(codes, *rest)
        return out

    def row_log_evidence(self, new: EncodedMatrix) -> FloatArray:
        """Return ln p(filled cells of a new row) of each, p averaged over draws."""
        total = np.full(new.n_rows, -np.inf)
        for folded in self._folded(new):
            np.logaddexp(total, np.logaddexp.reduce(folded.joint, axis=1), out=total)
        starts, _, codes = new.by_row
        constants = [self.family.log_constant(codes[a:b]) for a, b in pairwise(starts.tolist())]
        return np.asarray(total - np.log(len(self.draws)) + constants)

    def row_log_joint(self, new: EncodedMatrix) -> FloatArray:
        """Return ln(weight × probability) of new rows in each class of the first draw and, last, a new one.

        Up to a constant of each row. The last column is left out where the prior knows no new class.
        """
        return next(self._folded(new)).joint

    def new_row_values(self, new: EncodedMatrix, rows: Any = None, columns: Any = None) -> FloatArray:
        """Return, for cells of new rows, the probability of every level, or the mean.

        Exact under every draw: a new row is of each class with its prior weight times the probability of the
        row's filled cells there, and these cells count among those of the blocks. Draws are weighed by the
        probability they give to the row's cells. The shape is that of :meth:`values`.
        """
        out = self._nothing(new.n_rows, rows)
        unit = (1,) * (out.ndim - 1)
        every_row = np.arange(new.n_rows, dtype=np.int32)
        total = np.zeros(new.n_rows)
        highest = np.full(new.n_rows, -np.inf)
        for folded in self._folded(new):
            here = np.logaddexp.reduce(folded.joint, axis=1)
            higher = np.maximum(highest, here)
            # Sums so far were relative to the most probable draw so far, row by row.
            shrink = np.exp(highest - higher)
            rising = np.flatnonzero((shrink if rows is None else shrink[rows]) < 1.0)
            out[rising] *= (shrink[rising] if rows is None else shrink[rows[rising]]).reshape(-1, *unit)
            total = total * shrink + np.exp(here - higher)
            by_class = self._class_values(folded, np.exp(folded.joint - higher[:, None]))
            _add(by_class, every_row, folded.column_classes, rows, columns, out)
            highest = higher
        out /= (total if rows is None else total[rows]).reshape(-1, *unit)
        return out

    def _nothing(self, n_rows: int, rows: Array | None) -> FloatArray:
        table = (n_rows, self.matrix.n_columns) if rows is None else (len(rows),)
        return np.zeros((*table, self.n_values))

    def _folded(self, new: EncodedMatrix) -> Iterator[_Folded]:
        """Try new rows in every class, draw by draw."""
        every_row = np.arange(new.n_rows, dtype=np.int32)
        for draw in self.draws:
            n, sums = block_sums(self.matrix, draw)
            table, weights, n_groups = draw.table, draw.row_log_weights, draw.table.shape[1]
            if draw.new_row_log_weight > -np.inf:
                table = np.vstack([table, len(n) + np.arange(n_groups)])
                weights = np.append(weights, draw.new_row_log_weight)
                n = np.append(n, np.zeros(n_groups, n.dtype))
                sums = np.vstack([sums, np.zeros((n_groups, sums.shape[1]), sums.dtype)])
            weights = weights - np.logaddexp.reduce(weights)
            cells = grid_table(new.n_rows, n_groups)
            own = new.block_sums(every_row, draw.column_classes, cells, cells.size)
            own_n, own_sums = own.n[cells], own.sums[cells]
            joint = np.empty((new.n_rows, len(table)))
            score_rows(self.prior_of(draw), table, n, sums, own_n, own_sums, weights, joint)
            blocks = BlockSums(n, sums)
            yield _Folded(joint, self.family_of(draw), draw.column_classes, table, blocks, own_n, own_sums)

    def _class_values(self, folded: _Folded, weights: FloatArray) -> FloatArray:
        """Return the values of cells by new row and column class, summed over row classes by weight."""
        n, sums = folded.blocks
        out = np.zeros((*folded.own_n.shape, self.n_values))
        least = NEGLIGIBLE * weights.sum(axis=1)
        for k, blocks_of_class in enumerate(folded.table):
            who = np.flatnonzero(weights[:, k] > least)
            if who.size == 0:
                continue
            blocks, place = np.unique(blocks_of_class, return_inverse=True)
            merged = [np.repeat(array[None, blocks], len(who), axis=0) for array in (n, sums)]
            merge_own(folded.own_n, folded.own_sums, who, place, *merged)
            add_weighted(self.said_of(folded.family, *merged), who, place, weights[:, k], out)
        return out


class _Folded(NamedTuple):
    """New rows under one draw, a class of their own last where there is one."""

    joint: FloatArray
    family: CellFamily
    column_classes: Array
    table: Array
    blocks: BlockSums
    own_n: Array  # (new rows, column classes)
    own_sums: Array  # (new rows, column classes, slots)


def level_values(family: CellFamily, n: Array, sums: Array) -> FloatArray:
    """Return what a block predicts of a cell, values last: probabilities of levels, or one mean."""
    if isinstance(family, CategoricalCells):
        return np.asarray(family.probabilities(n, sums))
    return np.asarray(family.means(n, sums))[..., None]


def log_cells(family: CellFamily, codes: Array, blocks: Array, sums: BlockSums) -> FloatArray:
    """Return ln p(cell) of encoded cells, each in its block."""
    if isinstance(family, CategoricalCells):
        return np.asarray(np.log(family.probabilities(*sums))[blocks, codes])
    return np.asarray(family.log_predictive(codes, sums.n[blocks], sums.sums[blocks]))


def _classes(labels: Array) -> npt.NDArray[np.int32]:
    """One type of labels, so that compiled code is compiled once."""
    return np.ascontiguousarray(labels, dtype=np.int32)


def _add(values: Array, of_rows: Array, of_columns: Array, rows: Any, columns: Any, out: Array) -> None:
    """Add values of classes to those of some cells, or of the whole table."""
    if rows is None:
        add_table(values, of_rows, of_columns, out)
    else:
        out += values[of_rows[rows], of_columns[columns]]
