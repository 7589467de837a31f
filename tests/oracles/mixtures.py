"""Marginal likelihoods as naively as they can be written, and exact posteriors over all partitions.

Nothing here calls the compiled families: densities come from scipy, one datum at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln

from permix.families import (
    Categorical,
    Family,
    Gaussian,
    GaussianDiagonal,
    GaussianNIW,
    Mixed,
    MixedNIW,
    Multinomial,
)
from tests.oracles.partitions import restricted_growth_strings

# ln p(x | members) of a new row given the rows already in the cluster.
Predictive = Callable[[np.ndarray, np.ndarray], float]


def gaussian_predictive(family: Gaussian) -> Predictive:
    noise, mean, scale = (np.asarray(v) for v in (family.noise_scale, family.prior_mean, family.prior_scale))

    def predictive(x: np.ndarray, members: np.ndarray) -> float:
        # What is missing says nothing.
        precision = 1 / scale**2 + (~np.isnan(members)).sum(axis=0) / noise**2
        center = (mean / scale**2 + np.nansum(members, axis=0) / noise**2) / precision
        return float(np.nansum(stats.norm.logpdf(x, center, np.sqrt(noise**2 + 1 / precision))))

    return predictive


def niw_predictive(family: GaussianNIW) -> Predictive:
    m, kappa, nu, psi = (
        np.asarray(family.prior_mean),
        family.prior_strength,
        family.degrees_of_freedom,
        family.scale,
    )

    def predictive(x: np.ndarray, members: np.ndarray) -> float:
        n, d = len(members), len(x)
        center = members.mean(axis=0) if n else np.zeros(d)
        scatter = (members - center).T @ (members - center)
        shift = center - m
        scale = psi + scatter + kappa * n / (kappa + n) * np.outer(shift, shift)
        kappa_n, nu_n = kappa + n, nu + n
        location = (kappa * m + members.sum(axis=0)) / kappa_n
        freedom = nu_n - d + 1
        return float(
            stats.multivariate_t.logpdf(x, location, scale * (kappa_n + 1) / (kappa_n * freedom), df=freedom)
        )

    return predictive


def diagonal_predictive(family: GaussianDiagonal) -> Predictive:
    m, kappa, nu, psi = (
        np.asarray(family.prior_mean),
        family.prior_strength,
        family.degrees_of_freedom,
        np.asarray(family.scale),
    )

    def predictive(x: np.ndarray, members: np.ndarray) -> float:
        n = len(members)
        center = members.mean(axis=0) if n else np.zeros(len(x))
        scale = psi + ((members - center) ** 2).sum(axis=0) + kappa * n / (kappa + n) * (center - m) ** 2
        location = (kappa * m + members.sum(axis=0)) / (kappa + n)
        spread = np.sqrt(scale * (kappa + n + 1) / ((kappa + n) * (nu + n)))
        return float(stats.t.logpdf(x, nu + n, location, spread).sum())

    return predictive


def multinomial_predictive(family: Multinomial) -> Predictive:
    pseudo = np.asarray(family.pseudo_count)

    def predictive(x: np.ndarray, members: np.ndarray) -> float:
        weights = pseudo + members.sum(axis=0)
        coefficient = gammaln(x.sum() + 1) - gammaln(x + 1).sum()
        ratio = gammaln(weights + x).sum() - gammaln(weights).sum()
        return float(coefficient + ratio + gammaln(weights.sum()) - gammaln(weights.sum() + x.sum()))

    return predictive


def categorical_predictive(family: Categorical) -> Predictive:
    def predictive(x: np.ndarray, members: np.ndarray) -> float:
        total = 0.0
        for j, levels in enumerate(family.levels):
            if np.isnan(x[j]):
                continue
            answered = members[:, j][~np.isnan(members[:, j])]
            hits = np.sum(answered == x[j]) + family.pseudo_count
            total += math.log(hits / (len(answered) + family.pseudo_count * len(levels)))
        return total

    return predictive


def mixed_predictive(family: Mixed) -> Predictive:
    """Column by column, from what was entered there alone."""

    def of_number(x: float, entries: np.ndarray, j: int) -> float:
        mean, kappa, n = family.prior_mean[j], family.prior_strength, len(entries)
        shape = family.degrees_of_freedom / 2
        rate = (shape - 1) * family.within_share[j] * family.scale[j] ** 2
        if n:
            rate += 0.5 * ((entries - entries.mean()) ** 2).sum()
            rate += 0.5 * kappa * n / (kappa + n) * (entries.mean() - mean) ** 2
        center = (kappa * mean + entries.sum()) / (kappa + n)
        shape += n / 2
        spread = math.sqrt(rate / shape * (kappa + n + 1) / (kappa + n))
        return float(stats.t.logpdf(x, 2 * shape, center, spread))

    def of_count(x: float, entries: np.ndarray, j: int) -> float:
        size, mean = family.shape[j], family.prior_mean[j]
        alpha = 1 + size / mean + size * len(entries)
        beta = 1 + entries.sum()
        log_ways = gammaln(size + x) - gammaln(size) - gammaln(x + 1)  # scipy's takes whole sizes only
        return float(log_ways + betaln(alpha + size, beta + x) - betaln(alpha, beta))

    def of_category(x: float, entries: np.ndarray, j: int) -> float:
        a = family.pseudo_count
        return math.log(((entries == x).sum() + a) / (len(entries) + a * len(family.levels[j])))

    score = {"number": of_number, "count": of_count, "category": of_category, "ordered": of_category}

    def predictive(x: np.ndarray, members: np.ndarray) -> float:
        return sum(
            score[kind](x[j], members[~np.isnan(members[:, j]), j], j)
            for j, kind in enumerate(family.kinds)
            if not np.isnan(x[j])
        )

    return predictive


def mixed_niw_predictive(family: MixedNIW) -> Predictive:
    """Numbers together, all others column by column."""
    number = np.array([kind == "number" for kind in family.kinds])
    d = number.sum()
    scale = np.diag((family.degrees_of_freedom - d + 1) * family.within_share * family.scale**2)
    scale = scale[np.ix_(number, number)]
    of_numbers = niw_predictive(
        GaussianNIW(family.prior_mean[number], family.prior_strength, family.degrees_of_freedom, scale)
    )
    of_others = mixed_predictive(family)

    def predictive(x: np.ndarray, members: np.ndarray) -> float:
        others = np.where(number, np.nan, x)
        return of_numbers(x[number], members[:, number]) + of_others(others, members)

    return predictive


PREDICTIVES = {
    Gaussian: gaussian_predictive,
    GaussianDiagonal: diagonal_predictive,
    GaussianNIW: niw_predictive,
    Multinomial: multinomial_predictive,
    Categorical: categorical_predictive,
    Mixed: mixed_predictive,
    MixedNIW: mixed_niw_predictive,
}


def naive_predictive(family: Family) -> Predictive:
    return PREDICTIVES[type(family)](family)


def naive_marginal(family: Family, rows: np.ndarray) -> float:
    """ln p(rows) by the chain rule, one row after another."""
    predictive = naive_predictive(family)
    return sum(predictive(rows[i], rows[:i]) for i in range(len(rows)))


def exact_posterior(
    family: Family, X: np.ndarray, log_prior: Callable[[Sequence[int]], float]
) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """All partitions of the rows of X and their posterior probabilities."""
    partitions = list(restricted_growth_strings(len(X)))
    # Of five rows there are 31 sets, in 151 blocks of partitions.
    marginal = cache(lambda members: naive_marginal(family, X[list(members)]))
    scores = np.array([log_prior(labels) + sum(map(marginal, _blocks(labels))) for labels in partitions])
    weights = np.exp(scores - scores.max())
    return partitions, weights / weights.sum()


def _blocks(labels: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(i for i, label in enumerate(labels) if label == k) for k in range(max(labels) + 1)]


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    return 0.5 * float(np.abs(p - q).sum())


def total_variation_bound(p: np.ndarray, n_effective: float) -> float:
    """A bound that the empirical distribution of ``n_effective`` independent draws from p stays under.

    E TV <= ½ Σ sqrt(p(1-p)/n); one draw changes TV by at most 1/n, so by McDiarmid's inequality TV exceeds
    its mean by sqrt(ln(1/δ)/(2n)) with probability δ, here 1e-6.
    """
    mean = 0.5 * float(np.sqrt(p * (1 - p) / n_effective).sum())
    return mean + math.sqrt(math.log(1e6) / (2 * n_effective))
