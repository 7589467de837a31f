# mypy: ignore-errors
"""What a line of a matrix says, summed over intervals of the other axis, and Gibbs over where lines are.

Given the cuts, the conditional of a line's coordinate is constant within each interval between neighbouring
cuts (equations 5.13 and 5.14 of Wang, Laskey, Domeniconi & Jordan 2011, with the line placed in the interval:
as printed they leave it out). Putting the line into leaf k, which covers the intervals g0 ... g1 - 1 of the
other axis, multiplies the likelihood by a factor that depends on k alone, so all leaves are scored once
and an interval's score is the sum over the leaves that cross it.
"""

from __future__ import annotations

import math

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
    """Draw an interval; ``steps`` are the differences of log likelihoods between neighbouring ones."""
    total = 0.0
    for h in range(log_lengths.shape[0]):
        total += steps[h]
        scores[h] = total + log_lengths[h]
    return categorical_log_overwrite(rng, scores, log_lengths.shape[0])


@kernel
def sweep_lines(rng, axis, law, tree, data, places, other_places):
    """Draw the coordinate of every line of ``axis`` in turn; returns how many changed their interval.

    ``data`` are the lines of this axis. Cached marginals of leaves are not kept: see ``mark_leaves``.
    """
    edges = edges_of(tree, 0, axis)
    other_edges = edges_of(tree, 0, 1 - axis)
    n_intervals = edges.shape[0] - 1
    n_other = other_edges.shape[0] - 1
    leaves, ranges = leaf_ranges(tree, 0, axis, edges, other_edges)
    n_leaves = leaves.shape[0]
    other_intervals = np.empty(other_places.shape[0], np.int64)
    intervals_of(other_places, other_edges, 0.0, 1.0, other_intervals)
    counts = class_counts(data, other_intervals, n_other)
    n_slots = tree.sums.shape[1]
    most = n_most_active(data, n_slots)
    cells = np.empty(n_other, np.int64)
    cell_sums = np.empty(n_other + 1, np.int64)
    values = np.empty((n_other, most), tree.sums.dtype)
    sums = np.empty((n_other + 1, most), tree.sums.dtype)
    slots = np.empty(most, np.int64)
    seen = np.full(n_slots, -1)
    part = np.empty(most, tree.sums.dtype)
    steps = np.empty(n_intervals + 1)
    scores = np.empty(n_intervals)
    log_lengths = log_lengths_of(edges)
    n_moved = 0
    for line in range(places.shape[0]):
        own = interval_at(edges, places[line])
        if n_intervals == 1:
            places[line] = rng.random()
            continue
        n_active = by_interval(data, line, other_intervals, n_other, counts, cells, values, slots, seen)
        accumulate(n_other, n_active, cells, values, cell_sums, sums)
        for h in range(n_intervals + 1):
            steps[h] = 0.0
        for index in range(n_leaves):
            leaf = leaves[index]
            h0, h1, g0, g1 = ranges[index, 0], ranges[index, 1], ranges[index, 2], ranges[index, 3]
            m = cell_sums[g1] - cell_sums[g0]
            if m == 0:
                continue
            for a in range(n_active):
                part[a] = sums[g1, a] - sums[g0, a]
            if h0 <= own < h1:
                tree.links[leaf, CELLS] -= m
                for a in range(n_active):
                    tree.sums[leaf, slots[a]] -= part[a]
            gain = log_gain(law, tree.links[leaf, CELLS], tree.sums[leaf], m, slots, part, n_active)
            steps[h0] += gain
            steps[h1] -= gain
        chosen = draw_interval(rng, steps, log_lengths, scores)
        if chosen != own:
            n_moved += 1
        places[line] = place_between(rng, edges[chosen], edges[chosen + 1])
        for index in range(n_leaves):
            if ranges[index, 0] <= chosen < ranges[index, 1]:
                g0, g1 = ranges[index, 2], ranges[index, 3]
                m = cell_sums[g1] - cell_sums[g0]
                if m == 0:
                    continue
                leaf = leaves[index]
                tree.links[leaf, CELLS] += m
                for a in range(n_active):
                    tree.sums[leaf, slots[a]] += sums[g1, a] - sums[g0, a]
    mark_leaves(law, tree, 0)
    return n_moved


@kernel
def recount(law, tree, top, data, places, other_places):
    """Compute the statistics of all leaves below ``top`` afresh from the cells of the rows in it."""
    axis = 0
    edges = edges_of(tree, top, axis)
    other_edges = edges_of(tree, top, 1 - axis)
    n_other = other_edges.shape[0] - 1
    leaves, ranges = leaf_ranges(tree, top, axis, edges, other_edges)
    other_intervals = np.empty(other_places.shape[0], np.int64)
    intervals_of(
        other_places, other_edges, tree.numbers[top, LOW + 1], tree.numbers[top, HIGH + 1], other_intervals
    )
    counts = class_counts(data, other_intervals, n_other)
    n_slots = tree.sums.shape[1]
    most = n_most_active(data, n_slots)
    cells = np.empty(n_other, np.int64)
    cell_sums = np.empty(n_other + 1, np.int64)
    values = np.empty((n_other, most), tree.sums.dtype)
    sums = np.empty((n_other + 1, most), tree.sums.dtype)
    slots = np.empty(most, np.int64)
    seen = np.full(n_slots, -1)
    for index in range(leaves.shape[0]):
        tree.links[leaves[index], CELLS] = 0
        for slot in range(n_slots):
            tree.sums[leaves[index], slot] = 0
    for line in range(places.shape[0]):
        if not tree.numbers[top, LOW + axis] <= places[line] < tree.numbers[top, HIGH + axis]:
            continue
        h = interval_at(edges, places[line])
        n_active = by_interval(data, line, other_intervals, n_other, counts, cells, values, slots, seen)
        accumulate(n_other, n_active, cells, values, cell_sums, sums)
        for index in range(leaves.shape[0]):
            if ranges[index, 0] <= h < ranges[index, 1]:
                g0, g1 = ranges[index, 2], ranges[index, 3]
                tree.links[leaves[index], CELLS] += cell_sums[g1] - cell_sums[g0]
                for a in range(n_active):
                    tree.sums[leaves[index], slots[a]] += sums[g1, a] - sums[g0, a]
    mark_leaves(law, tree, top)
