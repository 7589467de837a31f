"""Learned hyper-parameters against enumeration: all partitions of four rows times a grid of values."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import permix.families.scale_learning as scale_learning
from permix.families import GaussianDiagonal, GaussianNIW
from permix.families.learning import slice_number, slice_step
from permix.families.scale_learning import SHARE, STRENGTH, DiagonalLearning, MatrixLearning
from permix.moves import Gibbs, Hyperparameters
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess
from permix.partitions.labels import canonical_labels
from tests.oracles.mixtures import naive_marginal, total_variation, total_variation_bound
from tests.oracles.partitions import restricted_growth_strings

X = np.array([[-1.2, 0.3], [-0.7, 1.9], [1.4, -0.8], [2.1, 0.5]])
PRIOR = DirichletProcess(1.0)
PARTITIONS = list(restricted_growth_strings(4))
# A prior strength differs least from that of the twin.
N_STEPS = {"prior_strength": 4_000, "degrees_of_freedom": 1_500, "scale": 1_500}
N_BINS = 4
FAMILIES = {"niw": GaussianNIW(), "diagonal": GaussianDiagonal()}


def with_extra(family, learning, extra):
    """The family with other degrees of freedom, expected variances as before."""
    values = family.learnable
    scale = values["scale"] * extra / (values["degrees_of_freedom"] - learning.least)
    return family.with_values({"degrees_of_freedom": learning.least + extra, "scale": scale})


def setting(name, learned):
    """Family, what is learned, a grid of logarithms for it with the family at each point and its prior."""
    family = FAMILIES[name].resolve(X)
    cls = MatrixLearning if name == "niw" else DiagonalLearning
    full = FAMILIES[name].learning(X)
    learning = cls((learned,), full.variances, full.least, full.typical)
    if learned == "prior_strength":
        grid = np.linspace(np.log(STRENGTH.low), np.log(STRENGTH.high), 40)[:, None]
        families = [family.with_values({"prior_strength": float(np.exp(x[0]))}) for x in grid]
    elif learned == "degrees_of_freedom":
        grid = np.linspace(0.0, np.log(scale_learning.MOST_FREEDOM), 50)[:, None]
        families = [with_extra(family, learning, float(np.exp(x[0]))) for x in grid]
    else:
        line = np.linspace(np.log(SHARE.low), np.log(SHARE.high), 14)
        grid = np.array(list(itertools.product(line, line)))
        unit = full.variances * (family.learnable["degrees_of_freedom"] - full.least)
        families = [family.with_values({"scale": unit * np.exp(x)}) for x in grid]
    return family, learning, grid, families


def coordinate(family, learning):
    """The logarithm that the grid runs over; of scales the first share."""
    (learned,) = learning.names
    values, extra = family.learnable, family.learnable["degrees_of_freedom"] - learning.least
    if learned == "prior_strength":
        return np.log(values["prior_strength"])
    if learned == "degrees_of_freedom":
        return np.log(extra)
    return np.log(values["scale"][0] / learning.variances[0] / extra)


@functools.cache
def exact(name, learned):
    """Probabilities of partitions times bins of the hyper-parameter, and the edges of the bins."""
    _, learning, grid, families = setting(name, learned)
    table = np.empty((len(PARTITIONS), len(grid)))
    for g, family in enumerate(families):
        subsets = {
            members: naive_marginal(family, X[list(members)])
            for size in range(1, 5)
            for members in itertools.combinations(range(4), size)
        }
        for p, labels in enumerate(PARTITIONS):
            blocks = [tuple(np.flatnonzero(np.array(labels) == k)) for k in range(max(labels) + 1)]
            table[p, g] = PRIOR.log_prob(labels) + sum(subsets[tuple(map(int, b))] for b in blocks)
            table[p, g] += learning.log_prior(family)
    weights = np.exp(table - table.max())
    # The trapezoidal rule: ends count half.
    for column in range(grid.shape[1]):
        ends = (grid[:, column] == grid[:, column].min()) | (grid[:, column] == grid[:, column].max())
        weights[:, ends] *= 0.5
    weights /= weights.sum()
    points = np.unique(grid[:, 0])
    share = np.array([weights[:, grid[:, 0] == x].sum() for x in points])
    # Edges lie between points of the grid, so that every point is in one bin.
    cuts = np.searchsorted(np.cumsum(share), np.linspace(0, 1, N_BINS + 1)[1:-1])
    edges = (points[cuts] + points[cuts + 1]) / 2
    bins = np.searchsorted(edges, grid[:, 0])
    return np.stack([weights[:, bins == b].sum(axis=1) for b in range(N_BINS)], axis=1).ravel(), edges


def visits(name, learned):
    """Shares of partitions times bins in a chain of Gibbs sweeps and updates."""
    family, learning, _, _ = setting(name, learned)
    rng = np.random.default_rng(5)
    state = MixtureState(family, family.encode(X), 4, PRIOR, learning=learning)
    edges = exact(name, learned)[1]
    place = {labels: p for p, labels in enumerate(PARTITIONS)}
    counts = np.zeros((len(PARTITIONS), N_BINS))
    gibbs, update = Gibbs(), Hyperparameters()
    for _ in range(N_STEPS[learned]):
        gibbs.step(rng, state)
        assert update.step(rng, state).accepted == 1
        row = place[tuple(canonical_labels(state.labels).tolist())]
        counts[row, np.searchsorted(edges, coordinate(state.family, learning))] += 1
    return (counts / counts.sum()).ravel()


CASES = list(itertools.product(FAMILIES, ("prior_strength", "degrees_of_freedom", "scale")))


@pytest.mark.parametrize(("name", "learned"), CASES)
def test_chains_follow_the_posterior(name, learned):
    pi = exact(name, learned)[0]
    # The trapezoidal rule over so few points puts a little into the wrong bin.
    bound = total_variation_bound(pi, N_STEPS[learned] / 8) + 0.02
    assert total_variation(visits(name, learned), pi) < bound


@pytest.mark.parametrize(("name", "learned"), CASES)
def test_a_forgotten_jacobian_is_noticed(name, learned, monkeypatch):
    """The density of the number instead of that of its logarithm."""

    def number(rng, x, log_density):
        return slice_number(rng, x, lambda y: log_density(y) - 2.0 * y)

    def numbers(rng, x, log_density):
        return slice_step(rng, x, lambda y: log_density(y) - 2.0 * y)

    monkeypatch.setattr(scale_learning, "slice_number", number)
    monkeypatch.setattr(scale_learning, "slice_step", numbers)
    pi = exact(name, learned)[0]
    assert total_variation(visits(name, learned), pi) > total_variation_bound(pi, N_STEPS[learned] / 8) + 0.02


@pytest.mark.parametrize("step", ["number", "vector"])
def test_slice_steps_leave_a_density_invariant(step):
    rng = np.random.default_rng(0)

    def log_density(x):  # two normal bumps
        return np.logaddexp(-0.5 * (x + 1.0) ** 2, -2.0 * (x - 2.0) ** 2)

    x, drawn = np.zeros(200), []
    for _ in range(250):
        if step == "number":
            x = np.array([slice_number(rng, value, log_density) for value in x.tolist()])
        else:
            x = slice_step(rng, x, log_density)
        drawn.append(x)
    # Masses 1 and 1/2: a third of the draws belong to the second bump.
    mean = np.concatenate(drawn[50:]).mean()  # of some 40,000 draws, one in twenty of them independent
    assert abs(mean - (2 * -1.0 + 2.0) / 3) < 0.1
