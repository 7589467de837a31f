"""Shares and decays that move together, against the density written out and its differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from permix.dp_mallows.lists.drift_jit import beginnings, given_of, slope
from permix.dp_mallows.lists.top_lists_jit import skip_at
from permix.partitions import DirichletProcess
from tests.dp_mallows.list_cases import FIVE, model_of

LISTS = (*FIVE, (0, 2), (0, 1, 3), (3,))
DECAYS = (1.5, (0.5, 1.0, 1.5))
CENTERS = np.array([[0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 0, 1]], dtype=np.int16)
TIMES = np.array([2.0, 0.0, 1.0, 3.0, 1.0, 0.0, 2.0, 1.0])
DISCOUNT = 0.3


def model():
    return model_of(LISTS, 4, DirichletProcess(1.0), *DECAYS)


def pinned_agents():
    pinned = np.zeros((3, len(TIMES)))
    pinned[0, 1] = pinned[1, 3] = pinned[1, 5] = pinned[2, 5] = 1.0
    return pinned


def log_density(lists, weights, theta):
    """Σ of logarithms as the module says, up to a constant."""
    total = 0.0
    for k, weight in enumerate(weights):
        total += -(1.0 + DISCOUNT) * math.log(weight) - weight
        for j, decay in enumerate(theta[k]):
            psi = sum(math.exp(-i * decay) for i in range(4 - j))
            total -= DECAYS[0] * (DECAYS[1][j] * decay + math.log(psi))
    for d in range(len(TIMES)):
        chances = []
        for k, center in enumerate(CENTERS):
            chance, start = 1.0, lists.starts[d]
            for j in range(lists.starts[d + 1] - start):
                skip = skip_at(lists.items, start, j, center)
                powers = [math.exp(-i * theta[k][j]) for i in range(4 - j)]
                chance *= powers[skip] / sum(powers)
            chances.append(weights[k] * chance)
        total += TIMES[d] * math.log(sum(chances))
        total += sum(math.log(chances[k]) for k in range(3) for _ in range(int(pinned_agents()[k, d])))
    return total


class Case:
    """A point, the density there in the coordinates of trajectories, and its gradient."""

    def __init__(self):
        self.model = model()
        lists, tables = self.model.lists, self.model.tables
        self.tree = beginnings(lists)
        self.given = given_of(lists, self.tree, tables, DISCOUNT, CENTERS, TIMES, pinned_agents())

    def parameters(self, point):
        log_theta = self.given.middle + point[:, 1:] / (point[:, :1] * self.given.scales)
        return 0.25 * point[:, 0] ** 2, np.exp(log_theta)

    def expected(self, point):
        weights, theta = self.parameters(point)
        # dx = ρ/2 dρ and dθ = θ/(ρ c) dη.
        jacobian = np.log(point[:, 0]).sum() * (1 - theta.shape[1]) + np.log(theta).sum()
        return log_density(self.model.lists, weights, theta) + jacobian

    def slope(self, point):
        gradient = np.empty_like(point)
        chances = np.empty((3, len(self.tree.parent)))
        return slope(self.model.tables, self.tree, self.given, point, chances, gradient), gradient


def points(n=5):
    rng = np.random.default_rng(3)
    return [np.column_stack([rng.uniform(1.0, 4.0, 3), rng.normal(0.0, 0.7, (3, 3))]) for _ in range(n)]


def test_beginnings_of_lists():
    lists = model().lists
    tree = beginnings(lists)

    def items_of(node):
        if node == 0:
            return []
        return [*items_of(tree.parent[node]), lists.items[tree.starts[node] + tree.stage[node]]]

    found = [tuple(items_of(node)) for node in range(len(tree.parent))]
    rows = [tuple(lists.items[a:b]) for a, b in zip(lists.starts[:-1], lists.starts[1:], strict=True)]
    assert len(set(found)) == len(found)
    assert set(found) == {row[:t] for row in rows for t in range(len(row) + 1)}
    assert [found[node] for node in tree.whole] == rows
    assert all(tree.parent[node] < node for node in range(1, len(found)))


def test_density():
    case = Case()
    found = np.array([case.slope(point)[0] for point in points()])
    expected = np.array([case.expected(point) for point in points()])
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-9)


def test_gradient():
    case = Case()
    for point in points(2):
        gradient = case.slope(point)[1]
        for at in np.ndindex(point.shape):
            moved = [point.copy(), point.copy()]
            for side, sign in enumerate((1, -1)):
                moved[side][at] += sign * 1e-5
            difference = (case.expected(moved[0]) - case.expected(moved[1])) / 2e-5
            assert gradient[at] == pytest.approx(difference, abs=1e-5)


def test_nothing_beyond_the_bounds():
    case = Case()
    point = points(1)[0]
    point[1, 0] = -0.1
    assert case.slope(point)[0] == -np.inf
