"""Rounds of EM over rows in shards that need Monte Carlo.

Random numbers belong to what a row says: rows that say the same draw the same, in whichever shards they
are, so that sums over agents do not depend on how these are divided. All components are drawn for all rows
in every round: which were far behind in earlier ones, as ``MallowsEM`` has it, would be lost with a worker.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import CHUNK, Profile, particle_draws
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.draws import log_mean_exp
from permix.mallows.rounds.grids import Grids
from permix.mallows.rounds.statistics import Statistics, add_tournaments, responsibilities, systematic
from permix.runtime.exact_sums import on_grid

# Names of rows are below this, so that those of all their particles are whole numbers of 64 bits.
MOST_NAMES = 2**42
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Draws(NamedTuple):
    """What is drawn in a round, and which random numbers."""

    key: Array
    sweep: int
    n_sets: int
    n_particles: int


class DrawnSums(NamedTuple):
    """What a shard answers of rows that were drawn."""

    log_likelihood: Array  # (2,): rounded, and the rest
    variance: float  # of it, as if no two agents said the same
    members: Array  # (K,)
    rankings: Array  # (K,)
    wins: Array  # (K, m, m), by item

    def plus(self, other: DrawnSums) -> DrawnSums:
        """Return the sums over both."""
        return DrawnSums(
            self.log_likelihood + other.log_likelihood,
            self.variance + other.variance,
            self.members + other.members,
            self.rankings + other.rankings,
            self.wins + other.wins,
        )

    def added_to(self, statistics: Statistics) -> Statistics:
        """Return the statistics of these rows and of others."""
        return statistics._replace(
            members=statistics.members + self.members,
            rankings=statistics.rankings + self.rankings,
            wins=statistics.wins + self.wins,
        )


def names_of_rows(table: Preferences) -> Array:
    """Return a whole number for each row, the same for rows that say the same."""
    hashes = (hashlib.blake2b(key, digest_size=8).digest() for key in table._row_keys())
    return np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64) % np.uint64(MOST_NAMES)


def uniforms_of(names: Array, draws: Draws) -> Array:
    """Return a number on [0, 1) for each row, anew in each round."""
    with np.errstate(over="ignore"):
        mixed = names + draws.key[0] * np.uint64(2 * draws.sweep + 1) ^ draws.key[1]
        for shift, factor in zip((30, 27), _MIX, strict=True):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


class DrawnRounds:
    """The sampled rows of a shard."""

    def __init__(self, profile: Profile, names: Array) -> None:
        self.profile, self.names = profile, names[profile.sampled]
        self.counts = profile.counts[profile.sampled]

    def sums(self, components: MallowsComponents, draws: Draws, grids: Grids) -> DrawnSums:
        """Draw rankings, with their components, for every row."""
        k, m, n_sets = components.n_components, components.n_items, draws.n_sets
        members, drawn_weight = np.zeros(k), np.zeros(k)
        wins = np.zeros((k, m, m))  # by step of the present centers, upper half
        logs, variance = np.zeros(2), 0.0
        step = max(1, CHUNK // (k * n_sets))
        uniforms = uniforms_of(self.names, draws)
        for first in range(0, len(self.names), step):
            last = min(first + step, len(self.names))
            n, here = last - first, self.counts[first:last].astype(np.float64)
            local, cluster = np.repeat(np.arange(n), k), np.tile(np.arange(k), n)
            pairs = (self.names[first:last].astype(np.int64)[local] * k + cluster) * n_sets
            numbers = (pairs[:, None] + np.arange(n_sets)).ravel()
            rows = np.repeat(self.profile.sampled[first:last][local], n_sets)
            clusters = np.repeat(cluster, n_sets)
            found, places = particle_draws(
                components, self.profile, rows, clusters, draws.n_particles, draws.key, draws.sweep, numbers
            )
            joint = found.reshape(n, k, n_sets) + components.log_weights[:, None]
            values, errors = log_mean_exp(np.logaddexp.reduce(joint, axis=1))
            rounded = on_grid(values, grids.logs)
            logs += here @ rounded, here @ on_grid(values - rounded, grids.rest_of_logs)
            variance += float(here @ on_grid(np.minimum(errors, 1.0) ** 2, grids.shares))
            shares = responsibilities(log_mean_exp(joint)[0], values)
            members += here @ on_grid(shares, grids.shares)
            chosen = systematic(joint, uniforms[first:last], local, cluster, n_sets)
            weights = here[np.repeat(local, n_sets)[chosen]]
            drawn_weight += np.bincount(clusters[chosen], weights=weights, minlength=k)
            add_tournaments(weights, clusters[chosen], places[chosen], wins)
        by_item = np.zeros_like(wins)
        for at, center in enumerate(components.centers):  # from steps of the center to items
            upper = np.triu(wins[at], 1)
            both = upper + np.tril(drawn_weight[at] - upper.T, -1)
            by_item[at][np.ix_(center, center)] = both / n_sets
        return DrawnSums(logs, variance, members, drawn_weight / n_sets, by_item)
