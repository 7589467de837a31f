"""Preferences that partition few items, as bits: one for each pair of items and way round.

A full ranking of up to 11 items is one 64-bit word of its pairs. How many of them a center reverses is an
exclusive or and a population count, and rows that say the same are one row. What a mixture makes of such a
row depends on its *code* alone: how many pairs are reversed, and the sizes of its blocks.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permix.data.labels import Array

if TYPE_CHECKING:
    from permix.distributions.conditioning.agent_posteriors import Profile

# Beyond so many items lists are short next to all pairs; beyond so many codes tables are no gain.
MOST_ITEMS = 24
MOST_CODES = 1 << 14
WORD = 64
# Rows at a time while bits are written.
ROWS = 1 << 16


class PairWords(NamedTuple):
    """What the partitioned rows of a profile say, each different row once; for compiled code as it is.

    A code is the number of the row's shape times (pairs of items + 1), plus the pairs that are reversed.
    """

    said: Array  # uint64 (words, rows): i before j, for all pairs i < j
    against: Array  # j before i; (0, rows) where all rows are full rankings, so that it is the rest
    counts: Array  # float (rows,): how many agents say this
    shapes: Array  # int32 (rows,)
    blocks: Array  # (shapes, items + 1): blocks of each size, of two items or more

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.blocks.shape[1] - 1

    def distances(self, centers: Array) -> Array:
        """Count the pairs of each row that each center reverses, int32 (centers, rows)."""
        out = np.zeros((len(centers), len(self.counts)), dtype=np.int32)
        for at, word in enumerate(_words(np.argsort(centers, axis=1), np.less)[:, :, None]):
            if len(self.against):
                out += np.bitwise_count(self.said[at] & ~word)
                out += np.bitwise_count(self.against[at] & word)
            else:
                out += np.bitwise_count(self.said[at] ^ word)
        return out

    def n_before(self, row: int) -> Array:
        """Return how many items a row puts before each item."""
        n = self.n_items
        first, second = pairs_of(n)
        said = _bits(_bytes(self.said[:, [row]])[:, 0])[: len(first)]
        against = _bits(_bytes(self.against[:, [row]])[:, 0])[: len(first)] if len(self.against) else 1 - said
        return np.bincount(second, said, n) + np.bincount(first, against, n)

    def lost(self) -> Array:
        """Return how often agents put another item before each item, less how often after it (Borda)."""
        n = self.n_items
        first, second = pairs_of(n)
        said = self._weight(self.said)
        against = self._weight(self.against) if len(self.against) else self.counts.sum() - said
        net = said - against
        return np.bincount(second, net, n) - np.bincount(first, net, n)

    def _weight(self, words: Array) -> Array:
        """Return how many agents have each bit."""
        values = _bits(np.arange(256, dtype=np.uint8)[:, None]).reshape(256, 8)
        counts = [np.bincount(column, self.counts, 256) @ values for column in _bytes(words)]
        return np.concatenate(counts)[: len(pairs_of(self.n_items)[0])]


def pair_words(profile: Profile) -> tuple[PairWords, Array] | None:
    """Return the partitioned rows as words, and which of these each row is; nothing where it is no gain."""
    n, rows = profile.preferences.n_items, profile.partitioned
    if n > MOST_ITEMS or not len(rows):
        return None
    levels = _levels(profile)
    said, against = _words(levels, np.less), _words(levels, np.greater)
    if not len(profile.block_sizes):
        against = against[:0]
    one_of, inverse = _distinct(np.concatenate([said, against]))
    counts = np.bincount(inverse, weights=profile.counts[rows], minlength=len(one_of))
    ties, shapes = np.ones((1, n), dtype=np.int8), np.zeros(len(one_of), dtype=np.int64)
    if len(against):
        kept = levels[one_of]
        tied = np.sort(np.stack([(kept == kept[:, [item]]).sum(axis=1) for item in range(n)]), axis=0)
        of_shape, shapes = _distinct(tied)
        ties = tied[:, of_shape].T
    blocks = np.zeros((len(ties), n + 1))
    for size in range(2, n + 1):
        blocks[:, size] = (ties == size).sum(axis=1) / size
    n_pairs = n * (n - 1) // 2
    if len(blocks) * (n_pairs + 1) > MOST_CODES:
        return None
    said, against = (np.ascontiguousarray(words[:, one_of]) for words in (said, against))
    return PairWords(said, against, counts, shapes.astype(np.int32), blocks), inverse


def _levels(profile: Profile) -> Array:
    """Level of every item in every partitioned row; what is not listed is the last."""
    preferences = profile.preferences
    out = np.full((len(preferences), preferences.n_items), preferences.n_items, dtype=np.int8)
    owner = np.repeat(np.arange(len(preferences)), np.diff(preferences.level_indptr))
    out[owner, preferences.level_items] = preferences.levels
    return out[profile.partitioned]


@cache
def pairs_of(n: int) -> tuple[Array, Array]:
    """Return all pairs i < j of n items in the order of their bits."""
    return np.triu_indices(n, 1)


def _words(levels: Array, before: np.ufunc) -> Array:
    """Bits of all pairs of items, (words, rows)."""
    first, second = pairs_of(levels.shape[1])
    n_words = max(1, -(-len(first) // WORD))
    out = np.zeros((len(levels), n_words * 8), dtype=np.uint8)
    for start in range(0, len(levels), ROWS):
        part = levels[start : start + ROWS]
        bits = np.packbits(before(part[:, first], part[:, second]), axis=1, bitorder="little")
        out[start : start + ROWS, : bits.shape[1]] = bits
    return np.ascontiguousarray(out.view("<u8").T, dtype=np.uint64)


def _bytes(words: Array) -> Array:
    """Return the bytes of words (words, rows), the lowest first: uint8 (bytes, rows)."""
    return words.T.astype("<u8", order="C").view(np.uint8).T


def _bits(values: Array) -> Array:
    """Return the bits of bytes, the lowest first, as whole numbers."""
    return np.unpackbits(values, bitorder="little").astype(np.int64)


def _distinct(keys: Array) -> tuple[Array, Array]:
    """Return the first place of every different column of ``keys``, and which of these each column is."""
    order = np.lexsort(keys)
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (np.diff(keys[:, order], axis=1) != 0).any(axis=0)
    firsts = order[new]
    # In the order of the data: neighbors in sorted order would add to the same numbers in turn, and wait.
    places = np.argsort(firsts)
    number = np.empty_like(places)
    number[places] = np.arange(len(places))
    inverse = np.empty_like(order)
    inverse[order] = number[np.cumsum(new) - 1]
    return firsts[places], inverse
