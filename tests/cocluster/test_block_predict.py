"""Blocks of a matrix against naive code: sums, predictions of cells, and new rows by enumeration."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from permix.cocluster.block_predict import BlockPredictive, block_sums, grid_draw, mondrian_draw
from permix.cocluster.cells.encoded_matrix import encode_matrix
from permix.cocluster.cells.families import BernoulliCells, CategoricalCells, GaussianCells, PoissonCells
from permix.partitions import DirichletProcess, FiniteDirichlet

SHAPE = (5, 6)
FAMILIES = {
    "categorical": CategoricalCells(pseudo_count=0.7, levels=(1, 2, 5)),
    "bernoulli": BernoulliCells(pseudo_count=0.4),
    "poisson": PoissonCells(pseudo_count=0.8, prior_mean=2.5),
    "gaussian": GaussianCells(pseudo_count=1.3, prior_mean=1.0, prior_scale=2.0),
}


def cells_of(name, rng, shape, share):
    """Filled cells as (row, column) -> value, in order."""
    draw = {
        "categorical": lambda: float(rng.choice([1, 2, 5])),
        "bernoulli": lambda: float(rng.integers(2)),
        "poisson": lambda: float(rng.poisson(2.5)),
        "gaussian": lambda: float(rng.normal(1, 2)),
    }[name]
    return {(i, j): draw() for i in range(shape[0]) for j in range(shape[1]) if rng.random() < share}


def matrix_of(family, cells, shape):
    rows, columns = np.array(list(cells), dtype=np.int32).reshape(-1, 2).T
    return encode_matrix(family, rows, columns, np.array(list(cells.values())), shape)


def naive_log_predictive(family, value, members):
    """Return ln p(value | other cells of the block) by textbook formulas of SciPy."""
    n, a = len(members), family.pseudo_count
    if family.has_levels:
        return math.log((members.count(value) + a) / (n + a * len(family.levels)))
    if family.name == "poisson":
        shape, rate = a * family.prior_mean + sum(members), a + n
        return float(stats.nbinom.logpmf(value, shape, rate / (rate + 1)))
    # Murphy (2007), "Conjugate Bayesian analysis of the Gaussian distribution", equations 141-146.
    mean = (a * family.prior_mean + sum(members)) / (a + n)
    shape = (a + n) / 2
    scatter = sum((x - np.mean(members)) ** 2 for x in members) if n else 0.0
    drift = a * n / (a + n) * (np.mean(members) - family.prior_mean) ** 2 if n else 0.0
    rate = a / 2 * family.prior_scale**2 + (scatter + drift) / 2
    scale = math.sqrt(rate * (a + n + 1) / (shape * (a + n)))
    return float(stats.t.logpdf(value, 2 * shape, mean, scale))


def naive_log_marginal(family, values):
    """One cell after another."""
    return sum(naive_log_predictive(family, x, values[:i]) for i, x in enumerate(values))


def members(cells, draw, block):
    return [x for (i, j), x in cells.items() if draw.block_of(i, j) == block]


def row_blocks(draw):
    """Blocks by column class of every row class, a new one with blocks of its own last."""
    new = [[-1 - h for h in range(draw.table.shape[1])]] if draw.new_row_log_weight > -np.inf else []
    return draw.table.tolist() + new


def naive_row_terms(family, cells, draw, row_cells):
    """Return ln(prior weight × p(cells of a new row)) for every class, a new one last."""
    log_weights = [*draw.row_log_weights]
    if draw.new_row_log_weight > -np.inf:
        log_weights.append(draw.new_row_log_weight)
    log_weights = np.array(log_weights) - np.logaddexp.reduce(log_weights)
    terms = []
    for blocks, weight in zip(row_blocks(draw), log_weights, strict=True):
        total = weight
        for block in set(blocks):
            old = members(cells, draw, block)
            more = [x for j, x in row_cells.items() if blocks[draw.column_classes[j]] == block]
            total += naive_log_marginal(family, old + more) - naive_log_marginal(family, old)
        terms.append(total)
    return np.array(terms)


@pytest.fixture(scope="module")
def draws():
    rng = np.random.default_rng(3)
    dp, finite = DirichletProcess(0.8), FiniteDirichlet(3, 0.5)
    # Blocks that cover several classes of rows or columns, as a Mondrian has; one interval holds no row.
    table = np.array([[0, 1, 1], [0, 2, 3], [4, 4, 4], [5, 5, 6]])
    return [
        grid_draw(np.array([0, 0, 1, 2, 1]), np.array([0, 1, 0, 1, 1, 0]), dp),
        mondrian_draw(
            np.array([0, 1, 1, 3, 0]), np.array([2, 0, 1, 1, 0, 2]), table, rng.dirichlet(np.ones(4))
        ),
        grid_draw(np.zeros(5, int), np.array([0, 1, 2, 0, 0, 1]), finite),
        grid_draw(np.array([0, 1, 2, 2, 1]), np.zeros(6, int), finite),  # no fourth cluster
    ]


@pytest.fixture(scope="module", params=FAMILIES)
def case(request, draws):
    family = FAMILIES[request.param]
    rng = np.random.default_rng(17)
    cells = cells_of(request.param, rng, SHAPE, 0.6)
    new = cells_of(request.param, rng, (3, SHAPE[1]), 0.5)
    new = {place: value for place, value in new.items() if place[0] != 1}  # a row without cells
    return family, cells, new, BlockPredictive(matrix_of(family, cells, SHAPE), draws)


def test_sums_of_blocks(case, draws):
    family, cells, _, predictive = case
    for draw in draws:
        n, sums = block_sums(predictive.matrix, draw)
        for block in range(draw.n_blocks):
            own = members(cells, draw, block)
            assert n[block] == len(own)
            codes = family.encode(np.array(own, dtype=float))
            expected = (
                np.bincount(codes, minlength=family.n_slots)
                if family.has_levels
                else [codes.sum(), (codes**2).sum()]
            )
            np.testing.assert_allclose(sums[block], expected, atol=1e-12)


def test_cells_of_fitted_rows(case, draws):
    """Probabilities are averaged, not their logarithms."""
    family, cells, _, predictive = case
    rows, columns = (np.array(x) for x in zip(*itertools.product(range(5), range(6)), strict=True))
    values = np.array(list(cells.values()))[np.arange(30) % len(cells)]
    ours = predictive.log_probability(rows, columns, family.encode(values))
    by_draw = np.array(
        [
            [
                naive_log_predictive(family, x, members(cells, draw, draw.block_of(i, j)))
                for i, j, x in zip(rows, columns, values, strict=True)
            ]
            for draw in draws
        ]
    )
    np.testing.assert_allclose(ours, np.log(np.exp(by_draw).mean(axis=0)), atol=1e-10)
    assert np.abs(ours - by_draw.mean(axis=0)).max() > 1e-3  # the twin


def naive_values(family, members):
    """Return the distribution of one more cell of a block: probability of each level, or the mean."""
    if family.has_levels:
        return np.exp([naive_log_predictive(family, level, members) for level in family.levels])
    a = family.pseudo_count
    return np.array([(a * family.prior_mean + sum(members)) / (a + len(members))])


def test_values_of_fitted_rows(case, draws):
    family, cells, _, predictive = case
    table = predictive.values()
    assert table.shape[:2] == SHAPE
    rows, columns = np.array([0, 4, 2, 2]), np.array([5, 0, 3, 3])
    np.testing.assert_allclose(predictive.values(rows, columns), table[rows, columns], rtol=1e-12)
    for i, j in ((0, 0), (4, 5)):
        blocks = [members(cells, draw, draw.block_of(i, j)) for draw in draws]
        expected = np.mean([naive_values(family, block) for block in blocks], axis=0)
        np.testing.assert_allclose(table[i, j], expected, rtol=1e-10)


def test_evidence_of_new_rows(case, draws):
    family, cells, new, predictive = case
    encoded = matrix_of(family, new, (3, SHAPE[1]))
    ours = predictive.row_log_evidence(encoded)
    for row in range(3):
        own = {j: x for (i, j), x in new.items() if i == row}
        terms = [np.logaddexp.reduce(naive_row_terms(family, cells, draw, own)) for draw in draws]
        assert ours[row] == pytest.approx(np.logaddexp.reduce(terms) - math.log(len(draws)), abs=1e-9)
    assert ours[1] == pytest.approx(0.0, abs=1e-12)  # nothing said, nothing known
    without_new = [draw._replace(new_row_log_weight=-np.inf) for draw in draws]
    twin = BlockPredictive(predictive.matrix, without_new).row_log_evidence(encoded)
    assert np.abs(twin - ours)[[0, 2]].max() > 1e-3


def naive_new_row_values(family, cells, draws, own, column):
    """Return the distribution of a cell of a new row by enumerating draws and classes."""
    terms = [naive_row_terms(family, cells, draw, own) for draw in draws]
    shares = [np.exp(part - np.logaddexp.reduce(np.concatenate(terms))) for part in terms]
    total = 0.0
    for draw, share in zip(draws, shares, strict=True):
        for blocks, weight in zip(row_blocks(draw), share, strict=True):
            block = blocks[draw.column_classes[column]]
            mine = [x for j, x in own.items() if blocks[draw.column_classes[j]] == block]
            total = total + weight * naive_values(family, members(cells, draw, block) + mine)
    return total


@pytest.mark.parametrize("column", [0, 3])
def test_values_of_new_rows(case, draws, column):
    """Prediction is a ratio of sums over draws and classes, the row's own cells among those of its blocks."""
    family, cells, new, predictive = case
    encoded = matrix_of(family, new, (3, SHAPE[1]))
    table = predictive.new_row_values(encoded)
    assert table.shape[:2] == (3, SHAPE[1])
    for row in range(3):
        own = {j: x for (i, j), x in new.items() if i == row}
        expected = naive_new_row_values(family, cells, draws, own, column)
        np.testing.assert_allclose(table[row, column], expected, rtol=1e-9)
        if family.has_levels and column not in own:  # and as a ratio of two evidences
            more = [
                [np.logaddexp.reduce(naive_row_terms(family, cells, d, own | extra)) for d in draws]
                for extra in ({}, {column: family.levels[0]})
            ]
            ratio = np.logaddexp.reduce(more[1]) - np.logaddexp.reduce(more[0])
            assert table[row, column, 0] == pytest.approx(math.exp(ratio), rel=1e-9)
    rows, columns = np.array([2, 0, 0]), np.array([1, 3, 3])
    np.testing.assert_allclose(
        predictive.new_row_values(encoded, rows, columns), table[rows, columns], rtol=1e-12
    )
    # Twins: every draw counted alike, and a row that may not have a class of its own.
    alike = np.mean([BlockPredictive(predictive.matrix, [d]).new_row_values(encoded) for d in draws], axis=0)
    assert np.abs(alike - table)[[0, 2]].max() > 1e-3
    old_classes = [draw._replace(new_row_log_weight=-np.inf) for draw in draws]
    assert (
        np.abs(BlockPredictive(predictive.matrix, old_classes).new_row_values(encoded) - table).max() > 1e-3
    )


def test_new_rows_do_not_see_each_other(case):
    family, _, new, predictive = case
    together = predictive.new_row_values(matrix_of(family, new, (3, SHAPE[1])))
    for row in range(3):
        alone = {(0, j): x for (i, j), x in new.items() if i == row}
        np.testing.assert_allclose(
            predictive.new_row_values(matrix_of(family, alone, (1, SHAPE[1])))[0], together[row], rtol=1e-12
        )


def test_row_joint_has_a_column_for_a_new_class(case, draws):
    family, cells, new, predictive = case
    encoded = matrix_of(family, new, (3, SHAPE[1]))
    for draw in draws:
        joint = BlockPredictive(predictive.matrix, [draw]).row_log_joint(encoded)
        for row in range(3):
            own = {j: x for (i, j), x in new.items() if i == row}
            expected = naive_row_terms(family, cells, draw, own)
            # Joints may lack a constant of the row.
            np.testing.assert_allclose(joint[row] - joint[row, 0], expected - expected[0], atol=1e-9)


def test_shares_too_small_to_count_change_nothing(draws):
    """With many cells most classes have no share at all; nothing may be lost or become undefined."""
    family = dataclasses.replace(FAMILIES["gaussian"], pseudo_count=0.5)
    rng = np.random.default_rng(0)
    rows, columns = (x.ravel().astype(np.int32) for x in np.indices((40, 30)))
    labels = np.arange(40) % 4
    values = 50.0 * labels[rows] + rng.normal(size=1200)
    matrix = encode_matrix(family, rows, columns, values, (40, 30))
    draw = grid_draw(labels, np.zeros(30, int), DirichletProcess(1.0))
    new = encode_matrix(family, rows[:60], columns[:60], values[:60], (2, 30))
    found = BlockPredictive(matrix, [draw]).new_row_values(new)[..., 0]
    np.testing.assert_allclose(found[:, 0], [values[labels[rows] == k].mean() for k in (0, 1)], atol=0.5)
