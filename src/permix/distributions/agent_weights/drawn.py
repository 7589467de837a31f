"""Weights that depend on columns of agents, from posterior draws of their coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from permix.data.labels import Array
from permix.distributions.agent_weights.design import Design
from permix.distributions.agent_weights.logit import log_weights
from permix.distributions.agent_weights.model import INTERVAL, chi_squared_tail


@dataclass(frozen=True, eq=False)
class DrawnWeights:
    """Weights π_k(x) ∝ exp(x β_k) in draws of a posterior; coefficients are those beside the first group."""

    design: Design
    drawn: Array  # (draws, columns, K): coefficients, those of the first group 0
    effects: Array  # (points of all columns, K, 3): mean share, and the ends of its interval

    test: ClassVar[str] = "part of the posterior that is farther out than no effect"
    given: ClassVar[str] = "90% of the posterior draws"

    @property
    def n_components(self) -> int:
        """Number of groups."""
        return int(self.drawn.shape[2])

    @cached_property
    def coefficients(self) -> Array:
        """Posterior means, (columns, K)."""
        return np.asarray(self.drawn.mean(axis=0))

    @cached_property
    def errors(self) -> Array:
        """Posterior standard deviations."""
        return np.asarray(self.drawn.std(axis=0, ddof=1))

    @cached_property
    def ends(self) -> Array:
        """5 % and 95 % points, with the means between them, (2, columns, K)."""
        low, high = np.quantile(self.drawn, INTERVAL, axis=0)
        return np.stack([np.minimum(low, self.coefficients), np.maximum(high, self.coefficients)])

    @property
    def p_value(self) -> float:
        """How much of the posterior, taken as normal, is farther from its mean than weights alike for all."""
        return self._beyond(np.arange(1, self.design.n_columns))

    def p_value_of(self, name: str) -> float:
        """Return the same for the coefficients of a column alone."""
        return self._beyond(self.design.columns_of(name))

    def _beyond(self, places: Array) -> float:
        values = self.drawn[:, places, 1:].reshape(len(self.drawn), -1)
        if not values.shape[1]:
            return float("nan")
        mean, covariance = values.mean(axis=0), np.atleast_2d(np.cov(values, rowvar=False))
        statistic = float(mean @ np.linalg.lstsq(covariance, mean, rcond=None)[0])
        return chi_squared_tail(statistic, len(mean))


def drawn_shares_by_point(
    design: Design, matrix: Array, counts: Array, drawn: Array, group_of: Array, n_groups: int
) -> Array:
    """Return mean shares of groups if a column had one value in all rows, with the ends of their intervals.

    ``drawn`` are coefficients of all components, (draws, columns, components), and ``group_of`` (draws,
    components) the group that each speaks for, -1 for none.
    """
    rows, of_row = np.unique(matrix, axis=0, return_inverse=True)
    weights = np.bincount(np.asarray(of_row).ravel(), counts, len(rows)) / counts.sum()
    found = []
    for term in design.terms:
        for point in term.points:
            at = rows.copy()
            at[:, design.columns_of(term.name)] = term.at(point)
            places, which = np.unique(at, axis=0, return_inverse=True)
            of_place = np.bincount(np.asarray(which).ravel(), weights, len(places))
            shares = np.zeros((len(drawn), n_groups))
            for d, coefficients in enumerate(drawn):
                known = group_of[d] >= 0
                of_component = of_place @ np.exp(log_weights(places, coefficients))
                shares[d] = np.bincount(group_of[d][known], of_component[known], n_groups)
            mean, (low, high) = shares.mean(axis=0), np.quantile(shares, INTERVAL, axis=0)
            found.append(np.stack([mean, np.minimum(low, mean), np.maximum(high, mean)], axis=1))
    return np.array(found)
