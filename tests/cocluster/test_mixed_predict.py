"""Predictions under mixed memberships against sums over clusters, written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from permix.cocluster import mixed_predict as blocks_mixed
from permix.cocluster.block_predict import level_values
from permix.cocluster.cells.encoded_matrix import BlockSums
from permix.cocluster.mixed_predict import MixedDraw, MixedPredictive
from tests.cocluster.test_block_predict import (
    FAMILIES,
    cells_of,
    matrix_of,
    naive_log_predictive,
    naive_values,
)
from tests.every_run import first_in_every_run

SHAPE, CLUSTERS = (4, 5), (2, 3)
PSEUDO_COUNTS = (0.7, 1.6)
WANTED = 4


@pytest.fixture(
    scope="module", params=first_in_every_run(dict.fromkeys(["categorical", "gaussian", *FAMILIES]), 2)
)
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
    """Evidence of a new row's cells, and the values of its cell ``wanted``, by all clusters of its cells.

    Both are averaged over draws, the values given each of them.
    """
    a, b = PSEUDO_COUNTS
    evidence, values = 0.0, 0.0
    for own in clusters:
        here, total = 0.0, 0.0
        for new in itertools.product(itertools.product(range(2), range(3)), repeat=len(given)):
            grown, seated, weight = dict(cells), dict(own), 1.0
            for (column, x), (g, h) in zip(given, new, strict=True):
                weight *= shares(seated, SHAPE[0], 0, 2, a)[g] * shares(seated, column, 1, 3, b)[h]
                members = [y for place, y in grown.items() if seated[place] == (g, h)]
                weight *= math.exp(naive_log_predictive(family, x, members))
                grown[SHAPE[0], column], seated[SHAPE[0], column] = x, (g, h)
            here += weight
            for g, of_row in enumerate(shares(seated, SHAPE[0], 0, 2, a)):
                for h, of_column in enumerate(shares(seated, wanted, 1, 3, b)):
                    members = [y for place, y in grown.items() if seated[place] == (g, h)]
                    total = total + weight * of_row * of_column * naive_values(family, members)
        evidence += here / len(clusters)
        values = values + total / here / len(clusters)
    return evidence, values


def shares(seated, line, axis, n_clusters, pseudo_count):
    """Mean shares of clusters in a line: axis 0 a row, axis 1 a column."""
    own = [c[axis] for place, c in seated.items() if place[axis] == line]
    total = len(own) + n_clusters * pseudo_count
    return [(own.count(k) + pseudo_count) / total for k in range(n_clusters)]


@pytest.fixture(scope="module")
def folded(case):
    """A new row of three cells, folded in 2500 times; evidence and values by enumeration."""
    family, cells, clusters, predictive = case
    given = new_cells(case)
    expected = enumerated_row(family, cells, clusters, given, WANTED)
    new = matrix_of(family, {(0, column): x for column, x in given}, (1, SHAPE[1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_mixed, "N_TRIES", 2500)
        single = [values_of(family, tried.draw) for tried in predictive._folded(new, 0)]
        rng = blocks_mixed.weighing_stream()
        weights = np.exp([tried.weight(rng) for tried in predictive._folded(new, 0)])
        found = predictive.row_answers(new).log_evidence[0], predictive.new_row_values(new)[0, WANTED]
    return family, new, expected, found, np.array(single), weights


def new_cells(case):
    """Columns and values of the new row."""
    return [(column, max(case[1].values())) for column in (0, 2, 3)]


def values_of(family, draw):
    """Values of the wanted cell of a folded row."""
    return np.einsum("g,ghv,h->v", draw.rows[0], level_values(family, *draw.blocks), draw.columns[WANTED])


def test_probability_of_a_new_row(case, folded, monkeypatch):
    family, new, (evidence, _), (found, _), _, weights = folded
    constant = math.exp(family.log_constant(new.by_row.codes))
    bound = 5 * weights.std() / math.sqrt(len(weights)) * constant
    assert abs(math.exp(found) - evidence) < bound < 0.1 * evidence
    # The twin: a row whose cells know nothing of each other.
    monkeypatch.setattr(blocks_mixed, "N_TRIES", 1200)
    alone = [matrix_of(family, {(0, column): x}, (1, SHAPE[1])) for column, x in new_cells(case)]
    apart = sum(case[3].row_answers(one).log_evidence[0] for one in alone)
    assert abs(math.exp(apart) - evidence) > 2 * bound


def test_values_of_a_new_row(case, folded):
    family, _, (_, values), (_, found), single, _ = folded
    error = single.std(axis=0) / math.sqrt(len(single))
    np.testing.assert_allclose(found, single.mean(axis=0), rtol=1e-10)
    assert np.all(np.abs(found - values) < 5 * error)
    # The twin: a row whose cells are not counted.
    twin = [d._replace(row_cells=np.zeros((1, 2), int)) for d in case[3].draws]
    assert np.any(np.abs(np.mean([values_of(family, d) for d in twin], axis=0) - values) > 10 * error)


def test_sweeps_matter(case, folded, monkeypatch):
    """Clusters drawn in turn, without sweeps, do not have the distribution of clusters given all cells."""
    family, new, (_, values), _, single, _ = folded
    monkeypatch.setattr(blocks_mixed, "N_TRIES", 2500)
    monkeypatch.setattr(blocks_mixed, "N_SWEEPS", 0)
    without = np.array([values_of(family, tried.draw) for tried in case[3]._folded(new, 0)])
    error = single.std(axis=0) / math.sqrt(len(single))
    assert np.any(np.abs(without.mean(axis=0) - values) > 5 * error)


def test_shares_of_given_clusters(case):
    _, cells, _, predictive = case
    labels = np.array([0, 1, 0, 1])
    new = matrix_of(case[0], {(0, 1): next(iter(cells.values()))}, (2, SHAPE[1]))
    shares_found = predictive.row_answers(new, labels, weigh=False).shares
    expected = np.zeros((2, 2))
    for row in range(2):
        tries = list(predictive._folded(new, row))
        for tried in tries:
            for g in range(2):
                inside = tried.fitted.row_cells[:, g]
                for c in range(2):
                    expected[row, c] += (
                        tried.draw.rows[0, g] * inside[labels == c].sum() / inside.sum() / len(tries)
                    )
    np.testing.assert_allclose(shares_found, expected, atol=1e-7)
    np.testing.assert_allclose(shares_found.sum(axis=1), 1.0)


def test_rows_are_folded_once_for_all_answers(case, monkeypatch):
    """Shares and probabilities asked for together are those asked for one by one."""
    family, cells, _, predictive = case
    values = list(cells.values())
    new = matrix_of(family, {(0, 0): values[0], (0, 3): values[1], (1, 2): values[2]}, (2, SHAPE[1]))
    labels = np.array([0, 1, 0, 1])
    shares = predictive.row_answers(new, labels, weigh=False).shares
    evidence = predictive.row_answers(new).log_evidence
    folds = []
    real = blocks_mixed.fold_row
    monkeypatch.setattr(blocks_mixed, "fold_row", lambda *given: folds.append(real(*given)))
    found = predictive.row_answers(new, labels)
    assert len(folds) == 2 * predictive._n_tries * len(predictive.draws)
    np.testing.assert_array_equal(found.shares, shares)
    np.testing.assert_array_equal(found.log_evidence, evidence)


def test_error_of_the_probability_of_a_row(case):
    """That of the mean of the weights, relative to it."""
    family, cells, _, predictive = case
    values = list(cells.values())
    new = matrix_of(family, {(0, column): value for column, value in enumerate(values[:4])}, (1, SHAPE[1]))
    rng = blocks_mixed.weighing_stream()
    weights = np.exp([tried.weight(rng) for tried in predictive._folded(new, 0)])
    error = weights.std() / math.sqrt(len(weights)) / weights.mean()
    assert error > 0.0
    assert predictive.row_answers(new).errors[0] == pytest.approx(error, rel=1e-6)


def test_a_new_row_has_one_answer_whatever_comes_with_it(case):
    family, cells, _, predictive = case
    values = list(cells.values())
    both = {(0, 0): values[0], (0, 3): values[1], (1, 2): values[2]}
    new = matrix_of(family, both, (3, SHAPE[1]))  # the last row holds nothing
    table = predictive.new_row_values(new)
    alone = predictive.new_row_values(matrix_of(family, {(0, 2): values[2]}, (1, SHAPE[1])))
    np.testing.assert_array_equal(table[1], alone[0])
    rows, columns = np.array([2, 0, 2]), np.array([1, 0, 4])
    np.testing.assert_allclose(
        predictive.new_row_values(new, rows, columns), table[rows, columns], rtol=1e-12
    )
    assert predictive.row_answers(new).log_evidence[2] == pytest.approx(0.0, abs=1e-12)
