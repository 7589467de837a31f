"""How probable particles make what comes in, and where they put new agents.

A new agent joins a group with the weight that the prior over partitions gives it, times how probable the
group makes what the agent says: drawn so, the particle's weight grows by the sum, P(what is said | particle),
the agent's own ranking summed out. If the agent opens a group, its center and decay are drawn given what was
said (where centers may be anywhere alike), or are those of a group that was drawn from the prior beforehand.
An agent who says more stays where it is, and the weight grows by P(all it says | group) over P(what it said
before | group). Beyond six items these are estimated where they have no exact sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from permix.bayes_mallows.data import BayesModel
from permix.bayes_mallows.following.evenly import drawn_evenly
from permix.bayes_mallows.following.new_data import Growth, one_by_one
from permix.bayes_mallows.following.particles import Particle
from permix.bayes_mallows.group_prior import LEAST_DECAY, MOST_DECAY, around, draw_groups
from permix.bayes_mallows.groups import prior_errors
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.bayes_mallows.scores import Under, log_scores
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.partitions.priors import DirichletProcess, PartitionPrior
from permix.runtime.seeds import stream_key


@dataclass
class Seats:
    """Where a particle puts new agents, one after another."""

    log_weights: Array  # (agents,): ln of how its weight grows
    # (agents,): groups; those that are opened here follow those that were there, as they come.
    labels: Array
    # Which agent opened a group, with its center, best first, and its decay.
    opened: list[tuple[int, Array, float]] = field(default_factory=list)

    def take(self, particle: Particle, n: int, errors: Array | None) -> Particle:
        """Return the particle with the first so many of these agents; ``errors`` are theirs alone."""
        groups = [(center, decay) for at, center, decay in self.opened if at < n]
        return replace(
            particle,
            labels=np.concatenate([particle.labels, self.labels[:n]]),
            centers=np.concatenate([particle.centers, *(center[None] for center, _ in groups)]),
            decays=np.append(particle.decays, [decay for _, decay in groups]),
            errors=particle.errors if errors is None else np.concatenate([particle.errors, errors[:n]]),
        )


class Weigher:
    """Scores of a chain's particles, and what they do with what comes in."""

    def __init__(self, grown: Growth, model: BayesModel, settings: BayesianMallowsParameters) -> None:
        self.grown, self.model, self.settings = grown, model, settings

    def changes(self, particles: list[Particle], first: int, last: int, rng: np.random.Generator) -> Array:
        """Return ln of how weights grow by each of the rows ``first`` to ``last`` that say more."""
        grown, rows = self.grown, np.arange(first, last)
        agents = agents_of_rows(grown)[rows]
        now, before = grown.more[rows], grown.before[grown.rows[rows]]
        return self._of_own(now, particles, agents, rng) - self._of_own(before, particles, agents, rng)

    def _of_own(
        self, table: Preferences, particles: list[Particle], agents: Array, rng: np.random.Generator
    ) -> Array:
        """Return ln P(row | the group that its agent is in), (particles, rows)."""
        out = np.empty((len(particles), len(table)))
        starts = _starts(particles)
        per_agent = self.settings.errors_per_agent
        blocks = [[at] for at in range(len(table))] if per_agent else [list(range(len(table)))]
        for block in blocks:
            errors = [p.errors[agents[block[0]] if per_agent else 0] for p in particles]
            scores = log_scores(table[block], self._under(particles, errors), stream_key(rng))
            for i, particle in enumerate(particles):
                out[i, block] = scores[np.arange(len(block)), starts[i] + particle.labels[agents[block]]]
        return out

    def _under(self, particles: list[Particle], errors: list[Array], *more: Array) -> Under:
        """Return the groups of all particles one after another, and maybe one more of each after them."""
        numbers = np.array([len(p.decays) for p in particles])
        centers, decays = [p.centers for p in particles], [p.decays for p in particles]
        of_rows = np.repeat(np.array(errors), numbers, axis=0)
        if more:
            centers.append(more[0])
            decays.append(more[1])
            of_rows = np.concatenate([of_rows, np.array(errors)])
        return Under(self.settings, np.concatenate(centers), np.concatenate(decays), of_rows)

    def arrivals(
        self, particles: list[Particle], first: int, last: int, rng: np.random.Generator
    ) -> tuple[list[Seats], Array]:
        """Return where particles seat some new agents, and the errors of these, (particles, agents, 2)."""
        n, n_agents = len(particles), last - first
        table = one_by_one(self.grown.new, np.arange(first, last))
        extra = self._extra(n, rng)
        scores = np.empty((n_agents, sum(len(p.decays) for p in particles) + n))
        errors = np.zeros((n, n_agents, 2))
        if self.settings.errors_per_agent:
            for at in range(n_agents):
                errors[:, at] = prior_errors(self.settings, n, rng)
                under = self._under(particles, list(errors[:, at]), *extra)
                scores[at] = log_scores(table[[at]], under, stream_key(rng))[0]
        else:
            under = self._under(particles, [p.errors[0] for p in particles], *extra)
            scores[:] = log_scores(table, under, stream_key(rng))
        starts = _starts(particles)
        seats = []
        for i, particle in enumerate(particles):
            own = scores[:, starts[i] : starts[i] + len(particle.decays)]
            alone = scores[:, starts[-1] + i]
            seats.append(self._seat(particle, own, alone, table, errors[i], extra, i, rng))
        return seats, errors

    def _extra(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return a group for each particle that nobody is in: one that makes all rankings alike, or drawn."""
        items = self.model.n_items
        if self.model.prior.center_decay == 0.0:
            return np.tile(np.arange(items, dtype=np.int32), (n, 1)), np.zeros(n)
        ranks, decays = draw_groups(self.model.prior, self.settings.distance, n, rng)
        return np.argsort(ranks, axis=1).astype(np.int32), decays

    def _seat(
        self,
        particle: Particle,
        own: Array,
        alone: Array,
        table: Preferences,
        errors: Array,
        extra: tuple[Array, Array],
        i: int,
        rng: np.random.Generator,
    ) -> Seats:
        """Seat agents one after another."""
        n_agents = len(alone)
        if self.settings.partition_prior().most_clusters(2) == 1:
            return Seats(own[:, 0], np.zeros(n_agents, dtype=np.int32))
        prior = _prior_at(self.settings.partition_prior(), particle.concentration)
        sizes = particle.sizes
        seats = Seats(np.empty(n_agents), np.empty(n_agents, dtype=np.int32))
        opened: list[Array] = []  # scores of the agents under groups that were opened here
        for at in range(n_agents):
            here = np.append(own[at], [scores[at] for scores in opened])
            logs = prior.sequential_log_weights(sizes) + np.append(here, alone[at])
            seats.log_weights[at] = total = np.logaddexp.reduce(logs)
            chances = np.cumsum(np.exp(logs - total)) if np.isfinite(total) else np.ones(1)
            label = min(int(np.searchsorted(chances, rng.random() * chances[-1], side="right")), len(here))
            seats.labels[at] = label
            if label < len(here):
                sizes[label] += 1
                continue
            sizes = np.append(sizes, 1)
            mine = errors[at] if self.settings.errors_per_agent else particle.errors[0]
            center, decay = self._opened(table[[at]], mine, extra, i, rng)
            seats.opened.append((at, center, decay))
            opened.append(self._alone(table, center, decay, mine, rng))
            if self.model.prior.center_decay > 0.0:  # the next group is another one
                alone = self._alone(table, extra[0][i], extra[1][i], mine, rng)
        return seats

    def _alone(
        self, table: Preferences, center: Array, decay: float, errors: Array, rng: np.random.Generator
    ) -> Array:
        under = Under(self.settings, center[None], np.array([decay]), errors[None])
        return log_scores(table, under, stream_key(rng))[:, 0]

    def _opened(
        self,
        row: Preferences,
        errors: Array,
        extra: tuple[Array, Array],
        i: int,
        rng: np.random.Generator,
    ) -> tuple[Array, float]:
        """Return center and decay of a group that somebody opens who says this."""
        prior = self.model.prior
        if prior.center_decay > 0.0:
            center, decay = extra[0][i].copy(), float(extra[1][i])
            ranks, decays = draw_groups(prior, self.settings.distance, 1, rng)
            extra[0][i], extra[1][i] = np.argsort(ranks[0]), decays[0]
            return center, decay
        decay = float(np.clip(rng.gamma(prior.shape, 1.0 / prior.rate), LEAST_DECAY, MOST_DECAY))
        order = drawn_evenly(row, self.settings, errors, rng)
        return around(self.settings.distance, decay, order, 1, rng)[0], decay


def agents_of_rows(grown: Growth) -> Array:
    """Return the agent, counted through all rows, of each row that says more."""
    ends = np.cumsum(grown.before.counts)
    return np.asarray((ends - grown.before.counts)[grown.rows])


def _starts(particles: list[Particle]) -> Array:
    """Where the groups of each particle begin, and where they all end."""
    return np.concatenate([[0], np.cumsum([len(p.decays) for p in particles])])


def _prior_at(prior: PartitionPrior, concentration: float) -> PartitionPrior:
    if isinstance(prior, DirichletProcess) and not isinstance(prior.concentration, float):
        return DirichletProcess(concentration)
    return prior
