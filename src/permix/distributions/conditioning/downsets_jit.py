# mypy: ignore-errors
"""Exact sums over the rankings that agree with a partial order, by its down-sets.

A ranking, read from the top, passes through sets of items that contain with every item all that must be
above it. Appending item x to such a set S puts it below those of S and above the rest, so its insertion
place is known: the number of items before x in the center that are in S. The weight of a ranking is a
product over edges of the lattice of these sets, and sums over all rankings follow from one pass through it.

Items are numbered by the order of the center, 0..n-1. The number of sets is at most 2^n, and small for narrow
orders of any length; the lattice is built up to a limit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.distributions.conditioning.amp_insertions_jit import log_mass, place_quantile
from permix.distributions.conditioning.amp_plans_jit import doubled
from permix.kernels.bits import bits_below, popcount
from permix.kernels.fenwick import count_smaller_before, take_in_turn
from permix.kernels.jit import kernel

Array = npt.NDArray[Any]

_MIX = np.uint64(0x9E3779B97F4A7C15)


class DownSets(NamedTuple):
    """The lattice: sets in order of size, their edges together."""

    n_sets: int  # -1 where there are more than the limit
    masks: Array  # (n_sets, words) bits over items
    sizes: Array  # (n_sets,)
    edge_start: Array  # (n_sets + 1,)
    edge_item: Array  # item appended
    edge_place: Array  # how many items before it in the center are in the set
    edge_target: Array


@kernel
def _hash(mask):
    value = np.uint64(0)
    for w in range(mask.size):
        value = (value ^ mask[w]) * _MIX
        value ^= value >> np.uint64(29)
    return value


@kernel
def _available(above, mask, item):
    """Say whether all that must be above the item are in the set."""
    missing = np.uint64(0)
    for w in range(mask.size):
        missing |= above[item, w] & ~mask[w]
    return missing == 0


@kernel
def _next_bit(row, start):
    """Return the first set bit at or after ``start``; -1 where there is none."""
    word = start >> 6
    if word >= row.size:
        return -1
    rest = row[word] & ~bits_below(start & 63)
    while rest == 0:
        word += 1
        if word == row.size:
            return -1
        rest = row[word]
    lowest = rest & (~rest + np.uint64(1))
    return (word << 6) + popcount(lowest - np.uint64(1))


@kernel
def next_below(above, below, n):
    """Keep of the items that must be below each those with nobody in between; rows of bits, closed."""
    n_above = np.empty(n, np.int64)
    for x in range(n):
        n_above[x] = 0
        for w in range(above.shape[1]):
            n_above[x] += popcount(above[x, w])
    topological = np.argsort(n_above)
    out = np.zeros_like(below)
    passed = np.empty(below.shape[1], np.uint64)
    for x in range(n):
        for w in range(passed.size):
            passed[w] = ~below[x, w]
        for y in topological:
            word, bit = y >> 6, np.uint64(1) << np.uint64(y & 63)
            if not passed[word] & bit:
                out[x, word] |= bit
                for w in range(passed.size):
                    passed[w] |= below[y, w]
    return out


@kernel
def build_downsets(above, below, n, limit):
    """Build the lattice of a partial order given as rows of bits; stop where it has more than ``limit`` sets.

    ``above[x]`` are the items that must be above x, ``below[x]`` those that must be below, both closed.
    """
    below = next_below(above, below, n)  # nobody else can become available when x is appended
    words = max(above.shape[1], 1)
    masks = np.zeros((64, words), np.uint64)
    ready = np.zeros((64, words), np.uint64)  # items that may be appended
    sizes = np.zeros(64, np.int32)
    edge_start = np.zeros(65, np.int64)
    edge_item = np.empty(64, np.int32)
    edge_place = np.empty(64, np.int32)
    edge_target = np.empty(64, np.int32)
    table = np.full(256, -1, np.int64)  # open addressing; at most half full
    for x in range(n):
        if _available(above, masks[0], x):
            ready[0, x >> 6] |= np.uint64(1) << np.uint64(x & 63)
    table[_hash(masks[0]) & np.uint64(table.size - 1)] = 0
    n_sets = 1
    n_edges = 0
    grown = np.empty(words, np.uint64)
    source = 0
    while source < n_sets:
        edge_start[source] = n_edges
        x = _next_bit(ready[source], 0)
        while x >= 0:
            bit = np.uint64(1) << np.uint64(x & 63)
            for w in range(words):
                grown[w] = masks[source, w]
            grown[x >> 6] |= bit
            at = _hash(grown) & np.uint64(table.size - 1)
            target = np.int64(-1)
            while table[at] >= 0:
                same = True
                for w in range(words):
                    same &= masks[table[at], w] == grown[w]
                if same:
                    target = table[at]
                    break
                at = (at + np.uint64(1)) & np.uint64(table.size - 1)
            if target < 0:
                if n_sets == limit:
                    return DownSets(-1, masks, sizes, edge_start, edge_item, edge_place, edge_target)
                target = n_sets
                n_sets += 1
                if n_sets > masks.shape[0]:
                    masks, ready = doubled(masks), doubled(ready)
                    sizes, edge_start = doubled(sizes), doubled(edge_start)
                sizes[target] = sizes[source] + 1
                for w in range(words):
                    masks[target, w] = grown[w]
                    ready[target, w] = ready[source, w]
                ready[target, x >> 6] &= ~bit
                y = _next_bit(below[x], 0)
                while y >= 0:
                    if _available(above, grown, y):
                        ready[target, y >> 6] |= np.uint64(1) << np.uint64(y & 63)
                    y = _next_bit(below[x], y + 1)
                table[at] = target
                if 2 * n_sets > table.size:
                    table = np.full(2 * table.size, -1, np.int64)
                    for other in range(n_sets):
                        at = _hash(masks[other]) & np.uint64(table.size - 1)
                        while table[at] >= 0:
                            at = (at + np.uint64(1)) & np.uint64(table.size - 1)
                        table[at] = other
            if n_edges == edge_item.size:
                edge_item, edge_place = doubled(edge_item), doubled(edge_place)
                edge_target = doubled(edge_target)
            edge_item[n_edges] = x
            edge_place[n_edges] = popcount(masks[source, x >> 6] & bits_below(x & 63))
            for w in range(x >> 6):
                edge_place[n_edges] += popcount(masks[source, w])
            edge_target[n_edges] = target
            n_edges += 1
            x = _next_bit(ready[source], x + 1)
        source += 1
    edge_start[n_sets] = n_edges
    return DownSets(
        n_sets,
        masks[:n_sets].copy(),
        sizes[:n_sets].copy(),
        edge_start[: n_sets + 1].copy(),
        edge_item[:n_edges].copy(),
        edge_place[:n_edges].copy(),
        edge_target[:n_edges].copy(),
    )


@kernel
def edge_log_weights(lattice, models, k):
    """Return ln of the insertion probability of every edge under model k; items are steps."""
    out = np.empty(lattice.edge_item.size)
    for e in range(out.size):
        place = np.int64(lattice.edge_place[e])
        out[e] = log_mass(models, k, np.int64(lattice.edge_item[e]), place, place)
    return out


@kernel
def sums_below(lattice, edge_weights):
    """Return, for every set, ln of the total weight of the ways to complete it; entry 0 is ln P(v)."""
    out = np.zeros(lattice.n_sets)
    for s in range(lattice.n_sets - 2, -1, -1):
        largest = -np.inf
        for e in range(lattice.edge_start[s], lattice.edge_start[s + 1]):
            largest = max(largest, edge_weights[e] + out[lattice.edge_target[e]])
        if largest == -np.inf:
            out[s] = -np.inf
            continue
        total = 0.0
        for e in range(lattice.edge_start[s], lattice.edge_start[s + 1]):
            total += np.exp(edge_weights[e] + out[lattice.edge_target[e]] - largest)
        out[s] = largest + np.log(total)
    return out


@kernel
def edge_probabilities(lattice, edge_weights, below):
    """Return the probability that a ranking drawn from the posterior passes each edge."""
    passes = np.zeros(lattice.n_sets)
    passes[0] = 1.0
    out = np.zeros(lattice.edge_item.size)
    for s in range(lattice.n_sets):
        if passes[s] > 0.0:
            for e in range(lattice.edge_start[s], lattice.edge_start[s + 1]):
                target = lattice.edge_target[e]
                out[e] = passes[s] * np.exp(edge_weights[e] + below[target] - below[s])
                passes[target] += out[e]
    return out


@kernel
def sample_downsets(rng, lattice, edge_weights, below, out):
    """Fill the rows of ``out`` with orderings of the items (0..n-1), exactly from the posterior."""
    n = out.shape[1]
    for row in range(out.shape[0]):
        s = 0
        for rank in range(n):
            remaining = rng.random()
            chosen = -1
            for e in range(lattice.edge_start[s], lattice.edge_start[s + 1]):
                weight = edge_weights[e] + below[lattice.edge_target[e]]
                if weight > -np.inf:
                    chosen = e
                    remaining -= np.exp(weight - below[s])
                    if remaining < 0.0:
                        break
            out[row, rank] = lattice.edge_item[chosen]
            s = lattice.edge_target[chosen]


@kernel
def downset_marginals(lattice, probabilities, n):
    """Return P(item x has rank r) and P(x before y) from the probabilities of edges."""
    at_rank = np.zeros((n, n))
    before = np.zeros((n, n))
    for s in range(lattice.n_sets):
        for e in range(lattice.edge_start[s], lattice.edge_start[s + 1]):
            x = lattice.edge_item[e]
            at_rank[x, lattice.sizes[s]] += probabilities[e]
            mask = lattice.masks[s]
            for y in range(n):
                if not mask[y >> 6] >> np.uint64(y & 63) & np.uint64(1):
                    before[x, y] += probabilities[e]
    for x in range(n):
        before[x, x] = 0.0
    return at_rank, before


# Free items at the ends of the center. Those behind the last constrained item are inserted after everything
# else by the model alone, whatever happened before. In a geometric model the same holds, upside down, for
# those before the first constrained one: a stretch of the center is such a model by itself.


@kernel
def complete_blocks(rng, models, k, first, last, blocks, center, out):
    """Add the free items outside the steps first..last-1 to orderings of those steps, exactly.

    ``blocks`` are orderings of 0..last-first-1; ``first`` > 0 needs a geometric model.
    """
    m = center.size
    size = m - first
    ranks = np.empty(m, np.int64)
    places = np.empty(m, np.int64)
    taken = np.empty(m, np.int64)
    for row in range(blocks.shape[0]):
        for rank in range(last - first):
            ranks[blocks[row, rank]] = rank
        count_smaller_before(ranks, last - first, m, places)
        for i in range(last - first, size):
            places[i] = place_quantile(rng.random(), models, k, i, 0, i)
        take_in_turn(places, size, size, True, taken)
        if first > 0:
            for i in range(size):
                ranks[i] = size - 1 - taken[size - 1 - i]
            count_smaller_before(ranks, size, m, places)
            for i in range(size, m):
                places[i] = place_quantile(rng.random(), models, k, i, 0, i)
            take_in_turn(places, m, m, True, ranks)
            for i in range(m):
                taken[i] = m - 1 - ranks[m - 1 - i]
        for i in range(m):
            out[row, taken[i]] = center[i]


@kernel
def extend_marginals(at_rank, before, first, last, probabilities):
    """Let another item join items first..last-1, at place p of 0..last-first with ``probabilities[p]``.

    ``at_rank`` and ``before`` hold P(item has rank r) and P(one before the other) of the items so far; the
    new item is ``last``, or ``first - 1`` where ``last`` is the number of all items.
    """
    size = last - first
    new = last if last < at_rank.shape[0] else first - 1
    reach = np.empty(size + 1)  # P(the new item is at place <= r) pushes what is at rank r one back
    total = 0.0
    for r in range(size + 1):
        total += probabilities[r]
        reach[r] = min(total, 1.0)
    for a in range(first, last):
        row = at_rank[a]
        ahead = 0.0
        for r in range(size):
            ahead += row[r] * reach[r]
        before[new, a] = ahead
        before[a, new] = 1.0 - ahead
        for r in range(size, 0, -1):
            row[r] = (row[r] * (1.0 - reach[r]) if r < size else 0.0) + row[r - 1] * reach[r - 1]
        row[0] *= 1.0 - reach[0]
    for r in range(size + 1):
        at_rank[new, r] = probabilities[r]
