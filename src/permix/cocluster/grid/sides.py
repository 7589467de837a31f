"""What states with a partition of the rows and one of the columns share."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import ClassVar

from permix.data.labels import Array
from permix.errors import DataError
from permix.moves.base import under
from permix.moves.state import MixtureState, learned_concentration
from permix.partitions.labels import canonical_labels


class TwoSidedState(abc.ABC):
    """Base of states made of a mixture of rows and a mixture of columns: what a chain asks of them."""

    #: What a checkpoint that is none is told to be.
    whose: ClassVar[str]
    rows: MixtureState
    columns: MixtureState

    @abc.abstractmethod
    def log_likelihood(self) -> float:
        """Log marginal likelihood given both partitions."""

    @abc.abstractmethod
    def log_prior(self) -> float:
        """Log prior of both partitions, and of what is learned of their concentrations."""

    def log_joint(self) -> float:
        """Log of prior × marginal likelihood, what a draw is weighed by."""
        return self.log_prior() + self.log_likelihood()

    @abc.abstractmethod
    def refresh(self) -> None:
        """Recompute all cached statistics from the labels."""

    def record(self) -> dict[str, float | int | Array]:
        log_likelihood = self.log_likelihood()
        draw: dict[str, float | int | Array] = {
            "row_labels": canonical_labels(self.rows.labels),
            "column_labels": canonical_labels(self.columns.labels),
            "n_row_groups": self.rows.n_clusters,
            "n_column_groups": self.columns.n_clusters,
            "n_blocks": self.rows.n_clusters * self.columns.n_clusters,
            "log_likelihood": log_likelihood,
            "log_joint": self.log_prior() + log_likelihood,
        }
        for name, mixture in (("row", self.rows), ("column", self.columns)):
            if learned_concentration(mixture.prior_spec) is not None:
                draw[f"{name}_concentration"] = mixture.concentration
        return draw

    def progress(self) -> dict[str, float]:
        return {
            "groups of rows": float(self.rows.n_clusters),
            "groups of columns": float(self.columns.n_clusters),
            "log joint": self.log_joint(),
        }

    def checkpoint(self) -> dict[str, Array]:
        return {
            f"{side}/{name}": array
            for side, mixture in (("rows", self.rows), ("columns", self.columns))
            for name, array in mixture.checkpoint().items()
        }

    def restore(self, arrays: Mapping[str, Array]) -> None:
        parts = {side: under(side, arrays) for side in ("rows", "columns")}
        if not all(parts.values()):
            raise DataError(f"the checkpoint is not one of {self.whose}")
        self.rows.restore(parts["rows"])
        self.columns.restore(parts["columns"])
