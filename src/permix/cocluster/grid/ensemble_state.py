"""The state of a consensus of base co-clusterings on a grid: two partitions of what the bases said.

DPCCE of Wang, Laskey, Domeniconi & Jordan (2011), section 4. A row is known by the row cluster that each of
M bases put it into, a column likewise; consensus row clusters and column clusters have independent partition
priors, and within a consensus cluster the labels of base m have probabilities of their own under a Dirichlet
prior. So either side is a mixture of categorical vectors, and the matrix itself does not enter.

Equations 4.7-4.10 do not depend on the cluster as printed. The conditional that follows from the model: row r
joins consensus cluster l with probability proportional to N_l Π_m (n_lm + β_m/T_m) / (N_l + β_m), where n_lm
is the number of its other rows with the label that base m gave to r, and opens a new one with α Π_m 1/T_m.
T_m is the number of labels of base m, and β_m the pseudo-count of all of them together, as in the paper.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import numpy as np

from permix.cocluster.grid.sides import TwoSidedState
from permix.data.labels import Array
from permix.errors import DataError
from permix.families import Categorical
from permix.families.categorical_jit import CategoricalStats
from permix.moves.state import MixtureState
from permix.partitions.priors import PartitionPrior


class EnsembleGridState(TwoSidedState):
    """Consensus partitions of the rows and of the columns.

    Tables hold the cluster, 0 ... T - 1, of each line (axis 0) in each base (axis 1). The prior of the labels
    of a base is worth ``label_pseudo_count`` lines within a consensus cluster (β_m), each label an equal
    share; larger numbers make fewer clusters. ``rows`` and ``columns`` are mixture states of their own, so
    every move on mixtures serves here. Given the bases the two sides are independent of each other. The
    likelihood is that of the bases' labels.
    """

    whose: ClassVar[str] = "a consensus of co-clusterings"

    def __init__(
        self,
        row_table: Array,
        column_table: Array,
        row_prior: PartitionPrior,
        column_prior: PartitionPrior,
        label_pseudo_count: float = 1.0,
    ) -> None:
        if row_table.shape[1] != column_table.shape[1]:
            n_rows, n_columns = row_table.shape[1], column_table.shape[1]
            raise DataError(f"{n_rows} bases label the rows, but {n_columns} label the columns")
        self.rows = _mixture(row_table, row_prior, label_pseudo_count)
        self.columns = _mixture(column_table, column_prior, label_pseudo_count)

    def side(self, side: Literal["rows", "columns"]) -> MixtureState:
        """Return the mixture of one axis, as moves of grids ask for it."""
        return self.rows if side == "rows" else self.columns

    def log_likelihood(self) -> float:
        """Log marginal likelihood of the bases' labels given the consensus."""
        return self.rows.log_likelihood() + self.columns.log_likelihood()

    def log_prior(self) -> float:
        return self.rows.log_prior() + self.columns.log_prior()

    def refresh(self) -> None:
        self.rows.refresh()
        self.columns.refresh()


def seat_consensus(rng: np.random.Generator, state: EnsembleGridState) -> EnsembleGridState:
    """Put rows and columns into consensus clusters by sequential prediction, in random order."""
    for mixture in (state.rows, state.columns):
        mixture.sweep(rng, rng.permutation(mixture.n))
    return state


@dataclasses.dataclass(frozen=True, eq=False)
class BaseLabels(Categorical):
    """Categorical vectors whose ``pseudo_count`` is that of a whole column, not of one answer."""

    def statistics(self, capacity: int) -> CategoricalStats:
        stats = super().statistics(capacity)
        assert self.pseudo_count is not None
        n_labels = np.diff(stats.offsets)
        return stats._replace(
            pseudo_counts=np.repeat(self.pseudo_count / n_labels, n_labels),
            pseudo_totals=np.full(len(n_labels), float(self.pseudo_count)),
        )


def _mixture(table: Array, prior: PartitionPrior, pseudo_count: float) -> MixtureState:
    levels = tuple(tuple(range(int(n))) for n in table.max(axis=0) + 1)
    family = BaseLabels(pseudo_count=pseudo_count, levels=levels)
    data = np.require(table, dtype=np.int32, requirements=["C", "W"])
    family.check_encoded(data, len(data))
    return MixtureState(family, data, len(data), prior)
