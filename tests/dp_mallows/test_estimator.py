"""DPMallowsMixture as users meet it."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import validate_data

import permix
from permix import Preferences, Rankings
from permix.datasets import make_generalized_mallows_mixture
from permix.dp_mallows.estimator import DPMallowsMixture
from permix.dp_mallows.pairs import predict_pairwise
from permix.dp_mallows.predict import ListPredictive
from permix.errors import DataError
from tests.dp_mallows.cases import FOUR, fit_of, members_of
from tests.estimators.conventions import CANNOT_APPLY_TO_CLUSTERERS, conventions


def quick(**options):
    few = {"n_draws": 60, "n_burn_in": 60, "n_chains": 1, "random_state": 0, "progress": False}
    return DPMallowsMixture(**(few | options))


def by_hand(**options):
    """An estimator that was not fitted but told what it found."""
    return DPMallowsMixture._from_fit(fit_of(**options))


# What a fit shows, without a sampler.


def test_attributes():
    fit = fit_of()
    model = DPMallowsMixture._from_fit(fit)
    assert model.labels_.tolist() == [0, 0, 1, 1, 0]
    assert (model.n_clusters_, model.cluster_sizes_.tolist()) == (2, [4, 3])
    np.testing.assert_allclose(model.weights_, model.summary()["share"])
    # Seven agents and a concentration of 1: a new agent is of a group of its own with probability 1/8.
    assert model.weights_.sum() == pytest.approx(7 / 8)
    assert model.items_ == FOUR
    assert model.centers_.is_full
    assert len(model.centers_) == 2
    assert model.theta_.shape == (2, 3)
    assert model.log_likelihood_ == pytest.approx(fit.draws.arrays["log_likelihood"].mean())
    assert model.point_estimate_ is fit.estimate
    assert model.posterior_["posterior"]["labels"].dims == ("chain", "draw", "observation")
    assert model.posterior_ is model.posterior_
    assert "n_groups" in model.diagnostics().index
    assert list(model.summary().index) == [0, 1]
    assert model.center(1)["item"].tolist() == [model.items_[i] for i in model.centers_.orders[1]]
    assert len(model.decays()) == 6
    assert model.get_params()["n_draws"] == 3


def test_rows_are_in_the_group_that_draws_put_their_list_in():
    """Every draw is asked about every agent; agents who gave the same list have one answer."""
    lists = [
        (0, 1),
        (0, 1, 2),
        (3, 2),
        (0, 2, 1),
        (0, 2, 1, 3),
        (3, 2),
    ]  # the fourth and the fifth say the same
    fit = fit_of(lists=lists, counts=(2, 1, 1, 1, 1, 1))
    said = [(0, 1), (0, 1), (0, 1, 2), (3, 2), (0, 2, 1), (0, 2, 1), (3, 2)]
    links = members_of(fit.clusters, fit.labels)
    votes = {row: np.zeros(2) for row in said}
    for d, labels in enumerate(fit.clusters.labels):
        for agent, k in enumerate(labels):
            votes[said[agent]][links[d][k]] += 1
    truth = np.array([votes[row] / votes[row].sum() for row in (said[0], *said[2:])])
    np.testing.assert_allclose(fit.probabilities, truth)
    model = DPMallowsMixture._from_fit(fit)
    np.testing.assert_array_equal(model.labels_, truth.argmax(axis=1))
    assert len(model.labels_) == len(lists)
    # The point estimate tells agents apart who gave the same list.
    assert fit.labels[3] != fit.labels[6]
    assert model.labels_[2] == model.labels_[5]


def test_answers_are_those_of_the_functions():
    fit = fit_of()
    model, predictive = DPMallowsMixture._from_fit(fit), ListPredictive(fit)
    table = Rankings.from_orders([["milk", "tea"], ["tea"]], items=FOUR, counts=[2, 5])
    scores, errors = model.score_samples(table, return_error=True)
    np.testing.assert_array_equal(scores, predictive.log_probability(table)[0])
    np.testing.assert_array_equal(errors, predictive.log_probability(table)[1])
    np.testing.assert_array_equal(model.score_samples(table), scores)
    assert model.score(table) == pytest.approx(np.average(scores, weights=[2, 5]))
    assert predictive.mean_log_probability(table).standard_error > 0.0
    joint = predictive.assign(table)
    np.testing.assert_array_equal(model.predict_proba(table), joint[:, :2])
    np.testing.assert_array_equal(model.predict_novelty(table), joint[:, 2])
    np.testing.assert_array_equal(model.predict(table), model.predict_proba(table).argmax(axis=1))
    np.testing.assert_array_equal(model.predict_next(table), predictive.next_item(table))
    assert model.complete(table, length=3) == predictive.complete(table, 3)
    np.testing.assert_array_equal(
        model.sample_completions(table, 4, random_state=1).orders,
        predictive.sample_completions(table, 4, None, 1).orders,
    )
    np.testing.assert_array_equal(model.predict_pairwise(table), predict_pairwise(predictive, table))
    np.testing.assert_array_equal(
        model.predict_pairwise(table, [(0, "water", "coffee")]),
        predict_pairwise(predictive, table, [(0, "water", "coffee")]),
    )
    drawn, labels = model.sample(9, random_state=3, return_labels=True)
    assert drawn == model.sample(9, random_state=3)
    assert labels.shape == (9,)
    assert model.sample(4, random_state=0, lengths=2).lengths.tolist() == [2] * 4


def test_a_list_that_no_cluster_could_have_said_is_of_a_new_one():
    """Decays so large that a cluster says its center only, to double precision and beyond."""
    fit = fit_of()
    fit.clusters.theta[:] = 5000.0
    fit.clusters.centers[:] = [0, 1, 2, 3]
    model = DPMallowsMixture._from_fit(fit)
    table = Rankings.from_orders([[3, 2, 1]], n_items=4)._replaced(items=FOUR)
    assert model.predict_novelty(table)[0] == 1.0
    assert model.predict_proba(table).sum() == 0.0
    assert model.predict(table).tolist() == [0]
    np.testing.assert_allclose(model.score_samples(table), np.log(1 / 8 / 24))


def test_new_data_are_read_by_name():
    model = by_hand()
    votes = Rankings.from_orders([["milk", "water", "coffee", "tea"]])  # items in another order
    again = Rankings.from_orders([["milk", "water", "coffee", "tea"]], items=FOUR)
    np.testing.assert_array_equal(model.predict_proba(votes), model.predict_proba(again))
    said = Preferences.from_rankings(again)
    np.testing.assert_array_equal(model.predict_proba(said), model.predict_proba(again))
    np.testing.assert_array_equal(model.predict_proba(np.array([[3, 2, 1, 0]])), model.predict_proba(again))
    with pytest.raises(DataError, match="does not know 'juice'"):
        model.predict(Rankings.from_orders([["milk", "juice"]]))
    with pytest.raises(DataError, match="compares pairs"):
        model.predict(Preferences.from_pairs([(0, "milk", "tea")], items=FOUR))
    with pytest.raises(DataError, match=r"permix.read\(path\)"):
        model.predict("votes.csv")


def test_nothing_is_said_before_a_fit():
    table = Rankings.from_orders([["a", "b"]])
    model = DPMallowsMixture()
    for ask in (model.predict, model.predict_novelty, model.score, model.predict_next, model.complete):
        with pytest.raises(NotFittedError):
            ask(table)
    for ask in (model.sample, model.summary, model.diagnostics, model.decays):
        with pytest.raises(NotFittedError):
            ask()
    for name in ("posterior_", "labels_", "weights_", "centers_", "theta_"):
        assert not hasattr(model, name)


def test_pickle_and_clone():
    model = by_hand(concentration=2.5)
    table = Rankings.from_orders([["tea"]], items=FOUR)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict_next(table), model.predict_next(table)
    )
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "gibbs"}, "sampler='gibbs' must be"),
        ({"prior_strength": 0.0}, "prior_strength"),
        ({"prior_rate": [1.0, -1.0]}, "prior_rate"),
        ({"sampler": "beta-gibbs", "assignments": "parallel"}, "one ranking after another"),
        ({"n_initial_clusters": 0}, "n_initial_clusters"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(DataError, match=message):
        quick(**options).fit(Rankings.from_orders([["a", "b"], ["b", "a"]]))


def test_bad_data_are_named():
    with pytest.raises(DataError, match="holds float64 values"):
        quick().fit(np.array([[0.5, 1.5]]))
    with pytest.raises(DataError, match="MallowsMixture takes any kind"):
        quick().fit(Rankings.from_orders([["a", "b"]], items=["a", "b", "c"], unlisted="unknown"))
    with pytest.raises(DataError, match=r"permix\.from_frame"):
        quick().fit(pd.DataFrame({"a": [1, 2], "b": [2, 1]}))


# scikit-learn's conventions, as for the other mixture: its checks make tables of random numbers, which are no
# orderings and refused; a variant reads a row of numbers as scores. EM counts iterations, which we do not.

CANNOT_APPLY = {
    check: reason
    for check, reason in CANNOT_APPLY_TO_CLUSTERERS.items()
    if check != "check_non_transformer_estimators_n_iter"
}
CANNOT_APPLY_TO_SCORES = {
    "check_clustering": "expects three clusters of points in the plane; two scores have only two orders",
    "check_fit2d_1feature": "one item has one ranking; such data are refused",
}


class FromScores(DPMallowsMixture):
    """Rows are scores of items, the highest is best."""

    def _checked(self, X, *, reset):
        scores = validate_data(self, X, reset=reset, dtype=np.float64)
        return Rankings.from_orders(np.argsort(-scores, axis=1, kind="stable"))


@conventions(
    quick(n_draws=5),
    cannot_apply=CANNOT_APPLY,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@conventions(
    FromScores(n_draws=8, n_burn_in=8, n_chains=1, random_state=0, progress=False),
    cannot_apply=CANNOT_APPLY_TO_SCORES,
)
def test_scikit_learn_conventions_with_rows_that_are_rankings(estimator, check):
    check(estimator)


def test_finds_what_is_there(tmp_path):
    made = make_generalized_mallows_mixture(100, 6, 2, theta=1.5, lengths=(2, 4), random_state=1)
    votes = made.data
    model = quick(n_draws=200).fit(votes)
    assert model.labels_.shape == (100,)
    assert permix.adjusted_rand(model.labels_, made.labels) > 0.9
    path = tmp_path / "fit.permix"
    model.save(path)
    back = permix.load(path)
    assert back.get_params() == model.get_params()
    np.testing.assert_array_equal(back.predict_next(votes), model.predict_next(votes))
    pd.testing.assert_frame_equal(back.summary(), model.summary())
    assert back.sample(9, random_state=0) == model.sample(9, random_state=0)


def test_works_with_scikit_learn():
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(5)[:3] for _ in range(60)])
    assert cross_val_score(quick(n_draws=20), orders, cv=3).max() < 0
    assert make_pipeline(quick(n_draws=20)).fit_predict(orders).shape == (60,)


LEAN = """
import sys
import permix
votes = permix.Rankings.from_orders([["a", "b", "c"], ["b", "a"], ["c"]] * 4)
permix.DPMallowsMixture(n_draws=4, n_burn_in=2, random_state=0, progress=False).fit(votes)
print([name for name in sys.modules if name.startswith("permix.") and "published" in name])
"""


def test_a_default_fit_does_not_import_what_was_published(forks, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LEAN)
    done = forks.run(program)
    assert done.stdout.strip() == "[]", done.stderr


def test_rankings_stay_rankings(monkeypatch):
    """Neither tables nor arrays take a way through preferences."""
    model = by_hand()

    def refused(*_):
        raise AssertionError("turned into preferences")

    monkeypatch.setattr(Preferences, "from_rankings", refused)
    np.testing.assert_array_equal(
        model.predict_proba(np.array([[3, 2]])),
        model.predict_proba(Rankings.from_orders([["milk", "water"]], items=FOUR[::-1])),
    )
