"""MallowsMixture as users meet it."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import validate_data

import permix
from permix import Preferences, Rankings
from permix.errors import ConvergenceWarning, CycleError, DataError, PermixWarning
from permix.estimators.agent_answers import sample_rankings
from permix.mallows import predict as mallows_predict
from permix.mallows.estimator import MallowsMixture
from permix.mallows.results import warn_if_unsettled
from tests.estimators.conventions import CANNOT_APPLY_TO_CLUSTERERS, conventions
from tests.mallows.cases import fit_of, two_kinds


def quick(n_components=2, **options):
    return MallowsMixture(n_components, **({"n_init": 4, "random_state": 0, "progress": False} | options))


def by_hand(components=None):
    """An estimator that was not fitted but told what it found."""
    return MallowsMixture._from_fit(fit_of(components or two_kinds()))


@pytest.fixture(scope="module")
def planted():
    centers = [[0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4], [2, 4, 0, 5, 1, 3]]
    return permix.datasets.make_mallows_mixture(
        900, 6, 3, dispersion=[0.3, 0.4, 0.2], weights=[0.5, 0.3, 0.2], centers=centers, random_state=8
    )


@pytest.fixture(scope="module")
def fitted(planted):
    return quick(3).fit(planted.data)


CANNOT_APPLY_TO_SCORES = {
    "check_clustering": "expects three clusters of points in the plane; two scores have only two orders",
    "check_fit2d_1feature": "one item has one ranking; such data are refused",
}


class FromScores(MallowsMixture):
    """Rows are scores of items, the highest is best."""

    def _checked(self, X, *, reset):
        scores = validate_data(self, X, reset=reset, dtype=np.float64)
        return Rankings.from_orders(np.argsort(-scores, axis=1, kind="stable"))


@conventions(
    quick(1, n_init=1),
    cannot_apply=CANNOT_APPLY_TO_CLUSTERERS,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@conventions(
    FromScores(2, n_init=2, random_state=0, progress=False),
    cannot_apply=CANNOT_APPLY_TO_SCORES,
)
def test_scikit_learn_conventions_with_rows_that_are_rankings(estimator, check):
    check(estimator)


def test_finds_what_is_there(fitted, planted):
    assert fitted.centers_ == Rankings.from_orders(planted.centers, n_items=6)
    np.testing.assert_allclose(fitted.weights_, [0.5, 0.3, 0.2], atol=5 * np.sqrt(0.25 / 900))
    np.testing.assert_allclose(fitted.dispersions_, [0.3, 0.4, 0.2], atol=0.06)
    # The labels agree as far as the true mixture itself can tell people apart.
    truth = permix.distributions.conditioning.components.MallowsComponents(
        tuple(range(6)), planted.weights, planted.centers, -np.log(planted.dispersions)
    )
    ideal = mallows_predict.predict_proba(truth, planted.data).argmax(axis=1)
    possible = permix.adjusted_rand(ideal, planted.labels)
    assert permix.adjusted_rand(fitted.labels_, planted.labels) > possible - 0.03


def test_what_a_fit_shows(fitted, planted):
    assert fitted.log_likelihood_.standard_error == 0.0
    assert fitted.converged_
    assert list(fitted.history_.columns) == ["log_likelihood", "standard_error"]
    assert len(fitted.history_) == fitted.n_iter_
    assert np.all(np.diff(fitted.history_["log_likelihood"]) > -1e-9)
    assert fitted.start_log_likelihoods_.shape == (4,)
    # The two are sums of the same terms in another order.
    assert fitted.log_likelihood_ - fitted.start_log_likelihoods_.max() >= -1e-9
    assert fitted.items_ == tuple(range(6))
    assert not hasattr(fitted, "n_features_in_")
    np.testing.assert_array_equal(fitted.labels_, fitted.predict(planted.data))
    assert float(fitted.log_likelihood_) == pytest.approx(900 * fitted.score(planted.data))
    assert [part.dispersion for part in fitted.components_] == pytest.approx(fitted.dispersions_)
    assert [part.center for part in fitted.components_] == [tuple(row) for row in fitted.centers_.orders]


def test_summary(fitted):
    table = fitted.summary()
    spread = ["dispersion", "expected_distance"]
    shares = ["share", "share_low", "share_high"]
    assert list(table.columns) == [*shares, "agents", *spread, "restarts_with_it", "agreement", "center"]
    assert (table["share_low"] < table["share"]).all()
    assert (table["share"] < table["share_high"]).all()
    assert (table["restarts_with_it"] >= 1).all()
    assert table.index.name == "group"
    assert table["agents"].sum() == pytest.approx(900)
    assert table["expected_distance"].tolist() == [part.expected_distance() for part in fitted.components_]
    assert table["center"][0] == "0 ≻ 1 ≻ 2 ≻ 3 ≻ 4 ≻ 5"


def test_same_seed_same_fit_whatever_the_threads(planted):
    part = planted.data[:200]
    first, second, other = (
        quick(n_jobs=1).fit(part),
        quick(n_jobs=3).fit(part),
        quick(random_state=7).fit(part),
    )
    np.testing.assert_array_equal(first.weights_, second.weights_)
    np.testing.assert_array_equal(first.start_log_likelihoods_, second.start_log_likelihoods_)
    assert first.centers_ == second.centers_
    assert not np.array_equal(first.start_log_likelihoods_, other.start_log_likelihoods_)


def test_counts_are_agents(planted):
    """Rows merged into counts say the same as rows one by one."""
    votes = planted.data[:400]
    apart, merged = quick(n_init=1).fit(votes), quick(n_init=1).fit(votes.collapse())
    assert len(merged.labels_) < len(apart.labels_)
    assert apart.score(votes) == pytest.approx(apart.score(votes.collapse()))
    assert merged.score(votes) == pytest.approx(float(merged.log_likelihood_) / 400)
    assert merged.score_samples(votes.collapse()).shape == merged.labels_.shape


def everybody(planted, n=60):
    """The same people, each speaking in another form: full, top, subset, levels, choice, comparisons."""
    complete, items = planted.complete, range(6)
    scores = 6.0 - np.argsort(complete[3 * n : 4 * n], axis=1)
    scores = np.ceil(scores / 2)
    scores[:, 0] = np.nan
    choices = [(i, row[0], row[:4]) for i, row in enumerate(complete[4 * n : 5 * n].tolist())]
    pairs = [
        (i, row[a], row[b])
        for i, row in enumerate(complete[5 * n : 6 * n].tolist())
        for a, b in ((0, 3), (1, 4), (1, 5))
    ]
    return Preferences.concat(
        [
            Preferences.from_rankings(Rankings.from_orders(complete[:n], items=items)),
            Preferences.from_rankings(Rankings.from_orders(complete[n : 2 * n, :3], items=items)),
            Preferences.from_rankings(
                Rankings.from_orders(complete[2 * n : 3 * n, ::2], items=items, unlisted="unknown")
            ),
            Preferences.from_ratings(scores, items=items, layout="matrix"),
            Preferences.from_choices(choices, items=items),
            Preferences.from_pairs(pairs, items=items),
        ]
    )


def test_all_kinds_of_preference_in_one_profile(planted):
    data = everybody(planted)
    model = quick(3, n_init=3).fit(data)
    assert len(model.labels_) == 360
    assert (model.history_["standard_error"] == 0.0).all()  # nor do rounds draw rankings
    assert model.log_likelihood_.standard_error == 0.0  # sums over a few items are exact
    found = {tuple(row) for row in model.centers_.orders.tolist()}
    assert sum(tuple(row) in found for row in planted.centers.tolist()) >= 2
    scores, errors = model.score_samples(data, return_error=True)
    np.testing.assert_array_equal(errors[:120], 0.0)
    error = np.hypot(model.log_likelihood_.standard_error, np.sqrt(np.sum(errors**2)))
    assert abs(scores.sum() - float(model.log_likelihood_)) <= 5 * error + 1e-9


def test_the_mixture_is_sampled_exactly():
    """Frequencies of all 24 rankings against the probabilities that the components give them."""
    components = two_kinds()
    model = by_hand(components)
    drawn, labels = model.sample(40_000, random_state=3, return_labels=True)
    again = model.sample(40_000, random_state=3)
    assert drawn == again
    kinds, counts = np.unique(drawn.orders, axis=0, return_counts=True)
    assert len(kinds) == 24
    density = [
        np.exp(part.log_prob(Rankings.from_orders(kinds, items=model.items_))) for part in model.components_
    ]
    exact = 0.7 * density[0] + 0.3 * density[1]

    def worst(shares):
        return np.abs((counts / 40_000 - shares) / np.sqrt(shares * (1 - shares) / 40_000)).max()

    assert worst(exact) < 4.5
    assert worst(0.5 * density[0] + 0.5 * density[1]) > 10  # the broken twin: all components alike
    assert abs(labels.mean() - 0.3) < 5 * np.sqrt(0.21 / 40_000)
    assert model.sample(0).orders.shape[0] == 0


def test_a_component_without_members_is_never_drawn():
    components = two_kinds()
    empty = type(components)(components.items, [1.0, 0.0], components.centers, components.decays)
    _, labels = sample_rankings(empty, 50, 0)
    assert labels.max() == 0


def test_answers_are_those_of_the_functions():
    model = by_hand()
    components = model._fit.components
    someone = Preferences.from_pairs([("anna", "milk", "tea"), ("bo", "tea", "water")], items=model.items_)
    np.testing.assert_array_equal(
        model.predict_proba(someone), mallows_predict.predict_proba(components, someone)
    )
    np.testing.assert_array_equal(
        model.predict_pairwise(someone), mallows_predict.predict_pairwise(components, someone)
    )
    pair = model.predict_pairwise(someone, [(0, "milk", "tea"), (1, "water", "tea")])
    np.testing.assert_allclose(pair, [1.0, 0.0])
    values, errors = model.predict_pairwise(someone, return_error=True)
    assert values.shape == errors.shape == (2, 4, 4)
    full = model.complete(someone)
    assert full.is_full
    assert full.agents.tolist() == ["anna", "bo"]
    ranks = full.ranks()
    assert ranks[0, 3] < ranks[0, 0]
    assert ranks[1, 0] < ranks[1, 2]
    _, summary = model.complete(someone, return_ranks=True)
    assert summary.mean.shape == (2, 4)
    drawn = model.sample_completions(someone, 5, random_state=1)
    assert drawn.orders.shape == (2, 5, 4)
    np.testing.assert_array_equal(drawn.orders, model.sample_completions(someone, 5, random_state=1).orders)
    assert drawn.to_rankings().is_full
    assert model.predict(someone).tolist() == model.predict_proba(someone).argmax(axis=1).tolist()


def test_new_data_are_read_by_name():
    model = by_hand()
    votes = Rankings.from_orders([["milk", "water", "coffee", "tea"]])  # items in another order
    assert model.predict(votes).tolist() == [1]
    fewer = Preferences.from_pairs([(0, "milk", "tea")])
    assert model.predict_proba(fewer).shape == (1, 2)
    with pytest.raises(DataError, match="does not know 'juice'"):
        model.predict(Rankings.from_orders([["milk", "juice"]]))
    with pytest.raises(DataError, match=r"puts everything it leaves out below"):
        model.predict(Rankings.from_orders([["milk", "tea"]], items=["milk", "tea", "coffee"]))
    # A row that lists all of its own table says nothing about the water.
    short, long = Rankings.from_orders([["milk", "tea"]]), Preferences.from_pairs([(0, "milk", "tea")])
    np.testing.assert_allclose(model.predict_proba(short), model.predict_proba(long))
    rated = Preferences.from_ratings([("anna", "milk", 5), ("anna", "tea", 2)])
    np.testing.assert_allclose(model.predict_proba(rated), model.predict_proba(long))


def test_data_that_must_be_read_first():
    import pandas as pd

    with pytest.raises(DataError, match=r"permix.read\(path\)"):
        MallowsMixture(2).fit("votes.csv")
    with pytest.raises(DataError, match=r"permix\.from_frame"):
        MallowsMixture(2).fit(pd.DataFrame({"a": [1, 2], "b": [2, 1]}))
    pairs = [(0, "a", "b"), (0, "b", "a"), (1, "a", "b")]
    with pytest.raises(DataError, match=r"data\[data.consistent\]"):
        MallowsMixture(1).fit(Preferences.from_pairs(pairs, on_cycle="keep"))


def test_arrays_are_orderings(planted):
    orders = np.array(planted.data.orders[:300])
    orders[::2, 4:] = -1
    by_array, by_table = quick().fit(orders), quick().fit(Rankings.from_orders(orders))
    np.testing.assert_array_equal(by_array.weights_, by_table.weights_)
    assert by_array.n_features_in_ == 6
    np.testing.assert_array_equal(by_array.predict(orders), by_table.predict(orders))
    assert by_table.predict(orders[:, :2]).shape == (300,)
    with pytest.raises(ValueError, match="expecting 6 features"):
        by_array.predict(orders[:, :2])
    again = by_array.fit(planted.data[:300])
    assert not hasattr(again, "n_features_in_")


def test_items_of_arrays_are_what_is_found():
    model = quick(1).fit(np.array([[30, 10, 20], [10, 30, 20], [30, 20, -1]]))
    assert model.items_ == (10, 20, 30)
    assert model.components_[0].center == (30, 10, 20)
    with pytest.raises(DataError, match="40"):
        model.predict(np.array([[40, 10, 20]]))


def test_save_and_load_give_the_same_model(fitted, planted, tmp_path):
    path = tmp_path / "votes.permix"
    fitted.save(path)
    back = permix.load(path)
    assert back.get_params() == fitted.get_params()
    assert back.centers_ == fitted.centers_
    np.testing.assert_array_equal(back.predict_proba(planted.data), fitted.predict_proba(planted.data))
    pd.testing.assert_frame_equal(back.summary(), fitted.summary())
    pd.testing.assert_frame_equal(back.history_, fitted.history_)
    assert back.log_likelihood_ == fitted.log_likelihood_
    assert back.sample(9, random_state=0) == fitted.sample(9, random_state=0)
    np.testing.assert_array_equal(back.fit(planted.data).weights_, fitted.weights_)  # and can be fitted again


def test_works_with_scikit_learn(planted):
    orders = np.array(planted.data.orders[:120])
    scores = cross_val_score(quick(1, n_init=1), orders, cv=3)
    assert scores.shape == (3,)
    assert scores.max() < 0
    pipeline = make_pipeline(quick(2, n_init=1))
    assert pipeline.fit_predict(orders).shape == (120,)
    copy = clone(quick(3))
    assert copy.get_params()["n_components"] == 3
    model = quick(1).fit(orders)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(orders), model.predict(orders))


def test_stopping_too_early_is_remarked(planted):
    with pytest.warns(ConvergenceWarning, match=r"log-likelihood .* after 2 iterations.*max_iter=2"):
        model = quick(3, max_iter=2).fit(planted.data)
    assert not model.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error", PermixWarning)
        quick(3).fit(planted.data[:300])
    with pytest.warns(PermixWarning, match="stopped early; kept the best"):
        warn_if_unsettled(fit_of(two_kinds(), interrupted=True, converged=False))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (quick(0), "n_components=0 must be a whole number"),
        (quick(2.0), "n_components"),
        (quick(True), "n_components"),
        (quick(n_init=0), "n_init"),
        (quick(max_iter=-1), "max_iter"),
        (quick(n_particles=1), "n_particles"),
        (quick(tol=-1.0), "tol"),
        (quick(min_dispersion=0.0), "min_dispersion"),
        (quick(center_search="global"), 'center_search=\'global\' must be "local" or "exact"'),
        (quick(progress="yes"), "progress"),
        (quick(7), "n_components=7 is more than the 6 agents"),
    ],
)
def test_mistakes_are_named(model, message, planted):
    with pytest.raises(DataError, match=message):
        model.fit(planted.data[:6])


def test_bad_data_are_named():
    model = quick(1)
    with pytest.raises(DataError, match="holds float64 values"):
        model.fit(np.array([[0.5, 1.5]]))
    with pytest.raises(DataError, match=r"row 2: .*listed twice"):
        model.fit(np.array([[0, 1], [1, 1]]))
    with pytest.raises(ValueError, match="2D array"):
        model.fit(np.array([0, 1, 2]))
    with pytest.raises(DataError, match="no rows"):
        model.fit(Rankings.from_orders(np.empty((0, 3), int), n_items=3))
    with pytest.raises(CycleError, match="a ≻ b ≻ a"):
        model.fit(Preferences.from_pairs([(0, "a", "b"), (0, "b", "a")], on_cycle="keep"))
    with pytest.raises(DataError, match="nothing to fit"):
        model.fit(Preferences.from_pairs([], items=["a", "b"], agents=["anna"]))


@pytest.mark.realdata
def test_sushi(data_folder):
    """5000 people: the maximum likelihood around the proven consensus (around Borda's ordering 0.2412)."""
    votes = permix.datasets.load_sushi("a", download=False).data
    model = quick(1).fit(votes)
    assert -np.log(model.dispersions_[0]) == pytest.approx(0.241924, abs=1e-6)
    assert model.components_[0].center == permix.kemeny(votes, method="exact").ranking


def test_one_voter_and_two_items():
    one = quick(1).fit(Rankings.from_orders([["b", "a"]]))
    assert one.components_[0].center == ("b", "a")
    assert one.dispersions_[0] == pytest.approx(one.min_dispersion)
    assert one.labels_.tolist() == [0]
