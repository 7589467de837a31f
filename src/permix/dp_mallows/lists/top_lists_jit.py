# mypy: ignore-errors
"""Top-t lists as the samplers see them: every distinct list once, and who gave it.

The skip s_j of a list at stage j, given a center, is how many items the list has not used yet stand before
its j-th item in the center (Meilă & Chen 2010, equation 1): the item's place less the number of earlier items
of the list with a smaller place. For short lists and many centers, counting these pair by pair is the fastest
way, with places as 16-bit numbers, centers last, so that one word holds those of four centers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.errors import DataError
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import kernel

MOST_ITEMS = 32_767
HIGHEST = np.uint64(0x8000800080008000)


def undefined(name):
    """Say that a contract was called from Python."""
    raise NotImplementedError(f"{name} is implemented by the type of an argument; call it from compiled code")


@by_reference
class TopLists(NamedTuple):
    """Distinct lists in rows of CSR form, and the agents who gave them.

    ``items[starts[d]:starts[d + 1]]`` is list d, best first, without the last item where it ranks all of
    them. ``agents[agent_starts[d]:agent_starts[d + 1]]`` gave list d; ``list_of`` is the other way round.
    """

    starts: np.ndarray  # int64 (lists + 1,)
    items: np.ndarray  # int32
    list_of: np.ndarray  # int32 (agents,)
    agent_starts: np.ndarray  # int64 (lists + 1,)
    agents: np.ndarray  # int32 (agents,)


class Members(NamedTuple):
    """Lists of clusters: entry e is list ``lists[e]``, given ``times[e]`` times."""

    lists: np.ndarray  # int32
    times: np.ndarray


def collect_members(lists: TopLists, labels: np.ndarray, n_clusters: int) -> tuple[np.ndarray, Members]:
    """Sort the lists by cluster: those of cluster k are entries ``starts[k]`` to ``starts[k + 1]``.

    A list given by several agents of one cluster is one entry. Agents with a negative label are left out.
    """
    by_list = labels[lists.agents]
    # Numbers of 16 bits are sorted in one go.
    keys = by_list.astype(np.int16) if n_clusters <= np.iinfo(np.int16).max else by_list
    order = np.argsort(keys, kind="stable")[np.count_nonzero(by_list < 0) :]
    cluster, number = by_list[order], lists.list_of[lists.agents[order]]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (cluster[1:] != cluster[:-1]) | (number[1:] != number[:-1])
    first = np.flatnonzero(new)
    times = np.diff(first, append=len(order)).astype(np.float64)
    return np.searchsorted(cluster[first], np.arange(n_clusters + 1)), Members(number[first], times)


def top_lists(orders: np.ndarray, lengths: np.ndarray, counts: np.ndarray, n_items: int) -> TopLists:
    """Collect rows of item numbers, best first, padded by -1, each given by ``counts`` agents."""
    if n_items > MOST_ITEMS:
        raise DataError(f"there are {n_items} items; the samplers take at most {MOST_ITEMS}")
    kept = np.minimum(lengths, max(n_items - 1, 1))
    width = int(kept.max(initial=0))
    rows = np.where(np.arange(width) < kept[:, None], orders[:, :width], -1).astype(np.int32)
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    sizes = (distinct >= 0).sum(axis=1)
    list_of = np.repeat(inverse, counts).astype(np.int32)
    return TopLists(
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        items=np.ascontiguousarray(distinct[distinct >= 0]),
        list_of=list_of,
        agent_starts=np.concatenate([[0], np.cumsum(np.bincount(list_of, minlength=len(distinct)))]).astype(
            np.int64
        ),
        agents=np.argsort(list_of, kind="stable").astype(np.int32),
    )


@kernel
def write_stage(items, first, j, words, n_slots, skips):
    """Write the skips at stage ``j`` of the list that begins at ``items[first]``, four centers at a time.

    ``words[item]`` are the places of the item in the centers, 16-bit numbers below 2^15, four to a word. In a
    word whose numbers have their highest bit set, less another word, that bit stays where a number was not
    smaller. ``skips`` has room for a multiple of four.
    """
    item = items[first + j]
    for word in range((n_slots + 3) // 4):
        own = words[item, word]
        raised = own | HIGHEST
        for earlier in range(first, first + j):
            own -= ((raised - words[items[earlier], word]) & HIGHEST) >> np.uint64(15)
        for lane in range(4):
            skips[4 * word + lane] = np.int16(own & np.uint64(0x7FFF))
            own >>= np.uint64(16)


@kernel
def write_skips(items, first, last, words, n_slots, skips):
    """Write the skips of the list ``items[first:last]`` to ``skips[stage, center]``, for ``n_slots`` centers.

    They are written, and must be centers, up to the next multiple of four.
    """
    for j in range(last - first):
        write_stage(items, first, j, words, n_slots, skips[j])


@kernel
def skip_at(items, first, j, places):
    """Return the skip at stage ``j`` of the list that begins at ``items[first]``, under one center."""
    place = np.int64(places[items[first + j]])
    skip = place
    for earlier in range(j):
        skip -= places[items[first + earlier]] < place
    return skip


@kernel
def sum_skips(lists, members, first, last, places, totals, counts):
    """Write by stage the total of the skips of some lists under a center, and how many lists reach it.

    Totals of parts of the data add up to those of the whole.
    """
    for j in range(totals.size):
        totals[j] = 0.0
        counts[j] = 0.0
    for entry in range(first, last):
        start = lists.starts[members.lists[entry]]
        for j in range(lists.starts[members.lists[entry] + 1] - start):
            totals[j] += members.times[entry] * skip_at(lists.items, start, j, places)
            counts[j] += members.times[entry]
