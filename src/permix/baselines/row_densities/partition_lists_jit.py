# mypy: ignore-errors
"""Pairs of partitions that are lists: every block but the last is one item. See ``partition_pairs``.

Only the two rests can have more than one item in common, so pairs are told apart by the discordance, that
number and the length of the training row: counted in a table rather than by hashing.
"""

from __future__ import annotations

import numpy as np

from permix.baselines.row_densities.partition_pairs_jit import Comparisons, grown
from permix.kernels.bits import bits_below, popcount
from permix.kernels.distances import pair_bits
from permix.kernels.fenwick import WORD, n_words
from permix.kernels.jit import kernel


@kernel
def are_lists(rows):
    """Say whether every block but the rest of every row is one item, and no list is longer than a word."""
    for row in range(rows.indptr.size - 1):
        length = rows.indptr[row + 1] - rows.indptr[row]
        if length > 0 and (length > WORD - 1 or rows.levels[rows.indptr[row + 1] - 1] != length - 1):
            return False
    return True


@kernel
def are_full(rows, n_items):
    """Say whether every row is a full ranking, the rest being one item."""
    for row in range(rows.indptr.size - 1):
        length = rows.indptr[row + 1] - rows.indptr[row]
        if length != n_items - 1 or (length > 0 and rows.levels[rows.indptr[row + 1] - 1] != length - 1):
            return False
    return True


@kernel
def full_pair_bits(rows, n_items):
    """Write full rankings as bits "item a before item b"; the distance is the number of differing bits."""
    n_rows = rows.indptr.size - 1
    out = np.empty((n_rows, max(n_words(n_items * (n_items - 1) // 2), 1)), np.uint64)
    ranks = np.empty(n_items, np.int32)
    for row in range(n_rows):
        start, end = rows.indptr[row], rows.indptr[row + 1]
        ranks[:] = end - start
        for p in range(start, end):
            ranks[rows.items[p]] = p - start
        pair_bits(ranks, out[row])
    return out


@kernel
def compare_full(first, last, query_bits, training_bits, own, counts, n_items):
    """Compare full rankings, all given as bits; see ``compare_partitions``."""
    n_training, n_bits = training_bits.shape
    tally = np.zeros(n_items * (n_items - 1) // 2 + 1, np.int64)
    indptr = np.zeros(last - first + 1, np.int64)
    discordance, weight = np.empty(16, np.int32), np.empty(16, np.int64)
    used = 0
    for q in range(first, last):
        nearest, farthest = tally.size, -1
        for row in range(n_training):
            distance = 0
            for word in range(n_bits):
                distance += popcount(query_bits[q, word] ^ training_bits[row, word])
            tally[distance] += counts[row]
            nearest, farthest = min(nearest, distance), max(farthest, distance)
        if own[q] >= 0:
            tally[0] -= 1
        for distance in range(nearest, farthest + 1):
            if tally[distance] > 0:
                discordance, weight = grown(discordance, used + 1), grown(weight, used + 1)
                discordance[used] = distance
                weight[used] = tally[distance]
                used += 1
                tally[distance] = 0
        indptr[q - first + 1] = used
    zeros = np.zeros(used, np.int32)
    return Comparisons(indptr, zeros, discordance, weight, zeros, np.zeros_like(indptr), zeros)


@kernel
def compare_lists(first, last, queries, training, by_length, own, counts, n_items):
    """Compare lists; see ``compare_partitions``. ``by_length`` sorts the training rows."""
    longest, most = np.int64(0), np.int64(0)
    for row in range(training.indptr.size - 1):
        longest = max(longest, training.indptr[row + 1] - training.indptr[row])
    for q in range(first, last):
        most = max(most, queries.indptr[q + 1] - queries.indptr[q])
    place = np.empty(n_items, np.int32)
    # Two lists of lengths a and b with c common items have at most a b - c (c + 1) / 2 discordant pairs.
    width = most * longest + 1
    tally = np.zeros(width * (min(most, longest) + 1), np.int64)
    touched = np.empty(min(tally.size, by_length.size), np.int64)
    n_touched = 0
    indptr = np.zeros(last - first + 1, np.int64)
    shared_indptr = np.zeros(last - first + 1, np.int64)
    room = 16
    row_of, discordance = np.empty(room, np.int32), np.empty(room, np.int32)
    weight, n_shared = np.empty(room, np.int64), np.empty(room, np.int32)
    shared = np.empty(room, np.int32)
    used, used_shared = 0, 0
    for q in range(first, last):
        start, end = queries.indptr[q], queries.indptr[q + 1]
        length = end - start
        place[:] = length
        for p in range(start, end):
            place[queries.items[p]] = p - start
        for i in range(by_length.size):
            row = by_length[i]
            begin, stop = training.indptr[row], training.indptr[row + 1]
            seen = np.uint64(0)
            against = np.int64(0)
            for p in range(begin, stop):
                at = np.uint64(place[training.items[p]])
                bit = np.uint64(1) << at
                against += np.int64(at) - popcount(seen & (bit - np.uint64(1)))
                seen |= bit
            cell = popcount(seen & bits_below(length)) * width + against
            agents = counts[row] - (1 if row == own[q] else 0)
            if tally[cell] == 0 and agents > 0:
                touched[n_touched] = cell
                n_touched += 1
            tally[cell] += agents
            following = by_length[i + 1] if i + 1 < by_length.size else -1
            if following >= 0 and training.indptr[following + 1] - training.indptr[following] == stop - begin:
                continue
            # The last row of its length: note what was found and begin anew.
            row_of, discordance = grown(row_of, used + n_touched), grown(discordance, used + n_touched)
            weight, n_shared = grown(weight, used + n_touched), grown(n_shared, used + n_touched)
            shared = grown(shared, used_shared + n_touched)
            for e in range(n_touched):
                cell = touched[e]
                rest = n_items - length - (stop - begin) + cell // width
                row_of[used] = row
                discordance[used] = cell % width
                weight[used] = tally[cell]
                n_shared[used] = 0
                if rest > 1:
                    n_shared[used] = 1
                    shared[used_shared] = rest
                    used_shared += 1
                used += 1
                tally[cell] = 0
            n_touched = 0
        indptr[q - first + 1] = used
        shared_indptr[q - first + 1] = used_shared
    return Comparisons(indptr, row_of, discordance, weight, n_shared, shared_indptr, shared)
