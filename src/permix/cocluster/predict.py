"""What a fitted co-clustering says about cells and about new rows, in the user's terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from permix.cocluster.block_predict import BlockPredictive
from permix.cocluster.cells.encoded_matrix import EncodedMatrix, encode_matrix
from permix.cocluster.cells.families import CategoricalCells, CellFamily, plain
from permix.cocluster.fit import BlockFit, naming_cells
from permix.cocluster.mixed_predict import MixedPredictive, RowAnswers
from permix.data.cells import Cells
from permix.data.cells_checks import match_numbers
from permix.data.labels import as_objects
from permix.errors import DataError
from permix.estimators.recommend import Recommended, best_first

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Cells asked for at a time; deviations that hold 90 % of a normal distribution.
BLOCK, NINETY = 200_000, 1.645
NO_LEVELS = (
    "cells of the family {} have no levels, hence no probabilities of these; predict_cells has their means, "
    "score_cells the density of given values"
)
#: Places asked for: (row, column) pairs by name or number, a :class:`Cells`, or None for the whole table.
Places = Any


class BlockPredictions:
    """Answers of a fit about cells and rows; probabilities are averaged over at most 200 draws."""

    def __init__(self, fit: BlockFit) -> None:
        self.fit = fit

    # -- cells -----------------------------------------------------------------------------------

    def predict_cells_proba(self, new: Cells | None = None, cells: Places = None) -> FloatArray:
        """Return the probability of every level, levels last."""
        family = self.fit.family
        if not family.has_levels:
            raise DataError(NO_LEVELS.format(family.name))
        return self._values(new, cells)

    def predict_cells_mean(self, new: Cells | None = None, cells: Places = None) -> FloatArray:
        """Return the expected value of cells."""
        family = self.fit.family
        values = self._values(new, cells)
        if not isinstance(family, CategoricalCells):
            return values[..., 0]
        if not family.levels_are_numbers:
            raise DataError("values that are text have no mean; predict_cells_proba has their probabilities")
        return np.asarray(values @ np.array(family.levels, dtype=np.float64))

    def predict_cells(self, new: Cells | None = None, cells: Places = None) -> Array:
        """Return the most probable value of cells in levels, the mean of others."""
        family = self.fit.family
        if not isinstance(family, CategoricalCells):
            return self.predict_cells_mean(new, cells)
        levels = list(family.levels or ())
        # An array that holds levels without loss.
        array = np.array(levels, dtype=object if any(isinstance(level, str) for level in levels) else None)
        return np.asarray(array[self._values(new, cells).argmax(axis=-1)])

    def complete(self, new: Cells | None = None) -> Array:
        """Return the whole table: filled cells as they are, others as :meth:`predict_cells` has them."""
        known = self.fit.known_cells
        if new is not None:
            known = as_fitted(new.aligned(known, rows=False), self.fit.family)
        table = self.predict_cells(new)
        if table.dtype != object:
            table = table.astype(np.float64)  # levels that are whole numbers, beside means
        table[known.rows, known.columns] = known.values
        return table

    def log_probability(self, held_out: Cells) -> FloatArray:
        """Return ln p(value) of each filled cell, taken as further cells of the fitted rows.

        Densities for the family gaussian.
        """
        if not held_out.n_cells:
            raise DataError("there is no filled cell, hence nothing to score")
        cells, codes = fitted_codes(self.fit, held_out)
        return self.fit.predictive.log_probability(cells.rows, cells.columns, codes)

    def score_cells(self, held_out: Cells) -> float:
        """Return the mean of :meth:`log_probability`."""
        return float(self.log_probability(held_out).mean())

    def _values(self, new: Cells | None, cells: Places) -> FloatArray:
        fitted, predictive = self.fit.known_cells, self.fit.predictive
        if new is None:
            return predictive.values(*places(fitted, cells))
        return predictive.new_row_values(self._new(new), *places(new, cells, fitted))

    def expected_values(self, new: Cells | None, rows: Array) -> tuple[FloatArray, FloatArray]:
        """Return the expected value of all cells of some rows, (rows, columns), and its standard deviation.

        The latter is over draws of the blocks and, within each, over what the block's mean may be.
        """
        family = self.fit.family
        if isinstance(family, CategoricalCells) and not family.levels_are_numbers:
            said = "values that are text have no expected value, hence no order to recommend by; "
            raise DataError(f"{said}predict_cells_proba has their probabilities")
        predictive = self.fit.predictive.with_moments()
        n_columns = self.fit.shape[1]
        asked = np.repeat(rows, n_columns), np.tile(np.arange(n_columns), len(rows))
        found = (
            predictive.values(*asked) if new is None else predictive.new_row_values(self._new(new), *asked)
        ).reshape(len(rows), n_columns, 2)
        mean = found[..., 0]
        return mean, np.sqrt(np.maximum(found[..., 1] - mean**2, 0.0))

    def recommended(self, new: Cells | None, rows: Array, n: int) -> Iterator[Recommended]:
        """Yield, for some rows, the columns without a cell there, the largest expected value first."""
        fitted = self.fit.known_cells
        known = fitted if new is None else new.aligned(fitted, rows=False)
        popularity = np.bincount(fitted.columns, minlength=fitted.n_columns)
        levels = getattr(self.fit.family, "levels", None)
        ends = (min(levels), max(levels)) if levels else (-np.inf, np.inf)
        size = max(1, BLOCK // fitted.n_columns)
        for first in range(0, len(rows), size):
            some = rows[first : first + size]
            means, spreads = self.expected_values(new, some)
            low, high = (np.clip(means + side * NINETY * spreads, *ends) for side in (-1.0, 1.0))
            for at, row in enumerate(some.tolist()):
                unseen = np.ones(fitted.n_columns, dtype=np.bool_)
                unseen[known.columns[slice(*np.searchsorted(known.rows, [row, row + 1]))]] = False
                for place, column, tied in best_first(means[at], unseen, popularity, n):
                    mean, *ends_of = (float(each[at, column]) for each in (means, low, high))
                    who, name = known.row_name(row), fitted.column_name(column)
                    yield Recommended(who, place, name, mean, ends_of[0], ends_of[1], tied)

    # -- new rows --------------------------------------------------------------------------------

    def rows(self, new: Cells, *, groups: bool = True, scores: bool = True) -> RowAnswers:
        """Return what is said of new rows, all of it found at once.

        Probabilities are those of the groups of rows of the point estimate; what they leave is that of a
        group of its own. With mixed membership a row is in several: its mean shares of them, and ln p has a
        Monte Carlo error.
        """
        fit, matrix = self.fit, self._new(new)
        if isinstance(fit.predictive, MixedPredictive):
            return fit.predictive.row_answers(matrix, fit.labels("row") if groups else None, weigh=scores)
        shares, best = np.zeros((matrix.n_rows, 0)), None
        if groups:
            one = BlockPredictive(fit.known_matrix, [fit.blocks])
            joint = one.row_log_joint(matrix)
            known = joint[:, : len(fit.blocks.table)]
            shares, best = np.exp(known - np.logaddexp.reduce(joint, axis=1)[:, None]), known.argmax(axis=1)
        evidence = fit.predictive.row_log_evidence(matrix) if scores else np.full(matrix.n_rows, np.nan)
        return RowAnswers(evidence, np.zeros(matrix.n_rows), shares, best)

    def _new(self, new: Cells) -> EncodedMatrix:
        cells = as_fitted(new.aligned(self.fit.known_cells, rows=False), self.fit.family)
        with naming_cells(cells):
            return encode_matrix(self.fit.family, cells.rows, cells.columns, cells.values, cells.shape)


def places(cells: Cells, asked: Places, columns: Cells | None = None) -> tuple[IntArray, ...]:
    """Return rows and columns of the cells asked for, as positions; nothing for the whole table.

    ``columns``, where given, are the cells whose column names count.
    """
    if asked is None:
        return ()
    named = cells if columns is None else columns
    if isinstance(asked, Cells):
        found = asked.aligned(named, rows=columns is None)
        row_of = np.arange(found.n_rows) if columns is None else _among_new(asked, cells)
        return row_of[found.rows], found.columns.astype(np.int64)
    if not isinstance(asked, Iterable) or isinstance(asked, str | bytes | dict):
        raise DataError(f"cells must be a sequence of (row, column) pairs, got {asked!r}")
    rows, others = [], []
    for pair in np.asarray(asked, dtype=object) if isinstance(asked, np.ndarray) else list(asked):
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise DataError(f"cells must be (row, column) pairs, got {pair!r}")
        rows.append(cells.row_index(pair[0]))
        others.append(named.column_index(pair[1]))
    return np.array(rows, dtype=np.int64), np.array(others, dtype=np.int64)


def _among_new(asked: Cells, new: Cells) -> IntArray:
    """Return the new row that each row asked for is: by name, by number, or by position without names."""
    if asked.row_names is not None and new.row_names is None:
        return match_numbers(asked.row_names, new.n_rows, "row")
    if asked.row_names is not None:
        return np.array([new.row_index(name) for name in asked.row_names], dtype=np.int64)
    if asked.n_rows != new.n_rows:
        raise DataError(
            f"cells has {asked.n_rows} rows, and there are {new.n_rows} new ones; without names on both "
            "sides they must be the same"
        )
    return np.arange(new.n_rows)


def fitted_codes(fit: BlockFit, held_out: Cells) -> tuple[Cells, Array]:
    """Return further cells of the fitted rows, as these are named, and their encoded values."""
    cells = as_fitted(held_out.aligned(fit.known_cells), fit.family)
    with naming_cells(cells):
        return cells, fit.family.encode(cells.values)


def as_fitted(cells: Cells, family: CellFamily) -> Cells:
    """Write numbers as text where the levels are text: rows without a word in them are read as numbers."""
    levels = getattr(family, "levels", None) or (0,)
    if cells.is_text or not cells.n_cells or not all(isinstance(level, str) for level in levels):
        return cells
    texts = as_objects([str(plain(value)) for value in cells.values.tolist()])
    names = (cells.row_names, cells.column_names)
    return Cells(cells.rows, cells.columns, texts, cells.shape, *names, new_rows=True)


def perplexity_of(score: float) -> float:
    """Return exp of minus a mean log probability; infinite where that is more than a float holds."""
    with np.errstate(over="ignore"):
        return float(np.exp(-score))
