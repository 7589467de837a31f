"""What a chain of each co-clustering is: where it starts and what an iteration does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from permix.cocluster.cells.encoded_matrix import EncodedMatrix
from permix.cocluster.parameters import CoClusterParameters
from permix.moves.base import Cycle, Move
from permix.partitions.priors import Gamma
from permix.sampling.protocol import ChainState


class Engine(NamedTuple):
    """First state of a chain from its generator, and what an iteration does."""

    make_state: Callable[[np.random.Generator], ChainState]
    move: Move


def engine_of(matrix: EncodedMatrix, settings: CoClusterParameters) -> Engine:
    """Return that of nested cuts (MPCC), of cells with groups of their own (LDCC), or of a grid (DPCC).

    LDCC in which every row is in one group is a grid, too. Only the compiled code of one of them is loaded.
    """
    if settings.prior == "mondrian":
        from permix.cocluster.mondrian.state import MondrianData

        return mondrian_engine(MondrianData.of(matrix), settings.budget, settings.learned_pseudo_count())
    priors: tuple[Any, Any] = settings.line_priors()
    learned = settings.learned_pseudo_count()
    if settings.is_mixed:
        from permix.cocluster.cells.learned import LearnPseudoCount
        from permix.cocluster.grid.mixed_state import MixedGibbs, MixedState

        rows, columns = priors
        parts = (rows.n, columns.n, rows.pseudo_count, columns.pseudo_count, learned)
        moves: Move = Cycle([MixedGibbs(), LearnPseudoCount()])
        return Engine(lambda rng: MixedState(matrix, *parts).start(rng), moves)
    from permix.cocluster.grid.moves import matrix_moves
    from permix.cocluster.grid.state import GridState, seat_all_lines

    moves = matrix_moves(matrix.n_rows, matrix.n_columns)
    return Engine(lambda rng: seat_all_lines(rng, GridState(matrix, *priors, learned)), moves)


def mondrian_engine(data: Any, budget: float, learned: Gamma | None = None) -> Engine:
    """Return that of nested cuts, of the cells of a matrix or of the labels of bases."""
    from permix.cocluster.mondrian.moves import mondrian_moves
    from permix.cocluster.mondrian.state import MondrianState

    return Engine(lambda rng: MondrianState(data, budget, rng, learned), mondrian_moves())
