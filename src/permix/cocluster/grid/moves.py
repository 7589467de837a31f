"""Moves of a grid co-clustering: those of mixtures, on rows and on columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from permix.cocluster.cells.learned import LearnPseudoCount
from permix.cocluster.grid.state import GridState, Side
from permix.moves.base import Cycle, Info, Move, checked, combined
from permix.moves.concentration import Concentration
from permix.moves.gibbs import Gibbs
from permix.moves.split_merge import SplitMerge

# Splits and merges of one axis proposed in one iteration.
MOST_PROPOSALS = 10


@dataclasses.dataclass
class OnSide(Cycle):
    """Take moves of a mixture in turn on one axis, given the clusters of the other.

    Each leaves the posterior of its axis given the other invariant, hence that of both.
    """

    side: ClassVar[Side]

    def __post_init__(self) -> None:
        self.moves = checked(self.moves, type(self).__name__)
        super().__post_init__()

    def step(self, rng: np.random.Generator, state: GridState) -> Info:
        mixture = state.side(self.side)
        parts = [move.step(rng, mixture) for move in self.moves]
        return combined(self.side, [part._replace(name=f"{self.side[:-1]} {part.name}") for part in parts])

    def _made_of(self, moves: Sequence[Move]) -> Self:
        return type(self)(moves)


class OnRows(OnSide):
    """Take moves of a mixture in turn on the rows, given the clusters of the columns."""

    side: ClassVar[Side] = "rows"


class OnColumns(OnSide):
    """Take moves of a mixture in turn on the columns, given the clusters of the rows."""

    side: ClassVar[Side] = "columns"


def grid_moves(n_rows: int, n_columns: int) -> Move:
    """Return what one iteration of a grid co-clustering is: sweeps, splits and merges on both axes.

    All of it leaves the posterior invariant, so burn-in needs nothing else: a start by sequential prediction
    (:func:`~permix.cocluster.grid.state.seat_all_lines`) is near enough.
    """
    return Cycle([OnRows(_usual(n_rows)), OnColumns(_usual(n_columns))])


def matrix_moves(n_rows: int, n_columns: int) -> Move:
    """Return what one iteration of a grid co-clustering of a matrix is: its pseudo-count may be learned."""
    return Cycle([grid_moves(n_rows, n_columns), LearnPseudoCount()])


def _usual(n: int) -> list[Move]:
    # Of a matrix with many missing cells, none of the splits and merges of random pairs is accepted.
    return [Gibbs(), SplitMerge("informed", n_proposals=min(n, MOST_PROPOSALS)), Concentration()]
