"""The balanced normalizer against the table over subsets, and against importance sampling for many items."""

import math

import numpy as np
import pytest

import permix
from permix.distributions.angle.balanced_jit import balanced_log_sum_and_mean
from permix.distributions.angle.normalizers import log_sum
from permix.distributions.angle.scores import standard_scores, vmf_log_sum
from permix.distributions.angle.subset_table_jit import log_sum_and_mean


def directions(t):
    """Directions of different kinds: random, a ranking, one item apart, two halves, heavy tails."""
    rng = np.random.default_rng(t)
    one, halves = np.zeros(t), np.zeros(t)
    one[0], halves[: t // 2] = 1.0, 1.0
    for values in (rng.normal(size=t), np.arange(t) * 1.0, one, halves, rng.standard_t(3, size=t)):
        values = values - values.mean()
        yield values / np.linalg.norm(values)


@pytest.mark.parametrize(
    ("t", "share", "limit"),
    [(8, 0.5, 0.02), (12, 1.0, 0.04), (12, 2.0, 0.08), (16, 2.0, 0.06), (16, 5.0, 0.15)],
)
def test_against_the_table(t, share, limit):
    scores, table, back = standard_scores(t), np.empty(1 << t), np.empty(1 << t)
    exact_mean, mean = np.empty(t), np.empty(t)
    off = []
    for direction in directions(t):
        tilts = share * t * direction
        exact = log_sum_and_mean(tilts, scores, table, back, exact_mean)
        assert balanced_log_sum_and_mean(tilts, scores, mean) == pytest.approx(exact, abs=limit)
        assert log_sum("balanced", tilts, scores) == pytest.approx(exact, abs=limit)
        assert np.linalg.norm(mean - exact_mean) < 0.04 * np.linalg.norm(exact_mean)
        assert abs(mean.sum()) < 1e-4
        off.append(abs(vmf_log_sum(share * t, t) - exact))
    assert max(off) > 2 * limit, "the von Mises–Fisher sum must not pass"


@pytest.mark.parametrize("share", [0.5, 2.0, 4.0])
def test_against_importance_sampling_for_many_items(share):
    t = 60
    for direction in directions(t):
        model = permix.Angle(direction, share * t, normalizer="vmf")
        error = model.normalizer_error(n_samples=400, random_state=1)
        balanced = permix.Angle(direction, share * t, normalizer="balanced").log_normalizer()
        assert balanced - model.log_normalizer() == pytest.approx(
            float(error), abs=0.06 + 5.0 * error.standard_error
        )


def test_uniform_and_extreme_concentrations():
    for t in (3, 30, 200):
        scores = standard_scores(t)
        assert log_sum("balanced", np.zeros(t), scores) == pytest.approx(math.lgamma(t + 1.0), rel=1e-9)
        direction = next(directions(t))
        best = np.sort(direction) @ scores
        for kappa in (1e4, 1e6):
            value = log_sum("balanced", kappa * t * direction, scores)
            # One ranking alone, or all of them at its weight, bound the sum.
            assert kappa * t * best - 1e-6 * kappa * t <= value
            assert value <= kappa * t * best + math.lgamma(t + 1.0) + 1e-6 * kappa * t


def test_the_order_of_items_does_not_matter():
    t, rng = 25, np.random.default_rng(1)
    tilts, scores, order = 30.0 * rng.normal(size=t), standard_scores(t), rng.permutation(t)
    mean, shuffled = np.empty(t), np.empty(t)
    first = balanced_log_sum_and_mean(tilts, scores, mean)
    second = balanced_log_sum_and_mean(tilts[order], scores, shuffled)
    assert first == pytest.approx(second, rel=1e-9)
    np.testing.assert_allclose(mean[order], shuffled, atol=1e-6)


def test_maximum_likelihood_is_close_to_the_exact_one():
    made = permix.datasets.make_angle_mixture(2000, 12, 1, concentration=20.0, random_state=4)
    exact = permix.AngleMixture(inference="em", normalizer="exact").fit(made.data)
    balanced = permix.AngleMixture(inference="em", normalizer="balanced").fit(made.data)
    approximate = permix.AngleMixture(inference="em", normalizer="vmf").fit(made.data)
    assert balanced.concentrations_[0] == pytest.approx(exact.concentrations_[0], rel=0.02)
    assert abs(approximate.concentrations_[0] / exact.concentrations_[0] - 1.0) > 0.02
    assert balanced.directions_[0] @ exact.directions_[0] > 0.9999


def test_incomplete_rankings_of_many_items_are_not_overrated():
    """With few of many items listed, nothing holds the concentration back but the normalizer."""
    made = permix.datasets.make_angle_mixture(400, 40, 1, concentration=40.0, random_state=2)
    rng = np.random.default_rng(3)
    shown = [np.sort(rng.choice(40, 8, replace=False)) for _ in range(400)]
    rows = [
        [item for item in order if item in set(keep)]
        for order, keep in zip(made.data.orders.tolist(), shown, strict=True)
    ]
    votes = permix.Rankings.from_orders(rows, n_items=40, unlisted="unknown")
    model = permix.AngleMixture(
        inference="sir", n_draws=200, n_burn_in=300, n_chains=1, random_state=0, progress=False
    ).fit(votes)
    assert model.normalizer_ == "balanced"
    low, high = np.quantile(model.posterior_["posterior"]["concentrations"].values, [0.001, 0.999])
    assert low < 40.0 < high
    assert model.directions_[0] @ made.directions[0] > 0.9
    assert all(abs(error) < 0.1 + 5 * error.standard_error for error in model.normalizer_errors_)
