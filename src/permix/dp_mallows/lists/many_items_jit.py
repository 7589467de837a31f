# mypy: ignore-errors
"""Moves of a cluster's center where there are many items: lists are read instead of counts of pairs.

C (see ``center_moves_jit``) is tabulated for the items that the lists mention; where they mention very many,
what one item needs of it is found by walking the lists that mention the item, so that no array is larger than
the lists. Items that no list mentions are alike: they are counted, not looped over, and shuffled among their
places.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.dp_mallows.lists.center_moves_jit import attract, move_item, reinsert, stage_by_stage
from permix.dp_mallows.lists.pair_counts_jit import alone_in, source_of, survey, total_skips
from permix.dp_mallows.lists.top_lists_jit import Members, TopLists, sum_skips
from permix.kernels.jit import implements, kernel
from permix.kernels.streams import categorical_log, integers

# C is tabulated for up to so many mentioned items; with more, lists are walked.
MOST_TABULATED = 256


class ByList(NamedTuple):
    """Clusters as lists: those of cluster k are the members ``starts[k]`` to ``starts[k + 1]``."""

    lists: TopLists
    starts: np.ndarray
    members: Members


class Mentions(NamedTuple):
    """Items by how a cluster's lists mention them, and room for the moves of its center.

    Mentions ``starts[x]`` to ``starts[x + 1]`` are those of item x.
    """

    items: np.ndarray  # of all lists
    starts: np.ndarray  # int64 (items + 1,)
    spans: np.ndarray  # int64 (mentions, 3): in ``items`` the list begins, mentions x and ends
    times: np.ndarray  # (mentions,): how often the list was given
    mentioned: np.ndarray  # int32: the items that some list mentions
    position: np.ndarray  # int32, by item: which of the mentioned ones
    table: np.ndarray  # C_xy at [position of y, position of x]; empty where very many are mentioned
    attraction: np.ndarray  # A, by item
    balance: np.ndarray  # C_yx - C_xy for one x, by y; all 0 between uses
    earlier: np.ndarray  # Σ C_xy over the y that are left, by x
    energies: np.ndarray  # (items + 1,)
    left: np.ndarray  # int32 (items,)
    window: np.ndarray  # int32 (items,)


@kernel
def find_mentions(lists, members, first, last, n_items):
    """Return the mentions of every item in the lists of the entries ``first`` to ``last``."""
    starts = np.zeros(n_items + 2, np.int64)
    for entry in range(first, last):
        d = members.lists[entry]
        for at in range(lists.starts[d], lists.starts[d + 1]):
            starts[lists.items[at] + 2] += 1
    reals = np.zeros((4, n_items + 1))
    numbers = np.empty((4, n_items), np.int32)
    n = 0
    for item in range(n_items):
        if starts[item + 2] > 0:
            numbers[0, n] = item
            numbers[1, item] = n
            n += 1
        starts[item + 2] += starts[item + 1]
    spans = np.empty((starts[n_items + 1], 3), np.int64)
    times = np.empty(starts[n_items + 1])
    for entry in range(first, last):
        d = members.lists[entry]
        for at in range(lists.starts[d], lists.starts[d + 1]):
            slot = starts[lists.items[at] + 1]
            spans[slot, 0] = lists.starts[d]
            spans[slot, 1] = at
            spans[slot, 2] = lists.starts[d + 1]
            times[slot] = members.times[entry]
            starts[lists.items[at] + 1] += 1
    size = n if n <= MOST_TABULATED else 0
    return Mentions(
        lists.items,
        starts,
        spans,
        times,
        numbers[0, :n],
        numbers[1],
        np.empty((size, size)),
        reals[0],
        reals[1],
        reals[2],
        reals[3],
        numbers[2],
        numbers[3],
    )


@implements(survey, ByList, "source")
def _survey(source, k, n_items):
    return find_mentions(source.lists, source.members, source.starts[k], source.starts[k + 1], n_items)


@implements(total_skips, ByList, "source")
def _total_skips(source, k, places, totals, counts):
    first, last = source.starts[k], source.starts[k + 1]
    sum_skips(source.lists, source.members, first, last, places, totals, counts)


@implements(alone_in, ByList, "source")
def _alone_in(source, k):
    first = source.starts[k]
    if source.starts[k + 1] == first + 1 and source.members.times[first] == 1.0:
        return np.int64(source.members.lists[first])
    return -1


@implements(source_of, ByList, "source")
def _source_of(source, lists, members, n, n_stages, n_items):
    starts = np.empty(2, np.int64)
    starts[0], starts[1] = 0, n
    return ByList(lists, starts, members)


@implements(attract, Mentions, "mentions")
def _attract(mentions, theta):
    for item in range(mentions.position.size):
        total = 0.0
        for at in range(mentions.starts[item], mentions.starts[item + 1]):
            total += theta[mentions.spans[at, 1] - mentions.spans[at, 0]] * mentions.times[at]
        mentions.attraction[item] = total
    for index in range(mentions.table.shape[0]):
        row = mentions.table[index]
        row[:] = 0.0
        y = mentions.mentioned[index]
        for at in range(mentions.starts[y], mentions.starts[y + 1]):
            begin, own = mentions.spans[at, 0], mentions.spans[at, 1]
            weight = theta[own - begin] * mentions.times[at]
            for other in range(begin, own):
                row[mentions.position[mentions.items[other]]] += weight


@implements(reinsert, Mentions, "mentions")
def _reinsert(stream, mentions, theta, order, places):
    attraction, balance, energies = mentions.attraction, mentions.balance, mentions.energies
    for own in range(mentions.mentioned.size):
        x = mentions.mentioned[own]
        if mentions.table.size:
            for index in range(mentions.mentioned.size):
                balance[mentions.mentioned[index]] = mentions.table[own, index] - mentions.table[index, own]
        else:
            for at in range(mentions.starts[x], mentions.starts[x + 1]):
                begin, here = mentions.spans[at, 0], mentions.spans[at, 1]
                for other in range(begin, here):
                    balance[mentions.items[other]] += mentions.times[at] * theta[here - begin]
                for other in range(here + 1, mentions.spans[at, 2]):
                    balance[mentions.items[other]] -= mentions.times[at] * theta[other - begin]
        energy = 0.0
        energies[0] = 0.0
        slot = 0
        for place in range(order.size):
            y = order[place]
            if y != x:
                energy += attraction[x] - attraction[y] - balance[y]
                slot += 1
                energies[slot] = -energy
        new = categorical_log(stream, energies, order.size)
        for index in range(mentions.mentioned.size):
            balance[mentions.mentioned[index]] = 0.0
        move_item(x, new, order, places)
    shuffle_unmentioned(stream, mentions, order, places)


@kernel
def _count(mentions, theta, y, sign):
    """Add what y is worth to the items that lists mention before it (sign 1), or take it from them (-1)."""
    earlier = mentions.earlier
    if mentions.table.size:
        row = mentions.table[mentions.position[y]]
        for index in range(row.size):
            earlier[mentions.mentioned[index]] += sign * row[index]
        return
    for at in range(mentions.starts[y], mentions.starts[y + 1]):
        begin, own = mentions.spans[at, 0], mentions.spans[at, 1]
        weight = sign * theta[own - begin] * mentions.times[at]
        for other in range(begin, own):
            earlier[mentions.items[other]] += weight


@implements(stage_by_stage, Mentions, "mentions")
def _stage_by_stage(stream, mentions, theta, n_window, how, out):
    left, logs = mentions.left, mentions.energies
    # Mentioned items come first.
    n_left, n_other = 0, 0
    for is_mentioned in (True, False):
        for index in range(n_window):
            x = mentions.window[index]
            if (mentions.starts[x + 1] > mentions.starts[x]) == is_mentioned:
                mentions.earlier[x] = 0.0
                left[n_left + n_other] = x
                n_left += is_mentioned
                n_other += not is_mentioned
    for index in range(n_left):
        _count(mentions, theta, left[index], 1.0)
    remaining = 0.0
    for index in range(n_left):
        remaining += mentions.attraction[left[index]]
    total = 0.0
    for place in range(n_window):
        if n_left == 0:
            # Nothing tells the others apart: Π of 1/n, 1/(n-1), ...
            total += math.lgamma(n_other + 1.0)
            for rest in range(n_other):
                if how != 1:
                    chosen = rest
                    if how == 0:
                        chosen += integers(stream, n_other - rest)
                    out[place + rest] = left[chosen]
                    left[chosen] = left[rest]
            break
        largest = 0.0
        for index in range(n_left):
            logs[index] = mentions.attraction[left[index]] + mentions.earlier[left[index]]
            largest = max(largest, logs[index])
        n_options = n_left
        if n_other > 0:
            logs[n_left] = np.log(n_other)
            n_options += 1
            largest = max(largest, logs[n_left])
        sum_here = 0.0
        for index in range(n_options):
            if logs[index] > largest - 40.0:
                sum_here += np.exp(logs[index] - largest)
        total += largest + np.log(sum_here) - remaining
        if how == 1:
            y = out[place]
            chosen = n_left
            if mentions.starts[y + 1] > mentions.starts[y]:
                chosen = 0
                while left[chosen] != y:
                    chosen += 1
        elif how == 0:
            chosen = categorical_log(stream, logs, n_options)
        else:
            chosen = 0
            for index in range(1, n_left):
                if logs[index] > logs[chosen]:
                    chosen = index
        if chosen < n_left:
            y = left[chosen]
            remaining -= mentions.attraction[y]
            _count(mentions, theta, y, -1.0)
            # Keep mentioned items first: the last of them moves up, the last of the others takes its place.
            n_left -= 1
            left[chosen] = left[n_left]
            left[n_left] = left[n_left + n_other]
        else:
            if how != 1:
                pick = n_left + integers(stream, n_other)
                y = left[pick]
                left[pick] = left[n_left + n_other - 1]
            n_other -= 1
        if how != 1:
            out[place] = y
    return total


@kernel
def shuffle_unmentioned(stream, mentions, order, places):
    """Deal the items that no list mentions among their places at random."""
    n = 0
    for place in range(order.size):
        if mentions.starts[order[place] + 1] == mentions.starts[order[place]]:
            mentions.left[n] = order[place]
            n += 1
    if n < 2:
        return
    for place in range(order.size):
        if mentions.starts[order[place] + 1] == mentions.starts[order[place]]:
            chosen = integers(stream, n)
            order[place] = mentions.left[chosen]
            places[order[place]] = place
            n -= 1
            mentions.left[chosen] = mentions.left[n]
