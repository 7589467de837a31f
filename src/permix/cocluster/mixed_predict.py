"""Predictions where every cell has drawn its own group of rows and group of columns.

LDCC as published (Wang, Laskey, Domeniconi & Jordan 2011, section 2): a draw says how many cells of each row
are in each group of rows, the same for columns, and what the cells of every pair of groups add up to.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.cocluster.block_predict import Predictive, level_values
from permix.cocluster.cells.blocks_jit import CountPrior, MomentPrior
from permix.cocluster.cells.encoded_matrix import BlockSums, EncodedMatrix
from permix.cocluster.cells.families import CategoricalCells
from permix.cocluster.grid.mixed_fold_jit import fold_row, weigh_row
from permix.cocluster.grid.mixed_jit import MixedCells
from permix.errors import PermixWarning

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
# Cells that are scored against all pairs of groups at once.
CHUNK = 4096
# New rows: how often one is folded in, over all draws; sweeps of Gibbs each time; where chance begins.
N_TRIES, N_SWEEPS, SEED = 200, 20, 0
# An estimate that rests on fewer tries is rough.
FEW = 10
# Counts as no cell, but shares of groups that hold none are defined.
SMALL = 1e-9


class MixedDraw(NamedTuple):
    """Cells of every line (axis 0) in every group (axis 1), sums of blocks, and priors."""

    row_cells: Array
    column_cells: Array
    blocks: BlockSums
    pseudo_counts: tuple[float, float]  # of one group of rows, of one of columns
    pseudo_count: float | None = None  # of cells, where it is learned

    @property
    def rows(self) -> FloatArray:
        """Mean shares of groups of rows; those of a row sum to one."""
        return _shares(self.row_cells, self.pseudo_counts[0])

    @property
    def columns(self) -> FloatArray:
        """Mean shares of groups of columns; those of a column sum to one."""
        return _shares(self.column_cells, self.pseudo_counts[1])


def _shares(cells: Array, pseudo_count: float) -> FloatArray:
    weights = cells + pseudo_count
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class RowAnswers(NamedTuple):
    """What is said of new rows: ln p of their cells, its error, and their shares of given groups."""

    log_evidence: FloatArray
    errors: FloatArray
    shares: FloatArray  # in mixed membership; else probabilities, which leave some for a group of its own
    known_best: Array | None = None  # the most probable group, however improbable all are

    @property
    def best(self) -> Array:
        """The group with the largest share."""
        return self.shares.argmax(axis=1) if self.known_best is None else self.known_best

    @property
    def novelty(self) -> FloatArray:
        """Probability of a group of its own."""
        return np.maximum(1.0 - self.shares.sum(axis=1), 0.0)


class _Tried(NamedTuple):
    """A new row whose cells have groups, under one of the draws."""

    block_prior: CountPrior | MomentPrior
    others: Array
    codes: Array
    mixed: MixedCells
    proposals: FloatArray
    fitted: MixedDraw
    draw_number: int

    @property
    def draw(self) -> MixedDraw:
        """The draw with the new row's cells counted; ``row_cells`` are those of the new row alone."""
        _, rows, columns, n, sums, _ = self.mixed
        return MixedDraw(rows, columns, BlockSums(n, sums), self.fitted.pseudo_counts)

    def weight(self, rng: np.random.Generator) -> float:
        """Estimate ln p(cells of the row); its cells are given other groups on the way."""
        return float(weigh_row(rng, *self[:5]))


class MixedPredictive(Predictive[MixedDraw]):
    """Predictions averaged over draws of mixed memberships.

    A further cell of a row and a column draws their groups by membership, then its value from the block.
    The cells of a new row are given groups by sweeps of Gibbs, at least once under each draw, and all draws
    count alike: weights by the probability of a long row would leave next to none of them, and are known too
    roughly. The same row always gets the same answer, whatever rows come with it and whatever is asked.
    """

    def values(self, rows: Array | None = None, columns: Array | None = None) -> FloatArray:
        """Return the probability of every level, or the mean; see ``block_predict``."""
        total: Any = 0.0
        for draw in self.draws:
            by_block = self.said_of(self.family_of(draw), *draw.blocks)
            if rows is None:
                total = total + np.einsum("ig,ghv,jh->ijv", draw.rows, by_block, draw.columns, optimize=True)
            else:
                # Row by row of the pairs asked for: groups of rows first, then those of columns.
                half = np.tensordot(draw.rows[rows], by_block, 1)
                total = total + np.einsum("chv,ch->cv", half, draw.columns[columns])
        return np.asarray(total / len(self.draws))

    def row_answers(self, new: EncodedMatrix, labels: Any = None, *, weigh: bool = True) -> RowAnswers:
        """Return ln p(filled cells) of each new row, p averaged over draws, and its shares of given groups.

        A row has shares of the groups of rows of a draw, and of the cells in one of these, shares belong to
        rows of each given group: ``labels``, 0 ... without gaps, of the fitted rows. Shares are left out
        without these, and ln p where not ``weigh``. Warns where the average of p rests on few of its terms.
        """
        belongs = [] if labels is None else self._belonging(labels)
        n_groups = belongs[0].shape[1] if belongs else 0
        n_rows, n_tries = new.n_rows, self._n_tries * len(self.draws)
        found = RowAnswers(np.full(n_rows, np.nan), np.zeros(n_rows), np.zeros((n_rows, n_groups)))
        effective = np.full(n_rows, np.inf)
        for row in range(n_rows):
            rng = weighing_stream()
            weights = np.empty(n_tries)
            for place, tried in enumerate(self._folded(new, row)):
                if belongs:
                    found.shares[row] += tried.draw.rows[0] @ belongs[tried.draw_number]
                if weigh:  # last: cells are given other groups on the way
                    weights[place] = tried.weight(rng)
            if weigh:
                total = np.logaddexp.reduce(weights)
                effective[row] = np.exp(2.0 * total - np.logaddexp.reduce(2.0 * weights))
                constant = self.family.log_constant(_cells_of(new, row)[1])
                found.log_evidence[row] = total - np.log(n_tries) + constant
                found.errors[row] = np.sqrt(max(1.0 / effective[row] - 1.0 / n_tries, 0.0))
        rough = np.flatnonzero(effective < FEW)
        if rough.size:
            warnings.warn(
                f"under mixed membership the probability of a row is estimated, and for {rough.size:,} of "
                f"{n_rows:,} rows the estimate rests on fewer than {FEW} of {n_tries} tries: their "
                "log probabilities are rough, within a unit or two",
                PermixWarning,
                stacklevel=2,
            )
        return found._replace(shares=found.shares / n_tries)

    def _belonging(self, labels: Array) -> list[FloatArray]:
        """Return, for each draw, which share of the cells of its groups of rows is of each given group."""
        member = np.eye(int(labels.max()) + 1)[labels]
        cells = [draw.row_cells.T @ member + SMALL * member.sum(axis=0) for draw in self.draws]
        return [each / each.sum(axis=1, keepdims=True) for each in cells]

    def new_row_values(self, new: EncodedMatrix, rows: Any = None, columns: Any = None) -> FloatArray:
        """Return what :meth:`BlockPredictive.new_row_values` does."""
        if rows is None:
            every_column = np.arange(self.matrix.n_columns)
            return np.stack([self._new_row_values(new, row, every_column) for row in range(new.n_rows)])
        out = np.empty((len(rows), self.n_values))
        for row in np.unique(rows).tolist():
            out[rows == row] = self._new_row_values(new, row, columns[rows == row])
        return out

    def _new_row_values(self, new: EncodedMatrix, row: int, columns: Array) -> FloatArray:
        values = []
        for tried in self._folded(new, row):
            draw = tried.draw
            by_block = np.tensordot(draw.rows[0], self.said_of(self.family_of(draw), *draw.blocks), 1)
            values.append(_shares(draw.column_cells[columns], draw.pseudo_counts[1]) @ by_block)
        return np.asarray(np.mean(values, axis=0))

    @property
    def _n_tries(self) -> int:
        """How often a new row is folded in under each draw."""
        return -(-N_TRIES // len(self.draws))

    def _folded(self, new: EncodedMatrix, row: int) -> Iterator[_Tried]:
        """Give the cells of a new row their groups, again and again."""
        others, codes = _cells_of(new, row)
        rng = np.random.default_rng(SEED)
        for number, draw in enumerate(self.draws):
            for _ in range(self._n_tries):
                mixed = MixedCells(
                    np.zeros((2, len(codes)), dtype=np.int32),
                    np.zeros((1, draw.row_cells.shape[1]), dtype=np.int64),
                    np.array(draw.column_cells, dtype=np.int64),
                    np.array(draw.blocks.n, dtype=np.int64),
                    np.array(draw.blocks.sums, dtype=self.family.sums_dtype),
                    np.array(draw.pseudo_counts),
                )
                proposals = np.empty((N_SWEEPS, draw.row_cells.shape[1]))
                fold_row(rng, self.prior_of(draw), others, codes, mixed, proposals)
                yield _Tried(self.prior_of(draw), others, codes, mixed, proposals, draw, number)

    def log_cells_of(self, draw: MixedDraw, rows: Array, columns: Array, codes: Array) -> FloatArray:
        out = np.empty(len(codes))
        if isinstance(self.family, CategoricalCells):
            by_block = level_values(self.family_of(draw), *draw.blocks)
            for level in range(by_block.shape[2]):
                here = codes == level
                shares = draw.rows[rows[here]] @ by_block[:, :, level]
                out[here] = np.einsum("ch,ch->c", shares, draw.columns[columns[here]])
            return np.log(out)
        log_rows, log_columns = np.log(draw.rows), np.log(draw.columns)
        for start in range(0, len(codes), CHUNK):
            part = slice(start, start + CHUNK)
            log_values = self.family_of(draw).log_predictive(codes[part, None, None], *draw.blocks)
            log_values += log_rows[rows[part], :, None] + log_columns[columns[part], None, :]
            out[part] = np.logaddexp.reduce(log_values.reshape(len(log_values), -1), axis=1)
        return out


def weighing_stream() -> np.random.Generator:
    """Return the numbers that weights are drawn with: others than those that fold, which stay the same."""
    return np.random.default_rng(np.random.SeedSequence(SEED).spawn(1)[0])


def _cells_of(matrix: EncodedMatrix, row: int) -> tuple[Array, Array]:
    """Columns and encoded values of the filled cells of a row."""
    starts, others, codes = matrix.by_row
    own = slice(starts[row], starts[row + 1])
    return others[own], codes[own]
