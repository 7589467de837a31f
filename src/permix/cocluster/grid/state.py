"""The state of a grid co-clustering: a partition of the rows and one of the columns.

Given the clusters of the columns, rows are data of a mixture, and the reverse: the state holds one
:class:`~permix.moves.state.MixtureState` for each axis, so that all moves of mixtures serve both. A cell's
distribution depends on its block alone, the cluster of its row and the cluster of its column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

import numpy as np

from permix.cocluster.cells.block_sums_jit import log_blocks
from permix.cocluster.cells.blocks_jit import CountPrior, MomentPrior
from permix.cocluster.cells.encoded_matrix import BlockSums, EncodedMatrix, grid_table
from permix.cocluster.cells.families import CellFamily
from permix.cocluster.cells.learned import LearnsCells
from permix.cocluster.cells.line_family import LineFamily, line_family
from permix.cocluster.grid.sides import TwoSidedState
from permix.data.labels import Array
from permix.errors import DataError
from permix.families.base import Family
from permix.families.contract_jit import score_new_data
from permix.moves.state import FIRST_CAPACITY, MixtureState, learned_concentration, log_gamma_density, roomy
from permix.partitions.labels import canonical_labels
from permix.partitions.priors import Gamma, PartitionPrior

Side = Literal["rows", "columns"]
# Columns are thrown into groups at random for the first rows to be told apart by. One group would hide rows
# that differ only in where their values are; the more cells there are, the more groups can be made out.
FEWEST_GROUPS, GROUPS_PER_ROOT = 8, 0.125


class Axis:
    """Rows, or columns, as a mixture given the clusters of the other axis."""

    def __init__(self, family: LineFamily, prior: PartitionPrior) -> None:
        self.data = family.room_for_lines()
        # Whose labels the lines were grouped by; nobody's so far.
        self._grouped_by: np.ndarray | None = None
        self._take(family, prior, np.zeros(family.n_lines))
        self.mixture.set_labels(np.zeros(family.n_lines, dtype=np.int64))

    def _take(self, family: LineFamily, prior: PartitionPrior, empty_scores: np.ndarray) -> None:
        self.family = family
        self._empty = family.statistics(1)
        # Of a family, a mixture asks for statistics, and whether it fills gaps in.
        self.mixture = MixtureState(cast(Family, family), self.data, family.n_lines, prior, empty_scores)

    def given(self, labels: np.ndarray, n_groups: int) -> MixtureState:
        """Return the mixture given the labels of the other axis, grouping lines anew where these changed."""
        if self._grouped_by is None or not np.array_equal(self._grouped_by, labels):
            self.group(labels, n_groups)
        return self.mixture

    def group(self, labels: np.ndarray, n_groups: int) -> None:
        """Group the lines and rebuild all statistics."""
        # Compiled code does not check.
        if labels.min(initial=0) < 0:
            raise DataError("lines can be grouped only when all of the other axis are in groups")
        if n_groups > self.family.group_capacity:
            self._make_room(roomy(n_groups))
        self.family.group_by(labels, n_groups, self.data)
        self._grouped_by = labels.copy()
        score_new_data(self._empty, self.data, self.mixture.n, 1, self.mixture.empty_scores[:, None])
        self.mixture.refresh()

    def unseat(self) -> None:
        """Take all lines out of their clusters."""
        self.mixture.labels.fill(-1)
        self.mixture.n_clusters = 0
        self.mixture.refresh()

    def _make_room(self, group_capacity: int) -> None:
        """Give all statistics room for more groups.

        What moves keep for a mixture has the old size: they are handed another mixture.
        """
        self._replace(self.family.like(self.family.lines, group_capacity))

    def _replace(self, family: LineFamily) -> None:
        """Go on with another family, all lines where they are."""
        old = self.mixture
        self._take(family, old.prior_spec, old.empty_scores)
        self.mixture.labels[:] = old.labels
        self.mixture.n_clusters = old.n_clusters
        self.mixture.concentration = old.concentration
        self.mixture.n_moved = old.n_moved
        self.mixture.make_room(old.capacity)
        self.mixture.sizes[: old.n_clusters] = old.sizes_in_use

    def take_prior(self, prior: CountPrior | MomentPrior, tables: Any) -> None:
        """Go on with another prior of blocks; lines have to be grouped anew."""
        old = self.family
        self._grouped_by = None
        self._replace(type(old)(old.lines, prior, old.group_capacity, tables))


class GridState(LearnsCells, TwoSidedState):
    """Partitions of the rows and of the columns of a matrix, which is shared between chains.

    A Dirichlet process whose concentration is a ``Gamma`` learns it. A new state has all rows in one cluster
    and all columns in one. Ask for :meth:`side` before working on an axis: the statistics of the other one
    are right only then.
    """

    whose: ClassVar[str] = "a grid co-clustering"

    def __init__(
        self,
        matrix: EncodedMatrix,
        row_prior: PartitionPrior,
        column_prior: PartitionPrior,
        learned: Gamma | None = None,
    ) -> None:
        self.matrix = matrix
        self.cell_family, self.learned = matrix.family, learned
        self._block_prior = matrix.block_prior
        family = line_family(matrix, FIRST_CAPACITY)
        self._rows = Axis(family, row_prior)
        self._columns = Axis(family.like(matrix.by_column, FIRST_CAPACITY), column_prior)
        self.refresh()

    @property
    def rows(self) -> MixtureState:  # type: ignore[override]
        """The mixture of rows; its statistics are right after ``side("rows")``."""
        return self._rows.mixture

    @property
    def columns(self) -> MixtureState:  # type: ignore[override]
        """The mixture of columns; its statistics are right after ``side("columns")``."""
        return self._columns.mixture

    def side(self, side: Side) -> MixtureState:
        """Return the mixture of one axis, its lines grouped by the clusters of the other as they are now."""
        if side == "rows":
            return self._rows.given(self.columns.labels, self.columns.n_clusters)
        return self._columns.given(self.rows.labels, self.rows.n_clusters)

    def axis(self, side: Side) -> Axis:
        """Return one axis."""
        return self._rows if side == "rows" else self._columns

    def log_likelihood(self) -> float:
        """Log marginal likelihood of the cells given both partitions.

        Summed in an order that does not depend on how clusters are numbered: chains that agree on the
        partitions agree on it to the last bit.
        """
        return float(log_blocks(self._block_prior, *self.blocks())) + self.matrix.log_constant

    def blocks(self) -> BlockSums:
        table = grid_table(self.rows.n_clusters, self.columns.n_clusters)
        row_labels, column_labels = (canonical_labels(side.labels) for side in (self.rows, self.columns))
        return self.matrix.block_sums(row_labels, column_labels, table, table.size)

    def take_family(self, family: CellFamily) -> None:
        self.cell_family = family
        self._block_prior = family.block_prior(self.matrix.n_cells)
        # Rows come first, columns share their tables.
        self._rows.take_prior(self._block_prior, None)
        self._columns.take_prior(self._block_prior, self._rows.family.tables)

    def log_prior(self) -> float:
        value = self.log_hyper_prior()
        for side in (self.rows, self.columns):
            value += side.prior.log_prob(np.sort(side.sizes_in_use))
            gamma = learned_concentration(side.prior_spec)
            if gamma is not None:
                value += log_gamma_density(gamma, side.concentration)
        return value

    def refresh(self) -> None:
        self._rows.group(self.columns.labels, self.columns.n_clusters)
        self._columns.group(self.rows.labels, self.rows.n_clusters)

    def record(self) -> dict[str, float | int | Array]:
        return {**super().record(), **self.recorded()}

    def checkpoint(self) -> dict[str, Array]:
        return {**super().checkpoint(), **self.saved()}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        self.take_saved(arrays)
        super().restore(arrays)
        self.refresh()


def seat_all_lines(rng: np.random.Generator, state: GridState, n_groups: int | None = None) -> GridState:
    """Put rows and columns into clusters by sequential prediction, each axis given the other.

    Rows come first, given columns thrown into ``n_groups`` groups at random, then columns given the rows. By
    default there are as many groups as an eighth of the root of the number of cells, at least eight.
    """
    if n_groups is None:
        n_groups = max(FEWEST_GROUPS, int(GROUPS_PER_ROOT * math.sqrt(state.matrix.n_cells)))
    n_columns = state.columns.n
    state.columns.set_labels(rng.permutation(n_columns) % min(n_groups, n_columns))
    sides: tuple[Side, Side] = ("rows", "columns")
    for side in sides:
        state.axis(side).unseat()
        mixture = state.side(side)
        mixture.sweep(rng, rng.permutation(mixture.n))
    return state
