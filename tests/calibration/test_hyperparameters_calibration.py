"""Simulation-based calibration of learned hyper-parameters (Talts et al. 2018).

Hyper-parameters, a partition and data are drawn from the prior; the rank of each hyper-parameter among its
draws from the posterior is then uniform.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import stats

from permix.families import GaussianDiagonal
from permix.families.contract_jit import draw_many, seat_all
from permix.families.scale_learning import SHARE, STRENGTH, DiagonalLearning
from permix.moves import Gibbs, Hyperparameters
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess

N_ROWS, N_SIMULATIONS, N_DRAWS, N_THIN, N_BINS = 12, 150, 19, 20, 5
PRIOR = DirichletProcess(1.0)
LEARNING = DiagonalLearning(
    ("prior_strength", "degrees_of_freedom", "scale"), np.array([1.0]), least=0.0, typical=4.0
)


def from_prior(rng, prior):
    """A draw from a normal logarithm that is cut off."""
    low, high = ((np.log(end) - np.log(prior.median)) / prior.deviation for end in (prior.low, prior.high))
    uniform = rng.uniform(stats.norm.cdf(low), stats.norm.cdf(high))
    return float(np.exp(np.log(prior.median) + prior.deviation * stats.norm.ppf(uniform)))


def simulated(rng):
    """Hyper-parameters and data: every row is drawn from the predictive of its cluster."""
    freedom = from_prior(rng, LEARNING.freedom_prior)
    scale = from_prior(rng, SHARE) * freedom
    family = GaussianDiagonal(0.0, from_prior(rng, STRENGTH), freedom, scale).resolve(np.zeros((1, 1)))
    labels = PRIOR.sample(N_ROWS, rng)
    X = np.zeros((N_ROWS, 1))
    for i in range(N_ROWS):
        seated = np.where(np.arange(N_ROWS) < i, labels, -1).astype(np.int32)
        statistics = family.statistics(N_ROWS)
        seat_all(statistics, X, seated, N_ROWS)
        draw_many(rng, statistics, labels[i : i + 1].astype(np.int64), X[i : i + 1])
    return family, X


def summary(family):
    values = family.learnable
    freedom = values["degrees_of_freedom"]
    return np.array([values["prior_strength"], freedom, values["scale"][0] / freedom])


@functools.cache
def simulations():
    """True values (simulation, parameter) and draws (simulation, draw, parameter)."""
    rng = np.random.default_rng(0)
    start = GaussianDiagonal(0.0, 0.01, 4.0, 1.2).resolve(np.zeros((1, 1)))
    truths, drawn = [], []
    for _ in range(N_SIMULATIONS):
        truth, X = simulated(rng)
        state = MixtureState(start, X, N_ROWS, PRIOR, learning=LEARNING)
        draws = []
        for step in range((N_DRAWS + 4) * N_THIN):
            Gibbs().step(rng, state)
            Hyperparameters().step(rng, state)
            if step >= 4 * N_THIN and step % N_THIN == 0:
                draws.append(summary(state.family))
        truths.append(summary(truth))
        drawn.append(draws)
    return np.array(truths), np.array(drawn)


def ranks(flaw=1.0):
    """Ranks of the true values; a flaw multiplies the shares of every draw."""
    truths, draws = simulations()
    return (draws * [1.0, 1.0, flaw] < truths[:, None, :]).sum(axis=1)


def p_values(found):
    """Chi-squared tests of uniform ranks, 0 ... N_DRAWS."""
    counts = [np.bincount(column * N_BINS // (N_DRAWS + 1), minlength=N_BINS) for column in found.T]
    return np.array([stats.chisquare(count).pvalue for count in counts])


@pytest.mark.slow
def test_ranks_are_uniform():
    assert p_values(ranks()).min() > 1e-4


@pytest.mark.slow
def test_a_biased_share_is_noticed():
    assert p_values(ranks(flaw=1.8))[2] < 1e-4
