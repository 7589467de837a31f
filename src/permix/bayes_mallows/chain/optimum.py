"""The most probable groups of full rankings, which group each is in summed out: where chains start.

Such posteriors have modes between which chains never go: of 5,000 rankings of sushi one with six groups is
e^25 times as high as most that single climbs end at. A search climbs from some fresh starts, then from
crossings of the optima they found, until many of these have led no higher.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.bayes_mallows.chain.climb import distances_from
from permix.bayes_mallows.chain.state import GroupState
from permix.bayes_mallows.group_prior import LEAST_DECAY, MOST_DECAY
from permix.data.labels import Array
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.optima import Optima
from permix.distributions.distances.centers import centers_for
from permix.distributions.distances.normalizer import Normalizer

# Climbs from fresh starts, and crossings of optima without a higher one that end a search, for each group.
N_STARTS, PATIENCE = 6, 20
# A climb ends where a round brings less than this, in ln of the likelihood; optima nearer than that are one.
LEAST_RISE = 1.0
MOST_ROUNDS = 200
# Rounds of a fresh start in which rankings are drawn into groups rather than shared out.
N_DRAWN = 3
# Neighbors of a center whose likelihoods are computed.
MOST_TRIED = 2
# A start's groups are not as wide as if nobody agreed.
WIDEST = 0.9
# Climbs are with a part of the agents where features of all their rankings would be more numbers; with so
# many at least for each group.
MOST_NUMBERS, LEAST_AGENTS = 2_000_000, 200
# How many times as long searches take for centers that have no short cut.
COSTS = {"cayley": 20, "ulam": 200}


def settle_at_optimum(state: GroupState, n_groups: int, rng: np.random.Generator) -> None:
    """Put agents into the most probable groups that a search finds; rankings stay as they are."""
    model = state.model
    n_pairs = model.n_items * (model.n_items - 1) // 2
    most = max(MOST_NUMBERS // (n_pairs * COSTS.get(model.sums.distance, 1)), LEAST_AGENTS * n_groups)
    some = model.ranking_of
    if state.n > most:
        some = rng.choice(some, most, replace=False)
    counts = np.bincount(some, minlength=len(state.rankings))
    known = np.flatnonzero(counts)
    climbs = Climbs(model.sums, np.argsort(state.rankings[known], axis=1), counts[known])
    found = climbs.search(n_groups, rng).components
    state.n_clusters = n_groups
    state.make_room(n_groups + 1)
    state.centers[:n_groups] = np.argsort(found.centers, axis=1)
    state.decays[:n_groups] = found.decays
    scores = found.log_weights - model.sums.values(found.decays)[0]
    scores = scores - found.decays * distances_from(state, state.centers[:n_groups])
    # Drawn, not the most probable: groups overlap.
    state.labels[:] = (scores[model.ranking_of] + rng.gumbel(size=(state.n, n_groups))).argmax(axis=1)
    state.settle()
    state.draw_shares(rng)


class Optimum(NamedTuple):
    """Where a climb ended."""

    components: MallowsComponents
    log_likelihood: float


class Shares(NamedTuple):
    """What an E-step finds, (groups, rankings)."""

    log_likelihood: float
    chances: Array  # P(group | ranking)
    weights: Array  # the same times how many agents have the ranking
    distances: Array


class Climbs:
    """Climbs with some agents' rankings, each different one in a row of ``orders``."""

    def __init__(self, sums: Normalizer, orders: Array, counts: Array) -> None:
        self.sums, self.counts = sums, counts.astype(np.float64)
        self.rankings = centers_for(sums.distance, orders)

    def search(self, n_groups: int, rng: np.random.Generator) -> Optimum:
        """Return the highest optimum that was found."""
        optima: Optima[Optimum] = Optima(int(self.counts.sum()), LEAST_RISE)
        for _ in range(N_STARTS):
            optima.add(self.climb(self.start(n_groups, rng), rng))
        in_vain = 0
        while in_vain < PATIENCE * n_groups:
            best = optima.runs[0].log_likelihood
            if len(optima.runs) > 1:
                following = self.climb(optima.crossed(rng, lambda: self.drawn(self.counts, rng)))
            else:  # of one family: there is nothing to cross
                following = self.climb(self.start(n_groups, rng), rng)
            optima.add(following)
            in_vain = 0 if optima.runs[0].log_likelihood > best + LEAST_RISE else in_vain + 1
        return optima.runs[0]

    def drawn(self, chances: Array, rng: np.random.Generator) -> Array:
        """Return one of the rankings."""
        ends = np.cumsum(chances)
        at = np.searchsorted(ends, rng.random() * ends[-1], side="right")
        return np.asarray(self.rankings.orders[min(int(at), len(ends) - 1)])

    def start(self, n_groups: int, rng: np.random.Generator) -> MallowsComponents:
        """Return groups around rankings drawn with chances by their distance from those before."""
        n = self.rankings.n_items
        chances, nearest = self.counts, np.full(len(self.counts), np.inf)
        centers = np.empty((n_groups, n), dtype=np.int32)
        for center in centers:
            center[:] = self.drawn(chances, rng)
            nearest = np.minimum(nearest, self.rankings.distances(center[None])[0])
            chances = self.counts * nearest if nearest.any() else self.counts
        decay = self.decays(self.counts[None] @ nearest, self.counts.sum(), np.ones(1))[0]
        weights = np.full(n_groups, 1.0 / n_groups)
        return MallowsComponents(
            tuple(range(n)), weights, centers, np.full(n_groups, decay), distance=self.sums.distance
        )

    def decays(self, totals: Array, sizes: Array, starts: Array) -> Array:
        """Return decays that suit sums of distances, as if one more ranking were drawn evenly."""
        widest = WIDEST * self.sums.mean_distance(0.0)
        means = np.minimum((totals + widest) / (sizes + 1.0), widest)
        return np.maximum(self.sums.decays_at(means, starts, MOST_DECAY), LEAST_DECAY)

    def share_out(self, components: MallowsComponents) -> Shares:
        """Return how probable groups are for each ranking."""
        distances = self.rankings.distances(components.centers)
        offsets = components.log_weights - self.sums.values(components.decays)[0]
        joint = offsets[:, None] - components.decays[:, None] * distances
        largest = joint.max(axis=0)
        chances = np.exp(joint - largest)
        total = chances.sum(axis=0)
        chances /= total
        value = float(self.counts @ (largest + np.log(total)))
        return Shares(value, chances, chances * self.counts, distances)

    def climb(self, components: MallowsComponents, rng: np.random.Generator | None = None) -> Optimum:
        """Climb until nothing rises by much; with a generator groups are drawn at first."""
        reached = -math.inf
        for sweep in range(MOST_ROUNDS):
            shares = self.share_out(components)
            weights = shares.weights
            if rng is not None and sweep < N_DRAWN:
                weights = self.counts * rng.multinomial(1, shares.chances.T).T
            elif shares.log_likelihood - reached < LEAST_RISE:
                better = self.exchanged(components, shares)
                if better is None:
                    break
                # A round of EM follows, whether or not it brings much.
                components, reached = better, -math.inf
                continue
            reached = shares.log_likelihood
            components = self.maximized(components, weights)
        return Optimum(components, shares.log_likelihood)

    def maximized(self, components: MallowsComponents, weights: Array) -> MallowsComponents:
        """Return the groups that suit weighted rankings."""
        sizes = weights.sum(axis=1)
        centers, totals = self.rankings.nearest(weights, components.centers)
        centers = np.ascontiguousarray(centers, dtype=np.int32)
        decays = self.decays(totals, sizes, components.decays)
        return components.with_values(sizes / sizes.sum(), centers, decays)

    def exchanged(self, components: MallowsComponents, shares: Shares) -> MallowsComponents | None:
        """Return the same with one center moved to a neighbor, by the likelihood; None if none gains much.

        EM judges centers with rankings shared out as the present centers have it, and keeps them too long.
        """
        best, found = LEAST_RISE, None
        for k, decay in enumerate(components.decays.tolist()):
            # A ranking that may leave counts twice: by how far the likelihood bends.
            weights = shares.weights[k] * (2.0 - shares.chances[k])
            near = self.rankings.neighbors(weights, components.centers[k], MOST_TRIED)
            for center, distances in zip(near, self.rankings.distances(near), strict=True):
                change = np.expm1(-decay * (distances - shares.distances[k]))
                gain = float(self.counts @ np.log1p(shares.chances[k] * change))
                if gain > best:
                    centers = components.centers.copy()
                    centers[k] = center
                    best = gain
                    found = components.with_values(components.weights, centers, components.decays)
        return found
