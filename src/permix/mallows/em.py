"""EM for mixtures of Mallows models from any preferences (Lu & Boutilier 2014, section 4).

Agents whose preferences partition all items enter in closed form, both steps (``partitioned_jit``): for
them the likelihood never falls. The others are completed by Monte Carlo: in every round each agent gets
rankings drawn, with their components, from the posterior under the present parameters, and the M-step uses
the tournament of those rankings (equations 29-32). When the likelihood no longer rises beyond its Monte
Carlo error, tournaments are averaged over rounds (stochastic-approximation EM), so that the noise of single
rounds goes away without more draws in each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.base import Estimate
from permix.distributions.conditioning.agent_posteriors import CHUNK, Profile, particle_draws
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.draws import log_mean_exp
from permix.distributions.conditioning.tournaments_jit import count_drawn
from permix.mallows.em_jit import ROWS
from permix.mallows.exchanges import ExactRows, exchange_neighbors
from permix.mallows.parameters import MallowsParameters
from permix.mallows.rounds.levels import LevelRounds
from permix.mallows.rounds.statistics import Statistics, improve, responsibilities
from permix.mallows.rounds.sums import SumRounds, are_few
from permix.mallows.rounds.words import WordRounds
from permix.runtime.threads import over_rows

# Independent sets of particles for every agent and component: two give an error.
N_SETS = 2
# Where different agents are few, more draws of each: together this many in a round, or one for each agent.
LEAST_DRAWS = 2000
# A component this much less probable than an agent's best one is left out for some rounds.
FAR_BEHIND = 6.0
ROUNDS_BETWEEN_ALL = 8
# Rounds of stochastic EM before exact rounds.
N_STOCHASTIC = 15
# Exact rounds that leave centers alone after one that found them best.
ROUNDS_OF_REST = 4
# Rows times components times rounds of a compiled climb before it looks for Ctrl-C: a tenth of a second.
WORK_AT_ONCE = 2**23
# Rounds over which the likelihood must rise, and rounds of averaging after it stopped rising.
WINDOW = 4
N_AVERAGED = 6


class Follow(NamedTuple):
    """How a run talks to who started it: report(iteration, log-likelihood), and whether to stop."""

    report: Callable[[int, float], object]
    stopped: Callable[[], bool]


class Run(NamedTuple):
    """Where one run of EM ended."""

    components: MallowsComponents
    log_likelihood: Estimate
    history: Array
    converged: bool


class MallowsEM:
    """One run of EM from given components; ``key`` names its random numbers."""

    def __init__(self, profile: Profile, settings: MallowsParameters, key: Array) -> None:
        self.profile = profile
        self.settings = settings
        self.key = key
        self._most = -math.log(settings.min_dispersion)
        n_sampled = len(profile.sampled)
        k = settings.n_components
        self.parts: list[ExactRows] = []
        if profile.words:
            self.parts.append(WordRounds(profile.words, k))
        elif len(profile.partitioned):
            self.parts.append(LevelRounds(profile, k))
        self.exact = n_sampled == 0 or are_few(profile, k)  # no Monte Carlo is needed
        if n_sampled and self.exact:
            self.parts.append(SumRounds(profile, k))
        n_draws = max(LEAST_DRAWS, int(profile.counts[profile.sampled].sum()))
        self.n_sets = max(N_SETS, min(16, math.ceil(n_draws / max(n_sampled, 1))))
        self.n_agents = profile.n_agents
        self._active = np.ones((n_sampled, settings.n_components), dtype=np.bool_)
        # Rows for whom whole climbs are compiled; beyond a block, threads that share a round are faster.
        self.whole: WordRounds | None = None
        if len(self.parts) == 1 and self.exact and settings.center_search == "local":
            part = self.parts[0]
            if isinstance(part, WordRounds) and part.n_rows <= ROWS and profile.preferences.n_items > 1:
                self.whole = part

    def climb(self, components: MallowsComponents, follow: Follow, n_stochastic: int = N_STOCHASTIC) -> Run:
        """Iterate until the likelihood stops rising.

        Where everything is exact, the first rounds draw every agent's component instead of sharing the agent
        out (stochastic EM): centers are discrete, and without that noise they lock in early. Where rankings
        are drawn the noise is there already.

        Where an exact round finds all centers best, neighbors in them change places if that raises the
        likelihood; where that finds nothing either, some rounds leave the centers alone, which costs less.
        The last round does not.
        """
        history: list[tuple[float, float]] = []
        rng = np.random.default_rng(np.random.SeedSequence(self.key.tolist()))
        if not self.exact or components.n_components == 1:
            n_stochastic = 0
        if self.whole is not None:
            return self._climb_at_once(self.whole, components, follow, rng, n_stochastic)
        for sweep in range(n_stochastic):
            found, following = self.round(components, sweep, rng)
            follow.report(sweep + 1, float(found))
            if follow.stopped():
                return Run(components, found, np.array([(float(found), 0.0)]), False)
            components = following
        rest = 0  # rounds to come that leave centers alone
        settled = not self.exact  # whether the last look at centers found none better
        untried = True  # exchanges of neighbors, since the last that were made
        for sweep in range(self.settings.max_iter):
            found, following = self.round(components, sweep, look=rest == 0)
            history.append((float(found), found.standard_error))
            follow.report(sweep + 1, float(found))
            rising = not self._stopped_rising(history)
            converged = settled and not rising
            if converged or follow.stopped() or sweep + 1 == self.settings.max_iter:
                break
            if rest and not rising:
                rest = 0
                found, following = self.round(components, sweep)
            if rest:
                settled, rest = False, rest - 1
            elif self.exact:
                settled = np.array_equal(components.centers, following.centers)
                if settled and (untried or not rising):
                    better = self._exchanged(following)
                    settled, following = better is following, better
                    untried = not settled
                rest = ROUNDS_OF_REST if settled else 0
            components = following
        return Run(components, found, np.array(history), converged)

    def _climb_at_once(
        self,
        rows: WordRounds,
        components: MallowsComponents,
        follow: Follow,
        rng: np.random.Generator,
        n_stochastic: int,
    ) -> Run:
        """Climb in compiled code (``climb_jit``), which ends now and then to look for Ctrl-C."""
        at_once = max(4, WORK_AT_ONCE // (rows.n_rows * components.n_components))
        rise, rested = self.settings.tol * self.n_agents, -math.inf
        history: list[float] = []
        while True:
            n_drawn = min(n_stochastic, at_once)
            n_stochastic -= n_drawn
            # Each part of a climb begins with the round that the one before ended with.
            left = self.settings.max_iter - len(history) + bool(history)
            n_rounds = 1 if n_stochastic else min(left, at_once)
            uniforms = rng.random((n_drawn, rows.n_rows))
            components, values, ended, rested = rows.climb(
                components, uniforms, self._most, rise, rested, n_rounds
            )
            follow.report(len(history) + len(values), float(values[-1]))
            if n_stochastic and not follow.stopped():
                continue
            history += values[bool(history) :].tolist()
            if ended or follow.stopped() or len(history) >= self.settings.max_iter:
                break
        found = Estimate(history[-1], 0.0)
        return Run(components, found, np.stack([history, np.zeros(len(history))], axis=1), ended)

    def round(
        self,
        components: MallowsComponents,
        sweep: int,
        rng: np.random.Generator | None = None,
        look: bool = True,
    ) -> tuple[Estimate, MallowsComponents]:
        """Return the log-likelihood of the components, and better ones.

        With a generator components of agents are drawn. Without ``look`` centers stay.
        """
        # One more member each: a component that nobody was drawn for could otherwise never come back.
        extra = 0.0 if rng is None else 1.0
        found, statistics = self.e_step(components, sweep, rng, look)
        return found, self.m_step(components, statistics._replace(members=statistics.members + extra), look)

    def _exchanged(self, components: MallowsComponents) -> MallowsComponents:
        """Return better centers, where neighbors in the present ones should change places."""
        if components.n_items < 2:
            return components
        return exchange_neighbors(self.parts, components, self.settings.tol * self.n_agents)

    def average(self, run: Run, follow: Follow) -> Run:
        """Go on from a run with noise: average what is drawn over rounds."""
        components, averaged = run.components, None
        history = list(map(tuple, run.history))
        for done in range(N_AVERAGED):
            if follow.stopped():
                break
            found, statistics = self.e_step(components, self.settings.max_iter + done)
            history.append((float(found), found.standard_error))
            follow.report(len(history), float(found))
            step = 1.0 / (done + 1)
            pairs = zip(averaged or statistics, statistics, strict=True)
            averaged = Statistics(*((1.0 - step) * old + step * new for old, new in pairs))
            components = self.m_step(components, averaged)
        return Run(components, run.log_likelihood, np.array(history), run.converged)

    def _stopped_rising(self, history: list[tuple[float, float]]) -> bool:
        """Say whether the last rounds are no better than those before, as far as the noise lets one see."""
        if self.exact:
            return len(history) > 1 and history[-1][0] - history[-2][0] <= self.settings.tol * self.n_agents
        if len(history) < 2 * WINDOW:
            return False
        values = np.array(history[-2 * WINDOW :])
        rise = values[WINDOW:, 0].mean() - values[:WINDOW, 0].mean()
        error = float(np.sqrt(np.sum(values[:, 1] ** 2))) / WINDOW
        return bool(rise <= max(self.settings.tol * self.n_agents * WINDOW, error))

    # E-step.

    def e_step(
        self,
        components: MallowsComponents,
        sweep: int,
        rng: np.random.Generator | None = None,
        look: bool = True,
    ) -> tuple[Estimate, Statistics]:
        """Return the log-likelihood of the present components, and the expected statistics under them.

        With a generator the components of partitioned rows are drawn, not shared out. Without ``look`` their
        part in ``wins`` is left out.
        """
        total, statistics = 0.0, Statistics.zeros(components.n_components, components.n_items)
        for part in self.parts:
            value, found = part.e_step(components, rng, look or not self.exact)
            total += value
            statistics = Statistics(*map(np.add, statistics, found))
        variance = 0.0
        if not self.exact:
            if sweep % ROUNDS_BETWEEN_ALL == 0 or sweep < 2:
                self._active[:] = True
            drawn = self._sampled_part(components, statistics, sweep)
            total, variance = total + float(drawn), drawn.standard_error**2
        return Estimate(total, math.sqrt(variance)), statistics

    def _sampled_part(self, components: MallowsComponents, statistics: Statistics, sweep: int) -> Estimate:
        """Draw (component, ranking) for every agent that needs it; add the tournaments of what was drawn."""
        profile, n_sets, k = self.profile, self.n_sets, components.n_components
        counts = profile.counts[profile.sampled]
        stream = np.random.Philox(key=self.key, counter=[0, 0, sweep, 1])
        uniforms = np.random.Generator(stream).random(len(counts))
        wins = np.zeros_like(statistics.wins)  # by step of the present centers, upper half
        drawn_weight = np.zeros(k)
        total, variance = 0.0, 0.0
        n_active = self._active.sum(axis=1)
        ends = np.cumsum(n_active * n_sets)
        first = 0
        while first < len(counts):
            done = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, done + CHUNK, side="right")))
            local, cluster = np.nonzero(self._active[first:last])
            agent = np.repeat(local, n_sets)  # within the chunk
            clusters = np.repeat(cluster, n_sets)
            jobs = (profile.sampled[first + agent], clusters, self.settings.n_particles)
            found, places = particle_draws(components, profile, *jobs, self.key, sweep, int(done))
            joint = np.full((last - first, k, n_sets), -np.inf)
            joint[local, cluster] = found.reshape(-1, n_sets)
            joint += components.log_weights[:, None]
            values, errors = log_mean_exp(np.logaddexp.reduce(joint, axis=1))
            here = counts[first:last]
            total += float(here @ values)
            variance += float(here.astype(np.float64) ** 2 @ errors**2)
            by_component, _ = log_mean_exp(joint)
            shares = responsibilities(by_component, values)
            statistics.members[:] += here @ shares
            self._active[first:last] &= by_component >= by_component.max(axis=1)[:, None] - FAR_BEHIND
            chosen = _systematic(joint, uniforms[first:last], local, cluster, n_sets)
            weights = here[agent[chosen]]
            drawn_weight += np.bincount(clusters[chosen], weights=weights, minlength=k)
            _add_tournaments(weights, clusters[chosen], places[chosen], wins)
            first = last
        statistics.rankings[:] += drawn_weight / n_sets
        for at, center in enumerate(components.centers):  # from steps of the center to items
            upper = np.triu(wins[at], 1)
            both = upper + np.tril(drawn_weight[at] - upper.T, -1)
            statistics.wins[at][np.ix_(center, center)] += both / n_sets
        return Estimate(total, math.sqrt(variance))

    # M-step.

    def m_step(
        self, components: MallowsComponents, statistics: Statistics, look: bool = True
    ) -> MallowsComponents:
        """Maximize over weights, centers (where ``look``) and dispersions, in this order (theorem 23)."""
        centers, decays = components.centers.copy(), components.decays.copy()
        if look and self.settings.center_search == "exact":
            from permix.consensus.kemeny import kemeny

            look, statistics = False, statistics._replace(against=statistics.against.copy())
            for k in np.flatnonzero(statistics.rankings > 0.0):
                # Rounding may leave tiny negative counts where a share was taken out again.
                best = kemeny(np.maximum(statistics.wins[k], 0.0), method="exact")
                centers[k], statistics.against[k] = best.order, best.score
        improve(statistics, look, self._most, centers, decays)
        weights = statistics.members / statistics.members.sum()
        return MallowsComponents(components.items, weights, centers, decays)


def total_log_likelihood(joint: Array, errors: Array, counts: Array) -> Estimate:
    """Sum ln Σ_k π_k P(v | k) over agents, equation 26, from ln of the joint and its standard errors.

    The logarithm of an unbiased estimate with relative error e is too small by about e²/2; over many agents
    that adds up faster than the errors do. It is put back, and half of it counts as error.
    """
    counts = counts.astype(np.float64)
    evidence = np.logaddexp.reduce(joint, axis=1)
    # Errors of the components of one row are independent.
    squares = np.sum((responsibilities(joint, evidence) * errors) ** 2, axis=1)
    missing = 0.5 * float(counts @ squares)
    error = math.sqrt(float(counts**2 @ squares) + (0.5 * missing) ** 2)
    return Estimate(float(counts @ evidence) + missing, error)


def _systematic(joint: Array, uniforms: Array, local: Array, cluster: Array, n_sets: int) -> Array:
    """Choose ``n_sets`` rows of work for every agent, in proportion to π_k times the estimate of P(v).

    ``joint`` (agents, K, sets) holds the logarithms; rows of work are numbered as the pairs
    (local, cluster), each with its sets.
    """
    n_agents, k, _ = joint.shape
    number = np.full((n_agents, k), -1, dtype=np.int64)
    number[local, cluster] = np.arange(len(local))
    flat = joint.reshape(n_agents, -1)
    with np.errstate(invalid="ignore"):
        weights = np.exp(flat - flat.max(axis=1)[:, None])
    possible = np.isfinite(weights).all(axis=1)
    cumulative = np.cumsum(weights, axis=1)
    chosen = []
    for draw in range(n_sets):
        points = (draw + uniforms) / n_sets * cumulative[:, -1]
        place = (cumulative <= points[:, None]).sum(axis=1)
        place = np.minimum(place, flat.shape[1] - 1)
        rows = number[np.arange(n_agents), place // n_sets] * n_sets + place % n_sets
        chosen.append(rows[possible])
    return np.concatenate(chosen)


def _add_tournaments(weights: Array, clusters: Array, places: Array, wins: Array) -> None:
    """Count drawn rankings, component by component; ``weights`` are whole numbers."""
    order = np.lexsort((weights, clusters))
    ends = np.searchsorted(clusters[order], np.arange(len(wins) + 1))

    def work(first: int, last: int) -> None:
        for k in range(first, last):
            count_drawn(int(ends[k]), int(ends[k + 1]), order, places, weights, wins[k])

    over_rows(work, len(wins), places.size)
