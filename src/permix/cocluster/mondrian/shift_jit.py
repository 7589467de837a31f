# mypy: ignore-errors
"""Moves of a Mondrian partition that leave the number of cuts alone, or draw part of it afresh.

- A cut between its neighbours a < cut < b, with m lines before it and n after it: the position is proposed
  from Beta(m + 1, n + 1) on (a, b) and the lines go with it, in proportion. The likelihood stays, the Beta
  density cancels against the room that lines have, and what is left is the density of the tree.
- A cut anywhere between the cuts of its own axis that it must not pass: uniform, lines stay, and those that
  it passes change blocks.
- A subtree is replaced by one drawn from the prior: the likelihood ratio and the number of nodes to
  choose from decide.
- The time of each cut from its conditional.
"""

from __future__ import annotations

import math

import numpy as np

from permix.cocluster.mondrian.lines_jit import recount
from permix.cocluster.mondrian.tree_jit import (
    AXIS,
    CUT,
    FIRST,
    HIGH,
    LEAF,
    LOW,
    PARENT,
    SECOND,
    TIME,
    copy_tree,
    count_leaves,
    draw_time,
    drop_node,
    extent,
    log_density,
    log_likelihood_below,
    neighbours,
    nodes_below,
    split_node,
    time_before,
)
from permix.kernels.jit import kernel


@kernel
def draw_times(rng, budget, tree):
    """Draw the time of every cut from its conditional."""
    nodes = nodes_below(tree, 0)
    for index in range(nodes.shape[0]):
        node = nodes[index]
        if tree.links[node, AXIS] >= 0:
            latest = budget
            for child in (tree.links[node, FIRST], tree.links[node, SECOND]):
                if tree.links[child, AXIS] >= 0:
                    latest = min(latest, tree.numbers[child, TIME])
            width = extent(tree, node, 1 - tree.links[node, AXIS])
            tree.numbers[node, TIME] = draw_time(rng, width, time_before(tree, node), latest)


@kernel
def random_cut(rng, tree):
    """Draw one of the cuts, or -1 where there is none."""
    n = np.int64(rng.random() * (count_leaves(tree) - 1))
    for node in range(tree.links.shape[0]):
        if tree.links[node, AXIS] >= 0:
            if n == 0:
                return node
            n -= 1
    return -1


@kernel
def _move_cut(tree, node, cut):
    """Put a cut elsewhere, and the edges that it makes."""
    axis = tree.links[node, AXIS]
    tree.numbers[node, CUT] = cut
    for child, is_left in ((tree.links[node, FIRST], True), (tree.links[node, SECOND], False)):
        below = nodes_below(tree, child)
        for index in range(below.shape[0]):
            part = below[index]
            # Reached from the cut without another cut of its axis between: that side is the cut's.
            if _touches(tree, part, node, axis, is_left):
                if is_left:
                    tree.numbers[part, HIGH + axis] = cut
                else:
                    tree.numbers[part, LOW + axis] = cut


@kernel
def _touches(tree, part, node, axis, is_left):
    """Say whether the cut of ``node`` bounds ``part``, which is below it on the given side."""
    while tree.links[part, PARENT] != node:
        parent = tree.links[part, PARENT]
        if tree.links[parent, AXIS] == axis:
            # Of a part cut along the same axis, only the half at the cut touches it.
            if is_left and part == tree.links[parent, FIRST]:
                return False
            if not is_left and part == tree.links[parent, SECOND]:
                return False
        part = parent
    return True


@kernel
def stretch_cuts(rng, n_proposals, budget, tree, places):
    """Move cuts between their neighbours, lines with them; returns how many moved."""
    n_accepted = 0
    for _ in range(n_proposals):
        node = random_cut(rng, tree)
        if node < 0:
            return 0
        axis = tree.links[node, AXIS]
        old = tree.numbers[node, CUT]
        below, above = neighbours(tree, axis, old, node)
        n_left = 0
        n_right = 0
        lines = places[axis]
        for line in range(lines.shape[0]):
            if below <= lines[line] < above:
                if lines[line] < old:
                    n_left += 1
                else:
                    n_right += 1
        first = rng.standard_gamma(n_left + 1.0)
        share = first / (first + rng.standard_gamma(n_right + 1.0))
        new = below + (above - below) * share
        if not below < new < above:
            continue
        before = log_density(tree, node, budget)
        _move_cut(tree, node, new)
        if not -rng.standard_exponential() < log_density(tree, node, budget) - before:
            _move_cut(tree, node, old)
            continue
        n_accepted += 1
        for line in range(lines.shape[0]):
            place = lines[line]
            if below <= place < above:
                if place < old:
                    place = below + (place - below) * ((new - below) / (old - below))
                    lines[line] = place if place < new else below
                else:
                    place = new + (place - old) * ((above - new) / (above - old))
                    lines[line] = place if new <= place < above else new
    return n_accepted


@kernel
def shift_cuts(rng, n_proposals, law, budget, tree, spare, data, places):
    """Move cuts past lines; returns how many moved. ``spare`` is a tree of the same capacity to write on."""
    n_accepted = 0
    for _ in range(n_proposals):
        node = random_cut(rng, tree)
        if node < 0:
            return 0
        axis = tree.links[node, AXIS]
        lowest, highest = tree.numbers[node, LOW + axis], tree.numbers[node, HIGH + axis]
        for child, is_left in ((tree.links[node, FIRST], True), (tree.links[node, SECOND], False)):
            below = nodes_below(tree, child)
            for index in range(below.shape[0]):
                if tree.links[below[index], AXIS] == axis:
                    if is_left:
                        lowest = max(lowest, tree.numbers[below[index], CUT])
                    else:
                        highest = min(highest, tree.numbers[below[index], CUT])
        new = lowest + (highest - lowest) * rng.random()
        if not lowest < new < highest:
            continue
        before = log_density(tree, node, budget) + log_likelihood_below(tree, node)
        copy_tree(tree, spare)
        _move_cut(tree, node, new)
        recount(law, tree, node, data[0], places[0], places[1])
        after = log_density(tree, node, budget) + log_likelihood_below(tree, node)
        if -rng.standard_exponential() < after - before:
            n_accepted += 1
        else:
            copy_tree(spare, tree)
    return n_accepted


@kernel
def draw_cuts(rng, tree, top, budget):
    """Draw a Mondrian partition of a node's rectangle: axis, cut and time of each node in pre-order.

    Algorithm 1 of Wang, Laskey, Domeniconi & Jordan (2011); leaves have axis LEAF.
    """
    axes = np.empty(16, np.int64)
    cuts = np.empty(16)
    times = np.empty(16)
    waiting = np.empty((16, 5))
    for axis in range(2):
        waiting[0, 2 * axis] = tree.numbers[top, LOW + axis]
        waiting[0, 2 * axis + 1] = tree.numbers[top, HIGH + axis]
    waiting[0, 4] = time_before(tree, top)
    n_waiting = 1
    n = 0
    while n_waiting:
        if n == axes.shape[0]:
            axes = _twice(axes)
            cuts = _twice(cuts)
            times = _twice(times)
        if n_waiting + 1 >= waiting.shape[0]:
            waiting = _twice_as_many(waiting)
        here = waiting[n_waiting - 1]
        height, width = here[1] - here[0], here[3] - here[2]
        axes[n] = LEAF
        cuts[n] = np.nan
        times[n] = np.nan
        time = budget
        if height + width > 0.0:
            time = here[4] + rng.standard_exponential() / (height + width)
        if time >= budget:
            n_waiting -= 1
        else:
            place = rng.random() * (height + width)
            axes[n] = 0 if place < height else 1
            cuts[n] = here[0] + place if place < height else here[2] + (place - height)
            times[n] = time
            # The right part waits in place of the whole, and the left part, next in pre-order, on top of it.
            for j in range(4):
                waiting[n_waiting, j] = here[j]
            waiting[n_waiting, 4] = time
            waiting[n_waiting, 2 * axes[n] + 1] = cuts[n]
            here[2 * axes[n]] = cuts[n]
            here[4] = time
            n_waiting += 1
        n += 1
    return axes[:n], cuts[:n], times[:n]


@kernel
def _twice(array):
    longer = np.empty(2 * array.shape[0], array.dtype)
    for i in range(array.shape[0]):
        longer[i] = array[i]
    return longer


@kernel
def _twice_as_many(rows):
    larger = np.empty((2 * rows.shape[0], rows.shape[1]))
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            larger[i, j] = rows[i, j]
    return larger


@kernel
def random_node(rng, tree):
    """Draw a node, leaves included."""
    n = np.int64(rng.random() * (2 * count_leaves(tree) - 1))
    for node in range(tree.links.shape[0]):
        if tree.links[node, AXIS] >= LEAF:
            if n == 0:
                return node
            n -= 1
    return -1


@kernel
def graft(tree, top, axes, cuts, times):
    """Replace what is below ``top`` by cuts as ``draw_cuts`` gives them; statistics are not set."""
    below = nodes_below(tree, top)
    for index in range(1, below.shape[0]):
        drop_node(tree, below[index])
    tree.links[top, AXIS] = LEAF
    stack = np.empty(axes.shape[0] + 1, np.int64)
    stack[0] = top
    n = 1
    for i in range(axes.shape[0]):
        n -= 1
        node = stack[n]
        if axes[i] >= 0:
            split_node(tree, node, axes[i], cuts[i], times[i])
            stack[n] = tree.links[node, SECOND]
            stack[n + 1] = tree.links[node, FIRST]
            n += 2


@kernel
def redraw_subtree(rng, law, tree, spare, data, places, top, axes, cuts, times):
    """Propose what ``draw_cuts`` drew for the subtree of a node drawn by ``random_node``; returns 1 or 0."""
    before = log_likelihood_below(tree, top)
    n_before = 2 * count_leaves(tree) - 1
    copy_tree(tree, spare)
    graft(tree, top, axes, cuts, times)
    recount(law, tree, top, data[0], places[0], places[1])
    log_ratio = log_likelihood_below(tree, top) - before
    log_ratio += math.log(n_before / (2 * count_leaves(tree) - 1))
    if -rng.standard_exponential() < log_ratio:
        return 1
    copy_tree(spare, tree)
    return 0
