# mypy: ignore-errors
"""What a line of a matrix says, summed over intervals of the other axis, and Gibbs over where lines are.

Given the cuts, the conditional of a line's coordinate is constant within each interval between neighboring
cuts (equations 5.13 and 5.14 of Wang, Laskey, Domeniconi & Jordan 2011, with the line placed in the interval:
as printed they leave it out). Putting the line into leaf k, which covers the intervals g0 ... g1 - 1 of the
other axis, multiplies the likelihood by a factor that depends on k alone, so all leaves are scored once
and an interval's score is the sum over the leaves that cross it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba.core import types
from numba.extending import overload

from permix.cocluster.cells.base_lines_jit import BaseLines, LabelLines
from permix.cocluster.cells.blocks_jit import log_gain, slot_rise, total_rise
from permix.cocluster.mondrian.tree_jit import AXIS, CELLS, CUT, HIGH, LEAF, LOW, mark_leaves, nodes_below
from permix.kernels.jit import inlined, is_instance, kernel
from permix.kernels.lines_jit import Lines
from permix.kernels.random import categorical_log_overwrite

# --- what a line says -----------------------------------------------------------------------------


class Room(NamedTuple):
    """What the cells of a line add up to, in the intervals of the other axis before each edge.

    Of slots, those that the line fills are listed; ``seen`` is -1 everywhere between calls.
    """

    cells: np.ndarray  # (intervals + 1,)
    sums: np.ndarray  # (intervals + 1, slots that a line may fill)
    slots: np.ndarray  # (slots that a line may fill,)
    seen: np.ndarray  # (slots,) where a slot is listed
    counts: np.ndarray  # of bases: (classes of all bases + 1, intervals) lines, the last row of any class


def count_classes(data, intervals, n_intervals, n_slots):
    """Return the ``counts`` of a room, and how many slots one line may fill."""
    raise NotImplementedError("count_classes is implemented per kind of data; call it from compiled code")


def by_interval(data, line, intervals, room):
    """Write what the cells of a line in interval g add up to after edge g; interval -1 is left out.

    Returns how many slots are listed. The first row of the room is not written.
    """
    raise NotImplementedError("by_interval is implemented per kind of data; call it from compiled code")


@kernel
def _listed(room, slot, n_active):
    """Return where a slot is listed; a new one comes after ``n_active`` others."""
    a = room.seen[slot]
    if a < 0:
        a = n_active
        room.seen[slot] = a
        room.slots[a] = slot
        for g in range(room.sums.shape[0]):
            room.sums[g, a] = 0
    return a


@inlined
def _list_all(room):
    """List all slots, in order; returns how many there are."""
    for a in range(room.slots.shape[0]):
        room.slots[a] = a
        for g in range(room.sums.shape[0]):
            room.sums[g, a] = 0
    return room.slots.shape[0]


def _levels_by_interval(data, line, intervals, room):
    n_active = _list_all(room)
    for cell in range(data.starts[line], data.starts[line + 1]):
        g = intervals[data.others[cell]]
        if g >= 0:
            room.cells[g + 1] += 1
            room.sums[g + 1, data.codes[cell]] += 1
    return n_active


def _numbers_by_interval(data, line, intervals, room):
    n_active = _list_all(room)
    for cell in range(data.starts[line], data.starts[line + 1]):
        g = intervals[data.others[cell]]
        if g >= 0:
            number = data.codes[cell]
            room.cells[g + 1] += 1
            room.sums[g + 1, 0] += number
            room.sums[g + 1, 1] += number * number
    return n_active


def _bases_by_interval(data, line, intervals, room):
    n_active = 0
    position = 0
    for m in range(data.n_other_classes.shape[0]):
        start = data.table_starts[m] + data.classes[line, m] * data.n_other_classes[m]
        for j in range(data.n_other_classes[m]):
            a = _listed(room, data.tables[start + j], n_active)
            n_active = max(n_active, a + 1)
            for g in range(room.counts.shape[1]):
                room.sums[g + 1, a] += room.counts[position + j, g]
        position += data.n_other_classes[m]
    for g in range(room.counts.shape[1]):
        room.cells[g + 1] = room.counts[position, g]
    for a in range(n_active):
        room.seen[room.slots[a]] = -1
    return n_active


def _labels_by_interval(data, line, intervals, room):
    n_active = 0
    for cell in range(data.starts[line], data.starts[line + 1]):
        g = intervals[data.others[cell]]
        if g >= 0:
            room.cells[g + 1] += 1
            for m in range(data.slots.shape[1]):
                a = _listed(room, data.slots[cell, m], n_active)
                n_active = max(n_active, a + 1)
                room.sums[g + 1, a] += 1
    for a in range(n_active):
        room.seen[room.slots[a]] = -1
    return n_active


@overload(by_interval)
def _choose_by_interval(data, line, intervals, room):
    if is_instance(data, BaseLines):
        return _bases_by_interval
    if is_instance(data, LabelLines):
        return _labels_by_interval
    return _levels_by_interval if _has_levels(data) else _numbers_by_interval


def _no_classes(data, intervals, n_intervals, n_slots):
    return np.empty((0, 0), np.int64), n_slots


def _classes_of_bases(data, intervals, n_intervals, n_slots):
    total = data.n_other_classes.sum()
    counts = np.zeros((total + 1, n_intervals), np.int64)
    for other in range(data.other_classes.shape[0]):
        g = intervals[other]
        if g >= 0:
            position = 0
            for m in range(data.n_other_classes.shape[0]):
                counts[position + data.other_classes[other, m], g] += 1
                position += data.n_other_classes[m]
            counts[total, g] += 1
    return counts, min(n_slots, total)


@overload(count_classes)
def _choose_count_classes(data, intervals, n_intervals, n_slots):
    return _classes_of_bases if is_instance(data, BaseLines) else _no_classes


@kernel
def room_for(tree, data, intervals, n_intervals):
    """Return room to sum what lines say."""
    n_slots = tree.sums.shape[1]
    counts, most = count_classes(data, intervals, n_intervals, n_slots)
    sums = np.empty((n_intervals + 1, most), tree.sums.dtype)
    seen = np.empty(n_slots, np.int64)
    for slot in range(n_slots):
        seen[slot] = -1
    return Room(np.empty(n_intervals + 1, np.int64), sums, np.empty(most, np.int64), seen, counts)


@kernel
def sum_line(data, line, intervals, room):
    """Sum what a line says from the first interval of the other axis on; returns how many slots it fills."""
    for g in range(room.cells.shape[0]):
        room.cells[g] = 0
    n_active = by_interval(data, line, intervals, room)
    for g in range(room.cells.shape[0] - 1):
        room.cells[g + 1] += room.cells[g]
        for a in range(n_active):
            room.sums[g + 1, a] += room.sums[g, a]
    return n_active


# --- Gibbs ------------------------------------------------------------------------------------------


class Frame(NamedTuple):
    """Where the lines of one axis may go: what every sweep over the lines of a matrix reads and writes on."""

    edges: np.ndarray  # of the intervals of this axis
    other_edges: np.ndarray
    leaves: np.ndarray
    ranges: np.ndarray  # (leaves, 4): the intervals of both axes that each leaf covers, first and last + 1
    other_intervals: np.ndarray  # interval of each line of the other axis
    log_lengths: np.ndarray  # of the intervals: the log prior of a line's being there
    steps: np.ndarray  # differences of log likelihoods between neighboring intervals
    scores: np.ndarray


@kernel
def _edges_of(tree, nodes, axis):
    """Return the ends of the first node along an axis and the cuts of that axis at all, ascending."""
    edges = np.empty(nodes.shape[0] + 2)
    edges[0] = tree.numbers[nodes[0], LOW + axis]
    n = 1
    for index in range(nodes.shape[0]):
        if tree.links[nodes[index], AXIS] == axis:
            cut = tree.numbers[nodes[index], CUT]
            place = n
            while edges[place - 1] > cut:
                edges[place] = edges[place - 1]
                place -= 1
            edges[place] = cut
            n += 1
    edges[n] = tree.numbers[nodes[0], HIGH + axis]
    return edges[: n + 1]


@kernel
def interval_at(edges, place):
    """Return the number of the last edge that is not above ``place``."""
    low = 0
    high = edges.shape[0]
    while high - low > 1:
        middle = (low + high) // 2
        if edges[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@kernel
def frame_of(tree, top, axis, other_places):
    """Return the frame of a sweep over the lines of ``axis`` in the node ``top``; lines outside are in -1."""
    nodes = nodes_below(tree, top)
    edges, other_edges = _edges_of(tree, nodes, axis), _edges_of(tree, nodes, 1 - axis)
    leaves = np.empty(nodes.shape[0], np.int64)
    ranges = np.empty((nodes.shape[0], 4), np.int64)
    n = 0
    for index in range(nodes.shape[0]):
        node = nodes[index]
        if tree.links[node, AXIS] == LEAF:
            leaves[n] = node
            for end in range(2):
                column = HIGH if end else LOW
                ranges[n, end] = interval_at(edges, tree.numbers[node, column + axis])
                ranges[n, 2 + end] = interval_at(other_edges, tree.numbers[node, column + 1 - axis])
            n += 1
    intervals = np.empty(other_places.shape[0], np.int64)
    for line in range(other_places.shape[0]):
        inside = other_edges[0] <= other_places[line] < other_edges[-1]
        intervals[line] = interval_at(other_edges, other_places[line]) if inside else -1
    n_intervals = edges.shape[0] - 1
    log_lengths = np.empty(n_intervals)
    for h in range(n_intervals):
        # Two cuts may coincide in floating point: nothing can be between them then.
        length = edges[h + 1] - edges[h]
        log_lengths[h] = math.log(length) if length > 0.0 else -np.inf
    steps, scores = np.empty(n_intervals + 1), np.empty(n_intervals)
    return Frame(edges, other_edges, leaves[:n], ranges[:n], intervals, log_lengths, steps, scores)


@kernel
def place_between(rng, low, high):
    """Draw a place in [low, high)."""
    place = low + (high - low) * rng.random()
    return place if place < high else low  # rounded up to the end


@inlined
def leave(rng, frame, places, line):
    """Return the interval of a line to be drawn anew; -1 if there is only one, in which it moves freely."""
    if frame.scores.shape[0] == 1:
        places[line] = rng.random()
        return -1
    for h in range(frame.steps.shape[0]):
        frame.steps[h] = 0.0
    return interval_at(frame.edges, places[line])


@inlined
def enter(rng, frame, places, line):
    """Draw the interval of a line, and its place there; returns the interval."""
    total = 0.0
    for h in range(frame.scores.shape[0]):
        total += frame.steps[h]
        frame.scores[h] = total + frame.log_lengths[h]
    chosen = categorical_log_overwrite(rng, frame.scores, frame.scores.shape[0])
    places[line] = place_between(rng, frame.edges[chosen], frame.edges[chosen + 1])
    return chosen


@kernel
def add_line(tree, frame, interval, room, n_active):
    """Add what a line says to the leaves of its interval."""
    leaves, ranges = frame.leaves, frame.ranges
    for index in range(leaves.shape[0]):
        g0, g1 = ranges[index, 2], ranges[index, 3]
        m = room.cells[g1] - room.cells[g0]
        if m > 0 and ranges[index, 0] <= interval < ranges[index, 1]:
            leaf = leaves[index]
            tree.links[leaf, CELLS] += m
            for a in range(n_active):
                tree.sums[leaf, room.slots[a]] += room.sums[g1, a] - room.sums[g0, a]


def sweep(rng, axis, prior, tree, data, places, other_places):
    """Draw the coordinate of every line of ``axis`` in turn; returns how many changed their interval.

    ``data`` are the lines of this axis: labels have many slots of which a line fills few, and each kind of
    them has a sweep of its own.
    """
    raise NotImplementedError("sweep is implemented per kind of data; call it from compiled code")


def _has_levels(data):
    """Whether the cells of lines are codes of levels, by the type of the lines."""
    return isinstance(data.types[2].dtype, types.Integer)


def _sweep_levels(rng, axis, prior, tree, data, places, other_places):
    return sweep_level_lines(rng, axis, prior, tree, data, places, other_places)


def _sweep_numbers(rng, axis, prior, tree, data, places, other_places):
    return sweep_lines(rng, axis, prior, tree, data, places, other_places)


@overload(sweep)
def _choose_sweep(rng, axis, prior, tree, data, places, other_places):
    if not is_instance(data, Lines):
        return None
    return _sweep_levels if _has_levels(data) else _sweep_numbers


@kernel
def sweep_level_lines(rng, axis, prior, tree, data, places, other_places):
    """Do as :func:`sweep_lines` where cells have levels, three times as fast: nothing is looked up twice.

    Statistics of leaves are side by side while the sweep lasts, the number of cells after those of levels.
    """
    frame = frame_of(tree, 0, axis, other_places)
    leaves, ranges, steps = frame.leaves, frame.ranges, frame.steps
    n_leaves, n_levels, n_others = leaves.shape[0], tree.sums.shape[1], frame.other_edges.shape[0] - 1
    counts = np.empty((n_leaves, n_levels + 1), np.int64)
    for index in range(n_leaves):
        counts[index, n_levels] = tree.links[leaves[index], CELLS]
        for level in range(n_levels):
            counts[index, level] = tree.sums[leaves[index], level]
    # What a line has in the intervals of the other axis before each edge.
    before = np.empty((n_others + 1, n_levels + 1), np.int64)
    n_moved = 0
    for line in range(places.shape[0]):
        own = leave(rng, frame, places, line)
        if own < 0:
            continue
        for g in range(n_others + 1):
            for level in range(n_levels + 1):
                before[g, level] = 0
        for cell in range(data.starts[line], data.starts[line + 1]):
            g = frame.other_intervals[data.others[cell]] + 1
            before[g, data.codes[cell]] += 1
            before[g, n_levels] += 1
        for g in range(n_others):
            for level in range(n_levels + 1):
                before[g + 1, level] += before[g, level]
        for index in range(n_leaves):
            g0, g1 = ranges[index, 2], ranges[index, 3]
            m = before[g1, n_levels] - before[g0, n_levels]
            if m == 0:
                continue
            h0, h1 = ranges[index, 0], ranges[index, 1]
            inside = 1 if h0 <= own < h1 else 0
            n = counts[index, n_levels] - inside * m
            counts[index, n_levels] = n
            gain = total_rise(prior, n) - total_rise(prior, n + m)
            for level in range(n_levels):
                x = before[g1, level] - before[g0, level]
                if x != 0:
                    present = counts[index, level] - inside * x
                    counts[index, level] = present
                    gain += slot_rise(prior, present + x) - slot_rise(prior, present)
            steps[h0] += gain
            steps[h1] -= gain
        chosen = enter(rng, frame, places, line)
        n_moved += chosen != own
        for index in range(n_leaves):
            if ranges[index, 0] <= chosen < ranges[index, 1]:
                g0, g1 = ranges[index, 2], ranges[index, 3]
                for level in range(n_levels + 1):
                    counts[index, level] += before[g1, level] - before[g0, level]
    for index in range(n_leaves):
        tree.links[leaves[index], CELLS] = counts[index, n_levels]
        for level in range(n_levels):
            tree.sums[leaves[index], level] = counts[index, level]
    mark_leaves(prior, tree, 0)
    return n_moved


@kernel
def sweep_lines(rng, axis, prior, tree, data, places, other_places):
    """Draw the coordinate of every line of ``axis`` in turn; returns how many changed their interval.

    ``data`` are the lines of this axis. Cached marginals of leaves are not kept: see ``mark_leaves``.
    """
    frame = frame_of(tree, 0, axis, other_places)
    ranges = frame.ranges
    room = room_for(tree, data, frame.other_intervals, frame.other_edges.shape[0] - 1)
    part = np.empty(room.slots.shape[0], tree.sums.dtype)
    n_moved = 0
    for line in range(places.shape[0]):
        own = leave(rng, frame, places, line)
        if own < 0:
            continue
        n_active = sum_line(data, line, frame.other_intervals, room)
        for index in range(frame.leaves.shape[0]):
            leaf = frame.leaves[index]
            h0, h1, g0, g1 = ranges[index, 0], ranges[index, 1], ranges[index, 2], ranges[index, 3]
            m = room.cells[g1] - room.cells[g0]
            if m == 0:
                continue
            for a in range(n_active):
                part[a] = room.sums[g1, a] - room.sums[g0, a]
            if h0 <= own < h1:
                tree.links[leaf, CELLS] -= m
                for a in range(n_active):
                    tree.sums[leaf, room.slots[a]] -= part[a]
            gain = log_gain(prior, tree.links[leaf, CELLS], tree.sums[leaf], m, room.slots, part, 0, n_active)
            frame.steps[h0] += gain
            frame.steps[h1] -= gain
        chosen = enter(rng, frame, places, line)
        n_moved += chosen != own
        add_line(tree, frame, chosen, room, n_active)
    mark_leaves(prior, tree, 0)
    return n_moved


@kernel
def recount(prior, tree, top, data, places, other_places):
    """Compute the statistics of all leaves below ``top`` afresh from the cells of the rows in it.

    Returns ln p of these cells.
    """
    frame = frame_of(tree, top, 0, other_places)
    room = room_for(tree, data, frame.other_intervals, frame.other_edges.shape[0] - 1)
    for index in range(frame.leaves.shape[0]):
        tree.links[frame.leaves[index], CELLS] = 0
        for slot in range(tree.sums.shape[1]):
            tree.sums[frame.leaves[index], slot] = 0
    for line in range(places.shape[0]):
        if frame.edges[0] <= places[line] < frame.edges[-1]:
            n_active = sum_line(data, line, frame.other_intervals, room)
            add_line(tree, frame, interval_at(frame.edges, places[line]), room, n_active)
    return mark_leaves(prior, tree, top)
