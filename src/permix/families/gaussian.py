"""Gaussian groups with known noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from permix.errors import Argument, DataError
from permix.families.base import Family, check_positive, finite_matrix, fitting_matrix, vector_of
from permix.families.gaussian_jit import GaussianStats

# Root mean square distance from the prior mean, in prior deviations, beyond which the scales look mistaken.
FAR = 10.0


@dataclasses.dataclass(frozen=True, eq=False)
class Gaussian(Family):
    """Gaussian groups of known noise; only the center of a group is learned.

    Parameters
    ----------
    noise_scale : float or sequence of float
        Standard deviation within a group: one number, or one per column.
    prior_mean : float or sequence of float
        Where group centers are expected.
    prior_scale : float or sequence of float
        Standard deviation of group centers around ``prior_mean``.

    Notes
    -----
    With x ~ N(μ, σ²) and μ ~ N(m, s²) per column, a group of n points predicts
    N((m/s² + Σx/σ²)/(1/s² + n/σ²), σ² + 1/(1/s² + n/σ²)).

    Examples
    --------
    >>> Gaussian(noise_scale=0.5).describe()["prior_scale"]
    10.0
    """

    noise_scale: float | Sequence[float] | np.ndarray = 1.0
    prior_mean: float | Sequence[float] | np.ndarray = 0.0
    prior_scale: float | Sequence[float] | np.ndarray = 10.0

    name: ClassVar[str] = "gaussian"
    main_parameter: ClassVar[str] = "mean"
    per_column: ClassVar[str] = "prior_mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.noise_scale, "noise_scale")
        check_positive(self.prior_scale, "prior_scale")
        if not np.all(np.isfinite(np.asarray(self.prior_mean, dtype=np.float64))):
            raise DataError(Argument("prior_mean"), f" must be finite, got {self.prior_mean!r}")

    def resolve(self, X: Any) -> Self:
        """Give every hyper-parameter one value per column."""
        d = fitting_matrix(X, self.name).shape[1]
        return dataclasses.replace(self, **{name: vector_of(v, d, name) for name, v in vars(self).items()})

    def encode(self, X: Any) -> np.ndarray:
        """Divide by the noise scale."""
        return np.ascontiguousarray(finite_matrix(X, self.name) / np.asarray(self.noise_scale))

    def doubts(self, data: Any) -> list[tuple[int, str]]:
        """Columns whose values are many deviations of the prior predictive from its mean."""
        noise, scale = np.asarray(self.noise_scale), np.asarray(self.prior_scale)
        deviation = np.sqrt(noise**2 + scale**2) / noise
        distance = np.sqrt((((data - np.asarray(self.prior_mean) / noise) / deviation) ** 2).mean(axis=0))
        return [
            (int(j), f"values are about {distance[j]:,.0f} prior deviations from prior_mean")
            for j in np.flatnonzero(distance > FAR)
        ]

    def statistics(self, capacity: int) -> GaussianStats:
        noise = np.asarray(self.noise_scale, dtype=np.float64)
        ratio = (noise / np.asarray(self.prior_scale)) ** 2
        d = ratio.shape[0]
        same = bool(np.all(ratio == ratio[0]))
        return GaussianStats(
            ratio=ratio,
            prior_mean=np.asarray(self.prior_mean) / noise,
            noise_scale=noise,
            log_jacobian=float(-np.log(noise).sum()),
            counts=np.zeros(capacity),
            sums=np.zeros((d, capacity)),
            means=np.zeros((d, capacity)),
            spread=np.zeros(capacity),
            half_precision=np.zeros((1 if same else d, capacity)),
            log_height=np.zeros(capacity),
        )

    def points(self, data: Any) -> tuple[np.ndarray, bool]:
        """Multiply by the noise scale."""
        return data * np.asarray(self.noise_scale), True

    def parameters(self, stats: Any, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior mean of each group's center."""
        return {"mean": (stats.means[:, :n_clusters] * np.asarray(self.noise_scale)[:, None]).T.copy()}
