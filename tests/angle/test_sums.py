"""Sums over rankings behind mixtures of angle-based models: normalizers, E-steps and gradients."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest

import permix
from permix import AngleMixture, Rankings
from permix.angle import ascent as angle_ascent
from permix.angle import components as angle_components
from permix.angle import data as angle_data
from permix.angle.components import AngleComponents
from permix.angle.data import AngleData
from permix.angle.parameters import AngleParameters
from permix.angle.passes import sums as passes
from permix.distributions.angle.scores import standard_scores
from permix.errors import DataError
from tests.estimators.conventions import few_draws
from tests.oracles import angle as oracle


@cache
def voters(t, kind, sharpness=6.0):
    """Three groups; full rankings, top lists of any length, rankings of three items, or all of these."""
    if kind == "mixed":
        return Rankings.concat([voters(t, each, sharpness)[:100] for each in ("full", "lists", "subsets")])
    made = permix.datasets.make_angle_mixture(300, t, 3, concentration=sharpness * t, random_state=t)
    rng = np.random.default_rng(0)
    orders = made.data.orders.tolist()
    if kind == "lists":
        return Rankings.from_orders([row[: rng.integers(1, t + 1)] for row in orders], n_items=t)
    if kind == "subsets":
        shown = [set(rng.choice(t, 3, replace=False).tolist()) for _ in orders]
        rows = [[item for item in row if item in some] for row, some in zip(orders, shown, strict=True)]
        return Rankings.from_orders(rows, n_items=t, unlisted="unknown")
    return made.data


def all_of(t):
    """Every form of an observation: full rankings, top lists of each length, rankings of each subset."""
    for length in range(1, t + 1):
        yield f"{length} names", permutations(range(t), length), "below"
    for size in range(1, t):
        for some in combinations(range(t), size):
            yield f"the subset {some}", permutations(some), "unknown"


def total(model, t, rows, unlisted):
    table = Rankings.from_orders([list(row) for row in rows], n_items=t, unlisted=unlisted)
    return float(np.exp(model.score_samples(table)).sum())


def fitted(data, k, **options):
    options = few_draws({"n_components": k, **options}, data, n_draws=60, n_burn_in=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return AngleMixture(**options, random_state=0, progress=False).fit(data)


@pytest.mark.parametrize("kind", ["full", "lists", "subsets", "mixed"])
def test_balanced_probabilities_sum_to_what_their_error_says(kind):
    model = fitted(voters(5, kind), 2, normalizer="balanced")
    expected = model.weights_ @ np.exp([float(error) for error in model.normalizer_errors_])
    assert expected != pytest.approx(1.0, abs=1e-6)
    for name, rows, unlisted in all_of(5):
        assert total(model, 5, rows, unlisted) == pytest.approx(expected, rel=1e-9), name


def test_the_approximation_is_taken_by_name_alone():
    """Nothing that leaves ``normalizer`` out ends up with it, whatever the number of items."""
    assert AngleParameters().normalizer_for(20) == "exact"
    assert AngleParameters().normalizer_for(21) == "balanced"
    assert AngleParameters(inference="sir").normalizer_for(2000) == "balanced"
    with pytest.raises(DataError, match="What is left is normalizer='vmf'"):
        AngleParameters().normalizer_for(2001)
    assert AngleParameters(normalizer="vmf").normalizer_for(2001) == "vmf"
    for inference in ("vi", "quadrature"):
        for normalizer in ("auto", "exact", "balanced"):
            with pytest.raises(DataError, match="ask for it with normalizer='vmf'"):
                AngleParameters(inference=inference, normalizer=normalizer)
    assert AngleMixture().inference == permix.AngleClassifier().inference == "em"


def test_a_fit_by_the_approximation_warns():
    with pytest.warns(permix.errors.PermixWarning, match="von Mises–Fisher normalizer is off"):
        AngleMixture(2, normalizer="vmf", random_state=0, progress=False).fit(voters(5, "full"))


def mixture(t, k, kappa=6.0):
    rng = np.random.default_rng(t * k)
    directions = rng.normal(size=(k, t))
    directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return AngleComponents(
        tuple(range(t)), rng.dirichlet(np.ones(k)), directions, kappa * (1 + np.arange(k)), "exact"
    )


def enumerated(components, data):
    """Log-likelihood and Σ p E[y | list], Σ p of the E-step, over all full rankings that agree."""
    t = components.n_items
    y = oracle.standardized(t)
    joint = np.exp(y @ components.tilts.T + components.offsets)
    log_likelihood, sums, masses = (
        0.0,
        np.zeros((t, components.n_components)),
        np.zeros(len(components.weights)),
    )
    for row, n, count in zip(data.orders.tolist(), data.lengths.tolist(), data.counts.tolist(), strict=True):
        mine = joint[oracle.compatible(t, tuple(row[:n]), True)]
        log_likelihood += count * np.log(mine.sum())
        mine = mine / mine.sum()
        sums += count * y[oracle.compatible(t, tuple(row[:n]), True)].T @ mine
        masses += count * mine.sum(axis=0)
    return log_likelihood, sums, masses


@pytest.mark.parametrize(("t", "k"), [(4, 1), (5, 3), (6, 2)])
def test_the_e_step_of_top_lists_is_exact(t, k, monkeypatch):
    data = voters(t, "lists")[:40]
    data = data._replaced(counts=np.random.default_rng(1).integers(1, 5, size=40))
    components = mixture(t, k)
    truth = enumerated(components, data)
    found = angle_data.TopLists(data).weighed(components.tilts, components.offsets)
    for mine, other in zip(found, truth, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-10)
    monkeypatch.setattr(passes, "THREADED_ITEMS", 2)
    again = angle_data.TopLists(data).weighed(components.tilts, components.offsets)
    np.testing.assert_array_equal(again[1], found[1])
    # Lists that say nothing about what they leave out: another E-step.
    twin = angle_data.TopLists(data._replaced(counts=np.ones(40, np.int64)))
    assert not np.allclose(twin.weighed(components.tilts, components.offsets)[1], truth[1], atol=0.1)


def test_the_e_step_survives_lists_of_probability_zero():
    """κ so large that the table underflows: what is left out follows the scores, and numbers stay finite."""
    components = mixture(6, 2, kappa=5000.0)
    data = Rankings.from_orders(
        [[int(item)] for item in components.orders[0][::-1]] + [[int(x)] for x in components.orders[1][::-1]],
        n_items=6,
    )
    value, sums, masses = angle_data.TopLists(data).weighed(components.tilts, components.offsets)
    assert np.isfinite(value)
    assert masses.sum() == pytest.approx(12.0)
    np.testing.assert_allclose(sums.sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["full", "lists"])
@pytest.mark.parametrize(("t", "k"), [(4, 1), (5, 3), (6, 5)])
def test_the_way_uphill_is_the_gradient(t, k, kind):
    data = voters(t, kind)[:40]
    data = data._replaced(counts=np.random.default_rng(1).integers(1, 5, size=40))
    components = mixture(t, k)
    total, sums, masses = enumerated(components, data)
    y = oracle.standardized(t)
    expected = np.exp(y @ components.tilts.T - components.log_sums).T @ y
    made = (angle_data.TopLists if kind == "lists" else AngleData)(data)
    found = made.uphill(components.tilts, np.log(components.weights), "exact")
    slope = sums.T - masses[:, None] * expected
    for mine, other in zip(found, (total, slope, masses), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9)
    # EM's direction, for sums that were not normalized, is another one.
    assert not np.allclose(found[1], sums.T, atol=0.1)


def test_the_way_uphill_survives_tables_that_underflow():
    components = mixture(6, 2, kappa=5000.0)
    data = Rankings.from_orders([[int(x)] for x in components.orders[0][::-1]], n_items=6)
    total, slope, masses = angle_data.TopLists(data).uphill(
        components.tilts, np.log(components.weights), "exact"
    )
    assert np.isfinite(total)
    assert masses.sum() == pytest.approx(6.0)
    np.testing.assert_allclose(slope.sum(axis=1), 0.0, atol=1e-9)


def test_balanced_sums_on_the_way_lead_to_the_exact_maximum(monkeypatch):
    data = voters(6, "full", 2.0)
    truth = fitted(data, 3, tol=1e-10, max_iter=3000)
    monkeypatch.setattr(angle_components, "CHEAP_ITEMS", 3)
    calls = []
    real = angle_ascent.climb
    monkeypatch.setattr(
        angle_ascent,
        "climb",
        lambda distribution, *rest: (
            calls.append(distribution.components.normalizer) or real(distribution, *rest)
        ),
    )
    found = fitted(data, 3, tol=1e-10, max_iter=3000)
    assert calls == ["balanced"] * 10 + ["exact"]
    assert found.normalizer_ == "exact"
    assert float(found.log_likelihood_) == pytest.approx(float(truth.log_likelihood_), abs=1e-3)
    np.testing.assert_allclose(found.concentrations_, truth.concentrations_, rtol=1e-2)


def test_seeds_of_top_lists_are_mean_scores():
    lists = Rankings.from_orders([[2], [1, 0], [0, 1, 2, 3]], n_items=4)
    y = oracle.standardized(4)
    for row, n, found in zip(lists.orders, lists.lengths, angle_data.TopLists(lists).dense(), strict=True):
        mean = y[oracle.compatible(4, tuple(row[:n].tolist()), True)].mean(axis=0)
        np.testing.assert_allclose(found, mean / np.linalg.norm(mean), atol=1e-12)
    assert AngleData(lists).scores == pytest.approx(standard_scores(4))
