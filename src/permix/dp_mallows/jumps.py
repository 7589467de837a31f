"""Jumps between numbers of groups of a finite mixture, with nobody's group given."""

from __future__ import annotations

import dataclasses
from functools import lru_cache

import numpy as np

from permix.dp_mallows.lists.assignment_jit import Instantiated, assign
from permix.dp_mallows.lists.clusters_jit import draw_some_decays
from permix.dp_mallows.lists.jumps_jit import Components, jump
from permix.dp_mallows.moves import words_of
from permix.dp_mallows.state import ListState
from permix.kernels.streams import draw_key
from permix.moves.base import Info, Move
from permix.partitions.priors import MixtureOfFiniteMixtures
from permix.runtime.threads import over_rows


@lru_cache(maxsize=1024)
def chances_of_empty(prior: MixtureOfFiniteMixtures, n_clusters: int, n: int) -> np.ndarray:
    """Return the cumulated probabilities of 0, 1, ... groups beside those that have agents."""
    cumulated = np.cumsum(prior.n_components_probabilities(n_clusters, n)[n_clusters:])
    return np.asarray(cumulated / cumulated[-1])


@dataclasses.dataclass
class Jumps(Move):
    """Let groups be born and die, split and merge with nobody's group given, then give everybody a group.

    For mixtures of finite mixtures. The number of groups, those without agents included, their shares and
    decays are drawn given who belongs where, which is then forgotten, so that a group of many is born in one
    step (see ``lists.jumps_jit``). At the end all agents draw their groups independently, given the groups
    there are.
    """

    n_tries: int = 16
    splits: float = 0.25  # the share of splits and merges among proposals
    chance: float = 1.0  # of doing anything in a step

    def step(self, rng: np.random.Generator, state: ListState) -> Info:
        """Make so many proposals; with ``chance`` below 1, now and then."""
        if self.chance < 1.0 and rng.random() >= self.chance:
            return Info("jumps", 0, 0)
        model, prior = state.model, state.prior_spec
        assert isinstance(prior, MixtureOfFiniteMixtures)
        occupied = state.n_clusters
        chances = chances_of_empty(prior, occupied, state.n)
        n = occupied + int(np.searchsorted(chances, rng.random(), side="right"))
        n_items, n_stages, room = model.n_items, model.n_stages, n + self.n_tries + 2
        components = Components(
            np.zeros(room),
            np.zeros((room, n_items), dtype=np.int16),
            np.zeros((room, n_stages)),
            np.empty((room, len(model.lists.starts) - 1)),
        )
        state.make_room(n)
        empty = np.arange(occupied, n)
        state.clusters.totals[empty] = state.clusters.counts[empty] = 0.0
        sizes = np.append(state.sizes_in_use, np.zeros(len(empty)))
        shares = rng.standard_gamma(sizes + prior.pseudo_count)
        components.shares[:n] = shares / shares.sum()
        components.places[:occupied] = state.clusters.places[:, :occupied].T
        for k in empty:
            components.places[k] = rng.permutation(n_items)
        theta = np.empty((n_stages, n))
        draw_some_decays(draw_key(rng), state.tables, state.clusters, np.arange(n), theta)
        components.theta[:n] = theta.T
        book = np.zeros(4, dtype=np.int64)
        given = (state.form, model.lists, state.tables, prior.pseudo_count, prior.rate)
        n = jump(draw_key(rng), *given, components, n, self.n_tries, self.splits, book)
        state.make_room(n + 1)
        state.clusters.places[:, :n] = components.places[:n].T
        decays = np.ascontiguousarray(components.theta[:n].T)
        clusters = Instantiated(words_of(state, np.arange(n)), decays, components.shares[:n].copy())
        labels = np.zeros(state.n, dtype=np.int32)
        work = (model.lists, model.tables.skips, clusters, np.zeros(state.n, dtype=np.bool_), labels)
        key = draw_key(rng)
        n_lists = len(model.lists.starts) - 1
        over_rows(lambda first, last: assign(*work, key, first, last), n_lists, n_stages * n)
        state.n_moved = int(np.count_nonzero(labels != state.labels))
        state.labels[:] = labels
        state.n_clusters = n
        state.count_members()
        state.compact()
        state.refresh()
        return Info("jumps", self.n_tries, int(book.sum()))
