"""The client's side of a chain over rows in shards: groups, what they are made of, and the concentration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.shards.matrices import ShardedCells
from permix.dp_mixture.sharded.groups import Groups
from permix.errors import DataError
from permix.families import Family
from permix.families.contract_jit import total_log_marginal
from permix.families.learning import Learning
from permix.moves.sharded.state import ShardedRows
from permix.moves.sharded.work import Shape
from permix.moves.state import PartitionState, first_concentration
from permix.partitions.priors import PartitionPrior, PriorTables


@dataclasses.dataclass(frozen=True)
class ShardedModel:
    """Rows in shards and the prior; never written to."""

    data: ShardedCells
    family: Family
    groups: Groups
    shape: Shape
    prior: PartitionPrior
    learning: Learning | None
    log_constant: float  # of the likelihood: what is the same for all partitions


class ShardedMixture(ShardedRows, PartitionState):
    """A partition of rows in shards; the family and the concentration as the chain has them."""

    def __init__(self, model: ShardedModel, chain: str) -> None:
        super().__init__(model.data, model.shape, chain)
        self.model, self.family, self.learning = model, model.family, model.learning
        self.prior_spec, self.n = model.prior, model.data.n_rows
        self.concentration = first_concentration(model.prior)

    # What moves of rows ask.

    @property
    def row_prior(self) -> PriorTables:
        return self.prior

    @property
    def column_groups(self) -> Array:
        return np.arange(self.data.n_columns, dtype=np.int64)

    def table(self, rng: np.random.Generator | None, counts: Array) -> Array:
        return self.model.groups.table(rng, self.family, counts)

    def most_apart(self, table: Array) -> float:
        return self.model.groups.most_apart(table)

    def log_of(self, counts: Array) -> float:
        stats = self.model.groups.statistics(self.family, counts)
        return float(total_log_marginal(stats, len(counts)))

    # What moves of hyper-parameters ask, and what is recorded.

    @property
    def stats(self) -> Any:
        """Statistics of the groups, as compiled code has them."""
        return self.model.groups.statistics(self.family, self.seen.counts)

    @property
    def sizes_in_use(self) -> Array:
        return self.seen.sizes

    @property
    def n_clusters(self) -> int:  # type: ignore[override]
        """Number of groups."""
        return len(self.seen.sizes)

    @property
    def labels(self) -> Array:  # type: ignore[override]
        """Groups of the rows on record."""
        return self.seen.record

    def require_seated(self, move: str) -> None:
        """All rows are somewhere."""

    def adopt_family(self, family: Family) -> None:
        """Take other hyper-parameters, for the same rows in the same groups."""
        self.family = family

    def log_likelihood(self) -> float:
        return self.log_of(self.seen.counts) + self.model.log_constant

    def log_prior(self) -> float:
        """Log prior of the partition, and of what is learned beside it."""
        return super().log_prior() + (self.learning.log_prior(self.family) if self.learning else 0.0)

    def record(self) -> dict[str, float | int | Array]:
        return {**super().record(), **self._learned()}

    def progress(self) -> dict[str, float]:
        return {"groups": float(self.n_clusters), "log joint": self.log_joint()}

    def _learned(self) -> dict[str, Any]:
        return {} if self.learning is None else self.learning.values(self.family)

    def refresh(self) -> None:
        """Ask all shards again."""
        self.ask()

    def checkpoint(self) -> dict[str, Array]:
        learned = {name: np.array(value) for name, value in self._learned().items()}
        return {**self.place_checkpoint(), "concentration": np.array(self.concentration), **learned}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        concentration, learned = float(arrays["concentration"]), {}
        for name, present in self._learned().items():
            value = np.asarray(arrays[name], dtype=np.float64)
            if value.shape != np.shape(present) or not np.all(np.isfinite(value) & (value > 0)):
                raise DataError(f"the checkpoint's {name} is not what this family has")
            learned[name] = value if value.ndim else float(value)
        if not 0.0 <= concentration < np.inf:
            raise DataError(f"the checkpoint's concentration is {concentration}")
        self.concentration = concentration
        if learned:
            self.family = self.family.with_values(learned)
        self.restore_places(arrays)
