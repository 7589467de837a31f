"""Learning the hyper-parameters of the family."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.moves.base import Info, Move
from permix.moves.state import MixtureState


@dataclasses.dataclass
class Hyperparameters(Move):
    """Draw what is learned about the family's hyper-parameters, given the groups, by slice steps.

    Does nothing where all of them are fixed numbers.
    """

    draws_hyperparameters = True

    def step(self, rng: np.random.Generator, state: MixtureState) -> Info:
        """Draw each in turn; a slice step always finds a value."""
        if state.learning is None:
            return Info("hyperparameters", 0, 0)
        state.require_seated("hyperparameters")
        state.adopt_family(state.learning.draw(rng, state.family, state.stats, state.n_clusters))
        # Every datum is seated and scored anew.
        return Info("hyperparameters", 1, 1, work=2.0 * state.n)
