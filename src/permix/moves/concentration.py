"""Learning the concentration of a Dirichlet process."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.moves.base import Info, Move
from permix.moves.state import PartitionState, learned_concentration
from permix.partitions.concentration import update_concentration


@dataclasses.dataclass
class Concentration(Move):
    """Draw the concentration given the number of groups (Escobar & West 1995, section 6).

    Does nothing where the concentration is a fixed number.
    """

    draws_concentration = True

    def step(self, rng: np.random.Generator, state: PartitionState) -> Info:
        """One auxiliary-variable update."""
        gamma = learned_concentration(state.prior_spec)
        if gamma is None:
            return Info("concentration", 0, 0)
        state.concentration = update_concentration(
            rng, state.concentration, gamma.shape, gamma.rate, state.n_clusters, state.n
        )
        return Info("concentration", 1, 1)
