"""Groups of rows whose numbers are correlated within a group, beside counts and categories."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from permix.families.learning import Learning
from permix.families.mixed import Mixed
from permix.families.mixed_learning import OF_NUMBERS, MixedLearning
from permix.families.mixed_niw_jit import JointGapStats, JointStats
from permix.families.niw import GaussianNIW, varying_variances
from permix.families.scale_learning import MatrixLearning, shares_of


@dataclasses.dataclass(frozen=True, eq=False)
class MixedNIW(Mixed):
    """Groups of rows of numbers, counts and categories, whose numbers may be correlated within a group.

    Parameters
    ----------
    kinds, pseudo_count, shape, prior_mean, scale, levels : optional
        As in :class:`Mixed`.
    prior_strength : float, optional
        How many rows the prior mean of the numbers is worth. Left out, it is learned.
    degrees_of_freedom : float, optional
        How many rows the expected covariance of a group is worth, more than the number of columns of numbers
        less one. Left out, it is learned.
    within_share : float or sequence of float, optional
        Which share of the variance of each column of numbers a group is expected to have: one number, or one
        for each column (those of other columns are not read). Left out, shares are learned.

    Notes
    -----
    The columns of numbers together are as in :class:`GaussianNIW`: normal with unknown mean and covariance,
    missing cells drawn in the chains. All others are as in :class:`Mixed`, independent within a group, and
    missing cells of theirs say nothing. Where numbers are correlated within groups, :class:`Mixed` takes
    several groups for one.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sex": ["f", "m", "m"], "wing": [18.5, 19.5, 21.0], "weight": [3.7, 4.1, 5.2]})
    >>> MixedNIW().resolve(frame).degrees_of_freedom
    6.0
    """

    name: ClassVar[str] = "mixed-niw"

    def _default_freedom(self, kinds: Sequence[str]) -> float:
        return 2.0 * _n_numbers(kinds) + 2.0

    def _least_freedom(self) -> float:
        return _n_numbers(tuple(self.kinds or ())) - 1.0

    @property
    def _units(self) -> np.ndarray:
        # Numbers are encoded in the units of the data: densities then are, too.
        return np.ones(len(self.kinds or ()))

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """Compiled code has numbers first."""
        return np.argsort(np.argsort([kind != "number" for kind in self.kinds or ()], kind="stable"))

    @property
    def number_columns(self) -> npt.NDArray[np.intp]:
        """Which columns are numbers."""
        return np.flatnonzero([kind == "number" for kind in self.kinds or ()])

    @property
    def of_numbers(self) -> GaussianNIW:
        """The columns of numbers, measured from the prior mean, as a family of their own."""
        places = self.number_columns
        assert self.degrees_of_freedom is not None
        variances = np.asarray(self.scale, dtype=np.float64)[places] ** 2
        extra = self.degrees_of_freedom - self._least_freedom()
        return GaussianNIW(
            prior_mean=np.zeros(len(places)),
            prior_strength=self.prior_strength,
            degrees_of_freedom=self.degrees_of_freedom,
            scale=np.diag(extra * np.asarray(self.within_share, dtype=np.float64)[places] * variances),
        )

    def statistics(self, capacity: int) -> JointStats:  # type: ignore[override]
        others = super().statistics(capacity)._replace(first=len(self.number_columns))
        return JointStats(self.of_numbers.statistics(capacity), others, np.zeros(capacity))

    def learning(self, resolved: Any, data: Any) -> JointLearning | None:  # type: ignore[override]
        """What was left open: of numbers as in :class:`GaussianNIW`, of others as in :class:`Mixed`."""
        names = self.learned_names(resolved)
        if not names:
            return None
        places = resolved.number_columns
        numbers = data[:, : len(places)]
        called = tuple("scale" if name == "within_share" else name for name in names if name in OF_NUMBERS)
        shares = shares_of(numbers, varying_variances(numbers))
        others = tuple(name for name in names if name not in OF_NUMBERS)
        return JointLearning(
            names,
            MatrixLearning(called, shares, resolved._least_freedom(), len(places) + 3.0),
            MixedLearning(others, None, places[:0], resolved.columns_of_counts(data), resolved.places),
            places,
        )

    def completed(self, data: Any) -> np.ndarray:
        """Fill gaps among the numbers with the prior mean: chains draw them anew, given the group."""
        gaps = np.isnan(data)
        gaps[:, len(self.number_columns) :] = False
        return np.where(gaps, 0.0, data) if gaps.any() else data

    def scoring(self, stats: Any, data: Any, filled: Any) -> Any:
        """Rows with gaps have the density of their observed columns."""
        if not np.isnan(data[:, : len(self.number_columns)]).any():
            return stats
        from permix.families.missing.niw_gaps_jit import with_gaps

        return JointGapStats(with_gaps(stats.numbers, filled), stats.others, stats.work)

    def parameters(self, stats: Any, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior means of numbers, counts and probabilities of categories, and covariances of numbers."""
        of_numbers = self.of_numbers.parameters(stats.numbers, n_clusters)
        means = stats.others.means.copy()
        means[: len(self.number_columns), :n_clusters] = of_numbers["mean"].T
        found = super().parameters(stats.others._replace(means=means), n_clusters)
        return {**found, "covariance": of_numbers["covariance"]}


@dataclasses.dataclass(frozen=True)
class JointLearning(Learning):
    """Numbers as in :class:`MatrixLearning`, others as in :class:`MixedLearning`."""

    names: tuple[str, ...]
    numbers: MatrixLearning
    others: MixedLearning
    places: npt.NDArray[np.intp]  # of the columns of numbers

    def log_prior(self, family: Any) -> float:
        return self.numbers.log_prior(family.of_numbers) + self.others.log_prior(family)

    def draw(self, rng: np.random.Generator, family: Any, stats: Any, n_clusters: int) -> Any:
        # One of them, drawn at random: a sweep of a small table costs less than all.
        chosen = self.names[int(rng.integers(len(self.names)))]
        if chosen not in OF_NUMBERS:
            return self.others.draw_one(rng, chosen, family, stats.others, n_clusters)
        of_numbers = family.of_numbers
        groups = self.numbers.groups(of_numbers, stats.numbers, n_clusters)
        values = dict(of_numbers.learnable)
        self.numbers.change(rng, "scale" if chosen == "within_share" else chosen, groups, values)
        if chosen != "within_share":
            return family.with_values({chosen: values[chosen]})
        share = np.array(family.within_share, dtype=np.float64)
        variances = np.asarray(family.scale, dtype=np.float64)[self.places] ** 2
        share[self.places] = values["scale"] / (values["degrees_of_freedom"] - self.numbers.least) / variances
        return family.with_values({"within_share": share})


def _n_numbers(kinds: Sequence[str]) -> int:
    return sum(kind == "number" for kind in kinds)
