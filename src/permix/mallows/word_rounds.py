"""Rounds of EM over rows as words of their pairs, for EM and for the k-means that it starts from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.agent_posteriors import log_normalizer_table
from permix.distributions.conditioning.pair_words import PairWords, pairs_of
from permix.mallows.em_jit import ROWS, maximize, share_out
from permix.runtime.threads import over_rows

NO_UNIFORMS = np.empty(0)
# The bits of the values of a byte.
BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float64)


class Statistics(NamedTuple):
    """What the M-step needs; sums over agents."""

    members: Array  # (K,): expected number of agents of each component
    rankings: Array  # (K,): weight of the rankings behind ``wins``
    wins: Array  # (K, m, m): weight of "a before b", stated by partitioned rows or drawn for the others
    blocks: Array  # (K, m + 1): weight of blocks of each size in partitioned rows
    against: Array  # (K,): weight of stated pairs that go against the present center, in partitioned rows

    @classmethod
    def zeros(cls, k: int, m: int) -> Statistics:
        """Nothing yet."""
        return cls(*map(np.zeros, ((k,), (k,), (k, m, m), (k, m + 1), (k,))))


def improve(statistics: Statistics, look: bool, most: float, centers: Array, decays: Array) -> None:
    """Improve decays, up to ``most``, and where ``look`` centers, in place."""
    m = centers.shape[1]
    room = np.empty((m + 1, m)), np.empty((2, m), dtype=np.int32)
    maximize(*statistics[1:], look, most, centers, decays, *room)


class WordRounds:
    """E-steps with one number of components."""

    def __init__(self, words: PairWords, n_components: int) -> None:
        k, m, n_rows = n_components, words.n_items, len(words.counts)
        self.words, self.n_rows = words, n_rows
        self.pairs = pairs_of(m)
        self.distances = np.arange(len(self.pairs[0]) + 1)
        self.known = np.full((k, m), -1, dtype=np.int32)  # the centers that codes are for
        self.codes = np.empty((k, n_rows), dtype=np.int32)
        self.room = np.empty((k, n_rows)), np.empty(n_rows)
        self.tallies = np.empty((-(-n_rows // ROWS), k, len(words.columns), 256))

    def expect(
        self, weights: Array, centers: Array, decays: Array, uniforms: Array = NO_UNIFORMS, look: bool = True
    ) -> tuple[float, Statistics]:
        """Return the log-likelihood of components, and the statistics under them.

        With ``uniforms``, one for each row, rows are drawn and not shared out. Without ``look`` there are no
        ``wins``.
        """
        words, k = self.words, len(weights)
        moved = np.flatnonzero((self.known != centers).any(axis=1))
        if len(moved):
            self.codes[moved] = words.distances(centers[moved]) + words.shapes * np.int32(len(self.distances))
            self.known[moved] = centers[moved]
        table = log_normalizer_table(decays, words.n_items)
        with np.errstate(divide="ignore"):
            of_shape = table @ words.blocks.T + (np.log(weights) - table[:, -1])[:, None]
        logs = (of_shape[:, :, None] - (decays[:, None] * self.distances)[:, None]).reshape(k, -1)
        n_blocks = len(self.tallies)
        mass, totals = np.zeros((n_blocks, *logs.shape)), np.empty(n_blocks)
        if look:
            self.tallies[:] = 0.0
        work = ((words.columns, words.counts), self.codes, logs, np.exp(logs), uniforms, look, *self.room)
        cost = ROWS * k if n_blocks > 1 else 0  # one block is for one thread
        over_rows(share_out, n_blocks, cost, *work, mass, self.tallies, totals)
        by_code = mass.sum(axis=0).reshape(*of_shape.shape, -1)
        by_shape = by_code.sum(axis=2)
        members = by_shape.sum(axis=1)
        wins = self._wins(self.tallies.sum(axis=0), members) if look else np.zeros((k, 1, 1))
        against = by_code.sum(axis=1) @ self.distances
        return float(totals.sum()), Statistics(
            members, members.copy(), wins, by_shape @ words.blocks, against
        )

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
