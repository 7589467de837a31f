"""Lines of a matrix whose cells are counts or numbers."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from permix.cocluster.cells.blocks_jit import LONGEST_TABLE, POISSON, MomentLaw
from permix.cocluster.cells.cell_lines_jit import Lines
from permix.cocluster.cells.line_family import LineFamily
from permix.cocluster.cells.line_moments_jit import (
    SUM,
    LineMoments,
    LineMomentStats,
    fill_moment_tables,
    group_moments_of_lines,
)


class LineMomentFamily(LineFamily):
    """Clusters of lines under a Gamma prior of the rate, or a normal-inverse-gamma prior, of each block.

    Parameters
    ----------
    lines : Lines
        The filled cells by line, as numbers.
    law : MomentLaw
        The prior of a block.
    group_capacity : int
        Statistics have room for so many groups.
    """

    name: ClassVar[str] = "line-moments"

    def __init__(
        self,
        lines: Lines,
        law: MomentLaw,
        group_capacity: int,
        tables: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        super().__init__(lines, group_capacity)
        self.law = law
        if tables is None:
            largest = float(lines.codes.sum()) if law.kind == POISSON else -1.0
            tables = (
                np.empty(min(len(lines.codes) + 1, LONGEST_TABLE)),
                np.empty(int(min(largest + 1, LONGEST_TABLE))),
            )
            fill_moment_tables(law, *tables)
        self.tables = tables
        # What compiled code counts on; zero between calls.
        self._room = np.zeros(group_capacity, dtype=np.int64)

    def like(self, lines: Lines, group_capacity: int) -> Self:
        """Return a family with the same prior of blocks."""
        return type(self)(lines, self.law, group_capacity, self.tables)

    def room_for_lines(self) -> LineMoments:
        """Return arrays for :meth:`group_by` to write to."""
        n_cells = len(self.lines.codes)
        return LineMoments(
            starts=np.zeros(self.n_lines + 1, dtype=np.int64),
            entries=np.zeros((n_cells, 2), dtype=np.int32),
            sums=np.zeros((n_cells, 2)),
        )

    def group_by(self, labels: np.ndarray, n_groups: int, out: LineMoments) -> None:
        """Write the lines, with cells grouped by the labels of the other axis, to ``out``."""
        self.n_groups[0] = n_groups
        group_moments_of_lines(*self.lines, labels, n_groups, self._room, out)

    def statistics(self, capacity: int) -> LineMomentStats:
        """Return room for ``capacity`` clusters, all empty."""
        shape = (self.group_capacity, capacity)
        by_count, by_sum = self.tables
        return LineMomentStats(
            *self.law,
            by_count=by_count,
            by_sum=by_sum,
            n_groups=self.n_groups,
            counts=np.zeros(shape, dtype=np.int64),
            values=np.zeros((3, *shape)),
        )

    def parameters(self, stats: LineMomentStats, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior mean of every block, by cluster and group, on the scale of the codes."""
        n_groups = int(self.n_groups[0])
        counts = stats.counts[:n_groups, :n_clusters].T
        sums = stats.values[SUM, :n_groups, :n_clusters].T
        if self.law.kind == POISSON:
            return {"means": (self.law.shape + sums) / (self.law.rate + counts)}
        return {"means": sums / (self.law.strength + counts)}
