"""Simulation-based calibration of learned hyper-parameters (Talts et al. 2018).

Hyper-parameters, a partition and data are drawn from the prior; the rank of each hyper-parameter among its
draws from the posterior is then uniform.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from scipy import stats

from permix.families import Categorical, Gaussian, GaussianDiagonal, Mixed, Multinomial
from permix.families.column_learning import (
    PSEUDO_COUNT,
    NoiseLearning,
    PseudoCountLearning,
    column_of_counts,
)
from permix.families.contract_jit import draw_many, seat_all
from permix.families.mixed_learning import MixedLearning
from permix.families.scale_learning import SHARE, STRENGTH, ColumnShares, DiagonalLearning
from permix.moves import Gibbs, Hyperparameters
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess

N_ROWS, N_SIMULATIONS, N_DRAWS, N_THIN, N_BINS = 12, 150, 19, 20, 5
PRIOR = DirichletProcess(1.0)
SHARES = ColumnShares(np.ones(1), np.full(1, SHARE.low))
OF_NUMBERS = ("prior_strength", "degrees_of_freedom", "scale")
LEARNING = DiagonalLearning(OF_NUMBERS, SHARES, least=0.0, typical=4.0)
NUMBERS = DiagonalLearning(OF_NUMBERS, SHARES, least=2.0, typical=4.0)
SHAPE = 3.0
MIXED = Mixed(
    ["number", "count", "category"],
    prior_mean=[0.0, 4.0, 0.0],
    scale=[1.0, 1.0, 1.0],
    levels=[(), (), (0, 1, 2)],
)


def from_prior(rng, prior):
    """A draw from a normal logarithm that is cut off."""
    low, high = ((np.log(end) - np.log(prior.median)) / prior.deviation for end in (prior.low, prior.high))
    uniform = rng.uniform(stats.norm.cdf(low), stats.norm.cdf(high))
    return float(np.exp(np.log(prior.median) + prior.deviation * stats.norm.ppf(uniform)))


def family_from_prior(name, rng):
    """The family with hyper-parameters from their priors."""
    if name == "diagonal":
        freedom = from_prior(rng, LEARNING.freedom_prior)
        scale = from_prior(rng, SHARE) * freedom
        family = GaussianDiagonal(0.0, from_prior(rng, STRENGTH), freedom, scale)
    elif name == "gaussian":
        family = Gaussian(np.sqrt(from_prior(rng, SHARE)), 0.0, 2.0)
    elif name == "categorical":
        family = Categorical(from_prior(rng, PSEUDO_COUNT), levels=[(0, 1, 2)] * 3)
    elif name == "multinomial":
        family = Multinomial(np.full(3, from_prior(rng, PSEUDO_COUNT)), document_length=4)
    else:
        family = dataclasses.replace(
            MIXED,
            pseudo_count=from_prior(rng, PSEUDO_COUNT),
            prior_strength=from_prior(rng, STRENGTH),
            degrees_of_freedom=2.0 + from_prior(rng, NUMBERS.freedom_prior),
            within_share=from_prior(rng, SHARE),
            shape=np.full(3, from_prior(rng, column_of_counts(np.zeros(1), SHAPE).prior)),
        )
    return family.resolve(np.zeros((1, N_COLUMNS[name])))


N_COLUMNS = {"diagonal": 1, "gaussian": 1, "categorical": 3, "multinomial": 3, "mixed": 3}


def learning_of(name, data):
    """What a chain learns, with priors that do not depend on the data."""
    if name == "diagonal":
        return LEARNING
    if name == "gaussian":
        return NoiseLearning(("noise_scale",), SHARES)
    if name == "mixed":
        names = ("prior_strength", "degrees_of_freedom", "within_share", "shape", "pseudo_count")
        counts = {1: column_of_counts(data[:, 1], SHAPE)}
        return MixedLearning(names, NUMBERS, np.array([0]), counts, np.arange(3))
    return PseudoCountLearning()


def simulated(name, rng):
    """Hyper-parameters and data: every row is drawn from the predictive of its cluster."""
    family = family_from_prior(name, rng)
    labels = PRIOR.sample(N_ROWS, rng)
    X = np.zeros((N_ROWS, N_COLUMNS[name]))
    for i in range(N_ROWS):
        seated = np.where(np.arange(N_ROWS) < i, labels, -1).astype(np.int32)
        statistics = family.statistics(N_ROWS)
        seat_all(statistics, family.encode(X), seated, N_ROWS)
        draw_many(rng, statistics, labels[i : i + 1].astype(np.int64), X[i : i + 1])
    return family, X


def summary(family):
    """One number for each hyper-parameter; of vectors the entry that is learned, of scales the share."""
    values = dict(family.learnable)
    if "scale" in values:
        values["scale"] = values["scale"] / values["degrees_of_freedom"]
    place = {"shape": 1}
    return np.array([np.ravel(value)[place.get(key, 0)] for key, value in values.items()])


@functools.cache
def simulations(name):
    """True values (simulation, parameter) and draws (simulation, draw, parameter)."""
    rng = np.random.default_rng(0)
    start = family_from_prior(name, rng)
    truths, drawn = [], []
    for _ in range(N_SIMULATIONS):
        truth, X = simulated(name, rng)
        data = truth.encode(X)
        state = MixtureState(start, data, N_ROWS, PRIOR, learning=learning_of(name, data))
        draws = []
        for step in range((N_DRAWS + 4) * N_THIN):
            Gibbs().step(rng, state)
            Hyperparameters().step(rng, state)
            if step >= 4 * N_THIN and step % N_THIN == 0:
                draws.append(summary(state.family))
        truths.append(summary(truth))
        drawn.append(draws)
    return np.array(truths), np.array(drawn)


def ranks(name, flaw=1.0, of=None):
    """Ranks of the true values; a flaw multiplies every draw of one hyper-parameter, by its place."""
    truths, draws = simulations(name)
    flaws = np.where(np.arange(truths.shape[1]) == of, flaw, 1.0)
    return (draws * flaws < truths[:, None, :]).sum(axis=1)


def p_values(found):
    """Chi-squared tests of uniform ranks, 0 ... N_DRAWS."""
    counts = [np.bincount(column * N_BINS // (N_DRAWS + 1), minlength=N_BINS) for column in found.T]
    return np.array([stats.chisquare(count).pvalue for count in counts])


@pytest.mark.slow
@pytest.mark.parametrize("name", N_COLUMNS)
def test_ranks_are_uniform(name):
    assert p_values(ranks(name)).min() > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", N_COLUMNS)
@pytest.mark.parametrize("flaw", [0.3, 1 / 0.3])
def test_biased_draws_are_noticed_where_they_are(name, flaw):
    """Each hyper-parameter by itself: its ranks, and no others, are found to be wrong."""
    n_parameters = simulations(name)[0].shape[1]
    for biased in range(n_parameters):
        noticed = p_values(ranks(name, flaw, biased)) < 1e-4
        assert noticed.tolist() == [place == biased for place in range(n_parameters)]
