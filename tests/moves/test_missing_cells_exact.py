"""Missing cells under full covariances, against integrals over them: all partitions times what is missing."""

from __future__ import annotations

import functools
import inspect
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from permix.dp_mixture.left_out_jit import score_without
from permix.families import GaussianNIW, MixedNIW
from permix.families.contract_jit import score_new_data, seat_all
from permix.families.missing import niw_gaps_jit
from permix.families.missing.niw_gaps_jit import _observed, _products, with_gaps
from permix.moves import Cycle, Gibbs, MissingCells, SplitMerge
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess
from permix.partitions.labels import canonical_labels
from tests.families.cases import CASES
from tests.oracles.mixtures import naive_marginal, total_variation, total_variation_bound
from tests.oracles.partitions import restricted_growth_strings

X = np.array([[-1.2, np.nan], [-0.7, 1.9], [np.nan, -0.8], [2.1, -1.5]])
FAMILY = GaussianNIW([0.0, 0.5], 0.5, 4.0, [[1.0, 0.6], [0.6, 1.0]]).resolve(X)
PRIOR = DirichletProcess(1.0)
PARTITIONS = list(restricted_growth_strings(4))
N_STEPS, N_BINS = 8_000, 3


def observed_log_density(family, x, members):
    """ln p(observed cells of x | complete members): Student's t in these columns."""
    m, kappa, nu = np.asarray(family.prior_mean), family.prior_strength, family.degrees_of_freedom
    n, d, here = len(members), len(x), ~np.isnan(x)
    center = members.mean(axis=0) if n else m
    scale = family.scale + (members - center).T @ (members - center)
    scale = scale + kappa * n / (kappa + n) * np.outer(center - m, center - m)
    location, freedom = (kappa * m + members.sum(axis=0)) / (kappa + n), nu + n - d + 1
    spread = scale * (kappa + n + 1) / ((kappa + n) * freedom)
    if not here.any():
        return 0.0
    return stats.multivariate_t.logpdf(x[here], location[here], spread[np.ix_(here, here)], df=freedom)


def exact():
    return exact_of(FAMILY)


@functools.cache
def exact_of(family, beside=None):
    """Probabilities of partitions times bins of the first missing cell, and the edges of the bins.

    The cell of row 1 is integrated numerically, that of row 3 by the marginal of Student's t. ``beside`` is
    what other columns say of some rows being one group.
    """
    angles = (np.arange(160) + 0.5) / 160 * np.pi - np.pi / 2
    grid, weights = 3.0 * np.tan(angles), 3.0 / np.cos(angles) ** 2
    table = np.empty((len(PARTITIONS), len(grid)))
    for g, cell in enumerate(grid):
        filled = X.copy()
        filled[0, 1] = cell
        blocks = {}
        for size in range(1, 5):
            for rows in itertools.combinations(range(4), size):
                complete = filled[[row for row in rows if row != 2]]
                blocks[rows] = naive_marginal(family, complete) + (beside(rows) if beside else 0.0)
                if 2 in rows:
                    blocks[rows] += observed_log_density(family, X[2], complete)
        for p, labels in enumerate(PARTITIONS):
            parts = [tuple(np.flatnonzero(np.array(labels) == k).tolist()) for k in range(max(labels) + 1)]
            table[p, g] = PRIOR.log_prob(labels) + sum(blocks[part] for part in parts)
    masses = np.exp(table - table.max()) * weights
    masses /= masses.sum()
    cuts = np.searchsorted(np.cumsum(masses.sum(axis=0)), np.arange(1, N_BINS) / N_BINS)
    edges = (grid[cuts] + grid[cuts + 1]) / 2
    bins = np.searchsorted(edges, grid)
    return np.stack([masses[:, bins == b].sum(axis=1) for b in range(N_BINS)], axis=1).ravel(), edges


def visits(move, state, n_steps=N_STEPS, edges=None):
    """Shares of partitions times bins in a chain."""
    rng, edges = np.random.default_rng(3), exact()[1] if edges is None else edges
    place = {labels: p for p, labels in enumerate(PARTITIONS)}
    counts = np.zeros((len(PARTITIONS), N_BINS))
    state.set_labels(np.zeros(4, dtype=np.int64))
    for _ in range(n_steps):
        move.step(rng, state)
        row = place[tuple(canonical_labels(state.labels).tolist())]
        counts[row, np.searchsorted(edges, state.data[0, 1])] += 1
    return (counts / counts.sum()).ravel()


MOVES = {
    "cells": Cycle([Gibbs(), MissingCells()]),
    "splits": Cycle([SplitMerge(n_proposals=2), MissingCells()]),
}


@pytest.mark.parametrize("name", MOVES)
def test_chains_follow_the_posterior(name):
    pi = exact()[0]
    state = MixtureState(FAMILY, FAMILY.encode(X), 4, PRIOR)
    # A bin's edge lies anywhere between two points of the grid.
    assert total_variation(visits(MOVES[name], state), pi) < total_variation_bound(pi, N_STEPS / 4) + 0.01


# The same numbers, measured from their prior mean, after a column of categories with a gap of its own.
BESIDE = np.array([0.0, 1.0, np.nan, 1.0])
JOINT = MixedNIW(
    kinds=["category", "number", "number"],
    pseudo_count=0.3,
    prior_strength=0.5,
    degrees_of_freedom=4.0,
    within_share=[1.0, 0.4, 0.4],
    prior_mean=[0.0, 0.0, 0.5],
    scale=[1.0, 1.0, 1.0],
    levels=((0.0, 1.0), (), ()),
).resolve(np.column_stack([BESIDE, X]))
NUMBERS_OF_JOINT = GaussianNIW([0.0, 0.5], 0.5, 4.0, [1.2, 1.2]).resolve(X)


def categories(rows):
    """ln p of the answers of some rows as those of one group."""
    answers = [BESIDE[row] for row in rows if BESIDE[row] == BESIDE[row]]
    counts = [answers.count(level) for level in (0.0, 1.0)]
    return sum(math.lgamma(0.3 + n) - math.lgamma(0.3) for n in counts) - (
        math.lgamma(0.6 + len(answers)) - math.lgamma(0.6)
    )


@pytest.mark.parametrize("name", MOVES)
def test_chains_beside_other_columns_follow_the_posterior(name):
    pi, edges = exact_of(NUMBERS_OF_JOINT, categories)
    state = MixtureState(JOINT, JOINT.encode(np.column_stack([BESIDE, X])), 4, PRIOR)
    assert np.isnan(state.data[2, 2])  # what categories lack is not filled in
    found = visits(MOVES[name], state, edges=edges - 0.5)
    assert total_variation(found, pi) < total_variation_bound(pi, N_STEPS / 4) + 0.01


def test_chains_that_forget_other_columns_are_noticed():
    pi, edges = exact_of(NUMBERS_OF_JOINT, categories)
    state = MixtureState(NUMBERS_OF_JOINT, NUMBERS_OF_JOINT.encode(X), 4, PRIOR)
    found = visits(MOVES["cells"], state, edges=edges)
    assert total_variation(found, pi) > total_variation_bound(pi, N_STEPS / 4) + 0.01


def test_cells_that_are_filled_in_once_are_noticed():
    """The mean for every missing cell, and sweeps as if nothing were missing."""
    pi = exact()[0]
    filled = np.where(np.isnan(X), FAMILY.prior_mean, X)
    state = MixtureState(FAMILY, filled, 4, PRIOR)
    assert total_variation(visits(Gibbs(), state), pi) > total_variation_bound(pi, N_STEPS / 4) + 0.01


def test_cells_that_forget_the_group_are_noticed():
    """Cells drawn from the prior predictive, whatever the group."""

    class Forgetful(Gibbs):
        def step(self, rng, state):
            info = super().step(rng, state)
            other = MixtureState(FAMILY, X, 4, PRIOR)
            other.set_labels(np.arange(4))
            MissingCells().step(rng, other)
            state.fill_gaps(other.data[state.missing])
            state.set_labels(state.labels)
            state.sweep(rng, np.array([1, 3]))
            return info

    pi = exact()[0]
    state = MixtureState(FAMILY, FAMILY.encode(X), 4, PRIOR)
    assert total_variation(visits(Forgetful(), state, 1_600), pi) > total_variation_bound(pi, 400) + 0.01


MEMBERS = np.random.default_rng(1).normal(size=(3, 3)) @ np.array(
    [[1.0, 0.8, 0.3], [0.0, 0.6, 0.5], [0.0, 0.0, 0.7]]
)
OUTLYING = np.array([9.0, np.nan, -8.0])
ALONE = GaussianNIW([0.0, 0.5, 1.0], 0.7, 3.5, np.eye(3) + 0.5).resolve(MEMBERS)
# Draws with one row of gaps are independent: the distance exceeds this once in a million times.
N_CELLS = 10_000
CELL_BOUND = np.sqrt(np.log(2e6) / 2 / N_CELLS)


@functools.cache
def exact_cell():
    """Student's t of the missing cell given what was observed of an outlying row, and given its group."""
    m, kappa, n, d = np.asarray(ALONE.prior_mean), ALONE.prior_strength, *MEMBERS.shape
    off = MEMBERS - MEMBERS.mean(axis=0)
    shift = MEMBERS.mean(axis=0) - m
    scale = ALONE.scale + off.T @ off + kappa * n / (kappa + n) * np.outer(shift, shift)
    location, freedom = (kappa * m + MEMBERS.sum(axis=0)) / (kappa + n), ALONE.degrees_of_freedom + n - d + 1
    spread = scale * (kappa + n + 1) / ((kappa + n) * freedom)
    seen = [0, 2]
    weights = np.linalg.solve(spread[np.ix_(seen, seen)], spread[seen, 1])
    u = OUTLYING[seen] - location[seen]
    squared = u @ np.linalg.solve(spread[np.ix_(seen, seen)], u)
    variance = (freedom + squared) / (freedom + 2) * (spread[1, 1] - weights @ spread[seen, 1])
    return stats.t(freedom + 2, location[1] + weights @ u, np.sqrt(variance))


def cells_off_by(drawn):
    """Distance of draws, or of their distances from the center where tails show, from the exact ones."""
    exactly = exact_cell()
    apart = np.abs(drawn - exactly.median())
    folded = stats.kstest(apart, lambda x: 2 * exactly.cdf(exactly.median() + x) - 1).statistic
    return max(folded, stats.kstest(drawn, exactly.cdf).statistic)


def cell_off_by(fill):
    """Distance of cells drawn by ``fill`` from the exact distribution."""
    of_members = ALONE.statistics(1)
    seat_all(of_members, MEMBERS, np.zeros(3, dtype=np.int32), 1)
    row, filled = OUTLYING[None], np.zeros((1, 3))
    scoring, rng = with_gaps(of_members, filled), np.random.default_rng(4)
    drawn = np.empty(N_CELLS)
    for step in range(N_CELLS):
        fill(rng, scoring, row, 0, 0)
        drawn[step] = filled[0, 1]
    return cells_off_by(drawn)


def test_drawn_cells_follow_the_conditional_of_the_group():
    state = MixtureState(ALONE, ALONE.encode(np.vstack([OUTLYING, MEMBERS])), 4, DirichletProcess(1e-12))
    state.set_labels(np.zeros(4, dtype=np.int64))
    rng, move, drawn = np.random.default_rng(4), MissingCells(), np.empty(N_CELLS)
    for step in range(N_CELLS):
        move.step(rng, state)
        drawn[step] = state.data[0, 1]
    assert state.n_clusters == 1
    assert cells_off_by(drawn) < CELL_BOUND


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("", ""), ("+ 1.0 - n_missing", "- n_missing"), ("(spread + squared)", "(spread)")],
    ids=["as it is", "freedom", "squared"],
)
def test_wrong_degrees_or_stretch_of_cells_are_noticed(right, wrong):
    """The sampler's own text, run as Python with one term left out."""
    text = inspect.getsource(niw_gaps_jit._fill)
    assert right in text
    text = text[text.index("def _fill") :].replace(right, wrong) if right else text[text.index("def _fill") :]
    copy = {"_products": _products.py_func, "_observed": _observed.py_func, "math": math}
    exec(text, copy)
    assert (cell_off_by(copy["_fill"]) > CELL_BOUND) == bool(right)


def test_scores_are_those_of_observed_columns():
    family, rows = CASES["gaussian-niw"]
    rng = np.random.default_rng(0)
    labels = np.array([0, 0, 1, 0, 2, 1, 1, 2, 0, -1, -1, -1], dtype=np.int32)
    gaps = rows.copy()
    gaps[rng.random(rows.shape) < 0.4] = np.nan
    gaps[9] = np.nan
    assert np.isnan(gaps).all(axis=1).any()
    stats_of_filled = family.statistics(4)
    seat_all(stats_of_filled, rows, labels, 4)
    scoring = with_gaps(stats_of_filled, rows)
    scores, own = np.empty((12, 4)), np.empty(9)
    score_new_data(scoring, gaps, 12, 4, scores)
    expected = [[observed_log_density(family, x, rows[labels == k]) for k in range(4)] for x in gaps]
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
    score_without(scoring, gaps, labels, np.bincount(labels[:9], minlength=4), np.arange(9), own)
    for i in range(9):
        others = rows[(labels == labels[i]) & (np.arange(12) != i)]
        assert own[i] == pytest.approx(observed_log_density(family, gaps[i], others), rel=1e-9, abs=1e-9)
