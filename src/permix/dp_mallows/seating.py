"""Moves of a mixture of generalized Mallows models: who belongs where, and what the centers are."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.dp_mallows.lists.assignment_jit import Instantiated, assign, write_heads
from permix.dp_mallows.lists.clusters_jit import draw_some_decays
from permix.dp_mallows.lists.seating_jit import HIGH, MOVED, OCCUPIED, POSITION, fill_all_rows, seat_in_turn
from permix.dp_mallows.state import ListState
from permix.kernels.streams import draw_key, new_stream, open_stream
from permix.moves.base import Info, Move
from permix.runtime.threads import over_rows

LEAST_VISITS = 500


def seat(rng: np.random.Generator, state: ListState, visits: np.ndarray) -> int:
    """Visit these agents one by one, seated or not; returns how many were moved."""
    model = state.model
    rows = model.rows()
    fill_all_rows(rows, model.tables, model.bins, state.clusters, state.n_clusters)
    key = draw_key(rng)
    stream = new_stream()
    open_stream(stream, key[0], key[1], 0, 0)
    book = np.zeros(5, dtype=np.int64)
    book[OCCUPIED] = book[HIGH] = state.n_clusters
    while book[POSITION] < len(visits):
        state.make_room(book[OCCUPIED] + 1)
        seat_in_turn(
            stream,
            state.concentration,
            model.discount,
            rows,
            model.tables,
            model.bins,
            model.lists,
            state.clusters,
            model.opening,
            state.labels,
            visits,
            book,
        )
    state.compact()
    return int(book[MOVED])


@dataclasses.dataclass
class CollapsedSeating(Move):
    """Visit agents one by one; the decays of clusters are integrated out (Neal 2000, algorithm 3).

    ``share`` below 1 visits that share of the agents, drawn anew every time, but at least 500.
    """

    share: float = 1.0

    def step(self, rng: np.random.Generator, state: ListState) -> Info:
        """One sweep."""
        visits = np.arange(state.n)
        if self.share < 1.0:
            visits = np.flatnonzero(rng.random(state.n) < max(self.share, LEAST_VISITS / state.n))
        moved = seat(rng, state, visits)
        state.n_moved = moved if self.share == 1.0 else state.n_moved + moved
        return Info("seating", len(visits), moved)


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
        """Draw pins, shares and decays; reassign."""
        model = state.model
        lists = model.lists
        pinned = rng.random(state.n) < self.pinned
        named = np.unique(state.labels[pinned])
        state.n_moved = 0
        if len(named) < 2:
            return Info("parallel-seating", 0, 0)
        number = np.full(state.n_clusters, -1, dtype=np.int32)
        number[named] = np.arange(len(named))
        theta = np.empty((model.n_stages, len(named)))
        draw_some_decays(draw_key(rng), model.tables, state.clusters, named, theta)
        log_shares = np.log(rng.standard_gamma(state.clusters.sizes[named] - model.discount))
        log_heads = np.empty((model.n_stages + 1, len(named)))
        write_heads(log_shares, model.tables.skips, theta, log_heads)
        given = Instantiated(np.ascontiguousarray(state.clusters.places[:, named]), theta, log_heads)
        labels = number[state.labels]
        key = draw_key(rng)

        def score(first: int, last: int) -> None:
            assign(lists, given, pinned, labels, key, first, last)

        over_rows(score, len(lists.starts) - 1, model.n_stages * len(named))
        after = np.where(labels >= 0, named[labels], state.labels).astype(np.int32)
        free = np.count_nonzero((labels >= 0) & ~pinned)
        moved = int(np.count_nonzero(after != state.labels))
        state.labels[:] = after
        state.n_moved = moved
        state.refresh()
        return Info("parallel-seating", int(free), moved)


@dataclasses.dataclass
class Centers(Move):
    """Move the center of every cluster given its members (see ``lists.center_moves_jit``)."""

    n_rounds: int = 1

    def step(self, rng: np.random.Generator, state: ListState) -> Info:
        """``n_rounds`` for every cluster."""
        taken = state.update_centers(rng, self.n_rounds)
        return Info("centers", self.n_rounds * state.n_clusters, taken)
