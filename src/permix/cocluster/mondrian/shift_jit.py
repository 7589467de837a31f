# mypy: ignore-errors
"""Moves of a Mondrian partition that leave the number of cuts alone, or draw part of it afresh.

- A cut between its neighbors a < cut < b, with m lines before it and n after it: the position is proposed
  from Beta(m + 1, n + 1) on (a, b) and the lines go with it, in proportion. The likelihood stays, the Beta
  density cancels against the room that lines have, and what is left is the density of the tree.
- A cut anywhere between the cuts of its own axis that it must not pass: uniform, lines stay, and those that
  it passes change blocks.
- A subtree is replaced by one drawn from the prior, which is accepted by the likelihood ratio and the
  number of nodes to choose from.
- The time of each cut from its conditional.
"""

from __future__ import annotations

import math

import numpy as np

from permix.cocluster.mondrian.lines_jit import recount
from permix.cocluster.mondrian.tree_jit import (
    AXIS,
    CUT,
    CUTS,
    FIRST,
    HIGH,
    LEAVES,
    LOW,
    SECOND,
    bound_parts,
    copy_tree,
    draw_time,
    drop_below,
    log_density,
    mark_leaves,
    neighbors,
    nodes_below,
    nodes_of,
    split_node,
)
from permix.kernels.jit import inlined, kernel


@kernel
def draw_times(rng, budget, tree):
    """Draw the time of every cut from its conditional."""
    nodes = nodes_below(tree, 0)
    for index in range(nodes.shape[0]):
        if tree.links[nodes[index], AXIS] >= 0:
            draw_time(rng, tree, nodes[index], budget)


@kernel
def random_cut(rng, tree):
    """Draw one of the cuts, or -1 where there is none."""
    cuts = nodes_of(tree, CUTS)
    place = np.int64(rng.random() * cuts.shape[0])
    return cuts[place] if cuts.shape[0] else -1


@inlined
def _move_cut(tree, node, cut):
    """Put a cut elsewhere, and the edges that it makes."""
    tree.numbers[node, CUT] = cut
    bound_parts(tree, node)


@kernel
def stretch_cuts(rng, n_proposals, budget, tree, places):
    """Move cuts between their neighbors, lines with them; returns how many moved."""
    n_accepted = 0
    for _ in range(n_proposals):
        node = random_cut(rng, tree)
        if node < 0:
            return 0
        axis = tree.links[node, AXIS]
        old = tree.numbers[node, CUT]
        lines = places[axis]
        below, above = neighbors(tree, axis, lines[:0], old, node, node)
        n_left = 0
        n_right = 0
        for line in range(lines.shape[0]):
            if below <= lines[line] < above:
                if lines[line] < old:
                    n_left += 1
                else:
                    n_right += 1
        # A Gamma of whole shape is a sum of exponentials, which costs no more than the lines counted here.
        first = total = 0.0
        for draw in range(n_left + n_right + 2):
            total += rng.standard_exponential()
            if draw == n_left:
                first = total
        new = below + (above - below) * (first / total)
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
def shift_cuts(rng, n_proposals, prior, budget, tree, spare, data, places):
    """Move cuts past lines; returns how many moved. ``spare`` is a tree of the same capacity to write on."""
    n_accepted = 0
    for _ in range(n_proposals):
        node = random_cut(rng, tree)
        if node < 0:
            return 0
        axis, cut = tree.links[node, AXIS], tree.numbers[node, CUT]
        lowest, highest = tree.numbers[node, LOW + axis], tree.numbers[node, HIGH + axis]
        below = nodes_below(tree, node)
        for index in range(1, below.shape[0]):
            if tree.links[below[index], AXIS] == axis:
                other = tree.numbers[below[index], CUT]
                if other < cut:
                    lowest = max(lowest, other)
                else:
                    highest = min(highest, other)
        new = lowest + (highest - lowest) * rng.random()
        if not lowest < new < highest:
            continue
        before = log_density(tree, node, budget) + mark_leaves(prior, tree, node)
        copy_tree(tree, spare)
        _move_cut(tree, node, new)
        after = recount(prior, tree, node, data[0], places[0], places[1]) + log_density(tree, node, budget)
        if -rng.standard_exponential() < after - before:
            n_accepted += 1
        else:
            copy_tree(spare, tree)
    return n_accepted


@kernel
def graft(tree, top, axes, cuts, times):
    """Replace what is below ``top`` by cuts in pre-order; statistics are not set."""
    drop_below(tree, top)
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
def redraw_subtree(rng, prior, tree, spare, data, places, top, cuts):
    """Propose cuts drawn from the prior for the subtree of a random node; returns 1 or 0."""
    before = mark_leaves(prior, tree, top)
    n_before = 2 * nodes_of(tree, LEAVES).shape[0] - 1
    copy_tree(tree, spare)
    graft(tree, top, cuts[0], cuts[1], cuts[2])
    log_ratio = recount(prior, tree, top, data[0], places[0], places[1]) - before
    log_ratio += math.log(n_before / (2 * nodes_of(tree, LEAVES).shape[0] - 1))
    if -rng.standard_exponential() < log_ratio:
        return 1
    copy_tree(spare, tree)
    return 0
