"""AngleMixture as users meet it, and the climbs behind it against plain NumPy."""

from __future__ import annotations

import math
import pickle
import signal
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import logsumexp, psi
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.validation import validate_data

import permix
from permix import AngleMixture, Preferences, Rankings
from permix.angle import ascent as angle_ascent
from permix.angle.ascent import climb, first_point
from permix.angle.components import AnglePrior, cap_of, largest_concentration
from permix.angle.data import AngleData
from permix.angle.fit import _found_by_others
from permix.angle.parameters import AngleParameters
from permix.angle.results import criteria
from permix.errors import ConvergenceWarning, DataError, ParameterError, PermixWarning
from tests.estimators.conventions import CANNOT_APPLY_TO_CLUSTERERS, conventions, few_draws
from tests.oracles import angle as oracle

INFERENCES = ("vi", "em", "sir", "quadrature")
PULLED = {"inference": "sir", "prior_strength": 1.0}


def quick(n_components=1, **options):
    options |= {"n_components": n_components}
    values = {"random_state": 0, "progress": False, "n_init": 3}
    return AngleMixture(**(values | few_draws(options, n_draws=30, n_burn_in=10)))


def silently(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        return model.fit(data)


@pytest.fixture(scope="module")
def planted():
    return permix.datasets.make_angle_mixture(400, 6, 2, concentration=12.0, random_state=1)


class FromScores(AngleMixture):
    """Rows are scores of items, the highest is best; two items get a third that nobody likes."""

    def _checked(self, X, *, reset):
        scores = validate_data(self, X, reset=reset, dtype=np.float64)
        if scores.shape[1] == 2:
            scores = np.hstack([scores, np.full((len(scores), 1), -1e9)])
        return np.argsort(-scores, axis=1, kind="stable")


@conventions(
    quick(1),
    cannot_apply=CANNOT_APPLY_TO_CLUSTERERS,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@conventions(
    FromScores(2, n_init=2, random_state=0, progress=False),
    cannot_apply={
        "check_fit2d_1feature": "one item has one ranking; such data are refused",
        "check_clustering": "expects three clusters of points in the plane; two scores have only two orders",
    },
)
def test_scikit_learn_conventions_with_rows_that_are_rankings(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        check(estimator)


# Maximum likelihood of one component.


def drawn(t, n, kappa, seed=0):
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(t)
    direction -= direction.mean()
    weights = np.exp(kappa * oracle.standardized(t) @ direction / np.linalg.norm(direction))
    return oracle.orders(t)[rng.choice(len(weights), n, p=weights / weights.sum())]


def mean_of(orders):
    t = orders.shape[1]
    y = np.empty(orders.shape)
    np.put_along_axis(y, orders, np.broadcast_to(oracle.scores(t), orders.shape).copy(), axis=1)
    return y.mean(axis=0)


@pytest.mark.parametrize(("t", "kappa"), [(3, 1.0), (4, 3.0), (5, 10.0), (3, 9.0)])
def test_exact_maximum_likelihood(t, kappa):
    orders = drawn(t, 200, kappa)
    model = silently(quick(inference="em", normalizer="exact"), orders)
    tilts, mean = model.concentrations_[0] * model.directions_[0], mean_of(orders)
    y = oracle.standardized(t)
    expected = np.exp(y @ tilts - oracle.exact_log_sum(tilts)) @ y
    np.testing.assert_allclose(expected, mean, atol=2e-5)
    basis = oracle.plane(t)
    best = optimize.minimize(
        lambda x: oracle.exact_log_sum(x @ basis) - mean @ (x @ basis), np.zeros(t - 1), tol=1e-12
    )
    assert float(model.log_likelihood_) == pytest.approx(-200 * best.fun, abs=1e-6)
    # The approximate normalizer has its maximum elsewhere.
    other = silently(quick(inference="em", normalizer="vmf"), orders)
    elsewhere = other.concentrations_[0] * other.directions_[0]
    if kappa > 2.0:
        assert 200 * (mean @ elsewhere - oracle.exact_log_sum(elsewhere)) < -200 * best.fun - 1e-4


@pytest.mark.parametrize(("t", "kappa"), [(3, 1.0), (4, 3.0), (6, 5.0)])
def test_approximate_maximum_likelihood_is_equation_3(t, kappa):
    orders = drawn(t, 150, kappa)
    model = silently(quick(inference="em", normalizer="vmf"), orders)
    mean = mean_of(orders)
    r = float(np.linalg.norm(mean))
    np.testing.assert_allclose(model.directions_[0], mean / r, atol=1e-12)
    assert oracle.ratio(0.5 * (t - 3), model.concentrations_[0]) == pytest.approx(r, rel=1e-10)
    assert model.concentrations_[0] != pytest.approx(r * (t - 1 - r * r) / (1 - r * r), rel=1e-4)


def test_the_guard_keeps_probabilities_below_one():
    orders = np.tile([[2, 0, 1, 3, 4]], (30, 1))
    model = quick(inference="em", normalizer="vmf")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(orders)
    assert any("group 1: the von Mises–Fisher normalizer would give" in str(one.message) for one in seen)
    assert model.score_samples(orders[:1])[0] == pytest.approx(0.0, abs=1e-6)
    assert model.concentrations_[0] == pytest.approx(largest_concentration(5), rel=1e-9)
    without = silently(quick(inference="em", normalizer="exact"), orders)
    assert -1e-3 < without.score_samples(orders[:1])[0] <= 0.0


# Mixtures.


def naive_em(y, weights, directions, kappas, n_passes):
    """EM under the approximate normalizer, by the book."""
    t = y.shape[1]
    history = []
    for _ in range(n_passes):
        logs = np.log(weights) + (kappas[:, None] * directions @ y.T).T - oracle.vmf_log_sum(t, kappas)
        history.append(float(logsumexp(logs, axis=1).sum()))
        p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        sums = p.T @ y
        lengths = np.linalg.norm(sums, axis=1)
        directions = sums / lengths[:, None]
        kappas = np.array(
            [
                optimize.brentq(
                    lambda k, r=r: oracle.ratio(0.5 * (t - 3), k) - r, 1e-9, 1e4, xtol=1e-12, rtol=1e-12
                )
                for r in lengths / p.sum(axis=0)
            ]
        )
        caps = [cap_of(direction, oracle.scores(t)) for direction in directions]
        assert np.all(kappas < caps)
        weights = p.mean(axis=0)
    return history


@pytest.fixture(scope="module")
def mixed_rows():
    orders = np.vstack([drawn(5, 60, 6.0, seed=1), drawn(5, 40, 5.0, seed=2)])
    return Rankings.from_orders(orders, n_items=5)


def start_tilts(k, t, seed=3):
    tilts = np.random.default_rng(seed).standard_normal((k, t))
    return 3.0 * (tilts - tilts.mean(axis=1, keepdims=True))


def test_em_is_em(mixed_rows):
    data = AngleData(mixed_rows, 1)
    settings = AngleParameters(2, inference="em", normalizer="vmf")
    distribution = first_point(start_tilts(2, 5), data, settings, AnglePrior.of(settings, data.items))
    run = climb(distribution, data, 12, 0.0)
    start = distribution.components
    y = data.dense()
    naive = naive_em(y, start.weights, start.directions, start.concentrations, len(run.history))
    np.testing.assert_allclose(run.history, naive, rtol=1e-9)
    assert np.all(np.diff(run.history) > -1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_exact_em_never_falls(mixed_rows, k):
    data = AngleData(mixed_rows, 1)
    settings = AngleParameters(k, inference="em", normalizer="exact")
    distribution = first_point(start_tilts(k, 5), data, settings, AnglePrior.of(settings, data.items))
    run = climb(distribution, data, 200, 1e-12)
    assert np.all(np.diff(run.history) > -1e-9)
    found = run.point.components
    logs = np.log(found.weights) + data.dense() @ found.tilts.T - oracle.exact_log_sum(found.tilts)
    assert run.objective == pytest.approx(logsumexp(logs, axis=1).sum(), rel=1e-10)
    # At the maximum every component has the mean of its members.
    p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    y = oracle.standardized(5)
    for g in range(k):
        mean = p[:, g] @ data.dense() / p[:, g].sum()
        expected = np.exp(y @ found.tilts[g] - oracle.exact_log_sum(found.tilts[g])) @ y
        np.testing.assert_allclose(expected, mean, atol=2e-3)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_evidence_bound_never_falls(mixed_rows, k):
    data = AngleData(mixed_rows, 1)
    settings = AngleParameters(k, inference="vi", normalizer="vmf", prior_shape=2.0, prior_rate=0.2)
    distribution = first_point(start_tilts(k, 5), data, settings, AnglePrior.of(settings, data.items))
    run = climb(distribution, data, 300, 1e-12)
    assert not run.point.guarded.any()
    assert np.all(np.diff(run.history) > -1e-7)
    assert run.history[-1] > run.history[0]


TINY = (((0, 1, 2), True), ((0, 2, 1), True), ((2, 1, 0), True), ((2, 0, 1), True), ((0, 1, 2), True))


def test_the_evidence_bound_is_what_equation_14_says():
    """K = 2, t = 3: every expectation under q by plain quadrature; and all labels for the evidence."""
    orders = np.array([row for row, _ in TINY])
    options = {"inference": "vi", "prior_shape": 3.0, "prior_rate": 0.8, "pseudo_count": 1.3}
    model = silently(quick(2, **options), orders)
    q = model._fit.variational
    prior = oracle.Prior(3.0, 0.8)
    y = oracle.standardized(3)[[int(np.flatnonzero(oracle.compatible(3, *row))[0]) for row in TINY]]
    theta, sphere = oracle.sphere(3, 60)
    rho, divergence = np.empty((len(y), 2)), 0.0
    for g in range(2):
        distribution = stats.gamma(q.shapes[g], scale=1 / q.rates[g])
        kappa = np.exp(np.linspace(math.log(distribution.ppf(1e-13)), math.log(distribution.isf(1e-14)), 600))
        weights = (np.gradient(np.log(kappa)) * kappa * distribution.pdf(kappa))[:, None] * sphere
        about = q.lengths[g] * kappa
        log_theta = about[:, None] * (theta @ q.directions[g]) - oracle.log_moment(3, about)[:, None]
        weights = weights * np.exp(log_theta)
        logs = kappa[:, None, None] * (theta @ y.T) - oracle.vmf_log_sum(3, kappa)[:, None, None]
        rho[:, g] = np.tensordot(weights, logs, axes=2)
        log_q = log_theta + distribution.logpdf(kappa)[:, None]
        divergence += float((weights * (log_q - prior.log_density(kappa, theta))).sum())
        beta = stats.beta(q.counts[g], q.counts.sum() - q.counts[g])
        log_weight = integrate.quad(lambda x, beta=beta: beta.pdf(x) * math.log(x), 0, 1)[0]
        assert log_weight == pytest.approx(psi(q.counts[g]) - psi(q.counts.sum()), rel=1e-6)
        rho[:, g] += log_weight
    beta, beta0 = stats.beta(*q.counts), stats.beta(1.3, 1.3)
    divergence += integrate.quad(lambda x: beta.pdf(x) * (beta.logpdf(x) - beta0.logpdf(x)), 0, 1)[0]
    direct = float(logsumexp(rho, axis=1).sum()) - divergence
    assert model.elbo_ == pytest.approx(direct, abs=2e-5)
    # The bound is below the evidence of the mixture.
    grid = oracle.Grid(3, TINY, prior, "vmf", low=1e-3, high=60.0, n_kappa=300, n_sphere=60)
    evidence = grid.labelings(1.3)[2]
    assert model.elbo_ < evidence
    assert evidence - model.elbo_ < 2.0
    without_entropy = float(rho.max(axis=1).sum()) - divergence
    assert model.elbo_ != pytest.approx(without_entropy, abs=1e-3)


def test_finds_what_is_there(planted):
    for inference in ("vi", "em"):
        model = silently(quick(2, inference=inference), planted.data)
        agree = permix.adjusted_rand(model.labels_, planted.labels)
        assert agree > 0.8
        assert np.all(np.diff(model.weights_) <= 0)
        assert model.converged_
        assert model.centers_.is_full
    assert model.normalizer_ == "exact"
    assert float(model.log_likelihood_) == pytest.approx(model.score(planted.data) * 400, rel=1e-9)


@pytest.mark.parametrize("inference", INFERENCES)
def test_same_seed_same_fit_whatever_the_threads(planted, inference, monkeypatch):
    monkeypatch.setattr("permix.angle.data.PART_ENTRIES", 300)
    part = planted.data[:120]
    one, two, other = (
        silently(quick(2, inference=inference, **options), part)
        for options in ({"n_jobs": 1}, {"n_jobs": 2}, {"n_jobs": 1, "random_state": 9})
    )
    for name in ("weights_", "directions_", "concentrations_", "history_", "labels_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert not np.array_equal(one.history_[:1], other.history_[:1])


def test_large_data_are_tried_in_part(monkeypatch, planted):
    monkeypatch.setattr(angle_ascent, "TRIAL_ENTRIES", 600)
    model = silently(quick(2, inference="em"), planted.data)
    whole = silently(quick(2, inference="em", n_init=1), planted.data)
    assert float(model.log_likelihood_) == pytest.approx(float(whole.log_likelihood_), abs=0.5)
    assert model._fit.start_objectives.shape == (3,)


@pytest.mark.parametrize("inference", INFERENCES)
def test_counts_are_agents(planted, inference):
    part = planted.data[:60]
    options = {"inference": inference, "normalizer": "vmf"}
    apart, merged = (silently(quick(1, **options), data) for data in (part, part.collapse()))
    np.testing.assert_allclose(apart.concentrations_, merged.concentrations_, rtol=1e-9)
    np.testing.assert_allclose(apart.directions_, merged.directions_, atol=1e-12)
    merged_rows = part.collapse()
    scores = apart.score_samples(part).mean(), apart.score_samples(merged_rows) @ merged_rows.counts / 60
    assert scores[0] == pytest.approx(scores[1])


def test_a_posterior_has_intervals_and_em_has_none(planted):
    part = planted.data[:80]
    for inference in ("vi", "sir", "quadrature"):
        model = silently(quick(2, inference=inference), part)
        summary, table = model.summary(), model.consensus(0.8)
        assert (summary["low"] <= summary["concentration"]).all()
        assert (summary["concentration"] <= summary["high"]).all()
        assert list(table.columns) == [
            "group",
            "item",
            "rank",
            "score",
            "low",
            "high",
            "rank_low",
            "rank_high",
        ]
        assert (table["low"] <= table["high"]).all()
        wider = model.consensus(0.95)
        assert ((wider["high"] - wider["low"]) >= (table["high"] - table["low"]) - 1e-12).all()
        assert model.posterior_["posterior"]["concentrations"].dims == ("chain", "draw", "group")
        assert model.summary()["agents"].sum() == 80
        if model.normalizer_ == "vmf":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PermixWarning)
            found = model.criteria(part)
            assert found.dic == model.dic(part)
        assert found.dic_parameters == pytest.approx(found.waic_parameters, rel=1.0)
    model = silently(quick(2, inference="em"), part)
    assert list(model.consensus().columns) == ["group", "item", "rank", "score"]
    with pytest.raises(DataError, match="not a posterior"):
        model.posterior_  # noqa: B018
    assert not hasattr(model, "posterior_")
    with pytest.raises(DataError, match="aic or bic"):
        model.dic(part)
    total = float(model.log_likelihood_)
    assert model.aic(part) == pytest.approx(2 * 11 - 2 * total)
    assert model.bic(part) == pytest.approx(math.log(80) * 11 - 2 * total)


def test_criteria_against_their_definitions():
    """DIC and WAIC of one component, with the same draws."""
    orders = drawn(4, 40, 3.0)
    model = silently(quick(1, inference="quadrature", n_draws=300), orders)
    draws = model._fit.draws.arrays
    tilts = draws["concentrations"][0, :, 0, None] * draws["directions"][0, :, 0]
    y = oracle.standardized(4)[
        [int(np.flatnonzero((oracle.orders(4) == row).all(axis=1))[0]) for row in orders]
    ]
    logs = tilts @ y.T - oracle.vmf_log_sum(4, draws["concentrations"][0, :, 0])[:, None]
    predictive = (np.logaddexp.reduce(logs, axis=0) - math.log(300)).sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        found = criteria(model._fit, Rankings.from_orders(orders, n_items=4))
    assert found.dic == pytest.approx(-4 * logs.sum(axis=1).mean() + 2 * predictive, rel=1e-9)
    p_waic = logs.var(axis=0, ddof=1).sum()
    assert found.waic == pytest.approx(-2 * predictive + 2 * p_waic, rel=1e-9)
    assert found.dic != pytest.approx(-2 * predictive, abs=1.0)  # without a penalty
    assert found.waic_parameters == pytest.approx(p_waic, rel=1e-9)
    assert 1.0 < found.dic_parameters < 6.0  # three parameters


def test_the_approximation_is_not_compared(planted):
    """Its probabilities do not sum to one, and it would win for that alone."""
    part = planted.data[:60]
    approximate = silently(quick(2, inference="em", normalizer="vmf"), part)
    proper = silently(quick(2, inference="em"), part)
    assert proper.score(part) == pytest.approx(proper.score_samples(part).mean())
    for asked in ("score", "aic", "bic", "dic", "waic", "criteria"):
        with pytest.raises(ParameterError, match="'vmf' must be left out where models are compared"):
            getattr(approximate, asked)(part)


def test_ctrl_c_keeps_the_best_start(planted, monkeypatch):
    calls = []
    seeded = angle_ascent.seeded_tilts

    def interrupted(*arguments):
        calls.append(None)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return seeded(*arguments)

    monkeypatch.setattr(angle_ascent, "seeded_tilts", interrupted)
    with pytest.warns(PermixWarning, match="interrupted: this is the best so far"):
        model = quick(2, n_init=50, inference="em").fit(planted.data)
    reached = model._fit.start_objectives
    assert len(reached) == 3
    assert model._fit.interrupted
    assert float(model.log_likelihood_) == pytest.approx(reached.max(), rel=1e-9)
    handler = signal.getsignal(signal.SIGINT)
    assert handler is signal.default_int_handler


def test_ctrl_c_during_stochastic_em(monkeypatch):
    from permix.angle.gibbs.state import AngleState

    sweep, calls = AngleState.sweep, []

    def interrupted(self, *arguments, **options):
        calls.append(None)
        if len(calls) == 20:
            signal.raise_signal(signal.SIGINT)
        return sweep(self, *arguments, **options)

    monkeypatch.setattr(AngleState, "sweep", interrupted)
    rows = Rankings.from_orders([[0, 1], [1, 2, 0], [2]] * 4, n_items=4, unlisted="unknown")
    with pytest.warns(PermixWarning, match="interrupted"):
        model = quick(1, inference="em", n_draws=5000).fit(rows)
    assert len(model.history_) == 20


def test_stopping_too_early_is_remarked(planted):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = quick(3, max_iter=2, inference="em").fit(planted.data)
    assert not model.converged_


def test_a_poor_normalizer_is_remarked():
    with pytest.warns(PermixWarning, match=r"off by up to [+-]\d\.\d+ nats"):
        quick(1, inference="em", normalizer="vmf").fit(drawn(6, 300, 25.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PermixWarning)
        exact = quick(1, inference="em").fit(drawn(6, 300, 25.0))
        quick(1, inference="em", normalizer="vmf").fit(drawn(6, 300, 1.0))
    assert [float(error) for error in exact.normalizer_errors_] == [0.0]


# Data.


def test_arrays_are_orderings(planted):
    orders = np.array(planted.data.orders[:150])
    by_array, by_table = silently(quick(2), orders), silently(quick(2), Rankings.from_orders(orders))
    np.testing.assert_array_equal(by_array.weights_, by_table.weights_)
    assert by_array.n_features_in_ == 6
    np.testing.assert_array_equal(by_array.predict(orders), by_table.predict(orders))
    with pytest.raises(ValueError, match="expecting 6 features"):
        by_array.predict(orders[:, :2])


def test_new_data_are_read_by_name():
    votes = Rankings.from_orders([["tea", "milk", "water"]] * 5 + [["water", "milk", "tea"]] * 3)
    model = silently(quick(2, inference="em", normalizer="vmf"), votes)
    other = Rankings.from_orders([["water", "milk", "tea"], ["tea", "milk", "water"]])
    assert model.predict(other).tolist() == [1, 0]
    with pytest.raises(DataError, match="juice"):
        model.predict(Rankings.from_orders([["milk", "juice", "tea"]]))
    rated = Preferences.from_ratings([("anna", "milk", 5), ("anna", "tea", 2)])  # nothing about the water
    short = Rankings.from_orders([["milk", "tea"]], items=model.items_, unlisted="unknown")
    np.testing.assert_allclose(model.predict_proba(rated), model.predict_proba(short))
    with pytest.raises(DataError, match=r"compares pairs \('milk' ≻ 'tea'\)"):
        model.predict_proba(Preferences.from_pairs([(0, "milk", "tea")]))


@pytest.mark.parametrize("inference", INFERENCES)
def test_probabilities_are_bayes_rule(inference, planted):
    model = silently(quick(2, inference=inference), planted.data[:100])
    rows = Rankings.from_orders(
        [[0, 1, 2, 3, 4, 5], [2, 0], [5, 4, 3], [1]],
        n_items=6,
        unlisted=["below", "unknown", "below", "unknown"],
    )
    masks = [((0, 1, 2, 3, 4, 5), True), ((2, 0), False), ((5, 4, 3), True), ((1,), False)]
    components = model._fit.components
    weights = np.exp(components.tilts @ oracle.standardized(6).T - components.log_sums[:, None])
    joint = np.array(
        [components.weights * weights[:, oracle.compatible(6, *mask)].sum(axis=1) for mask in masks]
    )
    found = model.predict_proba(rows)
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), atol=1e-9)
    np.testing.assert_array_equal(model.predict(rows), found.argmax(axis=1))
    plug_in = model.score_samples(rows, method="plug-in")
    np.testing.assert_allclose(plug_in, np.log(joint.sum(axis=1)), atol=1e-9)
    assert not np.allclose(found, components.weights, atol=0.05)


def test_the_mixture_is_sampled():
    model = silently(quick(2, inference="em"), np.vstack([drawn(4, 80, 5.0, 1), drawn(4, 60, 4.0, 2)]))
    seen, labels = model.sample(30_000, random_state=1, return_labels=True)
    components = model._fit.components
    weights = np.exp(oracle.standardized(4) @ components.tilts.T - oracle.exact_log_sum(components.tilts))
    exact = weights @ components.weights
    codes = {tuple(order): index for index, order in enumerate(oracle.orders(4).tolist())}
    counts = np.bincount([codes[tuple(row)] for row in seen.orders.tolist()], minlength=24)
    error = np.sqrt(exact * (1 - exact) / 30_000)
    assert np.abs((counts / 30_000 - exact) / error).max() < 4.5
    assert np.abs((counts / 30_000 - weights.mean(axis=1)) / error).max() > 8  # components alike: found out
    assert abs((labels == 0).mean() - components.weights[0]) < 5 * math.sqrt(0.25 / 30_000)
    assert seen == model.sample(30_000, random_state=1)


def test_works_with_scikit_learn(planted):
    orders = np.array(planted.data.orders[:90])
    assert cross_val_score(quick(1), orders, cv=3).max() < 0
    assert clone(quick(3)).get_params()["n_components"] == 3
    model = silently(quick(2), orders)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(orders), model.predict(orders))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0 must be a whole number"),
        ({"n_components": 2.0}, "n_components"),
        ({"n_components": True}, "n_components"),
        ({"n_components": 7}, "n_components=7 is more than the 6 agents"),
        ({"inference": "magic"}, 'inference=\'magic\' must be "em", "sir", "vi" or "quadrature"'),
        ({"normalizer": "none"}, "normalizer='none'"),
        ({"bound": "loose"}, "bound='loose'"),
        ({"inference": "vi", "normalizer": "exact"}, "rests on the von Mises–Fisher normalizer"),
        ({"inference": "vi", "normalizer": "auto"}, "ask for it with normalizer='vmf'"),
        ({"inference": "quadrature", "normalizer": "exact"}, "use inference='em'"),
        ({"prior_shape": 0.0}, "prior_shape=0.0 must be a positive number"),
        ({"prior_rate": np.nan}, "prior_rate"),
        ({"prior_rate": "small"}, "prior_rate='small' must be a positive number"),
        ({"pseudo_count": -1.0}, "pseudo_count"),
        ({"prior_strength": 1.0}, "prior_strength needs a prior_direction"),
        (PULLED | {"prior_direction": [1, 2, 3]}, r"shape \(3,\).*each of the 6 items"),
        (PULLED | {"prior_direction": np.ones(6)}, "not all equal"),
        (PULLED | {"prior_direction": [1, 2, 3, np.nan, 4, 5]}, "finite"),
        (PULLED | {"prior_direction": {"a": 1.0}}, "for every item and for no other"),
        (PULLED | {"prior_direction": "abcdef"}, "must be scores of the items"),
        ({"tol": -1.0}, "tol=-1.0 must be a number, 0 or more"),
        ({"n_draws": 0}, "n_draws"),
        ({"n_thin": 0}, "n_thin"),
        ({"n_chains": 0}, "n_chains"),
        ({"n_candidates": 1}, "n_candidates"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_init": 0}, "n_init"),
        ({"progress": "yes"}, "progress"),
    ],
)
def test_mistakes_are_named(options, message, planted):
    with pytest.raises(DataError, match=message):
        quick(**options).fit(planted.data[:6])


def test_too_many_items_for_exact_sums():
    orders = np.array([np.random.default_rng(seed).permutation(21) for seed in range(4)])
    with pytest.raises(DataError, match="up to 20 items"):
        quick(inference="em", normalizer="exact").fit(orders)
    assert silently(quick(inference="em"), orders).normalizer_ == "balanced"


def test_bad_data_are_named():
    model = quick(1)
    with pytest.raises(DataError, match="two items can be ranked"):
        model.fit(np.array([[0, 1], [1, 0]]))
    with pytest.raises(DataError, match="holds float64 values"):
        model.fit(np.array([[0.5, 1.5, 2.5]]))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.array([[0.0, np.nan, 1.0]]))
    with pytest.raises(DataError, match=r"row 2: .*listed twice"):
        model.fit(np.array([[0, 1, 2], [1, 1, 2]]))
    with pytest.raises(DataError, match="no rows"):
        model.fit(Rankings.from_orders(np.empty((0, 3), int), n_items=3))
    ties = Preferences.from_ratings(np.array([[3.0, 3.0, 1.0], [1.0, 2.0, 3.0]]), layout="matrix")
    with pytest.raises(DataError, match=r"tie|tied|equal"):
        model.fit(ties)
    with pytest.raises(DataError, match=r"permix.read\(path\)"):
        model.fit("votes.csv")


@pytest.mark.parametrize(
    ("inference", "normalizer"), [*((name, "vmf") for name in INFERENCES), ("em", "auto"), ("sir", "auto")]
)
def test_strange_data(inference, normalizer):
    """One voter; all alike; all rankings once (no direction at all); nothing but unknowns."""
    tables = [
        Rankings.from_orders([[2, 0, 1]], n_items=3),
        Rankings.from_orders([[2, 0, 1, 3]] * 6, n_items=4),
        Rankings.from_orders(oracle.orders(3), n_items=3),
        Rankings.from_orders([[0], [1], [2]], n_items=4, unlisted="unknown"),
        Rankings.from_orders([[0, 1, 2], [0, 1]], n_items=3),  # the last is implied
    ]
    for table in tables:
        for k in (1, 2):
            if k > table.n_agents:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                options = {"inference": inference, "normalizer": normalizer, "n_components": k}
                model = quick(**few_draws(options, table, n_draws=30, n_burn_in=10)).fit(table)
            assert np.isfinite(model.concentrations_).all()
            assert np.isfinite(model.directions_).all()
            np.testing.assert_allclose(model._fit.probabilities.sum(axis=1), 1.0)
            assert np.isfinite(model.score_samples(table)).all()
            assert model.consensus().shape[0] == k * table.n_items


def test_starts_that_divide_otherwise_do_not_find_a_group():
    """Three starts, agents counted as often as rows say."""

    class Shown:
        n_rows, counts = 4, np.array([3, 1, 5, 1])

        def posterior(self, tilts, offsets, *, probabilities):
            probabilities[:] = np.eye(3)[tilts]

    splits = ([0, 0, 1, 1], [2, 2, 0, 0], [2, 0, 1, 0])
    points = [SimpleNamespace(tilts=np.array(split), offsets=np.zeros(3)) for split in splits]
    best = np.array([0, 0, 1, 1])
    assert _found_by_others(points, Shown(), best).tolist() == [1.0, 1.0, 0.0]  # 3 of 4, and 5 of 6
    points[2].tilts = np.array([0, 1, 1, 0])  # 3 of 5, and 5 of 7
    assert _found_by_others(points, Shown(), best).tolist() == [1.0, 1.0, 0.0]
    points[2].tilts = np.array([0, 1, 0, 1])  # 3 of 9, and 5 of 9
    assert _found_by_others(points, Shown(), best).tolist() == [0.5, 0.5, 0.0]


def test_the_groups_of_several_starts_recur_and_those_of_one_are_not_known():
    far = [permix.Mallows(range(5), 0.15), permix.Mallows([4, 3, 2, 1, 0], 0.15, items=range(5))]
    rng = np.random.default_rng(3)
    votes = permix.Rankings.concat([camp.sample(60, rng) for camp in far])
    fits = [AngleMixture(2, n_init=n, random_state=0, progress=False).fit(votes)._fit for n in (3, 1)]
    assert fits[0].memberships().recur.tolist() == [1.0, 1.0]
    assert fits[1].memberships().recur is None
