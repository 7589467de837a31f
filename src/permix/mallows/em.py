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

import numpy as np

from permix.data.labels import Array
from permix.distributions.base import Estimate
from permix.distributions.conditioning.agent_posteriors import CHUNK, Profile, particle_draws
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.draws import log_mean_exp
from permix.mallows.climbs import ExactClimb, Follow, Run
from permix.mallows.parameters import MallowsParameters
from permix.mallows.rounds.drawn import Draws
from permix.mallows.rounds.exchanges import ExactRows, Exchange, find_exchanges
from permix.mallows.rounds.levels import LevelRounds
from permix.mallows.rounds.sharded import ShardedRounds
from permix.mallows.rounds.statistics import (
    NO_BONUSES,
    Statistics,
    add_tournaments,
    improve,
    responsibilities,
    systematic,
)
from permix.mallows.rounds.sums import SumRounds, are_few
from permix.mallows.rounds.words import WordRounds

# Independent sets of particles for every agent and component: two give an error.
N_SETS = 2
# Where different agents are few, more draws of each: together this many in a round, or one for each agent.
LEAST_DRAWS = 2000
# A component this much less probable than an agent's best one is left out for some rounds.
FAR_BEHIND = 6.0
ROUNDS_BETWEEN_ALL = 8
# Rounds of stochastic EM before exact rounds; more do not lead higher.
N_STOCHASTIC = 3
# Rounds over which the likelihood must rise, and rounds of averaging after it stopped rising.
WINDOW = 4
N_AVERAGED = 6


class MallowsEM:
    """One run of EM from given components; ``key`` names its random numbers.

    Where weights depend on what is known of agents, ``log_weights`` (rows, K) has them, and EM leaves them as
    they are; the weights of components are then shares alone.
    """

    bold = True  # whether :meth:`m_step` can be bold

    def __init__(
        self, profile: Profile, settings: MallowsParameters, key: Array, log_weights: Array | None = None
    ) -> None:
        self._begin(profile, settings, key, log_weights)
        n_sampled = len(profile.sampled)
        k = settings.n_components
        self.parts: list[ExactRows] = []
        if profile.words and log_weights is None:
            self.parts.append(WordRounds(profile.words, k))
        elif len(profile.partitioned):
            self.parts.append(LevelRounds(profile, k, log_weights))
        self.exact = n_sampled == 0 or are_few(profile, k)  # no Monte Carlo is needed
        if n_sampled and self.exact:
            self.parts.append(SumRounds(profile, k, log_weights))
        n_draws = max(LEAST_DRAWS, int(profile.counts[profile.sampled].sum()))
        self.n_sets = max(N_SETS, min(16, math.ceil(n_draws / max(n_sampled, 1))))
        self.n_agents = profile.n_agents
        self._active = np.ones((n_sampled, settings.n_components), dtype=np.bool_)

    def _begin(
        self, profile: Profile, settings: MallowsParameters, key: Array, log_weights: Array | None = None
    ) -> None:
        self.log_weights = log_weights
        self.profile, self.settings, self.key = profile, settings, key
        self.most = -math.log(settings.min_dispersion)  # of decays
        self._elsewhere: ShardedRounds | None = None

    @classmethod
    def over(cls, rows: ShardedRounds, n_agents: int, part: MallowsEM) -> MallowsEM:
        """Return EM over rows that are elsewhere, with all else as for a ``part`` of them."""
        whole = cls.__new__(cls)
        whole._begin(part.profile, part.settings, part.key)
        whole.parts, whole.exact, whole.n_agents = [rows], rows.exact, n_agents
        whole._elsewhere = rows
        return whole

    def climb(self, components: MallowsComponents, follow: Follow, n_stochastic: int = N_STOCHASTIC) -> Run:
        """Iterate until the likelihood stops rising.

        Where everything is exact, the first rounds draw every agent's component instead of sharing the agent
        out (stochastic EM): centers are discrete, and without that noise they lock in early. Where rankings
        are drawn the noise is there already.
        """
        if self.exact:
            rng = np.random.default_rng(np.random.SeedSequence(self.key.tolist()))
            return ExactClimb(self, follow).run(
                components, rng, n_stochastic if components.n_components > 1 else 0
            )
        history: list[tuple[float, float]] = []
        for sweep in range(self.settings.max_iter):
            found, statistics = self.e_step(components, sweep)
            history.append((float(found), found.standard_error))
            follow.report(sweep + 1, float(found))
            converged = self._stopped_rising(history)
            if converged or follow.stopped() or sweep + 1 == self.settings.max_iter:
                break
            components = self.m_step(components, statistics)
        return Run(components, found, np.array(history), converged)

    def log_joint(self, components: MallowsComponents) -> tuple[Array, Array]:
        """Return ln P(row, component) of all exact rows, (rows, K), and how many agents say it."""
        joints = [part.log_joint(components).T for part in self.parts]
        return np.concatenate(joints), np.concatenate([part.counts for part in self.parts])

    def weigh(self, counts: Array) -> None:
        """Let exact rows, as in :meth:`log_joint`, stand for so many agents each, more than 0."""
        ends = np.cumsum([len(part.counts) for part in self.parts])
        for part, here in zip(self.parts, np.split(counts, ends[:-1]), strict=True):
            part.counts = here

    def labels(self, components: MallowsComponents) -> Array:
        """Return the most probable component of all exact rows; the components are those of the last step."""
        of = range(components.n_components)
        return np.concatenate([np.argmax([part.shares(k) for k in of], axis=0) for part in self.parts])

    def exact_step(
        self, components: MallowsComponents, rng: np.random.Generator | None = None, look: bool = True
    ) -> tuple[float, Statistics]:
        """Return the log-likelihood and the expected statistics, but for rows that are sampled.

        With a generator the components of rows are drawn, not shared out. Without ``look`` there are no
        ``wins``.
        """
        total, statistics = 0.0, None
        for part in self.parts:
            value, found = part.e_step(components, rng, look)
            total += value
            statistics = found if statistics is None else Statistics(*map(np.add, statistics, found))
        if statistics is None:
            statistics = Statistics.zeros(components.n_components, components.n_items)
        return total, statistics

    def exchanges(
        self, components: MallowsComponents, statistics: Statistics, least: float
    ) -> list[Exchange]:
        """Return the best exchange of each center, judged by the likelihood; see :func:`find_exchanges`."""
        return find_exchanges(self.parts, components, statistics, least)

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
        if len(history) < 2 * WINDOW:
            return False
        values = np.array(history[-2 * WINDOW :])
        rise = values[WINDOW:, 0].mean() - values[:WINDOW, 0].mean()
        error = float(np.sqrt(np.sum(values[:, 1] ** 2))) / WINDOW
        return bool(rise <= max(self.settings.tol * self.n_agents * WINDOW, error))

    # E-step.

    def e_step(self, components: MallowsComponents, sweep: int) -> tuple[Estimate, Statistics]:
        """Return the log-likelihood of the present components, and the expected statistics under them."""
        if self._elsewhere is not None:
            draws = Draws(self.key, sweep, N_SETS, self.settings.n_particles)
            return self._elsewhere.drawn_step(components, draws)
        total, statistics = self.exact_step(components)
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
            own = self.log_weights
            rows = profile.sampled[first:last]
            joint += (components.log_weights if own is None else own[rows])[..., None]
            values, errors = log_mean_exp(np.logaddexp.reduce(joint, axis=1))
            here = counts[first:last]
            total += float(here @ values)
            variance += float(here.astype(np.float64) ** 2 @ errors**2)
            by_component, _ = log_mean_exp(joint)
            shares = responsibilities(by_component, values)
            statistics.members[:] += here @ shares
            self._active[first:last] &= by_component >= by_component.max(axis=1)[:, None] - FAR_BEHIND
            chosen = systematic(joint, uniforms[first:last], local, cluster, n_sets)
            weights = here[agent[chosen]]
            drawn_weight += np.bincount(clusters[chosen], weights=weights, minlength=k)
            add_tournaments(weights, clusters[chosen], places[chosen], wins)
            first = last
        statistics.rankings[:] += drawn_weight / n_sets
        for at, center in enumerate(components.centers):  # from steps of the center to items
            upper = np.triu(wins[at], 1)
            both = upper + np.tril(drawn_weight[at] - upper.T, -1)
            statistics.wins[at][np.ix_(center, center)] += both / n_sets
        return Estimate(total, math.sqrt(variance))

    # M-step.

    def m_step(
        self, components: MallowsComponents, statistics: Statistics, look: bool = True, bold: bool = False
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
        bonuses = 0.5 * components.decays * statistics.spreads if bold else NO_BONUSES
        improve(statistics, look, self.most, centers, decays, bonuses)
        weights = statistics.members / statistics.members.sum()
        return components.with_values(weights, centers, decays)


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
