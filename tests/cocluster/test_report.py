"""Numbers that reports of matrices show, beside plain loops."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import permix
from permix.cocluster.block_pictures import borders
from permix.cocluster.cells.group_values import GroupValues
from permix.reporting import described, written


def fit_of(matrix, **options):
    chains = {"n_draws": 12, "n_burn_in": 20, "random_state": 0, "progress": False}
    model = permix.CoClustering(**{**chains, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", permix.errors.PermixWarning)
        return model.fit(matrix)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    rows, columns = np.repeat([0, 1], 15), np.repeat([0, 1, 0], 4)
    mean = np.array([[1.0, 5.0], [4.0, 2.0]])[rows][:, columns]
    matrix = np.clip(np.rint(mean + rng.normal(0, 0.7, mean.shape)), 1, 5)
    matrix[rng.random(matrix.shape) < 0.2] = np.nan
    return fit_of(matrix)


def test_means_are_those_of_plain_loops(model):
    values = GroupValues(model._fit)
    n, means = values.by_column
    cells = model._fit.known_cells
    dense = np.full(cells.shape, np.nan)
    dense[cells.rows, cells.columns] = cells.values
    labels = model._fit.labels("row")
    for k in range(values.n_groups):
        for j in range(cells.shape[1]):
            own = dense[labels == k, j]
            others = dense[labels != k, j]
            assert n[k, j] == np.isfinite(own).sum()
            assert means[0, k, j] == pytest.approx(np.nanmean(own))
            assert values.elsewhere[0, k, j] == pytest.approx(np.nanmean(others))
    np.testing.assert_allclose(values.overall[0], np.nanmean(dense, axis=0))
    n, means = values.by_column_group
    of_columns = model._fit.labels("column")
    for k in range(values.n_groups):
        for g in range(values.n_column_groups):
            block = dense[np.ix_(labels == k, of_columns == g)]
            assert means[0, k, g] == pytest.approx(np.nanmean(block))
            assert n[k, g] == np.isfinite(block).sum()


def test_the_report_names_the_columns_that_divide(model):
    text = written(described(model, checks=False, progress=False), "md")
    assert "Two groups of rows" in text
    assert "The matrix in the order of its groups" in text


def test_borders_are_lines_between_blocks():
    table = np.array([[0, 0, 1], [2, 2, 1]])
    assert borders(table, [0, 2, 5], [0, 1, 2, 4]) == [(0, 2, 2, 2), (2, 0, 2, 5)]


def test_nested_cuts_are_drawn():
    rng = np.random.default_rng(1)
    model = fit_of(rng.integers(0, 2, (12, 9)), prior="mondrian")
    text = written(described(model, checks=False, progress=False), "html")
    assert ("The nested cuts" in text) == (model._fit.tree is not None)
    assert "nan" not in text.split("<main")[1].split("</main>")[0].lower().replace("finance", "")
