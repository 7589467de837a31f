"""Predictions under mixed memberships against sums over clusters, written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from permix.posterior.blocks import BlockSums
from permix.posterior.blocks_mixed import MixedPredictive, mixed_draw
from tests.posterior.test_blocks import FAMILIES, cells_of, matrix_of, naive_log_predictive, naive_values

SHAPE, CLUSTERS = (4, 5), (2, 3)
PSEUDO_COUNTS = (0.7, 1.6)


@pytest.fixture(scope="module", params=FAMILIES)
def case(request):
    """A matrix, clusters of its cells in three draws, and the predictive of these."""
    family = FAMILIES[request.param]
    rng = np.random.default_rng(5)
    cells = cells_of(request.param, rng, SHAPE, 0.7)
    matrix = matrix_of(family, cells, SHAPE)
    draws, clusters = [], []
    for _ in range(3):
        own = {place: (int(rng.integers(2)), int(rng.integers(3))) for place in cells}
        row_cells, column_cells = np.zeros((4, 2), int), np.zeros((5, 3), int)
        n, sums = np.zeros(CLUSTERS, int), np.zeros((*CLUSTERS, family.n_slots))
        for code, ((i, j), (g, h)) in zip(matrix.by_row.codes, own.items(), strict=True):
            row_cells[i, g] += 1
            column_cells[j, h] += 1
            n[g, h] += 1
            sums[g, h] += np.eye(family.n_slots)[code] if family.has_levels else [code, code**2]
        draws.append(mixed_draw(row_cells, column_cells, BlockSums(n, sums), *PSEUDO_COUNTS))
        clusters.append(own)
    return family, cells, clusters, MixedPredictive(matrix, draws)


def naive_mixture(cells, clusters, i, j, of_block):
    """Sum over clusters of what a cell's row and column are in, by memberships, averaged over draws."""
    total = 0.0
    for own in clusters:
        for g in range(2):
            for h in range(3):
                rows = [c[0] for place, c in own.items() if place[0] == i]
                columns = [c[1] for place, c in own.items() if place[1] == j]
                weight = (rows.count(g) + PSEUDO_COUNTS[0]) / (len(rows) + 2 * PSEUDO_COUNTS[0])
                weight *= (columns.count(h) + PSEUDO_COUNTS[1]) / (len(columns) + 3 * PSEUDO_COUNTS[1])
                total = total + weight * of_block([x for place, x in cells.items() if own[place] == (g, h)])
    return total / len(clusters)


def test_values(case):
    family, cells, clusters, predictive = case
    table = predictive.values()
    for i, j in ((0, 0), (3, 4), (2, 1)):
        expected = naive_mixture(cells, clusters, i, j, lambda members: naive_values(family, members))
        np.testing.assert_allclose(table[i, j], expected, rtol=1e-10)
    rows, columns = np.array([3, 0, 0]), np.array([4, 0, 0])
    np.testing.assert_allclose(predictive.values(rows, columns), table[rows, columns], rtol=1e-12)
    # The twin: memberships without their prior.
    twin = [d._replace(rows=np.round(d.rows), columns=np.round(d.columns)) for d in predictive.draws]
    assert np.abs(MixedPredictive(predictive.matrix, twin).values() - table).max() > 1e-3


def test_log_probabilities(case):
    family, cells, clusters, predictive = case
    (rows, columns), values = np.array(list(cells)).T, np.array(list(cells.values()))
    ours = predictive.log_probability(rows, columns, family.encode(values))
    for position, ((i, j), x) in enumerate(cells.items()):
        expected = naive_mixture(
            cells, clusters, i, j, lambda members, x=x: math.exp(naive_log_predictive(family, x, members))
        )
        assert ours[position] == pytest.approx(math.log(expected), abs=1e-10)
