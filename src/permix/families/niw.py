"""Gaussian groups with unknown covariance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from permix.errors import CellError, DataError
from permix.families.base import (
    LARGEST,
    Family,
    check_number,
    check_table,
    finite_matrix,
    fitting_matrix,
    vector_of,
)
from permix.families.niw_jit import NIWStats
from permix.families.scale_learning import MatrixLearning, shares_of

# Where chains begin: the share of the data's variance that a group is expected to have in each column, and
# how many points the prior mean is worth.
DEFAULT_WITHIN_SHARE = 0.3
DEFAULT_STRENGTH = 0.01


@dataclass(frozen=True, eq=False)
class GaussianNIW(Family):
    """Gaussian groups whose mean and covariance are both learned.

    Parameters
    ----------
    prior_mean : sequence of float, optional
        Expected center; default the mean of the data.
    prior_strength : float, optional
        How many points the prior mean is worth (κ). Left out, it is learned.
    degrees_of_freedom : float, optional
        How many points the prior covariance is worth (ν > d - 1), for d columns. Left out, it is learned, or
        d + 2 where a scale is given.
    scale : array of shape (d, d) or sequence of float, optional
        Scale matrix Ψ of the inverse Wishart distribution, or its diagonal. The expected covariance of a
        group is Ψ/(ν - d - 1). Left out, a diagonal one is learned.

    Notes
    -----
    What is left out is learned in the chains, with weak priors: the logarithms of κ, of ν - d + 1 and, in
    each column, of the share Ψ_jj/(ν - d + 1) of the data's variance are normal with medians 0.01, d + 3 and
    0.3 and deviations 0.5, 1.5 and 1. So units do not matter. ``family_`` of a fit has their posterior means,
    and ``posterior_`` all draws.

    The predictive of a group is a multivariate Student t; see the notation page of the documentation. Missing
    cells (NaN) are drawn in the chains, given the group of their row and what was observed of it: exact data
    augmentation, if cells are missing at random. ``posterior_`` has their draws as ``missing_cells``, row by
    row. New rows are scored by the columns that were observed.

    Examples
    --------
    >>> family = GaussianNIW().resolve([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
    >>> family.degrees_of_freedom
    6.0
    """

    prior_mean: float | Sequence[float] | np.ndarray | None = None
    prior_strength: float | None = None
    degrees_of_freedom: float | None = None
    scale: Sequence[float] | np.ndarray | None = None

    name: ClassVar[str] = "gaussian-niw"
    main_parameter: ClassVar[str] = "mean"
    per_column: ClassVar[str] = "prior_mean"
    accepts_missing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior_strength is not None:
            check_number(self.prior_strength, "prior_strength")
        if self.degrees_of_freedom is not None:
            check_number(self.degrees_of_freedom, "degrees_of_freedom")
        for name in ("prior_mean", "scale"):
            value = getattr(self, name)
            if value is not None and not np.all(np.isfinite(np.asarray(value, dtype=np.float64))):
                raise DataError(f"{name} must be finite, got {value!r}")

    def resolve(self, X: Any) -> Self:
        """Take what was left open from the data."""
        array = fitting_matrix(X, self.name, gaps=True)
        d = array.shape[1]
        typical = d + 2 if self.scale is not None else 2 * d + 2
        freedom = float(typical if self.degrees_of_freedom is None else self.degrees_of_freedom)
        if freedom <= d - 1:
            raise DataError(f"degrees_of_freedom must be above {d - 1} for {d} columns, got {freedom:g}")
        if self.prior_mean is None:
            mean = np.nanmean(array, axis=0)
        else:
            mean = vector_of(self.prior_mean, d, "prior_mean")
        if self.scale is None:
            scale = np.diag(DEFAULT_WITHIN_SHARE * (freedom - d + 1) * column_variances(array))
        else:
            scale = np.asarray(self.scale, dtype=np.float64)
            scale = np.diag(scale) if scale.ndim == 1 else scale
        if scale.shape != (d, d):
            raise DataError(f"scale must be a {d} × {d} matrix or {d} variances, got shape {scale.shape}")
        if not np.allclose(scale, scale.T) or np.linalg.eigvalsh(scale)[0] <= 0:
            raise DataError("scale must be symmetric and positive definite")
        strength = DEFAULT_STRENGTH if self.prior_strength is None else self.prior_strength
        return replace(
            self, prior_mean=mean, prior_strength=strength, degrees_of_freedom=freedom, scale=scale
        )

    @property
    def learnable(self) -> dict[str, Any]:
        """Strength, degrees of freedom and the diagonal of the scale matrix."""
        assert self.degrees_of_freedom is not None
        return {
            "prior_strength": self.prior_strength,
            "degrees_of_freedom": self.degrees_of_freedom,
            "scale": np.diag(np.asarray(self.scale, dtype=np.float64)),
        }

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with other values; of the scale its diagonal."""
        given = dict(values)
        if "scale" in given:
            given["scale"] = np.diag(given["scale"])
        return replace(self, **given)

    def learned_names(self, resolved: Self) -> tuple[str, ...]:
        """What was left open; the degrees of freedom are not learned where the scale is given."""
        return without_lone_freedom(self, super().learned_names(resolved))

    def learning(self, resolved: Self, data: Any) -> MatrixLearning | None:
        """What was left open, with a prior measured by the variances of the columns."""
        d, names = data.shape[1], self.learned_names(resolved)
        shares = shares_of(data, varying_variances(data))
        return MatrixLearning(names, shares, d - 1.0, d + 3.0) if names else None

    def encode(self, X: Any) -> np.ndarray:
        """Check cells; the result is a copy that later changes to ``X`` do not reach."""
        return finite_matrix(X, self.name, gaps=True).copy()

    def completed(self, data: Any) -> np.ndarray:
        """Fill gaps with the prior mean: chains draw them anew, given the group of the row."""
        missing = np.isnan(data)
        return np.where(missing, np.asarray(self.prior_mean), data) if missing.any() else data

    def scoring(self, stats: Any, data: Any, filled: Any) -> Any:
        """Rows with gaps have the density of their observed columns, a Student t too."""
        if not np.isnan(data).any():
            return stats
        from permix.families.missing.niw_gaps_jit import with_gaps

        return with_gaps(stats, filled)

    def points(self, data: Any) -> tuple[np.ndarray, bool]:
        """Draw missing cells at the mean."""
        return self.completed(data), True

    def check_encoded(self, data: Any, n: int) -> None:
        """Refuse a table of another shape, and cells that are infinite."""
        check_table(data, n, self.n_features)

    def statistics(self, capacity: int) -> NIWStats:
        mean = np.asarray(self.prior_mean, dtype=np.float64)
        d = mean.shape[0]
        assert self.degrees_of_freedom is not None
        assert self.prior_strength is not None
        lower = np.linalg.cholesky(np.asarray(self.scale, dtype=np.float64))
        prior_factor = np.ascontiguousarray((lower / np.diag(lower)).T)
        np.fill_diagonal(prior_factor, np.diag(lower) ** 2)
        return NIWStats(
            prior_mean=mean,
            prior_strength=float(self.prior_strength),
            degrees_of_freedom=self.degrees_of_freedom,
            prior_factors=prior_factor[None],
            counts=np.zeros(capacity),
            sums=np.zeros((capacity, d)),
            means=np.zeros((capacity, d)),
            factors=np.zeros((capacity, d, d)),
            log_det=np.zeros(capacity),
            log_height=np.zeros(capacity),
            work=np.zeros(d),
        )

    def direction_scales(self, data: Any) -> np.ndarray:
        """Measure columns by the spread expected within a group."""
        return 1.0 / np.sqrt(np.diag(np.asarray(self.scale, dtype=np.float64)))

    def parameters(self, stats: Any, n_clusters: int) -> dict[str, np.ndarray]:
        """Posterior means of each group's center and covariance."""
        d = stats.prior_mean.shape[0]
        factors = stats.factors[:n_clusters]
        pivots = np.diagonal(factors, axis1=1, axis2=2)
        upper = np.triu(factors, 1) + np.eye(d)
        scales = np.swapaxes(upper, 1, 2) @ (pivots[:, :, None] * upper)
        freedom = stats.degrees_of_freedom + stats.counts[:n_clusters] - d - 1
        with np.errstate(divide="ignore"):
            covariance = np.where((freedom > 0)[:, None, None], scales / freedom[:, None, None], np.nan)
        return {"mean": stats.means[:n_clusters].copy(), "covariance": covariance}


def column_variances(array: np.ndarray) -> np.ndarray:
    """Variance of each column, of cells that are not missing; 1 where it is constant."""
    # A constant column has no scale of its own: any positive value does. Its variance need not be
    # exactly zero, since its mean may be rounded.
    varies = _varies(array)
    variance = np.ones(array.shape[1])
    variance[varies] = np.nanvar(array[:, varies], axis=0)
    vanished = np.flatnonzero(variance < LARGEST**-2)
    if vanished.size:
        said = "{place}: its values differ too little to be squared; measure it in other units."
        raise CellError(None, int(vanished[0]), said)
    return variance


def varying_variances(array: np.ndarray) -> np.ndarray:
    """Variance of each column; NaN where it is constant."""
    return np.where(_varies(array), column_variances(array), np.nan)


def _varies(array: np.ndarray) -> np.ndarray:
    # Not so where every cell is missing: NaN is larger than nothing.
    return np.asarray(np.fmax.reduce(array, axis=0) > np.fmin.reduce(array, axis=0))


def without_lone_freedom(family: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Leave out the degrees of freedom where the scale, whose units they are, is given."""
    return tuple(name for name in names if name != "degrees_of_freedom" or family.scale is None)
