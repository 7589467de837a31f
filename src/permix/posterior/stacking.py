"""Weights of chains that do not mix, by how well each predicts data it was not shown.

Yao, Vehtari & Gelman (2022), "Stacking for non-mixing Bayesian computations": where chains are stuck in modes
of their own, how many of them are in which says where they started, not what the posterior is. Their
predictions are mixed with the weights under which left-out data are most probable. Data are left out by
importance sampling: p(x_i | others) is the harmonic mean, over draws, of p(x_i | others, draw); the largest
ratios are truncated (Ionides 2008), without which it has no variance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from permix.posterior.diagnostics import verdict_on
from permix.sampling import Draws

FloatArray = npt.NDArray[np.float64]
# Weights are improved until no data are e^-9 more probable for it, on average; the ascent never falls.
TOLERANCE, MOST_STEPS = 1e-9, 10_000


def left_out_log_density(log_densities: FloatArray) -> FloatArray:
    """Return ln p(x_i | others) from ln p(x_i | others, draw), (draw, datum)."""
    n_draws = len(log_densities)
    log_ratios = -(log_densities - log_densities.max(axis=0))  # 1 / p, up to a factor; at least 0
    log_mean = np.logaddexp.reduce(log_ratios, axis=0) - np.log(n_draws)
    truncated = np.minimum(log_ratios, log_mean + 0.5 * np.log(n_draws))
    weighted = np.logaddexp.reduce(truncated + log_densities, axis=0)
    return np.asarray(weighted - np.logaddexp.reduce(truncated, axis=0))


def stacking_weights(log_densities: FloatArray, counts: npt.NDArray[Any] | None = None) -> FloatArray:
    """Return the weights w of chains that maximize Σ_i n_i ln Σ_c w_c p_c(x_i), (chain, datum) -> (chain,).

    ``counts`` are the n_i, by default 1. The sum is concave in w, and each step is that of EM for the
    proportions of a mixture.
    """
    n_chains, n = log_densities.shape
    shares = np.full(n, 1.0 / n) if counts is None else counts / counts.sum()
    densities = np.exp(log_densities - log_densities.max(axis=0))
    weights = np.full(n_chains, 1.0 / n_chains)
    reached = -np.inf
    for _ in range(MOST_STEPS):
        mixed = weights @ densities
        value = float(np.log(mixed) @ shares)
        if value - reached < TOLERANCE:
            break
        reached = value
        weights = weights * ((densities / mixed) @ shares)
    return np.asarray(weights / weights.sum())


def need_stacking(draws: Draws) -> bool:
    """Say whether there are chains that disagree."""
    n_chains = next(iter(draws.arrays.values())).shape[0]
    return n_chains > 1 and verdict_on(draws).converged is False


def weights_of_chains(
    log_densities: FloatArray, chain_of: npt.NDArray[Any], counts: npt.NDArray[Any] | None = None
) -> FloatArray:
    """Return the weights of chains from ln p(x_i | others, draw), (draw, datum); ``chain_of`` draws."""
    chains = [left_out_log_density(log_densities[chain_of == c]) for c in range(int(chain_of.max()) + 1)]
    found = np.stack(chains)
    # A datum that some draw makes impossible says nothing of how much the others make it.
    known = np.isfinite(found).all(axis=0)
    if not known.any():
        return np.full(len(found), 1.0 / len(found))
    return stacking_weights(found[:, known], None if counts is None else counts[known])


def tried_draws(n_chains: int, n_draws: int, most: int) -> npt.NDArray[np.int64]:
    """Return which draws weigh chains, chains one after another: of each as many, and at least two."""
    of_chain = min(n_draws, max(2, most // n_chains))
    places = np.linspace(0, n_draws - 1, of_chain).astype(np.int64)
    return (np.arange(n_chains)[:, None] * n_draws + places).reshape(-1)


def draws_of_chains(weights: FloatArray, n_draws: int, most: int) -> npt.NDArray[np.int64]:
    """Return which draws to average over, chains one after another: of each as many as its weight says.

    At most ``most``, evenly spaced within a chain; their plain mean is then the mean under the weights.
    """
    n_chains = len(weights)
    total = min(most, n_chains * n_draws)
    ends = np.round(np.cumsum(weights) * total).astype(np.int64)
    numbers = np.diff(ends, prepend=0)
    places = [chain * n_draws + np.linspace(0, n_draws - 1, n) for chain, n in enumerate(numbers) if n]
    return np.concatenate(places).astype(np.int64)
