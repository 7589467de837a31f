"""What the cells of groups of rows hold, column by column and by groups of columns, for reports."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from permix.cocluster.fit import BlockFit
from permix.data.labels import Array
from permix.reporting.words import number, percent, shown

# Levels that are text and are looked at one by one, the most frequent ones.
MOST_LEVELS = 4
# A column speaks of a group that has so many cells in it.
FEWEST_CELLS = 5
# What is averaged of cells that are 0 or 1.
SHARE_OF_1 = "share of 1"


class GroupValues:
    """Means of cells by group: of numbers one *measure*, of levels that are text their shares, one for each.

    Arrays have the measure first.
    """

    def __init__(self, fit: BlockFit) -> None:
        matrix, family = fit.known_matrix, fit.family
        self.row_labels, self.column_labels = fit.labels("row"), fit.labels("column")
        self.n_groups = int(self.row_labels.max()) + 1
        self.n_column_groups = int(self.column_labels.max()) + 1
        self.n_columns = matrix.n_columns
        self.rows, self.columns, codes = matrix.rows, np.asarray(matrix.by_row.others), matrix.by_row.codes
        levels = getattr(family, "levels", None) if family.has_levels else None
        self.is_share = False
        if levels is None:
            self.names, self.cells = ["mean"], np.asarray(family.values(codes), dtype=float)[None]
        elif family.levels_are_numbers:
            self.is_share = set(levels) <= {0, 1}
            self.names = [SHARE_OF_1] if self.is_share else ["mean"]
            self.cells = np.array(levels, dtype=float)[codes][None]
        else:
            self.is_share = True
            often = np.bincount(codes, minlength=len(levels))
            chosen = sorted(np.argsort(-often, kind="stable")[:MOST_LEVELS].tolist())
            self.names = [shown(levels[level], 30) for level in chosen]
            self.cells = np.array([codes == level for level in chosen], dtype=float)
        self.spread = np.maximum(self.cells.std(axis=1), 1e-12)

    def written(self, value: float) -> str:
        """Write a mean, or a share."""
        return percent(value) if self.is_share else number(value)

    def said(self, measure: int, value: float) -> str:
        """Write a value with what it is of."""
        if not self.is_share:
            return f"mean {self.written(value)}"
        return (
            percent(value) if self.names[measure] == SHARE_OF_1 else f"{percent(value)} {self.names[measure]}"
        )

    def _by(self, first: Array, n_first: int, second: Array, n_second: int) -> tuple[Array, Array]:
        """Return numbers of cells, and means of measures, by two labels of cells."""
        where, size = first * n_second + second, n_first * n_second
        n = np.bincount(where, minlength=size).reshape(n_first, n_second)
        sums = np.array([np.bincount(where, cells, size).reshape(n_first, n_second) for cells in self.cells])
        with np.errstate(invalid="ignore"):
            return n, sums / n

    @cached_property
    def by_column(self) -> tuple[Array, Array]:
        """Cells of groups of rows in every column, and their means."""
        return self._by(self.row_labels[self.rows], self.n_groups, self.columns, self.n_columns)

    @cached_property
    def by_column_group(self) -> tuple[Array, Array]:
        """Cells of groups of rows in every group of columns, and their means."""
        groups = self.column_labels[self.columns]
        return self._by(self.row_labels[self.rows], self.n_groups, groups, self.n_column_groups)

    @cached_property
    def overall(self) -> Array:
        """Means of all rows, (measures, columns)."""
        n, means = self.by_column
        with np.errstate(invalid="ignore"):
            return np.nansum(n * means, axis=1) / n.sum(axis=0)

    @cached_property
    def overall_of_groups(self) -> Array:
        """Means of all rows, (measures, groups of columns)."""
        n, means = self.by_column_group
        with np.errstate(invalid="ignore"):
            return np.nansum(n * means, axis=1) / n.sum(axis=0)

    @cached_property
    def elsewhere(self) -> Array:
        """Means of the rows of all other groups, (measures, groups, columns)."""
        n, means = self.by_column
        totals = np.nansum(n * means, axis=1)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            return (totals - np.nan_to_num(n * means)) / (n.sum(axis=0) - n)

    @cached_property
    def apart(self) -> Array:
        """How far groups are from all others in every column, in standard errors; 0 where cells are few."""
        n, means = self.by_column
        others = n.sum(axis=0) - n
        with np.errstate(invalid="ignore", divide="ignore"):
            error = self.spread[:, None, None] * np.sqrt(1.0 / n + 1.0 / others)
            z = (means - self.elsewhere) / error
        return np.where((n >= FEWEST_CELLS) & (others >= FEWEST_CELLS), np.nan_to_num(z), 0.0)

    def telling(self, group: int, most: int) -> list[tuple[int, int]]:
        """Return the columns that set a group of rows apart, each with the measure that does so most."""
        z = np.abs(self.apart[:, group])
        best = z.argmax(axis=0)
        strength = z.max(axis=0)
        order = np.argsort(-strength, kind="stable")[:most].tolist()
        return [(int(best[column]), column) for column in order if strength[column] > 2.0]

    def dividing(self, most: int) -> list[tuple[int, int]]:
        """Return the columns that divide groups of rows most, each with the measure that does so."""
        n, means = self.by_column
        weights = n / np.maximum(n.sum(axis=0), 1)
        between = np.nansum(weights * (means - self.overall[:, None]) ** 2, axis=1)
        enough = (n >= FEWEST_CELLS).sum(axis=0) > 1
        score = np.where(enough, between / self.spread[:, None] ** 2, 0.0)
        best = score.argmax(axis=0)
        order = np.argsort(-score.max(axis=0), kind="stable")[:most].tolist()
        return [(int(best[column]), column) for column in order if score[best[column], column] > 1e-3]

    @cached_property
    def leading(self) -> int:
        """The measure by which groups of rows and of columns differ most."""
        n, means = self.by_column_group
        weights = n / n.sum()
        center = np.nansum(weights * means, axis=(1, 2))
        return int(np.nansum(weights * (means - center[:, None, None]) ** 2, axis=(1, 2)).argmax())
