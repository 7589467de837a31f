"""How probable what each agent said is under each component, and draws of the rankings behind it.

Agents whose preferences partition all items (full and top-t rankings, levels over all items) are answered in
closed form. The others get sequential Monte Carlo with AMP as proposal (``amp_particles_jit``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from permix.data.csr import indptr_of
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.amp_insertions_jit import geometric_models
from permix.distributions.conditioning.amp_particles_jit import particle_rows
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.draws import Jobs, log_mean_exp
from permix.distributions.conditioning.pair_words import PairWords, pair_words
from permix.distributions.conditioning.partitioned_jit import weak_orders
from permix.distributions.conditioning.tournaments_jit import disagreements
from permix.kernels.pairwise_counts import PreferenceArrays
from permix.runtime.threads import over_rows

# Rows of work at a time, so that memory does not follow the number of agents.
CHUNK = 1 << 16
# Levels of items looked at together when comparisons may amount to levels.
LEVELS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Profile:
    """Preferences of many agents, sorted by what can be done with them."""

    preferences: Preferences  # comparisons that amount to levels over all items have become levels
    partitioned: Array  # rows with closed forms
    sampled: Array  # rows that need Monte Carlo; those in neither list said nothing
    # The blocks (two items or more) of partitioned rows: place in ``partitioned``, and size.
    block_rows: Array
    block_sizes: Array

    @classmethod
    def of(cls, preferences: Preferences) -> Profile:
        """Sort the agents."""
        preferences = with_weak_orders(preferences)
        sizes = np.diff(preferences.level_indptr)
        compared = np.diff(preferences.pair_indptr) > 0
        levels = np.zeros(len(sizes), dtype=np.int64)
        levels[sizes > 0] = 1 + preferences.levels[preferences.level_indptr[1:][sizes > 0] - 1]
        rest = preferences.rest_below & (sizes > 0) & (sizes < preferences.n_items)
        levels += rest  # one more
        said = levels > 1  # a single level says nothing
        partitioned = np.flatnonzero(said & preferences.rest_below & ~compared)
        sampled = np.flatnonzero(compared | (said & ~preferences.rest_below))
        starts = np.cumsum(levels) - levels
        held = np.bincount(np.repeat(starts, sizes) + preferences.levels, minlength=int(levels.sum()))
        held[(starts + levels)[rest] - 1] = preferences.n_items - sizes[rest]
        place = np.full(len(sizes), -1)
        place[partitioned] = np.arange(len(partitioned))
        row = np.repeat(place, levels)
        blocks = (held > 1) & (row >= 0)
        return cls(preferences, partitioned, sampled, row[blocks], held[blocks])

    @cached_property
    def arrays(self) -> PreferenceArrays:
        """Statements for compiled code."""
        return self.preferences.arrays()

    @cached_property
    def _words(self) -> tuple[PairWords, Array] | None:
        return pair_words(self)

    @property
    def words(self) -> PairWords | None:
        """Partitioned rows as words of their pairs, where items are few."""
        return self._words[0] if self._words else None

    @cached_property
    def stated(self) -> Array:
        """Rows that said something."""
        return np.union1d(self.partitioned, self.sampled)

    @cached_property
    def n_agents(self) -> int:
        """How many agents said something."""
        return int(self.counts[self.stated].sum())

    @property
    def counts(self) -> Array:
        """How many agents each row stands for."""
        return self.preferences.counts


def partition_distances(centers: Array, profile: Profile) -> Array:
    """How many pairs stated by rows of ``partitioned`` each center reverses, (rows, K)."""
    rows = profile.partitioned
    if profile._words is not None:
        words, which = profile._words
        return words.distances(centers)[:, which].T
    out = np.empty((len(rows), len(centers)), dtype=np.int64)
    ranks = np.argsort(centers, axis=1)
    over_rows(disagreements, len(rows), 4 * len(centers), profile.arrays, rows, ranks, out)
    return out


def log_normalizer_table(decays: Array, n: int) -> Array:
    """Return ln Z over 0, 1, …, n items, a row for every λ: sums over sizes of ln(1 + φ + … + φ^(size-1))."""
    table = np.zeros((len(decays), n + 1))
    powers = np.exp(-decays[:, None] * np.arange(1, n))
    table[:, 2:] = np.cumsum(np.log1p(np.cumsum(powers, axis=1)), axis=1)
    return table


def partition_log_normalizers(
    components: MallowsComponents, profile: Profile, distances: Array | None = None
) -> tuple[Array, Array]:
    """Closed forms: ln P(v | component) and the disagreements with its center, rows of ``partitioned``."""
    rows, n = profile.partitioned, components.n_items
    if distances is None:
        distances = partition_distances(components.centers, profile)
    with np.errstate(invalid="ignore"):
        out = np.where(distances > 0, -components.decays * distances, 0.0)  # 0 · inf is no number
    for at, table in enumerate(log_normalizer_table(components.decays, n)):
        out[:, at] += np.bincount(profile.block_rows, table[profile.block_sizes], len(rows)) - table[n]
    return out, distances


def particle_draws(
    components: MallowsComponents,
    profile: Profile,
    agents: Array,
    clusters: Array,
    n_particles: int,
    key: Array,
    sweep: int,
    numbers: int | Array = 0,
    with_draws: bool = True,
) -> tuple[Array, Array]:
    """Sequential Monte Carlo for pairs of an agent and a component: ln P(v), and a ranking of every pair.

    Rankings are insertion places around the component's center, uint8 or uint16 (J, m), or (0, 0) where they
    are not wanted. Key and sweep name the random numbers, with the ``numbers`` of pairs: one for each, or
    that of the first in all work.
    """
    n, n_rows = components.n_items, len(agents)
    log_normalizers = np.empty(n_rows)
    places = np.empty((n_rows, n) if with_draws else (0, 0), dtype=np.uint8 if n <= 256 else np.uint16)
    models = geometric_models(components.decays, n)
    jobs = Jobs.of(profile.arrays, agents, clusters, components.centers, models)
    if not isinstance(numbers, np.ndarray):
        numbers = np.arange(numbers, numbers + n_rows)
    work = (numbers, key, sweep, jobs, n_particles, log_normalizers, places)
    over_rows(particle_rows, n_rows, n * n_particles, *work)
    return log_normalizers, places


def log_normalizers(
    components: MallowsComponents,
    preferences: Preferences | Profile,
    n_particles: int,
    key: Array,
    sweep: int = 0,
    n_sets: int = 4,
) -> tuple[Array, Array]:
    """Return ln P(v | component) of every row under every component, with standard errors, 0 where exact.

    Two or more independent sets of ``n_particles`` particles; their spread gives the error. One key serves
    many rounds, told apart by ``sweep``.
    """
    profile = preferences if isinstance(preferences, Profile) else Profile.of(preferences)
    k = components.n_components
    values = np.zeros((len(profile.preferences), k))
    errors = np.zeros_like(values)
    values[profile.partitioned] = partition_log_normalizers(components, profile)[0]
    step = max(1, CHUNK // (k * n_sets))
    for first in range(0, len(profile.sampled), step):
        rows = profile.sampled[first : first + step]
        agents = np.repeat(rows, k * n_sets)
        clusters = np.tile(np.repeat(np.arange(k), n_sets), len(rows))
        found, _ = particle_draws(
            components, profile, agents, clusters, n_particles, key, sweep, first * k * n_sets, False
        )
        values[rows], errors[rows] = log_mean_exp(found.reshape(len(rows), k, n_sets))
    return values, errors


def with_weak_orders(preferences: Preferences) -> Preferences:
    """Turn comparisons that put all items into levels into those levels."""
    n = preferences.n_items
    n_pairs = np.diff(preferences.pair_indptr)
    mentioned = np.where(preferences.rest_below, n, 2 * n_pairs + np.diff(preferences.level_indptr))
    candidates = np.flatnonzero((n_pairs > 0) & (mentioned >= n))
    if not len(candidates):
        return preferences
    arrays = preferences.arrays()
    # A piece at a time: memory follows what is found, not what might be.
    rows_found, levels_found = [], []
    for piece in np.array_split(candidates, math.ceil(len(candidates) * n / LEVELS_AT_ONCE)):
        levels = np.empty((len(piece), n), dtype=np.int32)
        found = np.zeros(len(piece), dtype=np.bool_)
        over_rows(weak_orders, len(piece), n, arrays, piece, levels, found)
        rows_found.append(piece[found])
        levels_found.append(levels[found])
    rows, levels = np.concatenate(rows_found), np.concatenate(levels_found)
    if not len(rows):
        return preferences
    sizes, pair_sizes = np.diff(preferences.level_indptr), n_pairs.copy()
    kept = np.ones(len(sizes), dtype=np.bool_)
    kept[rows] = False
    keep_level = np.repeat(kept, sizes)
    # Rows in order, those found with all their items sorted by level and then by index.
    items = np.argsort(levels, axis=1, kind="stable").astype(np.int32)
    owner = np.concatenate([np.repeat(np.arange(len(sizes)), sizes)[keep_level], np.repeat(rows, n)])
    order = np.argsort(owner, kind="stable")
    new_items = np.concatenate([preferences.level_items[keep_level], items.ravel()])[order]
    new_levels = np.concatenate(
        [preferences.levels[keep_level], np.take_along_axis(levels, items, axis=1).ravel()]
    )[order]
    sizes[rows], pair_sizes[rows] = n, 0
    rest_below = preferences.rest_below.copy()
    rest_below[rows] = True
    return preferences._replaced(
        level_indptr=indptr_of(sizes),
        level_items=new_items.astype(np.int32),
        levels=new_levels.astype(np.int32),
        rest_below=rest_below,
        pair_indptr=indptr_of(pair_sizes),
        pairs=preferences.pairs[np.repeat(kept, n_pairs)],
    )
