# mypy: ignore-errors
"""Blurring mean-shift of top lists: distances, weights, and weighted consensus lists.

A list puts the items it leaves out below those it lists, in no order of their own. The distance of two lists
counts the pairs of items that they put in opposite orders; a pair that either leaves open costs nothing. It
is Meilă & Bao's sum of stage codes of the one list given the other, whose unlisted items follow in whatever
order costs least, and it does not matter which of the two is called the center. Among lists of equal length
it is zero only for equal ones.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.bits import bits_below, popcount
from permix.kernels.fenwick import SHORT, WORD, count_below, insert, n_words
from permix.kernels.jit import kernel
from permix.kernels.kemeny_search import improve_by_insertion

# Differences below this share of all weight are rounding: a tie.
TIE = 1e-9
# Weights below this are dropped. A list has the weight 1 for itself, so that they decide nothing.
NO_WEIGHT = 1e-20


@kernel
def opposed_pairs(order, length, ranks, center_length):
    """Return the distance of ``order[:length]`` from a center list.

    ``ranks`` holds the rank in the center of every item listed there, ``center_length`` for all others.
    """
    total = 0
    if center_length < WORD:
        ahead = bits_below(center_length)  # ranks of the center that the list has not used up
        for j in range(length):
            below = bits_below(ranks[order[j]])
            total += popcount(ahead & below)
            ahead &= ~(below + np.uint64(1))
        return total
    if length <= SHORT:
        for j in range(length):
            rank = ranks[order[j]]
            total += rank
            for i in range(j):
                total -= ranks[order[i]] < rank
        return total
    words = np.zeros(n_words(center_length + 1), np.uint64)
    tree = np.zeros(words.size + 1, np.int32)
    for j in range(length):
        rank = ranks[order[j]]
        total += rank - count_below(words, tree, rank)
        insert(words, tree, rank)  # also of unlisted items, behind which nothing is counted
    return total


@kernel
def distance_sums(first, last, orders, lengths, counts, n_items, out):
    """Set ``out[i]`` to the total distance of agents with list i from agents with lists before i."""
    ranks = np.empty(n_items, np.int64)
    for i in range(first, last):
        ranks[:] = lengths[i]
        for rank in range(lengths[i]):
            ranks[orders[i, rank]] = rank
        total = 0.0
        for j in range(i):
            total += counts[j] * opposed_pairs(orders[j], lengths[j], ranks, lengths[i])
        out[i] = counts[i] * total


@kernel
def weight_table(decay, largest):
    """Return exp(-decay d) for all distances d up to ``largest``."""
    table = np.zeros(largest + 1)
    table[0] = 1.0  # also where the decay is infinite
    for d in range(1, largest + 1):
        table[d] = np.exp(-decay * d)
        if table[d] < NO_WEIGHT:
            table[d] = 0.0
    return table


@kernel
def shift_lists(first, last, orders, lengths, counts, n_items, table, n_candidates, new_orders):
    """Replace lists first..last-1 by the consensus of all lists, weighted by how near these are.

    ``table`` holds the weights of distances. Consensus lists, as long as rows of ``new_orders``, which must
    hold -1, are looked for among the ``n_candidates`` items with the best weighted mean rank.
    """
    n_lists, most = len(orders), new_orders.shape[1]
    ranks = np.empty(n_items, np.int64)
    weights = np.empty(n_lists)
    backing, lead = np.empty(n_items), np.empty(n_items)
    candidates = np.empty(n_items, np.int64)
    place = np.full(n_items, -1, np.int64)
    behind = np.empty((n_candidates, n_candidates))
    cost = np.empty(n_candidates)
    for i in range(first, last):
        ranks[:] = lengths[i]
        for rank in range(lengths[i]):
            ranks[orders[i, rank]] = rank
        backing[:] = 0.0
        lead[:] = 0.0
        total, listed = 0.0, 0.0
        for j in range(n_lists):
            length = lengths[j]
            weight = counts[j] * table[opposed_pairs(orders[j], length, ranks, lengths[i])]
            weights[j] = weight
            if weight > 0.0:
                total += weight
                listed += weight * length
                for rank in range(length):
                    item = orders[j, rank]
                    backing[item] += weight
                    lead[item] += weight * (length - rank)
        n = _choose_candidates(
            orders[i], lengths[i], ranks, backing, lead, TIE * total, n_candidates, candidates
        )
        for a in range(n):
            place[candidates[a]] = a
        fill_behind(orders, lengths, weights, place, behind, n)
        for a in range(n):
            # Put first, an item pays for all who put something before it; of a list without it, everything.
            cost[a] = listed - lead[candidates[a]]
        order = stagewise_order(
            candidates[:n], backing, behind, cost, min(n, 2 * most), TIE * max(listed, total)
        )
        _improve(order, candidates, backing, behind, TIE * total)
        for rank in range(min(most, order.size)):
            new_orders[i, rank] = candidates[order[rank]]
        for a in range(n):
            place[candidates[a]] = -1


@kernel
def _choose_candidates(own, own_length, ranks, backing, lead, least, most, candidates):
    """List the items with some backing, those of the list itself first, in its order; return how many.

    That order settles ties: a list stays as it is where the others are indifferent.
    """
    n = 0
    for rank in range(own_length):
        if backing[own[rank]] > least:
            candidates[n] = own[rank]
            n += 1
    for item in range(ranks.size):
        if ranks[item] == own_length and backing[item] > least:
            candidates[n] = item
            n += 1
    if n <= most:
        return n
    found = candidates[:n].copy()
    best = np.argsort(-lead[found], kind="mergesort")[:most]
    best.sort()
    for a in range(most):
        candidates[a] = found[best[a]]
    return most


@kernel
def fill_behind(orders, lengths, weights, place, behind, n):
    """Set ``behind[a, b]`` to the weight of lists that list candidate a behind candidate b."""
    behind[:n, :n] = 0.0
    for j in range(len(orders)):
        weight = weights[j]
        if weight > 0.0:
            for rank in range(lengths[j]):
                a = place[orders[j, rank]]
                if a >= 0:
                    for better in range(rank):
                        b = place[orders[j, better]]
                        if b >= 0:
                            behind[a, b] += weight


@kernel
def stagewise_order(candidates, backing, behind, cost, depth, tolerance):
    """Take the item with the smallest column sum again and again; ``cost`` is used up.

    An item that is taken no longer counts against others. Those who list a put it before b unless they list
    it behind b.
    """
    n = candidates.size
    order = np.empty(depth, np.int64)
    taken = np.zeros(n, np.bool_)
    for stage in range(depth):
        best = -1
        for b in range(n):
            if not taken[b] and (best < 0 or cost[b] < cost[best] - tolerance):
                best = b
        taken[best] = True
        order[stage] = best
        for b in range(n):
            cost[b] -= backing[candidates[best]] - behind[best, b]
    return order


@kernel
def _improve(order, candidates, backing, behind, tolerance):
    """Move single items of the stagewise order, which is greedy, while the consensus gets better."""
    depth = order.size
    net = np.zeros((depth, depth))
    for x in range(depth):
        a = order[x]
        for y in range(x + 1, depth):
            b = order[y]
            gain = backing[candidates[a]] - behind[a, b] - (backing[candidates[b]] - behind[b, a])
            net[x, y] = gain
            net[y, x] = -gain
    moved = np.arange(depth)
    improve_by_insertion(net, moved, tolerance)
    first = order.copy()
    for x in range(depth):
        order[x] = first[moved[x]]
