"""Moves of Mondrian co-clustering: where rows and columns are, and where the cuts are."""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.cocluster.cells.learned import LearnPseudoCount
from permix.cocluster.mondrian.moves_jit import CHANGE, PLACE, REDRAW, ROTATE, SHIFT, STRETCH, TIMES
from permix.cocluster.mondrian.state import MondrianState
from permix.cocluster.mondrian.tree_jit import HIGH, LEAF, LOW, PARENT, TIME
from permix.moves.base import Cycle, Info, Move, check_at_least, combined
from permix.partitions.mondrian import draw_cuts


@dataclasses.dataclass
class PlaceLines(Move):
    """Gibbs over the coordinates of all rows, then of all columns (equations 5.13 and 5.14, corrected)."""

    def step(self, rng: np.random.Generator, state: MondrianState) -> Info:
        state.n_moved = sum(state.make(rng, PLACE, axis)[1] for axis in (0, 1))
        n = state.data.n_rows + state.data.n_columns
        return Info("places", n, n)


@dataclasses.dataclass
class Proposals(Move):
    """Base of moves that propose something else so many times a step."""

    n_proposals: int = 20

    def __post_init__(self) -> None:
        check_at_least(self.n_proposals, "n_proposals", 1)


@dataclasses.dataclass
class ChangeCuts(Proposals):
    """Add cuts and remove them by reversible jump; lines between neighboring cuts are divided anew.

    ``n_scans`` scans of Gibbs prepare a division of lines, beyond the sequential allocation they start from.
    """

    n_scans: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self.n_scans, "n_scans", 0)

    def step(self, rng: np.random.Generator, state: MondrianState) -> Info:
        """Propose additions and removals, each as often."""
        if state.budget == 0.0:
            return Info("cuts", 0, 0)
        state.make_room(2 * self.n_proposals)
        return Info("cuts", *state.make(rng, CHANGE, self.n_proposals, self.n_scans))


@dataclasses.dataclass
class ShiftCuts(Proposals):
    """Move cuts: between their neighbors with the lines beside them, and past lines that stay.

    Of the second, which are more expensive, there are a tenth as many proposals, at least one.
    """

    def step(self, rng: np.random.Generator, state: MondrianState) -> Info:
        """Propose both, and draw the times of all cuts."""
        stretched = Info("stretch", *state.make(rng, STRETCH, self.n_proposals))
        shifted = Info("shift", *state.make(rng, SHIFT, max(1, self.n_proposals // 10)))
        state.make(rng, TIMES, 1)
        return combined("shift cuts", [stretched, shifted])


@dataclasses.dataclass
class RotateCuts(Proposals):
    """Exchange the order of crossing cuts; nodes whose parts are not both cut across cost nothing."""

    def step(self, rng: np.random.Generator, state: MondrianState) -> Info:
        return Info("rotate", *state.make(rng, ROTATE, self.n_proposals))


@dataclasses.dataclass
class RedrawSubtree(Proposals):
    """Replace everything below a node by a draw from the prior."""

    n_proposals: int = 2

    def step(self, rng: np.random.Generator, state: MondrianState) -> Info:
        accepted = 0
        for _ in range(self.n_proposals):
            links, numbers = state.tree.links, state.tree.numbers
            nodes = np.flatnonzero(state.tree.axis >= LEAF)
            top = int(nodes[int(rng.random() * len(nodes))])
            rectangle = numbers[top, [LOW, HIGH, LOW + 1, HIGH + 1]].tolist()
            born = float(numbers[links[top, PARENT], TIME]) if links[top, PARENT] >= 0 else 0.0
            axes, cuts, times = (np.array(each) for each in draw_cuts(rng, rectangle, born, state.budget))
            # Drawn first: what is drawn must not depend on how much room there is.
            state.make_room(len(axes))
            accepted += state.make(rng, REDRAW, 1, top, (axes, cuts, times))[1]
        return Info("redraw", self.n_proposals, int(accepted))


def mondrian_moves() -> Cycle:
    """Return what one iteration does by default."""
    return Cycle([ChangeCuts(), PlaceLines(), ShiftCuts(), RotateCuts(), RedrawSubtree(), LearnPseudoCount()])
