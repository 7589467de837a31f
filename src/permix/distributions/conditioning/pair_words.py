"""Preferences that partition few items, as bits: one for each pair of items and way round.

A full ranking of up to 11 items is one 64-bit word of its pairs. How many of them a center reverses is an
exclusive or and a population count, and rows that say the same are one row. What a mixture makes of such a
row depends on its *code* alone: how many pairs are reversed, and the sizes of its blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.pair_words_jit import NEAREST, ROWS, expect
from permix.distributions.conditioning.partitioned_jit import log_normalizer_table
from permix.runtime.threads import over_rows

if TYPE_CHECKING:
    from permix.distributions.conditioning.agent_posteriors import Profile

# Beyond so many items lists are short next to all pairs; beyond so many codes tables are no gain.
MOST_ITEMS = 24
MOST_CODES = 1 << 14
WORD = 64


@dataclass(frozen=True, eq=False)
class PairWords:
    """What the partitioned rows of a profile say, each different row once."""

    n_items: int
    said: Array  # uint64 (words, rows): i before j, for all pairs i < j
    against: Array  # j before i; (0, rows) where all rows are full rankings, so that it is the rest
    counts: Array  # float (rows,): how many agents say this
    inverse: Array  # which of these rows a partitioned row of the profile is
    shapes: Array  # int32 (rows,)
    blocks: Array  # (shapes, items + 1): blocks of each size, of two items or more

    @classmethod
    def of(cls, profile: Profile) -> PairWords | None:
        """Return the partitioned rows as words, where that is a gain."""
        n, rows = profile.preferences.n_items, profile.partitioned
        if n > MOST_ITEMS or not len(rows):
            return None
        levels = _levels(profile)
        said, against = _words(levels, np.less), _words(levels, np.greater)
        full = not len(profile.block_sizes)
        one_of, inverse = _distinct(np.concatenate([said, against[: 0 if full else None]]))
        counts = np.bincount(inverse, weights=profile.counts[rows], minlength=len(one_of))
        ties = np.ones((1, n), dtype=np.int8)
        shapes = np.zeros(len(one_of), dtype=np.int64)
        if not full:
            kept = levels[one_of]
            tied = np.sort(np.stack([(kept == kept[:, [item]]).sum(axis=1) for item in range(n)]), axis=0)
            of_shape, shapes = _distinct(tied)
            ties = tied[:, of_shape].T
        if len(ties) * (n * (n - 1) // 2 + 1) > MOST_CODES:
            return None
        blocks = np.zeros((len(ties), n + 1))
        for size in range(2, n + 1):
            blocks[:, size] = (ties == size).sum(axis=1) / size
        words = said[:, one_of], against[: 0 if full else None, one_of]
        return cls(n, *words, counts, inverse, shapes.astype(np.int32), blocks)

    def part(self, rows: Array) -> PairWords:
        """Return some of the different rows."""
        return replace(
            self,
            said=self.said[:, rows],
            against=self.against[:, rows],
            counts=self.counts[rows],
            inverse=np.arange(len(rows)),
            shapes=self.shapes[rows],
        )

    @property
    def n_distances(self) -> int:
        """How many distances there are, zero among them; a code is shape times this plus distance."""
        return self.n_items * (self.n_items - 1) // 2 + 1

    @cached_property
    def columns(self) -> Array:
        """Bytes of the words, (bytes, rows); those for ``against`` follow those for ``said``."""
        shifts = np.arange(0, WORD, 8, dtype=np.uint64)[None, :, None]
        n_bytes, n_rows = -(-(self.n_distances - 1) // 8), self.said.shape[1]
        each = [(words[:, None] >> shifts).astype(np.uint8) for words in (self.said, self.against)]
        return np.concatenate([some.reshape(-1, n_rows)[:n_bytes] for some in each])

    def distances(self, centers: Array) -> Array:
        """Count the pairs of each row that each center reverses, int32 (centers, rows)."""
        words = _words(np.argsort(centers, axis=1), np.less)
        out = np.zeros((len(centers), self.said.shape[1]), dtype=np.int32)
        for line, center in zip(out, words.T, strict=True):
            for at, word in enumerate(center):
                if len(self.against):
                    line += np.bitwise_count(self.said[at] & ~word)
                    line += np.bitwise_count(self.against[at] & word)
                else:
                    line += np.bitwise_count(self.said[at] ^ word)
        return out

    def codes(self, centers: Array) -> Array:
        """Return the code of each row under each center, int32 (centers, rows)."""
        return self.distances(centers) + self.shapes * np.int32(self.n_distances)

    def logs(self, components: MallowsComponents) -> Array:
        """Return ln π_k P(row | k) for every code, (components, codes)."""
        table = log_normalizer_table(components.decays, self.n_items)
        of_shape = table @ self.blocks.T + (components.log_weights - table[:, -1])[:, None]
        reversed_pairs = components.decays[:, None] * np.arange(self.n_distances)
        return (of_shape[:, :, None] - reversed_pairs[:, None, :]).reshape(len(table), -1)

    def expected(
        self, codes: Array, logs: Array, way: int, uniforms: Array, look: bool
    ) -> tuple[float, Array, Array]:
        """Return the log-likelihood, and what every component gets of each code and, where ``look``, pair.

        ``way``: rows are shared out, drawn by ``uniforms``, or given to the most probable component. Weights
        are (components, codes) and (components, items, items).
        """
        k, n_rows = codes.shape
        n_blocks = -(-n_rows // ROWS)
        totals, mass = np.empty(n_blocks), np.zeros((n_blocks, *logs.shape))
        wins = np.zeros((n_blocks, k, self.n_items, self.n_items))
        rows = (codes, self.columns, self.counts, uniforms, np.empty(codes.shape))
        work = (way, look, logs, np.exp(logs), *rows, mass, wins, totals)
        over_rows(expect, n_blocks, ROWS * k if n_blocks > 1 else 0, *work)
        return float(totals.sum()), mass.sum(axis=0), wins.sum(axis=0)

    def tournaments(self, labels: Array, n_groups: int) -> Array:
        """Count how many agents of each group put a before b, (groups, items, items)."""
        codes = (labels == np.arange(n_groups)[:, None]).astype(np.int32)
        logs = np.where([[False, True]] * n_groups, 0.0, -np.inf)
        return self.expected(codes, logs, NEAREST, np.empty(0), True)[2]


def _levels(profile: Profile) -> Array:
    """Level of every item in every partitioned row; what is not listed is the last."""
    preferences, rows = profile.preferences, profile.partitioned
    out = np.full((len(preferences), preferences.n_items), preferences.n_items, dtype=np.int8)
    out[
        np.repeat(np.arange(len(preferences)), np.diff(preferences.level_indptr)), preferences.level_items
    ] = preferences.levels
    return out[rows]


def _words(levels: Array, before: np.ufunc) -> Array:
    """Bits of all pairs of items, (words, rows)."""
    n = levels.shape[1]
    first, second = np.triu_indices(n, 1)
    parts = []
    for part in np.array_split(levels, len(levels) // ROWS + 1):
        bits = np.zeros((len(part), WORD * max(1, -(-len(first) // WORD))), dtype=np.bool_)
        bits[:, : len(first)] = before(part[:, first], part[:, second])
        parts.append(np.packbits(bits, axis=1, bitorder="little").view("<u8"))
    return np.ascontiguousarray(np.concatenate(parts).T, dtype=np.uint64)


def _distinct(keys: Array) -> tuple[Array, Array]:
    """Return one place of every different column of ``keys``, and which of these each column is."""
    order = np.lexsort(keys)
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (np.diff(keys[:, order], axis=1) != 0).any(axis=0)
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.cumsum(new) - 1
    return order[new], inverse
