# mypy: ignore-errors
"""Adding and removing cuts of a Mondrian partition by reversible jump, lines divided by what they say.

The proposal of section 5.2 cuts a uniformly chosen leaf at a uniform position and leaves the lines where they
are. But where lines sit between two neighbouring cuts means nothing, so such a cut divides them at random,
and with data it is hardly ever accepted. Here the lines between the neighbouring cuts a < cut < b are divided
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
from typing import NamedTuple

import numpy as np

from permix.cocluster.cells.blocks_jit import log_block, log_gain
from permix.cocluster.mondrian.lines_jit import by_interval, class_counts, n_most_active
from permix.cocluster.mondrian.tree_jit import (
    AXIS,
    CELLS,
    CUT,
    FIRST,
    HIGH,
    LEAF,
    LOW,
    MARGINAL,
    PARENT,
    SECOND,
    count_cherries,
    count_leaves,
    draw_time,
    extent,
    is_cherry,
    join_children,
    log_time_integral,
    neighbours,
    place_between,
    split_node,
    time_before,
)
from permix.kernels.jit import kernel
from permix.kernels.random import shuffle

LEFT, RIGHT = 0, 1


class Division(NamedTuple):
    """What the lines of a leaf say, and on which side of its cut they are.

    Lines that may be on either side come first, as entries: ``values`` to be added to ``slots``.
    """

    lines: np.ndarray  # (free lines,)
    sides: np.ndarray  # (free lines,) LEFT or RIGHT
    cells: np.ndarray  # (free lines,)
    starts: np.ndarray  # (free lines + 1,)
    slots: np.ndarray  # (entries,)
    values: np.ndarray  # (entries,)
    side_cells: np.ndarray  # (2,) cells on each side
    side_sums: np.ndarray  # (2, slots)


@kernel
def change_cuts(rng, n_proposals, n_scans, law, budget, tree, data, places):
    """Propose to add or to remove a cut, ``n_proposals`` times; returns how many were accepted.

    ``data`` and ``places`` are pairs: of the rows, of the columns. The tree must have two unused nodes for
    each proposal.
    """
    n_accepted = 0
    for _ in range(n_proposals):
        if rng.random() < 0.5:
            n_accepted += _try_to_add(rng, n_scans, law, budget, tree, data, places)
        else:
            n_accepted += _try_to_remove(rng, n_scans, law, budget, tree, data, places)
    return n_accepted


@kernel
def _try_to_add(rng, n_scans, law, budget, tree, data, places):
    n_leaves = count_leaves(tree)
    leaf = _nth(tree, np.int64(rng.random() * n_leaves), False)
    height, width = extent(tree, leaf, 0), extent(tree, leaf, 1)
    position = rng.random() * (height + width)
    axis = 0 if position < height else 1
    cut = tree.numbers[leaf, LOW + axis] + (position if axis == 0 else position - height)
    if not tree.numbers[leaf, LOW + axis] < cut < tree.numbers[leaf, HIGH + axis]:
        return 0  # rounding: a part would be empty
    below, above = neighbours(tree, axis, cut, -1)
    if not below < cut < above:
        return 0
    born = time_before(tree, leaf)
    across = extent(tree, leaf, 1 - axis)
    log_ratio = math.log(n_leaves * (height + width)) + log_time_integral(across, born, budget)
    # Unless the parent was one, there is one more cut between two leaves.
    n_cherries = count_cherries(tree) + 1
    parent = tree.links[leaf, PARENT]
    if parent >= 0 and is_cherry(tree, parent):
        n_cherries -= 1
    log_ratio -= math.log(n_cherries)
    division = _gather(law, tree, leaf, axis, below, above, cut, data[axis], places[axis], places[1 - axis])
    log_left = math.log((cut - below) / (above - below))
    log_right = math.log((above - cut) / (above - below))
    log_q = _divide(rng, n_scans, law, division, log_left, log_right, False)
    marginals = (
        log_block(law, division.side_cells[LEFT], division.side_sums[LEFT]),
        log_block(law, division.side_cells[RIGHT], division.side_sums[RIGHT]),
    )
    log_ratio += marginals[0] + marginals[1] - tree.numbers[leaf, MARGINAL]
    log_ratio += _log_shares(division, log_left, log_right) - log_q
    if not -rng.standard_exponential() < log_ratio:
        return 0
    split_node(tree, leaf, axis, cut, draw_time(rng, across, born, budget))
    for side in range(2):
        child = tree.links[leaf, FIRST] if side == LEFT else tree.links[leaf, SECOND]
        tree.links[child, CELLS] = division.side_cells[side]
        tree.numbers[child, MARGINAL] = marginals[side]
        for slot in range(tree.sums.shape[1]):
            tree.sums[child, slot] = division.side_sums[side, slot]
    for index in range(division.lines.shape[0]):
        if division.sides[index] == LEFT:
            places[axis][division.lines[index]] = place_between(rng, below, cut)
        else:
            places[axis][division.lines[index]] = place_between(rng, cut, above)
    return 1


@kernel
def _try_to_remove(rng, n_scans, law, budget, tree, data, places):
    n_cherries = count_cherries(tree)
    if n_cherries == 0:
        return 0
    threshold = -rng.standard_exponential()
    node = _nth(tree, np.int64(rng.random() * n_cherries), True)
    left, right = tree.links[node, FIRST], tree.links[node, SECOND]
    axis = tree.links[node, AXIS]
    cut = tree.numbers[node, CUT]
    below, above = neighbours(tree, axis, cut, node)
    born = time_before(tree, node)
    across = extent(tree, node, 1 - axis)
    n_leaves = count_leaves(tree) - 1
    log_ratio = math.log(n_leaves * (extent(tree, node, 0) + extent(tree, node, 1)) / n_cherries)
    log_ratio += log_time_integral(across, born, budget)
    n_cells = tree.links[left, CELLS] + tree.links[right, CELLS]
    sums = tree.sums[left] + tree.sums[right]
    log_joined = log_block(law, n_cells, sums)
    log_ratio += tree.numbers[left, MARGINAL] + tree.numbers[right, MARGINAL] - log_joined
    log_left = math.log((cut - below) / (above - below))
    log_right = math.log((above - cut) / (above - below))
    for line in range(places[axis].shape[0]):
        if below <= places[axis][line] < above:
            log_ratio += log_left if places[axis][line] < cut else log_right
    # q is at most 1: what is refused without it need not be divided.
    if not threshold < -log_ratio:
        return 0
    division = _gather(law, tree, node, axis, below, above, cut, data[axis], places[axis], places[1 - axis])
    log_q = _divide(rng, n_scans, law, division, log_left, log_right, True)
    if not threshold < log_q - log_ratio:
        return 0
    join_children(tree, node)
    tree.links[node, CELLS] = n_cells
    tree.numbers[node, MARGINAL] = log_joined
    for slot in range(sums.shape[0]):
        tree.sums[node, slot] = sums[slot]
    for line in range(places[axis].shape[0]):
        if below <= places[axis][line] < above:
            places[axis][line] = place_between(rng, below, above)
    return 1


@kernel
def _nth(tree, n, cherries):
    """Return the n-th leaf, or the n-th cut between two leaves."""
    for node in range(tree.links.shape[0]):
        if is_cherry(tree, node) if cherries else tree.links[node, AXIS] == LEAF:
            if n == 0:
                return node
            n -= 1
    return -1


@kernel
def _gather(law, tree, node, axis, below, above, cut, data, places, other_places):
    """Collect what the lines of a node say within it.

    Lines between ``below`` and ``above`` may be on either side and are listed, with the side they are on
    now; the others are summed up on their side.
    """
    low, high = tree.numbers[node, LOW + axis], tree.numbers[node, HIGH + axis]
    inside = np.empty(other_places.shape[0], np.int64)
    for other in range(other_places.shape[0]):
        within = (
            tree.numbers[node, LOW + 1 - axis] <= other_places[other] < tree.numbers[node, HIGH + 1 - axis]
        )
        inside[other] = 0 if within else -1
    counts = class_counts(data, inside, 1)
    n_slots = tree.sums.shape[1]
    most = n_most_active(data, n_slots)
    cells = np.empty(1, np.int64)
    values = np.empty((1, most), tree.sums.dtype)
    slots = np.empty(most, np.int64)
    seen = np.full(n_slots, -1)
    n_lines = 0
    for line in range(places.shape[0]):
        if below <= places[line] < above:
            n_lines += 1
    lines = np.empty(n_lines, np.int64)
    line_cells = np.empty(n_lines, np.int64)
    sides = np.empty(n_lines, np.int64)
    starts = np.zeros(n_lines + 1, np.int64)
    entry_slots = np.empty(n_lines * min(most, 8) + most, np.int64)
    entry_values = np.empty(n_lines * min(most, 8) + most, tree.sums.dtype)
    side_cells = np.zeros(2, np.int64)
    side_sums = np.zeros((2, n_slots), tree.sums.dtype)
    index = 0
    n_entries = 0
    for line in range(places.shape[0]):
        if not low <= places[line] < high:
            continue
        n_active = by_interval(data, line, inside, 1, counts, cells, values, slots, seen)
        side = LEFT if places[line] < cut else RIGHT
        if below <= places[line] < above:
            if n_entries + n_active > entry_slots.shape[0]:
                entry_slots = _longer(entry_slots, n_active)
                entry_values = _longer(entry_values, n_active)
            for a in range(n_active):
                if values[0, a] != 0:
                    entry_slots[n_entries] = slots[a]
                    entry_values[n_entries] = values[0, a]
                    n_entries += 1
            lines[index] = line
            line_cells[index] = cells[0]
            sides[index] = side
            index += 1
            starts[index] = n_entries
        else:
            side_cells[side] += cells[0]
            for a in range(n_active):
                side_sums[side, slots[a]] += values[0, a]
    return Division(lines, sides, line_cells, starts, entry_slots, entry_values, side_cells, side_sums)


@kernel
def _longer(array, more):
    longer = np.empty(2 * array.shape[0] + more, array.dtype)
    for i in range(array.shape[0]):
        longer[i] = array[i]
    return longer


@kernel
def _put(division, index, side, sign):
    """Add a line to a side, or take it away."""
    division.side_cells[side] += sign * division.cells[index]
    for entry in range(division.starts[index], division.starts[index + 1]):
        division.side_sums[side, division.slots[entry]] += sign * division.values[entry]


@kernel
def _log_odds(law, division, index, log_left, log_right):
    """Return the log odds of the left side for a line that is on neither."""
    entries = slice(division.starts[index], division.starts[index + 1])
    slots, values = division.slots[entries], division.values[entries]
    n_active = values.shape[0]
    m = division.cells[index]
    if m == 0:
        return log_left - log_right
    gain = log_gain(law, division.side_cells[LEFT], division.side_sums[LEFT], m, slots, values, n_active)
    gain -= log_gain(law, division.side_cells[RIGHT], division.side_sums[RIGHT], m, slots, values, n_active)
    return gain + log_left - log_right


@kernel
def _divide(rng, n_scans, law, division, log_left, log_right, forced):
    """Divide the lines anew and return ln q; ``forced``, return ln q of the present division and keep it.

    The launch state comes from sequential allocation in random order and further scans.
    """
    n = division.lines.shape[0]
    present = division.sides.copy()
    order = np.arange(n)
    shuffle(rng, order)
    for position in range(n):
        index = order[position]
        division.sides[index] = _drawn_side(rng, _log_odds(law, division, index, log_left, log_right))
        _put(division, index, division.sides[index], 1)
    for _ in range(n_scans):
        for position in range(n):
            index = order[position]
            _put(division, index, division.sides[index], -1)
            division.sides[index] = _drawn_side(rng, _log_odds(law, division, index, log_left, log_right))
            _put(division, index, division.sides[index], 1)
    log_q = 0.0
    for position in range(n):
        index = order[position]
        _put(division, index, division.sides[index], -1)
        log_odds = _log_odds(law, division, index, log_left, log_right)
        side = present[index] if forced else _drawn_side(rng, log_odds)
        log_q -= _log1p_exp(-log_odds if side == LEFT else log_odds)
        division.sides[index] = side
        _put(division, index, side, 1)
    return log_q


@kernel
def _drawn_side(rng, log_odds):
    """Draw LEFT with these log odds."""
    return LEFT if rng.random() * (1.0 + math.exp(-log_odds)) < 1.0 else RIGHT


@kernel
def _log1p_exp(x):
    """Return ln(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@kernel
def _log_shares(division, log_left, log_right):
    """Return the log prior probability of the division."""
    total = 0.0
    for index in range(division.lines.shape[0]):
        total += log_left if division.sides[index] == LEFT else log_right
    return total
