"""Moves of a chain over agents in shards: all agents placed at once, and whole clusters split and merged."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from permix.data.labels import Array
from permix.dp_mallows.lists.center_moves_jit import improve
from permix.dp_mallows.lists.clusters_jit import log_likelihoods
from permix.dp_mallows.lists.pair_counts_jit import ByPair
from permix.dp_mallows.lists.split_merge_jit import (
    BLIND_SPLITS,
    GATHERING_ROUNDS,
    SEARCH_DECAY,
    log_split_prior,
    propose_center,
)
from permix.dp_mallows.sharded.state import ShardedState
from permix.dp_mallows.sharded.work import Division, Sides, add_sides, divide, gather
from permix.kernels.streams import draw_key, new_stream, open_stream
from permix.moves.base import Info, Move

SMART, BLIND = 0, 1
# Agents who may leave their clusters for ones of their own in an iteration.
CANDIDATES = 8
# Rounds in which a center is found that starts two sides, and one that goes on with a side.
FIRST_ROUNDS, NEXT_ROUNDS = 2, 1


def shares_of(rng: np.random.Generator, sizes: Array, discount: float) -> Array:
    """Draw shares, up to a factor, for placing all agents but one of each cluster anew.

    Given that in each cluster one member, any of its n with probability 1/n, stays, a partition weighs
    Π Γ(n - discount)/n. The first factor is an integral over w^(n - discount - 1) e^-w, the second one over
    t^(n - 1) from 0 to 1: given w and t, those who do not stay go to clusters independently, ∝ w t.
    """
    return rng.standard_gamma(sizes - discount) * rng.random(len(sizes)) ** (1.0 / sizes)


@dataclasses.dataclass
class PlaceAll(Move):
    """Reassign all agents at once among clusters with instantiated shares, centers and decays.

    One member of each cluster, drawn at random, stays, so that no cluster is left empty: which clusters are
    instantiated must not depend on who moves. Shares make up for that (:func:`shares_of`), so this leaves the
    posterior invariant.
    """

    def step(self, rng: np.random.Generator, state: ShardedState) -> Info:
        """Draw shares and decays, and have the shards place their agents."""
        n, before = state.n_clusters, state.labels.copy()
        shares = shares_of(rng, state.sizes_in_use.astype(np.float64), state.model.discount)
        theta = state.draw_decays(rng)
        state.candidates = rng.integers(state.n, size=CANDIDATES)
        state.place(state.clusters.places[:, :n].copy(), theta, shares, draw_key(rng), state.staying)
        # Of the agents on record: others were perhaps placed on other workers before.
        return Info("placing", len(before), int(np.count_nonzero(state.labels != before)))


@dataclasses.dataclass
class ShardedSplitMerge(Move):
    """Propose splits and merges of clusters, ``smart`` and ``blind`` ones, as ``ListSplitMerge`` does.

    Members are divided, and weighed, where they are; what comes back is counts of pairs and one probability.
    """

    chance: float = 1.0

    def step(self, rng: np.random.Generator, state: ShardedState) -> Info:
        """One smart and one blind proposal; with ``chance`` below 1, now and then."""
        if self.chance < 1.0 and rng.random() >= self.chance:
            return Info("split-merge", 0, 0)
        accepted = 0
        for kind, splits in ((SMART, 0.5), (BLIND, BLIND_SPLITS)):
            accepted += Proposal(rng, state, kind, rng.random() < splits).made()
        return Info("split-merge", 2, accepted)


class Proposal:
    """One proposal to split a cluster, or to merge two."""

    def __init__(self, rng: np.random.Generator, state: ShardedState, kind: int, splitting: bool) -> None:
        self.rng, self.state, self.kind, self.splitting = rng, state, kind, splitting
        self.stream = new_stream()
        key = draw_key(rng)
        open_stream(self.stream, key[0], key[1], 0, 0)

    def made(self) -> bool:
        """Make the proposal; say whether it was accepted."""
        rng, state, kind = self.rng, self.state, self.kind
        n, sizes = state.n_clusters, state.sizes_in_use
        # The cluster of any agent, all alike, and that agent.
        a = int(np.searchsorted(np.cumsum(sizes), rng.random() * state.n, side="right"))
        if sizes[a] < 2 if self.splitting else n < 2:
            return False
        agents, said = state.seen.agents[1 + kind], state.seen.lists[1 + kind]
        first_list = said[a, 0]
        if self.splitting:
            b, log_choice, second = n, 0.0, (a, 1)
        else:
            logs = log_partners(state.clusters.places[:, :n], sizes, first_list, a)
            b = int(np.searchsorted(np.cumsum(np.exp(logs)), rng.random(), side="right"))
            if b >= n or b == a:  # the sum of all may be rounded down
                return False
            log_choice, second = float(logs[b]), (b, 0)
        anchors = (int(agents[a, 0]), int(agents[second]) if kind == SMART else -1)
        anchor_lists = (first_list, said[second])
        log_uniform = math.log1p(-rng.random())
        pairs = np.zeros((3, *state.model.shape.pairs))
        pairs[0] = state.clusters.pairs[a] + (0.0 if self.splitting else state.clusters.pairs[b])
        if self.splitting:
            division = self.division(pairs[0], (a, -1), anchors, anchor_lists)
            found = self.ask(divide, (a, -1), division)
            pairs[1:], sides = found.pairs, found.sizes
        else:
            pairs[1:], sides = state.clusters.pairs[[a, b]], sizes[[a, b]]
        if not sides.all():
            return False  # everybody on one side: nothing was proposed
        log_ratio, places = self.centers(pairs, a, b)
        log_ratio += log_split_prior(
            state.openings, state.model.discount, n - (not self.splitting), float(sides[0]), float(sides[1])
        )
        if self.splitting:
            after = np.column_stack([state.clusters.places[:, :n], places[2]])
            log_choice = float(log_partners(after, np.append(sizes, sides[1]), first_list, a)[b])
        log_ratio += log_choice
        if kind == SMART:
            # The second anchor: any member of its cluster, or any other member of the whole.
            log_ratio += math.log((sides.sum() - 1.0) / sides[1])
        else:
            log_ratio += math.log((1.0 - BLIND_SPLITS) / BLIND_SPLITS)
        if not self.splitting:
            log_ratio = -log_ratio
            if kind == SMART:
                if log_uniform >= log_ratio:  # whatever the allocation, which is no more probable than one
                    return False
                division = self.division(pairs[0], (a, b), anchors, anchor_lists)
                found = self.ask(divide, (a, b), division)
        log_allocation = blind_allocation(*sides.tolist()) if kind == BLIND else float(found.logs.sum())
        log_ratio -= log_allocation if self.splitting else -log_allocation
        if log_uniform >= log_ratio:
            return False
        if self.splitting:
            edit = state.split(a, division, -1, places[1:].T, draw_key(rng))
        else:
            edit = state.merge(a, b, places[0], draw_key(rng))
        state.make([edit])
        return True

    def ask(self, work: object, clusters: tuple[int, int], division: Division) -> Sides:
        """Have all shards divide, or weigh."""
        state = self.state
        assert state.model.data is not None
        shared = (state.model.shape, state.placing, clusters, division)
        found: Sides = state.model.data.map(work, shared, add_sides)  # type: ignore[arg-type]
        return found

    def division(
        self, whole: Array, clusters: tuple[int, int], anchors: tuple[int, int], lists: tuple[Array, Array]
    ) -> Division:
        """Return how members are divided: a function of who they are, of the anchors, and of a random share.

        Blindly, everybody alike. Else each anchor starts with its own list as center; rounds of giving each
        list to the better center and finding the centers anew follow.
        """
        state, tables = self.state, self.state.tables
        n_items, n_stages = state.model.n_items, state.model.n_stages
        key = draw_key(self.rng)
        places = np.tile(np.arange(n_items, dtype=np.int16), (2, 1))
        if self.kind == BLIND:
            share = self.rng.random()
            log_odds = math.log(max(share, 1e-300)) - math.log1p(-share)
            return Division(two_words(places), np.zeros((n_stages, 2)), log_odds, anchors, key)
        theta, orders, sums = (
            np.ones((2, n_stages)),
            np.empty((2, n_items), np.int32),
            np.empty((2, n_stages)),
        )

        def found(source: Array, rounds: int, which: int) -> None:
            given = (self.stream, orders[which], places[which], sums[0], sums[1], theta[which])
            improve(ByPair(source[None], np.full(1, -1, np.int32)), 0, tables, rounds, *given)

        found(whole, FIRST_ROUNDS, 0)
        common = orders[0].copy()
        theta[:] = 1.0
        for side, said in enumerate(lists):
            listed = said[said >= 0]
            order = np.concatenate([listed, common[~np.isin(common, listed)]])
            places[side, order] = np.arange(n_items, dtype=np.int16)
        log_shares = np.zeros(2)
        for _ in range(GATHERING_ROUNDS):
            log_odds = float(log_shares[0] - log_shares[1])
            given = Division(two_words(places), theta.T.copy(), log_odds, anchors, key)
            sides = self.ask(gather, clusters, given)
            log_shares = np.log1p(sides.sizes)
            for which in np.flatnonzero(sides.sizes).tolist():
                found(np.ascontiguousarray(sides.pairs[which]), NEXT_ROUNDS, which)
        log_odds = float(log_shares[0] - log_shares[1])
        return Division(two_words(places), theta.T.copy(), log_odds, anchors, key)

    def centers(self, pairs: Array, a: int, b: int) -> tuple[float, Array]:
        """Draw the centers that are to be, weigh those that are; return their part of ln ratio of a split.

        The whole is first, then its parts. The log likelihoods of lists given centers are part of it.
        """
        state, n_items, n_stages = self.state, self.state.model.n_items, self.state.model.n_stages
        totals, counts, values = np.empty((3, n_stages)), np.empty((3, n_stages)), np.empty(3)
        places, log_centers = np.empty((3, n_items), np.int16), np.empty(3)
        for part in range(3):
            held = state.clusters.places[:, b if part == 2 and not self.splitting else a]
            places[part] = held
            order = np.argsort(held).astype(np.int32)
            source = ByPair(pairs[part][None], np.full(1, -1, np.int32))
            draw = self.splitting == (part > 0)
            given = (order, places[part], totals[part], counts[part])
            log_centers[part] = propose_center(self.stream, source, state.tables, draw, *given)
        log_likelihoods(state.tables, totals, counts, values)
        gains = values - log_centers
        return float(gains[1] + gains[2] - gains[0]) - math.lgamma(n_items + 1.0), places


def blind_allocation(first: int, second: int) -> float:
    """Return ln P(who is where) of a division with a uniform share, one agent being on side 1 in any case."""
    return math.lgamma(first) + math.lgamma(second + 1.0) - math.lgamma(first + second + 1.0)


def two_words(places: Array) -> Array:
    """Return two centers, (2, items), as words."""
    return np.ascontiguousarray(places[[0, 1, 0, 1]].T).view(np.uint64)


def log_partners(places: Array, sizes: Array, said: Array, apart: int) -> Array:
    """Return ln of the probabilities of the clusters to merge with that of an agent who said a list.

    Clusters other than ``apart`` are weighed by size × exp(-0.5 Σ skips of the list).
    """
    logs = np.log(sizes) - SEARCH_DECAY * skips_of(places, said).sum(axis=0)
    logs[apart] = -np.inf
    return np.asarray(logs - np.logaddexp.reduce(logs))


def skips_of(places: Array, said: Array) -> Array:
    """Return the skips of a list, padded by -1, under centers (items, clusters): (its length, clusters)."""
    at = places[said[said >= 0]].astype(np.int64)
    return np.array([at[j] - (at[:j] < at[j]).sum(axis=0) for j in range(len(at))])
