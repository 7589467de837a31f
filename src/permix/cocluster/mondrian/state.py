"""The state of a Mondrian sampler: nested cuts of the unit square, and where rows and columns are on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import cast

import numpy as np

from permix.cocluster.cells.base_lines_jit import BaseLines, LabelLines
from permix.cocluster.cells.blocks_jit import CountPrior, MomentPrior
from permix.cocluster.cells.encoded_matrix import BlockSums, EncodedMatrix
from permix.cocluster.cells.families import CellFamily
from permix.cocluster.cells.learned import LearnsCells
from permix.cocluster.mondrian import bases_jit, labels_jit  # noqa: F401 - sweeps that the move PLACE finds by type
from permix.cocluster.mondrian.moves_jit import MARK, PUT_DOWN, make_move
from permix.cocluster.mondrian.tree_jit import (
    FIRST,
    FREE,
    HIGH,
    LEAF,
    LOW,
    SECOND,
    Tree,
    new_tree,
)
from permix.errors import DataError
from permix.kernels.lines_jit import Lines
from permix.partitions.mondrian import MondrianTree, check_budget
from permix.partitions.priors import Gamma

FIRST_CAPACITY = 64
# For what draws nothing.
NO_CHANCE = np.random.default_rng(0)
# Axes, cuts and times of nodes in pre-order.
Cuts = tuple[np.ndarray, np.ndarray, np.ndarray]
NO_CUTS: Cuts = (np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))


@dataclasses.dataclass(frozen=True)
class MondrianData:
    """What the cells of a matrix say, by row and by column, and the prior of a block; never written."""

    block_prior: CountPrior | MomentPrior
    by_row: Lines | BaseLines | LabelLines
    by_column: Lines | BaseLines | LabelLines
    n_rows: int
    n_columns: int
    n_slots: int
    sums_dtype: type
    log_constant: float = 0.0
    family: CellFamily | None = None  # of the cells of a matrix; bases have none

    @classmethod
    def of(cls, matrix: EncodedMatrix) -> MondrianData:
        """Return those of a matrix."""
        family = matrix.family
        cells = (matrix.n_rows, matrix.n_columns, family.n_slots, family.sums_dtype)
        prior = matrix.block_prior
        return cls(prior, matrix.by_row, matrix.by_column, *cells, matrix.log_constant, family)


class MondrianState(LearnsCells):
    """A Mondrian partition of the unit square and coordinates of rows and columns.

    The first coordinates, ``places`` of rows and of columns, are drawn, and the first partition has no cut
    (algorithm 2). Cached statistics of leaves are in ``tree``; checkpoints hold what cannot be recomputed.
    """

    def __init__(
        self, data: MondrianData, budget: float, rng: np.random.Generator, learned: Gamma | None = None
    ) -> None:
        self.data = data
        self.block_prior, self.learned = data.block_prior, learned
        if data.family is not None:
            self.cell_family = data.family
        self.budget = check_budget(budget)
        self.places = (rng.random(data.n_rows), rng.random(data.n_columns))
        self.lines = (data.by_row, data.by_column)
        self.n_moved = self.work = 0
        self._allocate(FIRST_CAPACITY)
        self.refresh()

    def _allocate(self, capacity: int) -> None:
        self.tree: Tree = new_tree(capacity, self.data.n_slots, self.data.sums_dtype)
        self.spare: Tree = new_tree(capacity, self.data.n_slots, self.data.sums_dtype)

    def make_room(self, n_nodes: int) -> None:
        """Give the tree at least ``n_nodes`` unused nodes."""
        capacity = len(self.tree.axis)
        needed = capacity - int(self.tree.free[-1]) + n_nodes
        if needed > capacity:
            while capacity < needed:
                capacity *= 2
            old = self.tree
            self._allocate(capacity)
            for before, after in zip(old[:3], self.tree[:3], strict=True):
                after[: len(before)] = before
            unused = np.flatnonzero(self.tree.axis == FREE)
            self.tree.free[: len(unused)] = unused[::-1]
            self.tree.free[-1] = len(unused)

    def make(
        self, rng: np.random.Generator, move: int, n: int, second: int = 0, cuts: Cuts = NO_CUTS
    ) -> tuple[int, int]:
        """Make one of the moves of ``moves_jit``; returns how many proposals were made and accepted.

        ``work`` is what this took, where it is counted.
        """
        trees = (self.block_prior, self.budget, self.tree, self.spare)
        n_tried, n_made, work = make_move(rng, move, (n, second), *trees, self.lines, self.places, cuts)
        self.work = int(work)
        return int(n_tried), int(n_made)

    def refresh(self) -> None:
        """Number nodes in pre-order and recompute statistics, so that resumed chains go on the same way."""
        self._put_down(self.preorder())

    def _put_down(self, cuts: Cuts) -> None:
        self._allocate(max(FIRST_CAPACITY, 1 << (len(cuts[0]) + 1).bit_length()))
        self.make(NO_CHANCE, PUT_DOWN, 0, 0, cuts)

    @property
    def n_blocks(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.tree.axis == LEAF))

    def blocks(self) -> BlockSums:
        leaves = np.flatnonzero(self.tree.axis == LEAF)
        return BlockSums(self.tree.n_cells[leaves], self.tree.sums[leaves])

    def take_family(self, family: CellFamily) -> None:
        self.cell_family = family
        self.block_prior = family.block_prior(len(cast(Lines, self.data.by_row).codes))
        self.make(NO_CHANCE, MARK, 0)

    def log_likelihood(self) -> float:
        """Log marginal likelihood of all cells given the blocks.

        Summed in an order that does not depend on the tree: chains that agree on the blocks agree on it.
        """
        marginals = np.sort(self.tree.log_marginal[self.tree.axis == LEAF])
        return float(marginals.sum()) + self.data.log_constant

    def log_prior(self) -> float:
        """Log density of the cuts, that of the coordinates being 0, and of what is learned of cells."""
        nodes = np.flatnonzero(self.tree.axis >= 0)
        across = 1 - self.tree.axis[nodes]
        lengths = self.tree.numbers[nodes, HIGH + across] - self.tree.numbers[nodes, LOW + across]
        # Sorted: the sum must not depend on how nodes are numbered.
        terms = np.sort(lengths * (self.budget - self.tree.time[nodes]))
        return self.log_hyper_prior() - float(terms.sum()) - 2.0 * self.budget

    def log_joint(self) -> float:
        """Log of prior density × marginal likelihood."""
        return self.log_prior() + self.log_likelihood()

    def nodes(self) -> np.ndarray:
        """Numbers of all nodes in pre-order."""
        links, found, waiting = self.tree.links, [], [0]
        while waiting:
            node = waiting.pop()
            found.append(node)
            if self.tree.axis[node] >= 0:
                waiting += [int(links[node, SECOND]), int(links[node, FIRST])]
        return np.array(found)

    def preorder(self) -> Cuts:
        """Axis, cut and time of all nodes in pre-order."""
        nodes = self.nodes()
        axis = self.tree.axis[nodes]
        inner = axis >= 0
        cuts = np.where(inner, self.tree.cut[nodes], np.nan)
        return axis, cuts, np.where(inner, self.tree.time[nodes], np.nan)

    def partition(self) -> MondrianTree:
        """Return the cuts as the user sees them."""
        return MondrianTree.from_preorder(*self.preorder(), self.budget)

    def intervals(self, axis: int) -> np.ndarray:
        """Number of the interval between neighboring cuts that each row or column is in."""
        cuts = np.sort(self.tree.cut[self.tree.axis == axis])
        return np.searchsorted(cuts, self.places[axis], side="right")

    def record(self) -> dict[str, float | int | np.ndarray]:
        axis, cuts, times = self.preorder()
        rows, columns = self.intervals(0), self.intervals(1)
        log_likelihood = self.log_likelihood()
        n_row_clusters, n_column_clusters, n_blocks = self.partition().count_groups(rows, columns)
        return {
            "row_labels": rows,
            "column_labels": columns,
            "n_row_groups": n_row_clusters,
            "n_column_groups": n_column_clusters,
            "n_blocks": n_blocks,
            "n_cuts": int(np.count_nonzero(axis >= 0)),
            "log_likelihood": log_likelihood,
            "log_joint": log_likelihood + self.log_prior(),
            "tree_axis": axis,
            "tree_cut": cuts,
            "tree_time": times,
            **self.recorded(),
        }

    def progress(self) -> dict[str, float]:
        return {"blocks": float(self.n_blocks), "log joint": self.log_joint(), "moved": float(self.n_moved)}

    def checkpoint(self) -> dict[str, np.ndarray]:
        places = {"rows": self.places[0].copy(), "columns": self.places[1].copy()}
        return {
            **places,
            **dict(zip(("axis", "cuts", "times"), self.preorder(), strict=True)),
            **self.saved(),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        for places, name in zip(self.places, ("rows", "columns"), strict=True):
            saved = np.asarray(arrays[name], dtype=np.float64)
            if saved.shape != places.shape or not np.all((saved >= 0) & (saved < 1)):
                raise DataError(f"the checkpoint's coordinates of {name} do not fit this matrix")
            places[:] = saved
        axis = np.asarray(arrays["axis"], dtype=np.int64)
        cuts, times = (np.asarray(arrays[name], dtype=np.float64) for name in ("cuts", "times"))
        # Building a tree checks it, as compiled code does not; it would round the times.
        MondrianTree.from_preorder(axis, cuts, times, self.budget)
        self.take_saved(arrays)
        self._put_down((axis, cuts, times))
