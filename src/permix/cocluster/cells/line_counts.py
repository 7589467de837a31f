"""Lines of a matrix whose cells have levels."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from permix.cocluster.cells.blocks_jit import CountLaw
from permix.cocluster.cells.cell_lines_jit import Lines
from permix.cocluster.cells.line_counts_jit import (
    LEVEL_STEP,
    TOTAL_STEP,
    LineCounts,
    LineCountStats,
    group_counts_of_lines,
)
from permix.cocluster.cells.line_family import LineFamily


class LineCountFamily(LineFamily):
    """Clusters of lines under a Dirichlet prior of the levels of each block.

    Parameters
    ----------
    lines : Lines
        The filled cells by line, as levels.
    law : CountLaw
        The prior of a block, with one group of levels.
    group_capacity : int
        Statistics have room for so many groups.
    tables : array, optional
        Those of a family with the same prior.

    Examples
    --------
    >>> from permix.cocluster.cells.blocks_jit import count_law
    >>> lines = Lines(np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32), np.array([1, 1, 0]))
    >>> family = LineCountFamily(lines, count_law(1.0, np.array([2]), 3), group_capacity=2)
    >>> grouped = family.encode([0, 0])  # both columns in one cluster: slots 0, 1 and, for the total, 2
    >>> grouped.entries[:4].tolist()
    [[1, 2], [2, 2], [0, 1], [2, 1]]
    """

    name: ClassVar[str] = "line-counts"

    def __init__(
        self, lines: Lines, law: CountLaw, group_capacity: int, tables: np.ndarray | None = None
    ) -> None:
        super().__init__(lines, group_capacity)
        self.law = law
        self.n_levels = int(law.n_levels[0])
        if tables is None:
            numbers = np.arange(len(law.slot_table))
            log_level = np.log(law.pseudo_count + numbers)
            log_total = np.log(law.pseudo_count * self.n_levels + numbers)
            tables = np.stack([law.slot_table, -law.total_table, log_level, -log_total])
        self.tables = tables
        self.n_slots = group_capacity * (self.n_levels + 1)
        # What compiled code counts on; zero between calls.
        self._room = np.zeros(self.n_slots, dtype=np.int32)

    def like(self, lines: Lines, group_capacity: int) -> Self:
        """Return a family with the same prior of blocks."""
        return type(self)(lines, self.law, group_capacity, self.tables)

    def room_for_lines(self) -> LineCounts:
        """Return arrays for :meth:`group_by` to write to."""
        return LineCounts(
            bounds=np.zeros((self.n_lines + 1, 4), dtype=np.int64),
            entries=np.zeros((2 * len(self.lines.codes), 2), dtype=np.int32),
        )

    def group_by(self, labels: np.ndarray, n_groups: int, out: LineCounts) -> None:
        """Write the lines, with cells grouped by the labels of the other axis, to ``out``."""
        self.n_groups[0] = n_groups
        group_counts_of_lines(*self.lines, labels, self.n_levels, n_groups, self._room, out)

    def statistics(self, capacity: int) -> LineCountStats:
        """Return room for ``capacity`` clusters, all empty."""
        steps = np.full((self.n_slots, capacity), self.tables[LEVEL_STEP, 0])
        steps[self.n_levels :: self.n_levels + 1] = self.tables[TOTAL_STEP, 0]
        return LineCountStats(
            tables=self.tables,
            pseudo_count=self.law.pseudo_count,
            n_levels=self.n_levels,
            has_all=len(self.lines.codes) < self.tables.shape[1],
            n_groups=self.n_groups,
            counts=np.zeros((self.n_slots, capacity), dtype=np.int64),
            steps=steps,
        )

    def direction_scales(self, data: Any) -> np.ndarray:
        """Every slot is a coordinate of its own."""
        return np.ones(self.n_slots)

    def parameters(self, stats: LineCountStats, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior mean probability of every level, by cluster and group."""
        n_groups = int(self.n_groups[0])
        shape = (n_clusters, n_groups, self.n_levels + 1)
        counts = stats.counts[: n_groups * (self.n_levels + 1), :n_clusters].T.reshape(shape)[..., :-1]
        weights = counts + self.law.pseudo_count
        return {"probabilities": weights / weights.sum(axis=-1, keepdims=True)}
