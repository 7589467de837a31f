"""Simulation-based calibration: truth drawn from the prior has uniform ranks among posterior draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from permix.families import contract_jit as contract
from permix.kernels.jit import kernel
from permix.moves import Concentration, Cycle, Gibbs
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess, Gamma, PitmanYor
from tests.families.cases import CASES

pytestmark = pytest.mark.slow

N_POINTS, N_DRAWS, N_THIN, N_BURN_IN = 12, 49, 4, 60
N_REPLICATES = 600
GAMMA = Gamma(2.0, 1.5)


@kernel
def grow(rng, stats_, labels, rows):
    """Draw each datum from the predictive of its cluster given the earlier ones; rows are dense."""
    for i in range(labels.shape[0]):
        contract.draw(rng, stats_, labels[i], rows[i])


def joint_draw(rng, family, prior):
    """Concentration, partition and data from their joint prior distribution."""
    concentration = rng.gamma(GAMMA.shape, 1 / GAMMA.rate) if isinstance(prior, DirichletProcess) else 0.0
    spec = DirichletProcess(concentration) if isinstance(prior, DirichletProcess) else prior
    labels = np.asarray(spec.sample(N_POINTS, rng)).ravel()
    rows = np.empty((N_POINTS, family.n_features))
    for i in range(N_POINTS):
        # Statistics of the data drawn so far; a cluster that is still empty predicts by the prior.
        stats_ = family.statistics(int(labels.max()) + 1)
        data = family.encode(family.decode(rows[:i])) if i else family.encode(family.decode(rows[:1] * 0))
        contract.seat_all(stats_, data, labels[:i].astype(np.int32), int(labels.max()) + 1)
        grow(rng, stats_, labels[i : i + 1].astype(np.int64), rows[i : i + 1])
    state = MixtureState(family, family.encode(family.decode(rows)), N_POINTS, prior)
    state.set_labels(labels)
    state.concentration = concentration
    return state


def quantities(state, learned):
    together = float(state.labels[0] == state.labels[1])
    values = [state.n_clusters, state.log_joint(), together, state.log_likelihood()]
    return [*values, state.concentration] if learned else values


def ranks_of_truth(family, prior, move, seed):
    rng = np.random.default_rng(seed)
    learned = isinstance(prior, DirichletProcess)
    ranks = []
    for _ in range(N_REPLICATES):
        state = joint_draw(rng, family, prior)
        truth = np.array(quantities(state, learned))
        state.set_labels(np.zeros(N_POINTS, dtype=int))
        state.concentration = GAMMA.mean if learned else 0.0
        draws = []
        for t in range(N_BURN_IN + N_DRAWS * N_THIN):
            move.step(rng, state)
            if t >= N_BURN_IN and (t - N_BURN_IN) % N_THIN == 0:
                draws.append(quantities(state, learned))
        below = (np.array(draws) < truth).sum(axis=0)
        ties = (np.array(draws) == truth).sum(axis=0)
        ranks.append(below + rng.integers(0, ties + 1))
    return np.array(ranks)


def smallest_p_value(ranks):
    """Chi-square test of uniform ranks in ten bins, the smallest over quantities."""
    return min(
        stats.chisquare(np.bincount(column * 10 // (N_DRAWS + 1), minlength=10)).pvalue for column in ranks.T
    )


@pytest.mark.parametrize("prior", [DirichletProcess(GAMMA), PitmanYor(0.7, 0.3)], ids=["dp", "pitman-yor"])
@pytest.mark.parametrize("name", ["gaussian-isotropic", "gaussian-niw", "multinomial"])
def test_ranks_are_uniform(name, prior):
    family, _ = CASES[name]
    ranks = ranks_of_truth(family, prior, Cycle([Gibbs(), Concentration()]), seed=17)
    # Five quantities, six tests in all: a false alarm about once in 30,000 runs.
    assert smallest_p_value(ranks) > 1e-6


def test_calibration_rejects_a_chain_that_never_updates_the_concentration():
    family, _ = CASES["gaussian-isotropic"]
    ranks = ranks_of_truth(family, DirichletProcess(GAMMA), Gibbs(), seed=17)
    assert smallest_p_value(ranks) < 1e-6
