# mypy: ignore-errors
"""Gibbs over the places of lines whose data are base co-clusterings.

What a line adds to a leaf depends, base by base, on the line's class alone: the labels of a base are its own
slots, and every line has all lines of the other axis. So the gain of putting a line into leaf k is a sum over
bases of entries in tables by (base and class, leaf), as is what leaf k loses without a line that is in it.
Entries are computed when they are asked for and hold until lines enter or leave the leaf: as nearly
all lines stay where they are, a sweep costs lines × leaves × bases additions.
"""

from __future__ import annotations

import numpy as np

from permix.cocluster.cells.base_lines_jit import BaseLines
from permix.cocluster.cells.blocks_jit import slot_rise, total_rise
from permix.cocluster.mondrian.lines_jit import count_classes, enter, frame_of, leave, sweep
from permix.cocluster.mondrian.tree_jit import CELLS, mark_leaves
from permix.kernels.jit import implements, kernel


@kernel
def _sum_labels(room, m, line_class, g0, g1):
    """Write what a line of this class in base m adds to a leaf over the intervals g0 ... g1 - 1.

    Returns how many slots are written.
    """
    data, positions, counts, slots, values, seen = room
    position = positions[m]
    n = 0
    start = data.table_starts[m] + line_class * data.n_other_classes[m]
    for j in range(data.n_other_classes[m]):
        value = counts[position + j, g1] - counts[position + j, g0]
        if value > 0:
            slot = data.tables[start + j]
            if seen[slot] < 0:
                seen[slot] = n
                slots[n] = slot
                values[n] = 0
                n += 1
            values[seen[slot]] += value
    for a in range(n):
        seen[slots[a]] = -1
    return n


@implements(sweep, of=BaseLines, argument="data")
def _sweep(rng, axis, prior, tree, data, places, other_places):
    return sweep_base_lines(rng, axis, prior, tree, data, places, other_places)


@kernel
def sweep_base_lines(rng, axis, prior, tree, data, places, other_places):
    """Draw the coordinate of every line of ``axis`` in turn; returns how many changed their interval."""
    frame = frame_of(tree, 0, axis, other_places)
    leaves, ranges, steps = frame.leaves, frame.ranges, frame.steps
    n_other = frame.other_edges.shape[0] - 1
    n_leaves, n_slots = leaves.shape[0], tree.sums.shape[1]
    n_bases = data.n_other_classes.shape[0]
    in_interval, _ = count_classes(data, frame.other_intervals, n_other, n_slots)
    counts = np.zeros((in_interval.shape[0], n_other + 1), np.int64)
    for j in range(in_interval.shape[0]):
        for g in range(n_other):
            counts[j, g + 1] = counts[j, g] + in_interval[j, g]
    positions = np.zeros(n_bases + 1, np.int64)  # of the first other class of each base in ``counts``
    class_starts = np.zeros(n_bases + 1, np.int64)  # of the first class of each base in the tables
    for m in range(n_bases):
        positions[m + 1] = positions[m] + data.n_other_classes[m]
        table_end = data.table_starts[m + 1] if m + 1 < n_bases else data.tables.shape[0]
        class_starts[m + 1] = class_starts[m] + (table_end - data.table_starts[m]) // data.n_other_classes[m]
    across = np.empty(n_leaves, np.int64)  # lines of the other axis in each leaf
    for index in range(n_leaves):
        everybody = counts[positions[n_bases]]  # the last row counts all lines
        across[index] = everybody[ranges[index, 3]] - everybody[ranges[index, 2]]
    gains = np.empty((class_starts[n_bases], n_leaves))
    losses = np.empty((class_starts[n_bases], n_leaves))
    gain_versions = np.zeros((class_starts[n_bases], n_leaves), np.int64)
    loss_versions = np.zeros((class_starts[n_bases], n_leaves), np.int64)
    versions = np.ones(n_leaves, np.int64)
    slots = np.empty(n_slots, np.int64)
    values = np.empty(n_slots, np.int64)
    seen = np.full(n_slots, -1)
    room = (data, positions, counts, slots, values, seen)
    n_moved = 0
    for line in range(places.shape[0]):
        own = leave(rng, frame, places, line)
        if own < 0:
            continue
        for index in range(n_leaves):
            if across[index] == 0:
                continue
            leaf = leaves[index]
            g0, g1 = ranges[index, 2], ranges[index, 3]
            inside = ranges[index, 0] <= own < ranges[index, 1]
            n = tree.links[leaf, CELLS]
            if inside:
                value = total_rise(prior, n - across[index]) - total_rise(prior, n)
            else:
                value = total_rise(prior, n) - total_rise(prior, n + across[index])
            for m in range(n_bases):
                line_class = data.classes[line, m]
                row = class_starts[m] + line_class
                if inside:
                    if loss_versions[row, index] != versions[index]:
                        losses[row, index] = _change(prior, tree.sums[leaf], room, m, line_class, g0, g1, -1)
                        loss_versions[row, index] = versions[index]
                    value += losses[row, index]
                else:
                    if gain_versions[row, index] != versions[index]:
                        gains[row, index] = _change(prior, tree.sums[leaf], room, m, line_class, g0, g1, 1)
                        gain_versions[row, index] = versions[index]
                    value += gains[row, index]
            steps[ranges[index, 0]] += value
            steps[ranges[index, 1]] -= value
        chosen = enter(rng, frame, places, line)
        if chosen == own:
            continue
        n_moved += 1
        for index in range(n_leaves):
            leaves_it = ranges[index, 0] <= own < ranges[index, 1]
            enters_it = ranges[index, 0] <= chosen < ranges[index, 1]
            if leaves_it == enters_it or across[index] == 0:
                continue
            sign = 1 if enters_it else -1
            leaf = leaves[index]
            tree.links[leaf, CELLS] += sign * across[index]
            for m in range(n_bases):
                n = _sum_labels(room, m, data.classes[line, m], ranges[index, 2], ranges[index, 3])
                for a in range(n):
                    tree.sums[leaf, slots[a]] += sign * values[a]
            versions[index] += 1
    mark_leaves(prior, tree, 0)
    return n_moved


@kernel
def _change(prior, sums, room, m, line_class, g0, g1, sign):
    """Return what slots of base m gain by a line of this class (``sign`` 1), or have gained by it (-1)."""
    n = _sum_labels(room, m, line_class, g0, g1)
    slots, values = room[3], room[4]
    total = 0.0
    for a in range(n):
        present = sums[slots[a]]
        total += slot_rise(prior, present + sign * values[a]) - slot_rise(prior, present)
    return sign * total
