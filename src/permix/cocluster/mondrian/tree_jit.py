# mypy: ignore-errors
"""A Mondrian partition of the unit square as a tree in arrays, with the statistics of its leaves.

A node is a rectangle; it is cut at ``time``, the cost spent from the root until then, along ``axis`` at
``cut``, or it is a leaf, a block. In these coordinates the prior has a simple density: a rectangle of
half-perimeter τ waits an Exp(τ) time, and its parts have half-perimeters that sum to τ + w, where w is the
length of the cut, so with budget λ

    ln p(tree) = -2 λ - Σ_cuts w (λ - time)

with respect to Lebesgue measure over times and over positions along the half-perimeters. The time of a cut
given the rest has density ∝ e^(w time) between the time of its parent and those of its children.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.cocluster.cells.blocks_jit import log_block
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import inlined, kernel

LEAF, FREE = -1, -2
NOBODY = -1
# Columns of ``links`` and of ``numbers``; LOW + axis and HIGH + axis bound the rectangle.
AXIS, PARENT, FIRST, SECOND, CELLS = 0, 1, 2, 3, 4
CUT, TIME, MARGINAL, LOW, HIGH = 0, 1, 2, 3, 5
# What nodes are asked for: leaves, all cuts, or those with two parts that are leaves, or just one.
LEAVES, CUTS, CHERRIES, SINGLES = 0, 1, 2, 3


@by_reference
class Tree(NamedTuple):
    """Nodes by number; node 0 is the unit square. Nodes not in use have axis FREE.

    Compiled code passes a tree on as one pointer. The properties are for Python.
    """

    # (capacity, 5) axis (0 cuts rows, 1 columns, LEAF or FREE), parent, parts, cells of a leaf
    links: np.ndarray
    numbers: np.ndarray  # (capacity, 7) position and time of the cut, ln p(cells) of a leaf, the rectangle
    sums: np.ndarray  # (capacity, slots) of a leaf
    free: np.ndarray  # (capacity + 1,) stack of unused nodes; the last entry says how many there are

    axis = property(lambda self: self.links[:, AXIS])
    n_cells = property(lambda self: self.links[:, CELLS])
    cut = property(lambda self: self.numbers[:, CUT])
    time = property(lambda self: self.numbers[:, TIME])
    log_marginal = property(lambda self: self.numbers[:, MARGINAL])


def new_tree(capacity: int, n_slots: int, dtype: type) -> Tree:
    """Return a tree that is one block without cells."""
    links = np.full((capacity, 5), NOBODY, dtype=np.int64)
    links[:, AXIS] = FREE
    links[0, AXIS] = LEAF
    links[:, CELLS] = 0
    numbers = np.full((capacity, 7), np.nan)
    numbers[:, MARGINAL] = 0.0
    numbers[:, LOW : LOW + 2] = 0.0
    numbers[:, HIGH : HIGH + 2] = 1.0
    # The stack is read from its end, so that node 1 comes first.
    free = np.arange(capacity - 1, -2, -1, dtype=np.int64)
    free[-1] = capacity - 1
    return Tree(links, numbers, np.zeros((capacity, n_slots), dtype=dtype), free)


@kernel
def copy_tree(source, target):
    """Overwrite a tree by another of the same capacity or less."""
    capacity = source.links.shape[0]
    for node in range(capacity):
        for column in range(source.links.shape[1]):
            target.links[node, column] = source.links[node, column]
        for column in range(source.numbers.shape[1]):
            target.numbers[node, column] = source.numbers[node, column]
        if source.links[node, AXIS] == LEAF:
            for slot in range(source.sums.shape[1]):
                target.sums[node, slot] = source.sums[node, slot]
    # What the target has beyond is unused.
    for node in range(capacity, target.links.shape[0]):
        target.links[node, AXIS] = FREE
    n_free = 0
    for node in range(target.links.shape[0] - 1, -1, -1):
        if target.links[node, AXIS] == FREE:
            target.free[n_free] = node
            n_free += 1
    target.free[-1] = n_free


@kernel
def drop_below(tree, top):
    """Make a node a leaf, and give the nodes below it back; its statistics are not set."""
    below = nodes_below(tree, top)
    for index in range(1, below.shape[0]):
        tree.links[below[index], AXIS] = FREE
        tree.free[tree.free[-1]] = below[index]
        tree.free[-1] += 1
    tree.links[top, AXIS] = LEAF


@kernel
def split_node(tree, node, axis, cut, time):
    """Cut a leaf; the statistics of its parts are not set."""
    tree.links[node, AXIS] = axis
    tree.numbers[node, CUT] = cut
    tree.numbers[node, TIME] = time
    for column in (FIRST, SECOND):
        tree.free[-1] -= 1
        part = tree.free[tree.free[-1]]
        tree.links[node, column] = part
        tree.links[part, AXIS] = LEAF
        tree.links[part, PARENT] = node
    bound_parts(tree, node)


@kernel
def bound_parts(tree, top):
    """Give all nodes below ``top`` their rectangles."""
    nodes = nodes_below(tree, top)
    for index in range(nodes.shape[0]):
        node = nodes[index]
        axis, cut = tree.links[node, AXIS], tree.numbers[node, CUT]
        if axis >= 0:
            first, second = tree.links[node, FIRST], tree.links[node, SECOND]
            for column in range(LOW, LOW + 4):
                tree.numbers[first, column] = tree.numbers[node, column]
                tree.numbers[second, column] = tree.numbers[node, column]
            tree.numbers[first, HIGH + axis] = cut
            tree.numbers[second, LOW + axis] = cut


@inlined
def n_leaves_below(tree, node):
    """Return how many of the two parts of a node that is cut are leaves."""
    first, second = tree.links[node, FIRST], tree.links[node, SECOND]
    return (tree.links[first, AXIS] == LEAF) + (tree.links[second, AXIS] == LEAF)


@kernel
def nodes_of(tree, kind):
    """Return all LEAVES, CUTS, CHERRIES or SINGLES, ascending."""
    out = np.empty(tree.links.shape[0], np.int64)
    n = 0
    for node in range(tree.links.shape[0]):
        axis = tree.links[node, AXIS]
        if kind in (LEAVES, CUTS) or axis < 0:
            wanted = axis == LEAF if kind == LEAVES else kind == CUTS and axis >= 0
        else:
            wanted = n_leaves_below(tree, node) == (2 if kind == CHERRIES else 1)
        if wanted:
            out[n] = node
            n += 1
    return out[:n]


@inlined
def time_before(tree, node):
    """Return the time at which a node came to be."""
    return tree.numbers[tree.links[node, PARENT], TIME] if tree.links[node, PARENT] != NOBODY else 0.0


@inlined
def extent(tree, node, axis):
    """Return the length of a node's rectangle along an axis."""
    return tree.numbers[node, HIGH + axis] - tree.numbers[node, LOW + axis]


@kernel
def log_density(tree, top, budget):
    """Return what the cuts at and below ``top`` add to the log density: minus Σ w (λ - time)."""
    total = 0.0
    nodes = nodes_below(tree, top)
    for index in range(nodes.shape[0]):
        node = nodes[index]
        if tree.links[node, AXIS] >= 0:
            total -= extent(tree, node, 1 - tree.links[node, AXIS]) * (budget - tree.numbers[node, TIME])
    return total


@kernel
def nodes_below(tree, top):
    """Return all nodes of the tree under ``top``, it included, in pre-order."""
    out = np.empty(tree.links.shape[0], np.int64)
    stack = np.empty(tree.links.shape[0], np.int64)
    stack[0] = top
    n = 1
    n_out = 0
    while n:
        n -= 1
        node = stack[n]
        out[n_out] = node
        n_out += 1
        if tree.links[node, AXIS] >= 0:
            stack[n] = tree.links[node, SECOND]
            stack[n + 1] = tree.links[node, FIRST]
            n += 2
    return out[:n_out]


@kernel
def neighbors(tree, axis, places, place, first, second):
    """Return the nearest lines or cuts of an axis below and above ``place``, two nodes left out."""
    below, above = 0.0, 1.0
    for node in range(tree.links.shape[0]):
        if tree.links[node, AXIS] == axis and node != first and node != second:
            cut = tree.numbers[node, CUT]
            if cut <= place:
                below = max(below, cut)
            else:
                above = min(above, cut)
    for line in range(places.shape[0]):
        if places[line] < place:
            below = max(below, places[line])
        else:
            above = min(above, places[line])
    return below, above


@kernel
def mark_leaves(prior, tree, top):
    """Compute ln p(cells) of all leaves below ``top`` from their statistics, and return the sum."""
    nodes = nodes_below(tree, top)
    total = 0.0
    for index in range(nodes.shape[0]):
        node = nodes[index]
        if tree.links[node, AXIS] == LEAF:
            tree.numbers[node, MARGINAL] = log_block(prior, tree.links[node, CELLS], tree.sums[node])
            total += tree.numbers[node, MARGINAL]
    return total


@kernel
def time_span(tree, node, budget):
    """Return the width of a cut, and the times between which it must be made."""
    latest = budget
    for child in (tree.links[node, FIRST], tree.links[node, SECOND]):
        if tree.links[child, AXIS] >= 0:
            latest = min(latest, tree.numbers[child, TIME])
    return extent(tree, node, 1 - tree.links[node, AXIS]), time_before(tree, node), latest


@kernel
def draw_time(rng, tree, node, budget):
    """Draw the time of a cut from its conditional, ∝ e^(width × time)."""
    width, after, before = time_span(tree, node, budget)
    span = width * (before - after)
    u = 1.0 - rng.random()
    if span < 1e-12:
        time = after + u * (before - after)
    else:  # e^(width (time - before)) is uniform between e^-span and 1.
        time = min(before, max(after, before + math.log(u - (u - 1.0) * math.exp(-span)) / width))
    tree.numbers[node, TIME] = time


@kernel
def log_time_integral(width, after, before):
    """Return ln of the integral of e^(-width (before - time)) over times between the two."""
    span = width * (before - after)
    if span < 1e-12:
        return math.log(before - after)
    return math.log(-math.expm1(-span) / width)
