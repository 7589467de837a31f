"""Gaussian groups with known noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from permix.errors import Argument, CellError, DataError
from permix.families.base import Family, check_positive, finite_matrix, fitting_matrix, vector_of
from permix.families.gaussian_jit import GaussianStats
from permix.families.mixed import empty_mixed
from permix.families.mixed_jit import KNOWN_NOISE, MixedStats

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
    gaps : bool, optional
        Whether cells may be missing (NaN), which then contribute nothing; by default whether some are.

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
    gaps: bool | None = None

    name: ClassVar[str] = "gaussian"
    main_parameter: ClassVar[str] = "mean"
    per_column: ClassVar[str] = "prior_mean"
    accepts_missing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.noise_scale, "noise_scale")
        check_positive(self.prior_scale, "prior_scale")
        if not np.all(np.isfinite(np.asarray(self.prior_mean, dtype=np.float64))):
            raise DataError(Argument("prior_mean"), f" must be finite, got {self.prior_mean!r}")
        if self.gaps not in (None, True, False):
            raise DataError(f"gaps must be True or False or None, got {self.gaps!r}")

    def resolve(self, X: Any) -> Self:
        """Give every hyper-parameter one value per column."""
        array = fitting_matrix(X, self.name, gaps=self.gaps is not False)
        for empty in np.flatnonzero(np.isnan(array).all(axis=0))[: len(array)]:
            raise CellError(None, int(empty), "{place} has no entry at all: leave it out")
        per_column = ("noise_scale", "prior_mean", "prior_scale")
        vectors = {name: vector_of(getattr(self, name), array.shape[1], name) for name in per_column}
        gaps = bool(np.isnan(array).any()) if self.gaps is None else self.gaps
        return dataclasses.replace(self, **vectors, gaps=gaps)

    def serving(self, data: Any) -> Self:
        """New rows may have gaps where those that were fitted have none."""
        return self if self.gaps or not np.isnan(data).any() else dataclasses.replace(self, gaps=True)

    def encode(self, X: Any) -> np.ndarray:
        """Divide by the noise scale."""
        return np.ascontiguousarray(finite_matrix(X, self.name, gaps=True) / np.asarray(self.noise_scale))

    def doubts(self, data: Any) -> list[tuple[int, str]]:
        """Columns whose values are many deviations of the prior predictive from its mean."""
        noise, scale = np.asarray(self.noise_scale), np.asarray(self.prior_scale)
        deviation = np.sqrt(noise**2 + scale**2) / noise
        squared = ((data - np.asarray(self.prior_mean) / noise) / deviation) ** 2
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
            columns = (
                ratio,
                np.asarray(self.prior_mean) / noise,
                np.zeros(d),
                np.zeros(d),
                noise,
                np.zeros(d),
            )
            kinds, n_levels = np.full(d, KNOWN_NOISE), np.zeros(d, dtype=np.int64)
            return empty_mixed(kinds, n_levels, np.column_stack(columns), capacity)
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

    def numbers(self, data: Any) -> np.ndarray:
        return self.points(data)[0]

    def check_encoded(self, data: Any, n: int) -> None:
        """Refuse a table of another shape, and cells that are no numbers, or missing where none may be."""
        if self.gaps and isinstance(data, np.ndarray) and data.dtype == np.float64:
            data = np.where(np.isnan(data), 0.0, data)
        super().check_encoded(data, n)

    def describe(self) -> dict[str, Any]:
        """Leave out that there are no gaps: files of data without say nothing of them."""
        plain = super().describe()
        return plain if self.gaps else {name: value for name, value in plain.items() if name != "gaps"}

    def parameters(self, stats: Any, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior mean of each group's center."""
        return {"mean": (stats.means[:, :n_clusters] * np.asarray(self.noise_scale)[:, None]).T.copy()}
