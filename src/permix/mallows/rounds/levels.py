"""Rounds of EM over rows that partition any number of items, in closed form."""

from __future__ import annotations

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.agent_posteriors import (
    Profile,
    partition_distances,
    partition_log_normalizers,
)
from permix.distributions.conditioning.components import MallowsComponents
from permix.kernels.comparisons import weigh_levels_compiled
from permix.mallows.rounds.statistics import Statistics, shared_out
from permix.runtime.threads import over_rows


class LevelRounds:
    """E-steps with one number of components."""

    bounded = True

    def __init__(self, profile: Profile, n_components: int, log_weights: Array | None = None) -> None:
        """Begin; ``log_weights`` (rows of the profile, K) are those of rows where these differ."""
        self.log_weights = log_weights
        m, rows = profile.preferences.n_items, profile.partitioned
        self.profile, self.rows = profile, rows
        self.counts = profile.counts[rows].astype(np.float64)
        self.known = np.full((n_components, m), -1, dtype=np.int32)  # the centers that distances are from
        self.distances = np.empty((n_components, len(rows)))
        self.weights = np.empty(
            (n_components, len(rows))
        )  # P(component | row) times agents, of the last E-step

    def e_step(
        self, components: MallowsComponents, rng: np.random.Generator | None, look: bool
    ) -> tuple[float, Statistics]:
        """Return the log-likelihood, and the expected statistics; with a generator components are drawn."""
        total, weights = shared_out(self.log_joint(components), self.counts, rng)
        self.weights = weights
        statistics = Statistics.zeros(components.n_components, components.n_items)

        def work(first: int, last: int) -> None:
            for k in range(first, last):
                mine, sizes = weights[k], self.profile.block_sizes
                if look:
                    statistics.wins[k] = self._pair_sums(mine)
                statistics.blocks[k] = np.bincount(
                    sizes, mine[self.profile.block_rows], components.n_items + 1
                )
                statistics.against[k] = mine @ self.distances[k]

        over_rows(work, components.n_components, 4 * len(self.rows))
        statistics.members[:] = statistics.rankings[:] = weights.sum(axis=1)
        statistics.spreads[:] = statistics.members - (weights**2 / self.counts).sum(axis=1)
        return total, statistics

    def log_joint(self, components: MallowsComponents) -> Array:
        """Return ln π_k P(row | component k), (K, rows)."""
        moved = np.flatnonzero((self.known != components.centers).any(axis=1))
        if len(moved):
            self.distances[moved] = partition_distances(components.centers[moved], self.profile).T
            self.known[moved] = components.centers[moved]
        found = partition_log_normalizers(components, self.profile, self.distances.T)[0]
        own = self.log_weights
        return np.asarray((found + (components.log_weights if own is None else own[self.rows])).T)

    def shares(self, k: int) -> Array:
        """Return P(component k | row) at the components of the last E-step."""
        return np.asarray(self.weights[k] / self.counts)

    def gains(
        self, components: MallowsComponents, k: int, shares: Array, leads: Array, least: float
    ) -> Array:
        """Return by how much the log-likelihood rises if neighbors in center k change places, (m - 1,)."""
        first, second = components.centers[k][:-1], components.centers[k][1:]
        less, more = np.expm1(-components.decays[k]), np.expm1(components.decays[k])
        losing = self._pair_sums(self.counts * np.log1p(shares * less))
        winning = self._pair_sums(self.counts * np.log1p(shares * more))
        return np.asarray(losing[first, second] + winning[second, first])

    def _pair_sums(self, values: Array) -> Array:
        """Add up values of rows, one each, by what the rows state: (m, m), those with a before b."""
        m = self.known.shape[1]
        sums: Array = np.zeros((m, m))
        weigh_levels_compiled(self.profile.arrays, self.rows, values, sums, np.zeros(m))
        return sums
