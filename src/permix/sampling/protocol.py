"""What a chain needs from a state and from a move. Nothing here imports either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class MoveInfo(Protocol):
    """What one step reports: the move's name, how many changes it proposed, how many it made.

    The report of a move made of moves has ``parts``, their reports; these are then counted.
    """

    @property
    def name(self) -> str: ...
    @property
    def proposed(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def parts(self) -> tuple[Any, ...]: ...


class Move(Protocol):
    """One step of a chain, with the state of its own that it may carry; every chain works on a copy.

    ``exact`` is False for an optimizer, which does not leave the posterior invariant and is refused
    after burn-in.
    """

    @property
    def exact(self) -> bool: ...
    def step(self, rng: np.random.Generator, state: Any) -> MoveInfo: ...
    def checkpoint(self) -> Mapping[str, Array]: ...
    def restore(self, arrays: Mapping[str, Array]) -> None: ...


class ChainState(Protocol):
    """What a move changes in place.

    The promise on which exact resumption rests: ``restore(checkpoint())`` followed by ``refresh()``
    gives the same state, to the last bit, as ``refresh()`` alone.
    """

    def checkpoint(self) -> Mapping[str, Array]:
        """Everything that cannot be recomputed, as numeric arrays."""

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what ``checkpoint`` gave."""

    def record(self) -> Mapping[str, float | int | Array]:
        """One draw: scalars, and arrays whose shape is the same in every draw."""

    def refresh(self) -> None:
        """Compute cached statistics from scratch, which removes the drift of float updates."""

    def progress(self) -> Mapping[str, float]:
        """Numbers worth watching while the chain runs, such as the number of groups and the log joint."""
