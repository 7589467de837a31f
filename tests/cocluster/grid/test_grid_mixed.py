"""Latent Dirichlet co-clustering as published, every cell with clusters of its own, against enumeration."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from permix.cocluster.cells.families import cell_family
from permix.cocluster.grid.mixed_state import MixedGibbs, MixedState
from permix.errors import DataError
from permix.sampling import run_chains
from tests.cocluster.grid.cases import CASES, encoded, random_matrix
from tests.every_run import first_in_every_run
from tests.oracles.cocluster import exact_mixed_posterior
from tests.oracles.mixtures import total_variation, total_variation_bound

# Cells of levels and of numbers in every run.
FAMILIES = pytest.mark.parametrize(
    "name", first_in_every_run(dict.fromkeys(["categorical", "gaussian", *CASES]), 2)
)
CLUSTERS, PSEUDO_COUNTS = (2, 2), (0.4, 0.7)
N_STEPS = 10_000


def tiny(name):
    """A 2 × 2 matrix, with a missing cell where the cells have levels."""
    X = CASES[name][2][:2, :2]
    return X if CASES[name][0].has_levels else np.where(np.isnan(X), 3.0, X)


def state_of(name):
    return MixedState(encoded(CASES[name][0], tiny(name)), *CLUSTERS, *PSEUDO_COUNTS)


@cache
def posterior(name, flaw=None):
    states, pi, scores = exact_mixed_posterior(CASES[name][1], tiny(name), CLUSTERS, PSEUDO_COUNTS, flaw)
    assert len(states) == 4 ** np.count_nonzero(~np.isnan(tiny(name)))
    return states, pi, scores


@FAMILIES
def test_log_joint_equals_enumeration(name):
    states, _, scores = posterior(name)
    state = state_of(name)
    for place in range(0, len(states), 7):
        state.restore({**state.checkpoint(), "clusters": np.array(states[place])})
        assert state.log_joint() == pytest.approx(scores[place], abs=1e-10)


@cache
def chain(name):
    """Frequencies of all assignments, and the effective number of draws by batch means."""
    states, _, _ = posterior(name)
    index = {np.array(z, dtype=np.int32).tobytes(): place for place, z in enumerate(states)}
    state, move = state_of(name), MixedGibbs()
    rng = np.random.default_rng(11)
    visits = np.empty(N_STEPS, dtype=np.int64)
    for step in range(-20, N_STEPS):
        move.step(rng, state)
        if step >= 0:
            visits[step] = index[state.mixed.clusters.tobytes()]
    frequencies = np.bincount(visits, minlength=len(states)) / N_STEPS
    batches = visits.reshape(100, -1)
    common = np.argsort(frequencies)[-20:]
    p = frequencies[common]
    variance = np.stack([(batches == k).mean(axis=1) for k in common]).var(axis=1)
    return frequencies, min(float(np.median(p * (1 - p) / variance)) * 100, float(N_STEPS))


@FAMILIES
def test_chain_visits_assignments_as_often_as_the_posterior_says(name):
    _, pi, _ = posterior(name)
    frequencies, n_effective = chain(name)
    assert n_effective > N_STEPS / 20
    assert total_variation(frequencies, pi) < total_variation_bound(pi, n_effective)


@pytest.mark.parametrize("flaw", ["shares", "columns"])
@FAMILIES
def test_frequencies_reject_broken_twins(name, flaw):
    _, broken, _ = posterior(name, flaw)
    frequencies, n_effective = chain(name)
    assert total_variation(frequencies, broken) > total_variation_bound(broken, n_effective)


@FAMILIES
def test_counts_equal_recomputation_and_chains_resume(name):
    X = random_matrix(name, 3)
    matrix = encoded(cell_family(name, 0.5), X)
    state = MixedState(matrix, 4, 3, 0.3, 0.5)
    rng = np.random.default_rng(0)
    state.start(rng)
    for _ in range(25):
        assert state.sweep(rng) == state.n_moved
    twin = MixedState(matrix, 4, 3, 0.3, 0.5)
    twin.restore(state.checkpoint())
    for mine, theirs in zip(state.mixed, twin.mixed, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)
    state.refresh()
    twin.refresh()
    other_rng = np.random.default_rng(0)
    other_rng.bit_generator.state = rng.bit_generator.state
    for _ in range(20):
        state.sweep(rng)
        twin.sweep(other_rng)
    ours, theirs = state.record(), twin.record()
    for key in ours:
        assert np.array_equal(ours[key], theirs[key]), key
    assert np.array_equal(ours["row_memberships"].sum(axis=1), (~np.isnan(X)).sum(axis=1))
    assert np.array_equal(ours["column_memberships"].sum(axis=1), (~np.isnan(X)).sum(axis=0))
    assert ours["block_cells"].sum() == matrix.n_cells
    filled = ours["row_memberships"].any(axis=1)
    assert np.array_equal(ours["row_labels"][filled], ours["row_memberships"].argmax(axis=1)[filled])
    assert ours["n_blocks"] == np.count_nonzero(ours["block_cells"])
    if state.matrix.family.has_levels:
        assert np.array_equal(ours["block_sums"].sum(axis=-1), ours["block_cells"])
    else:
        np.testing.assert_allclose(
            ours["block_sums"].sum(axis=(0, 1))[0], matrix.by_row.codes.sum(), atol=1e-9
        )


def test_memberships_are_stored_small():
    X = random_matrix("categorical", 1)
    matrix = encoded(cell_family("categorical"), X)

    def first_state(rng):
        state = MixedState(matrix, 3, 2, 0.5, 0.5)
        state.start(rng)
        return state

    draws = run_chains(
        first_state,
        MixedGibbs(),
        n_draws=8,
        n_burn_in=4,
        n_thin=1,
        n_chains=2,
        random_state=1,
        fingerprint="",
    )
    assert draws.arrays["row_memberships"].shape == (2, 8, 25, 3)
    assert draws.arrays["row_memberships"].dtype == np.uint8
    assert draws.arrays["block_sums"].shape == (2, 8, 3, 2, 3)


def test_a_far_value_does_not_end_the_sweep():
    X = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1e6]])
    state = MixedState(encoded(cell_family("poisson"), X), 2, 2, 0.5, 0.5)
    rng = np.random.default_rng(0)
    for _ in range(20):
        state.sweep(rng)
    assert np.isfinite(state.log_joint())
    # Its weights are far below what floats hold in all blocks, and yet it ends up in one of its own.
    assert state.mixed.cells[tuple(state.mixed.clusters[:, -1])] == 1


def test_lines_without_cells_may_be_anywhere():
    X = np.full((6, 5), np.nan)
    X[:3, :4] = np.arange(12).reshape(3, 4) % 3
    state = MixedState(encoded(cell_family("categorical"), X), 4, 2, 0.5, 0.5)
    rng = np.random.default_rng(1)
    labels = []
    for _ in range(400):
        state.sweep(rng)
        labels.append(state.record())
    rows = np.array([draw["row_labels"] for draw in labels])
    columns = np.array([draw["column_labels"] for draw in labels])
    # Two empty rows are together one time in four; five standard deviations of 400 draws.
    assert abs((rows[:, 3] == rows[:, 4]).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 400)
    assert abs(columns[:, 4].mean() - 0.5) < 5 * 0.5 / np.sqrt(400)
    counts = labels[-1]["row_memberships"]
    np.testing.assert_array_equal(rows[-1, :3], counts[:3].argmax(axis=1))


def test_bad_settings_and_checkpoints_are_refused():
    matrix = encoded(cell_family("categorical"), random_matrix("categorical", 1))
    with pytest.raises(DataError, match="n_row_clusters"):
        MixedState(matrix, 0, 2, 0.5, 0.5)
    with pytest.raises(DataError, match="column_pseudo_count"):
        MixedState(matrix, 2, 2, 0.5, 0.0)
    state = MixedState(matrix, 2, 2, 0.5, 0.5)
    with pytest.raises(DataError, match="cells"):
        state.restore({"clusters": np.zeros((2, 3), dtype=np.int32)})
    with pytest.raises(DataError, match="not there"):
        state.restore({"clusters": np.full((2, matrix.n_cells), 2, dtype=np.int32)})
    with pytest.raises(DataError, match="no whole numbers"):
        state.restore({"clusters": np.full((2, matrix.n_cells), np.nan)})
    with pytest.raises(DataError, match="other ones"):
        state.restore({**state.checkpoint(), "idle_rows": np.array([0, 0, 7])})
