# mypy: ignore-errors
"""Gibbs over the places of lines whose cells have labels in several bases.

There are hundreds of slots, and the cells of a line fill few of them in any one leaf. So the cells of a line
are sorted by interval, those in a leaf are then neighbors, and only the slots that they fill are looked at.
"""

from __future__ import annotations

import numpy as np

from permix.cocluster.cells.base_lines_jit import LabelLines
from permix.cocluster.cells.blocks_jit import slot_rise, total_rise
from permix.cocluster.mondrian.lines_jit import enter, frame_of, leave, sweep
from permix.cocluster.mondrian.tree_jit import CELLS, mark_leaves
from permix.kernels.jit import implements, kernel


@kernel
def _sort_cells(data, line, other_intervals, order, starts):
    """Write the cells of a line by interval; those in interval g are ``order[starts[g] : starts[g + 1]]``."""
    for g in range(starts.shape[0]):
        starts[g] = 0
    for cell in range(data.starts[line], data.starts[line + 1]):
        starts[other_intervals[data.others[cell]] + 1] += 1
    for g in range(1, starts.shape[0]):
        starts[g] += starts[g - 1]
    for cell in range(data.starts[line], data.starts[line + 1]):
        g = other_intervals[data.others[cell]]
        order[starts[g]] = cell
        starts[g] += 1
    for g in range(starts.shape[0] - 1, 0, -1):
        starts[g] = starts[g - 1]
    starts[0] = 0


@kernel
def _put(data, order, first, last, tree, leaf, sign):
    """Add cells to a leaf, or take them away."""
    tree.links[leaf, CELLS] += sign * (last - first)
    for position in range(first, last):
        for m in range(data.slots.shape[1]):
            tree.sums[leaf, data.slots[order[position], m]] += sign


@kernel
def _count_labels(data, order, first, last, added, filled):
    """Count how many of these cells fill each slot, in ``added``; returns how many slots are ``filled``."""
    n_filled = 0
    for position in range(first, last):
        for m in range(data.slots.shape[1]):
            slot = data.slots[order[position], m]
            if added[slot] == 0:
                filled[n_filled] = slot
                n_filled += 1
            added[slot] += 1
    return n_filled


@kernel
def _log_gain(prior, m, n, sums, added, filled, n_filled):
    """Return ln p(cells of the leaf and ``m`` more) - ln p(cells of the leaf)."""
    gain = total_rise(prior, n) - total_rise(prior, n + m)
    for a in range(n_filled):
        slot = filled[a]
        gain += slot_rise(prior, sums[slot] + added[slot]) - slot_rise(prior, sums[slot])
    return gain


@implements(sweep, of=LabelLines, argument="data")
def _sweep(rng, axis, prior, tree, data, places, other_places):
    return sweep_label_lines(rng, axis, prior, tree, data, places, other_places)


@kernel
def sweep_label_lines(rng, axis, prior, tree, data, places, other_places):
    """Draw the coordinate of every line of ``axis`` in turn; returns how many changed their interval."""
    frame = frame_of(tree, 0, axis, other_places)
    leaves, ranges, steps = frame.leaves, frame.ranges, frame.steps
    n_other_edges = frame.other_edges.shape[0]
    # Leaves that cover the same intervals of the other axis follow each other: what a line has there is
    # counted once.
    by_range = np.argsort(ranges[:, 2] * n_other_edges + ranges[:, 3])
    leaves, ranges = leaves[by_range], ranges[by_range]
    longest = 0
    for line in range(places.shape[0]):
        longest = max(longest, data.starts[line + 1] - data.starts[line])
    order = np.empty(longest, np.int64)
    starts = np.empty(n_other_edges, np.int64)
    added = np.zeros(tree.sums.shape[1], np.int64)
    filled = np.empty(tree.sums.shape[1], np.int64)
    n_moved = 0
    for line in range(places.shape[0]):
        own = leave(rng, frame, places, line)
        if own < 0:
            continue
        _sort_cells(data, line, frame.other_intervals, order, starts)
        n_filled = 0
        for index in range(leaves.shape[0]):
            g0, g1 = ranges[index, 2], ranges[index, 3]
            first, last = starts[g0], starts[g1]
            if index == 0 or g0 != ranges[index - 1, 2] or g1 != ranges[index - 1, 3]:
                for a in range(n_filled):
                    added[filled[a]] = 0
                n_filled = _count_labels(data, order, first, last, added, filled)
            if first == last:
                continue
            leaf = leaves[index]
            if ranges[index, 0] <= own < ranges[index, 1]:
                _put(data, order, first, last, tree, leaf, -1)
            n, sums = tree.links[leaf, CELLS], tree.sums[leaf]
            gain = _log_gain(prior, last - first, n, sums, added, filled, n_filled)
            steps[ranges[index, 0]] += gain
            steps[ranges[index, 1]] -= gain
        for a in range(n_filled):
            added[filled[a]] = 0
        chosen = enter(rng, frame, places, line)
        if chosen != own:
            n_moved += 1
        for index in range(leaves.shape[0]):
            if ranges[index, 0] <= chosen < ranges[index, 1]:
                first, last = starts[ranges[index, 2]], starts[ranges[index, 3]]
                _put(data, order, first, last, tree, leaves[index], 1)
    mark_leaves(prior, tree, 0)
    return n_moved
