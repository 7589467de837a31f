"""What a move is, and moves made of moves.

``step(rng, state)`` changes the state in place, leaves every cached statistic right and reports what
it did. A move with ``exact = False`` does not leave the posterior invariant; the chain refuses it
after burn-in. A move may learn a setting while burn-in lasts: ``during_burn_in`` returns the version of it
that learns, and the two share what was learned.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np

from permix.errors import DataError


class Info(NamedTuple):
    """What a step did; ``parts`` holds the reports of the moves it is made of.

    ``work`` is what a step costs, counted rather than timed, so that it is the same on every machine. The
    unit is one of the many scores of a datum against a group in a Gibbs sweep.
    """

    name: str
    proposed: int
    accepted: int
    parts: tuple[Info, ...] = ()
    work: float = 0.0


class Move(abc.ABC):
    """Base of all moves."""

    #: Whether the posterior is left invariant. Optimizers say False and are for burn-in only.
    exact: bool = True
    #: Whether it draws a concentration that is learned anew; a chain in which nothing does would be wrong.
    draws_concentration: bool = False
    #: Whether it draws what is learned about the family's hyper-parameters.
    draws_hyperparameters: bool = False
    #: Whether it draws missing cells anew, where these are filled in.
    draws_missing_cells: bool = False

    @abc.abstractmethod
    def step(self, rng: np.random.Generator, state: Any) -> Info:
        """Change ``state`` in place and report."""

    def during_burn_in(self) -> Move:
        """Return what stands for this move during burn-in: itself, unless it has something to learn."""
        return self

    def checkpoint(self) -> dict[str, np.ndarray]:
        """What was learned or counted so far, for resuming; nothing by default."""
        return {}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back what ``checkpoint`` gave."""
        if arrays:
            raise DataError(f"{type(self).__name__} keeps nothing, the checkpoint has {', '.join(arrays)}")


class Compound(Move):
    """A move made of moves."""

    moves: Sequence[Move]

    def __post_init__(self) -> None:
        self.moves = checked(self.moves, type(self).__name__)
        self.exact = all(move.exact for move in self.moves)

    def during_burn_in(self) -> Move:
        """Return the same of what its parts are during burn-in."""
        learning = [move.during_burn_in() for move in self.moves]
        if all(new is old for new, old in zip(learning, self.moves, strict=True)):
            return self
        return self._made_of(learning)

    def _made_of(self, moves: Sequence[Move]) -> Self:
        """Return a move like this one of other parts."""
        return dataclasses.replace(self, moves=moves)  # type: ignore[type-var]

    def checkpoint(self) -> dict[str, np.ndarray]:
        """What the parts keep."""
        return {
            f"{place}/{name}": array
            for place, move in enumerate(self.moves)
            for name, array in move.checkpoint().items()
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        for place, move in enumerate(self.moves):
            move.restore(under(str(place), arrays))


@dataclasses.dataclass
class Cycle(Compound):
    """Take each move in turn, in the order given."""

    moves: Sequence[Move]

    def step(self, rng: np.random.Generator, state: Any) -> Info:
        """One step of every move."""
        return combined("cycle", [move.step(rng, state) for move in self.moves])


@dataclasses.dataclass
class RandomScan(Compound):
    """Take one move, drawn at random with the given weights (equal by default)."""

    moves: Sequence[Move]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        n = len(self.moves)
        weights = np.ones(n) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (n,) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
            raise DataError(f"RandomScan needs one non-negative weight for each of its {n} moves")
        if weights.sum() == 0:
            raise DataError("RandomScan needs at least one positive weight")
        self._cumulative = np.cumsum(weights / weights.sum())

    def step(self, rng: np.random.Generator, state: Any) -> Info:
        """One step of a move drawn at random."""
        chosen = int(np.searchsorted(self._cumulative, rng.random(), side="right"))
        return combined("random scan", [self.moves[min(chosen, len(self.moves) - 1)].step(rng, state)])


@dataclasses.dataclass
class Repeat(Compound):
    """Take a move several times."""

    move: Move
    times: int

    def __post_init__(self) -> None:
        if not isinstance(self.times, int) or self.times < 1:
            raise DataError(f"Repeat needs a whole number of times, at least 1, got {self.times!r}")
        self.moves = [self.move]
        super().__post_init__()

    def step(self, rng: np.random.Generator, state: Any) -> Info:
        """Do ``times`` steps of the move."""
        return combined("repeat", [self.move.step(rng, state) for _ in range(self.times)])

    def _made_of(self, moves: Sequence[Move]) -> Self:
        return dataclasses.replace(self, move=moves[0])


def checked(moves: Sequence[Move], name: str) -> tuple[Move, ...]:
    """Return the parts of a compound move, if they are moves and there are any."""
    if isinstance(moves, str | Move) or not isinstance(moves, Iterable):
        raise DataError(f"{name} needs a list of moves, got {moves!r}")
    listed = tuple(moves)
    if not listed:
        raise DataError(f"{name} needs at least one move")
    strange = [move for move in listed if not isinstance(move, Move)]
    if strange:
        raise DataError(f"{name} is made of moves, such as permix.moves.Gibbs(), got {strange[0]!r}")
    return listed


def check_at_least(value: Any, name: str, least: int) -> None:
    """Refuse what is not a whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise DataError(f"{name} must be a whole number, at least {least}, got {value!r}")


def combined(name: str, parts: Sequence[Info]) -> Info:
    """Report of a step made of steps."""
    proposed, accepted = sum(part.proposed for part in parts), sum(part.accepted for part in parts)
    return Info(name, proposed, accepted, tuple(parts), sum(part.work for part in parts))


def under(place: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Select the arrays named ``place/...`` and strip that from their names."""
    prefix = f"{place}/"
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
