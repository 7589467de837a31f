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

from permix.kernels.bits import bits_below, popcount
from permix.kernels.fenwick import WORD, count_below, insert, n_words
from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step

Array = npt.NDArray[Any]

# The table of all n_ij is made where it has at most so many cells for each listed item and a few more.
_CELLS, _FEW = 4, 8
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
def block_sums(rows, n_items, table):
    """Return Σ over the blocks of every row of ``table[size]``, shape (rows, table's columns)."""
    n_rows = rows.indptr.size - 1
    out = np.zeros((n_rows, table.shape[1]))
    for row in range(n_rows):
        start = rows.indptr[row]
        end = rows.indptr[row + 1]
        p = start
        while p < end:
            first = p
            while p < end and rows.levels[p] == rows.levels[first]:
                p += 1
            out[row] += table[p - first]
        out[row] += table[n_items - (end - start)]
    return out


@kernel
def row_codes(rows, n_items, codes):
    """Return a number for every row that depends on the sizes of its blocks alone."""
    n_rows = rows.indptr.size - 1
    out = np.zeros(n_rows, np.uint64)
    for row in range(n_rows):
        start, end = rows.indptr[row], rows.indptr[row + 1]
        p = start
        while p < end:
            first = p
            while p < end and rows.levels[p] == rows.levels[first]:
                p += 1
            out[row] += codes[p - first]
        out[row] += codes[n_items - (end - start)]
    return out


@kernel
def grown(values, needed):
    """Return an array of at least ``needed`` entries that begins with ``values``."""
    if needed <= values.size:
        return values
    grown = np.empty(max(2 * values.size, needed), values.dtype)
    grown[: values.size] = values
    return grown


# Any blocks.


@kernel
def _spread(rows, row, block_of, place, level_at, start_at, size):
    """Spread a row out over the items; return the numbers of its items and of its blocks but the rest.

    ``block_of[item]``; ``place[item]`` in the list, its length where the item is not there; by place the
    block and the first place of the block; the ``size`` of each block.
    """
    start, end = rows.indptr[row], rows.indptr[row + 1]
    length = end - start
    n_blocks = 1 + rows.levels[end - 1] if length > 0 else 0
    for item in range(place.size):
        place[item] = length
        block_of[item] = n_blocks
    for p in range(start, end):
        level, at = rows.levels[p], p - start
        if p == start or level != rows.levels[p - 1]:
            start_at[at] = at
            size[level] = 0
        else:
            start_at[at] = start_at[at - 1]
        size[level] += 1
        level_at[at] = level
        place[rows.items[p]] = at
        block_of[rows.items[p]] = level
    start_at[length] = length
    level_at[length] = n_blocks
    size[n_blocks] = place.size - length
    return length, n_blocks


@kernel
def _meet_by_cells(items, levels, width, block_of, size, cells, above, shared, n_shared):
    """Compare a row with the one spread out, by the table of all n_ij; for rows of few blocks.

    Returns the discordance and the number of ``shared`` entries, n_ij of 2 and more, with this pair's.
    Going down the blocks of the row, ``above`` counts the items above by block of the other: those of worse
    blocks there are discordant. ``cells`` and ``above`` are zero and left so.
    """
    n_levels = 0
    if levels.size > 0:
        top = levels[0]
        n_levels = 1 + levels[-1] - top
        for p in range(items.size):
            cells[(levels[p] - top) * width + block_of[items[p]]] += 1
    discordance = np.int64(0)
    for level in range(n_levels):
        worse = np.int64(0)
        for block in range(width - 1, -1, -1):
            before, here = above[block], cells[level * width + block]
            if here > 0:
                discordance += here * worse
                cells[level * width + block] = 0
                above[block] = before + here
                if here > 1:
                    shared[n_shared] = here
                    n_shared += 1
            worse += before
    worse = np.int64(0)
    for block in range(width - 1, -1, -1):
        before = above[block]
        here = size[block] - before
        discordance += here * worse
        worse += before
        above[block] = 0
        if here > 1:
            shared[n_shared] = here
            n_shared += 1
    return discordance, n_shared


@kernel
def _meet_by_places(
    items,
    levels,
    length,
    n_blocks,
    place,
    level_at,
    start_at,
    size,
    met,
    above,
    words,
    tree,
    shared,
    n_shared,
):
    """Do the same in time that follows the list; for rows of many blocks.

    An item x of the row is discordant with all items that the other puts in better blocks than x, except
    those that this row does not put below x either: those in blocks up to that of x. ``words`` and ``tree``
    hold the set of places met; they, ``met`` and ``above`` are empty and left so.
    """
    discordance = np.int64(0)
    one_word = length < WORD
    seen = np.uint64(0)
    p = 0
    while p < items.size:
        first = p
        while p < items.size and levels[p] == levels[first]:
            at = place[items[p]]
            if at < length:
                if one_word:
                    seen |= np.uint64(1) << np.uint64(at)
                else:
                    insert(words, tree, np.int64(at))
            met[level_at[at]] += 1
            p += 1
        for q in range(first, p):
            at = place[items[q]]
            before = start_at[at]
            if one_word:
                discordance += before - popcount(seen & bits_below(before))
            else:
                discordance += before - count_below(words, tree, np.int64(before))
            block = level_at[at]
            if met[block] > 0:
                if met[block] > 1:
                    shared[n_shared] = met[block]
                    n_shared += 1
                above[block] += met[block]
                met[block] = 0
    for block in range(n_blocks + 1):
        left = size[block] - above[block]
        above[block] = 0
        if left > 1:
            shared[n_shared] = left
            n_shared += 1
    if not one_word:
        words[:] = np.uint64(0)
        tree[:] = 0
    return discordance, n_shared


@kernel
def _compare(queries, q, rows, n_items, discordance, shared_end, shared):
    """Compare query q with all rows: fill discordances and the ends of each pair's part of ``shared``.

    Returns ``shared``, larger where it had to grow.
    """
    block_of, place = np.empty(n_items, np.int32), np.empty(n_items, np.int32)
    level_at, start_at = np.empty(n_items + 1, np.int32), np.empty(n_items + 1, np.int32)
    size = np.zeros(n_items + 1, np.int32)
    met, above = np.zeros(n_items + 1, np.int32), np.zeros(n_items + 1, np.int32)
    words = np.zeros(n_words(n_items + 1), np.uint64)
    tree = np.zeros(words.size + 1, np.int32)
    cells = np.zeros(_CELLS * (n_items + _FEW), np.int32)
    length, n_blocks = _spread(queries, q, block_of, place, level_at, start_at, size)
    n_shared = np.int64(0)
    for row in range(rows.indptr.size - 1):
        start, end = rows.indptr[row], rows.indptr[row + 1]
        shared = grown(shared, n_shared + n_items)
        items, levels = rows.items[start:end], rows.levels[start:end]
        n_levels = 1 + levels[-1] - levels[0] if end > start else 0
        if n_levels * (n_blocks + 1) <= _CELLS * (end - start + _FEW):
            discordance[row], n_shared = _meet_by_cells(
                items, levels, n_blocks + 1, block_of, size, cells, above, shared, n_shared
            )
        else:
            discordance[row], n_shared = _meet_by_places(
                items,
                levels,
                length,
                n_blocks,
                place,
                level_at,
                start_at,
                size,
                met,
                above,
                words,
                tree,
                shared,
                n_shared,
            )
        shared_end[row] = n_shared
    return shared


@kernel
def compare_partitions(first, last, queries, training, own, counts, n_items, codes, training_codes):
    """Compare queries first..last-1 with all training rows.

    Parameters
    ----------
    queries, training : PartitionRows
    own : int64 array (queries,)
        Training row that counts one agent less for this query: itself; -1 for none.
    counts : int64 array (training rows,)
        Agents.
    codes : uint64 array (items + 1,)
        Random numbers: pairs are of one kind where discordance and sum of codes are the same.
    training_codes : uint64 array
        Of ``row_codes``.
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
    return Comparisons(
        indptr,
        row_of[:used].copy(),
        discordance[:used].copy(),
        weight[:used].copy(),
        n_shared[:used].copy(),
        shared_indptr,
        shared[:used_shared].copy(),
    )


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
