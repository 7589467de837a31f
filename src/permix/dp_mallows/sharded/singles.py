"""Agents who leave their clusters for ones of their own, and return.

Agents who are placed all at once, with one of each cluster staying, never open or close a cluster, and
splits of many hardly make one of few. A birth takes an agent drawn from all out of a cluster; a death puts
one who is alone, drawn from those who are, into another. With centers given, decays integrated out, and a
center drawn for the new cluster given its list (Meilă & Chen 2010, lemma 7), the ratio of a birth is

    opening weight × (n - t)!/n! × N / (number then alone × Σ_k (size_k - discount) P(list | k)),

the sum over the clusters without the agent: a death chooses among them by these weights, so that it does not
matter which one the agent came from. All of it is worked out on the client; the shards are told at the end.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from permix.data.labels import Array
from permix.dp_mallows.lists.clusters_jit import log_likelihoods
from permix.dp_mallows.lists.seating_jit import draw_center
from permix.dp_mallows.lists.top_lists_jit import TopLists
from permix.dp_mallows.sharded.moves import skips_of
from permix.dp_mallows.sharded.state import ShardedState
from permix.dp_mallows.sharded.work import Edit
from permix.kernels.streams import draw_key, new_stream, open_stream
from permix.moves.base import Info, Move


@dataclasses.dataclass
class Singles(Move):
    """As many births, or deaths, as there are candidates."""

    def step(self, rng: np.random.Generator, state: ShardedState) -> Info:
        """Propose a birth or a death for each candidate."""
        batch, accepted = Batch(rng, state), 0
        for at in range(len(state.candidates)):
            accepted += batch.birth(at) if rng.random() < 0.5 else batch.death()
        batch.tell()
        return Info("singles", len(state.candidates), accepted)


class Batch:
    """Births and deaths one after another, and what is known of the clusters meanwhile."""

    def __init__(self, rng: np.random.Generator, state: ShardedState) -> None:
        self.rng, self.state = rng, state
        self.edits: list[Edit] = []
        self._learn()

    def _learn(self) -> None:
        """Take over what the shards have said."""
        state, seen = self.state, self.state.seen
        first = len(state.model.on_record)
        self.labels, self.said = seen.labels[first:].copy(), seen.said[first:]
        # Members of clusters that have no more than two, with their lists; None where they are not known.
        self.members: list[list[tuple[int, Array]] | None] = [
            [(int(seen.agents[0, k, at]), seen.lists[0, k, at]) for at in range(size)] if size <= 2 else None
            for k, size in enumerate(seen.sizes.tolist())
        ]

    def tell(self) -> None:
        """Have the shards make what was accepted."""
        if self.edits:
            self.state.make(self.edits)
            self.edits = []
            self._learn()

    def birth(self, at: int) -> bool:
        """Propose that a candidate leaves; say whether that was accepted."""
        rng, state, held = self.rng, self.state, self.state.clusters
        agent, k, said = int(state.candidates[at]), int(self.labels[at]), self.said[at]
        log_uniform, key = math.log1p(-rng.random()), draw_key(rng)
        n, sizes = state.n_clusters, held.sizes
        if sizes[k] < 2:
            return False
        skips = skips_of(held.places[:, :n], said)
        self._change(k, skips[:, k], -1)
        alone = 1 + int(np.count_nonzero(sizes[:n] == 1))
        log_ratio = self._log_single(n, said) - math.log(alone) - np.logaddexp.reduce(self._weights(skips, n))
        if log_uniform >= log_ratio:
            self._change(k, skips[:, k], 1)
            return False
        places = np.stack([held.places[:, k], self._center(said, key)], axis=1)
        self.edits.append(state.split(k, None, agent, places, draw_key(rng)))
        held = state.clusters  # there may be more room now
        held.totals[n] = held.counts[n] = 0.0
        held.sizes[n] = 0
        self._change(n, skips_of(held.places[:, n : n + 1], said)[:, 0], 1)
        known = self.members[k]
        self.members[k] = None if known is None else [each for each in known if each[0] != agent]
        self.members.append([(agent, said)])
        self.labels[state.candidates == agent] = n
        if held.sizes[k] == 1 and self.members[k] is None:
            self.tell()  # who is alone now
        return True

    def death(self) -> bool:
        """Propose that somebody who is alone joins others; say whether that was accepted."""
        rng, state, held = self.rng, self.state, self.state.clusters
        n = state.n_clusters
        alone = np.flatnonzero(held.sizes[:n] == 1)
        log_uniform, choice, chosen = math.log1p(-rng.random()), rng.random(), rng.random()
        if n < 2 or not len(alone):
            return False
        b = int(alone[int(choice * len(alone))])
        known = self.members[b]
        assert known is not None
        agent, said = known[0]
        skips = skips_of(held.places[:, :n], said)
        logs = self._weights(skips, n)
        logs[b] = -np.inf
        total = np.logaddexp.reduce(logs)
        log_ratio = math.log(len(alone)) + total - self._log_single(n - 1, said)
        if log_uniform >= log_ratio:
            return False
        k = min(int(np.searchsorted(np.cumsum(np.exp(logs - total)), chosen, side="right")), n - 1)
        self._change(k, skips[:, k], 1)
        others = self.members[k]
        self.members[k] = None if others is None or len(others) > 1 else [*others, (agent, said)]
        self.edits.append(state.merge(k, b, held.places[:, k].copy(), draw_key(rng)))
        last = n - 1
        for array in (held.totals, held.counts, held.sizes):
            array[b] = array[last]
        held.sizes[last] = 0
        self.members[b] = self.members[last]
        self.members.pop()
        self.labels[self.labels == b] = k
        self.labels[self.labels == last] = b
        return True

    def _change(self, k: int, skips: Array, sign: int) -> None:
        """Count an agent with these skips in, or out."""
        held = self.state.clusters
        held.sizes[k] += sign
        held.totals[k, : len(skips)] += sign * skips
        held.counts[k, : len(skips)] += sign

    def _weights(self, skips: Array, n: int) -> Array:
        """Return ln of size less discount, times P(list | cluster), decays integrated out."""
        state, held = self.state, self.state.clusters
        totals, counts = held.totals[:n].copy(), held.counts[:n].copy()
        before, after = np.empty(n), np.empty(n)
        log_likelihoods(state.tables, totals, counts, before)
        totals[:, : len(skips)] += skips.T
        counts[:, : len(skips)] += 1.0
        log_likelihoods(state.tables, totals, counts, after)
        return np.log(held.sizes[:n] - state.model.discount) + after - before

    def _log_single(self, n_others: int, said: Array) -> float:
        """Return ln of the weight of a cluster of one beside so many others, times N."""
        n_items, t = self.state.model.n_items, int(np.count_nonzero(said >= 0))
        weight = self.state.openings[n_others]
        if weight <= 0.0:
            return -math.inf
        left = math.lgamma(n_items - t + 1.0) - math.lgamma(n_items + 1.0)
        return math.log(weight) + left + math.log(self.state.n)

    def _center(self, said: Array, key: Array) -> Array:
        """Draw a center given one list, exactly."""
        listed = np.ascontiguousarray(said[said >= 0])
        one = TopLists(
            np.array([0, len(listed)], dtype=np.int64),
            listed,
            np.zeros(1, dtype=np.int32),
            np.array([0, 1], dtype=np.int64),
            np.zeros(1, dtype=np.int32),
        )
        n_items, stream = self.state.model.n_items, new_stream()
        open_stream(stream, key[0], key[1], 0, 0)
        places = np.empty((n_items, 1), dtype=np.int16)
        draw_center(stream, one, 0, self.state.opening, np.empty((2, n_items), dtype=np.int64), places, 0)
        return places[:, 0]
