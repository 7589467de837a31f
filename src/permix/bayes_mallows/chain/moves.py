"""Moves of Bayesian Mallows models: agents, their rankings and errors, and groups."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.bayes_mallows.chain.errors_jit import update_errors
from permix.bayes_mallows.chain.labels_jit import choose, swap_neighbors, visit, weigh
from permix.bayes_mallows.chain.latent_jit import fill_costs, update_latents
from permix.bayes_mallows.chain.orbits_jit import swap_together
from permix.bayes_mallows.chain.shares_jit import move_shares
from permix.bayes_mallows.chain.state import GroupState
from permix.bayes_mallows.chain.statistics_jit import has_costs
from permix.data.labels import Array
from permix.kernels.streams import draw_key
from permix.moves.base import Info, Move
from permix.runtime.threads import over_rows

# About so many agents stay where they are while the others are assigned at once; at most this share of all.
PINNED, MOST_PINNED = 200, 0.25
# Agents who are visited one by one in an iteration.
VISITED = 100


@dataclasses.dataclass
class LatentRankings(Move):
    """Draw the full rankings of agents who leave something open anew."""

    rounds: int = 1

    def step(self, rng: np.random.Generator, state: GroupState) -> Info:
        n_open = len(state.model.open_agents)
        self.of(rng, state, state.model.open_agents)
        return Info("rankings", n_open, n_open)

    def of(self, rng: np.random.Generator, state: GroupState, agents: Array) -> None:
        """Draw those of some agents who leave something open."""
        model, n = state.model, state.model.n_items
        costs = np.empty((state.n_clusters, n, n))
        fill_costs(model.metric, state.centers, state.n_clusters, np.empty((n, n)), costs)
        given = (model.metric, model.arrays, model.soft, agents, model.row_of, state.members)
        groups = (state.centers, state.decays, costs, state.errors, self.rounds)
        key = draw_key(rng)
        over_rows(lambda first, last: update_latents(key, *given, *groups, first, last), len(agents), n * n)
        state.recount()


@dataclasses.dataclass
class SharedSwaps(Move):
    """Swap neighbors in centers and in the rankings behind what members say, together."""

    def step(self, rng: np.random.Generator, state: GroupState) -> Info:
        model = state.model
        given = (model.metric, model.arrays, model.soft, model.row_of, len(model.known), state.members)
        groups = (state.centers, state.decays, state.errors, state.n_clusters, model.prior)
        made = int(swap_together(rng, *given, *groups))
        state.recount()
        return Info("swaps", state.n_clusters * model.n_items, made)


@dataclasses.dataclass
class Assignments(Move):
    """Assign agents to groups: most at once, and some one by one, so that groups open and close."""

    def step(self, rng: np.random.Generator, state: GroupState) -> Info:
        moved = self._assign(rng, state)
        moved += self._visit(rng, state)
        state.settle()
        state.n_moved = moved
        return Info("assignments", state.n + min(VISITED, state.n), moved)

    def _assign(self, rng: np.random.Generator, state: GroupState) -> int:
        pinned = rng.random(state.n) < min(MOST_PINNED, PINNED / state.n)
        named = np.bincount(state.labels[pinned], minlength=state.n_clusters) > 0
        if np.count_nonzero(named) < 2:
            return 0
        weights = rng.standard_gamma(state.sizes_in_use - state.prior.discount)
        norms = state.log_norms[: state.n_clusters]
        offsets = np.where(named, np.log(np.maximum(weights, 1e-300)) - norms, -np.inf)
        free, before = ~pinned & named[state.labels], state.labels.copy()
        found, distances = np.zeros((2, state.n_clusters, state.n))
        metric, key = state.model.metric, draw_key(rng)
        given = (metric, state.members, state.centers, state.decays, offsets, free, found, distances)
        per_agent = state.n_clusters * state.model.n_items
        over_rows(lambda first, last: weigh(*given, first, last), state.n, per_agent)
        moving = (np.flatnonzero(free), np.flatnonzero(~free))
        shares = np.where(named, weights, 0.0)
        model = state.model
        move_shares(
            rng,
            metric,
            model.sums.table,
            model.prior,
            state.members,
            *moving,
            named,
            state.prior.discount,
            shares / shares.sum(),
            found,
            distances,
            state.centers,
            state.decays,
        )
        if has_costs.py_func(metric):
            groups = (found, state.centers, state.decays, state.model.prior)
            swap_neighbors(rng, metric, state.members, np.flatnonzero(~free), offsets, *groups)
        over_rows(lambda first, last: choose(key, free, found, state.labels, first, last), state.n, per_agent)
        state.sizes[: state.n_clusters] = np.bincount(state.labels, minlength=state.n_clusters)
        return int(np.count_nonzero(before != state.labels))

    def _visit(self, rng: np.random.Generator, state: GroupState) -> int:
        visits = rng.integers(state.n, size=min(VISITED, state.n))
        state.make_room(state.n_clusters + len(visits) + 1)
        fresh, prior = state.draw_from_prior(rng, len(visits)), state.prior
        given = (state.model.metric, state.model.sums.table, state.members, visits, *fresh)
        groups = (prior.joining, prior.opening, state.sizes, state.centers, state.decays, state.n_clusters)
        state.n_clusters, moved = visit(rng, *given, *groups)
        return int(moved)


@dataclasses.dataclass
class Groups(Move):
    """Draw centers and decays of groups given their members, and shares."""

    rounds: int = 2

    def step(self, rng: np.random.Generator, state: GroupState) -> Info:
        changed = state.update_groups(rng, self.rounds)
        state.draw_shares(rng)
        return Info("centers", self.rounds * state.n_clusters * state.model.n_items, changed)


@dataclasses.dataclass
class Errors(Move):
    """Draw the parameters of errors given all rankings."""

    rounds: int = 2

    def step(self, rng: np.random.Generator, state: GroupState) -> Info:
        model = state.model
        prior = np.array(model.error_prior)
        update_errors(
            rng, model.errors, model.arrays, model.row_of, state.members, prior, self.rounds, state.errors
        )
        return Info("errors", self.rounds * len(state.errors), self.rounds * len(state.errors))
