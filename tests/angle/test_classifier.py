"""AngleClassifier: Bayes' rule over models of classes, by enumeration."""

from __future__ import annotations

import pickle
import signal
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.utils.validation import validate_data

import permix
from permix import AngleClassifier, AngleMixture, Rankings
from permix.angle import ascent as angle_ascent
from permix.errors import DataError, PermixWarning
from permix.runtime.seeds import seed_sequence
from tests.estimators.conventions import CANNOT_APPLY_TO_CLASSIFIERS, by_name, conventions, few_draws
from tests.oracles import angle as oracle

INFERENCES = ("vi", "em", "sir", "quadrature")


def quick(**options):
    class_weights = {name: options.pop(name) for name in ("class_weights",) if name in options}
    values = {"random_state": 0, "progress": False, "n_init": 2} | class_weights
    return AngleClassifier(**(values | few_draws(options, n_draws=40, n_burn_in=10)))


def silently(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


@pytest.fixture(scope="module")
def planted():
    return permix.datasets.make_angle_mixture(240, 5, 2, concentration=6.0, random_state=4)


class FromScores(AngleClassifier):
    """Rows are scores of items, the highest is best; two items get a third that nobody likes."""

    def _checked(self, X, *, reset):
        scores = validate_data(self, X, reset=reset, dtype=np.float64)
        if scores.shape[1] == 2:
            scores = np.hstack([scores, np.full((len(scores), 1), -1e9)])
        return np.argsort(-scores, axis=1, kind="stable")


@conventions(
    quick(),
    cannot_apply=CANNOT_APPLY_TO_CLASSIFIERS,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@conventions(
    FromScores(random_state=0, progress=False),
    cannot_apply={
        "check_fit2d_1feature": "one item has one ranking; such data are refused",
        "check_classifiers_train": "expects points in the plane to be told apart, which have two orders only",
    },
)
def test_scikit_learn_conventions_with_rows_that_are_rankings(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        check(estimator)


@pytest.mark.parametrize("inference", ["em", "vi"])
@pytest.mark.parametrize("class_weights", ["shares", "equal"])
def test_probabilities_are_bayes_rule(inference, class_weights, planted):
    """Class models fitted one by one, and their densities of every ranking, by hand."""
    labels = np.array(["no", "yes"])[planted.labels]
    model = silently(quick(inference=inference, class_weights=class_weights), planted.data, labels)
    assert model.classes_.tolist() == ["no", "yes"]
    every = Rankings.from_orders(oracle.orders(5), items=planted.data.items)
    joint = []
    for name in model.classes_:
        members = planted.data[labels == name]
        alone = AngleMixture(1, **by_name({"inference": inference}), progress=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone.fit(members)
        share = (members.n_agents + 1) / 242 if class_weights == "shares" else 0.5
        if inference == "em":
            tilts = alone.concentrations_[0] * alone.directions_[0]
            density = np.exp(oracle.standardized(5) @ tilts - oracle.exact_log_sum(tilts))
        else:
            density = np.exp(alone.score_samples(every))
        joint.append(share * density)
    joint = np.array(joint).T
    exact = joint / joint.sum(axis=1, keepdims=True)
    found = model.predict_proba(every)
    np.testing.assert_allclose(found, exact, atol=1e-6)
    np.testing.assert_allclose(np.log(found), model.predict_log_proba(every), atol=1e-9)
    assert model.predict(every).tolist() == model.classes_[exact.argmax(axis=1)].tolist()
    # Without the shares, or without the densities, it is another rule.
    if class_weights == "shares":
        flat = joint / joint.sum(axis=0)
        assert not np.allclose(found, flat / flat.sum(axis=1, keepdims=True), atol=1e-3)
    assert np.abs(found - model.class_prior_).max() > 0.3


def test_incomplete_rankings_are_summed_over(planted):
    model = silently(quick(inference="em"), planted.data, planted.labels)
    rows = Rankings.from_orders(
        [[2, 0], [4, 1, 3], [0]], items=planted.data.items, unlisted=["unknown", "below", "below"]
    )
    masks = [((2, 0), False), ((4, 1, 3), True), ((0,), True)]
    joint = np.empty((3, 2))
    for k in range(2):
        tilts = model.concentrations_[k] * model.directions_[k]
        density = np.exp(oracle.standardized(5) @ tilts - oracle.exact_log_sum(tilts))
        for row, mask in enumerate(masks):
            joint[row, k] = model.class_prior_[k] * density[oracle.compatible(5, *mask)].sum()
    np.testing.assert_allclose(model.predict_proba(rows), joint / joint.sum(axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("inference", INFERENCES)
def test_every_inference_tells_classes_apart(inference, planted):
    train, test = planted.data[:160], planted.data[160:]
    model = silently(quick(inference=inference), train, planted.labels[:160])
    assert model.score(test, planted.labels[160:]) > 0.8
    area = roc_auc_score(planted.labels[160:], model.predict_proba(test)[:, 1])
    assert area > 0.9
    shuffled = np.random.default_rng(0).permutation(planted.labels[:160])
    none = silently(quick(inference=inference), train, shuffled)
    assert none.score(test, planted.labels[160:]) < 0.75
    again = silently(quick(inference=inference, n_jobs=2), train, planted.labels[:160])
    np.testing.assert_array_equal(again.predict_proba(test), model.predict_proba(test))


def test_kinds_within_a_class(planted):
    """Two kinds against one in between: a single direction each cannot tell, two kinds can."""
    rng = np.random.default_rng(3)
    ends = np.vstack([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
    mixed = ends[rng.integers(2, size=120)]
    middle = np.array([rng.permutation(5) for _ in range(120)])
    X, y = np.vstack([mixed, middle]), np.repeat([0, 1], 120)
    one = silently(quick(inference="em"), X, y).score(X, y)
    two = silently(quick(inference="em", n_components=2), X, y).score(X, y)
    assert two > one + 0.1


def test_counts_are_agents(planted):
    votes = planted.data[planted.labels == 0][:60].collapse()
    others = planted.data[planted.labels == 1][:60].collapse()
    table = Rankings.concat([votes, others])
    y = np.repeat([0, 1], [len(votes), len(others)])
    merged = silently(quick(inference="em"), table, y)
    apart = silently(quick(inference="em"), table.expand(), np.repeat(y, table.counts))
    np.testing.assert_allclose(merged.concentrations_, apart.concentrations_, rtol=1e-6)
    np.testing.assert_allclose(merged.class_prior_, apart.class_prior_)
    assert merged.score(table, y) == pytest.approx(apart.score(table.expand(), np.repeat(y, table.counts)))


def test_same_seed_same_classes(planted):
    part, labels = planted.data[:80], planted.labels[:80]
    one, two = (silently(quick(inference="sir", normalizer="vmf"), part, labels) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(part), two.predict_proba(part))
    spawned = seed_sequence(0).spawn(2)
    assert spawned[0].spawn_key != spawned[1].spawn_key  # classes have numbers of their own


def test_ctrl_c_ends_all_classes(planted, monkeypatch):
    seeded, calls = angle_ascent.seeded_tilts, []

    def interrupted(*arguments):
        calls.append(None)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return seeded(*arguments)

    monkeypatch.setattr(angle_ascent, "seeded_tilts", interrupted)
    with pytest.warns(PermixWarning, match="interrupted: this is the best so far"):
        model = quick(n_components=2, n_init=50).fit(planted.data, planted.labels)
    assert [len(fit.start_objectives) for fit in model._fit.fits] == [3, 1]
    assert model.predict_proba(planted.data).shape == (240, 2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_works_with_scikit_learn(planted):
    orders = np.array(planted.data.orders[:90])
    assert cross_val_score(quick(inference="em"), orders, planted.labels[:90], cv=3).min() > 0.6
    model = silently(quick(), orders, planted.labels[:90])
    assert clone(model).get_params() == model.get_params()
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict(orders), model.predict(orders))


def test_mistakes_are_named(planted):
    part = planted.data[:20]
    with pytest.raises(DataError, match="one class only"):
        quick().fit(part, np.zeros(20, int))
    with pytest.raises(DataError, match=r"y has shape \(3,\), but there are 20 rows"):
        quick().fit(part, [0, 1, 0])
    with pytest.raises(DataError, match="requires y"):
        quick().fit(part, None)
    with pytest.raises(DataError, match="class_weights='odd'"):
        quick(class_weights="odd").fit(part, planted.labels[:20])
    with pytest.raises(DataError, match="class 'few': n_components=3 is more than the 2 agents"):
        quick(n_components=3).fit(part, ["few"] * 2 + ["many"] * 18)
    with pytest.raises(DataError, match="two items"):
        quick().fit(np.array([[0, 1], [1, 0]]), [0, 1])
    with pytest.raises(DataError, match="inference='magic'"):
        quick(inference="magic").fit(part, planted.labels[:20])
    with pytest.raises(ValueError, match="continuous"):
        quick().fit(part, np.linspace(0.1, 0.9, 20))
    model = silently(quick(), part, planted.labels[:20])
    with pytest.raises(DataError, match="juice"):
        model.predict(Rankings.from_orders([["juice", "milk", "tea"]]))
