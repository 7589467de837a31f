"""Where EM starts: k-means under Kendall's distance (Lu & Boutilier 2014, section 4.3).

An agent's distance from a center is the number of stated pairs that the center reverses, and the center of a
cluster is the local Kemeny ranking of what its members stated; neither needs completed rankings. The first
centers are agents chosen far from each other, their rankings completed by the consensus of all.
"""

from __future__ import annotations

import math

import numpy as np

from permix.data.labels import Array, Label
from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.pair_words import PairWords
from permix.distributions.conditioning.partitioned_jit import best_decay
from permix.distributions.conditioning.tournaments_jit import disagreements
from permix.kernels.comparisons import weigh_levels_compiled
from permix.kernels.kemeny_search import improve_by_insertion
from permix.kernels.pairwise_counts import preference_pair_counts
from permix.mallows.parameters import MallowsParameters
from permix.runtime.threads import over_rows

# Agents that take part, per component and at most; more do not make a better start.
PER_COMPONENT = 1000
MOST_ROUNDS = 20


def first_components(
    profile: Profile, settings: MallowsParameters, rng: np.random.Generator
) -> MallowsComponents:
    """Return components from k-means on a random part of the agents."""
    said, k = _said(profile), settings.n_components
    if len(said.counts) > PER_COMPONENT * k:
        said = said.part(np.sort(rng.choice(len(said.counts), PER_COMPONENT * k, replace=False)))
    return _KMeans(said, k, rng).run(profile.preferences.items, settings.min_dispersion)


def seeded_center(profile: Profile, rng: np.random.Generator) -> Array:
    """Return the ranking of an agent drawn at random, completed by the consensus of some others."""
    said = _said(profile)
    chosen = rng.choice(
        len(said.counts), min(len(said.counts), PER_COMPONENT), p=said.counts / said.counts.sum()
    )
    start = _KMeans(said.part(chosen), 1, rng)
    return start.completed(0, start.consensus())


class _Rows:
    """What rows of any kind say, by the same questions as :class:`PairWords`."""

    def __init__(self, preferences: Preferences) -> None:
        self.preferences, self.n_items = preferences, preferences.n_items
        self.arrays = preferences.arrays()
        self.counts = preferences.counts.astype(np.float64)

    def part(self, rows: Array) -> _Rows:
        return _Rows(self.preferences[rows])

    def distances(self, centers: Array) -> Array:
        out = np.empty((len(self.counts), len(centers)), dtype=np.int64)
        work = (self.arrays, np.arange(len(out)), np.argsort(centers, axis=1), out)
        over_rows(disagreements, len(out), 4 * len(centers), *work)
        return out.T

    def tournaments(self, labels: Array, n_groups: int) -> Array:
        return np.stack([self._pairs(np.flatnonzero(labels == group)) for group in range(n_groups)])

    def _pairs(self, rows: Array) -> Array:
        n, weights = self.n_items, self.counts[rows]
        if not len(self.preferences.pairs):
            pairs: Array = np.zeros((n, n))
            weigh_levels_compiled(self.arrays, rows, weights, pairs, np.zeros(n))
            return pairs
        part = self.preferences if len(rows) == len(self.counts) else self.preferences[rows]
        # An order stated twice is the same order: repeats are no votes here.
        implied = np.ones(len(rows), dtype=np.bool_)
        return np.asarray(preference_pair_counts(part.arrays(), implied, weights, n, repeats=False))


def _said(profile: Profile) -> PairWords | _Rows:
    if profile.words is not None and not len(profile.sampled):
        return profile.words
    return _Rows(profile.preferences[profile.stated])


class _KMeans:
    def __init__(self, said: PairWords | _Rows, k: int, rng: np.random.Generator) -> None:
        self.said, self.k, self.rng = said, k, rng
        self.counts = said.counts
        self.everybody = said.tournaments(np.zeros(len(self.counts), dtype=np.int64), 1)[0]
        # Pairs that each row states, ties left out: those that the two ends of one center reverse.
        order = np.arange(said.n_items, dtype=np.int32)
        self.stated = np.maximum(said.distances(np.stack([order, order[::-1]])).sum(axis=0), 1.0)

    def run(self, items: tuple[Label, ...], min_dispersion: float) -> MallowsComponents:
        centers = self._far_apart()
        labels = np.full(len(self.counts), -1)
        distances = np.empty((self.k, len(self.counts)))
        for _ in range(MOST_ROUNDS):
            distances = self.said.distances(centers)
            nearest = distances.argmin(axis=0)  # the first of equals, so that the rounds come to an end
            if np.array_equal(nearest, labels):
                break
            labels = nearest
            for center, pairs in zip(centers, self.said.tournaments(labels, self.k), strict=True):
                if pairs.any():
                    center[:] = _consensus(pairs, center)
        sizes = np.bincount(labels, weights=self.counts, minlength=self.k) + 1.0
        # The share of stated pairs that go against the center, read as the distance of full rankings.
        mine = distances[labels, np.arange(len(labels))]
        against = np.bincount(labels, weights=self.counts * mine, minlength=self.k)
        stated = np.bincount(labels, weights=self.counts * self.stated, minlength=self.k)
        n = self.said.n_items
        most, no_blocks = -math.log(min_dispersion), np.zeros(n + 1)
        # Not uniform: a component without any order would attract everybody alike.
        means = np.minimum((against + 0.1) / (stated + 1.0), 0.45) * n * (n - 1) / 2
        decays = np.array([best_decay(mean, 1.0, no_blocks, most) for mean in means])
        return MallowsComponents(items, sizes / sizes.sum(), centers, decays)

    def _far_apart(self) -> Array:
        """Choose agents with probability proportional to the distance from those chosen before."""
        consensus = self.consensus()
        centers = np.empty((self.k, self.said.n_items), dtype=np.int32)
        if self.k == 1:
            centers[0] = consensus
            return centers
        weights, nearest = self.counts, np.full(len(self.counts), np.inf)
        for k in range(self.k):
            seed = int(self.rng.choice(len(weights), p=weights / weights.sum()))
            centers[k] = self.completed(seed, consensus)
            nearest = np.minimum(nearest, self.said.distances(centers[[k]])[0] / self.stated)
            weights = self.counts * nearest
            if not weights.any():
                weights = self.counts
        return centers

    def consensus(self) -> Array:
        """Local Kemeny ranking of everybody."""
        return _consensus(self.everybody, np.arange(self.said.n_items, dtype=np.int32))

    def completed(self, row: int, consensus: Array) -> Array:
        """Ranking of one agent, the rest as everybody has it."""
        mine = self.said.part(np.array([row])).tournaments(np.zeros(1, dtype=np.int64), 1)[0]
        others = self.everybody / max(1.0, float(self.everybody.max()))
        return _consensus(mine / self.counts[row] + 0.5 * others, consensus)


def _consensus(pairs: Array, start: Array) -> Array:
    order = start.copy()
    improve_by_insertion(pairs - pairs.T, order, 1e-9 * max(1.0, float(pairs.max())))
    return order
