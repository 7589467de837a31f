"""Moves interleaved so that each gets about the same share of the work (Liang et al. 2007, section 5)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from permix.moves.base import Compound, Info, Move, combined, under

# However cheap a move is, a step repeats it at most so often.
MOST_REPEATS = 100


@dataclasses.dataclass
class Balanced(Compound):
    """Take each move in turn, cheap ones several times.

    Work is counted, not timed (:class:`~permix.moves.Info`): the same seed gives the same chain on every
    machine. How often each move is repeated is learned during burn-in and then stays as it is, since a
    schedule that follows the chain would change what it converges to. Without burn-in every move is taken
    once.

    Parameters
    ----------
    moves : sequence of moves
        What to interleave.
    """

    moves: Sequence[Move]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.repeats = [1] * len(self.moves)

    def step(self, rng: np.random.Generator, state: object) -> Info:
        """Take every move as often as was learned."""
        turns = zip(self.moves, self.repeats, strict=True)
        return combined("balanced", [move.step(rng, state) for move, n in turns for _ in range(n)])

    def during_burn_in(self) -> Move:
        """Return the version that learns how often to repeat each move."""
        return LearningBalance(self, self._made_of([move.during_burn_in() for move in self.moves]))

    def checkpoint(self) -> dict[str, np.ndarray]:
        """What was learned, and what the parts keep."""
        return {"repeats": np.array(self.repeats), **super().checkpoint()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.repeats = [int(times) for times in arrays["repeats"]]
        super().restore(arrays)


@dataclasses.dataclass
class LearningBalance(Move):
    """Counts the work of each part and sets how often ``balanced`` repeats it; for burn-in only."""

    balanced: Balanced
    learning: Balanced
    exact = False

    def __post_init__(self) -> None:
        self._work = np.zeros(len(self.balanced.moves))

    def step(self, rng: np.random.Generator, state: object) -> Info:
        """Do a step, then learn from the work of each part, recent steps more than old ones."""
        info = self.learning.step(rng, state)
        part = iter(info.parts)
        work = np.array([sum(next(part).work for _ in range(n)) / n for n in self.learning.repeats])
        self._work = work if not self._work.any() else 0.9 * self._work + 0.1 * work
        most = self._work.max()
        self.balanced.repeats = self.learning.repeats = [
            min(max(round(most / each), 1), MOST_REPEATS) if each > 0 else 1 for each in self._work
        ]
        return info

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Work counted so far, and what the parts keep."""
        return {"work": self._work, **self.learning.checkpoint()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._work = np.array(arrays["work"])
        self.learning.restore(arrays)
        self.balanced.repeats = list(self.learning.repeats)


@dataclasses.dataclass
class Opening(Move):
    """Take one move for the first ``n_steps`` steps and another from then on. For burn-in only."""

    first: Move
    n_steps: int
    then: Move
    exact = False

    def __post_init__(self) -> None:
        self._done = 0

    def step(self, rng: np.random.Generator, state: object) -> Info:
        """One step of the move whose turn it is."""
        self._done += 1
        return (self.first if self._done <= self.n_steps else self.then).step(rng, state)

    def checkpoint(self) -> dict[str, np.ndarray]:
        """How many steps were made, and what both moves keep."""
        parts = {"first": self.first.checkpoint(), "then": self.then.checkpoint()}
        kept = {f"{place}/{name}": array for place, part in parts.items() for name, array in part.items()}
        return {"done": np.array(self._done), **kept}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._done = int(arrays["done"])
        self.first.restore(under("first", arrays))
        self.then.restore(under("then", arrays))
