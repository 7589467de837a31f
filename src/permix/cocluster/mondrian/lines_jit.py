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
from permix.cocluster.cells.blocks_jit import log_gain
from permix.cocluster.cells.cell_lines_jit import Lines
from permix.cocluster.mondrian.tree_jit import (
    CELLS,
    HIGH,
    LOW,
    edges_of,
    interval_at,
    leaf_ranges,
    mark_leaves,
    place_between,
)
from permix.kernels.jit import is_instance, kernel
from permix.kernels.random import categorical_log_overwrite

# --- what a line says -----------------------------------------------------------------------------


def class_counts(data, other_intervals, n_intervals):
    """Return, for data that need it, how many lines of each class are in each interval of the other axis."""
    raise NotImplementedError("class_counts is implemented per kind of data; call it from compiled code")


def n_most_active(data, n_slots):
    """Return the most slots that one line can fill."""
    raise NotImplementedError("n_most_active is implemented per kind of data; call it from compiled code")


def by_interval(data, line, other_intervals, n_intervals, counts, cells, values, slots, seen):
    """Sum the cells of ``line`` over intervals of the other axis; those in interval -1 are left out.

    Fills ``cells[g]``, how many there are, and ``values[g, a]``, what they add to slot ``slots[a]``; returns
    how many slots are active. ``seen`` is -1 everywhere, before and after.
    """
    raise NotImplementedError("by_interval is implemented per kind of data; call it from compiled code")


@kernel
def _clear(n_intervals, n_active, cells, values):
    for g in range(n_intervals):
        cells[g] = 0
        for a in range(n_active):
            values[g, a] = 0


def _levels_by_interval(data, line, other_intervals, n_intervals, counts, cells, values, slots, seen):
    n_slots = slots.shape[0]
    _clear(n_intervals, n_slots, cells, values)
    for cell in range(data.starts[line], data.starts[line + 1]):
        g = other_intervals[data.others[cell]]
        if g >= 0:
            cells[g] += 1
            values[g, data.codes[cell]] += 1
    for a in range(n_slots):
        slots[a] = a
    return n_slots


def _numbers_by_interval(data, line, other_intervals, n_intervals, counts, cells, values, slots, seen):
    _clear(n_intervals, 2, cells, values)
    for cell in range(data.starts[line], data.starts[line + 1]):
        g = other_intervals[data.others[cell]]
        if g >= 0:
            cells[g] += 1
            values[g, 0] += data.codes[cell]
            values[g, 1] += data.codes[cell] * data.codes[cell]
    slots[0] = 0
    slots[1] = 1
    return 2


def _bases_by_interval(data, line, other_intervals, n_intervals, counts, cells, values, slots, seen):
    n_active = 0
    position = 0
    for m in range(data.n_other_classes.shape[0]):
        start = data.table_starts[m] + data.classes[line, m] * data.n_other_classes[m]
        for j in range(data.n_other_classes[m]):
            slot = data.tables[start + j]
            a = seen[slot]
            if a < 0:
                a = n_active
                seen[slot] = a
                slots[a] = slot
                for g in range(n_intervals):
                    values[g, a] = 0
                n_active += 1
            for g in range(n_intervals):
                values[g, a] += counts[position + j, g]
        position += data.n_other_classes[m]
    for g in range(n_intervals):
        cells[g] = counts[position, g]  # the last row counts all lines
    for a in range(n_active):
        seen[slots[a]] = -1
    return n_active


def _labels_by_interval(data, line, other_intervals, n_intervals, counts, cells, values, slots, seen):
    n_active = 0
    for g in range(n_intervals):
        cells[g] = 0
    for cell in range(data.starts[line], data.starts[line + 1]):
        g = other_intervals[data.others[cell]]
        if g >= 0:
            cells[g] += 1
            for m in range(data.slots.shape[1]):
                slot = data.slots[cell, m]
                a = seen[slot]
                if a < 0:
                    a = n_active
                    seen[slot] = a
                    slots[a] = slot
                    for other in range(n_intervals):
                        values[other, a] = 0
                    n_active += 1
                values[g, a] += 1
    for a in range(n_active):
        seen[slots[a]] = -1
    return n_active


@overload(by_interval)
def _choose_by_interval(data, line, other_intervals, n_intervals, counts, cells, values, slots, seen):
    if is_instance(data, BaseLines):
        return _bases_by_interval
    if is_instance(data, LabelLines):
        return _labels_by_interval
    if is_instance(data, Lines):
        levels = isinstance(data.types[2].dtype, types.Integer)
        return _levels_by_interval if levels else _numbers_by_interval
    return None


def _no_class_counts(data, other_intervals, n_intervals):
    return np.empty((0, 0), np.int64)


def _base_class_counts(data, other_intervals, n_intervals):
    total = data.n_other_classes.sum()
    counts = np.zeros((total + 1, n_intervals), np.int64)
    for other in range(data.other_classes.shape[0]):
        g = other_intervals[other]
        if g >= 0:
            position = 0
            for m in range(data.n_other_classes.shape[0]):
                counts[position + data.other_classes[other, m], g] += 1
                position += data.n_other_classes[m]
            counts[total, g] += 1
    return counts


@overload(class_counts)
def _choose_class_counts(data, other_intervals, n_intervals):
    return _base_class_counts if is_instance(data, BaseLines) else _no_class_counts


def _all_slots(data, n_slots):
    return n_slots


def _slots_of_a_line(data, n_slots):
    return min(n_slots, data.n_other_classes.sum())


@overload(n_most_active)
def _choose_n_most_active(data, n_slots):
    return _slots_of_a_line if is_instance(data, BaseLines) else _all_slots


@kernel
def accumulate(n_intervals, n_active, cells, values, cell_sums, sums):
    """Fill running sums: row g holds what is in the intervals before g."""
    cell_sums[0] = 0
    for a in range(n_active):
        sums[0, a] = 0
    for g in range(n_intervals):
        cell_sums[g + 1] = cell_sums[g] + cells[g]
        for a in range(n_active):
            sums[g + 1, a] = sums[g, a] + values[g, a]


@kernel
def intervals_of(places, edges, low, high, out):
    """Write the interval between ``edges`` of each place; -1 for places outside [low, high)."""
    for line in range(places.shape[0]):
        out[line] = interval_at(edges, places[line]) if low <= places[line] < high else -1


# --- Gibbs ------------------------------------------------------------------------------------------


@kernel
def log_lengths_of(edges):
    """Return the log lengths of intervals: the log prior of a line's being there."""
    out = np.empty(edges.shape[0] - 1)
    for h in range(out.shape[0]):
        # Two cuts may coincide in floating point: nothing can be between them then.
        length = edges[h + 1] - edges[h]
        out[h] = math.log(length) if length > 0.0 else -np.inf
    return out


@kernel
def draw_interval(rng, steps, log_lengths, scores):
    """Draw an interval; ``steps`` are the differences of log likelihoods between neighboring ones."""
    total = 0.0
    for h in range(log_lengths.shape[0]):
        total += steps[h]
        scores[h] = total + log_lengths[h]
    return categorical_log_overwrite(rng, scores, log_lengths.shape[0])


class Frame(NamedTuple):
    """Where the lines of one axis may go: what every sweep over the lines of a matrix reads and writes on."""

    edges: np.ndarray  # of the intervals of this axis
    other_edges: np.ndarray
    leaves: np.ndarray
    ranges: np.ndarray  # (leaves, 4): the intervals of both axes that each leaf covers
    other_intervals: np.ndarray  # interval of each line of the other axis
    log_lengths: np.ndarray
    steps: np.ndarray  # differences of log likelihoods between neighboring intervals
    scores: np.ndarray


@kernel
def frame_of(tree, axis, other_places):
    """Return the frame of a sweep over the lines of ``axis``."""
    edges = edges_of(tree, 0, axis)
    other_edges = edges_of(tree, 0, 1 - axis)
    leaves, ranges = leaf_ranges(tree, 0, axis, edges, other_edges)
    other_intervals = np.empty(other_places.shape[0], np.int64)
    intervals_of(other_places, other_edges, 0.0, 1.0, other_intervals)
    n_intervals = edges.shape[0] - 1
    steps, scores = np.empty(n_intervals + 1), np.empty(n_intervals)
    return Frame(edges, other_edges, leaves, ranges, other_intervals, log_lengths_of(edges), steps, scores)


@kernel
def leave(rng, frame, places, line):
    """Return the interval of a line to be drawn anew; -1 if there is only one, in which it moves freely."""
    if frame.scores.shape[0] == 1:
        places[line] = rng.random()
        return -1
    frame.steps[:] = 0.0
    return interval_at(frame.edges, places[line])


@kernel
def enter(rng, frame, places, line):
    """Draw the interval of a line, and its place there; returns the interval."""
    chosen = draw_interval(rng, frame.steps, frame.log_lengths, frame.scores)
    places[line] = place_between(rng, frame.edges[chosen], frame.edges[chosen + 1])
    return chosen


class Room(NamedTuple):
    """What a line says, summed over intervals of the other axis: see :func:`by_interval`."""

    counts: np.ndarray
    cells: np.ndarray
    cell_sums: np.ndarray
    values: np.ndarray
    sums: np.ndarray
    slots: np.ndarray
    seen: np.ndarray


@kernel
def room_for(tree, data, other_intervals, n_other):
    """Return room to sum what lines say."""
    counts = class_counts(data, other_intervals, n_other)
    n_slots = tree.sums.shape[1]
    most = n_most_active(data, n_slots)
    return Room(
        counts,
        np.empty(n_other, np.int64),
        np.empty(n_other + 1, np.int64),
        np.empty((n_other, most), tree.sums.dtype),
        np.empty((n_other + 1, most), tree.sums.dtype),
        np.empty(most, np.int64),
        np.full(n_slots, -1),
    )


@kernel
def sum_line(data, line, other_intervals, room):
    """Sum what a line says from the first interval of the other axis on; returns how many slots it fills."""
    n_other = room.cells.shape[0]
    n_active = by_interval(
        data, line, other_intervals, n_other, room.counts, room.cells, room.values, room.slots, room.seen
    )
    accumulate(n_other, n_active, room.cells, room.values, room.cell_sums, room.sums)
    return n_active


@kernel
def add_line(tree, leaves, ranges, interval, room, n_active):
    """Add what a line says to the leaves of its interval."""
    for index in range(leaves.shape[0]):
        if ranges[index, 0] <= interval < ranges[index, 1]:
            g0, g1 = ranges[index, 2], ranges[index, 3]
            m = room.cell_sums[g1] - room.cell_sums[g0]
            if m == 0:
                continue
            leaf = leaves[index]
            tree.links[leaf, CELLS] += m
            for a in range(n_active):
                tree.sums[leaf, room.slots[a]] += room.sums[g1, a] - room.sums[g0, a]


@kernel
def sweep_lines(rng, axis, law, tree, data, places, other_places):
    """Draw the coordinate of every line of ``axis`` in turn; returns how many changed their interval.

    ``data`` are the lines of this axis. Cached marginals of leaves are not kept: see ``mark_leaves``.
    """
    frame = frame_of(tree, axis, other_places)
    leaves, ranges = frame.leaves, frame.ranges
    room = room_for(tree, data, frame.other_intervals, frame.other_edges.shape[0] - 1)
    part = np.empty(room.slots.shape[0], tree.sums.dtype)
    n_moved = 0
    for line in range(places.shape[0]):
        own = leave(rng, frame, places, line)
        if own < 0:
            continue
        n_active = sum_line(data, line, frame.other_intervals, room)
        for index in range(leaves.shape[0]):
            leaf = leaves[index]
            h0, h1, g0, g1 = ranges[index, 0], ranges[index, 1], ranges[index, 2], ranges[index, 3]
            m = room.cell_sums[g1] - room.cell_sums[g0]
            if m == 0:
                continue
            for a in range(n_active):
                part[a] = room.sums[g1, a] - room.sums[g0, a]
            if h0 <= own < h1:
                tree.links[leaf, CELLS] -= m
                for a in range(n_active):
                    tree.sums[leaf, room.slots[a]] -= part[a]
            gain = log_gain(law, tree.links[leaf, CELLS], tree.sums[leaf], m, room.slots, part, n_active)
            frame.steps[h0] += gain
            frame.steps[h1] -= gain
        chosen = enter(rng, frame, places, line)
        if chosen != own:
            n_moved += 1
        add_line(tree, leaves, ranges, chosen, room, n_active)
    mark_leaves(law, tree, 0)
    return n_moved


@kernel
def recount(law, tree, top, data, places, other_places):
    """Compute the statistics of all leaves below ``top`` afresh from the cells of the rows in it."""
    axis = 0
    edges = edges_of(tree, top, axis)
    other_edges = edges_of(tree, top, 1 - axis)
    leaves, ranges = leaf_ranges(tree, top, axis, edges, other_edges)
    other_intervals = np.empty(other_places.shape[0], np.int64)
    intervals_of(
        other_places, other_edges, tree.numbers[top, LOW + 1], tree.numbers[top, HIGH + 1], other_intervals
    )
    room = room_for(tree, data, other_intervals, other_edges.shape[0] - 1)
    for index in range(leaves.shape[0]):
        tree.links[leaves[index], CELLS] = 0
        tree.sums[leaves[index]] = 0
    for line in range(places.shape[0]):
        if not tree.numbers[top, LOW + axis] <= places[line] < tree.numbers[top, HIGH + axis]:
            continue
        n_active = sum_line(data, line, other_intervals, room)
        add_line(tree, leaves, ranges, interval_at(edges, places[line]), room, n_active)
    mark_leaves(law, tree, top)
