"""Fitted weights that depend on columns of agents: coefficients, how sure they are, and shares by value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from permix.data.agent_table import AgentTable
from permix.data.labels import Array
from permix.distributions.agent_weights.design import Design
from permix.distributions.agent_weights.logit import information, log_weights, posterior

# A coefficient with a larger standard error than this, per standard deviation or value, has no finite
# estimate: the likelihood goes on rising while it grows.
UNLIMITED = 20.0
# Draws of the coefficients behind intervals of shares.
N_DRAWS = 400
# Different rows that these are averaged over; of more, so many drawn at random.
MOST_ROWS = 2000
INTERVAL = (0.05, 0.95)
NINETY = 1.645  # standard errors from a mean to either end


class Slopes(NamedTuple):
    """First and second derivatives of ln P(row | component) by a further parameter of each, (rows, K)."""

    first: Array
    second: Array


@dataclass(frozen=True, eq=False)
class AgentWeights:
    """Weights π_k(x) ∝ exp(x β_k), β of the first component being 0."""

    design: Design
    coefficients: Array  # (columns, K)
    # Of the coefficients of all components but the first, one component after the other; 0 where there is no
    # finite estimate.
    covariance: Array
    effects: Array  # (points of all columns, K, 3): share, and the ends of its interval
    test: ClassVar[str] = "likelihood ratio against shares that are the same for all"
    given: ClassVar[str] = "90% interval, the centers of the groups taken as known"
    gain: float  # how much larger ln L is than with weights that are the same for all

    @property
    def n_components(self) -> int:
        """Number of components."""
        return int(self.coefficients.shape[1])

    @property
    def n_more(self) -> int:
        """How many parameters there are more than with weights that are the same for all."""
        return (self.design.n_columns - 1) * (self.n_components - 1)

    @cached_property
    def errors(self) -> Array:
        """Standard errors, as the coefficients; infinite without a finite estimate."""
        shape = self.n_components - 1, len(self.coefficients)
        found = np.sqrt(np.diag(self.covariance)).reshape(shape).T
        found = np.where(found > 0.0, found, np.inf)
        return np.hstack([np.zeros((len(self.coefficients), 1)), found])

    @property
    def ends(self) -> Array:
        """The ends of 90 % intervals of the coefficients, (2, columns, K)."""
        half = NINETY * self.errors
        return np.stack([self.coefficients - half, self.coefficients + half])

    @property
    def p_value(self) -> float:
        """Of the likelihood ratio against weights that are the same for all."""
        return chi_squared_tail(2.0 * self.gain, self.n_more)

    def p_value_of(self, name: str) -> float:
        """Return Wald's p value of all coefficients of a column; NaN where one has no finite estimate."""
        places = self.design.columns_of(name)
        n_columns = self.design.n_columns
        which = np.add.outer(np.arange(self.n_components - 1) * n_columns, places).ravel()
        covariance = self.covariance[np.ix_(which, which)]
        values = self.coefficients[:, 1:].T.ravel()[which]
        if not len(values) or not np.diag(covariance).all():
            return float("nan")
        statistic = float(values @ np.linalg.lstsq(covariance, values, rcond=None)[0])
        return chi_squared_tail(statistic, len(values))

    def log_weights(self, table: AgentTable) -> Array:
        """Return ln π_k of every row, from what is known of it."""
        return log_weights(self.design.matrix(table), self.coefficients)


def chi_squared_tail(statistic: float, freedom: int) -> float:
    """Return P(chi-squared > statistic)."""
    from scipy.special import chdtrc

    return float(chdtrc(freedom, max(statistic, 0.0))) if freedom else float("nan")


def rebased(coefficients: Array, order: Array) -> Array:
    """Return coefficients with components in another order, those of the new first being 0."""
    found = coefficients[:, order]
    return np.asarray(found - found[:, :1])


def covariance_of(
    log_f: Array, matrix: Array, counts: Array, coefficients: Array, slopes: Slopes | None
) -> Array:
    """Return the inverse of the observed information, centers taken as known.

    With ``slopes`` a further parameter of each component is unknown too; it is not in what is returned.
    """
    counts = counts.astype(np.float64)
    priors = np.exp(log_weights(matrix, coefficients))
    r = posterior(log_f, priors)
    k, p = r.shape[1], matrix.shape[1]
    n = (k - 1) * p
    found = information(matrix, counts, priors) - information(matrix, counts, r)
    if slopes is not None:
        g, h = slopes
        rg = r * g
        between = np.empty((k - 1, p, k))
        for a in range(k - 1):
            for b in range(k):
                weights = counts * rg[:, b] * (r[:, a + 1] - float(a + 1 == b))
                between[a, :, b] = weights @ matrix
        own = (rg * counts[:, None]).T @ rg - np.diag(counts @ (r * (g**2 + h)))
        found = np.block([[found, between.reshape(n, k)], [between.reshape(n, k).T, own]])
    limited = np.ones(len(found), dtype=np.bool_)
    while True:  # what has no finite estimate is at infinity: the others are as sure as if it were known
        inverse = _inverse(found[np.ix_(limited, limited)])
        wide = ~(np.diag(inverse) <= UNLIMITED**2)
        wide &= np.arange(len(found))[limited] < n
        if not wide.any():
            break
        # The widest first: it may be why others are wide.
        sizes = np.where(wide, np.where(np.isfinite(np.diag(inverse)), np.diag(inverse), np.inf), 0.0)
        limited[np.flatnonzero(limited)[int(np.argmax(sizes))]] = False
    covariance = np.zeros((len(found), len(found)))
    covariance[np.ix_(limited, limited)] = inverse
    return covariance[:n, :n]


def _inverse(matrix: Array) -> Array:
    """Return the inverse of an information matrix; infinite variances where there is no information."""
    diagonal = np.diag(matrix)
    empty = diagonal <= 0.0
    scale = np.sqrt(np.where(empty, 1.0, diagonal))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    values = np.maximum(values, 1e-14)
    inverse = (vectors / values) @ vectors.T / np.outer(scale, scale)
    inverse[empty, empty] = np.inf
    return np.asarray(inverse)


def shares_by_point(
    design: Design, matrix: Array, counts: Array, coefficients: Array, covariance: Array
) -> Array:
    """Return mean shares of groups if a column had one value in all rows, with the ends of their intervals.

    Rows keep their other columns. Intervals are from draws of the coefficients.
    """
    rng = np.random.default_rng(0)
    p, k = coefficients.shape
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    noise = (rng.standard_normal((N_DRAWS, len(covariance))) @ root.T).reshape(N_DRAWS, k - 1, p)
    drawn = np.repeat(coefficients[None], N_DRAWS, axis=0)
    drawn[:, :, 1:] += noise.swapaxes(1, 2)
    rows, of_row = np.unique(matrix, axis=0, return_inverse=True)
    weights = np.bincount(of_row.ravel(), counts, len(rows)) / counts.sum()
    few = np.arange(len(rows))
    if len(rows) > MOST_ROWS:
        few = np.sort(rng.choice(len(rows), MOST_ROWS, replace=False, p=weights))
    found = []
    for term in design.terms:
        places = design.columns_of(term.name)
        for point in term.points:
            at = rows.copy()
            at[:, places] = term.at(point)
            share = weights @ np.exp(log_weights(at, coefficients))
            some = at[few], weights[few] / weights[few].sum() if len(few) == len(rows) else 1.0 / len(few)
            shares = np.array(
                [(some[1] * np.exp(log_weights(some[0], each)).T).sum(axis=1) for each in drawn]
            )
            low, high = np.quantile(shares, INTERVAL, axis=0)
            found.append(np.stack([share, np.minimum(low, share), np.maximum(high, share)], axis=1))
    return np.array(found)


def mean_share_errors(matrix: Array, counts: Array, coefficients: Array, covariance: Array) -> Array:
    """Return standard errors of the mean shares of the groups, agents being a sample."""
    n, (p, k) = counts.sum(), coefficients.shape
    priors = np.exp(log_weights(matrix, coefficients))
    mean = counts @ priors / n
    # Derivatives of the mean shares by the coefficients of each component but the first.
    slopes = np.empty((k, k - 1, p))
    for a in range(k):
        for b in range(1, k):
            slopes[a, b - 1] = (counts * priors[:, a] * (float(a == b) - priors[:, b])) @ matrix / n
    slopes = slopes.reshape(k, -1)
    of_rows = np.maximum(counts @ (priors - mean) ** 2 / n**2, 0.0)
    return np.sqrt(np.einsum("ai,ij,aj->a", slopes, covariance, slopes) + of_rows)
