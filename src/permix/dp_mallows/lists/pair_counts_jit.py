# mypy: ignore-errors
"""What the center and the decays of a cluster depend on, where there are few items: counts of pairs.

They count the members with item y at rank j and item x before it, which says all that is needed: the skips of
the members under any center, and the energies of the moves of the center for any decays; no list is read
again. Where there are many items, lists are read, see ``many_items_jit``. Which of the two is chosen by the
type of ``source``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.dp_mallows.lists.top_lists_jit import undefined
from permix.kernels.jit import implements, kernel

# Pairs are counted where a cluster has no more of them: stages × items².
MOST_PAIRS = 2**13


class ByPair(NamedTuple):
    """Clusters as counts of pairs.

    ``counts[k, j, y, x]`` are the members of k with y at rank j and x before it, or, x = y, with y there.
    """

    counts: np.ndarray  # (clusters, stages, items, items)
    alone: np.ndarray  # int32 (clusters,): the list of a cluster of one agent, -1 for larger ones


class Pairs(NamedTuple):
    """Counts of pairs of a cluster, and room for the moves of its center."""

    pairs: np.ndarray  # (stages, items, items)
    table: np.ndarray  # C_xy at [y, x]
    attraction: np.ndarray  # A, by item
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
    """Add the pairs of the first ``n_clusters`` to ``counts``; agents with a negative label are left out."""
    times = np.empty(n_clusters)
    for k in range(n_clusters):
        times[k] = 0.0
    for d in range(lists.starts.size - 1):
        for at in range(lists.agent_starts[d], lists.agent_starts[d + 1]):
            k = labels[lists.agents[at]]
            if k >= 0:
                times[k] += 1.0
        for at in range(lists.agent_starts[d], lists.agent_starts[d + 1]):
            k = labels[lists.agents[at]]
            if k >= 0 and times[k] > 0.0:
                add_pairs(lists, d, times[k], counts[k])
                times[k] = 0.0


@kernel
def with_room(pairs):
    """Return counts of pairs with room for the moves of a center."""
    n = pairs.shape[1]
    reals, numbers = np.empty((n + 3, n + 1)), np.empty((2, n), np.int32)
    return Pairs(pairs, reals[3:], reals[0], reals[1], reals[2], numbers[0], numbers[1])


# What is asked of a source.


def survey(source, k, n_items):
    """Return the Pairs or Mentions of cluster ``k``."""
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
    return with_room(source.counts[k])


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
    counts = np.empty((1, n_stages, n_items, n_items))
    for j in range(n_stages):
        for y in range(n_items):
            for x in range(n_items):
                counts[0, j, y, x] = 0.0
    for entry in range(n):
        add_pairs(lists, np.int64(members.lists[entry]), members.times[entry], counts[0])
    return ByPair(counts, source.alone)
