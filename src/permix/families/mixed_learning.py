"""What chains learn about columns of different kinds: each kind as where all columns are of that kind."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from permix.families.column_learning import PSEUDO_COUNT, ColumnOfCounts, draw_pseudo_count, draw_shape
from permix.families.learning import Learning
from permix.families.scale_learning import DiagonalLearning, groups_of_columns

# Hyper-parameters of columns of numbers.
OF_NUMBERS = ("prior_strength", "degrees_of_freedom", "within_share")


@dataclasses.dataclass(frozen=True)
class MixedLearning(Learning):
    """Numbers as in :class:`DiagonalLearning`, one pseudo-count for all categories, shapes of counts."""

    names: tuple[str, ...]
    numbers: DiagonalLearning | None  # of the columns of numbers, as they are encoded
    places: npt.NDArray[np.intp]  # of the columns of numbers
    counts: dict[int, ColumnOfCounts]  # by place
    rows: npt.NDArray[np.intp]  # where the statistics have each column

    def log_prior(self, family: Any) -> float:
        total = 0.0
        if self.numbers is not None:
            total += self.numbers.log_prior(_Numbers(self._values(family, self.numbers)))
        if "pseudo_count" in self.names:
            total += PSEUDO_COUNT.log_density_of(float(np.log(family.pseudo_count)))
        if "shape" in self.names:
            total += sum(
                column.prior.log_density_of(float(np.log(family.shape[j])))
                for j, column in self.counts.items()
            )
        return total

    def draw(self, rng: np.random.Generator, family: Any, stats: Any, n_clusters: int) -> Any:
        # One of them, drawn at random: a sweep of a small table costs less than all.
        chosen = self.names[int(rng.integers(len(self.names)))]
        return self.draw_one(rng, chosen, family, stats, n_clusters)

    def draw_one(
        self, rng: np.random.Generator, chosen: str, family: Any, stats: Any, n_clusters: int
    ) -> Any:
        """Draw this hyper-parameter."""
        if chosen == "pseudo_count":
            n_levels = np.diff(stats.offsets)
            of_levels = n_levels > 0
            totals = stats.entries[of_levels, :n_clusters]
            counts = stats.counts[:, :n_clusters]
            value = draw_pseudo_count(rng, family.pseudo_count, counts, totals, n_levels[of_levels])
            return family.with_values({"pseudo_count": value})
        if chosen == "shape":
            shape = np.array(family.shape, dtype=np.float64)
            for j, column in self.counts.items():
                row = self.rows[j]
                n, sums = stats.entries[row, :n_clusters], stats.means[row, :n_clusters]
                mean = float(family.prior_mean[j])
                shape[j] = draw_shape(rng, float(shape[j]), column, mean, n, sums)
            return family.with_values({"shape": shape})
        assert self.numbers is not None
        values = self._values(family, self.numbers)
        groups = groups_of_columns(stats, n_clusters, self.places)
        self.numbers.change(rng, "scale" if chosen == "within_share" else chosen, groups, values)
        if chosen == "within_share":
            share = np.array(family.within_share, dtype=np.float64)
            share[self.places] = values["scale"] / (values["degrees_of_freedom"] - self.numbers.least)
            return family.with_values({"within_share": share})
        return family.with_values({chosen: values[chosen]})

    def _values(self, family: Any, numbers: DiagonalLearning) -> dict[str, Any]:
        """Hyper-parameters of numbers, as those of Gaussian groups with independent columns are called."""
        freedom = family.degrees_of_freedom
        scale = (freedom - numbers.least) * np.asarray(family.within_share)[self.places]
        return {"prior_strength": family.prior_strength, "degrees_of_freedom": freedom, "scale": scale}


@dataclasses.dataclass(frozen=True)
class _Numbers:
    """Columns of numbers, as the prior of their hyper-parameters reads them."""

    learnable: dict[str, Any]
