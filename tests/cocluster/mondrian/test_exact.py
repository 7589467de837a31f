"""With data: the posterior of the induced cell partition against weighed draws of the prior."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from permix.cocluster.cells.base_lines_jit import base_lines
from permix.cocluster.cells.block_sums_jit import log_blocks
from permix.cocluster.cells.blocks_jit import count_prior
from permix.cocluster.cells.encoded_matrix import encode_matrix
from permix.cocluster.cells.families import cell_family
from permix.cocluster.mondrian.moves import (
    ChangeCuts,
    CrossCuts,
    PlaceLines,
    RedrawSubtree,
    RotateCuts,
    ShiftCuts,
    mondrian_moves,
)
from permix.cocluster.mondrian.state import MondrianData, MondrianState
from permix.moves.base import Cycle, Info, Move
from tests.every_run import first_in_every_run
from tests.oracles.mondrian import drawn_partitions, importance_posterior, induced, largest_partition_z

# The largest of some twenty deviations exceeds this once in some 100,000 runs.
MOST = 5.0
BUDGET = 1.0
# One cell of each matrix is missing.
VALUES = {
    "categorical": [[1, 1, 2], [2, np.nan, 1]],
    "bernoulli": [[1, 1], [np.nan, 0]],
    "poisson": [[0, 5], [1, np.nan]],
    "gaussian": [[0.0, 5.0, 1.0], [6.0, np.nan, 5.0]],
}


@cache
def matrix_of(family):
    values = np.array(VALUES[family], dtype=float)
    rows, columns = np.nonzero(~np.isnan(values))
    cells = values[rows, columns]
    return encode_matrix(cell_family(family, 0.5).resolve(cells), rows, columns, cells, values.shape)


def naive_log_likelihood(family, blocks, forget=None):
    """ln p(cells | blocks) from scratch; ``forget`` names a cell that is left out."""
    matrix = matrix_of(family)
    total = 0.0
    cells = list(zip(matrix.rows, matrix.by_row.others, matrix.by_row.codes, strict=True))
    for block in np.unique(blocks):
        inside = [
            code for row, column, code in cells if blocks[row, column] == block and (row, column) != forget
        ]
        n = np.array([len(inside)])
        if matrix.family.has_levels:
            sums = np.bincount(np.array(inside, dtype=int), minlength=matrix.family.n_slots)[None]
        else:
            sums = np.array([[sum(inside), sum(code * code for code in inside)]], dtype=float)
        total += log_blocks(matrix.block_prior, n, sums)
    return total


@cache
def prior_draws(shape):
    return drawn_partitions(np.random.default_rng(2), BUDGET, shape, 8000)


def weighed(shape, log_likelihood):
    return importance_posterior(prior_draws(shape), shape, log_likelihood)


@cache
def reference(family):
    return weighed(np.array(VALUES[family]).shape, lambda blocks: naive_log_likelihood(family, blocks))


def partitions_visited(data, move, n=4000, seed=4):
    rng = np.random.default_rng(seed)
    state = MondrianState(data, BUDGET, rng)
    keys = []
    for step in range(n):
        move.step(rng, state)
        if step >= n // 20:
            keys.append(induced(state.partition(), *state.places))
    return keys


@cache
def visited_by_all_moves(family):
    return partitions_visited(MondrianData.of(matrix_of(family)), mondrian_moves())


# The twins below have these two as well.
@pytest.mark.parametrize("family", first_in_every_run(["categorical", "gaussian", "bernoulli", "poisson"], 2))
def test_posterior_of_the_cell_partition(family):
    keys = visited_by_all_moves(family)
    assert largest_partition_z(keys, *reference(family)) < MOST


@pytest.mark.parametrize(
    "move",
    [
        Cycle([ChangeCuts(6, 0), PlaceLines()]),
        ChangeCuts(12, 2),
        Cycle([RedrawSubtree(4), PlaceLines()]),
        Cycle([ChangeCuts(4, 1), ShiftCuts(10)]),
        Cycle([ChangeCuts(4, 1), RotateCuts(20)]),
        Cycle([ChangeCuts(4, 1), ChangeCuts(8, 1, above=1.0)]),
        Cycle([ChangeCuts(4, 1), CrossCuts(10, 1)]),
    ],
    ids=[
        "cuts and places",
        "cuts alone",
        "subtrees and places",
        "cuts and shifts",
        "cuts and rotations",
        "cuts and peels",
        "cuts and exchanges",
    ],
)
def test_each_move_keeps_the_posterior(move):
    keys = partitions_visited(MondrianData.of(matrix_of("categorical")), move, 4000)
    assert largest_partition_z(keys, *reference("categorical")) < MOST


class PlacesAsPrinted(Move):
    """Equation 5.13 as printed: counts without the line, so an interval is as likely as it is long."""

    def step(self, rng, state):
        for places in state.places:
            places[:] = rng.random(len(places))
        state.refresh()
        return Info("places", 1, 1)


def test_equation_as_printed_is_rejected():
    keys = partitions_visited(
        MondrianData.of(matrix_of("gaussian")), Cycle([ChangeCuts(4, 0), PlacesAsPrinted()]), 3000
    )
    assert largest_partition_z(keys, *reference("gaussian")) > MOST


def test_oracle_rejects_a_forgotten_cell():
    forgetful = weighed(
        np.array(VALUES["categorical"]).shape,
        lambda blocks: naive_log_likelihood("categorical", blocks, forget=(0, 0)),
    )
    assert largest_partition_z(visited_by_all_moves("categorical"), *forgetful) > MOST


# --- ensembles: bases instead of cells ------------------------------------------------------------

BASES = [np.array([[0, 0, 1], [2, 2, 1]]), np.array([[0, 1, 1], [0, 2, 2]])]


@cache
def base_data():
    """Two bases of a 2 × 3 matrix, every row and column a class of its own."""
    rows = np.column_stack([np.arange(2)] * 2)
    columns = np.column_stack([np.arange(3)] * 2)
    tables = [BASES[0], BASES[1] + 3]
    sides = base_lines(rows, columns, tables)
    return MondrianData(count_prior(0.4, np.array([3, 3]), 6), *sides, 2, 3, 6, np.int64)


def base_log_likelihood(blocks):
    """Equation 5.12 from scratch."""
    from scipy.special import gammaln

    total = 0.0
    for labels in BASES:
        for block in np.unique(blocks):
            counts = np.bincount(labels[blocks == block], minlength=3)
            total += gammaln(1.2) - gammaln(1.2 + counts.sum()) + np.sum(gammaln(0.4 + counts) - gammaln(0.4))
    return total


def test_posterior_given_bases():
    posterior = weighed((2, 3), base_log_likelihood)
    assert largest_partition_z(partitions_visited(base_data(), mondrian_moves()), *posterior) < MOST
