"""The sampler that Bayesian Mallows models were published with, as a move for the states of permix's chains.

Vitelli et al. (2018), and Crispino et al. (2019) for comparisons with errors: what BayesMallows implements.
It shows how much one such iteration is worth. Full rankings and comparisons; a given number of groups, which
also stay where nobody is in them.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from benchmarks.peers.published_mallows_jit import assign, move_groups, move_rankings
from permix.bayes_mallows.chain.errors_jit import BERNOULLI
from permix.bayes_mallows.chain.state import GroupState
from permix.moves.base import Info, Move
from permix.partitions import FiniteDirichlet


@dataclasses.dataclass
class Published(Move):
    """One iteration. Leaps are over a fifth of the items, and ln decay moves by normal steps of 0.1."""

    step_of_decay: float = 0.1
    leap: int | None = None

    def __post_init__(self) -> None:
        self.centers = self.decays = np.zeros((0, 0))

    def step(self, rng: np.random.Generator, state: GroupState) -> Info:
        model, labels = state.model, state.labels
        prior = model.partition_prior
        assert isinstance(prior, FiniteDirichlet)
        assert model.errors in (0, BERNOULLI)
        assert not model.errors_per_agent
        assert np.array_equal(np.diff(model.arrays.level_indptr) > 0, self._ranked_in_full(model))
        n_groups = prior.n
        if not len(self.decays):
            self._begin(rng, state, n_groups)
        self._name_groups(state)
        members, metric, table = state.members, model.metric, model.sums.table
        leap = self.leap or max(1, model.n_items // 5)
        given = (rng, metric, table, model.prior, members, leap, self.step_of_decay)
        move_groups(*given, self.centers, self.decays)
        if n_groups > 1:
            sizes = np.bincount(labels, minlength=n_groups)
            shares = np.maximum(rng.dirichlet(sizes + prior.pseudo_count), 1e-300)
            assign(rng, metric, table, members, shares, self.centers, self.decays)
        if len(model.open_agents):
            self._move_rankings(rng, state)
        self._hand_over(state)
        return Info("published", 1, 1)

    @staticmethod
    def _ranked_in_full(model: Any) -> Any:
        rows = np.ones(len(model.arrays.level_indptr) - 1, dtype=bool)
        rows[model.row_of[model.open_agents]] = False
        return rows

    def _begin(self, rng: np.random.Generator, state: GroupState, n_groups: int) -> None:
        used = state.n_clusters
        centers, decays = state.draw_from_prior(rng, n_groups)
        centers[:used], decays[:used] = state.centers[:used], state.decays[:used]
        self.centers, self.decays = np.ascontiguousarray(centers, dtype=np.int32), decays
        self._slot_of = np.arange(n_groups)

    def _name_groups(self, state: GroupState) -> None:
        """Give labels back the numbers that groups have here: a state leaves out those without members."""
        state.labels[:] = self._slot_of[state.labels]

    def _move_rankings(self, rng: np.random.Generator, state: GroupState) -> None:
        model = state.model
        soft = model.errors == BERNOULLI
        log_odds = float(state.errors[0, 0]) if soft else math.inf
        given = (rng, model.metric, model.arrays, model.row_of, model.open_agents, state.members)
        wrong = move_rankings(*given, self.centers, self.decays, log_odds)
        if soft:
            n_said = int(np.diff(model.arrays.pair_indptr)[model.row_of[model.open_agents]].sum())
            a, b = model.error_prior
            rate = 1.0
            while rate >= 0.5:
                rate = rng.beta(a + wrong, b + n_said - wrong)
            state.errors[0, 0] = math.log1p(-rate) - math.log(rate)

    def _hand_over(self, state: GroupState) -> None:
        in_order = state.labels[state.model.in_turn]
        named, first = np.unique(in_order, return_index=True)
        self._slot_of = named[np.argsort(first)]
        n_groups = len(self.decays)
        state.make_room(n_groups + 1)
        state.n_clusters = n_groups
        state.centers[:n_groups], state.decays[:n_groups] = self.centers, self.decays
        state.settle()
        state.draw_shares(np.random.default_rng(0))
