"""Learned pseudo-counts of cells, against enumeration of partitions × a grid of pseudo-counts."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
import pytest

from permix.cocluster.cells import learned
from permix.cocluster.cells.learned import LearnPseudoCount
from permix.cocluster.grid.mixed_state import MixedState
from permix.cocluster.grid.moves import grid_moves, matrix_moves
from permix.cocluster.grid.state import GridState
from permix.cocluster.mondrian.state import MondrianData, MondrianState
from permix.errors import DataError
from permix.partitions import Gamma
from tests.cocluster.grid.cases import CASES, PRIORS, RULES, encoded, random_matrix
from tests.cocluster.grid.test_grid_exact import frequencies_of
from tests.every_run import first_in_every_run
from tests.oracles.cocluster import (
    Naive,
    gaussian_predictive,
    levels_predictive,
    log_cells,
    log_matrix,
    poisson_predictive,
)
from tests.oracles.mixtures import total_variation, total_variation_bound
from tests.oracles.partitions import restricted_growth_strings, sequential_probability

GAMMA = Gamma(2.0, 1.5)
# Of ln β; what lies beyond has less than 1e-6 of the prior.
GRID = np.linspace(-7.5, 2.6, 60)
AT = {
    "categorical": lambda b: levels_predictive(b, 3),
    "bernoulli": lambda b: levels_predictive(b, 2),
    "poisson": lambda b: poisson_predictive(2.0 * b, b),
    "gaussian": lambda b: gaussian_predictive(1.0, b, 0.5 * b, 0.5 * b * 4.0),
}


def log_prior(t):
    """Log density of ln β, up to a constant."""
    return GAMMA.shape * t - GAMMA.rate * math.exp(t)


@cache
def joint(name):
    """Probabilities of pairs of partitions (axis 0) and of ln β on the grid (axis 1)."""
    _, naive, X = CASES[name]
    pairs = list(product(restricted_growth_strings(3), repeat=2))
    table = np.empty((len(pairs), len(GRID)))
    for place, pair in enumerate(pairs):
        log_pair = sum(math.log(sequential_probability(*one)) for one in zip(pair, RULES["mfm"], strict=True))
        for column, t in enumerate(GRID):
            at = Naive(AT[name](math.exp(t)), naive.first_value)
            table[place, column] = log_pair + log_prior(t) + log_matrix(at, X, *pair)
    table = np.exp(table - table.max())
    return pairs, table / table.sum()


def grid_state(name, gamma=GAMMA):
    family, _, X = CASES[name]
    return GridState(encoded(family, X), *PRIORS["mfm"], gamma)


@pytest.mark.parametrize("name", first_in_every_run(["categorical", "gaussian"]))
def test_partitions_are_those_of_all_pseudo_counts(name):
    pairs, table = joint(name)
    pi = table.sum(axis=1)
    state = grid_state(name)
    frequencies, n_effective = frequencies_of(matrix_moves(3, 3), state, pairs, 2000, seed=5)
    assert n_effective > 150
    assert total_variation(frequencies, pi) < total_variation_bound(pi, n_effective)
    assert state.record()["pseudo_count"] == state.cell_family.pseudo_count
    # The twin: one that is never learned, far from where the data want it.
    state.take_family(state.cell_family.at(30.0))
    state.refresh()
    frequencies, n_effective = frequencies_of(grid_moves(3, 3), state, pairs, 2000, seed=6)
    assert total_variation(frequencies, pi) > total_variation_bound(pi, n_effective)


# --- given the blocks -----------------------------------------------------------------------------


def state_of(kind, name):
    """A state with several blocks, its matrix having missing cells."""
    rng = np.random.default_rng(3)
    matrix = encoded(CASES[name][0], random_matrix(name, 4, shape=(12, 9)))
    if kind == "mondrian":
        state = MondrianState(MondrianData.of(matrix), 1.0, rng, GAMMA)
        axis, cuts, times = np.array([0, 1, -1, -1, -1]), np.zeros(5), np.zeros(5)
        cuts[:2], times[:2] = [0.6, 0.4], [0.1, 0.3]
        state.restore({**state.checkpoint(), "axis": axis, "cuts": cuts, "times": times})
        return state
    if kind == "mixed":
        return MixedState(matrix, 2, 2, 1.0, 1.0, GAMMA).start(rng)
    state = GridState(matrix, *PRIORS["dp"], GAMMA)
    state.rows.set_labels(np.arange(12) % 3)
    state.columns.set_labels(np.arange(9) % 2)
    state.refresh()
    return state


def naive_log_likelihood(name, state):
    """ln p(cells | β) by the chain rule, from values in the user's units, block by block."""
    matrix = state.matrix if hasattr(state, "matrix") else None
    by_row = matrix.by_row if matrix else state.data.by_row
    rows = np.repeat(np.arange(len(by_row.starts) - 1), np.diff(by_row.starts))
    columns, codes = by_row.others, by_row.codes
    values = codes + (1.0 if name == "categorical" else 0.0)
    if name == "gaussian":
        values = 1.0 + 2.0 * codes
    if isinstance(state, MixedState):
        blocks = state.mixed.clusters[0] * 10 + state.mixed.clusters[1]
    elif isinstance(state, GridState):
        blocks = state.rows.labels[rows] * 10 + state.columns.labels[columns]
    else:
        blocks = state.partition().locate(*state.places)[rows, columns]

    def at(beta):
        naive = Naive(AT[name](beta), 0.0)
        return sum(log_cells(naive, values[blocks == block].tolist()) for block in np.unique(blocks))

    return at


def distance_to(draws, log_density):
    """Largest difference between the distribution function of draws of ln β and the exact one."""
    grid = np.linspace(GRID[0], GRID[-1], 80)
    logs = np.array([log_density(t) for t in grid])
    density = np.exp(logs - logs.max())
    exact = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    exact /= exact[-1]
    return np.abs((draws[:, None] <= grid).mean(axis=0) - exact).max()


# Kolmogorov's bound is exceeded once in 100,000 samples of 700 draws that are independent.
MOST = 2.47 / math.sqrt(700)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("grid", "categorical"), ("grid", "poisson"), ("mixed", "bernoulli"), ("mondrian", "gaussian")],
)
def test_given_blocks_it_has_its_conditional(kind, name):
    state = state_of(kind, name)
    likelihood = naive_log_likelihood(name, state)
    assert state.log_likelihood() == pytest.approx(likelihood(CASES[name][0].pseudo_count), abs=1e-8)
    rng = np.random.default_rng(7)
    draws = []
    for step in range(2800):
        assert LearnPseudoCount().step(rng, state).accepted == 1
        if step % 4 == 0:
            draws.append(math.log(state.cell_family.pseudo_count))
    draws = np.array(draws)
    exact = cache(lambda t: likelihood(math.exp(t)) + log_prior(t))
    assert distance_to(draws, exact) < MOST
    # The twins: a density of β taken for one of ln β, and the prior alone.
    assert distance_to(draws, lambda t: exact(t) - 1.5 * t) > MOST
    assert distance_to(draws, log_prior) > MOST
    # Caches follow.
    assert state.log_likelihood() == pytest.approx(likelihood(state.cell_family.pseudo_count), abs=1e-8)
    kept = state.log_likelihood()
    state.refresh()
    assert state.log_likelihood() == pytest.approx(kept, abs=1e-9)


@pytest.mark.parametrize("kind", ["grid", "mixed", "mondrian"])
def test_it_comes_back_from_a_checkpoint(kind):
    state, other = state_of(kind, "bernoulli"), state_of(kind, "bernoulli")
    LearnPseudoCount().step(np.random.default_rng(0), state)
    other.restore(state.checkpoint())
    assert other.record()["pseudo_count"] == state.record()["pseudo_count"] != 0.5
    assert other.log_joint() == pytest.approx(state.log_joint(), abs=1e-9)
    with pytest.raises(DataError, match="pseudo_count is"):
        other.restore({**state.checkpoint(), "pseudo_count": np.array(2 * learned.MOST)})


def test_nothing_is_learned_where_it_is_given():
    state = grid_state("categorical", None)
    assert LearnPseudoCount().step(np.random.default_rng(0), state).proposed == 0
    assert state.cell_family.pseudo_count == 0.4
    assert "pseudo_count" not in state.record()
