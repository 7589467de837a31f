"""Planted co-clusterings are found, whatever the matrix comes in."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.special import gammaln

import permix
from permix.data.cells import Cells
from permix.errors import ConvergenceWarning, DataError, PermixWarning
from tests.cocluster.cases import planted_grid, planted_mondrian, quick, quiet_fit
from tests.every_run import first_in_every_run


@pytest.fixture(autouse=True)
def _short_chains_may_disagree():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.fixture(scope="module")
def grid():
    return planted_grid(np.random.default_rng(1))


@pytest.fixture(scope="module")
def fitted(grid):
    return quiet_fit(quick(concentration=permix.Gamma(1.0, 1.0)), grid[0])


@pytest.fixture(scope="module")
def mondrian():
    return planted_mondrian(np.random.default_rng(2))


@pytest.fixture(scope="module")
def nested(mondrian):
    return quiet_fit(quick("mondrian", n_draws=80, n_burn_in=150), mondrian[0])


def test_a_grid_is_found(fitted, grid):
    _, rows, columns = grid
    assert permix.adjusted_rand(fitted.row_labels_, rows) == 1.0
    assert permix.adjusted_rand(fitted.column_labels_, columns) == 1.0
    assert (fitted.n_row_clusters_, fitted.n_column_clusters_) == (3, 2)
    assert np.bincount(fitted.row_labels_).tolist() == sorted(np.bincount(rows), reverse=True)
    np.testing.assert_array_equal(fitted.block_labels_, np.arange(6).reshape(3, 2))
    assert fitted.tree_ is None


@pytest.mark.parametrize("family", first_in_every_run(["gaussian", "poisson", "bernoulli"]))
def test_families(family):
    X, rows, columns = planted_grid(np.random.default_rng(3), family)
    model = quick(family=family).fit(X)
    assert permix.adjusted_rand(model.row_labels_, rows) == 1.0
    assert permix.adjusted_rand(model.column_labels_, columns) == 1.0


def test_given_numbers_of_clusters(grid):
    X, rows, columns = grid
    model = quick("dirichlet", n_row_clusters=5, n_column_clusters=2, concentration=0.5).fit(X)
    assert permix.adjusted_rand(model.row_labels_, rows) == 1.0
    assert permix.adjusted_rand(model.column_labels_, columns) == 1.0
    assert model.posterior_["posterior"]["n_row_groups"].max() <= 5
    with pytest.warns(PermixWarning, match="n_column_clusters=30 is more than the 24 columns"):
        quick("dirichlet", n_row_clusters=2, n_column_clusters=30, n_draws=2, n_burn_in=0).fit(X)


def test_nested_cuts_are_found(nested, mondrian):
    _, rows, columns = mondrian
    assert permix.adjusted_rand(nested.row_labels_, rows) > 0.9
    truth = np.array([[0, 1, 2], [3, 3, 3]])[rows][:, columns]
    found = nested.block_labels_[nested.row_labels_][:, nested.column_labels_]
    assert permix.adjusted_rand(truth.ravel(), found.ravel()) > 0.9
    # A grid would need six blocks.
    held = len(np.unique(nested.block_labels_))
    assert held <= 5
    assert nested.tree_.n_blocks >= held
    assert len(nested.block_parameters_["probabilities"]) == held
    np.testing.assert_array_equal(np.unique(nested.block_labels_), np.arange(held))
    # The blocks are those of the tree, under other numbers.
    chain, draw = divmod(nested._fit.best_draw, nested.n_draws)
    best = nested.posterior_["posterior"].isel(chain=chain, draw=draw)
    rows, columns = best["row_labels"].to_numpy(), best["column_labels"].to_numpy()
    leaves = nested.tree_.table()[rows][:, columns]
    assert len(set(zip(leaves.ravel(), found.ravel(), strict=True))) == held == len(np.unique(leaves))


def test_parameters_follow_the_numbers_of_blocks(nested, mondrian):
    X, _, _ = mondrian
    of_cell = nested.block_labels_[nested.row_labels_][:, nested.column_labels_]
    for block, probabilities in enumerate(nested.block_parameters_["probabilities"]):
        values = X[(of_cell == block) & ~np.isnan(X)]
        counts = np.array([(values == level).sum() for level in nested.family_.levels])
        beta = nested.family_.pseudo_count
        np.testing.assert_allclose(probabilities, (counts + beta) / (len(values) + beta * len(counts)))


def test_similarity_under_nested_cuts(nested):
    """Two rows are together in a draw where every column has both in the same block; by hand."""
    arrays, total = nested._fit.draws.arrays, [0.0, 0.0]
    over = arrays["row_labels"].shape[:2]
    for at in np.ndindex(*over):
        given = (arrays[f"tree_{name}"][at] for name in ("axis", "cut", "time"))
        tree = permix.partitions.mondrian.MondrianTree.from_preorder(*given, nested.budget)
        blocks = tree.table()[arrays["row_labels"][at]][:, arrays["column_labels"][at]]
        for side, lines in enumerate((blocks, blocks.T)):
            total[side] = total[side] + (lines[:, None] == lines[None]).all(axis=-1)
    np.testing.assert_allclose(nested.row_similarity(), total[0] / np.prod(over), atol=1e-6)
    np.testing.assert_allclose(nested.column_similarity(), total[1] / np.prod(over), atol=1e-6)


def test_clusters_of_nested_cuts_differ(nested):
    """No two clusters have the same blocks throughout, and there is no cluster without members."""
    table = nested.block_labels_
    assert len(np.unique(table, axis=0)) == len(table) == nested.n_row_clusters_
    assert len(np.unique(table, axis=1).T) == table.shape[1] == nested.n_column_clusters_
    assert set(nested.row_labels_) == set(range(nested.n_row_clusters_))
    assert set(nested.column_labels_) == set(range(nested.n_column_clusters_))
    assert nested.predict_proba(np.full((1, 30), np.nan)).shape == (1, nested.n_row_clusters_)


def test_draws_and_their_summary(fitted, nested, grid):
    posterior = fitted.posterior_["posterior"]
    assert posterior["row_labels"].dims == ("chain", "draw", "row")
    assert posterior["column_labels"].shape == (2, 60, 24)
    assert {"row_concentration", "column_concentration", "log_joint", "n_blocks"} <= set(posterior.data_vars)
    assert {"r_hat", "ess_bulk"} <= set(fitted.diagnostics().columns)
    assert nested.posterior_["posterior"]["tree_axis"].dims == ("chain", "draw", "node")
    assert fitted.log_likelihood_ == pytest.approx(float(posterior["log_likelihood"].mean()))
    similarity = fitted.row_similarity()
    together = fitted.row_labels_[:, None] == fitted.row_labels_
    assert similarity[together].mean() > 0.8 > 0.2 > similarity[~together].mean()
    assert fitted.column_similarity().shape == (24, 24)


def test_biclusters_as_scikit_learn_has_them(fitted, nested, mondrian):
    for model in (fitted, nested):
        covered = np.einsum("kr,kc->rc", model.rows_.astype(int), model.columns_.astype(int))
        assert np.all(covered == 1)  # every cell is in one block
        for block in np.unique(model.block_labels_):
            rows, columns = model.get_indices(block)
            cells = model.block_labels_[model.row_labels_[rows]][:, model.column_labels_[columns]]
            assert np.all(cells == block)
    shape = fitted.get_shape(0)
    assert shape == (np.sum(fitted.row_labels_ == 0), np.sum(fitted.column_labels_ == 0))


def test_parameters_of_blocks(fitted, grid):
    X = grid[0]
    cells = X[fitted.row_labels_ == 1][:, fitted.column_labels_ == 0]
    counts = np.array([(cells == level).sum() for level in fitted.family_.levels])
    beta = fitted.family_.pseudo_count
    assert beta == pytest.approx(float(fitted.posterior_["posterior"]["pseudo_count"].mean()))
    expected = (counts + beta) / (counts.sum() + 3.0 * beta)
    np.testing.assert_allclose(fitted.block_parameters_["probabilities"][2], expected)


def test_the_form_of_the_matrix_does_not_matter(grid):
    X, _, _ = grid
    filled = ~np.isnan(X)
    rows, columns = np.nonzero(filled)
    forms = {
        "list": np.where(filled, X, None).tolist(),
        "masked": np.ma.masked_array(np.where(filled, X, 99.0), ~filled),
        "sparse": sparse.coo_array((X[filled], (rows, columns)), shape=X.shape),
        "cells": Cells(rows, columns, X[filled], X.shape),
        "polars": pl.DataFrame({f"c{j}": X[:, j] for j in range(X.shape[1])}).fill_nan(None),
        "pandas": pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
        "integers": np.ma.masked_array(np.where(filled, X, 99).astype(int), ~filled),
    }
    expected = quick(n_draws=5, n_burn_in=5).fit(X)
    for name, form in forms.items():
        model = quick(n_draws=5, n_burn_in=5).fit(form)
        for key, draws in expected._fit.draws.arrays.items():
            np.testing.assert_array_equal(model._fit.draws.arrays[key], draws, err_msg=name)
        assert model.n_features_in_ == 24


def test_stored_zeros_are_cells_and_others_are_not():
    X = sparse.csr_array((np.array([0.0, 1.0, 0.0, 1.0]), ([0, 1, 2, 3], [0, 0, 1, 1])), shape=(4, 2))
    model = quick(family="bernoulli", n_draws=5, n_burn_in=0).fit(X)
    assert model._fit.matrix.n_cells == 4


def test_levels_that_are_text():
    rng = np.random.default_rng(0)
    rows = np.arange(30) % 2
    X = np.where(rows[:, None] == 1, "yes", "no").repeat(8, axis=1).astype(object)
    X[rng.random(X.shape) < 0.1] = None
    model = quick().fit(X)
    assert permix.adjusted_rand(model.row_labels_, rows) == 1.0
    assert model.family_.levels == ("no", "yes")
    assert model.predict_cells(cells=[(1, 0), (0, 0)]).tolist() == ["yes", "no"]
    assert set(model.complete().ravel()) == {"yes", "no"}
    with pytest.raises(permix.errors.DataError, match="text have no mean"):
        model.predict_cells_mean()


def test_rows_without_cells_are_kept(grid):
    X = grid[0].copy()
    X[5] = np.nan
    with pytest.warns(PermixWarning, match="no filled cell"):
        model = quick(n_draws=20).fit(X)
    assert model.row_labels_.shape == (40,)
    assert np.all(np.isfinite(model.predict_cells_proba()))


def test_numbers_taken_for_levels_are_remarked():
    X = np.random.default_rng(0).normal(size=(10, 10))
    with pytest.warns(PermixWarning, match=r"100 different values.*family='gaussian'"):
        quick(n_draws=2, n_burn_in=0).fit(X)


def test_extremes():
    assert quick(n_draws=5).fit([[1.0]]).n_row_clusters_ == 1
    assert quick("mondrian", n_draws=5).fit([[1.0]]).n_column_clusters_ == 1
    same = quick(n_draws=100).fit(np.ones((12, 9)))
    assert (same.n_row_clusters_, same.n_column_clusters_) == (1, 1)
    assert same.perplexity(np.ones((12, 9))) == pytest.approx(1.0)
    far = quick(family="gaussian", n_draws=20).fit(1e12 + np.arange(12.0).reshape(3, 4))
    assert np.all(np.isfinite(far.predict_cells()))


@pytest.fixture(scope="module")
def separated():
    made = permix.datasets.make_grid_coclusters(200, 50, 5, 4, missing=0.6, random_state=0)
    return quiet_fit(
        quick("mfm", n_chains=1, n_draws=150, n_burn_in=100), np.where(made.data < 0, np.nan, made.data)
    )


def test_the_number_of_separated_groups_is_found(separated):
    """Under the default prior; a Dirichlet process gives five groups of rows three quarters."""
    draws = separated.posterior_["posterior"]
    assert float((draws["n_row_groups"] == 5).mean()) > 0.9
    assert float((draws["n_column_groups"] == 4).mean()) > 0.9
    assert separated.n_groups_proba("rows")[5] > 0.9
    assert separated.n_groups_proba("columns")[4] > 0.85


def test_groups_without_a_row_count(separated):
    """P(k groups | t of them seen) is proportional to p(k) k! / (k - t)! / (γk)(γk + 1) ... (γk + n - 1)."""
    seen = separated.posterior_["posterior"]["n_column_groups"].values.ravel()
    expected = np.zeros(30)
    for t in seen.tolist():
        k = np.arange(t, 30)
        log_p = -gammaln(k) + gammaln(k + 1) - gammaln(k - t + 1) + gammaln(k) - gammaln(k + 50)
        expected[t:] += np.exp(log_p - np.logaddexp.reduce(log_p)) / len(seen)
    found = separated.n_groups_proba("columns")
    np.testing.assert_allclose(found, expected[: len(found)], atol=1e-10)
    # The twin: the number of groups seen is another one.
    assert np.abs(np.bincount(seen, minlength=len(found)) / len(seen) - found).max() > 0.05
    with pytest.raises(DataError, match='of=\'cells\' must be "rows" or "columns"'):
        separated.n_groups_proba("cells")
