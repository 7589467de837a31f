"""Caches, checkpoints, starts and planted grids."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from permix.cocluster.cells.families import CategoricalCells, cell_family
from permix.cocluster.grid.moves import OnColumns, OnRows, grid_moves
from permix.cocluster.grid.state import GridState, seat_all_lines
from permix.datasets import make_grid_coclusters
from permix.errors import DataError
from permix.moves import Gibbs, SplitMerge
from permix.moves.state import FIRST_CAPACITY
from permix.partitions import DirichletProcess, FiniteDirichlet, Gamma
from permix.sampling import run_chains
from tests.cocluster.grid.cases import CASES, encoded, random_matrix, set_labels
from tests.oracles.cocluster import (
    Naive,
    gaussian_predictive,
    levels_predictive,
    log_matrix,
    poisson_predictive,
)

FAMILIES = pytest.mark.parametrize("name", CASES)


def naive_of(family):
    """The same family, one cell after another."""
    a = family.pseudo_count
    if family.has_levels:
        return Naive(levels_predictive(a, family.n_slots), 0.0)
    if family.name == "poisson":
        return Naive(poisson_predictive(a * family.prior_mean, a), 0.0)
    return Naive(gaussian_predictive(family.prior_mean, a, a / 2, a / 2 * family.prior_scale**2), 0.0)


def state_of(name, seed=0, concentration=3.0, **settings):
    X = random_matrix(name, seed, **settings)
    matrix = encoded(cell_family(name, 0.5), X)
    state = GridState(matrix, DirichletProcess(concentration), DirichletProcess(Gamma(2.0, 1.0)))
    seat_all_lines(np.random.default_rng(seed), state, n_groups=6)
    return X, state


def fresh_twin(state):
    twin = GridState(state.matrix, state.rows.prior_spec, state.columns.prior_spec)
    twin.restore(state.checkpoint())
    return twin


def assert_same_caches(mixture, other):
    assert mixture.n_clusters == other.n_clusters
    np.testing.assert_array_equal(mixture.sizes_in_use, other.sizes_in_use)
    np.testing.assert_allclose(mixture.empty_scores, other.empty_scores, atol=1e-10)
    n_groups = int(mixture.family.n_groups[0])
    for field in ("counts", "steps", "values"):
        if hasattr(mixture.stats, field):
            per_group = getattr(mixture.family, "n_levels", 0) + 1
            mine, theirs = (
                getattr(side.stats, field)[..., : n_groups * per_group, : mixture.n_clusters]
                for side in (mixture, other)
            )
            np.testing.assert_allclose(mine, theirs, atol=1e-9, rtol=1e-10)


@FAMILIES
def test_caches_equal_recomputation_after_every_move(name):
    X, state = state_of(name, missing=0.75)
    naive = naive_of(state.matrix.family)
    rng = np.random.default_rng(1)
    moves = [OnRows([Gibbs()]), OnRows([SplitMerge(n_proposals=1)])]
    moves += [OnColumns([Gibbs()]), OnColumns([SplitMerge(n_proposals=1)])]
    accepted = 0
    for step in range(120):
        move = moves[step % 4]
        info = move.step(rng, state)
        accepted += info.accepted if step % 2 else 0
        twin = fresh_twin(state)
        # The axis just worked on, whose caches followed step by step, not made anew.
        assert_same_caches(getattr(state, move.side), twin.side(move.side))
        assert state.log_joint() == twin.log_joint()
        cached = getattr(state, move.side).log_likelihood() + state.matrix.log_constant
        assert state.log_likelihood() == pytest.approx(cached, abs=1e-8)
        if step % 12 == 3 or (step % 2 and info.accepted):
            naively = log_matrix(naive, X, state.rows.labels.tolist(), state.columns.labels.tolist())
            assert state.log_likelihood() == pytest.approx(naively, abs=1e-7)
    assert accepted >= 3  # splits and merges were among them


def test_caches_reject_a_forgotten_update():
    _, state = state_of("categorical")
    twin = fresh_twin(state)
    state.side("rows").stats.counts[0, 0] += 1
    with pytest.raises(AssertionError):
        assert_same_caches(state.rows, twin.side("rows"))


@FAMILIES
def test_both_axes_give_the_same_likelihood(name):
    _, state = state_of(name, seed=3)
    by_rows = state.side("rows").log_likelihood()
    by_columns = state.side("columns").log_likelihood()
    assert by_rows == pytest.approx(by_columns, abs=1e-8)
    assert state.log_likelihood() == pytest.approx(by_rows + state.matrix.log_constant, abs=1e-8)
    prior = state.rows.log_prior() + state.columns.log_prior()
    assert state.log_prior() == pytest.approx(prior, abs=1e-10)
    assert state.log_joint() == pytest.approx(state.log_likelihood() + prior, abs=1e-8)


@FAMILIES
def test_log_joint_does_not_depend_on_how_clusters_are_numbered(name):
    """Chains in the same place must not seem to disagree by what rounding leaves."""
    _, state = state_of(name, seed=4, concentration=20.0)
    value = state.log_joint()
    rng = np.random.default_rng(0)
    for _ in range(5):
        rows, columns = (
            rng.permutation(side.n_clusters)[side.labels] for side in (state.rows, state.columns)
        )
        set_labels(state, rows, columns)
        state.rows.labels[:] = rows  # as chains number them, not by first appearance
        state.columns.labels[:] = columns
        state.refresh()
        assert state.log_joint() == value


@FAMILIES
def test_restored_chain_goes_on_to_the_last_bit(name):
    _, state = state_of(name, seed=2)
    move = grid_moves(25, 18)
    rng = np.random.default_rng(7)
    for _ in range(9):
        move.step(rng, state)
    kept = state.checkpoint()
    state.refresh()
    twin = GridState(state.matrix, state.rows.prior_spec, state.columns.prior_spec)
    twin.restore(kept)
    twin.refresh()
    other_rng = np.random.default_rng(7)
    other_rng.bit_generator.state = rng.bit_generator.state
    for _ in range(40):
        move.step(rng, state)
        move.step(other_rng, twin)
        ours, theirs = state.record(), twin.record()
        assert list(ours) == list(theirs)
        for key in ours:
            assert np.array_equal(ours[key], theirs[key]), key


def test_restored_chain_goes_on_after_room_was_made():
    """More clusters than the first capacity, on both axes: statistics grow, and restored ones have grown."""
    X = random_matrix("categorical", 4, shape=(90, 70), missing=0.9)
    matrix = encoded(CategoricalCells(0.05), X)
    state = GridState(matrix, DirichletProcess(40.0), DirichletProcess(40.0))
    rng = np.random.default_rng(3)
    seat_all_lines(rng, state, n_groups=70)
    assert min(state.rows.n_clusters, state.columns.n_clusters) > FIRST_CAPACITY
    move = grid_moves(90, 70)
    for _ in range(5):
        move.step(rng, state)
    twin = fresh_twin(state)
    state.refresh()
    twin.refresh()
    assert_same_caches(state.rows, twin.rows)
    other_rng = np.random.default_rng(0)
    other_rng.bit_generator.state = rng.bit_generator.state
    for _ in range(10):
        move.step(rng, state)
        move.step(other_rng, twin)
        assert state.log_joint() == twin.log_joint()
        assert_same_caches(state.columns, fresh_twin(state).columns)


def test_lines_are_not_grouped_by_lines_in_no_cluster():
    _, state = state_of("categorical")
    state.axis("columns").unseat()
    with pytest.raises(DataError, match="in groups"):
        state.side("rows")


def test_damaged_checkpoints_are_refused():
    _, state = state_of("categorical")
    kept = state.checkpoint()
    with pytest.raises(DataError, match="not one of a grid"):
        state.restore({name: array for name, array in kept.items() if name.startswith("rows/")})
    for value in (np.nan, -1.0, np.inf):
        with pytest.raises(DataError, match="concentration"):
            state.restore({**kept, "columns/concentration": np.array(value)})
    kept["rows/labels"] = kept["rows/labels"] + 1
    with pytest.raises(DataError, match="do not fit together"):
        state.restore(kept)


@FAMILIES
def test_record_and_progress(name):
    X, state = state_of(name)
    record = state.record()
    assert record["row_labels"].shape == (25,)
    assert record["column_labels"].shape == (18,)
    assert record["n_row_groups"] == len(set(record["row_labels"].tolist()))
    assert record["n_column_groups"] == len(set(record["column_labels"].tolist()))
    assert record["n_blocks"] == record["n_row_groups"] * record["n_column_groups"]
    assert record["row_labels"][0] == record["column_labels"][0] == 0
    assert record["column_concentration"] == state.columns.concentration
    assert state.progress()["groups of rows"] == record["n_row_groups"]
    naively = log_matrix(
        naive_of(state.matrix.family), X, record["row_labels"].tolist(), record["column_labels"].tolist()
    )
    assert record["log_likelihood"] == pytest.approx(naively, abs=1e-7)


@FAMILIES
def test_runs_in_chains_and_reports_moves_by_axis(name):
    X = random_matrix(name, 5)
    matrix = encoded(cell_family(name), X)

    def first_state(rng):
        state = GridState(matrix, FiniteDirichlet(4, 0.5), DirichletProcess(1.0))
        seat_all_lines(rng, state)
        return state

    draws = run_chains(
        first_state,
        grid_moves(25, 18),
        n_draws=20,
        n_burn_in=10,
        n_thin=1,
        n_chains=1,
        random_state=3,
        fingerprint="",
    )
    assert draws.arrays["row_labels"].shape == (1, 20, 25)
    assert draws.arrays["n_row_groups"].max() <= 4
    assert {"row gibbs", "column gibbs", "row split-merge", "column split-merge"} <= set(
        draws.statistics["moves"]
    )


@pytest.mark.parametrize("seed", [0, 7])
def test_planted_grid_is_found(seed):
    """Five levels, 8 × 5 blocks, a quarter of the cells missing; the numbers of clusters are not told."""
    planted = make_grid_coclusters(1000, 100, 8, 5, missing=0.25, random_state=seed)
    matrix = encoded(CategoricalCells(), np.asarray(planted.data, dtype=float))
    state = GridState(matrix, DirichletProcess(1.0), DirichletProcess(1.0))
    rng = np.random.default_rng(seed)
    seat_all_lines(rng, state)
    move = grid_moves(1000, 100)
    for _ in range(40):
        move.step(rng, state)
    assert adjusted_rand_score(planted.row_labels, state.rows.labels) == 1.0
    assert adjusted_rand_score(planted.column_labels, state.columns.labels) == 1.0


def test_lines_of_one_cluster_each_and_tiny_matrices():
    for shape in ((1, 1), (1, 4), (5, 1)):
        X = np.arange(float(np.prod(shape))).reshape(shape) % 2
        matrix = encoded(CategoricalCells(levels=(0, 1)), X)
        state = GridState(matrix, DirichletProcess(1.0), DirichletProcess(1.0))
        rng = np.random.default_rng(0)
        seat_all_lines(rng, state)
        for _ in range(5):
            grid_moves(*shape).step(rng, state)
        assert np.isfinite(state.log_joint())
