"""Ordered sets of small integers, packed 64 to a word, with a Fenwick tree over the words.

Everything about inversions in a permutation is the question "how many of those seen so far are
smaller?" or its inverse "which is the k-th that is still free?". One word and a population count answer
it for up to 64 values; beyond that a tree of word counts, so n values cost O(n log(n / 64)).
"""

from __future__ import annotations

import numpy as np

from permix.kernels.bits import bits_below, popcount, select_bit
from permix.kernels.jit import kernel

WORD = 64
# Lists at most this long are counted by a plain double loop when the universe exceeds one word: the work
# then does not depend on the universe (a top-10 list of 533 items touches 10 numbers). Measured crossover.
SHORT = 48


@kernel
def insert(words, tree, value):
    """Add ``value`` to the set."""
    index = value >> 6
    words[index] |= np.uint64(1) << np.uint64(value & 63)
    node = index + 1
    while node < tree.size:
        tree[node] += 1
        node += node & -node


@kernel
def count_below(words, tree, value):
    """Count the members smaller than ``value``."""
    node = value >> 6
    count = popcount(words[node] & bits_below(value & 63))
    while node > 0:
        count += tree[node]
        node -= node & -node
    return count


@kernel
def fill(words, tree, n):
    """Make the set {0, ..., n-1}."""
    for index in range(words.size):
        first = index * WORD
        words[index] = ~np.uint64(0) if first + WORD <= n else bits_below(n - first)
    tree[0] = 0
    for node in range(1, tree.size):
        tree[node] = min(node * WORD, n) - (node - (node & -node)) * WORD


@kernel
def take_kth(words, tree, k):
    """Remove and return the ``k``-th smallest member (0-based)."""
    node = 0
    step = 1
    while step * 2 < tree.size:
        step *= 2
    while step > 0:
        if node + step < tree.size and tree[node + step] <= k:
            node += step
            k -= tree[node]
        else:
            # The word lies under this node, so its count falls by one.
            if node + step < tree.size:
                tree[node + step] -= 1
        step //= 2
    bit = select_bit(words[node], k)
    words[node] &= ~(np.uint64(1) << np.uint64(bit))
    return node * WORD + bit


@kernel
def n_words(n):
    """Say how many words hold ``n`` values."""
    return (n + WORD - 1) // WORD


@kernel
def count_smaller_before(values, n_values, universe, out):
    """Set ``out[j]`` to the number of i < j with ``values[i] < values[j]``.

    ``values[:n_values]`` are distinct integers in 0..universe-1.
    """
    if universe <= WORD:
        seen = np.uint64(0)
        for j in range(n_values):
            value = np.uint64(values[j])
            bit = np.uint64(1) << value
            out[j] = popcount(seen & (bit - np.uint64(1)))
            seen |= bit
    elif n_values <= SHORT:
        for j in range(n_values):
            count = 0
            for i in range(j):
                count += values[i] < values[j]
            out[j] = count
    else:
        words = np.zeros(n_words(universe), np.uint64)
        tree = np.zeros(words.size + 1, np.int32)
        for j in range(n_values):
            out[j] = count_below(words, tree, values[j])
            insert(words, tree, values[j])


@kernel
def count_inversions(values, n_values, universe):
    """Count the pairs i < j with ``values[i] > values[j]``; arguments as above."""
    inversions = 0
    if universe <= WORD:
        seen = np.uint64(0)
        for j in range(n_values):
            bit = np.uint64(1) << np.uint64(values[j])
            inversions += popcount(seen & ~(bit - np.uint64(1)))
            seen |= bit
    elif n_values <= SHORT:
        for j in range(n_values):
            for i in range(j):
                inversions += values[i] > values[j]
    else:
        words = np.zeros(n_words(universe), np.uint64)
        tree = np.zeros(words.size + 1, np.int32)
        for j in range(n_values):
            inversions += j - count_below(words, tree, values[j])
            insert(words, tree, values[j])
    return inversions


@kernel
def take_in_turn(code, n_values, universe, backwards, out):
    """Set ``out[j]``, j = 0, 1, ..., to the ``code[j]``-th smallest number of 0..universe-1 not yet taken.

    With ``backwards`` the turns run j = n_values-1, ..., 0.
    """
    if universe <= WORD:
        free = ~np.uint64(0)
        for turn in range(n_values):
            j = n_values - 1 - turn if backwards else turn
            taken = select_bit(free, code[j])
            free &= ~(np.uint64(1) << np.uint64(taken))
            out[j] = taken
    elif n_values <= SHORT:
        ascending = np.empty(n_values, np.int64)  # those taken so far
        for turn in range(n_values):
            j = n_values - 1 - turn if backwards else turn
            taken = np.int64(code[j])
            place = 0
            while place < turn and ascending[place] <= taken:
                taken += 1
                place += 1
            for later in range(turn, place, -1):
                ascending[later] = ascending[later - 1]
            ascending[place] = taken
            out[j] = taken
    else:
        words = np.empty(n_words(universe), np.uint64)
        tree = np.empty(words.size + 1, np.int32)
        fill(words, tree, universe)
        for turn in range(n_values):
            j = n_values - 1 - turn if backwards else turn
            out[j] = take_kth(words, tree, code[j])
