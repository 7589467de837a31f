"""BayesianMallowsMixture as users meet it."""

from __future__ import annotations

import pickle
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.validation import validate_data

import permix
from permix.errors import CycleError, DataError
from tests.bayes_mallows.cases import FORMS, data_of, model_of, posterior_of, settings_of
from tests.estimators.conventions import CANNOT_APPLY_TO_CLUSTERERS, conventions
from tests.every_run import turns_in_every_run
from tests.oracles import bayes_mallows as oracle


def quick(*given, **options):
    few = {"n_draws": 60, "n_burn_in": 60, "n_chains": 1, "random_state": 0, "progress": False}
    return permix.BayesianMallowsMixture(*given, **(few | options))


@cache
def two_groups():
    made = permix.datasets.make_mallows_mixture(80, 6, 2, dispersion=0.3, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return quick(2, n_chains=2).fit(made.data), made


def test_attributes():
    model, made = two_groups()
    assert permix.adjusted_rand(model.labels_, made.labels) > 0.85
    assert model.n_clusters_ == len(model.cluster_sizes_) == 2
    assert model.cluster_sizes_.sum() == 80
    np.testing.assert_allclose(model.weights_, model.summary()["share"])
    np.testing.assert_allclose(model.dispersions_, model.summary()["dispersion"])
    assert sorted(model.centers_.orders.tolist()) == sorted(np.asarray(made.centers).tolist())
    assert model.posterior_["posterior"]["labels"].dims == ("chain", "draw", "observation")
    assert model.posterior_ is model.posterior_
    assert "n_groups" in model.diagnostics().index
    assert model.log_likelihood_ == pytest.approx(model._fit.draws.arrays["log_likelihood"].mean())
    low, high = model.summary()[["dispersion_low", "dispersion_high"]].to_numpy().T
    assert np.all((low <= model.dispersions_) & (model.dispersions_ <= high))
    with pytest.raises(AttributeError, match="errors='bernoulli'"):
        model.error_rate_  # noqa: B018


@pytest.mark.parametrize(("form", "distance"), turns_in_every_run(FORMS, ("kendall", "footrule", "cayley")))
def test_what_is_shown_is_the_posterior(form, distance):
    """A long default run through the public class, beside the sum over everything."""
    data, truth = data_of(form), posterior_of(distance, form)
    settings = settings_of(distance)
    model = quick(
        distance=distance, decay_prior=settings.decay_prior, n_draws=4000, n_burn_in=200, n_chains=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no R-hat of one chain
        model.fit(data.table)
    decays = model._fit.draws.arrays["group_decays"]
    assert decays.mean() == pytest.approx(truth.mean_decay(0), abs=0.08)
    # Centers are those of 200 draws: four standard errors of a share are 0.14.
    found = model.rank_probabilities().sort_index().to_numpy()
    np.testing.assert_allclose(found, truth.center_rank_probabilities(0), atol=0.16)
    above = model.center_pairwise().sort_index().sort_index(axis=1).to_numpy()
    np.testing.assert_allclose(above, truth.center_before(0), atol=0.16)


@pytest.mark.parametrize("form", ["top", "subset", "pairs"])
def test_answers_about_somebody_new_are_predictive_probabilities(form):
    """P(what a new agent says) and P(a before b), against sums over everything."""
    data = data_of(form)
    settings = settings_of("footrule")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = quick(distance="footrule", decay_prior=settings.decay_prior, n_draws=4000).fit(data.table)
    someone = permix.Preferences.from_pairs([("new", 3, 0)], items=range(4))
    said = oracle.compared((3, 0))
    value, error = model.score_samples(someone, return_error=True)
    truth = oracle.predictive(model_of("footrule"), data.agents, said)
    assert value[0] == pytest.approx(np.log(truth), abs=5.0 * error[0] + 1e-9)
    before = model.predict_pairwise(someone, n_samples=4000)[0]
    found = oracle.posterior(model_of("footrule"), (*data.agents, said)).before(len(data.agents))
    np.testing.assert_allclose(before, found, atol=0.08)


def test_new_data_are_read_by_name():
    model, _ = two_groups()
    one = permix.Rankings.from_orders([[3, 2, 1, 0, 5, 4]], items=[5, 4, 3, 2, 1, 0])
    same = permix.Rankings.from_orders([[3, 2, 1, 0, 5, 4]], items=range(6))
    np.testing.assert_array_equal(model.predict_proba(one), model.predict_proba(same))
    with pytest.raises(DataError, match="does not know 'tea'"):
        model.predict(permix.Rankings.from_orders([["tea", 1]], items=["tea", 1]))


def test_contradictions_need_a_model_of_errors():
    table = data_of("contradictions").table
    with pytest.raises(CycleError, match=r'BayesianMallowsMixture\(errors="bernoulli"\)'):
        quick().fit(table)
    with pytest.raises(CycleError, match=r'BayesianMallowsMixture\(errors="bernoulli"\)'):
        permix.MallowsMixture(1).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert 0.0 < quick(errors="bernoulli").fit(table).error_rate_ < 0.5


def test_nothing_is_said_before_a_fit():
    data = data_of("full").table
    for ask in (
        lambda model: model.predict(data),
        lambda model: model.complete(data),
        lambda model: model.consensus(),
        lambda model: model.credible_set(),
        lambda model: model.sample(3),
        lambda model: model.assignments(),
    ):
        with pytest.raises(NotFittedError):
            ask(quick())


def test_pickle_and_clone():
    model, made = two_groups()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(made.data), model.predict_proba(made.data))
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0 must be a whole number, 1 or more"),
        ({"n_components": "many"}, "mfm"),
        ({"distance": "euclid"}, "kendall"),
        ({"errors": "gauss"}, "bernoulli"),
        ({"errors_per_agent": True}, "needs a model of errors"),
        ({"error_prior": (1.0, 3.0)}, "needs a model of errors"),
        ({"errors": "bernoulli", "error_prior": (1.0, -3.0)}, "two positive numbers"),
        ({"decay_prior": 3.0}, r"Gamma\(shape, rate\)"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(DataError, match=message):
        quick(**options).fit(data_of("full").table)


class FromScores(permix.BayesianMallowsMixture):
    """Reads a row of numbers as scores of as many items, so that scikit-learn's checks can run."""

    def _checked(self, X, *, reset):
        scores = validate_data(self, X, reset=reset, dtype=np.float64)
        return permix.Rankings.from_orders(np.argsort(-scores, axis=1, kind="stable"))


# Chains count draws, and not iterations.
CANNOT_APPLY = {
    check: reason
    for check, reason in CANNOT_APPLY_TO_CLUSTERERS.items()
    if check != "check_non_transformer_estimators_n_iter"
}
CANNOT_APPLY_TO_SCORES = {
    "check_clustering": "expects three groups of points in the plane; two scores have only two orders",
    "check_fit2d_1feature": "one item has one ranking; such data are refused",
}


@conventions(quick(n_draws=5, n_burn_in=2), cannot_apply=CANNOT_APPLY)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@conventions(
    FromScores(n_draws=8, n_burn_in=8, n_chains=1, random_state=0, progress=False),
    cannot_apply=CANNOT_APPLY_TO_SCORES,
)
def test_scikit_learn_conventions_with_rows_that_are_rankings(estimator, check):
    check(estimator)


def test_works_with_scikit_learn():
    _, made = two_groups()
    orders = np.asarray(made.data.orders)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = cross_val_score(quick(2), orders, cv=3)
        labels = quick(2).fit_predict(orders)
    assert scores.mean() > -np.log(720) + 1.0
    assert permix.adjusted_rand(labels, made.labels) > 0.85
