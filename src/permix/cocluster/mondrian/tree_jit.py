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
from permix.kernels.jit import kernel

LEAF, FREE = -1, -2
NOBODY = -1
# Columns of ``links`` and of ``numbers``; LOW + axis and HIGH + axis bound the rectangle.
AXIS, PARENT, FIRST, SECOND, CELLS = 0, 1, 2, 3, 4
CUT, TIME, MARGINAL, LOW, HIGH = 0, 1, 2, 3, 5


class Tree(NamedTuple):
    """Nodes by number; node 0 is the unit square. Nodes not in use have axis FREE.

    Few arrays: each is handed over, field by field, in every compiled call. The properties are for Python.
    """

    links: (
        np.ndarray
    )  # (capacity, 5) axis (0 cuts rows, 1 columns, LEAF or FREE), parent, parts, cells of a leaf
    numbers: np.ndarray  # (capacity, 7) position and time of the cut, ln p(cells) of a leaf, the rectangle
    sums: np.ndarray  # (capacity, slots) of a leaf
    free: np.ndarray  # (capacity + 1,) stack of unused nodes; the last entry says how many there are

    @property
    def axis(self) -> np.ndarray:
        """Which axis each node cuts."""
        return self.links[:, AXIS]

    @property
    def n_cells(self) -> np.ndarray:
        """Cells of each leaf."""
        return self.links[:, CELLS]

    @property
    def cut(self) -> np.ndarray:
        """Where each node is cut."""
        return self.numbers[:, CUT]

    @property
    def time(self) -> np.ndarray:
        """When each node is cut."""
        return self.numbers[:, TIME]

    @property
    def log_marginal(self) -> np.ndarray:
        """Log marginal likelihood of each leaf's cells."""
        return self.numbers[:, MARGINAL]


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
    free = np.arange(capacity, -1, -1, dtype=np.int64)
    free[-1] = capacity - 1
    # The stack is read from its end, so that node 1 comes first.
    free[: capacity - 1] = np.arange(capacity - 1, 0, -1)
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
def take_node(tree):
    """Take an unused node."""
    tree.free[-1] -= 1
    return tree.free[tree.free[-1]]


@kernel
def drop_node(tree, node):
    """Give a node back."""
    tree.links[node, AXIS] = FREE
    tree.free[tree.free[-1]] = node
    tree.free[-1] += 1


@kernel
def bound_parts(tree, node):
    """Give the two parts of a node their rectangles."""
    axis, cut = tree.links[node, AXIS], tree.numbers[node, CUT]
    first, second = tree.links[node, FIRST], tree.links[node, SECOND]
    for part in (first, second):
        for side in range(2):
            tree.numbers[part, LOW + side] = tree.numbers[node, LOW + side]
            tree.numbers[part, HIGH + side] = tree.numbers[node, HIGH + side]
    tree.numbers[first, HIGH + axis] = cut
    tree.numbers[second, LOW + axis] = cut


@kernel
def split_node(tree, node, axis, cut, time):
    """Cut a leaf; the statistics of its parts are not set."""
    tree.links[node, AXIS] = axis
    tree.numbers[node, CUT] = cut
    tree.numbers[node, TIME] = time
    for column in (FIRST, SECOND):
        part = take_node(tree)
        tree.links[node, column] = part
        tree.links[part, AXIS] = LEAF
        tree.links[part, PARENT] = node
        tree.links[part, FIRST] = NOBODY
        tree.links[part, SECOND] = NOBODY
    bound_parts(tree, node)


@kernel
def join_children(tree, node):
    """Make a node whose children are leaves a leaf; its statistics are not set."""
    drop_node(tree, tree.links[node, FIRST])
    drop_node(tree, tree.links[node, SECOND])
    tree.links[node, AXIS] = LEAF
    tree.links[node, FIRST] = NOBODY
    tree.links[node, SECOND] = NOBODY


@kernel
def is_cherry(tree, node):
    """Say whether a node is cut and its parts are not."""
    if tree.links[node, AXIS] < 0:
        return False
    first, second = tree.links[node, FIRST], tree.links[node, SECOND]
    return tree.links[first, AXIS] == LEAF and tree.links[second, AXIS] == LEAF


@kernel
def count_leaves(tree):
    """Return the number of leaves."""
    n = 0
    for node in range(tree.links.shape[0]):
        if tree.links[node, AXIS] == LEAF:
            n += 1
    return n


@kernel
def count_cherries(tree):
    """Return the number of cuts whose two parts are leaves."""
    n = 0
    for node in range(tree.links.shape[0]):
        if is_cherry(tree, node):
            n += 1
    return n


@kernel
def time_before(tree, node):
    """Return the time at which a node came to be."""
    return tree.numbers[tree.links[node, PARENT], TIME] if tree.links[node, PARENT] != NOBODY else 0.0


@kernel
def extent(tree, node, axis):
    """Return the length of a node's rectangle along an axis."""
    return tree.numbers[node, HIGH + axis] - tree.numbers[node, LOW + axis]


@kernel
def log_density(tree, top, budget):
    """Return what the cuts at and below ``top`` add to the log density: minus Σ w (λ - time)."""
    total = 0.0
    stack = np.empty(tree.links.shape[0], np.int64)
    stack[0] = top
    n = 1
    while n:
        n -= 1
        node = stack[n]
        if tree.links[node, AXIS] >= 0:
            total -= extent(tree, node, 1 - tree.links[node, AXIS]) * (budget - tree.numbers[node, TIME])
            stack[n] = tree.links[node, FIRST]
            stack[n + 1] = tree.links[node, SECOND]
            n += 2
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
def edges_of(tree, top, axis):
    """Return the ends of a node along an axis and all cuts of that axis below it, ascending."""
    nodes = nodes_below(tree, top)
    edges = np.empty(nodes.shape[0] + 2)
    edges[0] = tree.numbers[top, LOW + axis]
    edges[1] = tree.numbers[top, HIGH + axis]
    n = 2
    for index in range(nodes.shape[0]):
        if tree.links[nodes[index], AXIS] == axis:
            edges[n] = tree.numbers[nodes[index], CUT]
            n += 1
    return np.sort(edges[:n])


@kernel
def interval_at(edges, place):
    """Return the number of the interval [edges[h], edges[h + 1]) that holds ``place``."""
    low = 0
    high = edges.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if edges[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@kernel
def leaf_ranges(tree, top, axis, edges, other_edges):
    """Return the leaves below ``top`` and the intervals each covers: first, last + 1, on both axes."""
    nodes = nodes_below(tree, top)
    leaves = np.empty(nodes.shape[0], np.int64)
    ranges = np.empty((nodes.shape[0], 4), np.int64)
    n = 0
    for index in range(nodes.shape[0]):
        node = nodes[index]
        if tree.links[node, AXIS] == LEAF:
            leaves[n] = node
            ranges[n, 0] = np.searchsorted(edges, tree.numbers[node, LOW + axis])
            ranges[n, 1] = np.searchsorted(edges, tree.numbers[node, HIGH + axis])
            ranges[n, 2] = np.searchsorted(other_edges, tree.numbers[node, LOW + 1 - axis])
            ranges[n, 3] = np.searchsorted(other_edges, tree.numbers[node, HIGH + 1 - axis])
            n += 1
    return leaves[:n], ranges[:n]


@kernel
def neighbours(tree, axis, place, besides):
    """Return the nearest cuts of an axis below and above ``place``, those of node ``besides`` left out."""
    below, above = 0.0, 1.0
    for node in range(tree.links.shape[0]):
        if tree.links[node, AXIS] == axis and node != besides:
            cut = tree.numbers[node, CUT]
            if cut <= place:
                below = max(below, cut)
            else:
                above = min(above, cut)
    return below, above


@kernel
def mark_leaves(law, tree, top):
    """Compute the cached marginals of all leaves below ``top`` from their statistics."""
    nodes = nodes_below(tree, top)
    for index in range(nodes.shape[0]):
        node = nodes[index]
        if tree.links[node, AXIS] == LEAF:
            tree.numbers[node, MARGINAL] = log_block(law, tree.links[node, CELLS], tree.sums[node])


@kernel
def log_likelihood_below(tree, top):
    """Return the sum of the marginals of all leaves below ``top``."""
    nodes = nodes_below(tree, top)
    total = 0.0
    for index in range(nodes.shape[0]):
        if tree.links[nodes[index], AXIS] == LEAF:
            total += tree.numbers[nodes[index], MARGINAL]
    return total


@kernel
def draw_time(rng, width, after, before):
    """Draw the time of a cut of this width from its conditional, ∝ e^(width × time) between two times."""
    span = width * (before - after)
    u = 1.0 - rng.random()
    if span < 1e-12:
        return after + u * (before - after)
    # e^(width (time - before)) is uniform between e^-span and 1.
    return min(before, max(after, before + math.log(u - (u - 1.0) * math.exp(-span)) / width))


@kernel
def log_time_integral(width, after, before):
    """Return ln of the integral of e^(-width (before - time)) over times between the two."""
    span = width * (before - after)
    if span < 1e-12:
        return math.log(before - after)
    return math.log(-math.expm1(-span) / width)


@kernel
def place_between(rng, low, high):
    """Draw a place in [low, high)."""
    place = low + (high - low) * rng.random()
    return place if place < high else low  # rounded up to the end
