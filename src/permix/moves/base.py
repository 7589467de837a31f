"""What a move is, and moves made of moves.

``step(rng, state)`` changes the state in place, leaves every cached statistic right and reports what
it did. A move with ``exact = False`` does not leave the posterior invariant; the chain refuses it
after burn-in.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from permix.errors import DataError


class Info(NamedTuple):
    """What a step did; ``parts`` holds the reports of the moves it is made of."""

    name: str
    proposed: int
    accepted: int
    parts: tuple[Info, ...] = ()


class Move(abc.ABC):
    """Base of all moves."""

    #: Whether the posterior is left invariant. Optimisers say False and are for burn-in only.
    exact: bool = True

    @abc.abstractmethod
    def step(self, rng: np.random.Generator, state: Any) -> Info:
        """Change ``state`` in place and report."""


@dataclasses.dataclass
class Cycle(Move):
    """Take each move in turn, in the order given."""

    moves: Sequence[Move]

    def __post_init__(self) -> None:
        self.moves = _checked(self.moves, "Cycle")
        self.exact = all(move.exact for move in self.moves)

    def step(self, rng: np.random.Generator, state: Any) -> Info:
        """One step of every move."""
        return _combined("cycle", [move.step(rng, state) for move in self.moves])


@dataclasses.dataclass
class RandomScan(Move):
    """Take one move, drawn at random with the given weights (equal by default)."""

    moves: Sequence[Move]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self.moves = _checked(self.moves, "RandomScan")
        self.exact = all(move.exact for move in self.moves)
        weights = (
            np.ones(len(self.moves)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        )
        if weights.shape != (len(self.moves),) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
            raise DataError(
                f"RandomScan needs one non-negative weight for each of its {len(self.moves)} moves"
            )
        if weights.sum() == 0:
            raise DataError("RandomScan needs at least one positive weight")
        self._cumulative = np.cumsum(weights / weights.sum())

    def step(self, rng: np.random.Generator, state: Any) -> Info:
        """One step of a move drawn at random."""
        chosen = int(np.searchsorted(self._cumulative, rng.random(), side="right"))
        return _combined("random scan", [self.moves[min(chosen, len(self.moves) - 1)].step(rng, state)])


@dataclasses.dataclass
class Repeat(Move):
    """Take a move several times."""

    move: Move
    times: int

    def __post_init__(self) -> None:
        if not isinstance(self.times, int) or self.times < 1:
            raise DataError(f"Repeat needs a whole number of times, at least 1, got {self.times!r}")
        self.exact = _checked([self.move], "Repeat")[0].exact

    def step(self, rng: np.random.Generator, state: Any) -> Info:
        """Do ``times`` steps of the move."""
        return _combined("repeat", [self.move.step(rng, state) for _ in range(self.times)])


def _checked(moves: Sequence[Move], name: str) -> tuple[Move, ...]:
    listed = tuple(moves)
    if not listed:
        raise DataError(f"{name} needs at least one move")
    for move in listed:
        if not isinstance(move, Move):
            raise DataError(f"{name} is made of moves, got {move!r}")
    return listed


def _combined(name: str, parts: list[Info]) -> Info:
    return Info(
        name, sum(part.proposed for part in parts), sum(part.accepted for part in parts), tuple(parts)
    )
