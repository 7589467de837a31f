"""What chains learn about Gaussian groups of unknown mean and variance: κ, ν and the scale of each column.

With ν = ν₀ + e (ν₀ the value it must exceed) and ψ_j = e v_j w_j in a column of variance v_j, κ, e and the
shares w_j have independent priors: e can change while expected variances stay.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from permix.families.learning import FloatArray, Learning, LogNormal, one_slice, slice_step
from permix.families.mixed_jit import MEAN, RATE, MixedStats
from permix.families.mixed_jit import STRENGTH as KAPPA

# Centers of groups must differ by more than the groups are wide, or nothing tells one group from several.
STRENGTH = LogNormal(0.01, 0.5, 0.001, 0.05)
# Groups have between a tenth and all of a column's deviation, more or less; the likelihood may say otherwise.
SHARE = LogNormal(0.3, 1.0, 1e-8, 2.0)
# Rounding of a column may not demand more than this share of its variance, and where more than so many of the
# rows are copies of others, which would make groups of copies, this is the least share.
MOST_ROUNDED, MANY_COPIES = 0.1, 0.05
FREEDOM_DEVIATION, LEAST_FREEDOM, MOST_FREEDOM = 1.5, 1.0, 1e4
# With full covariances so many columns get a new scale of their own in one step, beside the common change.
COLUMNS_PER_STEP = 4


@dataclasses.dataclass(frozen=True)
class ColumnShares:
    """Prior of the share of each column's variance that a group has.

    ``variances`` are NaN where a column is constant and nothing is learned of it. A group is not narrower
    than the rounding of the numbers, ``least_shares``: rounded numbers would make groups of equal values.
    """

    variances: FloatArray
    least_shares: FloatArray

    @property
    def varying(self) -> npt.NDArray[np.intp]:
        """Which columns are not constant."""
        return np.flatnonzero(~np.isnan(self.variances))

    def log_density(self, log_shares: FloatArray) -> FloatArray:
        """Log density of the logarithms of the shares of the columns that vary."""
        inside = log_shares >= np.log(self.least_shares[self.varying])
        return np.where(inside, SHARE.log_density(log_shares), -np.inf)

    def log_prior(self, expected: FloatArray) -> float:
        """Log density of the variances expected in a group."""
        return float(self.log_density(np.log((expected / self.variances)[self.varying])).sum())


def shares_of(table: FloatArray, variances: FloatArray) -> ColumnShares:
    """Return the prior for these data: numbers a multiple of h apart are rounded with variance h²/12."""
    least = np.full(len(variances), SHARE.low)
    if len(np.unique(table, axis=0)) < (1.0 - MANY_COPIES) * len(table):
        return ColumnShares(variances, np.full(len(variances), MOST_ROUNDED))
    for j in np.flatnonzero(~np.isnan(variances)):
        values = np.unique(table[~np.isnan(table[:, j]), j])
        # Differences that are nothing but errors of arithmetic do not count.
        apart = np.diff(values)[np.diff(values) > 1e-9 * (values[-1] - values[0])]
        least[j] = np.clip(apart.min() ** 2 / 12.0 / variances[j], SHARE.low, MOST_ROUNDED)
    return ColumnShares(variances, least)


@dataclasses.dataclass(frozen=True)
class ScaleLearning(Learning):
    """What normal-inverse-Wishart and normal-inverse-gamma families have in common.

    ``least`` is what the degrees of freedom exceed, and ``typical`` by how much.
    """

    names: tuple[str, ...]
    columns: ColumnShares
    least: float
    typical: float

    @property
    def freedom_prior(self) -> LogNormal:
        """Prior of the degrees of freedom beyond the least."""
        return LogNormal(self.typical, FREEDOM_DEVIATION, LEAST_FREEDOM, MOST_FREEDOM)

    def log_prior(self, family: Any) -> float:
        values = family.learnable
        extra = values["degrees_of_freedom"] - self.least
        total = 0.0
        if "prior_strength" in self.names:
            total += STRENGTH.log_density_of(math.log(values["prior_strength"]))
        if "degrees_of_freedom" in self.names:
            total += self.freedom_prior.log_density_of(math.log(extra))
        if "scale" in self.names:
            total += self.columns.log_prior(values["scale"] / extra)
        return total

    def draw(self, rng: np.random.Generator, family: Any, stats: Any, n_clusters: int) -> Any:
        values = dict(family.learnable)
        groups = self.groups(family, stats, n_clusters)
        # One of them, drawn at random: a sweep of a small table costs less than all.
        chosen = self.names[int(rng.integers(len(self.names)))]
        self.change(rng, chosen, groups, values)
        names = ("prior_strength",) if chosen == "prior_strength" else ("degrees_of_freedom", "scale")
        return family.with_values({name: values[name] for name in names})

    def change(self, rng: np.random.Generator, name: str, groups: Any, values: dict[str, Any]) -> None:
        """Draw one of the hyper-parameters, and change ``values`` accordingly."""
        if name == "prior_strength":
            values[name] = self._strength(rng, groups, values)
        elif name == "degrees_of_freedom":
            self._freedom(rng, groups, values)
        else:
            self._scales(rng, groups, values)

    def groups(self, family: Any, stats: Any, n_clusters: int) -> Any:
        """Return what is read of the groups."""
        raise NotImplementedError

    def _strength(self, rng: np.random.Generator, groups: Any, values: dict[str, Any]) -> float:
        raise NotImplementedError

    def _freedom(self, rng: np.random.Generator, groups: Any, values: dict[str, Any]) -> None:
        raise NotImplementedError

    def _scales(self, rng: np.random.Generator, groups: Any, values: dict[str, Any]) -> None:
        raise NotImplementedError


@dataclasses.dataclass
class ColumnGroups:
    """Numbers of entries n, and in each column the scatter about the group's own mean and its shift u."""

    n: FloatArray  # (K, d), or (K, 1) where no cell is missing
    scatter: FloatArray  # (K, d)
    shift: FloatArray  # (K, d) from the prior mean

    def about_prior(self, strength: float) -> FloatArray:
        """What the groups add to ψ."""
        return self.scatter + strength * self.n / (strength + self.n) * self.shift**2

    def in_all_columns(self, terms: FloatArray) -> float:
        """Sum what depends on n alone over groups and columns."""
        return float(terms.sum()) * (self.shift.shape[1] / self.n.shape[1])


def groups_of_columns(stats: MixedStats, n_clusters: int, columns: Any = slice(None)) -> ColumnGroups:
    """Return what statistics with gaps say of columns of numbers."""
    prior = stats.priors[columns]
    n = stats.entries[columns, :n_clusters].T
    strength = prior[:, KAPPA]
    off = stats.means[columns, :n_clusters].T - prior[:, MEAN]
    shift = off * (strength + n) / np.maximum(n, 1.0)
    added = 2.0 * (stats.rates[columns, :n_clusters].T - prior[:, RATE])
    scatter = added - strength * n / (strength + n) * shift**2
    return ColumnGroups(n, np.maximum(scatter, 0.0), shift)


class DiagonalLearning(ScaleLearning):
    """Independent columns: their scales are drawn at once."""

    def groups(self, family: Any, stats: Any, n_clusters: int) -> ColumnGroups:
        if isinstance(stats, MixedStats):
            return groups_of_columns(stats, n_clusters)
        n = stats.counts[:n_clusters, None]
        strength = stats.prior_strength
        shift = (stats.means[:n_clusters] - stats.prior_mean) * ((strength + n) / n)
        added = stats.scales[:n_clusters] - stats.prior_scale
        scatter = added - strength * n / (strength + n) * shift**2
        return ColumnGroups(n, np.maximum(scatter, 0.0), shift)

    def _strength(self, rng: np.random.Generator, groups: ColumnGroups, values: dict[str, Any]) -> float:
        n = groups.n
        power = 0.5 * (values["degrees_of_freedom"] + n)
        ratio = groups.shift**2 / (groups.scatter + values["scale"])

        def log_density(log_strength: float) -> float:
            strength = math.exp(log_strength)
            weight = strength * n / (strength + n)
            terms = groups.in_all_columns(0.5 * np.log(strength / (strength + n)))
            terms -= float((power * np.log1p(weight * ratio)).sum())
            return terms + STRENGTH.log_density_of(log_strength)

        return one_slice(rng, values["prior_strength"], log_density)

    def _freedom(self, rng: np.random.Generator, groups: ColumnGroups, values: dict[str, Any]) -> None:
        n, d = groups.n, groups.scatter.shape[1]
        added = groups.about_prior(values["prior_strength"])
        units = values["scale"] / (values["degrees_of_freedom"] - self.least)
        log_units = float(np.log(units).sum())

        prior = self.freedom_prior

        def log_density(log_extra: float) -> float:
            extra = math.exp(log_extra)
            freedom = self.least + extra
            terms = groups.in_all_columns(gammaln(0.5 * (freedom + n)) - gammaln(0.5 * freedom))
            terms += 0.5 * freedom * len(n) * (d * log_extra + log_units)
            terms -= float((0.5 * (freedom + n) * np.log(added + extra * units)).sum())
            return terms + prior.log_density_of(log_extra)

        extra = one_slice(rng, values["degrees_of_freedom"] - self.least, log_density)
        values["degrees_of_freedom"], values["scale"] = self.least + extra, extra * units

    def _scales(self, rng: np.random.Generator, groups: ColumnGroups, values: dict[str, Any]) -> None:
        freedom, columns = values["degrees_of_freedom"], self.columns.varying
        unit = self.columns.variances[columns] * (freedom - self.least)
        added = groups.about_prior(values["prior_strength"])[:, columns]
        n = groups.n if groups.n.shape[1] == 1 else groups.n[:, columns]
        power = 0.5 * (freedom + n)

        def log_density(log_shares: FloatArray) -> FloatArray:
            value: FloatArray = 0.5 * freedom * len(n) * log_shares
            value = value - (power * np.log(added + unit * np.exp(log_shares))).sum(axis=0)
            return np.asarray(value + self.columns.log_density(log_shares))

        drawn = slice_step(rng, np.log(values["scale"][columns] / unit), log_density)
        values["scale"] = values["scale"].copy()
        values["scale"][columns] = np.exp(drawn) * unit


@dataclasses.dataclass
class MatrixGroups:
    """The same with matrices of scatter."""

    n: FloatArray  # (K,)
    scatter: FloatArray  # (K, d, d)
    shift: FloatArray  # (K, d)
    prior: FloatArray  # (d, d) Ψ as it was
    # (K,): shift' (Ψ + scatter)⁻¹ shift. Not from ``scatter``, which is a difference: of a row that is far
    # away nothing but rounding errors is left of it.
    ratio: FloatArray

    def about_prior(self, strength: float) -> FloatArray:
        """What the groups add to Ψ."""
        weight = strength * self.n / (strength + self.n)
        outer = self.shift[:, :, None] * self.shift[:, None, :]
        return self.scatter + weight[:, None, None] * outer


class MatrixLearning(ScaleLearning):
    """Full covariances under a diagonal Ψ, O(K d³) a step.

    |Ψ_n| is known for all multiples of Ψ from eigenvalues, for all κ from one quadratic form, and for all
    values of one scale from a diagonal entry of its inverse.
    """

    def groups(self, family: Any, stats: Any, n_clusters: int) -> MatrixGroups:
        d = stats.prior_mean.shape[0]
        n, factors = stats.counts[:n_clusters], stats.factors[:n_clusters]
        upper = np.triu(factors, 1) + np.eye(d)
        scales = np.swapaxes(upper, 1, 2) @ (np.diagonal(factors, axis1=1, axis2=2)[:, :, None] * upper)
        shift = stats.sums[:n_clusters] / n[:, None] - stats.prior_mean
        prior = np.asarray(family.scale, dtype=np.float64)
        weight = stats.prior_strength * n / (stats.prior_strength + n)
        scatter = scales - prior - weight[:, None, None] * shift[:, :, None] * shift[:, None, :]
        # Ψ_n = U'DU is Ψ + scatter + weight · shift shift', so with q = shift' Ψ_n⁻¹ shift the form sought is
        # q / (1 - weight · q) (Sherman & Morrison).
        solved = shift.copy()
        for row in range(1, d):
            solved[:, row] -= (upper[:, :row, row] * solved[:, :row]).sum(axis=1)
        q = (solved**2 / np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        ratio = q / np.maximum(1.0 - weight * q, np.finfo(np.float64).eps)
        return MatrixGroups(n, scatter, shift, prior, ratio)

    def _strength(self, rng: np.random.Generator, groups: MatrixGroups, values: dict[str, Any]) -> float:
        n, d = groups.n, groups.shift.shape[1]
        power = 0.5 * (values["degrees_of_freedom"] + n)
        ratio = groups.ratio

        def log_density(log_strength: float) -> float:
            strength = math.exp(log_strength)
            terms = 0.5 * d * np.log(strength / (strength + n))
            terms -= power * np.log1p(strength * n / (strength + n) * ratio)
            return float(terms.sum() + STRENGTH.log_density_of(log_strength))

        return one_slice(rng, values["prior_strength"], log_density)

    def _freedom(self, rng: np.random.Generator, groups: MatrixGroups, values: dict[str, Any]) -> None:
        n, d = groups.n, groups.shift.shape[1]
        units = values["scale"] / (values["degrees_of_freedom"] - self.least)
        roots = _eigenvalues(groups.about_prior(values["prior_strength"]), units)
        log_units = float(np.log(units).sum())
        places = np.arange(d)

        prior = self.freedom_prior

        def log_density(log_extra: float) -> float:
            extra = math.exp(log_extra)
            freedom = self.least + extra
            log_det = log_units + np.log(roots + extra).sum(axis=1)
            terms = gammaln(0.5 * (freedom + n[:, None] - places)).sum(axis=1)
            terms -= gammaln(0.5 * (freedom - places)).sum()
            terms += 0.5 * freedom * (d * log_extra + log_units) - 0.5 * (freedom + n) * log_det
            return float(terms.sum() + prior.log_density_of(log_extra))

        extra = one_slice(rng, values["degrees_of_freedom"] - self.least, log_density)
        values["degrees_of_freedom"], values["scale"] = self.least + extra, extra * units

    def _scales(self, rng: np.random.Generator, groups: MatrixGroups, values: dict[str, Any]) -> None:
        freedom, columns = values["degrees_of_freedom"], self.columns.varying
        variances, log_least = self.columns.variances, np.log(self.columns.least_shares)
        extra = freedom - self.least
        added = groups.about_prior(values["prior_strength"])
        power = 0.5 * (freedom + groups.n)
        scale = values["scale"] = values["scale"].copy()
        if not len(columns):
            return
        log_shares = np.log(scale[columns] / variances[columns] / extra)
        # All shares by one factor; constant columns have no scatter, and keep their scales.
        roots = _eigenvalues(added[:, columns][:, :, columns], scale[columns])
        n_free = 0.5 * freedom * len(groups.n)

        def of_factor(log_factor: float) -> float:
            terms = power * np.log(roots + math.exp(log_factor)).sum(axis=1)
            prior = float(self.columns.log_density(log_shares + log_factor).sum())
            return n_free * len(columns) * log_factor - float(terms.sum()) + prior

        scale[columns] *= one_slice(rng, 1.0, of_factor)
        chosen = rng.permutation(columns)[:COLUMNS_PER_STEP]
        inverse = np.linalg.inv(added + np.diag(scale))
        for j in chosen.tolist():
            diagonal: FloatArray = inverse[:, j, j].astype(np.float64)
            log_unit, before = math.log(variances[j] * extra), float(scale[j])
            lowest = float(log_least[j])

            def of_column(
                log_scale: float,
                diagonal: FloatArray = diagonal,
                log_unit: float = log_unit,
                before: float = before,
                lowest: float = lowest,
            ) -> float:
                if log_scale - log_unit < lowest:
                    return -math.inf

                # |Ψ_n + δ e_j e_jᵀ| = |Ψ_n| (1 + δ (Ψ_n⁻¹)_jj).
                change = np.maximum((math.exp(log_scale) - before) * diagonal, -1.0 + 1e-15)
                prior = SHARE.log_density_of(log_scale - log_unit)
                return n_free * log_scale - float((power * np.log1p(change)).sum()) + prior

            scale[j] = one_slice(rng, before, of_column)
            difference = scale[j] - before
            weight = difference / (1.0 + difference * diagonal)
            inverse -= weight[:, None, None] * inverse[:, :, [j]] * inverse[:, [j], :]


def _eigenvalues(matrices: FloatArray, units: FloatArray) -> FloatArray:
    """Eigenvalues of D^(-1/2) A D^(-1/2) for a diagonal D: |A + cD| = |D| Π(λ + c)."""
    root = 1.0 / np.sqrt(units)
    return np.maximum(np.linalg.eigvalsh(matrices * root[:, None] * root), 0.0)
