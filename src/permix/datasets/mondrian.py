"""Forward draws from the Mondrian process on a rectangle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.datasets.truth import Floats, Ints, at_least, readable


class MondrianTree(NamedTuple):
    """Nested cuts of a rectangle, one entry per node, parents before children, node 0 the whole.

    Attributes
    ----------
    rectangles : array (n_nodes, 4)
        ``(row low, row high, column low, column high)``.
    axis : array (n_nodes,)
        0 cuts the rows, 1 cuts the columns, -1 is a leaf.
    cuts : array (n_nodes,)
        Where the cut is, NaN for a leaf.
    children : array (n_nodes, 2)
        Nodes below and above the cut, -1 for a leaf.
    budgets : array (n_nodes,)
        Budget left when the node was reached.
    blocks : array (n_nodes,)
        Number of the block, counted over leaves in depth-first order; -1 for inner nodes.
    """

    rectangles: Floats
    axis: Ints
    cuts: Floats
    children: Ints
    budgets: Floats
    blocks: Ints

    @property
    def n_blocks(self) -> int:
        """Number of leaves."""
        return int(self.blocks.max()) + 1

    def __repr__(self) -> str:
        return readable(self)

    def locate(self, rows: Floats, columns: Floats) -> Ints:
        """Return the block of every (row, column) pair of coordinates, as a matrix."""
        blocks = np.empty((rows.size, columns.size), dtype=np.int64)
        for leaf in np.flatnonzero(self.axis < 0):
            row_low, row_high, column_low, column_high = self.rectangles[leaf]
            inside_rows = np.flatnonzero((rows >= row_low) & (rows < row_high))
            inside_columns = np.flatnonzero((columns >= column_low) & (columns < column_high))
            blocks[np.ix_(inside_rows, inside_columns)] = self.blocks[leaf]
        return blocks


def sample_mondrian(
    rng: np.random.Generator,
    budget: float,
    rectangle: tuple[float, float, float, float] = (0.0, 1.0, 0.0, 1.0),
) -> MondrianTree:
    """Draw a Mondrian partition (algorithm 1 of Wang, Laskey, Domeniconi & Jordan 2011).

    A rectangle of half-perimeter τ with budget λ is cut at cost E ~ Exp(τ) unless E > λ; the cut
    is uniform on the half-perimeter, and both parts go on with λ - E. On the unit square the mean
    number of blocks is (1 + λ)².
    """
    at_least("budget", budget, 0)
    nodes: list[tuple[float, float, float, float]] = []
    axis: list[int] = []
    cuts: list[float] = []
    children: list[list[int]] = []
    budgets: list[float] = []
    blocks: list[int] = []
    waiting = [(rectangle, budget, -1, 0)]
    n_blocks = 0
    while waiting:
        here, left, parent, side = waiting.pop()
        node = len(nodes)
        if parent >= 0:
            children[parent][side] = node
        height, width = here[1] - here[0], here[3] - here[2]
        remaining = left - rng.exponential(1.0 / (height + width))
        nodes.append(here)
        budgets.append(left)
        children.append([-1, -1])
        if remaining < 0:
            axis.append(-1)
            cuts.append(np.nan)
            blocks.append(n_blocks)
            n_blocks += 1
            continue
        place = rng.random() * (height + width)
        if place < height:
            cut = here[0] + place
            parts = ((here[0], cut, here[2], here[3]), (cut, here[1], here[2], here[3]))
        else:
            cut = here[2] + (place - height)
            parts = ((here[0], here[1], here[2], cut), (here[0], here[1], cut, here[3]))
        axis.append(0 if place < height else 1)
        cuts.append(cut)
        blocks.append(-1)
        waiting.append((parts[1], remaining, node, 1))
        waiting.append((parts[0], remaining, node, 0))
    return MondrianTree(
        np.array(nodes),
        np.array(axis, dtype=np.int64),
        np.array(cuts),
        np.array(children, dtype=np.int64),
        np.array(budgets),
        np.array(blocks, dtype=np.int64),
    )
