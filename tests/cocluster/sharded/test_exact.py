"""Rows in shards, placed all at once, against enumeration; and twins that must fail."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import kstest

from permix.cocluster.sharded.fit import model_of
from permix.cocluster.sharded.moves import MoveColumns, RowConcentration
from permix.cocluster.sharded.state import ShardedGrid
from permix.data.cells import Cells
from permix.data.shards.matrices import ShardedCells
from permix.kernels.streams import draw_key
from permix.moves.base import Cycle
from permix.moves.sharded import moves
from permix.moves.sharded.moves import PlaceRows, SplitMergeRows
from permix.moves.sharded.work import Placing
from permix.partitions import DirichletProcess, Gamma, canonical_labels
from permix.runtime.executors import Here
from tests.cocluster.grid.cases import CASES, PRIORS, RULES
from tests.cocluster.grid.test_grid_exact import posterior
from tests.every_run import first_in_every_run
from tests.oracles.cocluster import log_matrix
from tests.oracles.mixtures import total_variation, total_variation_bound
from tests.oracles.partitions import restricted_growth_strings, sequential_probability

# Five rows, which differ a little, for rows given the groups of columns.
FIVE = np.array(
    [[2.0, 2.0, 1.0], [np.nan, 2.0, 3.0], [1.0, np.nan, 3.0], [2.0, 1.0, 1.0], [np.nan, 2.0, 3.0]]
)
COLUMNS = (0, 1, 0)


def grid_in_shards(name, prior, n_shards=1, X=None, columns=(0, 0, 0), rows=None):
    """All rows in one group, or as they are asked to be at first."""
    family, _, given = CASES[name]
    X = given if X is None else X
    at, column = np.nonzero(~np.isnan(X))
    values = X[at, column]
    data = ShardedCells.of(Cells(at, column, values, X.shape), n_shards, Here(1))
    settings = SimpleNamespace(line_priors=lambda: PRIORS[prior], learned_pseudo_count=lambda: None)
    record = np.arange(len(X), dtype=np.uint64)
    state = ShardedGrid(model_of(data, family.resolve(values), settings, record), "chain")
    rng = np.random.default_rng(0)
    state.column_labels = np.array(columns, dtype=np.int32)
    k = 1 + max(rows or [0])
    table = state.table(rng, state.shape.encoding.counts(k))
    stay = record if rows else record[:0]
    labels = np.array(rows if rows else [], dtype=np.int64)
    groups = state.column_groups, table, np.zeros(k), draw_key(rng)
    state.place(Placing(*groups, stay, labels, np.arange(k), (), np.arange(k)))
    return state


def frequencies_of(move, state, listed, n_steps, seed):
    """Return how often a chain is where, and how many independent draws that is worth."""
    index = {where: place for place, where in enumerate(listed)}
    rng = np.random.default_rng(seed)
    visits = np.empty(n_steps, dtype=np.int64)
    for step in range(-10, n_steps):
        move.step(rng, state)
        sides = (state.seen.record, state.column_labels)
        visits[step] = index[tuple(tuple(canonical_labels(side).tolist()) for side in sides)]
    frequencies = np.bincount(visits, minlength=len(listed)) / n_steps
    batches = visits.reshape(50, -1)
    common = np.flatnonzero(frequencies > 0.02)
    p = frequencies[common]
    variance = np.stack([(batches == k).mean(axis=1) for k in common]).var(axis=1)
    return frequencies, min(float(np.median(p * (1 - p) / variance)) * 50, float(n_steps))


def far_from(name, prior, n_steps, n_shards=1):
    """Return how far a chain over rows and columns is from the posterior, and how far it may be."""
    pairs, pi = posterior(name, prior)
    move = Cycle([PlaceRows(), SplitMergeRows(), MoveColumns()])
    found, n = frequencies_of(move, grid_in_shards(name, prior, n_shards), pairs, n_steps, seed=1)
    return total_variation(found, pi), total_variation_bound(pi, n)


def rows_far_from(move, n_steps, n_groups=None, prior="dp"):
    """Return the same of rows given columns, and given the number of groups where a move keeps it."""
    naive = CASES["categorical"][1]
    listed = [
        (rows, COLUMNS) for rows in restricted_growth_strings(len(FIVE)) if n_groups in (None, max(rows) + 1)
    ]
    weights = np.array(
        [
            sequential_probability(rows, RULES[prior][0]) * np.exp(log_matrix(naive, FIVE, rows, columns))
            for rows, columns in listed
        ]
    )
    pi = weights / weights.sum()
    start = None if n_groups is None else [0, 1, *[n_groups - 1] * (len(FIVE) - 2)]
    state = grid_in_shards("categorical", prior, 2, FIVE, COLUMNS, start)
    found, n = frequencies_of(move, state, listed, n_steps, seed=1)
    return total_variation(found, pi), total_variation_bound(pi, n)


EVERY = [("categorical", "mfm", 1)]
OTHERS = [
    (name, prior, n_shards)
    for name in ("categorical", "bernoulli", "poisson")
    for prior in ("dp", "mfm")
    for n_shards in (1, 2)
    if (name, prior, n_shards) not in EVERY
]


@pytest.mark.parametrize(("name", "prior", "n_shards"), first_in_every_run(EVERY + OTHERS, len(EVERY)))
def test_partitions_are_visited_as_often_as_the_posterior_says(name, prior, n_shards):
    n_steps = 500 if (name, prior, n_shards) in EVERY else 4000
    distance, bound = far_from(name, prior, n_steps, n_shards)
    assert distance < bound


@pytest.mark.parametrize(("prior", "n_groups"), first_in_every_run([("dp", 2), ("mfm", 2), ("dp", 3)]))
def test_rows_are_placed_as_the_posterior_says(prior, n_groups):
    distance, bound = rows_far_from(PlaceRows(), 5000, n_groups, prior)
    assert distance < bound


def test_that_one_of_each_group_stays_is_made_up_for(monkeypatch):
    """The broken twin forgets it."""
    monkeypatch.setattr(PlaceRows, "made_up_for", staticmethod(lambda rng, sizes: np.zeros(len(sizes))))
    distance, bound = rows_far_from(PlaceRows(), 5000, 2)
    assert distance > bound


def test_splits_and_merges_are_as_the_posterior_says():
    distance, bound = rows_far_from(Cycle([PlaceRows(), SplitMergeRows()]), 800)
    assert distance < bound


def test_splits_that_are_free_of_charge_are_rejected(monkeypatch):
    """The broken twin accepts a split as if it had been certain to be proposed."""
    real = moves._tried

    def tried(rng, state, division, sides):
        return real(rng, state, division, sides._replace(log_share=np.zeros(2)))

    monkeypatch.setattr(moves, "_tried", tried)
    distance, bound = rows_far_from(Cycle([PlaceRows(), SplitMergeRows()]), 800)
    assert distance > bound


@pytest.mark.parametrize("more", [0, 1])
def test_a_learned_concentration_of_rows_follows_its_exact_law(more):
    # p(α | K groups of n rows) ∝ p(α) α^K Γ(α) / Γ(α + n); the twin counts one group more.
    n, n_groups, prior = 40, 3, Gamma(2.0, 1.0)
    grid = np.linspace(1e-4, 30, 20_001)
    log_density = np.log(grid) - grid + n_groups * np.log(grid) + gammaln(grid) - gammaln(grid + n)
    below = np.cumsum(np.exp(log_density - log_density.max()))
    state = SimpleNamespace(
        model=SimpleNamespace(priors=(DirichletProcess(prior),)),
        seen=SimpleNamespace(sizes=np.ones(n_groups + more)),
        n_rows=n,
        row_concentration=1.0,
    )
    rng, drawn = np.random.default_rng(0), []
    for _ in range(20_000):
        RowConcentration().step(rng, state)
        drawn.append(state.row_concentration)
    p = kstest(drawn[::10], lambda x: np.interp(x, grid, below / below[-1])).pvalue
    assert p > 1e-3 if more == 0 else p < 1e-6
