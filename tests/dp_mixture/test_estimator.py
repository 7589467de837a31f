"""DPMixture as users meet it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import permix
from permix.dp_mixture.predict import MixturePredictive, spaced_draws
from permix.errors import ConvergenceWarning, DataError, PermixWarning
from permix.moves import Concentration, Cycle, Gibbs, Repeat
from permix.moves.state import score_empty
from tests.families.cases import CASES, MOST_CASES
from tests.oracles.mixtures import exact_posterior, naive_predictive


@pytest.fixture(autouse=True)
def _short_chains_may_disagree():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def quick(family=None, prior=None, **options):
    settings = {"n_draws": 60, "n_burn_in": 30, "n_chains": 2, "random_state": 0, "progress": False} | options
    return permix.DPMixture(family, prior, **settings)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(5)
    X = np.concatenate([rng.normal(c, 0.8, (n, 2)) for c, n in (((-5, 0), 25), ((5, 0), 40), ((0, 7), 15))])
    return X, np.repeat([0, 1, 2], [25, 40, 15])


@pytest.fixture(scope="module")
def fitted(blobs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return quick(permix.Gaussian(noise_scale=0.8)).fit(blobs[0])


TINY = {"n_draws": 8, "n_burn_in": 4, "n_chains": 1, "random_state": 0, "progress": False}


@parametrize_with_checks([permix.DPMixture(**TINY)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([permix.DPMixture(permix.Gaussian(noise_scale=0.4), **TINY)])
def test_scikit_learn_conventions_with_a_family(estimator, check):
    check(estimator)


def test_finds_what_is_there(fitted, blobs):
    X, truth = blobs
    assert fitted.n_clusters_ == 3
    assert permix.adjusted_rand(fitted.labels_, truth) == 1.0
    assert fitted.cluster_sizes_.tolist() == [40, 25, 15]  # the largest first
    np.testing.assert_allclose(fitted.cluster_parameters_["mean"][1], X[truth == 0].mean(axis=0), atol=0.05)
    labels = fitted.posterior_["posterior"]["labels"]
    assert labels.dims == ("chain", "draw", "observation")
    assert labels.shape == (2, 60, 80)
    assert labels.dtype == np.uint8
    assert {"n_groups", "log_joint"} <= set(fitted.posterior_["posterior"].data_vars)
    assert {"r_hat", "ess_bulk"} <= set(fitted.diagnostics().columns)
    groups = fitted.summary()
    assert groups["size"].tolist() == [40, 25, 15]
    assert groups["how_sure"].min() > 0.9
    np.testing.assert_array_equal(groups[["column 1", "column 2"]], fitted.cluster_parameters_["mean"])


def test_same_seed_same_draws_whatever_the_threads(blobs):
    first = quick(n_chains=3, n_jobs=1).fit(blobs[0])
    second = quick(n_chains=3, n_jobs=3).fit(blobs[0])
    other = quick(n_chains=3, random_state=1).fit(blobs[0])
    for name, array in first._fit.draws.arrays.items():
        np.testing.assert_array_equal(array, second._fit.draws.arrays[name])
    assert not np.array_equal(first._fit.draws.arrays["log_joint"], other._fit.draws.arrays["log_joint"])
    np.testing.assert_array_equal(first.labels_, second.labels_)


@pytest.mark.parametrize("name", MOST_CASES)
@pytest.mark.parametrize(
    "prior", [permix.PitmanYor(0.5, 0.3), permix.MixtureOfFiniteMixtures(1.5, 0.7)], ids=["py", "mfm"]
)
def test_predictive_density_against_enumeration(name, prior):
    """score_samples averages over draws; on five data the exact predictive is a sum over 52 partitions."""
    family, X = CASES[name]
    train, new = X[:5], X[5:9]
    partitions, pi = exact_posterior(family, train, prior.log_prob)
    naive = naive_predictive(family)
    exact = np.zeros(len(new))
    for labels, probability in zip(partitions, pi, strict=True):
        labels = np.array(labels)
        weights = np.exp(prior.sequential_log_weights(np.bincount(labels)))
        groups = [train[labels == k] for k in range(labels.max() + 1)] + [train[:0]]
        for i, x in enumerate(new):
            densities = np.exp([naive(x, members) for members in groups])
            exact[i] += probability * float(np.dot(weights, densities))
    # Climbs and splits would be compiled for every family; what they do is tried in tests/moves.
    moves = {"moves": "gibbs", "burn_in_moves": "gibbs"}
    model = quick(family, prior, n_draws=200, n_thin=6, **moves).fit(train)
    ours = np.exp(model.score_samples(new))
    # 200 draws of the 400 enter; the spread of single-draw densities gives the error of their mean.
    predictive = MixturePredictive(model._fit)
    draws = spaced_draws(model._fit)
    encoded = family.encode(new)
    empty = score_empty(model._fit.family, encoded, len(new))
    weights = (predictive.condition(*draw) for draw in draws)
    joint = [predictive.log_joint(encoded, len(new), empty, each) for each in weights]
    single = np.array([np.exp(each).sum(axis=1) for each in joint])
    error = single.std(axis=0) / np.sqrt(len(draws) / 2)
    np.testing.assert_array_less(np.abs(ours - exact), 4.5 * error + 1e-12)
    np.testing.assert_allclose(ours, single.mean(axis=0), rtol=1e-9)
    # The error that is reported is about that of the mean: of the logarithm, so relative.
    errors = model.score_samples(new, return_error=True)[1]
    independent = single.std(axis=0) / np.sqrt(len(draws)) / ours
    assert np.all(errors < 4.0 * independent + 1e-12)
    assert np.all(errors > 0.4 * independent - 1e-12)


def test_predict_and_novelty(fitted):
    new = np.array([[5.0, 0.0], [-5.0, 0.0], [0.0, 7.0], [60.0, -60.0]])
    assert fitted.predict(new)[:3].tolist() == [0, 1, 2]
    probabilities = fitted.predict_proba(new)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), fitted.predict(new))
    novelty = fitted.predict_novelty(new)
    np.testing.assert_allclose(probabilities.sum(axis=1) + novelty, 1.0)
    assert novelty[:3].max() < 0.05
    assert novelty[3] > 0.95
    assert fitted.score(new[:3]) == pytest.approx(fitted.score_samples(new[:3]).mean())


def test_samples_follow_the_predictive(fitted):
    drawn = fitted.sample(3000, random_state=1)
    np.testing.assert_array_equal(drawn, fitted.sample(3000, random_state=1))
    shares = np.bincount(fitted.predict(drawn), minlength=3) / 3000
    # New clusters take a little; the rest divides as the sizes do.
    assert np.abs(shares - np.array([40, 25, 15]) / 80).max() < 5 * np.sqrt(0.25 / 3000) + 0.03


@pytest.mark.parametrize("name", CASES)
def test_save_and_load_give_the_same_model(name, tmp_path):
    family, X = CASES[name]
    moves = Cycle([Repeat(Gibbs(), 2), Concentration()])
    model = quick(family, n_draws=10, moves=moves, burn_in_moves="gibbs").fit(X)
    path = tmp_path / "model.permix"
    model.save(path)
    back = permix.load(path)
    np.testing.assert_array_equal(back.labels_, model.labels_)
    np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(back.sample(5, random_state=0), model.sample(5, random_state=0))
    assert back.posterior_.identical(model.posterior_)
    pd.testing.assert_frame_equal(back.summary(), model.summary())
    pd.testing.assert_frame_equal(back.diagnostics(), model.diagnostics())
    assert back.moves == model.moves
    assert back.get_params()["n_draws"] == 10
    np.testing.assert_array_equal(back.fit(X).labels_, model.labels_)  # and it can be fitted again


def test_column_names_are_kept(blobs, tmp_path):
    frame = pd.DataFrame(blobs[0], columns=["height", "weight"])
    model = quick().fit(frame)
    model.save(tmp_path / "m.permix")
    back = permix.load(tmp_path / "m.permix")
    assert back.feature_names_in_.tolist() == ["height", "weight"]
    back.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        back.predict(frame.rename(columns={"height": "size"}))
    frame.loc[3, "weight"] = np.nan
    with pytest.raises(DataError, match="row 4, column 'weight'"):
        quick(permix.Gaussian(gaps=False)).fit(frame)


@pytest.mark.parametrize("observed", ["full", "pairs"])
def test_rankings_are_not_measurements(observed):
    votes = permix.datasets.make_mallows_mixture(20, 5, 2, observed=observed, random_state=0).data
    with pytest.raises(DataError, match="not rows of numbers"):
        quick().fit(votes)


@pytest.mark.parametrize("library", [pd, pl])
def test_text_among_numbers_is_named(library, blobs):
    frame = library.DataFrame({"x": blobs[0][:, 0], "name": [f"R{i}" for i in range(len(blobs[0]))]})
    with pytest.raises(DataError, match=r"column 'name' holds text .row 1: 'R0'.*mixed"):
        quick("gaussian-niw").fit(frame)


def test_cells_are_named_by_every_family():
    counts = pd.DataFrame({"wins": [1.0, 2.0], "losses": [0.0, 2.5]})
    with pytest.raises(DataError, match=r"row 2, column 'losses' is 2.5"):
        quick("multinomial").fit(counts)
    answers = pd.DataFrame({"party": ["A", "B"] * 5, "area": ["x"] * 10})
    model = quick("categorical").fit(answers)
    with pytest.raises(DataError, match=r"row 1, column 'party': 'C' is not a known answer .A, B."):
        model.predict(answers[:1].replace("A", "C"))
    with pytest.raises(DataError, match="column 'area' has no entry"):
        quick("categorical").fit(answers.assign(area=None))
    X = pd.DataFrame(np.eye(4), columns=list("abcd"))
    fitted_to_numbers = quick().fit(X)
    X.loc[2, "c"] = np.inf
    with pytest.raises(DataError, match=r"infinity: row 3, column 'c'. Mend the cell, or make it NaN"):
        fitted_to_numbers.predict(X)


def test_suspicious_settings_are_remarked():
    ids = pd.DataFrame({"person": [f"p{i}" for i in range(30)], "vote": ["yes", "no"] * 15})
    with pytest.warns(PermixWarning, match=r"every row has a different answer in column 1, such as 'p0'"):
        quick("categorical").fit(ids)
    with pytest.warns(PermixWarning, match="50 groups are more than the 4 rows"):
        quick(prior=permix.FiniteDirichlet(50)).fit(np.eye(4))


def test_custom_moves_are_named_when_they_cannot_be_rebuilt(blobs, tmp_path):
    class Own(Gibbs):
        pass

    model = quick(moves=Own()).fit(blobs[0])
    model.save(tmp_path / "m.permix")
    with pytest.warns(PermixWarning, match="Own"):
        back = permix.load(tmp_path / "m.permix")
    assert back.moves == "auto"
    np.testing.assert_array_equal(back.labels_, model.labels_)


def test_families_and_priors_by_name(blobs):
    X = blobs[0]
    by_name = quick("gaussian", "pitman-yor", n_draws=5).fit(X)
    assert by_name.get_params()["prior"] == "pitman-yor"
    assert (by_name.prior_, by_name.family_.name) == (permix.PitmanYor(), "gaussian")
    assert isinstance(quick(prior="dp", n_draws=5).fit(X).prior_.concentration, permix.Gamma)


def test_fitting_does_not_predict(blobs, monkeypatch):
    from permix.dp_mixture import predict

    monkeypatch.setattr(predict, "MixturePredictive", None)
    model = quick(n_draws=5).fit(blobs[0])
    assert "cluster_parameters" not in vars(model._fit)
    assert "posterior" not in vars(model._fit)
    assert model.cluster_parameters_["mean"].shape == (model.n_clusters_, 2)


def test_sparse_documents():
    rng = np.random.default_rng(3)
    topics = np.array([[0.4, 0.4, 0.1, 0.05, 0.05], [0.05, 0.05, 0.1, 0.4, 0.4]])
    X = np.array([rng.multinomial(30, topics[i % 2]) for i in range(40)])
    dense = quick(permix.Multinomial(), n_chains=1).fit(X)
    thin = quick(permix.Multinomial(), n_chains=1).fit(sparse.csr_matrix(X))
    assert permix.adjusted_rand(dense.labels_, np.arange(40) % 2) == 1.0
    np.testing.assert_array_equal(dense.labels_, thin.labels_)
    assert thin.sample(4, random_state=0).sum(axis=1).tolist() == [30] * 4


def test_survey_with_missing_answers():
    rng = np.random.default_rng(4)
    answers = np.where(np.arange(60)[:, None] < 30, "yes", "no").repeat(6, axis=1).astype(object)
    answers[rng.random(answers.shape) < 0.1] = "maybe"
    answers[rng.random(answers.shape) < 0.2] = None
    frame = pd.DataFrame(answers, columns=[f"q{j}" for j in range(6)])
    model = quick("categorical", permix.FiniteDirichlet(4, 0.5)).fit(frame)
    assert permix.adjusted_rand(model.labels_, np.arange(60) < 30) == 1.0
    assert model.predict(pd.DataFrame([["yes"] * 5 + [None]], columns=frame.columns)).shape == (1,)
    assert "concentration" not in model.posterior_["posterior"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (quick("cauchy"), "unknown family 'cauchy'; known are gaussian"),
        (quick(3.0), "family=3.0 must be a permix family"),
        (quick(prior=2.0), r"DirichletProcess\(2.0\)"),
        (quick(moves="perm"), "unknown move 'perm'"),
        (quick(prior="crp"), "unknown prior 'crp'; known are mfm"),
        (quick(prior="finite"), r"prior='finite' does not say enough: write permix.FiniteDirichlet"),
        (quick(burn_in_moves="gibbs", n_burn_in=0), "burn_in_moves are given, but n_burn_in is 0"),
        (
            quick(init="warm"),
            'init=.warm. must be "both", "sequential", "one-group", "random", or a whole number, 1 or more',
        ),
        *[
            (quick(init=init), f'init={init} must be "both", .*, or a whole number')
            for init in (0, True, 2.0, None)
        ],
        (quick(init=81), "init=81 must be from 1 to 80 groups"),
        (quick(loss="zero-one"), 'loss=\'zero-one\' must be "vi" or "binder"'),
        (quick(n_draws=0), "n_draws"),
        (quick(n_chains=-1), "n_chains"),
        (quick(n_jobs="x"), "n_jobs=.x. must be a number of threads"),
        (quick(progress="x"), "progress=.x. must be True or False or None"),
    ],
)
def test_mistakes_are_named(model, message, blobs):
    with pytest.raises(DataError, match=message):
        model.fit(blobs[0])


def test_extremes(blobs):
    one = quick().fit([[1.0, 2.0]])
    assert one.n_clusters_ == 1
    same = quick(permix.Gaussian()).fit(np.ones((20, 3)))
    assert same.n_clusters_ == 1
    far = quick(permix.Gaussian(noise_scale=1.0, prior_mean=1e6, prior_scale=100.0)).fit(blobs[0] + 1e6)
    assert far.n_clusters_ == 3
    with pytest.raises(DataError, match="size must be at least 1"):
        one.sample(0)


def test_numpy_settings_can_be_saved(blobs, tmp_path):
    model = quick(n_draws=np.int64(5), n_thin=np.int32(1), progress=np.bool_(False)).fit(blobs[0])
    model.save(tmp_path / "m.permix")
    assert permix.load(tmp_path / "m.permix").n_draws == 5


def test_rows_far_out_are_an_error_not_a_nan(fitted):
    for method in (fitted.predict, fitted.predict_proba, fitted.predict_novelty):
        with pytest.raises(DataError, match="row 2 has probability zero"):
            method([[0.0, 0.0], [1e200, 0.0]])
    assert fitted.score_samples([[1e200, 0.0]])[0] == -np.inf


def test_one_row_far_away_stops_nothing():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (30, 3)), rng.normal(5, 1, (30, 3)), [[1e9] * 3]])
    model = quick(permix.GaussianNIW(scale=[1.0, 1.0, 1.0])).fit(X)
    assert model.labels_[-1] not in model.labels_[:-1]


def test_chains_that_never_move_say_so():
    X = np.concatenate([np.zeros((40, 1)), np.full((40, 1), 16.0)]) + np.random.default_rng(1).normal(
        size=(80, 1)
    )
    frozen = quick(
        permix.Gaussian(1.0, 0.0, 10.0), moves="permutation", burn_in_moves="permutation", init="one-group"
    )
    with pytest.warns(permix.errors.PermixWarning, match="refused at every step"):
        frozen.fit(X)


def test_groups_of_one_row_each_are_said_to_be_none():
    X = np.random.default_rng(0).normal(size=(12, 300))
    known = permix.Gaussian(noise_scale=0.3, prior_scale=1.0, prior_mean=0.0)
    with pytest.warns(PermixWarning, match="12 of the 12 rows are groups of their own"):
        quick(known, n_draws=4, n_burn_in=2).fit(X)


def test_a_concentration_is_learned_whatever_the_moves():
    X = np.random.default_rng(2).normal(size=(20, 1))
    prior = permix.DirichletProcess(permix.Gamma(1.0, 1.0))
    model = quick(permix.Gaussian(), prior, moves=Gibbs()).fit(X)
    assert len(np.unique(model.posterior_["posterior"]["concentration"].values)) > 50


def test_scales_meant_for_other_data_are_doubted():
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"age": rng.normal(0, 5, 30), "income": rng.normal(40_000, 9_000, 30)})
    with pytest.warns(PermixWarning, match="column 'income': values are about .* prior deviations"):
        quick(permix.Gaussian(1.0, 0.0, 10.0)).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PermixWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        quick(permix.Gaussian(prior_mean=[0, 40_000], prior_scale=[5, 9_000], noise_scale=[1, 2_000])).fit(
            table
        )


def test_parameters_of_families_and_priors_in_searches(blobs):
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    model = quick(permix.Gaussian(noise_scale=3.0), permix.PitmanYor(0.5, 0.3), n_draws=20)
    assert model.get_params()["family__noise_scale"] == 3.0
    assert "family__noise_scale" not in model.get_params(deep=False)
    copy = clone(model).set_params(family__noise_scale=0.5, prior__discount=0.1, n_draws=9)
    assert (copy.family.noise_scale, copy.family.prior_scale) == (0.5, None)
    assert (copy.prior, copy.n_draws) == (permix.PitmanYor(0.5, 0.1), 9)
    assert model.family.noise_scale == 3.0  # families are not changed, others take their places
    named = quick("gaussian").set_params(family__noise_scale=2.0)
    assert named.family == permix.Gaussian(2.0)
    with pytest.raises(ValueError, match=r"Invalid parameter 'noise' for family=Gaussian.*'noise_scale'"):
        model.set_params(family__noise=1.0)
    with pytest.raises(DataError, match="noise_scale must be positive"):
        model.set_params(family__noise_scale=-1.0)
    X = blobs[0][np.random.default_rng(0).permutation(len(blobs[0]))]
    search = GridSearchCV(model, {"family__noise_scale": [0.05, 1.0, 20.0]}, cv=2).fit(X)
    assert search.best_params_ == {"family__noise_scale": 1.0}
