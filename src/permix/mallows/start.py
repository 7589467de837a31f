"""Where EM starts: k-means under Kendall's distance (Lu & Boutilier 2014, section 4.3).

An agent's distance from a center is the number of stated pairs that the center reverses, and the center of a
cluster is the local Kemeny ranking of what its members stated; neither needs completed rankings. The first
centers are agents chosen far from each other, their rankings completed by the consensus of all.
"""

from __future__ import annotations

import math

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.mallows.parameters import MallowsParameters
from permix.runtime.threads import over_rows

# Agents that take part, per component and at most; more do not make a better start.
PER_COMPONENT = 1000
MOST_ROUNDS = 20


def first_components(
    profile: Profile, settings: MallowsParameters, rng: np.random.Generator
) -> MallowsComponents:
    """Return components from k-means on a random part of the agents."""
    rows = np.union1d(profile.partitioned, profile.sampled)
    k = settings.n_components
    if len(rows) > PER_COMPONENT * k:
        rows = np.sort(rng.choice(rows, PER_COMPONENT * k, replace=False))
    part = profile.preferences[rows]
    clusters = _KMeans(part, k, rng)
    return clusters.run(settings.min_dispersion)


def seeded_center(profile: Profile, rng: np.random.Generator) -> Array:
    """Return the ranking of an agent drawn at random, completed by the consensus of some others."""
    rows = np.union1d(profile.partitioned, profile.sampled)
    weights = profile.counts[rows]
    chosen = rng.choice(rows, min(len(rows), PER_COMPONENT), p=weights / weights.sum())
    start = _KMeans(profile.preferences[chosen], 1, rng)
    return start.completed(0, start.consensus())


class _KMeans:
    def __init__(self, part: Preferences, k: int, rng: np.random.Generator) -> None:
        self.part = part
        self.rng = rng
        self.k = k
        self.arrays = part.arrays()
        self.counts = part.counts.astype(np.float64)
        self.everybody = self._pairs(self.counts)
        self.stated = np.maximum(self._n_stated(), 1.0)

    def run(self, min_dispersion: float) -> MallowsComponents:
        centers = self._far_apart()
        labels = np.full(len(self.part), -1)
        distances = np.empty((len(self.part), self.k))
        for _ in range(MOST_ROUNDS):
            distances = self._distances(centers)
            nearest = _nearest(distances)
            if np.array_equal(nearest, labels):
                break
            labels = nearest
            for k in range(self.k):
                members = np.where(labels == k, self.counts, 0.0)
                if members.any():
                    centers[k] = self._consensus(self._pairs(members), centers[k])
        sizes = np.bincount(labels, weights=self.counts, minlength=self.k) + 1.0
        # The share of stated pairs that go against the center, read as the distance of full rankings.
        mine = distances[np.arange(len(labels)), labels]
        against = np.bincount(labels, weights=self.counts * mine, minlength=self.k)
        stated = np.bincount(labels, weights=self.counts * self.stated, minlength=self.k)
        decays = self._decays((against + 0.1) / (stated + 1.0), min_dispersion)
        return MallowsComponents(self.part.items, sizes / sizes.sum(), centers, decays)

    def _decays(self, shares: Array, min_dispersion: float) -> Array:
        from permix.kernels.mallows import dispersion_from_mean

        n = self.part.n_items
        most = -math.log(min_dispersion)
        # Not uniform: a component without any order would attract everybody alike.
        shares = np.minimum(shares, 0.45)
        return np.array(
            [
                min(dispersion_from_mean(share * n * (n - 1) / 2, n), most) if n > 1 else 0.0
                for share in shares
            ]
        )

    def _far_apart(self) -> Array:
        """Choose agents with probability proportional to the distance from those chosen before."""
        consensus = self.consensus()
        centers = np.empty((self.k, self.part.n_items), dtype=np.int32)
        if self.k == 1:
            centers[0] = consensus
            return centers
        weights = self.counts.copy()
        for k in range(self.k):
            seed = int(self.rng.choice(len(weights), p=weights / weights.sum()))
            centers[k] = self.completed(seed, consensus)
            nearest = (self._distances(centers[: k + 1]) / self.stated[:, None]).min(axis=1)
            weights = self.counts * nearest
            if not weights.any():
                weights = self.counts.copy()
        return centers

    def consensus(self) -> Array:
        """Local Kemeny ranking of everybody."""
        return self._consensus(self.everybody, np.arange(self.part.n_items, dtype=np.int32))

    def completed(self, row: int, consensus: Array) -> Array:
        """Ranking of one agent, the rest as everybody has it."""
        mine = np.zeros_like(self.counts)
        mine[row] = 1.0
        others = self.everybody / max(1.0, float(self.everybody.max()))
        return self._consensus(self._pairs(mine) + 0.5 * others, consensus)

    def _consensus(self, pairs: Array, start: Array) -> Array:
        from permix.kernels.kemeny_search import improve_by_insertion

        order = start.copy()
        improve_by_insertion(pairs - pairs.T, order, 1e-9 * max(1.0, float(pairs.max())))
        return order

    def _pairs(self, weights: Array) -> Array:
        from permix.kernels.pairwise_counts import preference_pair_counts

        # Rows without weight are left out, not only weighed by 0: most clusters are small.
        rows = np.flatnonzero(weights)
        part = self.part if len(rows) == len(weights) else self.part[rows]
        implied = np.ones(len(rows), dtype=np.bool_)
        # An order stated twice is the same order: repeats are no votes here.
        pairs: Array = preference_pair_counts(
            part.arrays(), implied, weights[rows], part.n_items, repeats=False
        )
        return pairs

    def _n_stated(self) -> Array:
        """Pairs that each row states, ties left out: those that the two ends of one center reverse."""
        order = np.arange(self.part.n_items, dtype=np.int32)
        return self._distances(np.stack([order, order[::-1]])).sum(axis=1)

    def _distances(self, centers: Array) -> Array:
        from permix.distributions.conditioning.amp_jit import rank_vectors
        from permix.distributions.conditioning.tournaments_jit import disagreements

        out = np.empty((len(self.part), len(centers)), dtype=np.int64)
        rows, ranks = np.arange(len(self.part)), rank_vectors(np.ascontiguousarray(centers))

        def work(first: int, last: int) -> None:
            disagreements(first, last, self.arrays, rows, ranks, out)

        over_rows(work, len(rows), 4 * len(centers))
        return out.astype(np.float64)


def _nearest(distances: Array) -> Array:
    """Nearest center of every row; ties go to the first, so that the rounds come to an end."""
    return np.asarray(distances.argmin(axis=1))
