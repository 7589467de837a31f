"""Simulation-based calibration of co-clusterings that learn their pseudo-count.

Partitions, pseudo-count and cells come from the model; a chain starts at the truth, which under an exact
sampler has a uniform rank among draws so far apart that they are nearly independent (Talts et al. 2018).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from permix.cocluster.cells.encoded_matrix import encode_matrix
from permix.cocluster.cells.families import CategoricalCells
from permix.cocluster.grid.moves import grid_moves, matrix_moves
from permix.cocluster.grid.state import GridState
from permix.cocluster.mondrian.moves import mondrian_moves
from permix.cocluster.mondrian.state import MondrianData, MondrianState
from permix.partitions import Gamma, MixtureOfFiniteMixtures
from permix.partitions.mondrian import sample_mondrian

pytestmark = pytest.mark.slow

SHAPE, LEVELS = (8, 6), (1, 2, 3)
GAMMA, BUDGET = Gamma(2.0, 2.0), 0.8
PRIOR = MixtureOfFiniteMixtures(1.0, 1.0)
N_REPLICATES, N_DRAWS, N_THIN = 400, 19, 15
SMALLEST_P_VALUE = 1e-5


def cells_of(rng, blocks, beta):
    """A value for two of three cells, from the probabilities of its block."""
    chances = rng.dirichlet(np.full(3, beta), size=blocks.max() + 1)
    values = np.array([rng.choice(3, p=chances[block]) for block in blocks.ravel()]).reshape(SHAPE) + 1.0
    rows, columns = np.nonzero(rng.random(SHAPE) < 0.67)
    family = CategoricalCells(beta, levels=LEVELS)
    return encode_matrix(family, rows, columns, values[rows, columns], SHAPE)


def grid_truth(rng, beta):
    rows, columns = (PRIOR.sample(n, rng) for n in SHAPE)
    matrix = cells_of(rng, rows[:, None] * (columns.max() + 1) + columns, beta)
    state = GridState(matrix, PRIOR, PRIOR, GAMMA)
    state.rows.set_labels(rows)
    state.columns.set_labels(columns)
    state.refresh()
    return state


def mondrian_truth(rng, beta):
    tree = sample_mondrian(rng, BUDGET)
    places = {"rows": rng.random(SHAPE[0]), "columns": rng.random(SHAPE[1])}
    matrix = cells_of(rng, tree.locate(*places.values()), beta)
    state = MondrianState(MondrianData.of(matrix), BUDGET, rng, GAMMA)
    cuts = dict(zip(("axis", "cuts", "times"), tree.to_preorder(), strict=True))
    state.restore({**places, **cuts, "pseudo_count": np.array(beta)})
    return state


def quantities(state):
    record = state.record()
    numbers = [record[name] for name in ("n_row_groups", "n_column_groups", "log_likelihood")]
    return np.array([state.cell_family.pseudo_count, *numbers], dtype=float)


def ranks_of_truth(truth, move, seed):
    rng = np.random.default_rng(seed)
    ranks = []
    for _ in range(N_REPLICATES):
        state = truth(rng, rng.gamma(GAMMA.shape, 1.0 / GAMMA.rate))
        true = quantities(state)
        draws = []
        for _ in range(N_DRAWS):
            for _ in range(N_THIN):
                move.step(rng, state)
            draws.append(quantities(state))
        noise = 1e-9 * rng.random((N_DRAWS + 1, len(true)))  # equal numbers have a random order
        ranks.append((np.array(draws) + noise[1:] < true + noise[0]).sum(axis=0))
    return np.array(ranks)


def smallest_p_value(ranks):
    return min(
        stats.chisquare(np.bincount(column // 4, minlength=5)).pvalue for column in ranks.T.astype(int)
    )


@pytest.mark.parametrize("kind", ["grid", "mondrian"])
def test_ranks_are_uniform(kind):
    truth, move = (grid_truth, matrix_moves(*SHAPE)) if kind == "grid" else (mondrian_truth, mondrian_moves())
    assert smallest_p_value(ranks_of_truth(truth, move, seed=3)) > SMALLEST_P_VALUE


def test_calibration_rejects_another_pseudo_count():
    """The twin: chains that hold on to half of the true pseudo-count."""

    def halved(rng, beta):
        state = grid_truth(rng, beta)
        state.take_family(state.cell_family.at(0.2 * beta))
        state.refresh()
        return state

    assert smallest_p_value(ranks_of_truth(halved, grid_moves(*SHAPE), seed=4)[:, 1:]) < SMALLEST_P_VALUE
