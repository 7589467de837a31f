"""Learned hyper-parameters against enumeration: all partitions of four rows times a grid of values."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import defaultdict

import numpy as np
import pytest

import permix.families.column_learning as column_learning
import permix.families.learning as learning_of_any
import permix.families.scale_learning as scale_learning
from permix.families import Categorical, Gaussian, GaussianDiagonal, GaussianNIW, Mixed, Multinomial
from permix.families.column_learning import PSEUDO_COUNT
from permix.families.learning import slice_number, slice_step
from permix.families.scale_learning import SHARE, STRENGTH
from permix.moves import Gibbs, Hyperparameters
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess
from permix.partitions.labels import canonical_labels
from tests.oracles.mixtures import naive_marginal, total_variation, total_variation_bound
from tests.oracles.partitions import restricted_growth_strings

X = np.array([[-1.2, 0.3], [-0.7, 1.9], [1.4, -0.8], [2.1, 0.5]])
GAPS = X.copy()
GAPS[0, 1] = GAPS[2, 0] = np.nan
ANSWERS = np.array([[0, 1, 2], [0, 1, 0], [1, 0, np.nan], [1, 0, 1.0]])
MIXED = np.array([[-1.2, 0, 1], [-0.7, 2, 1], [1.4, 9, 0], [np.nan, 7, 0]])
KINDS = ["number", "count", "category"]
PRIOR = DirichletProcess(1.0)
PARTITIONS = list(restricted_growth_strings(4))
# A prior strength differs least from that of the twin.
N_STEPS = defaultdict(lambda: 1_500, {"prior_strength": 3_000, "scale": 1_000})
N_BINS = 4
LEAST_SHARE = 0.01
FAMILIES = {
    "niw": (GaussianNIW(), X),
    "diagonal": (GaussianDiagonal(), X),
    "gaussian": (Gaussian(), X),
    "gaussian-gaps": (Gaussian(), GAPS),
    "categorical": (Categorical(), ANSWERS),
    "multinomial": (Multinomial(), np.array([[3, 0, 1.0], [2, 1, 0], [0, 4, 1], [0, 2, 2]])),
    "mixed": (Mixed(KINDS), MIXED),
}


def with_extra(family, least, extra):
    """The family with other degrees of freedom, expected variances as before."""
    values = family.learnable
    changed = {"degrees_of_freedom": least + extra}
    if "scale" in values:
        changed["scale"] = values["scale"] * extra / (values["degrees_of_freedom"] - least)
    return family.with_values(changed)


def cut_off(learning, **changes):
    """The same with shares cut off where the grid begins."""
    shares = learning.columns.least_shares
    columns = dataclasses.replace(learning.columns, least_shares=np.full(len(shares), LEAST_SHARE))
    return dataclasses.replace(learning, columns=columns, **changes)


def setting(name, learned):
    """Family, what is learned, a grid of logarithms for it with the family at each point."""
    asked, table = FAMILIES[name]
    family = asked.resolve(table)
    data = family.encode(table)
    learning = dataclasses.replace(asked.learning(family, data), names=(learned,))
    least = getattr(getattr(learning, "numbers", learning), "least", 0.0)
    if name == "mixed":
        own = (("scale",) if learned == "within_share" else (learned,)) if learned != "shape" else ()
        learning = dataclasses.replace(learning, numbers=cut_off(learning.numbers, names=own))
    elif hasattr(learning, "columns"):
        learning = cut_off(learning)
    if learned in ("scale", "noise_scale", "within_share"):
        line = np.linspace(np.log(LEAST_SHARE), np.log(SHARE.high), 30 if name == "mixed" else 14)
        unit = np.nanvar(data, axis=0)
        grid = line[:, None] if name == "mixed" else np.array(list(itertools.product(line, line)))
        if learned == "noise_scale":
            points = [np.sqrt(unit * np.exp(x)) for x in grid]
        elif learned == "scale":
            extra = family.learnable["degrees_of_freedom"] - learning.least
            points = [extra * unit * np.exp(x) for x in grid]
        else:
            points = [unit[0] * np.exp(x) * [1.0, 1.0, 1.0] for x in grid]
        return family, learning, data, grid, [family.with_values({learned: point}) for point in points]
    if learned == "shape":
        grid = np.linspace(np.log(column_learning.LEAST_SHAPE), np.log(column_learning.MOST_SHAPE), 40)
        families = [family.with_values({"shape": np.full(3, np.exp(x))}) for x in grid]
    elif learned == "degrees_of_freedom":
        grid = np.linspace(0.0, np.log(scale_learning.MOST_FREEDOM), 50)
        families = [with_extra(family, least, float(np.exp(x))) for x in grid]
    else:
        prior = STRENGTH if learned == "prior_strength" else PSEUDO_COUNT
        grid = np.linspace(np.log(prior.low), np.log(prior.high), 40)
        families = [family.with_values({learned: float(np.exp(x))}) for x in grid]
    return family, learning, data, grid[:, None], families


def coordinate(family, learning, data):
    """The logarithm that the grid runs over; of scales the first share."""
    (learned,) = learning.names
    value = family.learnable[learned]
    least = getattr(getattr(learning, "numbers", learning), "least", 0.0)
    if learned == "degrees_of_freedom":
        return np.log(value - least)
    if learned == "shape":
        return np.log(value[1])
    if np.ndim(value) == 0:
        return np.log(value)
    share = value[0] ** 2 if learned == "noise_scale" else value[0]
    extra = family.learnable["degrees_of_freedom"] - least if learned == "scale" else 1.0
    return np.log(share / np.nanvar(data[:, 0]) / extra)


@functools.cache
def exact(name, learned):
    """Probabilities of partitions times bins of the hyper-parameter, and the edges of the bins."""
    _, learning, _, grid, families = setting(name, learned)
    rows = FAMILIES[name][1]
    table = np.empty((len(PARTITIONS), len(grid)))
    for g, family in enumerate(families):
        subsets = {
            members: naive_marginal(family, rows[list(members)])
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
    family, learning, data, _, _ = setting(name, learned)
    rng = np.random.default_rng(5)
    state = MixtureState(family, data, 4, PRIOR, learning=learning)
    edges = exact(name, learned)[1]
    place = {labels: p for p, labels in enumerate(PARTITIONS)}
    counts = np.zeros((len(PARTITIONS), N_BINS))
    gibbs, update = Gibbs(), Hyperparameters()
    for _ in range(N_STEPS[learned]):
        gibbs.step(rng, state)
        assert update.step(rng, state).accepted == 1
        row = place[tuple(canonical_labels(state.labels).tolist())]
        counts[row, np.searchsorted(edges, coordinate(state.family, learning, data))] += 1
    return (counts / counts.sum()).ravel()


CASES = [("niw", "prior_strength"), ("niw", "degrees_of_freedom"), ("niw", "scale"), ("diagonal", "scale")]
CASES += [("gaussian", "noise_scale"), ("categorical", "pseudo_count")]
CASES += [("mixed", "within_share"), ("mixed", "shape")]
# Code that these share is tested above.
SLOW = [("gaussian-gaps", "noise_scale"), ("multinomial", "pseudo_count"), ("mixed", "prior_strength")]
SLOW += [("diagonal", "prior_strength"), ("diagonal", "degrees_of_freedom"), ("mixed", "degrees_of_freedom")]
SLOW += [("mixed", "pseudo_count")]
CASES += [pytest.param(*case, marks=pytest.mark.slow) for case in SLOW]


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

    monkeypatch.setattr(learning_of_any, "slice_number", number)
    monkeypatch.setattr(scale_learning, "slice_step", numbers)
    monkeypatch.setattr(column_learning, "slice_step", numbers)
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
