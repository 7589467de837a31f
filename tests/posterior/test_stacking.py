"""Weights of chains that do not mix: against direct maximization and exact leave-one-out densities."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm

from permix.posterior.stacking import draws_of_chains, left_out_log_density, stacking_weights


def test_weights_maximize_the_left_out_log_density() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-3, 1, 60), rng.normal(3, 1, 20)])
    chains = np.stack([norm.logpdf(x, mean, 1.0) for mean in (-3.0, 3.0, 0.0)])
    found = stacking_weights(chains)

    def loss(free: np.ndarray) -> float:
        logs = free - np.logaddexp.reduce(free)
        return -float(np.logaddexp.reduce(logs[:, None] + chains, axis=0).sum())

    best = minimize(loss, np.zeros(3), method="BFGS")
    with np.errstate(divide="ignore"):
        assert loss(np.log(np.maximum(found, 1e-300))) <= best.fun + 1e-4
    # Not by counting chains: three quarters of the data are at -3, and the chain between is of no use.
    assert abs(found[0] - 0.75) < 0.03
    assert found[2] < 0.01


def test_equal_chains_keep_equal_weights_and_a_worse_one_gets_none() -> None:
    x = np.random.default_rng(1).normal(size=200)
    good, bad = norm.logpdf(x), norm.logpdf(x, 4.0, 1.0)
    np.testing.assert_allclose(stacking_weights(np.stack([good, good])), 0.5)
    weights = stacking_weights(np.stack([good, good, bad]))
    assert weights[2] < 1e-3
    np.testing.assert_allclose(weights[0], weights[1])


def test_left_out_densities_are_those_of_a_conjugate_model() -> None:
    """Normal data of known variance with a flat mean: p(x_i | others) is known, and so is the posterior."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=12)
    mean = x.mean() + rng.normal(size=200_000) / np.sqrt(len(x))
    found = left_out_log_density(norm.logpdf(x[None, :], mean[:, None]))
    others = (x.sum() - x) / (len(x) - 1)
    exact = norm.logpdf(x, others, np.sqrt(1.0 + 1.0 / (len(x) - 1)))
    np.testing.assert_allclose(found, exact, atol=0.01)
    # The twin that forgets to leave the datum out is far off.
    naive = np.logaddexp.reduce(norm.logpdf(x[None, :], mean[:, None]), axis=0) - np.log(len(mean))
    assert np.abs(naive - exact).max() > 0.05


def test_draws_follow_the_weights() -> None:
    chosen = draws_of_chains(np.array([0.75, 0.0, 0.25]), 100, 40)
    assert len(chosen) == 40
    assert np.bincount(chosen // 100, minlength=3).tolist() == [30, 0, 10]
    assert chosen[0] == 0
    assert chosen[29] == 99
    # Equal weights of equal chains: evenly spaced over all.
    assert draws_of_chains(np.array([0.5, 0.5]), 3, 100).tolist() == [0, 1, 2, 3, 4, 5]
