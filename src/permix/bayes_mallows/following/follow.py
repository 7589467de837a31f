"""Posterior draws that follow new data, by sequential Monte Carlo.

Each chain of a fit gives particles, which never meet those of another, so that chains can be compared.
What comes in is taken in steps, as many agents at once as leave particles worth half of their number: so new
data are tempered, agent by agent. Where weights have become too different, particles are drawn anew by their
weights and moved by the moves of a fit, given all that came in so far (Chopin 2002). The product of the mean
weights estimates P(new data | data before).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from permix.bayes_mallows.data import BayesModel, bayes_model, reader_for
from permix.bayes_mallows.fit import BayesianMallowsFit, sweep_move
from permix.bayes_mallows.following.new_data import Growth, growth
from permix.bayes_mallows.following.particles import Particle, particles_of
from permix.bayes_mallows.following.record import Followed
from permix.bayes_mallows.following.weights import Weigher, agents_of_rows
from permix.bayes_mallows.given_number import of_given_number
from permix.convergence import ASKED
from permix.data.labels import Array
from permix.errors import Argument, DataError, PermixWarning
from permix.estimators.known import Known
from permix.posterior import warn_if_chains_disagree
from permix.posterior.estimated import nearest_partition
from permix.runtime.progress import Display
from permix.runtime.seeds import RandomState, describe, seed_sequence
from permix.runtime.threads import at_most
from permix.sampling import Draws
from permix.sampling.chain import count
from permix.sampling.draws import Block, Tally, assemble, own_copy, stack
from permix.sampling.particles import effective_size, log_mean_increment, resampled, step_size

# A step, and all steps since particles were drawn anew, leave them worth at least this share of their number.
LEAST = 0.5
# Agents whose weights are computed at once: at first, and at most.
FIRST_BLOCK, MOST_BLOCK = 16, 1024
# A step that leaves particles worth less than this is warned of.
FEW = 10.0


class Particles:
    """The particles of one chain."""

    def __init__(self, particles: list[Particle], grown: Growth, rng: np.random.Generator) -> None:
        self.particles, self.grown, self.rng = particles, grown, rng
        self.log_weights = np.zeros(len(particles))
        self.n_changed = self.n_new = self.n_steps = 0
        self.log_evidence = 0.0
        self.smallest = float(len(particles))
        self.tally: Tally = {}

    def take(self, log_increments: Array) -> int:
        """Weigh by as many columns as one step may take; returns how many."""
        taken = step_size(self.log_weights, log_increments, LEAST)
        grown = log_increments[:, :taken].sum(axis=1)
        self.log_evidence += log_mean_increment(self.log_weights, grown)
        self.log_weights = self.log_weights + grown
        self.smallest = min(self.smallest, effective_size(self.log_weights))
        return taken

    def are_worn(self) -> bool:
        """Whether weights have become so different that particles must be drawn anew."""
        return effective_size(self.log_weights) < LEAST * len(self.particles)

    def draw_anew(self) -> None:
        """Let particles go on as often as their weights say."""
        chosen = resampled(self.rng, self.log_weights)
        self.particles = [replace(self.particles[i]) for i in chosen.tolist()]
        self.log_weights = np.zeros(len(self.particles))
        self.n_steps += 1

    def move(self, settings: Any, rounds: int, record: bool) -> Block | None:
        """Move each particle given all that came in; returns draws of all, if they are to be recorded."""
        model = self.model(settings)
        move, records = sweep_move(model, settings), []
        for i, particle in enumerate(self.particles):
            state = particle.state(model, self.rng)
            for _ in range(rounds):
                count(self.tally, move.step(self.rng, state))
            if record:
                records.append(own_copy(state.record()))
            else:
                self.particles[i] = Particle.of(state)
        return stack(records) if record else None

    def model(self, settings: Any) -> BayesModel:
        return bayes_model(self.grown.table(self.n_changed, self.n_new), settings)


def follow(
    particles: Particles, settings: Any, rounds: int, display: Display | None = None, move: bool = True
) -> None:
    """Take in all that is new; without ``move``, particles keep the groups they have."""
    grown = particles.grown
    model = particles.model(settings)
    weigher, n_new = Weigher(grown, model, settings), int(grown.new.n_agents)
    block = FIRST_BLOCK
    while particles.n_changed < grown.n_changed or particles.n_new < n_new:
        if particles.n_changed < grown.n_changed:
            first, last = particles.n_changed, min(particles.n_changed + block, grown.n_changed)
            increments = weigher.changes(particles.particles, first, last, particles.rng)
            taken = particles.take(increments)
            particles.n_changed += taken
            agents = agents_of_rows(grown)[first : first + taken]
            particles.particles = [each.without(agents) for each in particles.particles]
        else:
            first, last = particles.n_new, min(particles.n_new + block, n_new)
            seats, errors = weigher.arrivals(particles.particles, first, last, particles.rng)
            taken = particles.take(np.array([each.log_weights for each in seats]))
            particles.n_new += taken
            own = errors if settings.errors_per_agent else [None] * len(seats)
            pairs = zip(seats, particles.particles, own, strict=True)
            particles.particles = [seat.take(particle, taken, mine) for seat, particle, mine in pairs]
        block = min(2 * block, MOST_BLOCK) if taken == last - first else max(2 * taken, 1)
        if display is not None:
            done, there = particles.n_changed + particles.n_new, grown.n_changed + n_new
            display.update(f"{done:,} of {there:,} agents")
        if move and particles.are_worn():
            particles.draw_anew()
            particles.move(settings, rounds, record=False)


def updated(
    fit: BayesianMallowsFit,
    data: Any,
    same_agents: bool,
    n_particles: int,
    n_moves: int,
    random_state: RandomState,
) -> BayesianMallowsFit:
    """Return the fit to old and new data together; data are as for a fit."""
    new = reader_for(fit.settings)(data, fit.items)
    grown = growth(fit.preferences, new, same_agents, fit.settings.errors is None)
    return update_bayes_mallows(fit, grown, n_particles, n_moves, random_state)


def update_bayes_mallows(
    fit: BayesianMallowsFit,
    grown: Growth,
    n_particles: int,
    rounds: int,
    random_state: RandomState,
) -> BayesianMallowsFit:
    """Return the fit to old and new data together."""
    settings = fit.settings
    if settings.weights_by:
        raise DataError(
            "new data are not followed where shares of groups depend on columns (",
            Argument("weights_by", list(settings.weights_by)),
            "); fit all data together",
        )
    n_chains = fit.draws.arrays["labels"].shape[0]
    n = min(n_particles, fit.draws.arrays["labels"].shape[1])
    before = bayes_model(fit.preferences, settings)
    seeds = seed_sequence(random_state).spawn(n_chains)
    chains, blocks = [], []
    with at_most(settings.n_jobs), Display(settings.progress) as display:
        display.begin("following new data")
        for chain, seed in enumerate(seeds):
            rng = np.random.default_rng(seed)
            particles = Particles(particles_of(fit.draws, chain, n, before, rng), grown, rng)
            follow(particles, settings, rounds, display)
            particles.draw_anew()
            block = particles.move(settings, rounds, record=True)
            assert block is not None
            chains.append(particles)
            blocks.append([block])
    names = list(chains[0].tally)
    totals = np.array([[each.tally[name] for name in names] for each in chains], dtype=np.int64)
    draws = Draws(
        arrays=assemble(blocks, np.arange(n)),
        statistics={
            "moves": names,
            "proposed": totals[:, :, 0],
            "accepted": totals[:, :, 1],
            "seconds": np.zeros(n_chains),
        },
        n_draws=n,
        n_made=n,
        ended=ASKED,
        seeds=tuple(describe(seed) for seed in seeds),
    )
    followed = Followed(
        new_agents=int(grown.new.n_agents),
        changed_agents=grown.n_changed,
        n_particles=n,
        n_steps=tuple(each.n_steps for each in chains),
        effective_size=tuple(each.smallest for each in chains),
        log_evidence=tuple(each.log_evidence for each in chains),
    )
    _warn_if_few(followed)
    table = grown.table(grown.n_changed, int(grown.new.n_agents))
    estimate = of_given_number(nearest_partition(draws, settings), draws, settings)
    warn_if_chains_disagree(draws)
    known = Known(table.covariates, fit.known.items)
    return BayesianMallowsFit(settings, table.items, table, draws, estimate, known, (*fit.followed, followed))


def _warn_if_few(followed: Followed) -> None:
    worth = min(followed.effective_size)
    if worth < min(FEW, 0.5 * followed.n_particles):
        warnings.warn(
            PermixWarning(
                f"what came in leaves the {followed.n_particles:,} draws of a chain worth {worth:.1f} at one "
                "step: it is far from what was known before. Take more particles, smaller batches, or fit "
                "all data together"
            ),
            stacklevel=4,
        )
