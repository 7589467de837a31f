"""Gaussian groups with independent columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from permix.errors import DataError
from permix.families.base import check_number, check_positive, fitting_matrix, vector_of
from permix.families.diagonal_jit import DiagonalStats
from permix.families.missing.gaps import IndependentColumns, columns_with_gaps
from permix.families.mixed_jit import NUMBER, SHAPE, MixedStats
from permix.families.niw import (
    DEFAULT_STRENGTH,
    DEFAULT_WITHIN_SHARE,
    column_variances,
    varying_variances,
    without_lone_freedom,
)
from permix.families.scale_learning import DiagonalLearning, shares_of

# How many points the prior variance is worth where chains begin.
DEFAULT_FREEDOM = 4.0


@dataclass(frozen=True, eq=False)
class GaussianDiagonal(IndependentColumns):
    """Gaussian groups whose columns are independent; mean and variance of each are learned.

    Parameters
    ----------
    prior_mean : float or sequence of float, optional
        Expected center; default the mean of the data.
    prior_strength : float, optional
        How many points the prior mean is worth (κ). Left out, it is learned.
    degrees_of_freedom : float, optional
        How many points the prior variance is worth (ν). The more, the more alike are the variances of all
        groups in a column. Left out, it is learned, or 4 where a scale is given.
    scale : float or sequence of float, optional
        Scale ψ of the variance in each column, whose expectation is ψ/(ν - 2). Left out, it is learned.
    gaps : bool, optional
        Whether cells may be missing (NaN), which then contribute nothing; by default whether some are.

    Notes
    -----
    With many columns a covariance matrix has more entries than the data can tell; without covariances a group
    has two numbers for each column. Correlated columns then make long groups fall into several: see
    :class:`GaussianNIW`. What is left out is learned as there, with the same priors of κ, of ν, whose median
    is 4, and of the share ψ/ν of the data's variance.

    Each column has a normal-inverse-gamma prior, 1/σ² ~ Gamma(ν/2, ψ/2) and μ ~ N(m, σ²/κ); the predictive of
    a group is a product of Student's t.

    Examples
    --------
    >>> GaussianDiagonal(scale=2.0).resolve([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]]).scale
    array([2., 2.])
    """

    prior_mean: float | Sequence[float] | np.ndarray | None = None
    prior_strength: float | None = None
    degrees_of_freedom: float | None = None
    scale: float | Sequence[float] | np.ndarray | None = None

    name: ClassVar[str] = "gaussian-diagonal"
    main_parameter: ClassVar[str] = "mean"
    per_column: ClassVar[str] = "prior_mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior_strength is not None:
            check_number(self.prior_strength, "prior_strength")
        if self.degrees_of_freedom is not None:
            check_number(self.degrees_of_freedom, "degrees_of_freedom")
        if self.scale is not None:
            check_positive(self.scale, "scale")
        if self.prior_mean is not None and not np.all(np.isfinite(np.asarray(self.prior_mean, np.float64))):
            raise DataError(f"prior_mean must be finite, got {self.prior_mean!r}")

    def resolve(self, X: Any) -> Self:
        """Take what was left open from the data."""
        array = fitting_matrix(X, self.name, gaps=self.gaps is not False)
        d = array.shape[1]
        freedom = DEFAULT_FREEDOM if self.degrees_of_freedom is None else float(self.degrees_of_freedom)
        if self.prior_mean is None:
            mean = np.nanmean(array, axis=0)
        else:
            mean = vector_of(self.prior_mean, d, "prior_mean")
        if self.scale is None:
            scale = DEFAULT_WITHIN_SHARE * freedom * column_variances(array)
        else:
            scale = vector_of(self.scale, d, "scale")
        strength = DEFAULT_STRENGTH if self.prior_strength is None else self.prior_strength
        return replace(
            self,
            prior_mean=mean,
            prior_strength=strength,
            degrees_of_freedom=freedom,
            scale=scale,
            gaps=self.has_gaps(array),
        )

    @property
    def learnable(self) -> dict[str, Any]:
        """Strength, degrees of freedom and scales."""
        scale = np.asarray(self.scale, dtype=np.float64)
        numbers = {"prior_strength": self.prior_strength, "degrees_of_freedom": self.degrees_of_freedom}
        return {**numbers, "scale": scale}

    def learned_names(self, resolved: Self) -> tuple[str, ...]:
        """What was left open; the degrees of freedom are not learned where the scale is given."""
        return without_lone_freedom(self, super().learned_names(resolved))

    def learning(self, resolved: Self, data: Any) -> DiagonalLearning | None:
        """What was left open, with a prior measured by the variances of the columns."""
        names = self.learned_names(resolved)
        shares = shares_of(data, varying_variances(data))
        return DiagonalLearning(names, shares, 0.0, DEFAULT_FREEDOM) if names else None

    def statistics(self, capacity: int) -> DiagonalStats | MixedStats:
        mean = np.asarray(self.prior_mean, dtype=np.float64)
        d = mean.shape[0]
        assert self.degrees_of_freedom is not None
        assert self.prior_strength is not None
        if self.gaps:
            half = 0.5 * np.asarray(self.scale, dtype=np.float64)
            return columns_with_gaps(
                NUMBER, capacity, self.prior_strength, mean, 0.5 * self.degrees_of_freedom, half
            )
        return DiagonalStats(
            prior_mean=mean,
            prior_scale=np.asarray(self.scale, dtype=np.float64),
            prior_strength=float(self.prior_strength),
            degrees_of_freedom=float(self.degrees_of_freedom),
            counts=np.zeros(capacity),
            means=np.zeros((capacity, d)),
            scales=np.zeros((capacity, d)),
            precisions=np.zeros((capacity, d)),
            log_det=np.zeros(capacity),
            log_height=np.zeros(capacity),
        )

    def direction_scales(self, data: Any) -> np.ndarray:
        """Measure columns by the spread expected within a group."""
        return 1.0 / np.sqrt(np.asarray(self.scale, dtype=np.float64))

    def parameters(self, stats: Any, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior means of each group's center and variances."""
        if isinstance(stats, MixedStats):
            means, scales = stats.means[:, :n_clusters].T, 2.0 * stats.rates[:, :n_clusters].T
            freedom = 2.0 * stats.priors[:, SHAPE] + stats.entries[:, :n_clusters].T - 2.0
        else:
            means, scales = stats.means[:n_clusters], stats.scales[:n_clusters]
            freedom = stats.degrees_of_freedom + stats.counts[:n_clusters, None] - 2.0
        with np.errstate(divide="ignore"):
            variance = np.where(freedom > 0, scales / freedom, np.nan)
        return {"mean": means.copy(), "variance": variance}
