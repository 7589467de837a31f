"""Consensus of base co-clusterings against enumeration; the equations as printed fail."""

from __future__ import annotations

import numpy as np
import pytest

from permix.cocluster.grid.ensemble_state import EnsembleGridState, seat_consensus
from permix.cocluster.grid.moves import OnColumns, OnRows
from permix.errors import DataError
from permix.moves import Concentration, Cycle, Gibbs, SplitMerge
from permix.moves.gibbs_jit import conditional
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess, Gamma, canonical_labels
from tests.moves.mixture_cases import chain_frequencies
from tests.oracles.ensemble import (
    as_printed,
    consensus_posterior,
    corrected,
    gibbs_visits,
    labels_log_evidence,
    seating_prior,
    transition_matrices,
)
from tests.oracles.mixtures import total_variation, total_variation_bound
from tests.oracles.twins import TEMPERED, TwinFamily

# Five rows and four columns in three bases that agree in part; no row is alone in a base, so that the
# equations as printed give no zero weights.
ROWS = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 1, 1], [1, 1, 1]])
COLUMNS = np.array([[0, 0, 1], [0, 1, 2], [1, 1, 0], [2, 0, 0]])
ALPHA, BETA = 1.3, 1.0
N_SWEEPS = 10_000


def state_of(beta=BETA, prior=None):
    prior = DirichletProcess(ALPHA) if prior is None else prior
    return EnsembleGridState(ROWS, COLUMNS, prior, prior, beta)


def seated(state, rng):
    seat_consensus(rng, state)
    return state


@pytest.mark.parametrize("side", ["rows", "columns"])
def test_compiled_conditional_is_the_corrected_equation(side):
    table = ROWS if side == "rows" else COLUMNS
    mixture = getattr(state_of(), side)
    for partition, _ in zip(*consensus_posterior(table, ALPHA, BETA), strict=True):
        mixture.set_labels(np.array(partition))
        for r in range(len(table)):
            scores = np.empty(mixture.capacity + 1)
            n = conditional(
                mixture.prior.joining,
                mixture.prior.opening,
                mixture.stats,
                mixture.data,
                mixture.empty_scores,
                mixture.labels,
                mixture.sizes,
                mixture.n_clusters,
                r,
                scores,
            )
            wanted = corrected(table, np.array(partition), r, ALPHA, BETA)
            found = dict(enumerate(np.exp(scores[:n])))
            alone = partition.count(partition[r]) == 1
            if alone:  # staying alone is opening a cluster
                wanted[partition[r]] = wanted.pop(max(wanted))
            assert sorted(found) == sorted(wanted)
            np.testing.assert_allclose([found[k] for k in wanted], list(wanted.values()), rtol=1e-12)


def test_the_corrected_equation_leaves_the_posterior_invariant_and_the_printed_one_does_not():
    _, pi = consensus_posterior(ROWS, ALPHA, BETA)
    for matrix in transition_matrices(corrected, ROWS, ALPHA, BETA):
        np.testing.assert_allclose(pi @ matrix, pi, atol=1e-12)
    printed = transition_matrices(as_printed, ROWS, ALPHA, BETA)
    assert max(np.abs(pi @ matrix - pi).max() for matrix in printed) > 0.02
    # What is left invariant is the prior: the labels do not matter.
    prior = seating_prior(len(ROWS), ALPHA)
    for matrix in printed:
        np.testing.assert_allclose(prior @ matrix, prior, atol=1e-12)
    np.testing.assert_allclose(
        printed, transition_matrices(as_printed, np.zeros((5, 2), dtype=int), ALPHA, BETA), atol=1e-12
    )
    # And where a row is alone in one base, the equations give no distribution at all.
    assert sum(as_printed(np.array([[0], [0], [1]]), np.zeros(3, dtype=int), 2, ALPHA, BETA).values()) == 0.0


@pytest.mark.parametrize("move", [Gibbs(), SplitMerge(n_proposals=3)], ids=["gibbs", "split-merge"])
@pytest.mark.parametrize("side", ["rows", "columns"])
def test_chain_visits_partitions_as_often_as_the_posterior_says(side, move):
    partitions, pi = consensus_posterior(ROWS if side == "rows" else COLUMNS, ALPHA, BETA)
    assert len(partitions) == {"rows": 52, "columns": 15}[side]
    mixture = getattr(state_of(), side)
    frequencies, n_effective = chain_frequencies(move, mixture, partitions, N_SWEEPS, seed=1)
    assert n_effective > N_SWEEPS / 20
    assert total_variation(frequencies, pi) < total_variation_bound(pi, n_effective)


def test_a_chain_by_the_printed_equations_fails():
    partitions, pi = consensus_posterior(ROWS, ALPHA, BETA)
    for equation, right in ((corrected, True), (as_printed, False)):
        visits = gibbs_visits(transition_matrices(equation, ROWS, ALPHA, BETA), N_SWEEPS, seed=2)
        frequencies = np.bincount(visits, minlength=len(partitions)) / N_SWEEPS
        # Successive sweeps of five rows are nearly independent; a quarter of them is a safe count.
        bound = total_variation_bound(pi, N_SWEEPS / 4)
        assert (total_variation(frequencies, pi) < bound) == right
        prior = seating_prior(len(ROWS), ALPHA)
        assert (total_variation(frequencies, prior) < total_variation_bound(prior, N_SWEEPS / 4)) != right


@pytest.mark.parametrize(
    "broken",
    [
        # β_m for β_m/T_m: the pseudo-count of a base, with two labels, mistaken for that of one label.
        lambda: state_of(2 * BETA).rows,
        # The likelihood of rows from the labels of other rows.
        lambda: (
            EnsembleGridState(
                ROWS[::-1].copy(), COLUMNS, DirichletProcess(ALPHA), DirichletProcess(ALPHA), BETA
            ).rows
        ),
        # One base forgotten.
        lambda: (
            EnsembleGridState(
                ROWS[:, :2], COLUMNS[:, :2], DirichletProcess(ALPHA), DirichletProcess(ALPHA), BETA
            ).rows
        ),
    ],
    ids=["pseudo-count", "rows", "bases"],
)
def test_frequencies_reject_broken_states(broken):
    partitions, pi = consensus_posterior(ROWS, ALPHA, BETA)
    frequencies, n_effective = chain_frequencies(Gibbs(), broken(), partitions, N_SWEEPS, seed=1)
    assert total_variation(frequencies, pi) > total_variation_bound(pi, n_effective)


@pytest.mark.slow
def test_frequencies_reject_a_tempered_likelihood():
    partitions, pi = consensus_posterior(ROWS, ALPHA, BETA)
    right = state_of().rows
    twin = MixtureState(
        TwinFamily(right.family, **TEMPERED), right.data, 5, right.prior_spec, right.empty_scores
    )
    frequencies, n_effective = chain_frequencies(Gibbs(), twin, partitions, N_SWEEPS, seed=1)
    assert total_variation(frequencies, pi) > total_variation_bound(pi, n_effective)


def test_both_sides_in_one_chain_have_the_product_distribution():
    (row_partitions, row_pi), (column_partitions, column_pi) = (
        consensus_posterior(table, ALPHA, BETA) for table in (ROWS, COLUMNS)
    )
    row_index, column_index = (
        {partition: position for position, partition in enumerate(partitions)}
        for partitions in (row_partitions, column_partitions)
    )
    rng = np.random.default_rng(3)
    state = seated(state_of(), rng)
    counts = np.zeros((len(row_pi), len(column_pi)))
    move = Cycle([OnRows([Gibbs()]), OnColumns([Gibbs()])])
    for _ in range(N_SWEEPS):
        move.step(rng, state)
        rows, columns = (
            tuple(canonical_labels(side.labels).tolist()) for side in (state.rows, state.columns)
        )
        counts[row_index[rows], column_index[columns]] += 1
    wanted = np.outer(row_pi, column_pi).ravel()
    found = counts.ravel() / N_SWEEPS
    assert total_variation(found, wanted) < total_variation_bound(wanted, N_SWEEPS / 4)
    # Twin: columns drawn from their prior would not pass.
    wrong = np.outer(row_pi, seating_prior(4, ALPHA)).ravel()
    assert total_variation(found, wrong) > total_variation_bound(wrong, N_SWEEPS / 4)


MOVES = [Gibbs(), SplitMerge(n_proposals=5), Concentration()]


def test_records_are_right_after_every_move():
    rng = np.random.default_rng(4)
    prior = DirichletProcess(Gamma(2.0, 1.0))
    state = seated(state_of(prior=prior), rng)
    for _ in range(200):
        for name, move in (("row", OnRows(MOVES)), ("column", OnColumns(MOVES))):
            move.step(rng, state)
            draw = state.record()
            wanted = sum(
                labels_log_evidence(draw[f"{which}_labels"], table, BETA)
                for which, table in (("row", ROWS), ("column", COLUMNS))
            )
            assert draw["log_likelihood"] == pytest.approx(wanted, abs=1e-10)
            assert draw["n_blocks"] == draw["n_row_groups"] * draw["n_column_groups"]
            assert draw[f"n_{name}_groups"] == len(np.unique(draw[f"{name}_labels"]))
            assert draw["log_joint"] == pytest.approx(state.log_joint(), abs=1e-12)
            assert draw[f"{name}_concentration"] == getattr(state, f"{name}s").concentration
    assert "row_concentration" not in seated(state_of(), rng).record()


def test_restored_chains_go_on_to_the_last_bit():
    rng = np.random.default_rng(5)
    move = Cycle([OnRows(MOVES), OnColumns(MOVES)])
    first = seated(state_of(prior=DirichletProcess(Gamma(2.0, 1.0))), rng)
    for _ in range(20):
        move.step(rng, first)
    kept, random_state = first.checkpoint(), rng.bit_generator.state
    second = state_of(prior=DirichletProcess(Gamma(2.0, 1.0)))
    second.restore(kept)
    ends = []
    for state in (first, second):
        rng.bit_generator.state = random_state
        state.refresh()
        for _ in range(20):
            move.step(rng, state)
        ends.append((state.record(), state.checkpoint()))
    for one, other in zip(*ends, strict=True):
        assert sorted(one) == sorted(other)
        for name, value in one.items():
            assert np.array_equal(value, other[name]), name
    for damaged in ({**kept, "rows/labels": kept["columns/labels"]}, {}):
        with pytest.raises(DataError, match="checkpoint"):
            second.restore(damaged)


def test_tables_of_other_numbers_of_bases_are_refused():
    with pytest.raises(DataError, match="3 bases label the rows, but 2"):
        EnsembleGridState(ROWS, COLUMNS[:, :2], DirichletProcess(1.0), DirichletProcess(1.0))
