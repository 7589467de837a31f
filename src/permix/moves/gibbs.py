"""Collapsed Gibbs: every datum is taken out and put back once."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.moves.base import Info, Move
from permix.moves.state import MixtureState

# What a visit costs beside its scores, in scores.
BESIDES = 20


@dataclasses.dataclass
class Gibbs(Move):
    """One sweep of collapsed Gibbs over all data in their order (Neal 2000, algorithm 3)."""

    def step(self, rng: np.random.Generator, state: MixtureState) -> Info:
        """Visit every datum once; a visit is a draw from the full conditional and is always accepted."""
        state.n_moved = state.sweep(rng)
        return Info("gibbs", state.n, state.n, work=work_of_sweep(state))


def work_of_sweep(state: MixtureState) -> float:
    """What a sweep over this state costs, counted as in :class:`~permix.moves.Info`."""
    return float(state.n * (state.n_clusters + BESIDES))
