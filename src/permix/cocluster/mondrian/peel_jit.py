# mypy: ignore-errors
"""Adding and removing cuts above others: a block is peeled off one side of a node that is cut already.

A node with cuts below it is cut at x, nearer to its edge than all of them that are parallel to x. The part
between the edge and x, which only cuts across x reach, becomes one block; these end at x then. The inverse
removes a cut that has a block on one side and further cuts on the other, which are extended over the block.
Moves that change leaves alone reach neither: they would have to remove all that is below first.

With N cuts before adding and M cuts that have just one leaf below them after it, ρ the sum over both axes of
the distance between the edge and the nearest cut below, a position uniform over ρ on a side of two, w the
length of the cut, λ the budget and a time from its conditional, the ratio of adding is

    L'/L × 2 N ρ/M × ∫ e^(-w (λ - time)) d time × e^(|x - edge| Σ_across (λ - time)) × Π_lines (share) / q,

where the integral runs from the time the node came to be until its first cut, and the sum over the cuts
that now end at x. Lines between the neighboring cuts a < x < b are divided anew as in ``cuts_jit``: their
cells belong to the block on one side, and to as many blocks as reach x on the other.
"""

from __future__ import annotations

import math

import numpy as np

from permix.cocluster.cells.blocks_jit import log_block, log_gain
from permix.cocluster.mondrian.cuts_jit import LEFT, LINE_SUMMED, LINES_LOOKED_AT, RIGHT, longer
from permix.cocluster.mondrian.lines_jit import interval_at, place_between, room_for, sum_line
from permix.cocluster.mondrian.tree_jit import (
    AXIS,
    CELLS,
    CUT,
    CUTS,
    FIRST,
    FREE,
    HIGH,
    LEAF,
    LOW,
    MARGINAL,
    PARENT,
    SECOND,
    SINGLES,
    TIME,
    bound_parts,
    draw_time,
    extent,
    log_time_integral,
    neighbors,
    nodes_below,
    nodes_of,
    time_before,
)
from permix.kernels.jit import inlined, kernel
from permix.kernels.random import shuffle

# Where a line is: in the block, or in those beside it.
PEELED, STAYS = 0, 1


@kernel
def peel_cuts(rng, n_proposals, n_scans, prior, budget, tree, data, places):
    """Propose to add or to remove a cut above others ``n_proposals`` times; returns how many were accepted.

    Also returns the work, in lines scored against a block.
    ``data`` and ``places`` are pairs: of the rows, of the columns. The tree must have two unused nodes for
    each proposal.
    """
    n_accepted = work = 0
    log_sides = np.empty(2)
    for _ in range(n_proposals):
        adding = rng.random() < 0.5
        cuts, singles = nodes_of(tree, CUTS), nodes_of(tree, SINGLES)
        n_cuts, n_singles = cuts.shape[0], singles.shape[0]
        if n_cuts == 0 or not (adding or n_singles):
            continue
        # The node, the side of the block, and what is below: cuts before adding, and singles after it.
        if adding:
            node = cuts[np.int64(rng.random() * n_cuts)]
            side = LEFT if rng.random() < 0.5 else RIGHT
            top = node
            n_singles += 1
        else:
            node = singles[np.int64(rng.random() * n_singles)]
            side = LEFT if tree.links[tree.links[node, FIRST], AXIS] == LEAF else RIGHT
            top = tree.links[node, SECOND if side == LEFT else FIRST]
            n_cuts -= 1
        below_top = nodes_below(tree, top)
        reaches = (_reach(tree, below_top, node, 0, side), _reach(tree, below_top, node, 1, side))
        if adding:
            position = rng.random() * (reaches[0] + reaches[1])
            axis = 0 if position < reaches[0] else 1
            distance = position if axis == 0 else position - reaches[0]
            edge = tree.numbers[node, (LOW if side == LEFT else HIGH) + axis]
            cut = edge + (distance if side == LEFT else -distance)
        else:
            axis, cut = tree.links[node, AXIS], tree.numbers[node, CUT]
            edge = tree.numbers[node, (LOW if side == LEFT else HIGH) + axis]
        lines, other_lines = places[axis], places[1 - axis]
        start, end = neighbors(tree, axis, lines[:0], cut, node if not adding else -1, -1)
        if not (start < cut < end and edge != cut):
            continue  # rounding: a part would be empty
        log_sides[PEELED] = math.log((cut - start if side == LEFT else end - cut) / (end - start))
        log_sides[STAYS] = math.log((end - cut if side == LEFT else cut - start) / (end - start))
        width, first_time = extent(tree, node, 1 - axis), tree.numbers[top, TIME]
        log_ratio = math.log(2.0 * n_cuts * (reaches[0] + reaches[1]) / n_singles)
        log_ratio += log_time_integral(width, time_before(tree, node), first_time)
        log_ratio -= width * (budget - first_time)
        # What reaches the cut from the other side: cuts that end there, and leaves, in ascending order.
        column = (LOW if side == LEFT else HIGH) + axis
        boundary = edge if adding else cut
        beside = np.empty(below_top.shape[0], np.int64)
        n_beside = 0
        for index in range(below_top.shape[0]):
            below = below_top[index]
            if tree.numbers[below, column] != boundary:
                continue
            if tree.links[below, AXIS] == LEAF:
                beside[n_beside] = below
                n_beside += 1
            elif tree.links[below, AXIS] == 1 - axis:
                log_ratio += abs(cut - edge) * (budget - tree.numbers[below, TIME])
        beside = beside[:n_beside]
        edges = np.empty(n_beside + 1)
        for index in range(n_beside):
            edges[index] = tree.numbers[beside[index], LOW + 1 - axis]
        edges[n_beside] = tree.numbers[node, HIGH + 1 - axis]
        inside = np.empty(other_lines.shape[0], np.int64)
        for other in range(other_lines.shape[0]):
            is_in = edges[0] <= other_lines[other] < edges[n_beside]
            inside[other] = interval_at(edges, other_lines[other]) if is_in else -1
        bounds = (edge if side == LEFT else start, end if side == LEFT else edge, start, cut, end)
        room = room_for(tree, data[axis], inside, n_beside)
        parts = _sum_parts(tree, data[axis], lines, inside, room, beside, bounds, side, adding)
        # Statistics: 0 of the block, 1 + i of those beside it, without the lines to be divided; then joined.
        cells, sums, joined_cells, joined_sums, free, sides, entries, n_summed = parts
        work += (lines.shape[0] + other_lines.shape[0]) // LINES_LOOKED_AT + LINE_SUMMED * n_summed
        log_joined = 0.0
        for i in range(n_beside):
            log_joined += log_block(prior, joined_cells[i], joined_sums[i])
        log_ratio -= log_joined
        threshold = -rng.standard_exponential()
        if not adding:
            child = tree.links[node, FIRST if side == LEFT else SECOND]
            log_ratio += tree.numbers[child, MARGINAL]
            for i in range(n_beside):
                log_ratio += tree.numbers[beside[i], MARGINAL]
            for index in range(free.shape[0]):
                log_ratio += log_sides[sides[index]]
            # q is at most 1: what is refused without it need not be divided.
            if not threshold < -log_ratio:
                continue
        work += (n_beside + 1) * (n_scans + 2) * free.shape[0]
        log_q = _divide_parts(rng, n_scans, prior, cells, sums, sides, entries, log_sides, not adding)
        if adding:
            for i in range(n_beside + 1):
                log_ratio += log_block(prior, cells[i], sums[i])
            for index in range(free.shape[0]):
                log_ratio += log_sides[sides[index]]
            if not threshold < log_ratio - log_q:
                continue
            insert_cut(tree, node, axis, cut, side)
            draw_time(rng, tree, node, budget)
            put(prior, tree, tree.links[node, FIRST if side == LEFT else SECOND], cells[0], sums[0])
        else:
            if not threshold < log_q - log_ratio:
                continue
            take_cut_out(tree, node, side)
        for i in range(n_beside):
            if adding:
                put(prior, tree, beside[i], cells[i + 1], sums[i + 1])
            else:
                put(prior, tree, beside[i], joined_cells[i], joined_sums[i])
        for index in range(free.shape[0]):
            is_left = (sides[index] == PEELED) == (side == LEFT)
            low = start if is_left or not adding else cut
            high = end if not (is_left and adding) else cut
            lines[free[index]] = place_between(rng, low, high)
        n_accepted += 1
    return n_accepted, work


@kernel
def _reach(tree, nodes, top, axis, side):
    """Return how far from the edge of ``top`` on a side the nearest of these nodes is cut along an axis."""
    low, high = tree.numbers[top, LOW + axis], tree.numbers[top, HIGH + axis]
    reach = high - low
    for index in range(nodes.shape[0]):
        if tree.links[nodes[index], AXIS] == axis:
            cut = tree.numbers[nodes[index], CUT]
            reach = min(reach, cut - low if side == LEFT else high - cut)
    return reach


@inlined
def put(prior, tree, leaf, cells, sums):
    """Give a leaf its statistics."""
    tree.links[leaf, CELLS] = cells
    for slot in range(tree.sums.shape[1]):
        tree.sums[leaf, slot] = sums[slot]
    tree.numbers[leaf, MARGINAL] = log_block(prior, cells, sums)


@inlined
def _move_down(tree, source, target):
    """Let a node have the cut and the parts of another."""
    tree.links[target, AXIS] = tree.links[source, AXIS]
    tree.numbers[target, CUT] = tree.numbers[source, CUT]
    tree.numbers[target, TIME] = tree.numbers[source, TIME]
    for column in (FIRST, SECOND):
        tree.links[target, column] = tree.links[source, column]
        tree.links[tree.links[source, column], PARENT] = target


@kernel
def insert_cut(tree, node, axis, cut, side):
    """Cut a node above all its cuts, which come to one part; the part on ``side`` is a leaf."""
    leaf_column, top_column = (FIRST, SECOND) if side == LEFT else (SECOND, FIRST)
    tree.free[-1] -= 2
    leaf, top = tree.free[tree.free[-1]], tree.free[tree.free[-1] + 1]
    _move_down(tree, node, top)
    tree.links[leaf, AXIS] = LEAF
    tree.links[leaf, PARENT] = tree.links[top, PARENT] = node
    tree.links[node, AXIS] = axis
    tree.numbers[node, CUT] = cut
    tree.links[node, leaf_column] = leaf
    tree.links[node, top_column] = top
    bound_parts(tree, node)


@kernel
def take_cut_out(tree, node, side):
    """Remove a cut whose part on ``side`` is a leaf; the cuts of the other part are extended over it."""
    leaf_column, top_column = (FIRST, SECOND) if side == LEFT else (SECOND, FIRST)
    leaf, top = tree.links[node, leaf_column], tree.links[node, top_column]
    _move_down(tree, top, node)
    for unused in (leaf, top):
        tree.links[unused, AXIS] = FREE
        tree.free[tree.free[-1]] = unused
        tree.free[-1] += 1
    bound_parts(tree, node)


@kernel
def _sum_parts(tree, data, lines, inside, room, beside, bounds, side, adding):
    """Sum what lines on the side of the block, and between the neighboring cuts, say by block beside it.

    Returns
    -------
    cells, sums : ndarray
        Of the block and of those beside it, without the lines between the neighboring cuts.
    joined_cells, joined_sums : ndarray
        Of those beside it if the cut were not there.
    free, sides : ndarray
        The lines between the neighboring cuts, and where they are.
    entries : tuple
        What each of these has in all, then in each block beside.
    n_summed : int
        How many lines were summed.
    """
    low, high, start, cut, end = bounds
    n_beside, n_slots, most = beside.shape[0], room.seen.shape[0], room.slots.shape[0]
    n = 0
    for line in range(lines.shape[0]):
        n += start <= lines[line] < end
    cells = np.zeros(n_beside + 1, np.int64)
    sums = np.zeros((n_beside + 1, n_slots), room.sums.dtype)
    joined_cells = np.empty(n_beside, np.int64)
    joined_sums = np.empty((n_beside, n_slots), room.sums.dtype)
    for i in range(n_beside):
        joined_cells[i] = cells[i + 1] = tree.links[beside[i], CELLS]
        for slot in range(n_slots):
            joined_sums[i, slot] = sums[i + 1, slot] = tree.sums[beside[i], slot]
    free, sides = np.empty(n, np.int64), np.empty(n, np.int64)
    n_parts = n_beside + 1
    part_cells = np.empty(n * n_parts, np.int64)
    starts = np.empty(n * n_parts + 1, np.int64)
    starts[0] = 0
    slots = np.empty(2 * n * min(most, 8) + most, np.int64)
    values = np.empty(slots.shape[0], room.sums.dtype)
    index = filled = n_summed = 0
    for line in range(lines.shape[0]):
        if not low <= lines[line] < high:
            continue
        n_summed += 1
        n_active = sum_line(data, line, inside, room)
        is_free = start <= lines[line] < end
        peeled = lines[line] < cut if side == LEFT else lines[line] >= cut
        # Statistics of the tree hold this line in the blocks beside, unless it is in the block now.
        in_tree = adding or not peeled
        for i in range(n_beside):
            m = room.cells[i + 1] - room.cells[i]
            if in_tree:
                cells[i + 1] -= m
            else:
                joined_cells[i] += m
            for a in range(n_active):
                value = room.sums[i + 1, a] - room.sums[i, a]
                if in_tree:
                    sums[i + 1, room.slots[a]] -= value
                else:
                    joined_sums[i, room.slots[a]] += value
        if not is_free:
            cells[0] += room.cells[n_beside]
            for a in range(n_active):
                sums[0, room.slots[a]] += room.sums[n_beside, a]
            continue
        for part in range(n_parts):
            before, after = (0, n_beside) if part == 0 else (part - 1, part)
            if filled + n_active > slots.shape[0]:
                slots = longer(slots, n_active)
                values = longer(values, n_active)
            part_cells[index * n_parts + part] = room.cells[after] - room.cells[before]
            for a in range(n_active):
                value = room.sums[after, a] - room.sums[before, a]
                if value != 0:
                    slots[filled] = room.slots[a]
                    values[filled] = value
                    filled += 1
            starts[index * n_parts + part + 1] = filled
        free[index] = line
        sides[index] = PEELED if peeled else STAYS
        index += 1
    entries = (part_cells, starts, slots, values)
    return cells, sums, joined_cells, joined_sums, free, sides, entries, n_summed


@kernel
def _change_parts(cells, sums, entries, index, side, sign):
    """Add a line to the block or to those beside it, or take it away."""
    part_cells, starts, slots, values = entries
    n_parts = cells.shape[0]
    for part in range(0 if side == PEELED else 1, 1 if side == PEELED else n_parts):
        entry = index * n_parts + part
        cells[part] += sign * part_cells[entry]
        for e in range(starts[entry], starts[entry + 1]):
            sums[part, slots[e]] += sign * values[e]


@kernel
def _divide_parts(rng, n_scans, prior, cells, sums, sides, entries, log_sides, forced):
    """Divide the free lines anew; ``forced``, keep them as they are. Returns ln q.

    Statistics are without these lines before and with them after; the launch state comes from sequential
    allocation in random order and further scans.
    """
    part_cells, starts, slots, values = entries
    n, n_parts = sides.shape[0], cells.shape[0]
    present, order = np.empty(n, np.int64), np.empty(n, np.int64)
    for index in range(n):
        present[index] = sides[index]
        order[index] = index
    shuffle(rng, order)
    log_q = 0.0
    for scan in range(n_scans + 2):
        is_last = scan == n_scans + 1
        for position in range(n):
            index = order[position]
            if scan > 0:  # in the first one, lines come to sides that they are not on yet
                _change_parts(cells, sums, entries, index, sides[index], -1)
            log_odds = log_sides[PEELED] - log_sides[STAYS]
            for part in range(n_parts):
                entry = index * n_parts + part
                if part_cells[entry] > 0:
                    own = (part_cells[entry], slots, values, starts[entry], starts[entry + 1])
                    gain = log_gain(prior, cells[part], sums[part], *own)
                    log_odds += gain if part == 0 else -gain
            if is_last and forced:
                side = present[index]
            else:
                side = PEELED if rng.random() * (1.0 + math.exp(-log_odds)) < 1.0 else STAYS
            if is_last:
                other_odds = -log_odds if side == PEELED else log_odds
                log_q -= max(other_odds, 0.0) + math.log1p(math.exp(-abs(other_odds)))
            sides[index] = side
            _change_parts(cells, sums, entries, index, side, 1)
    return log_q
