"""Split-merge as Liang, Jordan & Taskar (2007) had it: sequential allocation of uniform pairs (Dahl 2003).

:class:`permix.moves.SplitMerge` is not that: it proposes splits and merges equally often and refuses
hopeless merges by their marginal likelihoods. Here two data are drawn uniformly; one cluster is split where
both are in it, two are merged where they are not, and every proposal is carried out in full.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.families.contract_jit import clear_members
from permix.kernels.jit import kernel
from permix.kernels.random import shuffle
from permix.moves import Info, Move
from permix.moves.split_merge import Workspace
from permix.moves.split_merge_jit import (
    _allocate,
    _gather,
    _log_union,
    _write_sides,
    adopt,
    empty_sides,
    make_room,
)
from permix.moves.state import MixtureState


@kernel
def published_split_merge(
    rng,
    n_proposals,
    joining,
    totals,
    opening,
    stats,
    data,
    labels,
    sizes,
    sides_stats,
    union_stats,
    n_clusters,
):
    """Make proposals; returns (made, number of clusters, accepted), fewer made when all slots are taken."""
    n = labels.shape[0]
    room = make_room(labels, sizes.shape[0], n_clusters)
    n_accepted = 0
    for proposal in range(n_proposals):
        if n_clusters == sizes.shape[0]:
            return proposal, n_clusters, n_accepted
        i = np.int64(rng.random() * n)
        j = np.int64(rng.random() * (n - 1))
        if j >= i:
            j += 1
        splitting = labels[i] == labels[j]
        size = _gather(labels, room, i, j)
        shuffle(rng, room.order[1 : size - 1])
        if not splitting:
            _write_sides(labels, room.order, room.sides, size)
        log_ratio, log_proposal = _allocate(rng, joining, data, sides_stats, room, size, not splitting)
        log_ratio -= _log_union(data, union_stats, room.order, size) + totals[size]
        log_ratio += opening[n_clusters if splitting else n_clusters - 1]
        clear_members(union_stats, data, room.order, 0, size, 0)
        n_first = empty_sides(data, sides_stats, room, size)
        # A pair is as likely to be drawn from the split state as from the merged one.
        log_chance = log_ratio - log_proposal if splitting else log_proposal - log_ratio
        if -rng.standard_exponential() < log_chance:
            n_accepted += 1
            n_clusters = adopt(stats, data, labels, sizes, room, n_clusters, n_first, size, splitting)
    return n_proposals, n_clusters, n_accepted


@dataclasses.dataclass
class PublishedSplitMerge(Move):
    """Split or merge the clusters of uniformly drawn pairs."""

    n_proposals: int = 20

    def __post_init__(self) -> None:
        self._workspace: Workspace | None = None
        self._state: MixtureState | None = None

    def step(self, rng: np.random.Generator, state: MixtureState) -> Info:
        """Make ``n_proposals`` proposals."""
        if self._workspace is None or self._state is not state:
            self._workspace, self._state = Workspace(state), state
            self._union = state.empty_clusters(1)
        workspace = self._workspace
        prior = state.prior
        made = accepted = 0
        while made < self.n_proposals:
            state.make_room(state.n_clusters + 1)
            now_made, state.n_clusters, now_accepted = published_split_merge(
                rng,
                self.n_proposals - made,
                prior.joining,
                workspace.totals,
                prior.opening,
                state.stats,
                state.data,
                state.labels,
                state.sizes,
                workspace.sides,
                self._union,
                state.n_clusters,
            )
            made += now_made
            accepted += now_accepted
        return Info("published split-merge", made, accepted)
