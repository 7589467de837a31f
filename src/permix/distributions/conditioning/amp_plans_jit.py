# mypy: ignore-errors
"""What AMP must look at, step by step: made once per agent and center.

A *slot* is the present place of one inserted item, or of the first or last item of a level; an insertion
raises the slots at or behind it by one. Free items look at no slot; items of levels at two, the boundaries
of the neighboring levels that are present; any other preferences need a slot per constrained item, and each
item looks at the inserted ones next to it in the partial order. Where the preferences partition all
items, the allowed places are known without any slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.kernels.bits import bits_below, popcount
from permix.kernels.fenwick import count_below, insert, n_words
from permix.kernels.jit import kernel
from permix.kernels.posets import build_graph, closure_bits, room_for_graphs, sort_graph

Array = npt.NDArray[Any]

NOWHERE = 1 << 30  # behind everything


class Plan(NamedTuple):
    """What AMP must look at, step by step, for one agent and one center."""

    n_constrained: int
    n_slots: int
    steps: Array  # steps of the constrained items, ascending
    base_low: Array  # first and last allowed place before looking at slots
    base_high: Array
    low_start: Array  # constrained item c must be behind the slots low_slots[low_start[c]:low_start[c + 1]]
    low_slots: Array
    high_start: Array  # and before these
    high_slots: Array
    last_slot: Array  # slot that is at least the place of item c; -1 where nobody will look
    first_slot: Array  # slot that is at most the place of item c; the same one for an item alone
    only_levels: bool  # levels over some of the items: one slot at most on either side, no base
    partitioned: bool  # the preferences partition all items: AMP is exact


@kernel
def room_for_plan(n_items):
    """Memory for the plan of an agent who gave levels alone, reused from agent to agent."""
    return Plan(
        0,
        0,
        np.empty(n_items, np.int32),
        np.empty(n_items, np.int32),
        np.empty(n_items, np.int32),
        np.empty(n_items + 1, np.int32),
        np.empty(n_items, np.int32),
        np.empty(n_items + 1, np.int32),
        np.empty(n_items, np.int32),
        np.empty(n_items, np.int32),
        np.empty(n_items, np.int32),
        True,
        False,
    )


@kernel
def make_plan(arrays, agent, ranks, room):
    """Return the plan of an agent whose preferences have no cycle; ``room`` may be overwritten.

    ``ranks`` is the rank vector of the center.
    """
    if arrays.pair_indptr[agent + 1] > arrays.pair_indptr[agent]:
        return _plan_closure(arrays, agent, ranks)
    listed = arrays.level_indptr[agent + 1] - arrays.level_indptr[agent]
    if listed > 0 and arrays.rest_below[agent]:
        return _plan_partition(arrays, agent, ranks, room)
    return _plan_levels(arrays, agent, ranks, room)


@kernel
def _plan_partition(arrays, agent, ranks, room):
    """All items are in levels: what is inserted of better levels and of one's own gives the places."""
    n = ranks.size
    first, last = arrays.level_indptr[agent], arrays.level_indptr[agent + 1]
    n_levels = 1 + arrays.levels[last - 1]
    level_at = np.full(n, n_levels, np.int32)  # the rest is a level below
    sizes = np.zeros(n_levels + 1, np.int32)
    for p in range(first, last):
        level_at[ranks[arrays.level_items[p]]] = arrays.levels[p]
        sizes[arrays.levels[p]] += 1
    sizes[n_levels] = n - (last - first)
    starts = np.zeros(sizes.size + 1, np.int32)
    for level in range(sizes.size):
        starts[level + 1] = starts[level] + sizes[level]
        sizes[level] = 0
    # Inserted items take numbers of their level's range: counting below a range counts better levels.
    words = np.zeros(n_words(n + 1), np.uint64)
    tree = np.zeros(words.size + 1, np.int32)
    for i in range(n):
        level = level_at[i]
        room.steps[i] = i
        room.base_low[i] = count_below(words, tree, starts[level])
        room.base_high[i] = room.base_low[i] + sizes[level]
        room.low_start[i] = room.high_start[i] = 0
        room.last_slot[i] = -1
        insert(words, tree, np.int64(starts[level] + sizes[level]))
        sizes[level] += 1
    room.low_start[n] = room.high_start[n] = 0
    return _plan_in(room, n, 0, True)


@kernel
def _plan_in(room, n_constrained, n_slots, partitioned):
    return Plan(
        n_constrained,
        n_slots,
        room.steps,
        room.base_low,
        room.base_high,
        room.low_start,
        room.low_slots,
        room.high_start,
        room.high_slots,
        room.last_slot,
        room.first_slot,
        not partitioned,
        partitioned,
    )


@kernel
def _plan_levels(arrays, agent, ranks, room):
    """Levels over some items: look at the end of the next better level, the start of the next worse."""
    first, last = arrays.level_indptr[agent], arrays.level_indptr[agent + 1]
    if first == last:
        return _plan_in(room, 0, 0, True)
    n_levels = 1 + np.int64(arrays.levels[last - 1])
    sizes = np.zeros(n_levels, np.int32)
    last_of = np.full(n_levels, -1, np.int32)
    first_of = np.full(n_levels, -1, np.int32)
    level_at = np.empty(ranks.size, np.int32)
    listed = np.zeros(n_words(ranks.size), np.uint64)
    for p in range(first, last):
        step = ranks[arrays.level_items[p]]
        level_at[step] = arrays.levels[p]
        listed[step >> 6] |= np.uint64(1) << np.uint64(step & 63)
        sizes[arrays.levels[p]] += 1
    c = n_low = n_high = n_slots = 0
    for word in range(listed.size):
        rest = listed[word]
        while rest:
            lowest = rest & (~rest + np.uint64(1))
            rest ^= lowest
            step = (word << 6) + popcount(lowest - np.uint64(1))
            level = level_at[step]
            room.steps[c] = step
            room.base_low[c] = 0
            room.base_high[c] = step
            room.low_start[c] = n_low
            room.high_start[c] = n_high
            better = level - 1
            while better >= 0 and last_of[better] < 0:
                better -= 1
            if better >= 0:
                room.low_slots[n_low] = last_of[better]
                n_low += 1
            worse = level + 1
            while worse < n_levels and first_of[worse] < 0:
                worse += 1
            if worse < n_levels:
                room.high_slots[n_high] = first_of[worse]
                n_high += 1
            if last_of[level] < 0:
                last_of[level] = n_slots
                if sizes[level] > 1:
                    n_slots += 1
                first_of[level] = n_slots
                n_slots += 1
            room.last_slot[c] = last_of[level]
            room.first_slot[c] = first_of[level]
            c += 1
    room.low_start[c] = n_low
    room.high_start[c] = n_high
    return _plan_in(room, c, n_slots, False)


@kernel
def relation_bits(arrays, agent, ranks):
    """Constrained items of an agent as steps of the center, and their closed relation as bits over them.

    Returns ``steps`` (ascending), ``below`` and ``above`` (rows of words: whom item c is better, worse than).
    Constrained are all mentioned items, and where the rest is below, all items.
    """
    n = ranks.size
    graph = room_for_graphs(arrays, n, agent, agent + 1)
    n_mentioned, n_listed, n_nodes = build_graph(arrays, agent, graph)
    sort_graph(graph, n_nodes)
    bits = closure_bits(graph, n_mentioned, n_nodes)
    rest = n_listed > 0 and arrays.rest_below[agent]
    node_at = np.full(n, -1, np.int32)
    for node in range(n_mentioned):
        node_at[ranks[graph.items[node]]] = node
    steps = np.empty(n if rest else n_mentioned, np.int32)
    node_of = np.empty(steps.size, np.int32)
    number = np.empty(n_mentioned, np.int32)
    c = 0
    for i in range(n):
        if rest or node_at[i] >= 0:
            steps[c] = i
            node_of[c] = node_at[i]
            if node_at[i] >= 0:
                number[node_at[i]] = c
            c += 1
    words = (steps.size + 63) // 64
    below = np.zeros((steps.size, words), np.uint64)
    above = np.zeros((steps.size, words), np.uint64)
    for c in range(steps.size):
        node = node_of[c]
        if node < 0:
            continue
        for other in range(n_mentioned):
            if (bits[node, other >> 6] >> np.uint64(other & 63)) & np.uint64(1):
                _relate(below, above, c, number[other])
        if rest and node < n_listed:
            for d in range(steps.size):
                if node_of[d] < 0:
                    _relate(below, above, c, d)
    return steps, below, above


@kernel
def relation_matrix(bits):
    """Return rows of bits over as many items as a square matrix of booleans."""
    size = bits.shape[0]
    out = np.empty((size, size), np.bool_)
    for a in range(size):
        for b in range(size):
            out[a, b] = (bits[a, b >> 6] >> np.uint64(b & 63)) & np.uint64(1) != 0
    return out


@kernel
def _relate(below, above, better, worse):
    below[better, worse >> 6] |= np.uint64(1) << np.uint64(worse & 63)
    above[worse, better >> 6] |= np.uint64(1) << np.uint64(better & 63)


@kernel
def _plan_closure(arrays, agent, ranks):
    """Any preferences: one slot per constrained item; look at those inserted with nobody in between."""
    steps, below, above = relation_bits(arrays, agent, ranks)
    size = steps.size
    low_start = np.empty(size + 1, np.int32)
    high_start = np.empty(size + 1, np.int32)
    low_slots = np.empty(max(size, 16), np.int32)
    high_slots = np.empty(max(size, 16), np.int32)
    n_low = n_high = 0
    for c in range(size):
        low_start[c] = n_low
        high_start[c] = n_high
        for a in range(c):
            word, bit = a >> 6, np.uint64(1) << np.uint64(a & 63)
            if above[c, word] & bit and _none_between(below[a], above[c], c):
                if n_low == low_slots.size:
                    low_slots = doubled(low_slots)
                low_slots[n_low] = a
                n_low += 1
            elif below[c, word] & bit and _none_between(above[a], below[c], c):
                if n_high == high_slots.size:
                    high_slots = doubled(high_slots)
                high_slots[n_high] = a
                n_high += 1
    low_start[size] = n_low
    high_start[size] = n_high
    slots = np.arange(size).astype(np.int32)
    return Plan(
        size,
        size,
        steps,
        np.zeros(size, np.int32),
        steps,
        low_start,
        low_slots,
        high_start,
        high_slots,
        slots,
        slots,
        False,
        False,
    )


@kernel
def _none_between(one, other, before):
    """Say whether two bit rows share no number below ``before``."""
    for word in range((before + 63) >> 6):
        common = one[word] & other[word]
        if word == before >> 6:
            common &= bits_below(before & 63)
        if common:
            return False
    return True


@kernel
def doubled(values):
    """Return an array twice as long that begins with ``values``."""
    grown = np.empty((2 * values.shape[0], *values.shape[1:]), values.dtype)
    grown[: values.shape[0]] = values
    return grown


# The slots of one draw.


@kernel
def clear_slots(plan, slots):
    """Set slots to before the first item is inserted."""
    for c in range(plan.n_constrained):
        if plan.last_slot[c] >= 0:
            slots[plan.first_slot[c]] = NOWHERE
            slots[plan.last_slot[c]] = -1


@kernel
def allowed_places(plan, c, slots):
    """Return the first and the last place that the preferences allow constrained item c."""
    low = np.int64(plan.base_low[c])
    high = np.int64(plan.base_high[c])
    for e in range(plan.low_start[c], plan.low_start[c + 1]):
        low = max(low, np.int64(slots[plan.low_slots[e]]) + 1)
    for e in range(plan.high_start[c], plan.high_start[c + 1]):
        high = min(high, np.int64(slots[plan.high_slots[e]]))
    return low, high


@kernel
def raise_slots(slots, n_slots, place):
    """Follow an insertion at ``place``."""
    bound = np.int32(place)
    for s in range(n_slots):
        slots[s] += slots[s] >= bound


@kernel
def write_slots(plan, c, place, slots):
    """Note the place of constrained item c."""
    last, first = plan.last_slot[c], plan.first_slot[c]
    if last >= 0:
        slots[last] = max(slots[last], np.int32(place))
        slots[first] = min(slots[first], np.int32(place))


@kernel
def allows(plan, slots, places):
    """Say whether the preferences allow the ordering with these insertion places."""
    clear_slots(plan, slots)
    c = 0
    for i in range(places.size):
        constrained = c < plan.n_constrained and plan.steps[c] == i
        if constrained:
            low, high = allowed_places(plan, c, slots)
            if places[i] < low or places[i] > high:
                return False
        raise_slots(slots, plan.n_slots, places[i])
        if constrained:
            write_slots(plan, c, places[i], slots)
            c += 1
    return True
