"""Moves of Mondrian co-clustering: where rows and columns are, and where the cuts are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from permix.cocluster.cells.learned import LearnPseudoCount
from permix.cocluster.mondrian.cross_jit import cross_cuts
from permix.cocluster.mondrian.moves_jit import (
    CHANGE,
    PEEL,
    PLACE,
    REDRAW,
    ROTATE,
    SHIFT,
    STRETCH,
    TIMES,
)
from permix.cocluster.mondrian.state import MondrianState
from permix.cocluster.mondrian.tree_jit import HIGH, LEAF, LOW, PARENT, TIME
from permix.errors import DataError
from permix.moves.base import Cycle, Info, Move, check_at_least, combined
from permix.partitions.mondrian import draw_cuts

# Cuts proposed in the first step of burn-in, which is the least, and the most in any.
FIRST_PROPOSALS, MOST_PROPOSALS = 20, 1000
# Cuts proposed by one call of compiled code.
AT_ONCE = 50
# Share of the cuts proposed that are above others: they cost twice as much, and one in sixty is accepted.
ABOVE = 0.4
# Lines of the matrix for each exchange of cuts that cross.
LINES_PER_EXCHANGE = 4
# Weight of all earlier steps, in what proposals cost, after one more.
MEMORY = 0.9


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
class ChangeCuts(Move):
    """Add cuts and remove them by reversible jump; lines between neighboring cuts are divided anew.

    The share ``above`` of the proposals are cuts above others, with a block on one side and further cuts on
    the other; the rest cut a block, or make one of two.
    ``n_scans`` scans of Gibbs prepare a division of lines, beyond the sequential allocation they start from.
    ``n_proposals`` is fixed: if it followed the state of the chain, the posterior would not be left
    invariant. None has it learned during burn-in, so that proposals take as much work as a sweep over all
    lines; then it is fixed.
    """

    n_proposals: int | None = None
    n_scans: int = 2
    above: float = 0.0

    def __post_init__(self) -> None:
        if self.n_proposals is not None:
            check_at_least(self.n_proposals, "n_proposals", 1)
        check_at_least(self.n_scans, "n_scans", 0)
        self.n_learned = FIRST_PROPOSALS if self.n_proposals is None else self.n_proposals

    def step(self, rng: np.random.Generator, state: MondrianState) -> Info:
        """Propose additions and removals, each as often."""
        if state.budget == 0.0:
            return Info("cuts", 0, 0)
        tried = accepted = work = 0
        # In parts, so that trees need little room for what may be added: all of it is searched for leaves.
        for first in range(0, self.n_learned, AT_ONCE):
            n = min(AT_ONCE, self.n_learned - first)
            state.make_room(2 * n)
            n_above = round(self.above * n)
            for move, n_made in ((CHANGE, n - n_above), (PEEL, n_above)):
                made = state.make(rng, move, n_made, self.n_scans)
                tried, accepted, work = tried + made[0], accepted + made[1], work + state.work
        return Info("cuts", tried, accepted, work=float(work))

    def during_burn_in(self) -> Move:
        """Return the version that learns how many proposals to make, where they are not given."""
        return self if self.n_proposals is not None else LearningCuts(self)

    def checkpoint(self) -> dict[str, np.ndarray]:
        """What was learned."""
        return {"n_learned": np.array(self.n_learned)} if self.n_proposals is None else {}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        known = dict(arrays)
        if self.n_proposals is None:
            self.n_learned = int(known.pop("n_learned"))
            if not 1 <= self.n_learned <= MOST_PROPOSALS:
                raise DataError(f"the checkpoint's number of proposals is {self.n_learned}")
        super().restore(known)


@dataclasses.dataclass
class LearningCuts(Move):
    """Learns how many cuts are proposed in a step of ``move``; for burn-in only.

    Work is counted, not timed: the same seed gives the same chain on every machine.
    """

    move: ChangeCuts
    exact = False

    def __post_init__(self) -> None:
        self._made, self._work = 0.0, 0.0

    def step(self, rng: np.random.Generator, state: MondrianState) -> Info:
        """Do a step of the move, then learn from recent ones."""
        info = self.move.step(rng, state)
        self._made, self._work = MEMORY * self._made + info.proposed, MEMORY * self._work + info.work
        if self._work > 0.0:
            of_sweep = (state.data.n_rows + state.data.n_columns) * state.n_blocks
            n_proposals = int(of_sweep * self._made / self._work)
            self.move.n_learned = min(max(n_proposals, FIRST_PROPOSALS), MOST_PROPOSALS)
        return info

    def checkpoint(self) -> dict[str, np.ndarray]:
        """What the number is learned from, and the number."""
        return {"learned": np.array([self._made, self._work, self.move.n_learned])}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._made, self._work, n_learned = arrays["learned"].tolist()
        self.move.restore({"n_learned": np.array(n_learned)})


@dataclasses.dataclass
class ShiftCuts(Proposals):
    """Move cuts: between their neighbors with the lines beside them, and past lines that stay.

    There are as many proposals of either.
    """

    def step(self, rng: np.random.Generator, state: MondrianState) -> Info:
        """Propose both, and draw the times of all cuts."""
        stretched = Info("stretch", *state.make(rng, STRETCH, self.n_proposals))
        shifted = Info("shift", *state.make(rng, SHIFT, self.n_proposals))
        state.make(rng, TIMES, 1)
        return combined("shift cuts", [stretched, shifted])


@dataclasses.dataclass
class RotateCuts(Proposals):
    """Exchange the order of cuts; nodes whose parts are not cut so that this is possible cost nothing."""

    n_proposals: int = 400

    def step(self, rng: np.random.Generator, state: MondrianState) -> Info:
        return Info("rotate", *state.make(rng, ROTATE, self.n_proposals))


@dataclasses.dataclass
class CrossCuts(Move):
    """Exchange the order of cuts that cross, lines between the neighboring cuts drawn anew.

    Nodes whose parts are not both cut across, or with other cuts between theirs, cost nothing: of large trees
    one in a hundred can be tried. None proposes one for every four lines of the matrix.
    """

    n_proposals: int | None = None
    n_scans: int = 1

    def __post_init__(self) -> None:
        if self.n_proposals is not None:
            check_at_least(self.n_proposals, "n_proposals", 1)
        check_at_least(self.n_scans, "n_scans", 0)

    def step(self, rng: np.random.Generator, state: MondrianState) -> Info:
        n = self.n_proposals
        if n is None:
            n = max(1, (state.data.n_rows + state.data.n_columns) // LINES_PER_EXCHANGE)
        trees = (state.block_prior, state.budget, state.tree, state.spare)
        tried, accepted = cross_cuts(rng, n, self.n_scans, *trees, state.lines, state.places)
        return Info("cross", int(tried), int(accepted))


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
    return Cycle(
        [
            ChangeCuts(above=ABOVE),
            PlaceLines(),
            ShiftCuts(),
            RotateCuts(),
            RedrawSubtree(),
            LearnPseudoCount(),
        ]
    )
