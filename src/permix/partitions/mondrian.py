"""The Mondrian process on the unit square, or another rectangle: trees of nested cuts.

A rectangle of half-perimeter τ with budget λ is cut at cost E ~ Exp(τ) unless E > λ; the cut is uniform on
the half-perimeter, and both parts go on with λ - E (algorithm 1 of Wang, Laskey, Domeniconi & Jordan 2011;
Roy & Teh 2008). Costs add up along a path to the time of a cut.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.errors import DataError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rectangle = tuple[float, float, float, float]
UNIT_SQUARE: Rectangle = (0.0, 1.0, 0.0, 1.0)


class MondrianTree(NamedTuple):
    """Nested cuts of a rectangle, one entry per node, in pre-order: node 0 is the whole.

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

    @property
    def n_cuts(self) -> int:
        """Number of cuts."""
        return int(np.count_nonzero(self.axis >= 0))

    def __repr__(self) -> str:
        budget = float(self.budgets[0])
        return f"MondrianTree(n_blocks={self.n_blocks}, n_cuts={self.n_cuts}, budget={budget:g})"

    def locate(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> Ints:
        """Return the block of every (row, column) pair of coordinates, as a matrix."""
        row_places, column_places = np.asarray(rows, float), np.asarray(columns, float)
        blocks = np.full((row_places.size, column_places.size), -1, dtype=np.int64)
        for leaf in np.flatnonzero(self.axis < 0):
            row_low, row_high, column_low, column_high = self.rectangles[leaf]
            inside_rows = np.flatnonzero((row_places >= row_low) & (row_places < row_high))
            inside_columns = np.flatnonzero((column_places >= column_low) & (column_places < column_high))
            blocks[np.ix_(inside_rows, inside_columns)] = self.blocks[leaf]
        return blocks

    def row_cuts(self) -> Floats:
        """Return where rows are cut, ascending."""
        return np.sort(self.cuts[self.axis == 0])

    def column_cuts(self) -> Floats:
        """Return where columns are cut, ascending."""
        return np.sort(self.cuts[self.axis == 1])

    def row_edges(self) -> Floats:
        """Return the cuts of rows with both ends of the rectangle."""
        return np.concatenate([self.rectangles[0, :1], self.row_cuts(), self.rectangles[0, 1:2]])

    def column_edges(self) -> Floats:
        """Return the cuts of columns with both ends of the rectangle."""
        return np.concatenate([self.rectangles[0, 2:3], self.column_cuts(), self.rectangles[0, 3:]])

    def table(self) -> Ints:
        """Return the block of each (interval between row cuts, interval between column cuts)."""
        rows, columns = self.row_edges(), self.column_edges()
        table = np.empty((rows.size - 1, columns.size - 1), dtype=np.int64)
        for leaf in np.flatnonzero(self.axis < 0):
            row_low, row_high, column_low, column_high = self.rectangles[leaf]
            covered = (
                slice(*np.searchsorted(rows, [row_low, row_high])),
                slice(*np.searchsorted(columns, [column_low, column_high])),
            )
            table[covered] = self.blocks[leaf]
        return table

    def count_groups(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> tuple[int, int, int]:
        """Return how many groups of rows, groups of columns and blocks have lines in these intervals.

        Intervals that are in the same blocks throughout are one group.
        """
        held = self.table()[np.ix_(np.unique(rows), np.unique(columns))]
        return len(np.unique(held, axis=0)), len(np.unique(held, axis=1).T), len(np.unique(held))

    def times(self) -> Floats:
        """Return the cost spent from the root until each cut, NaN for leaves."""
        left = np.full(len(self.axis), np.nan)
        cut = np.flatnonzero(self.axis >= 0)
        left[cut] = self.budgets[self.children[cut, 0]]
        return float(self.budgets[0]) - left

    def log_density(self) -> float:
        """Return the log density of the tree under its budget.

        With respect to Lebesgue measure over the times of cuts and their positions along the half-perimeter:
        -λτ - Σ w (λ - time), where w is the length of a cut and τ the half-perimeter of the whole.
        """
        heights = self.rectangles[:, 1] - self.rectangles[:, 0]
        widths = self.rectangles[:, 3] - self.rectangles[:, 2]
        lengths = np.where(self.axis == 0, widths, heights)
        left = float(self.budgets[0]) - self.times()
        inner = self.axis >= 0
        whole = float(self.budgets[0] * (heights[0] + widths[0]))
        return -whole - float(np.sum(lengths[inner] * left[inner]))

    def to_preorder(self) -> tuple[Ints, Floats, Floats]:
        """Return axis, cut and time of each node; :meth:`from_preorder` is the way back."""
        return self.axis, self.cuts, self.times()

    @classmethod
    def from_preorder(
        cls,
        axis: npt.ArrayLike,
        cuts: npt.ArrayLike,
        times: npt.ArrayLike,
        budget: float,
        rectangle: Rectangle = UNIT_SQUARE,
    ) -> MondrianTree:
        """Rebuild a tree from axis, cut and time of its nodes in pre-order; what follows the last is ignored.

        Refuses what are not the nodes of a tree: a cut outside its rectangle, a time before its parent's or
        after the budget, nodes missing.
        """
        axes, places, moments = np.asarray(axis), np.asarray(cuts, float), np.asarray(times, float)
        if not axes.ndim == places.ndim == moments.ndim == 1 or not len(axes) == len(places) == len(moments):
            raise DataError("a tree needs one axis, one cut and one time for each node")
        rectangles: list[Rectangle] = []
        children: list[list[int]] = []
        budgets: list[float] = []
        waiting: list[tuple[Rectangle, float, int, int]] = [(rectangle, 0.0, -1, 0)]
        while waiting:
            here, born, parent, side = waiting.pop()
            node = len(rectangles)
            if node == len(axes):
                raise DataError(f"the tree breaks off after {node} nodes")
            if parent >= 0:
                children[parent][side] = node
            rectangles.append(here)
            budgets.append(budget - born)
            children.append([-1, -1])
            kind = int(axes[node])
            if kind not in (-1, 0, 1):
                raise DataError(f"node {node} of the tree has axis {kind}; known are 0, 1 and -1 for a leaf")
            if kind < 0:
                continue
            cut, time = float(places[node]), float(moments[node])
            low, high = here[2 * kind], here[2 * kind + 1]
            if not (low <= cut <= high and born <= time <= budget):
                raise DataError(f"node {node} of the tree is cut outside its rectangle or its budget")
            first, second = _halves(here, kind, cut)
            waiting += [(second, time, node, 1), (first, time, node, 0)]
        kinds = axes[: len(rectangles)].astype(np.int64)
        is_leaf = kinds < 0
        return cls(
            np.array(rectangles),
            kinds,
            np.where(is_leaf, np.nan, places[: len(kinds)]),
            np.array(children, dtype=np.int64),
            np.array(budgets, dtype=np.float64),
            np.where(is_leaf, np.cumsum(is_leaf) - 1, -1),
        )


def _halves(rectangle: Rectangle, axis: int, cut: float) -> tuple[Rectangle, Rectangle]:
    """Both parts of a rectangle, below and above a cut of its rows (0) or columns (1)."""
    a, b, c, d = rectangle
    return ((a, cut, c, d), (cut, b, c, d)) if axis == 0 else ((a, b, c, cut), (a, b, cut, d))


def check_budget(budget: Any) -> float:
    """Return the budget, if it is a finite number and not negative."""
    if isinstance(budget, bool) or not isinstance(budget, int | float | np.number):
        raise DataError(f"budget must be one number, at least 0, got {budget!r}")
    if not 0.0 <= float(budget) < math.inf:
        raise DataError(f"budget must be finite and at least 0, got {budget!r}")
    return float(budget)


def check_rectangle(rectangle: Any) -> Rectangle:
    """Return a rectangle as four numbers, if it has an inside."""
    values = np.asarray(rectangle, dtype=np.float64)
    if values.shape != (4,) or not np.all(np.isfinite(values)):
        raise DataError(f"rectangle is (row low, row high, column low, column high), got {rectangle!r}")
    row_low, row_high, column_low, column_high = values.tolist()
    if not (row_low < row_high and column_low < column_high):
        raise DataError(f"rectangle must have low < high on both axes, got {rectangle!r}")
    return row_low, row_high, column_low, column_high


def sample_mondrian(
    rng: np.random.Generator, budget: float, rectangle: Rectangle = UNIT_SQUARE
) -> MondrianTree:
    """Draw a Mondrian partition of a rectangle (algorithm 1)."""
    budget, rectangle = check_budget(budget), check_rectangle(rectangle)
    return MondrianTree.from_preorder(*draw_cuts(rng, rectangle, 0.0, budget), budget, rectangle)


def draw_cuts(
    rng: np.random.Generator, rectangle: Rectangle, born: float, budget: float
) -> tuple[list[int], list[float], list[float]]:
    """Draw axis, cut and time, in pre-order, of what a rectangle that came to be at ``born`` is cut into."""
    nodes: list[tuple[int, float, float]] = []
    waiting = [(rectangle, born)]
    while waiting:
        here, born = waiting.pop()
        height, width = here[1] - here[0], here[3] - here[2]
        time = born + rng.standard_exponential() / (height + width) if height + width > 0 else math.inf
        if time > budget:
            nodes.append((-1, math.nan, math.nan))
            continue
        place = rng.random() * (height + width)
        kind = 0 if place < height else 1
        cut = here[0] + place if kind == 0 else here[2] + (place - height)
        nodes.append((kind, cut, time))
        first, second = _halves(here, kind, cut)
        waiting += [(second, time), (first, time)]
    axis, cuts, times = zip(*nodes, strict=True)
    return list(axis), list(cuts), list(times)
