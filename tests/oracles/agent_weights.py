"""Two groups whose weights are a logit of columns, by quadrature over its coefficients."""

from __future__ import annotations

import numpy as np

# Standard deviation of each coefficient of each group beforehand; differences have one of WIDTH · √2.
WIDTH = 2.0
NODES = 80


class TwoGroups:
    """P(labels) of agents with these columns, and what labels say of the coefficients.

    ``matrix`` (agents, 2) is a constant and a column. Without ``slope_counts`` it is a broken twin.
    """

    def __init__(self, matrix, slope_counts=True):
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        scaled = nodes * WIDTH * np.sqrt(2.0)
        first, second = np.meshgrid(scaled, scaled, indexing="ij")
        self.slopes = second.ravel() * slope_counts
        self.grid = np.stack([first.ravel(), self.slopes])
        self.prior = np.multiply.outer(weights, weights).ravel() / weights.sum() ** 2
        self.matrix = np.asarray(matrix, dtype=float)

    def in_first(self, matrix):
        """P(an agent with these columns is in the first group), (agents, grid)."""
        return 1.0 / (1.0 + np.exp(-np.asarray(matrix) @ self.grid))

    def joint(self, labels):
        """P(labels, coefficients), the group of the first agent being the first."""
        first = self.in_first(self.matrix[: len(labels)])
        is_first = np.asarray(labels)[:, None] == 0
        return self.prior * np.where(is_first, first, 1.0 - first).prod(axis=0)

    def probability(self, labels):
        """P(partition); either of its groups may have been the first."""
        return 2.0 * float(self.joint(labels).sum()) if max(labels) < 2 else 0.0

    def numbers(self, partitions, places):
        """Posterior means of the share of the first agent's group at places, and of |slope|."""
        found = np.zeros(len(places) + 1)
        for labels, probability in partitions.items():
            given = self.joint(labels)
            given = given / given.sum()
            found += probability * np.append(self.in_first(places) @ given, np.abs(self.slopes) @ given)
        return found
