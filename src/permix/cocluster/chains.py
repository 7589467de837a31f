"""What a chain of each co-clustering is: where it starts and what an iteration does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from permix.cocluster.cells.encoded_matrix import EncodedMatrix
from permix.cocluster.parameters import BlockParameters, CoClusterParameters
from permix.moves.base import Move
from permix.partitions import FiniteDirichlet
from permix.sampling.protocol import ChainState


class Engine(NamedTuple):
    """First state of a chain from its generator, and what an iteration does."""

    make_state: Callable[[np.random.Generator], ChainState]
    move: Move
    burn_in_move: Move | None = None


def grid_engine(matrix: EncodedMatrix, settings: BlockParameters) -> Engine:
    """Groups of rows by groups of columns: DPCC, and LDCC where every row is in one group."""
    from permix.cocluster.grid.moves import grid_moves
    from permix.cocluster.grid.state import GridState, seat_all_lines

    row_prior, column_prior = settings.line_priors()

    def first_state(rng: np.random.Generator) -> GridState:
        state = GridState(matrix, row_prior, column_prior)
        seat_all_lines(rng, state)
        return state

    return Engine(first_state, grid_moves(matrix.n_rows, matrix.n_columns))


def mixed_engine(matrix: EncodedMatrix, settings: CoClusterParameters) -> Engine:
    """Every cell draws groups for itself: LDCC as published."""
    from permix.cocluster.grid.mixed_state import MixedGibbs, MixedState

    priors = settings.line_priors()
    sizes = [prior.n for prior in priors if isinstance(prior, FiniteDirichlet)]
    pseudo_counts = [prior.pseudo_count for prior in priors if isinstance(prior, FiniteDirichlet)]

    def first_state(rng: np.random.Generator) -> Any:
        state = MixedState(matrix, *sizes, *pseudo_counts)
        state.start(rng)
        return state

    return Engine(first_state, MixedGibbs())


def mondrian_engine(matrix: EncodedMatrix, settings: BlockParameters) -> Engine:
    """Nested cuts: MPCC."""
    from permix.cocluster.mondrian.moves import mondrian_moves
    from permix.cocluster.mondrian.state import MondrianData, MondrianState

    data = MondrianData.of(matrix)

    def first_state(rng: np.random.Generator) -> MondrianState:
        return MondrianState(data, settings.budget, rng)

    return Engine(first_state, mondrian_moves())
