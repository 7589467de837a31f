"""Learned hyper-parameters against enumeration: a grid of values, for fixed groups and for all partitions."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from scipy import stats

import permix.families.column_learning as column_learning
import permix.families.learning as learning_of_any
import permix.families.scale_learning as scale_learning
from permix.families import Categorical, Gaussian, GaussianDiagonal, GaussianNIW, Mixed, Multinomial
from permix.families.column_learning import PSEUDO_COUNT
from permix.families.learning import LogNormal, slice_number, slice_step
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
GROUPS = (0, 0, 1, 1)
JOINT = ("categorical", "pseudo_count")
# Slice steps forget in fewer than three steps, with sweeps between them in fewer than eight: of so many
# independent draws the distance exceeds the bound once in ten thousand times. Twins are at 1.6 times or more.
N_DRAWS, N_OF_TWINS, N_SWEEPS = 1_500, 1_000, 2_000
BOUND = np.sqrt(np.log(2e4) / 2 / (N_DRAWS / 3))
JOINT_BOUND = np.sqrt(np.log(2e4) / 2 / (N_SWEEPS / 8))
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
        line = np.linspace(np.log(LEAST_SHARE), np.log(SHARE.high), 60 if name == "mixed" else 25)
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


def coordinate(family, learning, unit):
    """The logarithm that the grid runs over; of scales the first share of ``unit``."""
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
    return np.log(share / unit / extra)


def log_prior(learned, learning, grid):
    """Normal densities of the logarithms; a grid ends where the priors are cut off."""
    if learned == "degrees_of_freedom":
        about = getattr(learning, "numbers", learning).typical, scale_learning.FREEDOM_DEVIATION
    elif learned == "shape":
        about = learning.counts[1].prior.median, column_learning.SHAPE_DEVIATION
    else:
        prior = {"prior_strength": STRENGTH, "pseudo_count": PSEUDO_COUNT}.get(learned, SHARE)
        about = prior.median, prior.deviation
    return stats.norm.logpdf(grid, np.log(about[0]), about[1]).sum(axis=1)


@functools.cache
def exact(name, learned):
    """Densities over partitions times points of the grid of the first logarithm, and these points."""
    _, learning, _, grid, families = setting(name, learned)
    rows = FAMILIES[name][1]
    partitions = PARTITIONS if (name, learned) == JOINT else [GROUPS]
    table = np.empty((len(partitions), len(grid)))
    for g, family in enumerate(families):
        marginal = functools.cache(lambda members, family=family: naive_marginal(family, rows[list(members)]))
        for p, labels in enumerate(partitions):
            blocks = [tuple(np.flatnonzero(np.array(labels) == k).tolist()) for k in range(max(labels) + 1)]
            table[p, g] = PRIOR.log_prob(labels) + sum(map(marginal, blocks))
    table += log_prior(learned, learning, grid)
    points = np.unique(grid[:, 0])
    # What is asked of the first column alone has the second summed out.
    density = np.exp(table - table.max()).reshape(len(partitions), len(points), -1)
    of_first = np.trapezoid(density, points, axis=2) if density.shape[2] > 1 else density[:, :, 0]
    return of_first, points


def distance(drawn, density, points):
    """Kolmogorov and Smirnov's distance of draws from the distribution with this density."""
    below = np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(points)))
    expected = np.interp(np.sort(drawn), points, below / below[-1])
    places = np.arange(len(drawn) + 1) / len(drawn)
    return max(np.abs(expected - places[1:]).max(), np.abs(expected - places[:-1]).max())


def drawn_given_groups(name, learned, n_draws, seed):
    """Logarithms drawn one after the other while the groups stay."""
    family, learning, data, _, _ = setting(name, learned)
    rng, update = np.random.default_rng(seed), Hyperparameters()
    state = MixtureState(family, data, 4, PRIOR, learning=learning)
    state.set_labels(np.array(GROUPS))
    unit = 1.0 if isinstance(data, tuple) else np.nanvar(data[:, 0])  # documents have none
    drawn = []
    for _ in range(n_draws):
        assert update.step(rng, state).accepted == 1
        drawn.append(coordinate(state.family, learning, unit))
    return np.array(drawn)


def off_by(name, learned, n_draws=N_OF_TWINS, seed=5):
    """How far the draws given fixed groups are from their exact distribution."""
    density, points = exact(name, learned)
    fixed = density[PARTITIONS.index(GROUPS) if (name, learned) == JOINT else 0]
    return distance(drawn_given_groups(name, learned, n_draws, seed), fixed, points)


CASES = [("niw", "prior_strength"), ("niw", "degrees_of_freedom"), ("niw", "scale")]
CASES += [("gaussian", "noise_scale"), ("categorical", "pseudo_count")]
CASES += [("mixed", "within_share"), ("mixed", "shape")]
# Code that these share is tested above.
SLOW = [("gaussian-gaps", "noise_scale"), ("multinomial", "pseudo_count"), ("mixed", "prior_strength")]
SLOW += [("diagonal", "prior_strength"), ("diagonal", "degrees_of_freedom"), ("mixed", "degrees_of_freedom")]
SLOW += [("diagonal", "scale"), ("mixed", "pseudo_count")]
CASES += [pytest.param(*case, marks=pytest.mark.slow) for case in SLOW]


@pytest.mark.parametrize(("name", "learned"), CASES)
def test_draws_given_groups_follow_the_posterior(name, learned):
    assert off_by(name, learned, N_DRAWS) < BOUND


def without_jacobian(monkeypatch):
    """The density of the number instead of that of its logarithm."""

    def number(rng, x, log_density):
        return slice_number(rng, x, lambda y: log_density(y) - y)

    def numbers(rng, x, log_density):
        return slice_step(rng, x, lambda y: log_density(y) - y)

    monkeypatch.setattr(learning_of_any, "slice_number", number)
    monkeypatch.setattr(scale_learning, "slice_step", numbers)
    monkeypatch.setattr(column_learning, "slice_step", numbers)


@pytest.mark.parametrize(("name", "learned"), CASES)
def test_a_forgotten_jacobian_is_noticed(name, learned, monkeypatch):
    exact(name, learned)
    without_jacobian(monkeypatch)
    assert off_by(name, learned) > BOUND


@pytest.mark.parametrize(("name", "learned"), CASES)
def test_a_forgotten_prior_is_noticed(name, learned, monkeypatch):
    """Flat between the cut-offs; of the two steps that scales of full covariances take, in one alone."""
    exact(name, learned)
    of_one, of_all = LogNormal.log_density_of, LogNormal.log_density

    def flat(of_logarithms):
        return lambda prior, x: np.where(np.isfinite(of_logarithms(prior, x)), 0.0, -np.inf)

    monkeypatch.setattr(LogNormal, "log_density_of", flat(of_one))
    if (name, learned) != ("niw", "scale"):
        monkeypatch.setattr(LogNormal, "log_density", flat(of_all))
    assert off_by(name, learned) > BOUND


def joint_chain(n_sweeps, seed=5):
    """Distance of the logarithms, and total variation of partitions, in sweeps and updates by turns."""
    density, points = exact(*JOINT)
    family, learning, data, _, _ = setting(*JOINT)
    rng, gibbs, update = np.random.default_rng(seed), Gibbs(), Hyperparameters()
    state = MixtureState(family, data, 4, PRIOR, learning=learning)
    place = {labels: p for p, labels in enumerate(PARTITIONS)}
    unit, counts, drawn = 1.0, np.zeros(len(PARTITIONS)), []
    for _ in range(n_sweeps):
        gibbs.step(rng, state)
        update.step(rng, state)
        counts[place[tuple(canonical_labels(state.labels).tolist())]] += 1
        drawn.append(coordinate(state.family, learning, unit))
    pi = np.trapezoid(density, points, axis=1)
    pi /= pi.sum()
    return distance(np.array(drawn), density.sum(axis=0), points), total_variation(counts / n_sweeps, pi), pi


def test_chains_follow_the_joint_posterior():
    off, variation, pi = joint_chain(N_SWEEPS)
    assert off < JOINT_BOUND
    assert variation < total_variation_bound(pi, N_SWEEPS / 8)


def test_a_forgotten_jacobian_is_noticed_in_chains(monkeypatch):
    exact(*JOINT)
    without_jacobian(monkeypatch)
    assert joint_chain(N_SWEEPS // 4)[0] > JOINT_BOUND


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
