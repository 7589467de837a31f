"""Escobar & West's update of the concentration against numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaln

from permix.kernels.jit import kernel
from permix.partitions import concentration as plain

N_DRAWS = 100_000
# Kolmogorov-Smirnov distance at level 1e-6: sqrt(log(2 / 1e-6) / 2) / sqrt(draws) for independent draws.
BOUND = math.sqrt(math.log(2e6) / 2) / math.sqrt(N_DRAWS)

update_concentration = kernel(plain.update_concentration)


@kernel
def chain(rng, concentration, shape, rate, n_clusters, n, n_thin, out):
    for i in range(len(out)):
        for _ in range(n_thin):
            concentration = update_concentration(rng, concentration, shape, rate, n_clusters, n)
        out[i] = concentration


@kernel
def broken_chain(rng, concentration, shape, rate, n_clusters, n, n_thin, out):
    """The twin: always takes the larger of the two Gamma shapes."""
    for i in range(len(out)):
        for _ in range(n_thin):
            eta = rng.beta(concentration + 1.0, float(n))
            concentration = rng.standard_gamma(shape + n_clusters) / (rate - math.log(eta))
        out[i] = concentration


def kolmogorov_smirnov(draws, shape, rate, n_clusters, n):
    """Distance of the draws from p(alpha | K, n), by the trapezoidal rule on a grid of log alpha."""
    t = np.linspace(math.log(1e-12), math.log(1e6), 100_001)
    alpha = np.exp(t)
    log_density = (shape + n_clusters) * t - rate * alpha
    log_density += gammaln(alpha) - gammaln(alpha + n)
    density = np.exp(log_density - log_density.max())
    cdf = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    cdf /= cdf[-1]
    expected = np.interp(np.log(np.sort(draws)), t, cdf)
    return np.abs(expected - (np.arange(len(draws)) + 0.5) / len(draws)).max() + 0.5 / len(draws)


@pytest.mark.parametrize(
    ("shape", "rate", "n_clusters", "n"),
    [(1.0, 1.0, 5, 100), (2.0, 0.5, 1, 3), (0.5, 2.0, 20, 20), (3.0, 1.0, 40, 10_000)],
)
def test_update_leaves_the_conditional_invariant(shape, rate, n_clusters, n):
    draws = np.empty(N_DRAWS)
    # Draws 20 updates apart are independent for every practical purpose.
    chain(np.random.default_rng(4), 1.0, shape, rate, n_clusters, n, 20, draws)
    assert kolmogorov_smirnov(draws, shape, rate, n_clusters, n) < BOUND
    broken_chain(np.random.default_rng(4), 1.0, shape, rate, n_clusters, n, 20, draws)
    assert kolmogorov_smirnov(draws, shape, rate, n_clusters, n) > BOUND


def test_no_data_gives_the_prior():
    draws = np.empty(N_DRAWS)
    chain(np.random.default_rng(4), 1.0, 2.0, 4.0, 0, 0, 1, draws)
    assert abs(draws.mean() - 0.5) < 5 * math.sqrt(2) / 4 / math.sqrt(N_DRAWS)


@pytest.mark.parametrize("start", [1e-300, 1e-10, 1e10])
@pytest.mark.parametrize(("shape", "rate"), [(1e-3, 1e-3), (1.0, 1.0), (1e-3, 1e6)])
def test_extreme_values_stay_positive_and_finite(start, shape, rate):
    draws = np.empty(1000)
    for n_clusters, n in [(1, 10**6), (1, 1), (10**5, 10**6)]:
        chain(np.random.default_rng(4), start, shape, rate, n_clusters, n, 1, draws)
        assert np.isfinite(np.log(draws)).all()
