"""Predictions under mixed memberships against sums over clusters, written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from permix.posterior import blocks_mixed
from permix.posterior.blocks import BlockSums, level_values
from permix.posterior.blocks_mixed import MixedDraw, MixedPredictive
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
        draws.append(MixedDraw(row_cells, column_cells, BlockSums(n, sums), PSEUDO_COUNTS))
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
    twin = [d._replace(pseudo_counts=(1e-9, 1e-9)) for d in predictive.draws]
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


# -- new rows -------------------------------------------------------------------------------------


def enumerated_row(family, cells, clusters, given, wanted):
    """Evidence of a new row's cells and the values of its cell ``wanted``, by all clusters of its cells."""
    a, b = PSEUDO_COUNTS
    evidence, values = 0.0, 0.0
    for own in clusters:
        for new in itertools.product(itertools.product(range(2), range(3)), repeat=len(given)):
            grown, seated, weight = dict(cells), dict(own), 1.0 / len(clusters)
            for (column, x), (g, h) in zip(given, new, strict=True):
                weight *= shares(seated, SHAPE[0], 0, 2, a)[g] * shares(seated, column, 1, 3, b)[h]
                members = [y for place, y in grown.items() if seated[place] == (g, h)]
                weight *= math.exp(naive_log_predictive(family, x, members))
                grown[SHAPE[0], column], seated[SHAPE[0], column] = x, (g, h)
            evidence += weight
            for g, of_row in enumerate(shares(seated, SHAPE[0], 0, 2, a)):
                for h, of_column in enumerate(shares(seated, wanted, 1, 3, b)):
                    members = [y for place, y in grown.items() if seated[place] == (g, h)]
                    values = values + weight * of_row * of_column * naive_values(family, members)
    return evidence, values / evidence


def shares(seated, line, axis, n_clusters, pseudo_count):
    """Mean shares of clusters in a line: axis 0 a row, axis 1 a column."""
    own = [c[axis] for place, c in seated.items() if place[axis] == line]
    total = len(own) + n_clusters * pseudo_count
    return [(own.count(k) + pseudo_count) / total for k in range(n_clusters)]


def new_matrix(family, given):
    return matrix_of(family, {(0, column): x for column, x in given}, (1, SHAPE[1]))


def test_new_rows(case, monkeypatch):
    family, cells, clusters, predictive = case
    n_tries = 30_000
    monkeypatch.setattr(blocks_mixed, "N_TRIES", n_tries)
    given = list(zip((0, 2, 3), list(cells.values())[:3], strict=True))
    wanted = 4
    evidence, values = enumerated_row(family, cells, clusters, given, wanted)
    new = new_matrix(family, given)
    found = [(w, draw) for w, draw in predictive._folded(new, 0)]
    weights = np.exp([w for w, _ in found])
    # Evidence: a mean of weights, hence known to five of its standard deviations.
    ours = math.exp(predictive.row_log_evidence(new)[0] - family.log_constant(new.by_row.codes))
    bound = 5 * weights.std() / math.sqrt(n_tries)
    expected = evidence / math.exp(family.log_constant(new.by_row.codes))
    assert abs(ours - expected) < bound < 0.05 * expected
    # Values: a ratio of means; the spread of weight × (value - its mean) bounds its error.
    ours = predictive.new_row_values(new, np.array([0]), np.array([wanted]))[0]
    single = np.array([_values_of(family, draw, wanted) for _, draw in found])
    spread = (weights[:, None] * (single - values)).std(axis=0) / weights.mean() / math.sqrt(n_tries)
    assert np.all(np.abs(ours - values) < 5 * spread + 1e-12)
    # The twin: all tries count alike and own cells are not counted.
    twin = np.array([_values_of(family, draw, wanted, own=False) for draw in predictive.draws]).mean(axis=0)
    assert np.any(np.abs(twin - values) > 10 * spread)


def _values_of(family, draw, column, own=True):
    """Values of one cell of a folded row; without its ``own`` cells, of one that has none."""
    row = draw.rows[0] if own else np.full(2, 0.5)
    by_block = level_values(family, *draw.blocks)
    return np.einsum("g,ghv,h->v", row, by_block, draw.columns[column])


def test_a_new_row_has_one_answer_whatever_comes_with_it(case):
    family, cells, _, predictive = case
    values = list(cells.values())
    both = {(0, 0): values[0], (0, 3): values[1], (1, 2): values[2]}
    new = matrix_of(family, both, (3, SHAPE[1]))  # the last row holds nothing
    table = predictive.new_row_values(new)
    alone = predictive.new_row_values(matrix_of(family, {(0, 2): values[2]}, (1, SHAPE[1])))
    np.testing.assert_array_equal(table[1], alone[0])
    rows, columns = np.array([2, 0, 2]), np.array([1, 0, 4])
    np.testing.assert_array_equal(predictive.new_row_values(new, rows, columns), table[rows, columns])
    assert predictive.row_log_evidence(new)[2] == pytest.approx(0.0, abs=1e-12)
