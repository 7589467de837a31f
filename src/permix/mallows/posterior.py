"""P(ranking, component | what an agent said) under a mixture of Mallows models, for many agents at once.

Three ways, each agent by the first that can be had. *Partition*: the statements put all items into levels;
everything is in closed form. *Down-sets*: exact sums over the agreeing rankings, where these have few
down-sets. *Draws*: sequential Monte Carlo with AMP for the proposal, brought to the posterior by Gibbs moves
of single items.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import (
    Profile,
    log_normalizers,
    models_of,
    particle_draws,
)
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import DataError, PermixWarning
from permix.estimators.agent_answers import Questions
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


class _Tables:
    """What compiled code needs to know about the components; what takes time is made on first use."""

    def __init__(self, components: MallowsComponents) -> None:
        self.components = components
        self.centers, self.decays = components.centers, components.decays
        self.ranks = np.argsort(components.centers, axis=1)
        self.models = models_of(components)

    @cached_property
    def local(self) -> Any:
        from permix.distributions.conditioning.local_moves_jit import local_models

        return local_models(self.models)

    @cached_property
    def discordance(self) -> Array:
        from permix.kernels.mallows import discordance_by_gap

        return np.array([discordance_by_gap(decay, self.components.n_items) for decay in self.decays])

    @cached_property
    def before(self) -> Array:
        from permix.mallows.downsets_jit import items_before

        return np.asarray(items_before(self.centers))

    @cached_property
    def log_totals(self) -> Array:
        from permix.kernels.mallows import log_normalizer

        return np.array([log_normalizer(decay, self.components.n_items) for decay in self.decays])


@dataclass(frozen=True, eq=False)
class MixturePosterior:
    """Posterior of every agent."""

    components: MallowsComponents
    profile: Profile  # the agents; comparisons are stated as levels where they amount to that
    tables: _Tables
    ways: Array  # (n,): PARTITION, DOWN_SETS or DRAWS
    limit: int  # down-sets up to which sums are exact
    log_joint: Array  # (n, K): ln π_k + ln P(v | component k), the terms of equation 26
    errors: Array  # (n, K): its standard errors, 0 where exact

    @classmethod
    def of(
        cls, components: MallowsComponents, preferences: Preferences, n_samples: int, rng: np.random.Generator
    ) -> MixturePosterior:
        """Find a way for every agent and how probable the components are.

        ``n_samples`` is the number of particles for each agent and component where there is no exact way.
        """
        from permix.mallows.downsets_jit import normalizer_rows

        profile, tables = Profile.of(preferences), _Tables(components)
        n, n_components = len(preferences), components.n_components
        ways = np.full(n, PARTITION)
        ways[profile.sampled] = DRAWS
        limit = max(DOWN_SETS_EACH, DOWN_SETS_IN_ALL // n)
        values, errors = np.zeros((n, n_components)), np.zeros((n, n_components))

        rows = np.flatnonzero(ways == DRAWS)
        if len(rows):
            found, solved = np.empty((len(rows), n_components)), np.zeros(len(rows), dtype=np.bool_)
            work = (profile.arrays, rows, tables.before, tables.decays, tables.log_totals, limit)
            cost = 100 * n_components * components.n_items
            over_rows(partial(call, normalizer_rows, (*work, found, solved)), len(rows), cost)
            ways[rows[solved]] = DOWN_SETS
            values[rows[solved]] = found[solved]

        rows = np.flatnonzero(ways != DOWN_SETS)
        n_sets = min(N_SETS, max(2, n_samples // 2))  # their spread gives the error
        rest = profile if len(rows) == n else Profile.of(profile.preferences[rows])
        values[rows], errors[rows] = log_normalizers(
            components, rest, max(1, n_samples // n_sets), stream_keys(rng, 1)[0], n_sets=n_sets
        )
        return cls(components, profile, tables, ways, limit, values + components.log_weights, errors)

    @property
    def n_agents(self) -> int:
        """Number of rows."""
        return len(self.ways)

    @cached_property
    def probabilities(self) -> Array:
        """P(component | v)."""
        largest = self.log_joint.max(axis=1, keepdims=True)
        self.need_possible()
        rough = np.flatnonzero((self.errors * (self.log_joint > largest - 3.0)).max(axis=1) > 0.9)
        if len(rough):
            warnings.warn(
                f"the probabilities of components are rough for {len(rough)} of {self.n_agents} rows, "
                f"{self.profile.preferences.row_name(int(rough[0]))} among them: a few particles "
                "carry all the weight; pass a larger n_samples",
                PermixWarning,
                stacklevel=4,
            )
        shares = np.exp(self.log_joint - largest)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def need_possible(self) -> None:
        """Refuse rows that no component can have said."""
        impossible = np.flatnonzero(self.log_joint.max(axis=1) == -np.inf)
        if len(impossible):
            raise DataError(
                f"{self.profile.preferences.row_name(int(impossible[0]))} contradicts every component: no "
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
        self._before_in_closed_form(np.flatnonzero(asked & (self.ways == PARTITION)), questions, means)
        self._before_by_sums(np.flatnonzero(asked & (self.ways == DOWN_SETS)), questions, means)
        drawn = np.flatnonzero(asked & (self.ways == DRAWS))
        no_ranges = np.empty((0, 0, 0), dtype=np.int32)
        found = (means, variances, no_ranges if ranges is None else ranges)
        self._before_by_chains(drawn, questions, n_samples, rng, found)
        if ranges is not None:
            self._exact_ranges(np.flatnonzero(asked & (self.ways != DRAWS)), n_samples, rng, ranges)
        return means, np.sqrt(variances)

    def _before_in_closed_form(self, rows: Array, questions: Questions, means: Array) -> None:
        from permix.mallows.posterior_jit import partition_pair_rows

        tables, asks = self.tables, questions.of(rows)
        work = (self.profile.arrays, rows, tables.centers, tables.discordance, self.probabilities[rows])
        cost = self.components.n_components * (self.components.n_items + questions.n_answers // self.n_agents)
        over_rows(partial(call, partition_pair_rows, (*work, asks, means)), len(rows), cost)

    def _before_by_sums(self, rows: Array, questions: Questions, means: Array) -> None:
        from permix.mallows.downsets_jit import exact_pair_rows

        if not len(rows):
            return
        tables, asks = self.tables, questions.of(rows)
        work = (self.profile.arrays, rows, tables.before, tables.decays, self.probabilities[rows], self.limit)
        over_rows(partial(call, exact_pair_rows, (*work, asks, means)), len(rows), self._cost_of_sums)

    @property
    def _cost_of_sums(self) -> int:
        return 100 * self.components.n_components * self.components.n_items

    def _before_by_chains(
        self,
        rows: Array,
        questions: Questions,
        n_samples: int,
        rng: np.random.Generator,
        found: tuple[Array, Array, Array],
    ) -> None:
        """Average over chains: of each component as many as its probability asks for, two at least."""
        from permix.mallows.chains_jit import pair_rows

        if not len(rows):
            return
        tables, n_items = self.tables, self.components.n_items
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
            models = (tables.centers, tables.ranks, tables.local)
            who = (first_row, key, self.profile.arrays, here, chains, models, N_BURN_IN, n_kept)
            work = (*who, questions.of(here), questions.everything, *found)
            over_rows(partial(call, pair_rows, work), len(here), N_CHAINS * n_kept * n_items)

    def _exact_ranges(self, rows: Array, n_samples: int, rng: np.random.Generator, ranges: Array) -> None:
        """Fill ranges of ranks from independent draws."""
        from permix.mallows.chains_jit import range_rows

        n_items = self.components.n_items
        step = max(1, CHUNK // (n_samples * n_items))
        for first in range(0, len(rows), step):
            here = rows[first : first + step]
            orders = self.draw_exactly(here, n_samples, rng)[0]
            some = np.empty((len(here), 2, n_items), dtype=np.int32)
            over_rows(partial(call, range_rows, (orders, some)), len(here), n_items * (n_samples + n_items))
            ranges[here] = some

    # Draws.

    def draw_exactly(self, rows: Array, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw rankings and components from P(r, z | v), independently, where there is an exact way."""
        from permix.mallows.downsets_jit import exact_draw_rows

        tables, n_items = self.tables, self.components.n_items
        labels = self.draw_labels(rows, size, rng)
        orders = np.empty((len(rows), size, n_items), dtype=np.int32)
        simple = self.ways[rows] == PARTITION
        if simple.any():  # AMP is exact, so that one particle is enough
            drawn = self._moved(np.repeat(rows[simple], size), labels[simple].ravel(), 1, 0, rng)
            orders[simple] = drawn.reshape(int(simple.sum()), size, n_items)
        if not simple.all():
            summed = rows[~simple]
            drawn = np.empty((len(summed), size, n_items), dtype=np.int32)
            sums = (stream_keys(rng, 1)[0], self.profile.arrays, summed, tables.before, tables.decays)
            work = (*sums, self.limit, labels[~simple], drawn)
            over_rows(partial(call, exact_draw_rows, work), len(summed), self._cost_of_sums)
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
        from permix.mallows.chains_jit import move_rows

        tables, n_items = self.tables, self.components.n_items
        keys = stream_keys(rng, 2)
        orders = np.empty((len(agents), n_items), dtype=np.int32)
        step = max(1, CHUNK // n_items)
        for first in range(0, len(agents), step):
            part = slice(first, first + step)
            places = self._start(agents[part], clusters[part], n_particles, keys[0], first)
            jobs = (first, keys[1], self.profile.arrays, agents[part], clusters[part], places)
            work = (*jobs, (tables.centers, tables.ranks, tables.local), n_sweeps, orders[part])
            over_rows(partial(call, move_rows, work), len(places), n_items * (n_sweeps + 1))
        return orders

    def _start(self, agents: Array, clusters: Array, n_particles: int, key: Array, first_row: int) -> Array:
        """Insertion places of one ranking per job, near the posterior of the component."""
        return particle_draws(
            self.components, self.profile, agents, clusters, n_particles, key, 0, first_row
        )[1]

    def draw_labels(self, rows: Array, size: int, rng: np.random.Generator) -> Array:
        """Draw components from P(z | v), ``size`` for each row."""
        uniforms = rng.random((len(rows), size))
        ends = np.cumsum(self.probabilities[rows], axis=1)
        ends /= ends[:, -1:]  # exactly one from the last component that has a share
        labels = np.zeros((len(rows), size), dtype=np.int64)
        for k in range(ends.shape[1] - 1):
            labels += uniforms >= ends[:, k : k + 1]
        return labels


def stream_keys(rng: np.random.Generator, size: int) -> Array:
    """Draw keys of counter-based streams, one for each use."""
    return rng.integers(0, 2**64, size=(size, 2), dtype=np.uint64)


def call(kernel: Any, work: tuple[Any, ...], first: int, last: int) -> None:
    """Run rows of the work, as ``over_rows`` wants it."""
    kernel(first, last, *work)


def _parts(starts: Array, most: int) -> Iterator[slice]:
    """Cut rows into stretches with at most ``most`` chains (or one row); ``starts`` cumulates chains."""
    n, first = len(starts) - 1, 0
    while first < n:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + most, side="right")) - 1)
        yield slice(first, last)
        first = last
