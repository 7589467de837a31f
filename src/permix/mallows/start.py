"""Where EM starts: agents chosen far from each other, their rankings completed by the consensus of all.

Rows that are words of pairs start there: the first rounds of EM draw their components, and k-means before
those makes no better start. Others go on with k-means under Kendall's distance (Lu & Boutilier 2014, section
4.3). An agent's distance from a center is the number of stated pairs that the center reverses, and the center
of a cluster is the local Kemeny ranking of what its members stated; neither needs completed rankings.
"""

from __future__ import annotations

import math
from collections.abc import Callable

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
    rows, k = profile.stated, settings.n_components
    words = profile.words
    if words is not None and not len(profile.sampled):
        return _far_words(words, profile.preferences.items, k, rng, -math.log(settings.min_dispersion))
    if len(rows) > PER_COMPONENT * k:
        rows = np.sort(rng.choice(rows, PER_COMPONENT * k, replace=False))
    return _KMeans(profile.preferences[rows], k, rng).run(settings.min_dispersion)


def seeded_center(profile: Profile, rng: np.random.Generator) -> Array:
    """Return the ranking of an agent drawn at random, completed by the consensus of some others."""
    words = profile.words
    if words is not None and not len(profile.sampled):
        return _seeds_of_words(words, rng)(words.counts)
    rows, weights = profile.stated, profile.counts[profile.stated]
    chosen = rng.choice(rows, min(len(rows), PER_COMPONENT), p=weights / weights.sum())
    start = _KMeans(profile.preferences[chosen], 1, rng)
    return start.completed(0, start.consensus())


def _far_words(
    words: PairWords, items: tuple[Label, ...], k: int, rng: np.random.Generator, most: float
) -> MallowsComponents:
    """Return components at rows drawn with probability proportional to the distance from those before."""
    n = words.n_items
    n_pairs, sizes = n * (n - 1) / 2, np.arange(n + 1)
    n_stated = n_pairs - words.blocks @ (sizes * (sizes - 1) / 2)  # by shape
    seed = _seeds_of_words(words, rng)
    centers = np.empty((k, n), dtype=np.int32)
    chances, nearest = words.counts, np.full(len(words.counts), np.inf)
    for center in centers:
        center[:] = seed(chances)
        nearest = np.minimum(nearest, words.distances(center[None])[0] / n_stated[words.shapes])
        chances = words.counts * nearest if nearest.any() else words.counts
    # Each of many items is displaced by 1/(e^λ - 1) on average. Not uniform: such a component would attract
    # everybody alike.
    distance = max(min(float(words.counts @ nearest / words.counts.sum()), 0.45) * n_pairs, 1e-3)
    decays = np.full(k, min(math.log1p(n / distance), most))
    return MallowsComponents(items, np.full(k, 1.0 / k), centers, decays)


def _seeds_of_words(words: PairWords, rng: np.random.Generator) -> Callable[[Array], Array]:
    """Return a function that draws the ranking of an agent; what it leaves open is as everybody has it."""
    lost = words.lost() if len(words.against) else np.zeros(words.n_items)

    def seed(chances: Array) -> Array:
        row = int(np.searchsorted(np.cumsum(chances), rng.random() * chances.sum(), side="right"))
        return np.lexsort((lost, words.n_before(min(row, len(chances) - 1))))

    return seed


def _mean_distances(against: Array, stated: Array, n: int) -> Array:
    """Read the share of stated pairs that go against the center as the distance of full rankings."""
    # Not uniform: a component without any order would attract everybody alike.
    return np.asarray(np.minimum((against + 0.1) / (stated + 1.0), 0.45) * n * (n - 1) / 2)


class _KMeans:
    def __init__(self, part: Preferences, k: int, rng: np.random.Generator) -> None:
        self.part = part
        self.rng = rng
        self.k = k
        self.arrays = part.arrays()
        self.counts = part.counts.astype(np.float64)
        self.everybody = self._pairs(self.counts)
        # Pairs that each row states, ties left out: those that the two ends of one center reverse.
        order = np.arange(part.n_items, dtype=np.int32)
        self.stated = np.maximum(self._distances(np.stack([order, order[::-1]])).sum(axis=1), 1.0)

    def run(self, min_dispersion: float) -> MallowsComponents:
        centers = self._far_apart()
        labels = np.full(len(self.part), -1)
        distances = np.empty((len(self.part), self.k))
        for _ in range(MOST_ROUNDS):
            distances = self._distances(centers)
            nearest = distances.argmin(axis=1)  # the first of equals, so that the rounds come to an end
            if np.array_equal(nearest, labels):
                break
            labels = nearest
            for k in range(self.k):
                members = np.where(labels == k, self.counts, 0.0)
                if members.any():
                    centers[k] = self._consensus(self._pairs(members), centers[k])
        sizes = np.bincount(labels, weights=self.counts, minlength=self.k) + 1.0
        mine = distances[np.arange(len(labels)), labels]
        against = np.bincount(labels, weights=self.counts * mine, minlength=self.k)
        stated = np.bincount(labels, weights=self.counts * self.stated, minlength=self.k)
        n = self.part.n_items
        most, no_blocks = -math.log(min_dispersion), np.zeros(n + 1)
        means = _mean_distances(against, stated, n)
        decays = np.array([best_decay(mean, 1.0, no_blocks, most, 0.0) for mean in means])
        return MallowsComponents(self.part.items, sizes / sizes.sum(), centers, decays)

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
        order = start.copy()
        improve_by_insertion(pairs - pairs.T, order, 1e-9 * max(1.0, float(pairs.max())))
        return order

    def _pairs(self, weights: Array) -> Array:
        n = self.part.n_items
        if not len(self.part.pairs):
            pairs: Array = np.zeros((n, n))
            weigh_levels_compiled(self.arrays, np.arange(len(weights)), weights, pairs, np.zeros(n))
            return pairs
        # Rows without weight are left out, not only weighed by 0: most clusters are small.
        rows = np.flatnonzero(weights)
        part = self.part if len(rows) == len(weights) else self.part[rows]
        # An order stated twice is the same order: repeats are no votes here.
        implied = np.ones(len(rows), dtype=np.bool_)
        return np.asarray(preference_pair_counts(part.arrays(), implied, weights[rows], n, repeats=False))

    def _distances(self, centers: Array) -> Array:
        out = np.empty((len(self.part), len(centers)), dtype=np.int64)
        work = (self.arrays, np.arange(len(self.part)), np.argsort(centers, axis=1), out)
        over_rows(disagreements, len(self.part), 4 * len(centers), *work)
        return out.astype(np.float64)
