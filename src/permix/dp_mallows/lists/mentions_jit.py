# mypy: ignore-errors
"""What the center and the decays of a cluster depend on: which items its lists mention, at which rank.

Where there are few items, a cluster keeps counts of pairs: of its members with item y at rank j and item x
before it. These say all that is needed: the skips of the members under any center, and the energies of the
moves of the center for any decays; no list is read again. Where there are many, the members' lists are read.
Which of the two is chosen by the type of ``source``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.dp_mallows.lists.top_lists_jit import Members, sum_skips, undefined
from permix.kernels.jit import implements, kernel

# Pairs are counted where a cluster has no more of them: stages × items².
MOST_PAIRS = 2**13
# Where lists are read, C is tabulated for up to so many mentioned items; with more, lists are walked.
MOST_TABULATED = 256


class ByPair(NamedTuple):
    """Clusters as counts of pairs.

    ``counts[k, j, y, x]`` are the members of k with y at rank j and x before it, or, x = y, with y there.
    """

    counts: np.ndarray  # (clusters, stages, items, items)
    alone: np.ndarray  # int32 (clusters,): the list of a cluster of one agent, -1 for larger ones


class ByList(NamedTuple):
    """Clusters as lists: those of cluster k are the members ``starts[k]`` to ``starts[k + 1]``."""

    lists: tuple
    starts: np.ndarray
    members: Members


class Mentions(NamedTuple):
    """Items by how a cluster's lists mention them, and room for the moves of its center.

    Where lists are read, mentions ``starts[x]`` to ``starts[x + 1]`` are those of item x.
    """

    pairs: np.ndarray  # (stages, items, items); empty where lists are read
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
def add_pairs(lists, d, times, counts):
    """Count the pairs of list ``d`` so many times; nothing where ``counts`` is empty."""
    first = lists.starts[d]
    for j in range(min(lists.starts[d + 1] - first, counts.shape[0])):
        row = counts[j, lists.items[first + j]]
        for at in range(first, first + j + 1):
            row[lists.items[at]] += times


@kernel
def count_pairs(lists, labels, n_clusters, counts):
    """Count the pairs of the first ``n_clusters`` anew; agents with a negative label are left out."""
    for k in range(n_clusters):
        flat = counts[k].reshape(-1)
        for at in range(flat.size):
            flat[at] = 0.0
    times = np.zeros(n_clusters)
    for d in range(lists.starts.size - 1):
        agents = lists.agents[lists.agent_starts[d] : lists.agent_starts[d + 1]]
        for agent in agents:
            if labels[agent] >= 0:
                times[labels[agent]] += 1.0
        for agent in agents:
            k = labels[agent]
            if k >= 0 and times[k] > 0.0:
                add_pairs(lists, d, times[k], counts[k])
                times[k] = 0.0


@kernel
def _with_room(pairs, items, starts, spans, times):
    """Name the items that are mentioned, and make room for the moves."""
    n_items = starts.size - 1
    numbers = np.empty((4, n_items), np.int32)
    n = 0
    for item in range(n_items):
        if starts[item + 1] > starts[item]:
            numbers[0, n] = item
            numbers[1, item] = n
            n += 1
    size = n if pairs.size or n <= MOST_TABULATED else 0
    reals = np.zeros((4, n_items + 1))
    return Mentions(
        pairs,
        items,
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


@kernel
def count_mentions(pairs):
    """Return the items that counts of pairs mention."""
    n_items = pairs.shape[1]
    starts = np.zeros(n_items + 1, np.int64)
    for item in range(n_items):
        mentioned = 0.0
        for j in range(pairs.shape[0]):
            mentioned += pairs[j, item, item]
        starts[item + 1] = starts[item] + (mentioned > 0.0)
    return _with_room(pairs, np.empty(0, np.int32), starts, np.empty((0, 3), np.int64), np.empty(0))


@kernel
def find_mentions(lists, members, first, last, n_items):
    """Return the mentions of every item in the lists of the entries ``first`` to ``last``."""
    starts = np.zeros(n_items + 2, np.int64)
    for entry in range(first, last):
        d = members.lists[entry]
        for at in range(lists.starts[d], lists.starts[d + 1]):
            starts[lists.items[at] + 2] += 1
    for item in range(n_items):
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
    return _with_room(np.empty((0, 0, 0)), lists.items, starts[: n_items + 1], spans, times)


@kernel
def attract(mentions, theta):
    """Write A and, where it has room, C (see :mod:`permix.dp_mallows.lists.center_moves_jit`)."""
    pairs = mentions.pairs
    for item in range(mentions.position.size):
        total = 0.0
        if pairs.size:
            for j in range(pairs.shape[0]):
                total += theta[j] * pairs[j, item, item]
        else:
            for at in range(mentions.starts[item], mentions.starts[item + 1]):
                total += theta[mentions.spans[at, 1] - mentions.spans[at, 0]] * mentions.times[at]
        mentions.attraction[item] = total
    for index in range(mentions.table.shape[0]):
        row = mentions.table[index]
        for other in range(row.size):
            row[other] = 0.0
        y = mentions.mentioned[index]
        if pairs.size:
            for j in range(pairs.shape[0]):
                for other in range(row.size):
                    row[other] += theta[j] * pairs[j, y, mentions.mentioned[other]]
            row[index] = 0.0
            continue
        for at in range(mentions.starts[y], mentions.starts[y + 1]):
            begin, own = mentions.spans[at, 0], mentions.spans[at, 1]
            weight = theta[own - begin] * mentions.times[at]
            for other in range(begin, own):
                row[mentions.position[mentions.items[other]]] += weight


# What is asked of a source.


def survey(source, k, n_items):
    """Return the mentions of cluster ``k``."""
    undefined("survey")


def total_skips(source, k, places, totals, counts):
    """Write by stage the total of the skips of cluster ``k`` under a center, and how many lists reach it."""
    undefined("total_skips")


def alone_in(source, k):
    """Return the list of a cluster of one agent, -1 for larger ones."""
    undefined("alone_in")


def source_of(source, lists, members, n, n_stages, n_items):
    """Return the first ``n`` members as cluster 0 of another source of this type."""
    undefined("source_of")


@implements(survey, ByPair, "source")
def _survey(source, k, n_items):
    return count_mentions(source.counts[k])


@implements(total_skips, ByPair, "source")
def _total_skips(source, k, places, totals, counts):
    for j in range(totals.size):
        total, number = 0.0, 0.0
        for y in range(places.size):
            row = source.counts[k, j, y]
            if row[y] > 0.0:
                number += row[y]
                total += row[y] * places[y]
                for x in range(places.size):
                    if places[x] < places[y]:
                        total -= row[x]
        totals[j] = total
        counts[j] = number


@implements(alone_in, ByPair, "source")
def _alone_in(source, k):
    return np.int64(source.alone[k])


@implements(source_of, ByPair, "source")
def _source_of(source, lists, members, n, n_stages, n_items):
    counts = np.zeros((1, n_stages, n_items, n_items))
    for entry in range(n):
        add_pairs(lists, members.lists[entry], members.times[entry], counts[0])
    return ByPair(counts, source.alone)


@implements(survey, ByList, "source")
def _survey_lists(source, k, n_items):
    return find_mentions(source.lists, source.members, source.starts[k], source.starts[k + 1], n_items)


@implements(total_skips, ByList, "source")
def _total_skips_of_lists(source, k, places, totals, counts):
    first, last = source.starts[k], source.starts[k + 1]
    sum_skips(source.lists, source.members, first, last, places, totals, counts)


@implements(alone_in, ByList, "source")
def _alone_in_lists(source, k):
    first = source.starts[k]
    if source.starts[k + 1] == first + 1 and source.members.times[first] == 1.0:
        return np.int64(source.members.lists[first])
    return -1


@implements(source_of, ByList, "source")
def _source_of_lists(source, lists, members, n, n_stages, n_items):
    starts = np.empty(2, np.int64)
    starts[0], starts[1] = 0, n
    return ByList(lists, starts, members)
