# mypy: ignore-errors
"""Exchanging the order of cuts that cross, with the lines between them drawn anew.

A node cut along one axis at x, whose parts are both cut along the other, at y1 and y2, becomes one cut at y1
first whose parts are cut at x and at some x2. ``rotate_jit`` does so where no line is between y1 and y2, but
data hardly ever leave it so. Here all lines between the neighboring cuts, of either axis, get new places: in
the two intervals that are left of three on one axis, and in the three that come of two on the other. x2 is
uniform between the neighboring cuts, and the times of both lower cuts come from their conditionals. Places
are proposed by scans of Gibbs restricted to these intervals, from places drawn uniformly; their density in
the last scan is that of the proposal, and that of the present places, found by such scans before the
exchange, is the inverse's. So with (B, A) the span between the neighbors of y1 and y2 and (B', A') that
between those of x, the ratio is

    L'/L × p'/p × (A' - B')/(A - B) × (density of the present places)/(density of the new ones),

p being the prior density of the node with the times of its parts integrated out.
"""

from __future__ import annotations

import math

import numpy as np

from permix.cocluster.cells.blocks_jit import log_gain
from permix.cocluster.mondrian.lines_jit import (
    add_line,
    frame_of,
    interval_at,
    place_between,
    recount,
    room_for,
    sum_line,
)
from permix.cocluster.mondrian.rotate_jit import exchange, log_without_times
from permix.cocluster.mondrian.shift_jit import random_cut
from permix.cocluster.mondrian.tree_jit import (
    AXIS,
    CELLS,
    CUT,
    FIRST,
    SECOND,
    copy_tree,
    draw_time,
    mark_leaves,
    neighbors,
)
from permix.kernels.jit import kernel


@kernel
def cross_cuts(rng, n_proposals, n_scans, prior, budget, tree, spare, data, places):
    """Propose exchanges; returns how many could be tried and how many were made."""
    n_tried = n_accepted = 0
    lows, highs = np.empty(2), np.empty(2)
    for _ in range(n_proposals):
        node = random_cut(rng, tree)
        if node < 0:
            break
        axis = tree.links[node, AXIS]
        left, right = tree.links[node, FIRST], tree.links[node, SECOND]
        if tree.links[left, AXIS] != 1 - axis or tree.links[right, AXIS] != 1 - axis:
            continue
        x, y1, y2 = tree.numbers[node, CUT], tree.numbers[left, CUT], tree.numbers[right, CUT]
        below, above = neighbors(tree, 1 - axis, places[1 - axis][:0], y1, left, right)
        low, high = neighbors(tree, axis, places[axis][:0], x, node, node)
        x2 = low + (high - low) * rng.random()
        if not (below < y2 < above and low < x2 < high and x2 != x and y1 != y2):
            continue
        n_tried += 1
        lows[axis], highs[axis] = low, high
        lows[1 - axis], highs[1 - axis] = below, above
        free = (_lines_between(places[0], lows[0], highs[0]), _lines_between(places[1], lows[1], highs[1]))
        present = (places[0][free[0]], places[1][free[1]])
        copy_tree(tree, spare)
        log_ratio = math.log((high - low) / (above - below))
        log_ratio -= mark_leaves(prior, tree, node) + log_without_times(tree, node, budget)
        log_ratio += place_anew(
            rng, n_scans, prior, tree, node, data, places, free, present, lows, highs, True
        )
        exchange(tree, node, x2)
        for child in (left, right):
            draw_time(rng, tree, child, budget)
        log_ratio -= place_anew(
            rng, n_scans, prior, tree, node, data, places, free, present, lows, highs, False
        )
        log_ratio += mark_leaves(prior, tree, node) + log_without_times(tree, node, budget)
        if -rng.standard_exponential() < log_ratio:
            n_accepted += 1
            continue
        copy_tree(spare, tree)
        for side in range(2):
            for index in range(free[side].shape[0]):
                places[side][free[side][index]] = present[side][index]
    return n_tried, n_accepted


@kernel
def _lines_between(places, low, high):
    out = np.empty(places.shape[0], np.int64)
    n = 0
    for line in range(places.shape[0]):
        if low <= places[line] < high:
            out[n] = line
            n += 1
    return out[:n]


@kernel
def place_anew(rng, n_scans, prior, tree, node, data, places, free, present, lows, highs, forced):
    """Draw the places of free lines of both axes, or, ``forced``, let them have their present ones.

    Returns ln of the density of these places. Statistics of the leaves below ``node`` are right afterward.
    """
    for side in range(2):
        for index in range(free[side].shape[0]):
            places[side][free[side][index]] = place_between(rng, lows[side], highs[side])
    recount(prior, tree, node, data[0], places[0], places[1])
    log_q = 0.0
    for scan in range(n_scans + 1):
        is_last = scan == n_scans
        for side in range(2):
            lines = (free[side], present[side], places[side], places[1 - side])
            span = (lows[side], highs[side])
            value = _scan(rng, side, prior, tree, node, data[side], lines, span, is_last and forced)
            if is_last:
                log_q += value
    return log_q


@kernel
def _scan(rng, axis, prior, tree, node, data, lines, span, forced):
    """Draw the place of each free line between the ends of ``span`` given all others; returns ln density."""
    free, present, places, other_places = lines
    low, high = span
    frame = frame_of(tree, node, axis, other_places)
    edges, ranges = frame.edges, frame.ranges
    # The intervals of the node may go on beyond the span, where other parts of the tree are cut.
    first, stop = interval_at(edges, low), interval_at(edges, high)
    if edges[stop] < high:
        stop += 1
    starts, ends = np.empty(stop - first), np.empty(stop - first)
    for h in range(first, stop):
        starts[h - first] = max(edges[h], low)
        ends[h - first] = min(edges[h + 1], high)
    room = room_for(tree, data, frame.other_intervals, frame.other_edges.shape[0] - 1)
    part = np.empty(room.slots.shape[0], tree.sums.dtype)
    scores = np.empty(stop - first)
    log_q = 0.0
    for index in range(free.shape[0]):
        line = free[index]
        own = interval_at(edges, places[line])
        n_active = sum_line(data, line, frame.other_intervals, room)
        for h in range(stop - first):
            length = ends[h] - starts[h]
            scores[h] = math.log(length) if length > 0.0 else -np.inf
        for i in range(frame.leaves.shape[0]):
            h0, h1, g0, g1 = ranges[i, 0], ranges[i, 1], ranges[i, 2], ranges[i, 3]
            m = room.cells[g1] - room.cells[g0]
            if m == 0 or h1 <= first or h0 >= stop:
                continue
            leaf = frame.leaves[i]
            for a in range(n_active):
                part[a] = room.sums[g1, a] - room.sums[g0, a]
            if h0 <= own < h1:
                tree.links[leaf, CELLS] -= m
                for a in range(n_active):
                    tree.sums[leaf, room.slots[a]] -= part[a]
            gain = log_gain(prior, tree.links[leaf, CELLS], tree.sums[leaf], m, room.slots, part, 0, n_active)
            for h in range(max(h0, first), min(h1, stop)):
                scores[h - first] += gain
        most = scores.max()
        total = 0.0
        for h in range(stop - first):
            total += math.exp(scores[h] - most)
        if forced:
            place = present[index]
            chosen = interval_at(edges, place) - first
        else:
            rest = rng.random() * total
            chosen = 0
            while chosen < stop - first - 1:
                rest -= math.exp(scores[chosen] - most)
                if rest < 0.0:
                    break
                chosen += 1
            place = place_between(rng, starts[chosen], ends[chosen])
        log_q += scores[chosen] - most - math.log(total) - math.log(ends[chosen] - starts[chosen])
        places[line] = place
        add_line(tree, frame, first + chosen, room, n_active)
    return log_q
