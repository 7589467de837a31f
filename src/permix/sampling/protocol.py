"""What a chain needs from a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy.typing as npt

Array = npt.NDArray[Any]


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
        """Numbers worth watching while the chain runs, such as clusters and log joint."""
