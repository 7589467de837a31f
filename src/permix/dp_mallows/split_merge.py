"""Split-merge moves for mixtures of generalized Mallows models."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.dp_mallows.lists.split_merge_jit import (
    BLIND_MERGE,
    BLIND_SPLIT,
    BLIND_SPLITS,
    SMART_MERGE,
    SMART_SPLIT,
    split_or_merge,
)
from permix.dp_mallows.state import ListState
from permix.kernels.streams import draw_key
from permix.moves.base import Info, Move


@dataclasses.dataclass
class ListSplitMerge(Move):
    """Propose splits and merges of clusters, ``smart`` and ``blind`` ones (see the kernel for both).

    Single agents change clusters one by one, so a chain may get stuck where two groups share a cluster or
    one group has two; Meilă & Chen (2010, section 9) name such moves as the way forward.
    """

    smart: int = 1
    blind: int = 1
    chance: float = 1.0

    def step(self, rng: np.random.Generator, state: ListState) -> Info:
        """So many proposals, each a split or a merge; with ``chance`` below 1, now and then."""
        if self.chance < 1.0 and rng.random() >= self.chance:
            return Info("split-merge", 0, 0)
        accepted = 0
        for proposal in range(self.smart + self.blind):
            if proposal < self.smart:
                kind = SMART_SPLIT if rng.random() < 0.5 else SMART_MERGE
            else:
                kind = BLIND_SPLIT if rng.random() < BLIND_SPLITS else BLIND_MERGE
            accepted += _propose(rng, state, kind, climb=False)
        return Info("split-merge", self.smart + self.blind, accepted)


@dataclasses.dataclass
class ListClimb(Move):
    """Split and merge clusters whenever that raises the log joint: an optimizer, for burn-in only.

    One group of people may sit in several clusters, by their first choice, say. Such states are far from all
    others for moves that must be reversible, but not for a climber.
    """

    exact = False

    def step(self, rng: np.random.Generator, state: ListState) -> Info:
        """Try as many merges and splits as there are clusters, within bounds."""
        n_tries = min(max(state.n_clusters, 4), 32)
        accepted = 0
        for attempt in range(n_tries):
            kind = SMART_SPLIT if attempt % 4 == 0 else BLIND_MERGE
            accepted += _propose(rng, state, kind, climb=True)
        return Info("climb", n_tries, accepted)


def _propose(rng: np.random.Generator, state: ListState, kind: int, climb: bool) -> bool:
    """Make one proposal; returns whether it was taken."""
    model, before = state.model, state.n_clusters
    state.make_room(before + 1)
    after = split_or_merge(
        draw_key(rng),
        state.concentration,
        model.discount,
        model.tables,
        model.lists,
        state.clusters,
        state.labels,
        before,
        kind,
        climb,
    )
    if after == before:
        return False
    state.n_clusters = max(before, after)
    state.compact()
    state.count_members()
    return True
