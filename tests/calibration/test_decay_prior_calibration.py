"""Simulation-based calibration of the learned prior of the decays (Talts et al. 2018).

The prior of the decays, a partition, centers, decays and lists are drawn from the model; the rank of each
hyper-parameter among its draws from the posterior is then uniform.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import stats

from permix.dp_mallows.decay_prior import LearnDecayPrior
from permix.dp_mallows.moves import Centers, CollapsedSeating, ListSplitMerge
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.moves import Cycle
from permix.partitions import DirichletProcess
from tests.calibration.test_hyperparameters_calibration import from_prior
from tests.dp_mallows.list_cases import model_of, seated

N_LISTS, N_ITEMS, N_SIMULATIONS, N_DRAWS, N_THIN, N_BINS = 20, 4, 120, 19, 10, 5
PRIOR, LEARNED = DirichletProcess(1.0), DPMallowsParameters().learned()
LOG_THETA = np.linspace(-25.0, 12.0, 4000)


def log_psi(theta, m):
    return np.log(sum(np.exp(-i * theta) for i in range(m + 1)))


def draw_decay(rng, strength, rate, m):
    """θ with density ∝ exp(-ν (r θ + ln ψ_m(θ))), by its distribution function on a grid of ln θ."""
    theta = np.exp(LOG_THETA)
    log_density = LOG_THETA - strength * (rate * theta + log_psi(theta, m))
    total = np.cumsum(np.exp(log_density - log_density.max()))
    return theta[np.searchsorted(total, rng.random() * total[-1])]


def simulated(rng):
    """ln of ν and of the three r, and lists."""
    strength = from_prior(rng, LEARNED["prior_strength"])
    rates = [from_prior(rng, LEARNED["prior_rate"]) for _ in range(N_ITEMS - 1)]
    groups, lists = {}, []
    for label in PRIOR.sample(N_LISTS, rng):
        if label not in groups:
            decays = [draw_decay(rng, strength, rate, N_ITEMS - 1 - j) for j, rate in enumerate(rates)]
            groups[label] = (rng.permutation(N_ITEMS).tolist(), decays)
        center, decays = groups[label]
        left, order = list(center), []
        for decay in decays:
            weights = np.exp(-decay * np.arange(len(left)))
            order.append(left.pop(int(rng.choice(len(left), p=weights / weights.sum()))))
        lists.append(tuple(order))
    return np.log([strength, *rates]), lists


@functools.cache
def simulations():
    """True values (simulation, parameter) and draws (simulation, draw, parameter)."""
    rng = np.random.default_rng(0)
    move = Cycle([CollapsedSeating(), ListSplitMerge(), Centers(2), LearnDecayPrior()])
    truths, drawn = [], []
    for _ in range(N_SIMULATIONS):
        truth, lists = simulated(rng)
        state, draws = seated(model_of(lists, N_ITEMS, PRIOR, learned=LEARNED)), []
        for step in range((N_DRAWS + 10) * N_THIN):
            move.step(rng, state)
            if step >= 10 * N_THIN and step % N_THIN == 0:
                draws.append(np.log([state.strength, *state.rates]))
        truths.append(truth)
        drawn.append(draws)
    return np.array(truths), np.array(drawn)


def p_values(flaw=0.0):
    """Chi-squared tests of uniform ranks; a flaw is added to every draw of the logarithms."""
    truths, draws = simulations()
    found = (draws + flaw < truths[:, None, :]).sum(axis=1)
    counts = [np.bincount(column * N_BINS // (N_DRAWS + 1), minlength=N_BINS) for column in found.T]
    return np.array([stats.chisquare(count).pvalue for count in counts])


@pytest.mark.slow
def test_ranks_are_uniform():
    assert p_values().min() > 1e-4


@pytest.mark.slow
def test_a_bias_is_noticed():
    assert p_values(flaw=0.8).max() < 1e-4
