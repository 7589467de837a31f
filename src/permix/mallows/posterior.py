"""P(ranking, component | what an agent said) under a mixture of Mallows models, for many agents at once.

Three ways, each agent by the first that can be had. *Partition*: the statements put all items into levels;
everything is in closed form. *Down-sets*: exact sums over the agreeing rankings, where these have few
down-sets. *Draws*: sequential Monte Carlo with AMP for the proposal, brought to the posterior by Gibbs moves
of single items.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import Profile, log_normalizers, particle_draws
from permix.distributions.conditioning.amp_insertions_jit import geometric_models
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.local_moves_jit import local_models
from permix.errors import Argument, DataError, PermixWarning
from permix.estimators.agent_answers import Questions
from permix.kernels.mallows import discordance_by_gap, log_normalizer
from permix.mallows.chains_jit import move_rows, pair_rows, range_rows
from permix.mallows.downsets_jit import exact_draw_rows, exact_pair_rows, items_before
from permix.mallows.posterior_jit import partition_pair_rows
from permix.mallows.rounds.sums import sums_of_rows
from permix.runtime.threads import over_rows

PARTITION, DOWN_SETS, DRAWS = 0, 1, 2
# Down-sets per agent up to which sums are exact: any preferences over 12 items, some milliseconds. With few
# agents more, as long as all together take some seconds.
DOWN_SETS_EACH = 2**12
DOWN_SETS_IN_ALL = 2**18
# Particles of one set; a set runs through vector instructions.
N_PARTICLES = 32
# Independent sets of particles behind ln P(v).
N_SETS = 8
# Chains per agent that marginal probabilities are averaged over, and first sweeps that do not count.
N_CHAINS = 8
N_BURN_IN = 10
# Sweeps of moves that bring a ranking drawn to the posterior.
N_SWEEPS = 10
# Entries of starting rankings at a time.
CHUNK = 2**26


class MixturePosterior:
    """Posterior of every agent, each by its way, and how probable the components are.

    ``ways`` (n,) are PARTITION, DOWN_SETS or DRAWS; ``log_joint`` (n, K) is ln π_k + ln P(v | component k),
    the terms of equation 26, ``log_probabilities`` the second of these alone, and
    ``errors`` its standard errors, 0 where exact. ``n_samples`` is the number of particles for each agent and
    component where there is no exact way.
    """

    def __init__(
        self, components: MallowsComponents, agents: Preferences, n_samples: int, rng: np.random.Generator
    ) -> None:
        self.components = components
        self.profile = profile = Profile.of(agents)  # comparisons as levels where they amount to that
        self.models = geometric_models(components.decays, components.n_items)
        self.n_agents, n_components = len(agents), components.n_components
        self._cost_of_sums = 100 * n_components * components.n_items
        self.ways = ways = np.full(self.n_agents, PARTITION)
        ways[profile.sampled] = DRAWS
        self.limit = max(DOWN_SETS_EACH, DOWN_SETS_IN_ALL // len(ways))  # of exact sums
        values, errors = np.zeros((2, len(ways), n_components))

        rows = np.flatnonzero(ways == DRAWS)
        if len(rows):
            asked = (profile.arrays, rows, components.centers, components.decays, self.limit)
            n_down_sets, found, _ = sums_of_rows(*asked, with_pairs=False)
            solved = n_down_sets > 0
            ways[rows[solved]] = DOWN_SETS
            values[rows[solved]] = found[solved]

        rows = np.flatnonzero(ways != DOWN_SETS)
        n_sets = min(N_SETS, max(2, n_samples // 2))  # their spread gives the error
        rest = profile if len(rows) == len(ways) else Profile.of(profile.preferences[rows])
        values[rows], errors[rows] = log_normalizers(
            components, rest, max(1, n_samples // n_sets), stream_keys(rng, 1)[0], n_sets=n_sets
        )
        self.log_probabilities, self.errors = values, errors
        self.log_joint = values + components.log_weights_of(agents)

    # What compiled code needs to know about the components, made on first use.

    @cached_property
    def _moving(self) -> tuple[Array, Array, Any]:
        """Centers, ranks and models for moves of single items."""
        centers = self.components.centers
        return centers, np.argsort(centers, axis=1), local_models(self.models)

    @cached_property
    def _items_before(self) -> Array:
        return np.asarray(items_before(self.components.centers))

    @cached_property
    def log_totals(self) -> Array:
        """Logarithm of each component's sum over all rankings."""
        return np.array([log_normalizer(decay, self.components.n_items) for decay in self.components.decays])

    @cached_property
    def probabilities(self) -> Array:
        """P(component | v)."""
        largest = self.log_joint.max(axis=1, keepdims=True)
        self.need_possible()
        rough = np.flatnonzero((self.errors * (self.log_joint > largest - 3.0)).max(axis=1) > 0.9)
        if len(rough):
            said = PermixWarning(
                f"the probabilities of groups are rough for {len(rough)} of {self.n_agents} rows, "
                f"{self.profile.preferences.row_name(int(rough[0]))} among them: a few particles "
                "carry all the weight; use a larger ",
                Argument("n_samples"),
            )
            warnings.warn(said, stacklevel=4)
        shares = np.exp(self.log_joint - largest)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def need_possible(self) -> None:
        """Refuse rows that no component can have said."""
        impossible = np.flatnonzero(self.log_joint.max(axis=1) == -np.inf)
        if len(impossible):
            raise DataError(
                f"{self.profile.preferences.row_name(int(impossible[0]))} contradicts every group: no "
                f"ranking of positive probability agrees with what it says ({len(impossible)} such row(s)). "
                "Leave it out, or use a mixture whose dispersions are above 0"
            )

    # Pairs.

    def before(
        self, questions: Questions, n_samples: int, rng: np.random.Generator, ranges: Array | None = None
    ) -> tuple[Array, Array]:
        """P(a before b | v) and its standard error, for all questions.

        ``ranges`` (agents, 2, items) is filled with 5 % and 95 % ranks of those who are asked something.
        """
        means, variances = np.zeros(questions.n_answers), np.zeros(questions.n_answers)
        asked = questions.span[:, 1] > questions.span[:, 0]
        simple, summed, drawn = (
            np.flatnonzero(asked & (self.ways == way)) for way in (PARTITION, DOWN_SETS, DRAWS)
        )
        self._before_in_closed_form(simple, questions, means)
        if len(summed):
            work = (self.profile.arrays, summed, self._items_before, self.components.decays)
            asks = (self.probabilities[summed], self.limit, questions.of(summed), means)
            over_rows(exact_pair_rows, len(summed), self._cost_of_sums, *work, *asks)
        if len(drawn):
            no_ranges = np.empty((0, 0, 0), dtype=np.int32)
            found = (means, variances, no_ranges if ranges is None else ranges)
            self._before_by_chains(drawn, questions, n_samples, rng, found)
        if ranges is not None:
            self._exact_ranges(np.flatnonzero(asked & (self.ways != DRAWS)), n_samples, rng, ranges)
        return means, np.sqrt(variances)

    def _before_in_closed_form(self, rows: Array, questions: Questions, means: Array) -> None:
        components = self.components
        discordance = np.array([discordance_by_gap(decay, components.n_items) for decay in components.decays])
        work = (self.profile.arrays, rows, components.centers, discordance, self.probabilities[rows])
        cost = components.n_components * (components.n_items + questions.n_answers // self.n_agents)
        over_rows(partition_pair_rows, len(rows), cost, *work, questions.of(rows), means)

    def _before_by_chains(
        self,
        rows: Array,
        questions: Questions,
        n_samples: int,
        rng: np.random.Generator,
        found: tuple[Array, Array, Array],
    ) -> None:
        """Average over chains: of each component as many as its probability asks for, two at least."""
        n_items = self.components.n_items
        start_key, key = stream_keys(rng, 2)
        n_kept = -(-n_samples // N_CHAINS)
        shares = self.probabilities[rows]
        # A component with less than one draw's worth of probability is left out; the largest never is.
        shares = np.where(shares < min(1.0 / n_samples, 1.0 / shares.shape[1]), 0.0, shares)
        shares /= shares.sum(axis=1, keepdims=True)
        n_chains = np.where(shares > 0.0, np.maximum(2, np.rint(N_CHAINS * shares)), 0).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(n_chains.sum(axis=1))])
        for part in _parts(starts, CHUNK // n_items):
            here, first_row = rows[part], int(starts[part.start])
            agents, clusters = np.nonzero(n_chains[part])
            repeats = n_chains[part][agents, clusters]
            labels = np.repeat(clusters, repeats)
            each = np.repeat(shares[part][agents, clusters] / repeats, repeats)
            doubts = np.repeat(self.errors[here[agents], clusters], repeats)
            places = self._start(np.repeat(here[agents], repeats), labels, N_PARTICLES, start_key, first_row)
            chain_start = starts[part.start : part.stop + 1] - first_row
            chains = (chain_start, labels, each, doubts, places)
            who = (first_row, key, self.profile.arrays, here, chains, self._moving, N_BURN_IN, n_kept)
            work = (*who, questions.of(here), questions.everything, *found)
            over_rows(pair_rows, len(here), N_CHAINS * n_kept * n_items, *work)

    def _exact_ranges(self, rows: Array, n_samples: int, rng: np.random.Generator, ranges: Array) -> None:
        """Fill ranges of ranks from independent draws."""
        n_items = self.components.n_items
        step = max(1, CHUNK // (n_samples * n_items))
        for first in range(0, len(rows), step):
            here = rows[first : first + step]
            orders = self.draw_exactly(here, n_samples, rng)[0]
            some = np.empty((len(here), 2, n_items), dtype=np.int32)
            over_rows(range_rows, len(here), n_items * (n_samples + n_items), orders, some)
            ranges[here] = some

    # Draws.

    def draw_exactly(self, rows: Array, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw rankings and components from P(r, z | v), independently, where there is an exact way."""
        n_items = self.components.n_items
        labels = self.draw_labels(rows, size, rng)
        orders = np.empty((len(rows), size, n_items), dtype=np.int32)
        simple = self.ways[rows] == PARTITION
        if simple.any():  # AMP is exact, so that one particle is enough
            drawn = self._moved(np.repeat(rows[simple], size), labels[simple].ravel(), 1, 0, rng)
            orders[simple] = drawn.reshape(int(simple.sum()), size, n_items)
        if not simple.all():
            summed = rows[~simple]
            drawn = np.empty((len(summed), size, n_items), dtype=np.int32)
            work = (self.profile.arrays, summed, self._items_before, self.components.decays, self.limit)
            sums = (stream_keys(rng, 1)[0], *work, labels[~simple], drawn)
            over_rows(exact_draw_rows, len(summed), self._cost_of_sums, *sums)
            orders[~simple] = drawn
        return orders, labels

    def draw_by_moves(self, rows: Array, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw components from P(z | v), rankings by sequential Monte Carlo and some sweeps of moves."""
        labels = self.draw_labels(rows, size, rng)
        orders = self._moved(np.repeat(rows, size), labels.ravel(), N_PARTICLES, N_SWEEPS, rng)
        return orders.reshape(len(rows), size, self.components.n_items), labels

    def _moved(
        self, agents: Array, clusters: Array, n_particles: int, n_sweeps: int, rng: np.random.Generator
    ) -> Array:
        """One ranking per job: a particle drawn by its weight, then moved."""
        n_items = self.components.n_items
        keys = stream_keys(rng, 2)
        orders = np.empty((len(agents), n_items), dtype=np.int32)
        step = max(1, CHUNK // n_items)
        for first in range(0, len(agents), step):
            part = slice(first, first + step)
            places = self._start(agents[part], clusters[part], n_particles, keys[0], first)
            jobs = (first, keys[1], self.profile.arrays, agents[part], clusters[part], places)
            work = (*jobs, self._moving, n_sweeps, orders[part])
            over_rows(move_rows, len(places), n_items * (n_sweeps + 1), *work)
        return orders

    def _start(self, agents: Array, clusters: Array, n_particles: int, key: Array, first_row: int) -> Array:
        """Insertion places of one ranking per job, near the posterior of the component."""
        jobs = (agents, clusters, n_particles)
        return particle_draws(self.components, self.profile, *jobs, key, 0, first_row)[1]

    def draw_labels(self, rows: Array, size: int, rng: np.random.Generator) -> Array:
        """Draw components from P(z | v), ``size`` for each row."""
        uniforms = rng.random((len(rows), size))
        ends = np.cumsum(self.probabilities[rows], axis=1)
        ends /= ends[:, -1:]  # exactly one from the last component that has a share
        labels = np.zeros((len(rows), size), dtype=np.int64)
        for k in range(ends.shape[1] - 1):
            labels += uniforms >= ends[:, k : k + 1]
        return labels


def posterior_of(
    components: MallowsComponents, agents: Preferences, n_samples: int, rng: np.random.Generator
) -> MixturePosterior:
    """Return the posterior of every agent under the distance of the components."""
    if components.distance == "kendall":
        return MixturePosterior(components, agents, n_samples, rng)
    from permix.mallows.distances.posterior import ListedPosterior

    return ListedPosterior(components, agents)


def stream_keys(rng: np.random.Generator, size: int) -> Array:
    """Draw keys of counter-based streams, one for each use."""
    return rng.integers(0, 2**64, size=(size, 2), dtype=np.uint64)


def _parts(starts: Array, most: int) -> Iterator[slice]:
    """Cut rows into stretches with at most ``most`` chains (or one row); ``starts`` cumulates chains."""
    n, first = len(starts) - 1, 0
    while first < n:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + most, side="right")) - 1)
        yield slice(first, last)
        first = last
