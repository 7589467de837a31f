"""Rounds of EM over rows as words of their pairs, one by one or a whole climb at once."""

from __future__ import annotations

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.agent_posteriors import log_normalizer_table
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.pair_words import PairWords, pairs_of
from permix.mallows.climb_jit import climb
from permix.mallows.em_jit import ROWS, neighbor_gain, share_out
from permix.mallows.rounds.statistics import Statistics
from permix.runtime.threads import over_rows

NO_UNIFORMS = np.empty(0)
# The bits of the values of a byte.
BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float64)


class WordRounds:
    """E-steps with one number of components."""

    def __init__(self, words: PairWords, n_components: int) -> None:
        k, m, n_rows = n_components, words.n_items, len(words.counts)
        self.words, self.n_rows, self.counts = words, n_rows, words.counts
        self.pairs = pairs_of(m)
        self.distances = np.arange(len(self.pairs[0]) + 1)
        self.known = np.full((k, m), -1, dtype=np.int32)  # the centers that codes are for
        self.codes = np.empty((k, n_rows), dtype=np.int32)
        self.room = np.empty((k, n_rows)), np.empty(n_rows)
        self.tallies = np.empty((-(-n_rows // ROWS), k, len(words.columns), 256))
        self.whole: tuple[tuple[Array, ...], tuple[Array, ...]] | None = None  # room for whole climbs

    def expect(
        self, weights: Array, centers: Array, decays: Array, uniforms: Array = NO_UNIFORMS, look: bool = True
    ) -> tuple[float, Statistics]:
        """Return the log-likelihood of components, and the statistics under them.

        With ``uniforms``, one for each row, rows are drawn and not shared out. Without ``look`` there are no
        ``wins``.
        """
        words, k = self.words, len(weights)
        logs = self._logs(weights, centers, decays)
        n_blocks = len(self.tallies)
        mass, totals = np.zeros((n_blocks, *logs.shape)), np.empty(n_blocks)
        if look:
            self.tallies[:] = 0.0
        work = ((words.columns, words.counts), self.codes, logs, np.exp(logs), uniforms, look, *self.room)
        cost = ROWS * k if n_blocks > 1 else 0  # one block is for one thread
        over_rows(share_out, n_blocks, cost, *work, mass, self.tallies, totals)
        by_code = mass.sum(axis=0).reshape(k, len(words.blocks), -1)
        by_shape = by_code.sum(axis=2)
        members = by_shape.sum(axis=1)
        wins = self._wins(self.tallies.sum(axis=0), members) if look else np.zeros((k, 1, 1))
        against = by_code.sum(axis=1) @ self.distances
        return float(totals.sum()), Statistics(
            members, members.copy(), wins, by_shape @ words.blocks, against
        )

    def e_step(
        self, components: MallowsComponents, rng: np.random.Generator | None, look: bool
    ) -> tuple[float, Statistics]:
        """Return the log-likelihood, and the expected statistics; with a generator components are drawn."""
        uniforms = NO_UNIFORMS if rng is None else rng.random(self.n_rows)
        present = components.weights, components.centers, components.decays
        return self.expect(*present, uniforms, look)

    def climb(
        self,
        components: MallowsComponents,
        uniforms: Array,
        most: float,
        rise: float,
        rested: float,
        n_rounds: int,
    ) -> tuple[MallowsComponents, Array, bool, float]:
        """Climb for some rounds (``climb_jit``); return where that led, the log-likelihoods of all rounds,
        whether the climb has ended, and ``rested`` for when it goes on.
        """
        words, (k, m) = self.words, components.centers.shape
        if self.whole is None:
            codes = np.empty((3, k, len(words.blocks) * len(self.distances)))
            room = codes[0], codes[1], *self.room, codes[2:], self.tallies
            sizes = (k,), (k, m, m), (k, m + 1), (k,), (m + 1, m)
            orders = np.empty((2, m), dtype=np.int32), np.empty((k, m), dtype=np.int32)
            self.whole = room, (*map(np.zeros, sizes), *orders)
        weights, centers, decays = (
            each.copy() for each in (components.weights, components.centers, components.decays)
        )
        rows, values = (words.columns, words.counts), np.empty(n_rounds)
        said = words.said, words.against, words.shapes
        state = weights, centers, decays, self.codes, self.known
        limits = most, rise, rested
        made = climb(rows, said, words.blocks, state, *self.whole, uniforms, *limits, values)
        found = MallowsComponents(components.items, weights / weights.sum(), centers, decays)
        return found, values[: made[0]], made[1], made[2]

    def log_joint(self, components: MallowsComponents) -> Array:
        """Return ln π_k P(row | component k), (K, rows)."""
        logs = self._logs(components.weights, components.centers, components.decays)
        return np.stack([mine[codes] for mine, codes in zip(logs, self.codes, strict=True)])

    def gains(self, components: MallowsComponents, k: int, shares: Array) -> Array:
        """Return by how much the log-likelihood rises if neighbors in center k change places, (m - 1,)."""
        words, center, decay = self.words, components.centers[k], float(components.decays[k])
        rows, ties, weights = (words.columns, words.counts), len(words.against) > 0, shares * words.counts
        places = range(components.n_items - 1)
        return np.array([neighbor_gain(rows, ties, weights, center, place, decay) for place in places])

    def _logs(self, weights: Array, centers: Array, decays: Array) -> Array:
        """Look up centers that have moved; return ln π_k P(row | component k) by code, (K, codes)."""
        words = self.words
        moved = np.flatnonzero((self.known != centers).any(axis=1))
        if len(moved):
            self.codes[moved] = words.distances(centers[moved]) + words.shapes * np.int32(len(self.distances))
            self.known[moved] = centers[moved]
        table = log_normalizer_table(decays, words.n_items)
        with np.errstate(divide="ignore"):
            of_shape = table @ words.blocks.T + (np.log(weights) - table[:, -1])[:, None]
        logs = of_shape[:, :, None] - (decays[:, None] * self.distances)[:, None]
        return np.asarray(logs.reshape(len(weights), -1))

    def _wins(self, tallies: Array, members: Array) -> Array:
        """Share out what the values of each byte got to their bits."""
        (first, second), m = self.pairs, self.words.n_items
        n_ways = 2 if len(self.words.against) else 1
        bits = (tallies @ BITS).reshape(len(members), n_ways, -1)[:, :, : len(first)]
        wins = np.zeros((len(members), m, m))
        wins[:, first, second] = bits[:, 0]
        # The other way round is the rest, unless rows leave pairs open.
        wins[:, second, first] = bits[:, 1] if n_ways == 2 else members[:, None] - bits[:, 0]
        return wins
