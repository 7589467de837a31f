"""Moves of a grid co-clustering of rows in shards: of the rows, of the columns, and of what is learned."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.cocluster.cells.learned import LearnPseudoCount
from permix.cocluster.sharded.columns import column_mixture
from permix.cocluster.sharded.state import ShardedGrid
from permix.moves.base import Cycle, Info, Move
from permix.moves.concentration import Concentration
from permix.moves.gibbs import Gibbs
from permix.moves.sharded.moves import PlaceRows, SplitMergeRows
from permix.moves.split_merge import SplitMerge
from permix.moves.state import learned_concentration
from permix.partitions.concentration import update_concentration

# Splits and merges of columns proposed in one iteration.
MOST_PROPOSALS = 10


@dataclasses.dataclass
class MoveColumns(Move):
    """Moves of a mixture on the columns, given what groups of rows add up to."""

    def __post_init__(self) -> None:
        self.move = Cycle([Gibbs(), SplitMerge("informed", n_proposals=MOST_PROPOSALS), Concentration()])

    def step(self, rng: np.random.Generator, state: ShardedGrid) -> Info:
        prior = state.model.priors[1]
        parts = (state.sums, state.column_labels, prior, state.column_concentration)
        mixture = column_mixture(state.cell_family, *parts)
        info = self.move.step(rng, mixture)
        state.column_labels, state.column_concentration = mixture.labels.copy(), mixture.concentration
        return info._replace(parts=tuple(part._replace(name=f"column {part.name}") for part in info.parts))


@dataclasses.dataclass
class RowConcentration(Move):
    """Draw the concentration of rows, where it is learned."""

    draws_concentration = True

    def step(self, rng: np.random.Generator, state: ShardedGrid) -> Info:
        gamma = learned_concentration(state.model.priors[0])
        if gamma is None:
            return Info("row concentration", 0, 0)
        known = (gamma.shape, gamma.rate, len(state.seen.sizes), state.n_rows)
        state.row_concentration = update_concentration(rng, state.row_concentration, *known)
        return Info("row concentration", 1, 1)


def sharded_moves() -> Move:
    """Return what one iteration is."""
    return Cycle([PlaceRows(), SplitMergeRows(), MoveColumns(), RowConcentration(), LearnPseudoCount()])
