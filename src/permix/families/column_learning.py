"""What chains learn about columns of known noise, of answers, of words and of counts.

The noise variance of a column is a share of the variance of the data there, with the prior that groups of
unknown variance have. One pseudo-count serves all answers or words: its logarithm is normal about that of 1.
The shape of counts is normal, on the same scale, about what the mean and variance of the column say.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln

from permix.families.learning import FloatArray, Learning, LogNormal, one_slice, slice_step
from permix.families.mixed_jit import MixedStats
from permix.families.scale_learning import ColumnGroups, ColumnShares, groups_of_columns

PSEUDO_COUNT = LogNormal(1.0, 1.5, 0.001, 100.0)
SHAPE_DEVIATION, LEAST_SHAPE, MOST_SHAPE = 1.5, 1e-2, 1e4


@dataclasses.dataclass(frozen=True)
class NoiseLearning(Learning):
    """The noise of Gaussian groups."""

    names: tuple[str, ...]
    columns: ColumnShares

    def log_prior(self, family: Any) -> float:
        return self.columns.log_prior(family.learnable["noise_scale"] ** 2)

    def draw(self, rng: np.random.Generator, family: Any, stats: Any, n_clusters: int) -> Any:
        groups = _known_noise_groups(stats, n_clusters)
        columns = self.columns.varying
        noise = family.learnable["noise_scale"].copy()
        if len(columns):
            about = (np.broadcast_to(groups.n, groups.shift.shape), groups.scatter, groups.shift)
            n, scatter, shift = (array[:, columns] for array in about)
            units, centers = self.columns.variances[columns], np.asarray(family.prior_scale)[columns] ** 2
            inside = n > 0

            def log_density(log_shares: FloatArray) -> FloatArray:
                variance = units * np.exp(log_shares)
                # Members about their mean, and the mean, N(m, s² + σ²/n).
                terms = (n - 1.0) * np.log(variance) + scatter / variance
                terms = terms + np.log(variance + n * centers) + n * shift**2 / (n * centers + variance)
                return np.asarray(
                    self.columns.log_density(log_shares) - 0.5 * np.where(inside, terms, 0.0).sum(axis=0)
                )

            shares = slice_step(rng, np.log(noise[columns] ** 2 / units), log_density)
            noise[columns] = np.sqrt(units * np.exp(shares))
        return family.with_values({"noise_scale": noise})


def _known_noise_groups(stats: Any, n_clusters: int) -> ColumnGroups:
    if isinstance(stats, MixedStats):
        return groups_of_columns(stats, n_clusters)
    n = stats.counts[:n_clusters, None]
    shift = stats.sums[:, :n_clusters].T / n - stats.prior_mean
    return ColumnGroups(n, np.maximum(stats.spread[:, :n_clusters].T, 0.0), shift)


@dataclasses.dataclass(frozen=True)
class PseudoCountLearning(Learning):
    """The pseudo-count of answers or words."""

    names: tuple[str, ...] = ("pseudo_count",)
    prior: LogNormal = PSEUDO_COUNT

    def log_prior(self, family: Any) -> float:
        return self.prior.log_density_of(math.log(family.learnable["pseudo_count"]))

    def draw(self, rng: np.random.Generator, family: Any, stats: Any, n_clusters: int) -> Any:
        counts, totals = stats.counts[:, :n_clusters], np.atleast_2d(stats.totals[..., :n_clusters])
        n_levels = np.diff(stats.offsets) if hasattr(stats, "offsets") else np.array([len(counts)])
        present = family.learnable["pseudo_count"]
        value = draw_pseudo_count(rng, present, counts, totals, n_levels, self.prior)
        return family.with_values({"pseudo_count": value})


def draw_pseudo_count(
    rng: np.random.Generator,
    value: float,
    counts: FloatArray,
    totals: FloatArray,
    n_levels: Any,
    prior: LogNormal = PSEUDO_COUNT,
) -> float:
    """Draw the parameter of symmetric Dirichlet priors given ``counts`` of all levels in all groups.

    ``totals`` are those of each column, (columns, groups), and ``n_levels`` how many levels these have.
    """
    log_likelihood = dirichlet_log_likelihood(counts, totals, n_levels)
    return one_slice(rng, value, lambda log: log_likelihood(math.exp(log)) + prior.log_density_of(log))


def dirichlet_log_likelihood(
    counts: FloatArray, totals: FloatArray, n_levels: Any
) -> Callable[[float], float]:
    """Return the log marginal likelihood as a function of the pseudo-count."""
    # Most counts are small: equal ones are computed once.
    values, times = np.unique(counts[counts > 0], return_counts=True)
    levels = np.asarray(n_levels, dtype=np.float64)[:, None]

    def log_likelihood(pseudo_count: float) -> float:
        prior = pseudo_count * levels
        of_totals = gammaln(prior) - gammaln(prior + totals)
        of_counts = times * (gammaln(pseudo_count + values) - gammaln(pseudo_count))
        return float(of_totals.sum() + of_counts.sum())

    return log_likelihood


@dataclasses.dataclass(frozen=True)
class ColumnOfCounts:
    """The different counts of a column, and how often each occurs; the prior of its shape."""

    values: FloatArray
    times: FloatArray
    prior: LogNormal


def column_of_counts(present: FloatArray, shape: float) -> ColumnOfCounts:
    """Return what does not depend on groups: the prior is weak about the shape of the whole column."""
    values, times = np.unique(present, return_counts=True)
    prior = LogNormal(shape, SHAPE_DEVIATION, LEAST_SHAPE, MOST_SHAPE)
    return ColumnOfCounts(values, times.astype(np.float64), prior)


def draw_shape(
    rng: np.random.Generator,
    value: float,
    column: ColumnOfCounts,
    mean: float,
    n: FloatArray,
    sums: FloatArray,
) -> float:
    """Draw the shape of negative binomial counts, of which groups have ``n`` with these sums.

    The prior of a group, beta(1 + r/mean, 1), changes with the shape r.
    """
    total = float(column.times.sum())

    def log_density(log_shape: float) -> float:
        shape = math.exp(log_shape)
        alpha = 1.0 + shape / mean
        log_coefficients = (column.times * gammaln(shape + column.values)).sum() - total * gammaln(shape)
        log_groups = (betaln(alpha + shape * n, 1.0 + sums) - betaln(alpha, 1.0)).sum()
        return float(log_coefficients + log_groups + column.prior.log_density_of(log_shape))

    return one_slice(rng, value, log_density)
