# mypy: ignore-errors
"""Sums over all pairs of rankings that agree with two partitioned preferences, in closed form.

A row partitions all m items into blocks, one above the other. Two rows with blocks A_i and B_j,
n_ij = |A_i ∩ B_j|, have (Lu & Boutilier 2014, equation 34, for one training row A)

    P(B | A) = 1 / (|Ω(A)| Z(m)) Σ_{s ∈ Ω(A)} Σ_{r ∈ Ω(B)} φ^d(r, s)

    ln P(B | A) = k(A, B) - Σ_i g(|A_i|) + Σ_j ln Z(|B_j|) - ln Z(m),
    k(A, B) = -λ disc(A, B) + Σ_ij g(n_ij),     g(n) = ln n! - ln Z(n),     φ = e^-λ,

disc the number of pairs of items that both order and in opposite ways, Z(n) = Π_{i ≤ n} (1 + … + φ^(i-1)).
For a fixed s the inner sum is φ^δ Π_j Z(|B_j|) (proposition 15), δ the pairs of different B_j that s opposes:
those of disc, and within every A_i the inversions of a word with n_ij letters j. The generating function of
such words by inversions is the q-multinomial coefficient Z(|A_i|) / Π_j Z(n_ij), and Π_j n_ij! orders of the
items of A_i make the same word.

Only the items that a row lists are stored: its last block, the rest, is never written out, so that a pair of
short lists costs as much as the lists are long, whatever the number of items. In *lists* every block but the
rest is one item; there only the two rests can share more than one item.

All that matters of a pair, at any λ, is its discordance, the n_ij of 2 and more and the block sizes of A.
Pairs of a query with training rows that agree in these are counted together, so that another λ is cheap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step

Array = npt.NDArray[Any]

_ODD = np.uint64(0x9E3779B97F4A7C15)


class PartitionRows(NamedTuple):
    """Rows that partition all items; items not listed are the last block and at least one."""

    indptr: Array  # int64 (rows + 1)
    items: Array  # int32, best block first
    levels: Array  # int32, block of each listed item: 0 = best, consecutive within a row


class Comparisons(NamedTuple):
    """How queries compare with training rows: for every query the kinds of pairs there are."""

    indptr: Array  # int64 (queries + 1)
    row: Array  # int32: one of the training rows of this kind
    discordance: Array  # int32
    weight: Array  # int64: agents of all training rows of this kind
    n_shared: Array  # int32: how many n_ij are 2 or more
    shared_indptr: Array  # int64 (queries + 1)
    shared: Array  # int32: these n_ij, pair after pair


@kernel
def log_tables(decays, n_items):
    """Return ln Z(n) and g(n) = ln n! - ln Z(n) for n = 0..n_items, shape (n_items + 1, decays)."""
    log_z = np.zeros((n_items + 1, decays.size))
    gain = np.zeros((n_items + 1, decays.size))
    for n in range(2, n_items + 1):
        for k in range(decays.size):
            step = log_normalizer_step(decays[k], n)
            log_z[n, k] = log_z[n - 1, k] + step
            # Never negative, and no difference of large numbers.
            gain[n, k] = gain[n - 1, k] + max(np.log(n) - step, 0.0)
    return log_z, gain


@kernel
def grown(values, needed):
    """Return an array of at least ``needed`` entries that begins with ``values``."""
    if needed <= values.size:
        return values
    grown = np.empty(max(2 * values.size, needed), values.dtype)
    grown[: values.size] = values
    return grown


@kernel
def _compare(queries, q, rows, n_items, discordance, shared_end, shared):
    """Compare query q with all rows: fill discordances and the ends of each pair's part of ``shared``.

    An item x of a row is discordant with all that the query puts in better blocks than x, except those that
    the row does not put below x: those in its blocks up to that of x, which a tree over the query's blocks
    counts. Returns ``shared``, larger where it had to grow.
    """
    start, end = queries.indptr[q], queries.indptr[q + 1]
    n_blocks = 1 + np.int64(queries.levels[end - 1]) if end > start else 0
    block_of = np.full(n_items, n_blocks, np.int64)
    size = np.zeros(n_blocks + 1, np.int64)
    for p in range(start, end):
        block_of[queries.items[p]] = queries.levels[p]
        size[queries.levels[p]] += 1
    size[n_blocks] = n_items - (end - start)
    better = np.cumsum(size) - size
    blocks = np.empty(n_blocks + 1, np.int64)
    met, above = np.zeros(n_blocks + 1, np.int64), np.zeros(n_blocks + 1, np.int64)
    tree = np.zeros(n_blocks + 1, np.int64)
    n_shared = np.int64(0)
    for row in range(rows.indptr.size - 1):
        shared = grown(shared, n_shared + n_items)
        against = np.int64(0)
        p, stop = rows.indptr[row], rows.indptr[row + 1]
        while p < stop:
            first, n_met = p, 0
            while p < stop and rows.levels[p] == rows.levels[first]:
                block = block_of[rows.items[p]]
                if met[block] == 0:
                    blocks[n_met] = block
                    n_met += 1
                met[block] += 1
                p += 1
            for block in blocks[:n_met]:
                node = block + 1
                while node <= n_blocks:
                    tree[node] += met[block]
                    node += node & -node
            for block in blocks[:n_met]:
                worse = better[block]
                node = block
                while node > 0:
                    worse -= tree[node]
                    node &= node - 1
                against += met[block] * worse
                if met[block] > 1:
                    shared[n_shared] = met[block]
                    n_shared += 1
                above[block] += met[block]
                met[block] = 0
        for block in range(n_blocks + 1):
            left = size[block] - above[block]
            above[block] = tree[block] = 0
            if left > 1:
                shared[n_shared] = left
                n_shared += 1
        discordance[row] = against
        shared_end[row] = n_shared
    return shared


@kernel
def compare_partitions(first, last, queries, training, own, counts, n_items, codes, training_codes):
    """Compare queries first..last-1 with all training rows.

    ``own[q]`` is the training row that counts one agent less for query q: itself; -1 for none. Pairs are of
    one kind where their discordance and the sum of ``codes`` are the same, random numbers for the sizes of
    what blocks share; ``training_codes`` are the sums over the blocks of training rows. Arrays of what is
    found may have room to spare.
    """
    n_training = training.indptr.size - 1
    against = np.empty(n_training, np.int64)
    shared_end = np.empty(n_training, np.int64)
    pair_shared = np.empty(4 * n_items + 16, np.int32)
    slots = 1
    while slots < 2 * n_training:
        slots *= 2
    table = np.full(slots, -1, np.int64)  # number of the kind
    keys = np.empty(n_training, np.uint64)
    indptr = np.zeros(last - first + 1, np.int64)
    shared_indptr = np.zeros(last - first + 1, np.int64)
    room = 16 * (last - first) + 16
    row_of = np.empty(room, np.int32)
    discordance = np.empty(room, np.int32)
    weight = np.empty(room, np.int64)
    n_shared = np.empty(room, np.int32)
    shared = np.empty(room, np.int32)
    used, used_shared = np.int64(0), np.int64(0)
    for q in range(first, last):
        pair_shared = _compare(queries, q, training, n_items, against, shared_end, pair_shared)
        begin = used
        pair_end = np.int64(0)
        for row in range(n_training):
            pair_start, pair_end = pair_end, shared_end[row]
            agents = counts[row] - (1 if row == own[q] else 0)
            if agents == 0:
                continue
            key = training_codes[row] + np.uint64(against[row]) * _ODD
            for e in range(pair_start, pair_end):
                key += codes[pair_shared[e]]
            slot = np.int64((key * _ODD) >> np.uint64(32)) & (slots - 1)
            while table[slot] >= 0:
                kind = table[slot]
                if keys[kind - begin] == key and discordance[kind] == against[row]:
                    break
                slot = (slot + 1) & (slots - 1)
            if table[slot] >= 0:
                weight[table[slot]] += agents
                continue
            if used == weight.size:
                row_of, discordance = grown(row_of, 2 * used), grown(discordance, 2 * used)
                weight, n_shared = grown(weight, 2 * used), grown(n_shared, 2 * used)
            shared = grown(shared, used_shared + pair_end - pair_start)
            table[slot] = used
            keys[used - begin] = key
            row_of[used] = row
            discordance[used] = against[row]
            weight[used] = agents
            n_shared[used] = pair_end - pair_start
            for e in range(pair_start, pair_end):
                shared[used_shared] = pair_shared[e]
                used_shared += 1
            used += 1
        table[:] = -1
        indptr[q - first + 1] = used
        shared_indptr[q - first + 1] = used_shared
    return Comparisons(indptr, row_of, discordance, weight, n_shared, shared_indptr, shared)


@kernel
def discordances(first, last, queries, orders, out):
    """Fill ``out[q, s]``: pairs of different blocks of query q that the ordering ``orders[s]`` opposes."""
    n_rows, n_items = orders.shape
    full = PartitionRows(
        np.arange(n_rows + 1) * n_items, orders.ravel(), np.arange(orders.size).astype(np.int32)
    )
    shared_end = np.empty(n_rows, np.int64)
    shared = np.empty(4 * n_items + 16, np.int32)
    for q in range(first, last):
        shared = _compare(queries, q, full, n_items, out[q - first], shared_end, shared)


@kernel
def log_sums(comparisons, training_gain, decays, gain, out):
    """Fill ``out[q, k]`` with ln Σ_A c_A exp(k(A, q) - Σ_i g(|A_i|)) at every λ_k.

    ``training_gain[row, k]`` is Σ_i g(|A_i|).
    """
    n_decays = decays.size
    largest, total = np.empty(n_decays), np.empty(n_decays)
    for q in range(out.shape[0]):
        largest[:] = -np.inf
        total[:] = 0.0
        s = comparisons.shared_indptr[q]
        for e in range(comparisons.indptr[q], comparisons.indptr[q + 1]):
            row, against = comparisons.row[e], comparisons.discordance[e]
            weight = comparisons.weight[e]
            end = s + comparisons.n_shared[e]
            for k in range(n_decays):
                value = -training_gain[row, k]
                if against > 0:
                    value -= decays[k] * against
                for p in range(s, end):
                    value += gain[comparisons.shared[p], k]
                if value > largest[k]:
                    total[k] = weight + (total[k] * np.exp(largest[k] - value) if total[k] > 0.0 else 0.0)
                    largest[k] = value
                elif value > largest[k] - 80.0:  # else nothing, whatever its weight
                    total[k] += weight * np.exp(value - largest[k])
            s = end
        for k in range(n_decays):
            out[q, k] = largest[k] + np.log(total[k]) if total[k] > 0.0 else -np.inf
