"""Gaussian groups that all have the same noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from permix.errors import Argument, DataError
from permix.families.base import check_positive, fitting_matrix, vector_of
from permix.families.column_learning import NoiseLearning
from permix.families.gaussian_jit import GaussianStats
from permix.families.missing.gaps import IndependentColumns, columns_with_gaps
from permix.families.mixed_jit import KNOWN_NOISE, MixedStats
from permix.families.niw import DEFAULT_WITHIN_SHARE, column_variances, varying_variances
from permix.families.scale_learning import shares_of

# Root mean square distance from the prior mean, in prior deviations, beyond which the scales look mistaken.
FAR = 10.0


@dataclasses.dataclass(frozen=True, eq=False)
class Gaussian(IndependentColumns):
    """Gaussian groups that all have the same noise; each has a center of its own.

    Parameters
    ----------
    noise_scale : float or sequence of float, optional
        Standard deviation within a group: one number, or one per column. Left out, that of each column is
        learned.
    prior_mean : float or sequence of float, optional
        Where group centers are expected; default the mean of the data.
    prior_scale : float or sequence of float, optional
        Standard deviation of group centers around ``prior_mean``; default that of the data.
    gaps : bool, optional
        Whether cells may be missing (NaN), which then contribute nothing; by default whether some are.

    Notes
    -----
    With x ~ N(μ, σ²) and μ ~ N(m, s²) per column, a group of n points predicts
    N((m/s² + Σx/σ²)/(1/s² + n/σ²), σ² + 1/(1/s² + n/σ²)). Where noise is learned, the share of a column's
    variance that it has gets the prior that :class:`GaussianNIW` gives it.

    Examples
    --------
    >>> Gaussian(noise_scale=0.5).resolve([[0.0, 1.0], [6.0, 1.0]]).prior_scale
    array([3., 1.])
    """

    noise_scale: float | Sequence[float] | np.ndarray | None = None
    prior_mean: float | Sequence[float] | np.ndarray | None = None
    prior_scale: float | Sequence[float] | np.ndarray | None = None

    name: ClassVar[str] = "gaussian"
    main_parameter: ClassVar[str] = "mean"
    per_column: ClassVar[str] = "prior_mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("noise_scale", "prior_scale"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name)
        mean = self.prior_mean
        if mean is not None and not np.all(np.isfinite(np.asarray(mean, dtype=np.float64))):
            raise DataError(Argument("prior_mean"), f" must be finite, got {self.prior_mean!r}")

    def resolve(self, X: Any) -> Self:
        """Give every hyper-parameter one value per column, from the data where it was left open."""
        array = fitting_matrix(X, self.name, gaps=self.gaps is not False)
        given = {name: getattr(self, name) for name in ("noise_scale", "prior_mean", "prior_scale")}
        if any(value is None for value in given.values()):
            variances = column_variances(array)
            found = (np.sqrt(DEFAULT_WITHIN_SHARE * variances), np.nanmean(array, axis=0), np.sqrt(variances))
            pairs = zip(given.items(), found, strict=True)
            given = {name: other if value is None else value for (name, value), other in pairs}
        vectors = {name: vector_of(value, array.shape[1], name) for name, value in given.items()}
        return dataclasses.replace(self, **vectors, gaps=self.has_gaps(array))

    @property
    def learnable(self) -> dict[str, Any]:
        """The noise of each column."""
        return {"noise_scale": self.noise_scale}

    def learning(self, resolved: Self, data: Any) -> NoiseLearning | None:
        """The noise where it was left open, with a prior measured by the variances of the columns."""
        names = self.learned_names(resolved)
        return NoiseLearning(names, shares_of(data, varying_variances(data))) if names else None

    def doubts(self, data: Any) -> list[tuple[int, str]]:
        """Columns whose values are many deviations of the prior predictive from its mean."""
        noise, scale = np.asarray(self.noise_scale), np.asarray(self.prior_scale)
        squared = (data - np.asarray(self.prior_mean)) ** 2 / (noise**2 + scale**2)
        distance = np.sqrt(np.nanmean(squared, axis=0))
        return [
            (int(j), f"values are about {distance[j]:,.0f} prior deviations from prior_mean")
            for j in np.flatnonzero(distance > FAR)
        ]

    def statistics(self, capacity: int) -> GaussianStats | MixedStats:
        noise = np.asarray(self.noise_scale, dtype=np.float64)
        ratio = (noise / np.asarray(self.prior_scale)) ** 2
        d = ratio.shape[0]
        if self.gaps:
            mean = np.asarray(self.prior_mean, dtype=np.float64)
            return columns_with_gaps(KNOWN_NOISE, capacity, ratio, mean, noise**-2.0, 0.0)
        same = bool(np.all(ratio == ratio[0]) and np.all(noise == noise[0]))
        return GaussianStats(
            ratio=ratio,
            prior_mean=np.asarray(self.prior_mean, dtype=np.float64),
            variance=noise**2,
            log_jacobian=float(-np.log(noise).sum()),
            counts=np.zeros(capacity),
            sums=np.zeros((d, capacity)),
            means=np.zeros((d, capacity)),
            spread=np.zeros((d, capacity)),
            half_precision=np.zeros((1 if same else d, capacity)),
            log_height=np.zeros(capacity),
        )

    def direction_scales(self, data: Any) -> np.ndarray:
        """Measure columns by the noise."""
        return 1.0 / np.asarray(self.noise_scale, dtype=np.float64)

    def parameters(self, stats: Any, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior mean of each group's center."""
        return {"mean": stats.means[:, :n_clusters].T.copy()}
