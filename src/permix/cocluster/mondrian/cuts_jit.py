# mypy: ignore-errors
"""Adding and removing cuts of a Mondrian partition by reversible jump, lines divided by what they say.

The proposal of section 5.2 cuts a uniformly chosen leaf at a uniform position and leaves the lines where they
are. But where lines sit between two neighboring cuts means nothing, so such a cut divides them at random,
and with data it is hardly ever accepted. Here the lines between the neighboring cuts a < cut < b are divided
as in the split-merge moves of Jain & Neal (2004): those on either side get a new place there. Other leaves
that these lines cross do not notice, since they are not cut between a and b.

With K leaves before and D cuts between two leaves after adding, τ the half-perimeter and w the length of the
cut, a position uniform over τ and a time from its conditional (density ∝ e^(w time) up to the budget λ), the
ratio of adding is

    L'/L × K/D × τ ∫ e^(-w (λ - time)) d time × Π_lines (share of its side) / q,

where the integral runs from the time the leaf came to be until λ, the share of a side is its part of b - a,
and q is the probability of this division. It replaces (ω' ω''/ω) K/D of a time drawn from Exp(τ), which has
to be rejected where it exceeds λ. Removal is the inverse: the lines between a and b get a new place there.
The division is proposed by scans of Gibbs over the two sides that start from a state which
does not depend on the present division; q is that of the last scan.
"""

from __future__ import annotations

import math

import numpy as np

from permix.cocluster.cells.blocks_jit import log_block, log_gain
from permix.cocluster.mondrian.lines_jit import place_between, room_for, sum_line
from permix.cocluster.mondrian.tree_jit import (
    AXIS,
    CELLS,
    CHERRIES,
    CUT,
    FIRST,
    HIGH,
    LEAVES,
    LOW,
    MARGINAL,
    PARENT,
    SECOND,
    draw_time,
    drop_below,
    extent,
    log_time_integral,
    n_leaves_below,
    neighbors,
    nodes_of,
    split_node,
    time_before,
)
from permix.kernels.jit import kernel
from permix.kernels.random import shuffle

LEFT, RIGHT = 0, 1
# What so many lines looked at, and a line whose cells are summed, cost in scores of a line against a block.
LINES_LOOKED_AT, LINE_SUMMED = 16, 4


@kernel
def change_cuts(rng, n_proposals, n_scans, prior, budget, tree, data, places):
    """Propose to add or to remove a cut ``n_proposals`` times; returns how many were accepted, and the work.

    The unit of work is a line scored against a block. ``data`` and ``places`` are pairs: of the rows, of the
    columns. The tree must have two unused nodes for each proposal.
    """
    n_accepted = work = 0
    log_sides, marginals = np.empty(2), np.empty(2)
    for _ in range(n_proposals):
        adding = rng.random() < 0.5
        leaves, cherries = nodes_of(tree, LEAVES), nodes_of(tree, CHERRIES)
        n_leaves, n_cherries = leaves.shape[0], cherries.shape[0]
        # Where to cut, or which cut to remove; the numbers of leaves before, and of cherries after adding.
        if adding:
            node = leaves[np.int64(rng.random() * n_leaves)]
            height = extent(tree, node, 0)
            position = rng.random() * (height + extent(tree, node, 1))
            axis = 0 if position < height else 1
            cut = tree.numbers[node, LOW + axis] + (position if axis == 0 else position - height)
            # Unless the parent was one, there is one more cut between two leaves.
            parent = tree.links[node, PARENT]
            n_cherries += not (parent >= 0 and n_leaves_below(tree, parent) == 2)
            threshold = 0.0
        else:
            if n_cherries == 0:
                continue
            threshold = -rng.standard_exponential()
            node = cherries[np.int64(rng.random() * n_cherries)]
            axis, cut = tree.links[node, AXIS], tree.numbers[node, CUT]
            n_leaves -= 1
        lines, other_lines = places[axis], places[1 - axis]
        work += (lines.shape[0] + other_lines.shape[0]) // LINES_LOOKED_AT
        below, above = neighbors(tree, axis, lines[:0], cut, node, node)
        low, high = tree.numbers[node, LOW + axis], tree.numbers[node, HIGH + axis]
        if not (low < cut < high and below < cut < above):
            continue  # rounding: a part would be empty
        log_sides[LEFT] = math.log((cut - below) / (above - below))
        log_sides[RIGHT] = math.log((above - cut) / (above - below))
        log_ratio = math.log(n_leaves * (extent(tree, node, 0) + extent(tree, node, 1)) / n_cherries)
        log_ratio += log_time_integral(extent(tree, node, 1 - axis), time_before(tree, node), budget)
        left, right = tree.links[node, FIRST], tree.links[node, SECOND]
        if not adding:
            # A node that is cut has no cells of its own: its statistics are room for what a removal leaves.
            tree.links[node, CELLS] = tree.links[left, CELLS] + tree.links[right, CELLS]
            for slot in range(tree.sums.shape[1]):
                tree.sums[node, slot] = tree.sums[left, slot] + tree.sums[right, slot]
            log_joined = log_block(prior, tree.links[node, CELLS], tree.sums[node])
            log_ratio += tree.numbers[left, MARGINAL] + tree.numbers[right, MARGINAL] - log_joined
            for line in range(lines.shape[0]):
                if below <= lines[line] < above:
                    log_ratio += log_sides[LEFT if lines[line] < cut else RIGHT]
            # q is at most 1: what is refused without it need not be divided.
            if not threshold < -log_ratio:
                continue
        bounds = (low, below, cut, above, high)
        inside = np.empty(other_lines.shape[0], np.int64)
        first, last = tree.numbers[node, LOW + 1 - axis], tree.numbers[node, HIGH + 1 - axis]
        for other in range(other_lines.shape[0]):
            inside[other] = 0 if first <= other_lines[other] < last else -1
        room = room_for(tree, data[axis], inside, 1)
        whole = (tree.links[node, CELLS], tree.sums[node])
        free, sides, side_cells, side_sums, log_q, n_summed = _divide(
            rng, n_scans, prior, data[axis], lines, inside, room, whole, bounds, log_sides, not adding
        )
        work += LINE_SUMMED * n_summed + 2 * (n_scans + 2) * free.shape[0]
        if adding:
            log_ratio -= tree.numbers[node, MARGINAL]
            for side in range(2):
                marginals[side] = log_block(prior, side_cells[side], side_sums[side])
                log_ratio += marginals[side]
            for index in range(free.shape[0]):
                log_ratio += log_sides[sides[index]]
            if not -rng.standard_exponential() < log_ratio - log_q:
                continue
            split_node(tree, node, axis, cut, budget)
            draw_time(rng, tree, node, budget)
            for side in range(2):
                child = tree.links[node, FIRST] if side == LEFT else tree.links[node, SECOND]
                tree.links[child, CELLS] = side_cells[side]
                tree.numbers[child, MARGINAL] = marginals[side]
                for slot in range(tree.sums.shape[1]):
                    tree.sums[child, slot] = side_sums[side, slot]
        else:
            if not threshold < log_q - log_ratio:
                continue
            drop_below(tree, node)
            tree.numbers[node, MARGINAL] = log_joined
        for index in range(free.shape[0]):
            start = cut if adding and sides[index] == RIGHT else below
            end = cut if adding and sides[index] == LEFT else above
            lines[free[index]] = place_between(rng, start, end)
        n_accepted += 1
    return n_accepted, work


@kernel
def longer(array, more):
    """Return an array of more than twice the length that begins like this one."""
    longer = np.empty(2 * array.shape[0] + more, array.dtype)
    for i in range(array.shape[0]):
        longer[i] = array[i]
    return longer


@kernel
def _divide(rng, n_scans, prior, data, places, inside, room, whole, bounds, log_sides, forced):
    """Divide the lines between neighboring cuts anew; ``forced``, keep them and find ln q.

    Lines of the node that are beyond the neighboring cuts stay on their side; where they are fewer, they are
    summed, and on the other side is what is left of the ``whole``, the cells of the node and what they add up
    to. The launch state comes from sequential allocation in random order and further scans.

    Returns
    -------
    free : ndarray
        The lines between the neighboring cuts.
    sides : ndarray
        The side that each of them is on.
    side_cells, side_sums : ndarray
        What all lines on either side add up to within the node.
    log_q : float
    n_summed : int
        How many lines were summed.
    """
    low, below, cut, above, high = bounds
    n_slots, most = room.seen.shape[0], room.slots.shape[0]
    n = n_below = n_above = 0
    for line in range(places.shape[0]):
        n += below <= places[line] < above
        n_below += low <= places[line] < below
        n_above += above <= places[line] < high
    # Between these are the lines to sum.
    fewer = LEFT if n_below < n_above else RIGHT
    start = low if fewer == LEFT else below
    stop = above if fewer == LEFT else high
    free = np.empty(n, np.int64)
    cells = np.empty(n, np.int64)
    sides = np.empty(n, np.int64)
    starts = np.empty(n + 1, np.int64)
    starts[0] = 0
    slots = np.empty(n * min(most, 8) + most, np.int64)
    values = np.empty(slots.shape[0], room.sums.dtype)
    side_cells = np.empty(2, np.int64)
    side_sums = np.empty((2, n_slots), room.sums.dtype)
    for side in range(2):
        side_cells[side] = 0 if side == fewer else whole[0]
        for slot in range(n_slots):
            side_sums[side, slot] = 0 if side == fewer else whole[1][slot]
    index = 0
    end = 0
    for line in range(places.shape[0]):
        if not start <= places[line] < stop:
            continue
        n_active = sum_line(data, line, inside, room)
        side = LEFT if places[line] < cut else RIGHT
        if below <= places[line] < above:
            if end + n_active > slots.shape[0]:
                slots = longer(slots, n_active)
                values = longer(values, n_active)
            side_cells[1 - fewer] -= room.cells[1]
            for a in range(n_active):
                if room.sums[1, a] != 0:
                    slots[end] = room.slots[a]
                    values[end] = room.sums[1, a]
                    side_sums[1 - fewer, slots[end]] -= values[end]
                    end += 1
            free[index] = line
            cells[index] = room.cells[1]
            sides[index] = side
            index += 1
            starts[index] = end
        else:
            side_cells[side] += room.cells[1]
            side_cells[1 - fewer] -= room.cells[1]
            for a in range(n_active):
                side_sums[side, room.slots[a]] += room.sums[1, a]
                side_sums[1 - fewer, room.slots[a]] -= room.sums[1, a]
    present, order = np.empty(n, np.int64), np.empty(n, np.int64)
    for index in range(n):
        present[index] = sides[index]
        order[index] = index
    shuffle(rng, order)
    left_sums, right_sums = side_sums[LEFT], side_sums[RIGHT]
    log_q = 0.0
    for scan in range(n_scans + 2):
        for position in range(n):
            index = order[position]
            first, last = starts[index], starts[index + 1]
            if scan > 0:  # in the first one, lines come to sides that they are not on yet
                side = sides[index]
                side_cells[side] -= cells[index]
                for entry in range(first, last):
                    side_sums[side, slots[entry]] -= values[entry]
            gain = 0.0
            if cells[index] > 0:
                own = (cells[index], slots, values, first, last)
                gain += log_gain(prior, side_cells[LEFT], left_sums, *own)
                gain -= log_gain(prior, side_cells[RIGHT], right_sums, *own)
            log_odds = gain + log_sides[LEFT] - log_sides[RIGHT]
            is_last = scan == n_scans + 1
            if is_last and forced:
                side = present[index]
            else:
                side = LEFT if rng.random() * (1.0 + math.exp(-log_odds)) < 1.0 else RIGHT
            if is_last:
                other_odds = -log_odds if side == LEFT else log_odds
                log_q -= max(other_odds, 0.0) + math.log1p(math.exp(-abs(other_odds)))
            sides[index] = side
            side_cells[side] += cells[index]
            for entry in range(first, last):
                side_sums[side, slots[entry]] += values[entry]
    return free, sides, side_cells, side_sums, log_q, n + min(n_below, n_above)
