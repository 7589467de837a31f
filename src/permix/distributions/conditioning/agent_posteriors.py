"""How probable what each agent said is under each component, and draws of the rankings behind it.

Agents whose preferences partition all items (full and top-t rankings, levels over all items) are answered in
closed form. The others get sequential Monte Carlo with AMP as proposal (``kernels.amp_particles``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.components import MallowsComponents
from permix.runtime.threads import over_rows

if TYPE_CHECKING:
    from permix.distributions.conditioning.amp_insertions_jit import InsertionModels
    from permix.kernels.pairwise_counts import PreferenceArrays

# Rows of work at a time, so that memory does not follow the number of agents.
CHUNK = 1 << 16
# Levels of items looked at together when comparisons may amount to levels.
LEVELS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Profile:
    """Preferences of many agents, sorted by what can be done with them.

    Attributes
    ----------
    preferences : Preferences
        Comparisons that amount to levels over all items have become levels.
    partitioned : int64 ndarray
        Rows with closed forms.
    sampled : int64 ndarray
        Rows that need Monte Carlo. Rows in neither list said nothing.
    block_indptr, block_sizes : ndarray
        Sizes of the blocks (two items or more) of partitioned rows.
    """

    preferences: Preferences
    partitioned: Array
    sampled: Array
    block_indptr: Array
    block_sizes: Array

    @classmethod
    def of(cls, preferences: Preferences) -> Profile:
        """Sort the agents."""
        from permix.distributions.conditioning import partitioned_jit as kernels

        preferences = with_weak_orders(preferences)
        sizes = np.diff(preferences.level_indptr)
        compared = np.diff(preferences.pair_indptr) > 0
        levels = np.zeros(len(sizes), dtype=np.int64)
        levels[sizes > 0] = 1 + preferences.levels[preferences.level_indptr[1:][sizes > 0] - 1]
        levels += preferences.rest_below & (sizes > 0) & (sizes < preferences.n_items)  # the rest is one more
        said = levels > 1  # a single level says nothing
        partitioned = np.flatnonzero(said & preferences.rest_below & ~compared)
        sampled = np.flatnonzero(compared | (said & ~preferences.rest_below))
        indptr = np.zeros(len(partitioned) + 1, dtype=np.int64)
        arrays, n = preferences.arrays(), preferences.n_items
        kernels.block_sizes(arrays, partitioned, n, indptr, np.empty(0, np.int64))
        sizes = np.empty(int(indptr[-1]), dtype=np.int64)
        kernels.block_sizes(arrays, partitioned, n, indptr, sizes)
        return cls(preferences, partitioned, sampled, indptr, sizes)

    @cached_property
    def arrays(self) -> PreferenceArrays:
        """Statements for compiled code."""
        return self.preferences.arrays()

    @property
    def counts(self) -> Array:
        """How many agents each row stands for."""
        return self.preferences.counts


def models_of(components: MallowsComponents) -> InsertionModels:
    """Insertion models of the components."""
    from permix.distributions.conditioning.amp_insertions_jit import geometric_models

    return geometric_models(components.decays, components.n_items)


def rank_vectors(components: MallowsComponents) -> Array:
    """Rank of each item in each center."""
    from permix.distributions.conditioning.amp_jit import rank_vectors as kernel

    ranks: Array = kernel(components.centers)
    return ranks


def partition_log_normalizers(components: MallowsComponents, profile: Profile) -> tuple[Array, Array]:
    """Closed forms: ln P(v | component) and the disagreements with its center, rows of ``partitioned``."""
    from permix.distributions.conditioning.partitioned_jit import (
        log_normalizer_table,
        partition_log_probabilities,
    )
    from permix.distributions.conditioning.tournaments_jit import disagreements

    rows, k, n = profile.partitioned, components.n_components, components.n_items
    distances = np.empty((len(rows), k), dtype=np.int64)
    out = np.empty((len(rows), k))
    ranks = rank_vectors(components)
    table = log_normalizer_table(components.decays, n)

    def work(first: int, last: int) -> None:
        disagreements(first, last, profile.arrays, rows, ranks, distances)
        partition_log_probabilities(
            first, last, distances, profile.block_indptr, profile.block_sizes, components.decays, table, out
        )

    over_rows(work, len(rows), k * 4)
    return out, distances


def particle_draws(
    components: MallowsComponents,
    profile: Profile,
    agents: Array,
    clusters: Array,
    n_particles: int,
    key: Array,
    sweep: int,
    first_row: int = 0,
    with_draws: bool = True,
) -> tuple[Array, Array]:
    """Sequential Monte Carlo for pairs of an agent and a component.

    Parameters
    ----------
    agents, clusters : int array (J,)
    n_particles : int
    key, sweep
        Name the random numbers, with ``first_row``, the number of the first of these rows in all work.
    with_draws : bool
        Whether a ranking of every row is wanted.

    Returns
    -------
    log_normalizers : float array (J,)
    places : uint8 or uint16 array (J, m), or (0, 0)
        Insertion places around the component's center.
    """
    from permix.distributions.conditioning.amp_particles_jit import particle_rows

    n, n_rows = components.n_items, len(agents)
    log_normalizers = np.empty(n_rows)
    places = np.empty((n_rows, n) if with_draws else (0, 0), dtype=np.uint8 if n <= 256 else np.uint16)
    ranks, models = rank_vectors(components), models_of(components)
    jobs = (profile.arrays, np.asarray(agents, dtype=np.int64), np.asarray(clusters, dtype=np.int64))
    work = (first_row, key, sweep, *jobs, ranks, models, n_particles, log_normalizers, places)
    over_rows(lambda first, last: particle_rows(first, last, *work), n_rows, n * n_particles)
    return log_normalizers, places


def log_normalizers(
    components: MallowsComponents,
    preferences: Preferences | Profile,
    n_particles: int,
    key: Array,
    sweep: int = 0,
    n_sets: int = 4,
) -> tuple[Array, Array]:
    """Return ln P(v | component) of every row under every component, with standard errors.

    Parameters
    ----------
    components : MallowsComponents
    preferences : Preferences or Profile
        Over the components' items, without cycles.
    n_particles : int
        Particles in a set.
    key : uint64 array (2,)
        See :func:`permix.distributions.base.stream_key`.
    sweep : int
        Number of the round, so that one key serves many.
    n_sets : int
        Independent sets of particles; their spread gives the error, so two at least.

    Returns
    -------
    values, standard_errors : ndarray (rows, K)
        The error is 0 where the value is exact.
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


def log_mean_exp(logs: Array) -> tuple[Array, Array]:
    """Return ln of the mean of exp over the last axis, and its standard error by the delta method."""
    largest = logs.max(axis=-1)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    ratios = np.exp(logs - shift[..., None])
    mean = ratios.mean(axis=-1)
    n = logs.shape[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = shift + np.log(mean)
        error = ratios.std(axis=-1, ddof=1) / np.sqrt(n) / mean if n > 1 else np.full_like(mean, np.nan)
    return value, np.where(mean > 0.0, error, 0.0)


def with_weak_orders(preferences: Preferences) -> Preferences:
    """Turn comparisons that put all items into levels into those levels."""
    n = preferences.n_items
    n_pairs = np.diff(preferences.pair_indptr)
    mentioned = np.where(preferences.rest_below, n, 2 * n_pairs + np.diff(preferences.level_indptr))
    candidates = np.flatnonzero((n_pairs > 0) & (mentioned >= n))
    if not len(candidates):
        return preferences
    arrays, ranks = preferences.arrays(), np.arange(n)
    # A piece at a time: memory follows what is found, not what might be.
    rows_found, levels_found = [], []
    for piece in np.array_split(candidates, math.ceil(len(candidates) * n / LEVELS_AT_ONCE)):
        levels = np.empty((len(piece), n), dtype=np.int32)
        found = np.zeros(len(piece), dtype=np.bool_)
        over_rows(partial(_find_weak_orders, arrays, piece, ranks, levels, found), len(piece), n)
        rows_found.append(piece[found])
        levels_found.append(levels[found])
    rows, levels = np.concatenate(rows_found), np.concatenate(levels_found)
    if not len(rows):
        return preferences
    sizes, pair_sizes = np.diff(preferences.level_indptr), n_pairs.copy()
    keep_level = np.ones(len(preferences.level_items), dtype=np.bool_)
    keep_pair = np.ones(len(preferences.pairs), dtype=np.bool_)
    for row in rows:
        keep_level[preferences.level_indptr[row] : preferences.level_indptr[row + 1]] = False
        keep_pair[preferences.pair_indptr[row] : preferences.pair_indptr[row + 1]] = False
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
        level_indptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        level_items=new_items.astype(np.int32),
        levels=new_levels.astype(np.int32),
        rest_below=rest_below,
        pair_indptr=np.concatenate([[0], np.cumsum(pair_sizes)]).astype(np.int64),
        pairs=preferences.pairs[keep_pair],
    )


def _find_weak_orders(
    arrays: PreferenceArrays, agents: Array, ranks: Array, levels: Array, found: Array, first: int, last: int
) -> None:
    from permix.distributions.conditioning.partitioned_jit import weak_orders

    weak_orders(first, last, arrays, agents, ranks, levels, found)
