"""R-hat, effective sample size and Monte Carlo error against ArviZ."""

from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base.array import array_stats

from permix.convergence import ess_bulk, ess_tail, mcse_mean, rank_r_hat


def autoregressive(rng, n_chains, n_draws, rho):
    noise = rng.standard_normal((n_chains, n_draws))
    values = np.empty_like(noise)
    values[:, 0] = noise[:, 0]
    for t in range(1, n_draws):
        values[:, t] = rho * values[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
    return values


def cases():
    rng = np.random.default_rng(0)
    for n_chains in (2, 3, 4):
        for n_draws in (20, 101, 1000):
            for rho in (-0.5, 0.0, 0.6, 0.95):
                values = autoregressive(rng, n_chains, n_draws, rho)
                yield values
                yield np.round(values)  # many ties, as numbers of clusters have
                yield values + 0.7 * np.arange(n_chains)[:, None]  # chains that disagree
                yield np.exp(3 * values)  # heavy tails


CASES = list(cases())


@pytest.mark.parametrize(
    ("ours", "theirs", "options"),
    [
        (rank_r_hat, array_stats.rhat, {"method": "rank"}),
        (ess_bulk, array_stats.ess, {"method": "bulk"}),
        (ess_tail, array_stats.ess, {"method": "tail", "prob": (0.05, 0.95)}),
        (mcse_mean, array_stats.mcse, {"method": "mean"}),
    ],
)
def test_equals_arviz(ours, theirs, options):
    for values in CASES:
        expected = float(theirs(values, chain_axis=0, draw_axis=1, **options))
        assert ours(values) == pytest.approx(expected, rel=1e-8)


def test_effective_size_of_a_known_process():
    """An AR(1) process has autocorrelation time (1 + ρ)/(1 - ρ)."""
    values = autoregressive(np.random.default_rng(1), 4, 20_000, 0.8)
    assert ess_bulk(values) == pytest.approx(80_000 / 9, rel=0.1)
    shuffled = np.random.default_rng(2).permuted(values, axis=1)
    assert ess_bulk(shuffled) > 70_000
