"""One posterior draw that follows new data, and the state of a chain made of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from permix.bayes_mallows.chain.errors_jit import BERNOULLI, MOST_ODDS
from permix.bayes_mallows.chain.moves import LatentRankings
from permix.bayes_mallows.chain.state import GroupState
from permix.bayes_mallows.data import BayesModel
from permix.data.labels import Array
from permix.sampling import Draws

# Passes over the items of rankings that are drawn from nothing.
SETTLE = 12


@dataclass
class Particle:
    """Groups, who is in them, errors, and the rankings of those who leave something open.

    Agents are in the order of rows. ``rankings`` are those of agents ``open_agents``.
    """

    labels: Array  # int32 (agents,)
    centers: Array  # int32 (groups, items), best first
    decays: Array  # (groups,)
    errors: Array  # (1 or agents, 2)
    concentration: float
    open_agents: Array  # int64
    rankings: Array  # (open agents, items): ranks, in the smallest type

    @property
    def sizes(self) -> Array:
        return np.bincount(self.labels, minlength=len(self.decays))

    @classmethod
    def of(cls, state: GroupState) -> Particle:
        """Return what a state has come to."""
        model, used = state.model, slice(None, state.n_clusters)
        errors = state.errors.copy()
        kind = np.uint8 if model.n_items <= 256 else np.int32
        return cls(
            labels=state.labels[model.in_turn].copy(),
            centers=np.argsort(state.centers[used], axis=1).astype(np.int32),
            decays=state.decays[used].copy(),
            errors=errors[model.in_turn] if model.errors_per_agent else errors,
            concentration=state.concentration,
            open_agents=open_in_turn(model),
            rankings=state.rankings[len(model.known) :].astype(kind),
        )

    def state(self, model: BayesModel, rng: np.random.Generator) -> GroupState:
        """Return a state of a chain; rankings that are not known yet are drawn, given groups."""
        state = GroupState(model)
        state.concentration = self.concentration
        state.take_draw(rng, self.labels, self.centers, self.decays, self._errors(model))
        here = open_in_turn(model)
        if len(here):
            at = np.searchsorted(self.open_agents, here)
            at[at == len(self.open_agents)] = 0
            there = np.zeros(len(here), dtype=np.bool_)
            if len(self.open_agents):
                there = self.open_agents[at] == here
            state.rankings[len(model.known) + np.flatnonzero(there)] = self.rankings[at[there]]
            unknown = model.open_agents[~there]
            if len(unknown):
                LatentRankings(SETTLE).of(rng, state, unknown)
        return state

    def _errors(self, model: BayesModel) -> Array | None:
        return self.errors if model.soft else None

    def without(self, agents: Array) -> Particle:
        """Return the same without the rankings of agents who said more."""
        kept = ~np.isin(self.open_agents, agents)
        return replace(self, open_agents=self.open_agents[kept], rankings=self.rankings[kept])


def open_in_turn(model: BayesModel) -> Array:
    """Return agents who leave something open, in the order of rows."""
    return np.argsort(model.in_turn)[model.open_agents]


def particles_of(
    draws: Draws, chain: int, n: int, model: BayesModel, rng: np.random.Generator
) -> list[Particle]:
    """Return evenly spaced draws of a chain of a model, with rankings of those who leave something open."""
    arrays = {name: array[chain] for name, array in draws.arrays.items()}
    found = []
    for d in np.linspace(0, len(arrays["labels"]) - 1, n).astype(np.int64).tolist():
        used = arrays["group_sizes"][d] > 0
        particle = Particle(
            labels=arrays["labels"][d].astype(np.int32),
            centers=np.ascontiguousarray(arrays["group_centers"][d].T[used], dtype=np.int32),
            decays=arrays["group_decays"][d][used].astype(np.float64),
            errors=_errors_of(arrays, d, model),
            concentration=float(arrays["concentration"][d]) if "concentration" in arrays else 0.0,
            open_agents=np.zeros(0, dtype=np.int64),
            rankings=np.zeros((0, model.n_items), dtype=np.uint8),
        )
        found.append(Particle.of(particle.state(model, rng)) if len(model.open_agents) else particle)
    return found


def _errors_of(arrays: dict[str, Array], d: int, model: BayesModel) -> Array:
    """Return level and slope, of everybody or of each agent in the order of rows."""
    if not model.soft:
        return np.zeros((1, 2))
    own = "agent_" if model.errors_per_agent else ""
    if model.errors == BERNOULLI:
        rates = np.maximum(np.atleast_1d(arrays[f"{own}error_rate"][d]), np.exp(-MOST_ODDS))
        return np.stack([np.log1p(-rates) - np.log(rates), np.zeros_like(rates)], axis=1)
    both = [np.atleast_1d(arrays[f"{own}error_{name}"][d]) for name in ("level", "slope")]
    return np.stack(both, axis=1).astype(np.float64)
