"""Moves where shares of groups depend on columns of agents: who is where, and coefficients."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.bayes_mallows.chain.labels_jit import choose, swap_neighbors, weigh
from permix.bayes_mallows.chain.state import GroupState
from permix.bayes_mallows.chain.statistics_jit import has_costs
from permix.distributions.agent_weights.bayes import draw_coefficients
from permix.distributions.agent_weights.logit import log_weights
from permix.kernels.streams import draw_key
from permix.moves.base import Info, Move
from permix.runtime.threads import over_rows


@dataclasses.dataclass
class AssignmentsByColumns(Move):
    """Assign all agents at once, given coefficients; centers move in between, with groups summed out.

    Groups that nobody is in take part: their centers and decays are drawn from the prior first.
    """

    def step(self, rng: np.random.Generator, state: GroupState) -> Info:
        columns, coefficients = state.model.columns, state.coefficients
        assert columns is not None
        assert coefficients is not None
        k, used = coefficients.shape[1], state.n_clusters
        state.make_room(k + 1)
        if used < k:
            state.centers[used:k], state.decays[used:k] = state.draw_from_prior(rng, k - used)
        state.n_clusters = k
        norms = state.model.sums.values(state.decays[:k])[0]
        free, before = np.ones(state.n, dtype=np.bool_), state.labels.copy()
        found, distances = np.zeros((2, k, state.n))
        metric, key = state.model.metric, draw_key(rng)
        given = (metric, state.members, state.centers, state.decays, -norms, free, found, distances)
        per_agent = k * state.model.n_items
        over_rows(lambda first, last: weigh(*given, first, last), state.n, per_agent)
        found *= np.exp(log_weights(columns.matrix, coefficients))[columns.pattern_of].T
        found /= found.sum(axis=0)
        if has_costs.py_func(metric):
            nobody = np.zeros(0, dtype=np.int64)
            groups = (found, state.centers, state.decays, state.model.prior)
            swap_neighbors(rng, metric, state.members, nobody, -norms, *groups)
        over_rows(lambda first, last: choose(key, free, found, state.labels, first, last), state.n, per_agent)
        state.n_moved = int(np.count_nonzero(before != state.labels))
        state.settle()
        return Info("assignments", state.n, state.n_moved)


@dataclasses.dataclass
class Coefficients(Move):
    """Draw the coefficients of columns given who is where."""

    rounds: int = 2

    def step(self, rng: np.random.Generator, state: GroupState) -> Info:
        columns, coefficients = state.model.columns, state.coefficients
        assert columns is not None
        assert coefficients is not None
        given = (columns.matrix, state.members_by_pattern, coefficients, self.rounds)
        state.coefficients = draw_coefficients(rng, *given)
        state.draw_shares(rng)
        return Info("coefficients", self.rounds, self.rounds)
