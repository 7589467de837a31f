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

from permix.kernels.block_laws import log_block
from permix.kernels.jit import kernel

LEAF, FREE = -1, -2
NOBODY = -1


class Tree(NamedTuple):
    """Nodes by number; node 0 is the unit square. Nodes not in use have axis FREE."""

    axis: np.ndarray  # (capacity,) 0 cuts the rows, 1 cuts the columns, LEAF, or FREE
    cut: np.ndarray  # (capacity,)
    time: np.ndarray  # (capacity,) of a cut
    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    low: np.ndarray  # (capacity, 2) of the rectangle, by axis
    high: np.ndarray  # (capacity, 2)
    n_cells: np.ndarray  # (capacity,) of a leaf
    sums: np.ndarray  # (capacity, slots) of a leaf
    log_marginal: np.ndarray  # (capacity,) of a leaf's cells
    free: np.ndarray  # (capacity,) stack of unused nodes
    n_free: np.ndarray  # (1,)


def new_tree(capacity: int, n_slots: int, dtype: type) -> Tree:
    """Return a tree that is one block without cells."""
    tree = Tree(
        axis=np.full(capacity, FREE, dtype=np.int64),
        cut=np.full(capacity, np.nan),
        time=np.full(capacity, np.nan),
        parent=np.full(capacity, NOBODY, dtype=np.int64),
        left=np.full(capacity, NOBODY, dtype=np.int64),
        right=np.full(capacity, NOBODY, dtype=np.int64),
        low=np.zeros((capacity, 2)),
        high=np.ones((capacity, 2)),
        n_cells=np.zeros(capacity, dtype=np.int64),
        sums=np.zeros((capacity, n_slots), dtype=dtype),
        log_marginal=np.zeros(capacity),
        free=np.arange(capacity - 1, -1, -1, dtype=np.int64),
        n_free=np.array([capacity - 1], dtype=np.int64),
    )
    tree.axis[0] = LEAF
    return tree


@kernel
def copy_tree(source, target):
    """Overwrite a tree by another of the same capacity or less."""
    capacity = source.axis.shape[0]
    for node in range(capacity):
        target.axis[node] = source.axis[node]
        target.cut[node] = source.cut[node]
        target.time[node] = source.time[node]
        target.parent[node] = source.parent[node]
        target.left[node] = source.left[node]
        target.right[node] = source.right[node]
        target.n_cells[node] = source.n_cells[node]
        target.log_marginal[node] = source.log_marginal[node]
        for axis in range(2):
            target.low[node, axis] = source.low[node, axis]
            target.high[node, axis] = source.high[node, axis]
        if source.axis[node] == LEAF:
            for slot in range(source.sums.shape[1]):
                target.sums[node, slot] = source.sums[node, slot]
    # What the target has beyond is unused.
    for node in range(capacity, target.axis.shape[0]):
        target.axis[node] = FREE
    n_free = 0
    for node in range(target.axis.shape[0] - 1, -1, -1):
        if target.axis[node] == FREE:
            target.free[n_free] = node
            n_free += 1
    target.n_free[0] = n_free


@kernel
def take_node(tree):
    """Take an unused node."""
    tree.n_free[0] -= 1
    return tree.free[tree.n_free[0]]


@kernel
def drop_node(tree, node):
    """Give a node back."""
    tree.axis[node] = FREE
    tree.free[tree.n_free[0]] = node
    tree.n_free[0] += 1


@kernel
def split_node(tree, node, axis, cut, time):
    """Cut a leaf; returns nothing, the parts are ``left`` and ``right``, whose statistics are not set."""
    left = take_node(tree)
    right = take_node(tree)
    tree.axis[node] = axis
    tree.cut[node] = cut
    tree.time[node] = time
    tree.left[node] = left
    tree.right[node] = right
    for child in (left, right):
        tree.axis[child] = LEAF
        tree.parent[child] = node
        tree.left[child] = NOBODY
        tree.right[child] = NOBODY
        for side in range(2):
            tree.low[child, side] = tree.low[node, side]
            tree.high[child, side] = tree.high[node, side]
    tree.high[left, axis] = cut
    tree.low[right, axis] = cut


@kernel
def join_children(tree, node):
    """Make a node whose children are leaves a leaf; its statistics are not set."""
    drop_node(tree, tree.left[node])
    drop_node(tree, tree.right[node])
    tree.axis[node] = LEAF
    tree.left[node] = NOBODY
    tree.right[node] = NOBODY


@kernel
def is_cherry(tree, node):
    """Say whether a node is cut and its parts are not."""
    return tree.axis[node] >= 0 and tree.axis[tree.left[node]] == LEAF and tree.axis[tree.right[node]] == LEAF


@kernel
def count_leaves(tree):
    """Return the number of leaves."""
    n = 0
    for node in range(tree.axis.shape[0]):
        if tree.axis[node] == LEAF:
            n += 1
    return n


@kernel
def count_cherries(tree):
    """Return the number of cuts whose two parts are leaves."""
    n = 0
    for node in range(tree.axis.shape[0]):
        if is_cherry(tree, node):
            n += 1
    return n


@kernel
def time_before(tree, node):
    """Return the time at which a node came to be."""
    return tree.time[tree.parent[node]] if tree.parent[node] != NOBODY else 0.0


@kernel
def extent(tree, node, axis):
    """Return the length of a node's rectangle along an axis."""
    return tree.high[node, axis] - tree.low[node, axis]


@kernel
def log_density(tree, top, budget):
    """Return what the cuts at and below ``top`` add to the log density: minus Σ w (λ - time)."""
    total = 0.0
    stack = np.empty(tree.axis.shape[0], np.int64)
    stack[0] = top
    n = 1
    while n:
        n -= 1
        node = stack[n]
        if tree.axis[node] >= 0:
            total -= extent(tree, node, 1 - tree.axis[node]) * (budget - tree.time[node])
            stack[n] = tree.left[node]
            stack[n + 1] = tree.right[node]
            n += 2
    return total


@kernel
def nodes_below(tree, top):
    """Return all nodes of the tree under ``top``, it included, in pre-order."""
    out = np.empty(tree.axis.shape[0], np.int64)
    stack = np.empty(tree.axis.shape[0], np.int64)
    stack[0] = top
    n = 1
    n_out = 0
    while n:
        n -= 1
        node = stack[n]
        out[n_out] = node
        n_out += 1
        if tree.axis[node] >= 0:
            stack[n] = tree.right[node]
            stack[n + 1] = tree.left[node]
            n += 2
    return out[:n_out]


@kernel
def edges_of(tree, top, axis):
    """Return the ends of a node along an axis and all cuts of that axis below it, ascending."""
    nodes = nodes_below(tree, top)
    edges = np.empty(nodes.shape[0] + 2)
    edges[0] = tree.low[top, axis]
    edges[1] = tree.high[top, axis]
    n = 2
    for index in range(nodes.shape[0]):
        if tree.axis[nodes[index]] == axis:
            edges[n] = tree.cut[nodes[index]]
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
        if tree.axis[node] == LEAF:
            leaves[n] = node
            ranges[n, 0] = np.searchsorted(edges, tree.low[node, axis])
            ranges[n, 1] = np.searchsorted(edges, tree.high[node, axis])
            ranges[n, 2] = np.searchsorted(other_edges, tree.low[node, 1 - axis])
            ranges[n, 3] = np.searchsorted(other_edges, tree.high[node, 1 - axis])
            n += 1
    return leaves[:n], ranges[:n]


@kernel
def neighbours(tree, axis, place, besides):
    """Return the nearest cuts of an axis below and above ``place``, those of node ``besides`` left out."""
    below, above = 0.0, 1.0
    for node in range(tree.axis.shape[0]):
        if tree.axis[node] == axis and node != besides:
            cut = tree.cut[node]
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
        if tree.axis[node] == LEAF:
            tree.log_marginal[node] = log_block(law, tree.n_cells[node], tree.sums[node])


@kernel
def log_likelihood_below(tree, top):
    """Return the sum of the marginals of all leaves below ``top``."""
    nodes = nodes_below(tree, top)
    total = 0.0
    for index in range(nodes.shape[0]):
        if tree.axis[nodes[index]] == LEAF:
            total += tree.log_marginal[nodes[index]]
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
