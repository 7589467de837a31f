# mypy: ignore-errors
"""Exchanging the order of cuts in a Mondrian partition: of parallel ones, and of crossing ones.

A node cut at x1, whose right part is cut along the same axis at x2, is divided into the same three parts as
a node cut at x2 first whose left part is cut at x1. Only cuts between two leaves can be removed, and the
exchange brings others to where they are such. It keeps the time of the upper cut and draws that of the lower
one from its conditional.

A node cut along one axis at x, whose parts are both cut along the other, at y1 and y2 with no line and no cut
between them, divides its cells into the same four groups as a node cut at y1 first whose parts are cut at x
and at some x2 with nothing between x and x2. Adding and removing cuts hardly ever gets from one to the other,
since all that is below would have to go; yet where the data hold no cut on one side of y1, only one of the
two orders can drop it. The exchange keeps x and y1, draws x2 uniformly from where nothing lies between, gives
y2 up, and draws the times of both lower cuts from their conditionals; its inverse is an exchange, too. The
likelihood stays.
"""

from __future__ import annotations

import math

from permix.cocluster.mondrian.shift_jit import random_cut
from permix.cocluster.mondrian.tree_jit import (
    AXIS,
    CUT,
    FIRST,
    PARENT,
    SECOND,
    TIME,
    bound_parts,
    draw_time,
    log_density,
    log_time_integral,
    neighbors,
    time_span,
)
from permix.kernels.jit import kernel


@kernel
def rotate_cuts(rng, n_proposals, budget, tree, places):
    """Propose exchanges; returns how many could be tried and how many were made."""
    n_tried = 0
    n_accepted = 0
    for _ in range(n_proposals):
        node = random_cut(rng, tree)
        if node < 0:
            break
        axis = tree.links[node, AXIS]
        side = FIRST if rng.random() < 0.5 else SECOND
        child = tree.links[node, side]
        if tree.links[child, AXIS] == axis:
            n_tried += 1
            time = tree.numbers[child, TIME]
            log_ratio = -_log_times_of(tree, child, budget)
            turn(tree, node, side)
            draw_time(rng, tree, child, budget)
            log_ratio += _log_times_of(tree, child, budget)
            if -rng.standard_exponential() < log_ratio:
                n_accepted += 1
            else:
                turn(tree, node, FIRST if side == SECOND else SECOND)
                tree.numbers[child, TIME] = time
            continue
        left, right = tree.links[node, FIRST], tree.links[node, SECOND]
        if tree.links[left, AXIS] != 1 - axis or tree.links[right, AXIS] != 1 - axis:
            continue
        x, y1, y2 = tree.numbers[node, CUT], tree.numbers[left, CUT], tree.numbers[right, CUT]
        below, above = neighbors(tree, 1 - axis, places[1 - axis], y1, left, right)
        if not below < y2 < above:
            continue
        low, high = neighbors(tree, axis, places[axis], x, node, node)
        x2 = low + (high - low) * rng.random()
        if not low < x2 < high:
            continue
        n_tried += 1
        log_ratio = math.log((high - low) / (above - below))
        time_left, time_right = tree.numbers[left, TIME], tree.numbers[right, TIME]
        log_ratio -= log_without_times(tree, node, budget)
        exchange(tree, node, x2)
        for child in (left, right):
            draw_time(rng, tree, child, budget)
        log_ratio += log_without_times(tree, node, budget)
        if -rng.standard_exponential() < log_ratio:
            n_accepted += 1
        else:
            exchange(tree, node, y2)
            tree.numbers[left, TIME] = time_left
            tree.numbers[right, TIME] = time_right
    return n_tried, n_accepted


@kernel
def log_without_times(tree, node, budget):
    """Return the log prior density of a node and all below it, the times of its two parts integrated out."""
    value = log_density(tree, node, budget)
    for child in (tree.links[node, FIRST], tree.links[node, SECOND]):
        width, earliest, latest = time_span(tree, child, budget)
        value += width * (latest - tree.numbers[child, TIME]) + log_time_integral(width, earliest, latest)
    return value


@kernel
def _log_times_of(tree, node, budget):
    """Return ln of the integral of e^(width × time) over all times that a cut may have."""
    width, earliest, latest = time_span(tree, node, budget)
    return width * latest + log_time_integral(width, earliest, latest)


@kernel
def turn(tree, node, side):
    """Cut a node where its part on ``side`` is cut, along the same axis, and the other part where it was."""
    other = FIRST if side == SECOND else SECOND
    child = tree.links[node, side]
    # The outer part of the child becomes the node's, and the node's other part the child's.
    outer, inner, apart = tree.links[child, side], tree.links[child, other], tree.links[node, other]
    tree.links[node, side] = outer
    tree.links[node, other] = child
    tree.links[child, side] = inner
    tree.links[child, other] = apart
    tree.links[outer, PARENT] = node
    tree.links[apart, PARENT] = child
    x = tree.numbers[node, CUT]
    tree.numbers[node, CUT] = tree.numbers[child, CUT]
    tree.numbers[child, CUT] = x
    bound_parts(tree, node)


@kernel
def exchange(tree, node, second):
    """Cut at the left part's cut first; the parts are then cut where the node was, and at ``second``."""
    left, right = tree.links[node, FIRST], tree.links[node, SECOND]
    axis = tree.links[node, AXIS]
    x = tree.numbers[node, CUT]
    tree.numbers[node, CUT] = tree.numbers[left, CUT]
    tree.links[node, AXIS] = 1 - axis
    tree.links[left, AXIS] = axis
    tree.links[right, AXIS] = axis
    tree.numbers[left, CUT] = x
    tree.numbers[right, CUT] = second
    upper = tree.links[left, SECOND]
    tree.links[left, SECOND] = tree.links[right, FIRST]
    tree.links[right, FIRST] = upper
    tree.links[tree.links[left, SECOND], PARENT] = left
    tree.links[upper, PARENT] = right
    bound_parts(tree, node)
