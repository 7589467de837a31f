"""Lines of a matrix, rows or columns, as data of a mixture, given the clusters of the other axis.

A line family belongs to one axis of one chain: :meth:`LineFamily.group_by` takes the labels of the other axis
and writes the lines anew, in place. Statistics that are empty stay valid whatever the groups.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from permix.cocluster.cells.blocks_jit import LONGEST_TABLE, POISSON, CountPrior, MomentPrior
from permix.cocluster.cells.encoded_matrix import EncodedMatrix
from permix.cocluster.cells.line_counts_jit import (
    LEVEL_STEP,
    TOTAL_STEP,
    LineCounts,
    LineCountStats,
    group_counts_of_lines,
)
from permix.cocluster.cells.line_moments_jit import (
    LineMoments,
    LineMomentStats,
    fill_moment_tables,
    group_moments_of_lines,
)
from permix.kernels.lines_jit import Lines


class LineFamily(abc.ABC):
    """What a mixture asks of a family, for filled cells by line.

    ``group_capacity`` is how many groups statistics have room for; ``tables`` may be those of a family with
    the same prior.
    """

    quick_marginal: ClassVar[bool] = True

    def __init__(self, lines: Lines, prior: Any, group_capacity: int, tables: Any = None) -> None:
        self.lines = lines
        self.block_prior = prior
        self.group_capacity = group_capacity
        self.tables = self.make_tables() if tables is None else tables
        # Groups in use: one array, so that all statistics follow it.
        self.n_groups = np.zeros(1, dtype=np.int64)
        # What compiled code counts on; zero between calls.
        self._room = np.zeros(group_capacity * self.slots_per_group, dtype=np.int64)

    @property
    def n_lines(self) -> int:
        """Number of rows, or of columns."""
        return len(self.lines.starts) - 1

    @property
    def slots_per_group(self) -> int:
        """How many numbers are counted in a group."""
        return 1

    def like(self, lines: Lines, group_capacity: int) -> Self:
        """Return a family with the same prior of blocks: of the other axis, or with room for more groups."""
        return type(self)(lines, self.block_prior, group_capacity, self.tables)

    @abc.abstractmethod
    def make_tables(self) -> Any:
        """Return tables of what compiled code would compute again and again."""

    @abc.abstractmethod
    def room_for_lines(self) -> NamedTuple:
        """Return arrays for :meth:`group_by` to write to."""

    @abc.abstractmethod
    def group_by(self, labels: np.ndarray, n_groups: int, out: Any) -> None:
        """Write the lines, with cells grouped by the labels of the other axis, to ``out``."""

    @abc.abstractmethod
    def statistics(self, capacity: int) -> NamedTuple:
        """Return room for ``capacity`` clusters, all empty."""

    def completed(self, data: Any) -> Any:
        """Return the lines as they are: cells that are missing are no part of them."""
        return data

    def filled_cells(self, data: Any) -> None:
        """Return None: nothing is filled in."""
        return


class LineCountFamily(LineFamily):
    """Clusters of lines under a Dirichlet prior of the levels of each block.

    Examples
    --------
    >>> from permix.cocluster.cells.blocks_jit import count_prior
    >>> lines = Lines(np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32), np.array([1, 1, 0]))
    >>> family = LineCountFamily(lines, count_prior(1.0, np.array([2]), 3), group_capacity=2)
    >>> grouped = family.room_for_lines()  # both columns in one cluster: slots 0, 1 and, for the total, 2
    >>> family.group_by(np.zeros(2, dtype=np.int32), 1, grouped)
    >>> grouped.entries[:4].tolist()
    [[1, 2], [2, 2], [0, 1], [2, 1]]
    """

    block_prior: CountPrior

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return int(self.block_prior.n_levels[0])

    @property
    def slots_per_group(self) -> int:
        """One a level, and one for the total."""
        return self.n_levels + 1

    def make_tables(self) -> np.ndarray:
        """Return S, -T and their steps."""
        prior, numbers = self.block_prior, np.arange(len(self.block_prior.slot_table))
        log_level = np.log(prior.pseudo_count + numbers)
        log_total = np.log(prior.pseudo_count * self.n_levels + numbers)
        return np.stack([prior.slot_table, -prior.total_table, log_level, -log_total])

    def room_for_lines(self) -> LineCounts:
        entries = np.zeros((2 * len(self.lines.codes), 2), dtype=np.int32)
        return LineCounts(np.zeros((self.n_lines + 1, 2), dtype=np.int64), entries)

    def group_by(self, labels: np.ndarray, n_groups: int, out: LineCounts) -> None:
        self.n_groups[0] = n_groups
        group_counts_of_lines(*self.lines, labels, self.n_levels, n_groups, self._room, out)

    def statistics(self, capacity: int) -> LineCountStats:
        shape = (self.group_capacity * self.slots_per_group, capacity)
        steps = np.full(shape, self.tables[LEVEL_STEP, 0])
        steps[self.n_levels :: self.slots_per_group] = self.tables[TOTAL_STEP, 0]
        return LineCountStats(
            tables=self.tables,
            pseudo_count=self.block_prior.pseudo_count,
            n_levels=self.n_levels,
            has_all=len(self.lines.codes) < self.tables.shape[1],
            n_groups=self.n_groups,
            counts=np.zeros(shape, dtype=np.int64),
            steps=steps,
        )


class LineMomentFamily(LineFamily):
    """Clusters of lines under a Gamma prior of the rate, or a normal-inverse-gamma prior, of each block."""

    block_prior: MomentPrior

    def make_tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what depends on the number of cells alone, and on the sum of counts alone."""
        codes = self.lines.codes
        n_sums = codes.sum() + 1 if self.block_prior.family == POISSON else 0
        tables = np.empty(min(len(codes) + 1, LONGEST_TABLE)), np.empty(int(min(n_sums, LONGEST_TABLE)))
        fill_moment_tables(self.block_prior, *tables)
        return tables

    def room_for_lines(self) -> LineMoments:
        shape = (len(self.lines.codes), 2)
        starts = np.zeros(self.n_lines + 1, dtype=np.int64)
        return LineMoments(starts, np.zeros(shape, dtype=np.int32), np.zeros(shape))

    def group_by(self, labels: np.ndarray, n_groups: int, out: LineMoments) -> None:
        self.n_groups[0] = n_groups
        group_moments_of_lines(*self.lines, labels, n_groups, self._room, out)

    def statistics(self, capacity: int) -> LineMomentStats:
        shape = (self.group_capacity, capacity)
        by_count, by_sum = self.tables
        counts, values = np.zeros(shape, dtype=np.int64), np.zeros((3, *shape))
        return LineMomentStats(*self.block_prior, by_count, by_sum, self.n_groups, counts, values)


def line_family(matrix: EncodedMatrix, group_capacity: int) -> LineFamily:
    """Return the family of the rows of a matrix."""
    family = LineCountFamily if isinstance(matrix.block_prior, CountPrior) else LineMomentFamily
    return family(matrix.by_row, matrix.block_prior, group_capacity)
