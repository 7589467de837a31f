"""Ensembles of co-clusterings as users meet them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp

import permix
from permix.cocluster import ensemble as cocluster_ensemble
from permix.cocluster import fit as cocluster_fit
from permix.errors import ConvergenceWarning, DataError
from tests.cocluster.cases import QUICK, planted_grid, quick, quiet_fit


@pytest.fixture(autouse=True)
def _short_chains_may_disagree():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def ensemble(prior="dp", **options):
    return permix.CoClusteringEnsemble(prior, **(QUICK | {"n_draws": 40, "n_burn_in": 40} | options))


@pytest.fixture(scope="module")
def grid():
    return planted_grid(np.random.default_rng(1), shape=(30, 20), missing=0.3)


@pytest.fixture(scope="module")
def parts(grid):
    return permix.Cells.coerce(grid[0]).split(0.2, random_state=0)


@pytest.fixture(scope="module")
def fitted(parts):
    return quiet_fit(ensemble(n_base=3, label_pseudo_count=0.2, random_state=1), parts[0])


def noisy(rng, labels, n_moved):
    """Labels under other names, some of them wrong."""
    labels = rng.permutation(labels.max() + 1)[labels]
    labels[rng.choice(len(labels), n_moved, replace=False)] = rng.integers(labels.max() + 1, size=n_moved)
    return labels


def test_bases_are_made_and_agreed_upon(fitted, grid):
    _, rows, columns = grid
    assert fitted.bases_.n_bases == 3
    assert permix.adjusted_rand(fitted.row_labels_, rows) > 0.8
    assert permix.adjusted_rand(fitted.column_labels_, columns) == 1.0
    assert fitted.posterior_["posterior"]["row_labels"].shape == (2, 40, 30)


def test_bases_made_here_are_the_last_draws_of_chains(parts):
    """The base chains are those that CoClustering runs with the same seed."""
    kept = parts[0]
    model = ensemble(n_base=2).fit(kept)
    seed = np.random.SeedSequence(0).spawn(2)[0]
    bases = quick(n_draws=40, n_burn_in=40, n_chains=2, random_state=seed, pseudo_count=1.0).fit(kept)
    last = bases.posterior_["posterior"]["row_labels"].to_numpy()[:, -1]
    for chain in range(2):
        assert permix.adjusted_rand(model.bases_.row_classes[chain], last[chain]) == 1.0


@pytest.mark.parametrize(("prior", "n_wrong"), [("dp", 4), ("mondrian", 0)])
def test_consensus_of_bases_made_elsewhere(prior, n_wrong, grid):
    """Every base has other names, and is wrong about a few rows; what most say is right.

    Nested cuts are drawn given the label of every cell, each of which counts: they tell apart rows that one
    base tells apart.
    """
    _, rows, columns = grid
    rng = np.random.default_rng(0)
    pairs = [(noisy(rng, rows, n_wrong), noisy(rng, columns, n_wrong // 2)) for _ in range(5)]
    model = ensemble(prior, label_pseudo_count=0.1, n_burn_in=150).fit(bases=pairs)
    mean = np.mean([permix.adjusted_rand(pair[0], rows) for pair in pairs])
    assert permix.adjusted_rand(model.row_labels_, rows) >= min(mean + 0.05, 1.0)
    assert not hasattr(model, "block_parameters_")
    for ask in (model.predict_cells, lambda: model.score_cells(grid[0]), lambda: model.base_scores(grid[0])):
        with pytest.raises(DataError, match="give the matrix too"):
            ask()
    ids = [first[:, None] * 10 + second for first, second in pairs]
    again = ensemble(prior, label_pseudo_count=0.1, n_burn_in=150).fit(bases=ids)
    np.testing.assert_array_equal(again.row_labels_, model.row_labels_)


def test_fitted_models_as_bases(grid, parts):
    kept = parts[0]
    bases = [quick(n_draws=20, random_state=seed).fit(kept) for seed in range(3)]
    model = ensemble().fit(kept, bases=bases)
    for base, rows in zip(bases, model.bases_.row_classes, strict=True):
        assert permix.adjusted_rand(rows, base.row_labels_) == 1.0
    assert model.predict_cells().shape == (30, 20)


def test_scores_of_bases_by_hand(fitted, parts):
    kept, held_out = parts
    X, held = kept.dense(), held_out.dense()
    filled = ~np.isnan(held)
    log_p = []
    for rows, columns in zip(fitted.bases_.row_classes, fitted.bases_.column_classes, strict=True):
        blocks = rows[:, None] * 100 + columns
        table = np.empty(X.shape)
        for block in np.unique(blocks):
            inside = blocks == block
            known = X[inside & ~np.isnan(X)]
            for level in (1.0, 2.0, 3.0):
                chosen = inside & (held == level)
                table[chosen] = np.log(((known == level).sum() + 1.0) / (len(known) + 3.0))
        log_p.append(table[filled])
    log_p = np.array(log_p)
    np.testing.assert_allclose(fitted.base_scores(held_out), log_p.mean(axis=1), rtol=1e-10)
    n = log_p.shape[1]
    expected = {
        "cells": (logsumexp(log_p, axis=0) - np.log(3)).mean(),
        "matrix": (logsumexp(log_p.sum(axis=1)) - np.log(3)) / n,
        "log": log_p.mean(),
    }
    for average, value in expected.items():
        assert fitted.averaged_score(held_out, average) == pytest.approx(value, rel=1e-10)
    assert expected["cells"] >= expected["matrix"] >= expected["log"]
    with pytest.raises(DataError, match="average='median' must be"):
        fitted.averaged_score(held_out, "median")


def test_predictions(fitted, parts):
    assert fitted.perplexity(parts[1]) < 2.6  # three levels, evenly: 3
    assert fitted.predict_cells(parts[0].dense()[:2]).shape == (2, 20)
    assert set(fitted.predict(parts[0].dense()[:2])) <= set(range(fitted.n_row_clusters_))


def test_labels_of_filled_cells_or_of_all(parts, tmp_path):
    """Log likelihoods are those of as many labels as count, and the choice is kept in files."""
    kept = parts[0]
    pairs = [([0] * 15 + [1] * 15, [0] * 10 + [1] * 10)] * 2
    uniform = np.log(1 / 4)
    found = {}
    for which, n in (("filled", kept.n_cells), ("all", 600)):
        model = ensemble("mondrian", label_cells=which, label_pseudo_count=0.1).fit(kept, bases=pairs)
        # Four labels that cuts explain exactly: far better than four equally probable ones.
        assert 2 * n * uniform < model.log_likelihood_ < 0
        model.save(tmp_path / f"{which}.permix")
        assert permix.load(tmp_path / f"{which}.permix").label_cells == which
        found[which] = model.log_likelihood_
    assert found["filled"] != found["all"]


def test_a_store_keeps_bases_and_consensus(parts, tmp_path):
    kept = parts[0]
    options = {"n_base": 2, "n_draws": 10, "n_burn_in": 10}
    first = ensemble(store=tmp_path / "s", **options).fit(kept)
    again = ensemble(store=tmp_path / "s", **options).fit(kept)
    plain = ensemble(**options).fit(kept)
    for other in (again, plain):
        for name, array in first._fit.draws.arrays.items():
            np.testing.assert_array_equal(array, other._fit.draws.arrays[name])
    assert {path.name for path in (tmp_path / "s").iterdir()} == {"bases", "consensus"}


@pytest.mark.parametrize(
    ("options", "fitting", "message"),
    [
        ({"prior": "dirichlet"}, {}, 'prior=\'dirichlet\' must be "mfm", "dp" or "mondrian"'),
        ({"n_base": 1}, {}, "n_base=1 must be a whole number, 2 or more"),
        ({"base": "dp"}, {}, "base='dp' must be a CoClustering"),
        ({"base": permix.CoClustering(pseudo_count=3.0)}, {}, "both must be the same"),
        ({"label_pseudo_count": 0.0}, {}, "label_pseudo_count=0.0 must be a positive number"),
        (
            {"prior": "dp", "label_cells": "all"},
            {},
            "label_cells='all' would change nothing.*belongs to prior='mondrian'",
        ),
        ({"prior": "mondrian", "label_cells": "some"}, {}, "label_cells='some' must be"),
        ({"prior": "dp", "budget": 2.0}, {}, "budget=2.0 would change nothing"),
        ({"prior": "mondrian", "concentration": 2.0}, {}, "concentration=2.0 would change nothing"),
        ({"base": permix.CoClustering()}, {"bases": [([0], [0])] * 2}, "base=... would change nothing"),
        ({}, {"bases": [([0, 1], [0, 1])] * 2}, "base 1.*2 rows and 2 columns"),
        ({"n_base": 3}, {"bases": [([0], [0])] * 2}, "n_base=3 would change nothing: the base co-clust"),
        ({"base": permix.CoClustering(n_chains=4)}, {}, "base: n_chains=4 would change nothing"),
        ({"base": permix.CoClustering(random_state=1)}, {}, "base: random_state=1 would change nothing"),
        ({"base": permix.CoClustering(store="x")}, {}, "base: store=.*x.* would change nothing"),
        ({"base": permix.CoClustering(n_jobs=2)}, {}, "base: n_jobs=2 would change nothing"),
        ({"base": permix.CoClustering(progress=True)}, {}, "base: progress=True would change nothing"),
        ({"base": permix.CoClustering(loss="binder")}, {}, "base: loss='binder' would change nothing"),
        ({}, {"bases": [([0, 1], [0, 1])]}, "at least two"),
    ],
)
def test_mistakes_are_named(options, fitting, message, grid):
    with pytest.raises(DataError, match=message):
        ensemble(**options).fit(grid[0], **fitting)


def test_nothing_to_work_on():
    with pytest.raises(DataError, match="give a matrix, base co-clusterings"):
        ensemble().fit()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "gaussian"}, "family='gaussian' would change nothing: there is no matrix"),
        ({"pseudo_count": 2.0}, "pseudo_count=2.0 would change nothing: there is no matrix"),
        ({"prior": "mondrian", "label_cells": "all"}, "label_cells='all' would change nothing"),
    ],
)
def test_options_about_cells_need_a_matrix(options, message):
    with pytest.raises(DataError, match=message):
        ensemble(**options).fit(bases=[([0, 1], [0, 1])] * 2)


def test_bases_may_disagree_and_have_no_estimates(parts, monkeypatch):
    """Nobody is told that bases differ, and no point estimate is made but the one of the consensus."""
    told, estimated = [], []
    for module in (cocluster_fit, cocluster_ensemble):
        monkeypatch.setattr(module, "warn_if_chains_disagree", lambda draws: told.append(draws.n_draws))
        monkeypatch.setattr(module, "estimates", _noted(module.estimates, estimated))
    ensemble(n_base=2, n_draws=7, n_burn_in=5, base=permix.CoClustering(n_draws=5, n_burn_in=5)).fit(parts[0])
    assert told == [7]
    assert estimated == [7]


def _noted(function, calls):
    def noting(draws, *others):
        calls.append(draws.n_draws)
        return function(draws, *others)

    return noting
