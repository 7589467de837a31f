"""Angle-based models under the exact normalizer: maximum likelihood and Metropolis steps, by enumeration."""

from __future__ import annotations

import dataclasses
import math
import types

import numpy as np
import pytest
from scipy import optimize

from permix.angle import exact_jit as kernels
from permix.angle.gibbs.moves import metropolis_steps
from permix.angle.quasi_newton import Summed
from permix.angle.quasi_newton import climbed as climbed_from
from permix.distributions.angle.bessel_jit import log_sphere_moment
from permix.distributions.angle.normalizers import log_sum, work_space
from tests.oracles import angle as oracle


def some_tilts(t, kappa, seed=0):
    direction = np.random.default_rng(seed).standard_normal(t)
    direction -= direction.mean()
    return kappa * direction / np.linalg.norm(direction)


def mean_under(tilts):
    """E[y] by enumeration."""
    y = oracle.standardized(len(tilts))
    weights = np.exp(y @ tilts - oracle.exact_log_sum(tilts))
    return weights @ y


def climbed(mean, start=None, max_iter=200):
    t = len(mean)
    start = np.zeros(t) if start is None else start
    known = Summed(mean[None], np.ones(1), oracle.scores(t))
    end, history, _ = climbed_from(start[None], np.zeros(1), "exact", known, max_iter, 1e-10)
    return end.tilts[0], history[-1], log_sum("exact", end.tilts[0], oracle.scores(t))


@pytest.mark.parametrize("t", [3, 4, 6])
@pytest.mark.parametrize("kappa", [0.2, 3.0, 12.0])
def test_at_the_maximum_the_mean_is_that_of_the_data(t, kappa):
    truth = some_tilts(t, kappa)
    mean = mean_under(truth)
    tilts, value, log_sum = climbed(mean)
    np.testing.assert_allclose(mean_under(tilts), mean, atol=2e-5)
    np.testing.assert_allclose(tilts, truth, atol=2e-3 * max(1.0, kappa))
    assert tilts.sum() == pytest.approx(0.0, abs=1e-9)
    assert log_sum == pytest.approx(oracle.exact_log_sum(tilts), rel=1e-12)
    assert value == pytest.approx(tilts @ mean - log_sum, rel=1e-12)
    # The twin: what the approximate normalizer takes for the maximum has another mean.
    if kappa > 1:
        r = float(np.linalg.norm(mean))
        approximate = optimize.brentq(lambda k: oracle.ratio(0.5 * (t - 3), k) - r, 1e-9, 1e4)
        assert np.abs(mean_under(approximate * mean / r) - mean).max() > 1e-3


def test_the_maximum_is_that_of_a_general_optimizer():
    rng = np.random.default_rng(2)
    data = oracle.standardized(4)[rng.integers(24, size=9)]
    mean = data.mean(axis=0)
    basis = oracle.plane(4)
    found = optimize.minimize(
        lambda x: oracle.exact_log_sum(x @ basis) - mean @ (x @ basis), np.zeros(3), tol=1e-12
    )
    tilts, value, _ = climbed(mean)
    assert value == pytest.approx(-found.fun, abs=1e-9)
    np.testing.assert_allclose(tilts, found.x @ basis, atol=1e-3)


def test_every_climb_gains():
    mean = mean_under(some_tilts(5, 4.0, seed=3)) * 0.8
    start = some_tilts(5, 9.0, seed=8)
    values = [start @ mean - oracle.exact_log_sum(start)]
    for n_steps in (1, 2, 3, 5, 50):
        values.append(climbed(mean, start, n_steps)[1])
    assert np.all(np.diff(values) >= 0)
    assert values[-1] > values[0] + 1.0


def test_rankings_that_are_all_alike_have_no_maximum():
    """The supremum of the mean log-probability is 0; the climb comes close and stays finite."""
    y = oracle.standardized(4)[5]
    tilts, value, _ = climbed(y)
    assert np.isfinite(tilts).all()
    assert -1e-3 < value <= 1e-12


# Metropolis steps of η.

PRIORS = {
    "gamma": oracle.Prior(2.0, 0.5),
    "flat at 0": oracle.Prior(1.0, 0.4),
    "direction": oracle.Prior(3.0, 0.7, 2.0, (-0.5, 0.5, -0.5, 0.5)),
}


def run(prior, rows, n_sweeps=1500, seed=0, step=None):
    t = len(rows[0][0])
    y = oracle.standardized(t)
    sums = sum(y[oracle.compatible(t, *row)][0] for row in rows) if rows[0][0] else np.zeros(t)
    pull = np.zeros(t) if prior.direction is None else prior.strength * np.array(prior.direction)
    rng = np.random.default_rng(seed)
    tilts, tables = some_tilts(t, 1.0, seed), work_space("exact", t)
    kappas, directions = np.empty(n_sweeps), np.empty((n_sweeps, t))
    accepted = 0
    for sweep in range(-50, n_sweeps):
        known = (float(len(rows)), sums, pull, prior, oracle.scores(t))
        accepted += (step or metropolis_steps)(rng, *known, tilts, tables, 10)
        kappa = np.linalg.norm(tilts)
        kappas[sweep], directions[sweep] = kappa, tilts / kappa
    assert 0.1 < accepted / (10 * (n_sweeps + 50)) < 0.9
    assert np.abs(directions.sum(axis=1)).max() < 1e-9
    return kappas, directions


ROWS = {
    3: [((0, 1, 2), True), ((0, 2, 1), True), ((1, 0, 2), True), ((0, 1, 2), True)],
    4: [((0, 1, 2, 3), True), ((0, 1, 3, 2), True), ((2, 0, 1, 3), True), ((3, 0, 2, 1), True)],
}


@pytest.mark.parametrize(("t", "name"), [(3, "gamma"), (4, "flat at 0"), (4, "direction")])
def test_metropolis_has_the_exact_posterior(t, name):
    prior = PRIORS[name]
    grid = oracle.Grid(t, tuple(ROWS[t]), prior, "exact", low=1e-5, n_kappa=200, n_sphere=30)
    kappas, directions = run(prior, ROWS[t])
    assert oracle.worst_z(kappas, directions, grid.moments) < oracle.LARGEST_Z
    twin = dataclasses.replace(grid, prior=dataclasses.replace(prior, shape=prior.shape + 1))
    assert oracle.worst_z(kappas, directions, twin.moments) > 2 * oracle.LARGEST_Z  # one factor κ too many


def without_jacobian(rng, n, sums, pull, prior, scores, tilts, tables, n_steps):
    """The same steps, each stretch taken as if it were symmetric in η."""
    t = len(scores)

    def value(x):
        here = x @ sums - n * log_sum("exact", x, scores) + x @ pull
        kappa = float(np.linalg.norm(x))
        here += (prior.shape - 1 - (t - 2)) * math.log(kappa) - prior.rate * kappa
        return here - log_sphere_moment(0.5 * (t - 3), prior.strength * kappa)

    accepted = 0
    for turn in range(n_steps):
        step = rng.standard_normal(t)
        trial = math.exp(0.6 * rng.standard_normal()) * tilts if turn % 2 else tilts + step - step.mean()
        if value(trial) - value(tilts) >= -rng.standard_exponential():
            tilts[:] = trial
            accepted += 1
    return accepted


def test_steps_without_the_jacobian_are_found_out():
    prior = PRIORS["gamma"]
    grid = oracle.Grid(3, tuple(ROWS[3]), prior, "exact", low=1e-5, n_kappa=200, n_sphere=30)
    kappas, directions = run(prior, ROWS[3], n_sweeps=1000, step=without_jacobian)
    assert oracle.worst_z(kappas, directions, grid.moments) > 2 * oracle.LARGEST_Z


def test_langevin_steps_without_their_ratio_are_found_out():
    """The drift is not symmetric: accepted as if it were, the distribution is another."""
    kernel = kernels.metropolis_tilts.py_func
    names = dict(kernel.__globals__, _log_proposal=lambda *_: 0.0)
    names = dict(
        metropolis_steps.__globals__, metropolis_tilts=types.FunctionType(kernel.__code__, names, "twin")
    )
    twin = types.FunctionType(metropolis_steps.__code__, names, "twin")
    prior = PRIORS["gamma"]
    grid = oracle.Grid(3, tuple(ROWS[3]), prior, "exact", low=1e-5, n_kappa=200, n_sphere=30)
    kappas, directions = run(prior, ROWS[3], n_sweeps=1500, step=twin)
    assert oracle.worst_z(kappas, directions, grid.moments) > oracle.LARGEST_Z


def test_tilts_stay_in_the_plane():
    """Rounding errors of the sum once grew by every stretch, until directions were refused."""
    prior = PRIORS["gamma"]
    run(prior, ROWS[4], n_sweeps=20_000, seed=4)


def test_a_component_without_rankings_has_the_prior():
    prior = oracle.Prior(2.0, 0.5)
    rng, tables = np.random.default_rng(1), work_space("exact", 4)
    tilts = some_tilts(4, 1.0)
    kappas = np.empty(6000)
    for sweep in range(-50, len(kappas)):
        metropolis_steps(rng, 0.0, np.zeros(4), np.zeros(4), prior, oracle.scores(4), tilts, tables, 10)
        kappas[sweep] = np.linalg.norm(tilts)
    mean, error = oracle.batch_means(kappas)
    assert abs(mean - prior.shape / prior.rate) < oracle.LARGEST_Z * error
    assert error < 0.2


def test_rankings_that_cancel():
    """Their sum is rounding errors, which once led out of the plane."""
    rng, tables = np.random.default_rng(1), work_space("exact", 4)
    tilts = some_tilts(4, 1.0)
    sums = np.array([1e-17, 3e-17, -1e-17, 2e-17])
    for _ in range(200):
        prior = oracle.Prior(2.0, 0.5)
        metropolis_steps(rng, 2.0, sums, np.zeros(4), prior, oracle.scores(4), tilts, tables, 10)
        assert abs(tilts.sum()) < 1e-9 * max(1.0, float(np.abs(tilts).max()))
