"""Moves of a mixture of generalized Mallows models: who belongs where, and what the centers are."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.dp_mallows.lists import split_merge_jit as proposals
from permix.dp_mallows.lists.assignment_jit import Instantiated, assign
from permix.dp_mallows.lists.clusters_jit import draw_some_decays
from permix.dp_mallows.lists.seating_jit import HIGH, MOVED, OCCUPIED, POSITION, seat_in_turn
from permix.dp_mallows.state import ListState
from permix.kernels.streams import draw_key
from permix.moves.base import Info, Move
from permix.runtime.threads import over_rows


def seat(rng: np.random.Generator, state: ListState, visits: np.ndarray, settled: bool = False) -> int:
    """Visit these agents one by one, seated or not; returns how many were moved.

    Decays are integrated out, or, ``settled``, those of the state are given.
    """
    model = state.model
    prior, scores = (state.openings, model.discount), (model.rows(), state.tables, model.bins)
    key, visits = draw_key(rng), visits.astype(np.int64)
    book = np.zeros(5, dtype=np.int64)
    book[OCCUPIED] = book[HIGH] = state.n_clusters
    while book[POSITION] < len(visits):
        state.make_room(book[OCCUPIED] + 1)
        state.clusters.settled[:] = settled  # clusters that are opened, too
        seats = (model.lists, state.clusters, state.opening, state.labels, visits, book)
        seat_in_turn(key, *prior, *scores, *seats)
    state.clusters.settled[:] = False
    state.compact()
    return int(book[MOVED])


@dataclasses.dataclass
class CollapsedSeating(Move):
    """Visit agents one by one; the decays of clusters are integrated out (Neal 2000, algorithm 3)."""

    def step(self, rng: np.random.Generator, state: ListState) -> Info:
        state.n_moved = seat(rng, state, state.model.lists.agents)
        return Info("seating", state.n, state.n_moved)


@dataclasses.dataclass
class SettledSeating(Move):
    """Move the centers, then visit the agents one by one, or a ``share`` of them, drawn anew every time.

    Visits take the decays as given that the centers were moved given, so that nothing is integrated anew when
    an agent comes or goes, which takes a tenth of the time. An agent that opens a cluster draws center and
    decays given its own list, and those of a cluster that its last agent leaves are forgotten (Neal 2000,
    algorithm 2). Decays are no part of the state between sweeps: each draws them anew given the centers.
    """

    share: float = 1.0

    def step(self, rng: np.random.Generator, state: ListState) -> Info:
        state.update_centers(rng, 1, redraw=False)
        visits = state.model.lists.agents
        if self.share < 1.0:
            visits = visits[(rng.random(state.n) < self.share)[visits]]
        state.n_moved = seat(rng, state, visits, settled=True)
        return Info("seating", len(visits), state.n_moved)


def words_of(state: ListState, clusters: np.ndarray) -> np.ndarray:
    """Return the centers of these clusters, four to a word; some again where they are no multiple of four."""
    columns = np.resize(clusters, -(-len(clusters) // 4) * 4)
    return state.clusters.places.take(columns, axis=1).view(np.uint64)


@dataclasses.dataclass
class ParallelSeating(Move):
    """Reassign agents all at once among clusters with instantiated shares and decays.

    A random part of the agents is pinned: they keep their place in this step. The clusters that hold a pinned
    agent are instantiated: their shares are Dirichlet(n_1 - d, n_2 - d, ...) up to a factor given the
    partition (Pitman 1996), and their decays are drawn by ``finite_beta_jit.draw_theta``.
    Given these, all agents of such clusters that are not pinned are independent, and each draws its cluster
    from its conditional distribution. Without pins this would not leave the posterior invariant: which
    clusters are instantiated would depend on the agents that are about to move. Shares and decays are
    forgotten afterwards.
    """

    pinned: float = 0.25

    def step(self, rng: np.random.Generator, state: ListState) -> Info:
        model = state.model
        pinned = rng.random(state.n) < self.pinned
        named = np.flatnonzero(np.bincount(state.labels[pinned], minlength=state.n_clusters))
        state.n_moved = 0
        if len(named) < 2:
            return Info("parallel-seating", 0, 0)
        number = np.full(state.n_clusters, -1, dtype=np.int32)
        number[named] = np.arange(len(named))
        theta = np.empty((model.n_stages, len(named)))
        draw_some_decays(draw_key(rng), state.tables, state.clusters, named, theta)
        shares = rng.standard_gamma(state.clusters.weights[named])
        given = Instantiated(words_of(state, named), theta, shares)
        labels = number[state.labels]
        work = (model.lists, model.tables.skips, given, pinned, labels, draw_key(rng))
        n_lists = len(model.lists.starts) - 1
        over_rows(lambda first, last: assign(*work, first, last), n_lists, model.n_stages * len(named))
        after = np.where(labels >= 0, named[labels], state.labels).astype(np.int32)
        free = np.count_nonzero((labels >= 0) & ~pinned)
        state.n_moved = int(np.count_nonzero(after != state.labels))
        state.labels[:] = after
        state.refresh()
        return Info("parallel-seating", int(free), state.n_moved)


@dataclasses.dataclass
class Centers(Move):
    """Move the center of every cluster given its members (see ``lists.center_moves_jit``)."""

    n_rounds: int = 1

    def step(self, rng: np.random.Generator, state: ListState) -> Info:
        taken = state.update_centers(rng, self.n_rounds)
        return Info("centers", self.n_rounds * state.n_clusters, taken)


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
        smart = (proposals.SMART_SPLIT, proposals.SMART_MERGE, 0.5)
        blind = (proposals.BLIND_SPLIT, proposals.BLIND_MERGE, proposals.BLIND_SPLITS)
        for split, merge, chance in [smart] * self.smart + [blind] * self.blind:
            kind = split if rng.random() < chance else merge
            accepted += _propose(rng, state, kind)
        return Info("split-merge", self.smart + self.blind, accepted)


def _propose(rng: np.random.Generator, state: ListState, kind: int) -> bool:
    """Make one proposal; returns whether it was taken."""
    model, before = state.model, state.n_clusters
    state.make_room(before + 1)
    known = (state.openings, model.discount, state.tables, state.form, model.lists)
    after = proposals.split_or_merge(draw_key(rng), *known, state.clusters, state.labels, before, kind)
    if after == before:
        return False
    state.n_clusters = max(before, after)
    state.compact()
    state.count_members()
    return True
