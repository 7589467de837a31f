"""Mondrian consensus of base co-clusterings: what is cached equals equation 5.20, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest

from permix.cocluster.bases import as_bases, to_lines
from permix.cocluster.cells.blocks_jit import count_prior
from permix.cocluster.cells.encoded_matrix import encode_matrix
from permix.cocluster.cells.families import CategoricalCells
from permix.cocluster.mondrian.moves import mondrian_moves
from permix.cocluster.mondrian.state import MondrianData, MondrianState
from tests.oracles.ensemble import mondrian_log_evidence

R, C, A = 9, 7, 0.6


def ids_of(rng, n_bases):
    """Tables of block ids: a grid, and others that are none."""
    rows, columns = rng.integers(0, 3, R), rng.integers(0, 2, C)
    tables = [2 * rows[:, None] + columns]
    for _ in range(n_bases - 1):
        small = rng.integers(0, 4, (3, 3))
        tables.append(small[rng.integers(0, 3, R)][:, rng.integers(0, 3, C)])
    return [np.unique(table, return_inverse=True)[1].reshape(table.shape) for table in tables]


def state_of(bases, rng, filled=None, budget=1.5):
    lines = to_lines(bases, filled)
    n_cells = R * C if filled is None else filled.n_cells
    data = MondrianData(
        count_prior(A, bases.n_blocks, n_cells),
        *lines,
        n_rows=R,
        n_columns=C,
        n_slots=int(bases.n_blocks.sum()),
        sums_dtype=np.int64,
    )
    return MondrianState(data, budget, rng)


def some_filled(rng):
    """A matrix with a third of its cells, and where these are."""
    mask = rng.random((R, C)) < 1 / 3
    rows, columns = np.nonzero(mask)
    values = np.ones(len(rows))
    return encode_matrix(CategoricalCells().resolve(values), rows, columns, values, (R, C)), mask


@pytest.mark.parametrize("cells", ["all", "filled"])
@pytest.mark.parametrize("seed", range(3))
def test_likelihood_is_that_of_all_cells_after_every_step(seed, cells):
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 3)
    filled, mask = some_filled(rng) if cells == "filled" else (None, np.ones((R, C), dtype=bool))
    state = state_of(as_bases(ids), rng, filled)
    move = mondrian_moves()
    found = []
    for _ in range(50):
        move.step(rng, state)
        draw = state.record()
        table = state.partition().table()
        blocks = table[draw["row_labels"]][:, draw["column_labels"]]
        # Only cells that count have labels; the numbers of labels are those of the bases.
        wanted = mondrian_log_evidence(blocks, ids, A, mask)
        assert draw["log_likelihood"] == pytest.approx(wanted, abs=1e-9)
        # Twins: another pseudo-count, a base forgotten, or cells of the wrong kind.
        assert abs(mondrian_log_evidence(blocks, ids, 2 * A, mask) - wanted) > 1e-6
        assert abs(mondrian_log_evidence(blocks, ids[:2], A, mask) - wanted) > 1e-6
        assert abs(mondrian_log_evidence(blocks, ids, A, rng.random((R, C)) < 0.5) - wanted) > 1e-6
        found.append(draw["n_blocks"])
    assert max(found) > 1
