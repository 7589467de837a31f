"""How many cells the prior of a block is worth, learned along with the blocks.

Given the blocks, ln β of the pseudo-count β has log density Σ_blocks ln p(cells of the block | β) + ln p(β) +
ln β, on which one slice step is taken. β has a Gamma prior, cut off at :data:`LEAST` and :data:`MOST`.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from permix.cocluster.cells.block_sums_jit import log_blocks
from permix.cocluster.cells.encoded_matrix import BlockSums
from permix.cocluster.cells.families import CellFamily
from permix.data.labels import Array
from permix.errors import DataError
from permix.families.learning import slice_number
from permix.moves.base import Info, Move
from permix.moves.state import log_gamma_density
from permix.partitions.priors import Gamma

LEAST, MOST = 1e-4, 1e4


class LearnsCells(abc.ABC):
    """Base of states of a matrix whose blocks have a pseudo-count that may be learned.

    ``cell_family`` is the family at the present pseudo-count; ``learned`` its prior, or None where the
    number is given. Such a state starts at the number of the family that it is given.
    """

    cell_family: CellFamily
    learned: Gamma | None

    @abc.abstractmethod
    def blocks(self) -> BlockSums:
        """Return what the cells of all blocks add up to."""

    @abc.abstractmethod
    def take_family(self, family: CellFamily) -> None:
        """Go on with another pseudo-count; what was computed from the former one is computed anew."""

    def log_hyper_prior(self) -> float:
        """Log density of the pseudo-count, where it is learned."""
        return 0.0 if self.learned is None else log_gamma_density(self.learned, self.cell_family.pseudo_count)

    def recorded(self) -> dict[str, float]:
        """What a draw says of it."""
        return {} if self.learned is None else {"pseudo_count": self.cell_family.pseudo_count}

    def saved(self) -> dict[str, Array]:
        """What a checkpoint holds of it."""
        return {name: np.array(value) for name, value in self.recorded().items()}

    def take_saved(self, arrays: Mapping[str, Array]) -> None:
        """Take back what a checkpoint holds; a damaged one is refused."""
        if self.learned is None:
            return
        value = float(arrays["pseudo_count"])
        if not LEAST <= value <= MOST:
            raise DataError(f"the checkpoint's pseudo_count is {value}")
        self.take_family(self.cell_family.at(value))


@dataclasses.dataclass
class LearnPseudoCount(Move):
    """Draw how many cells the prior of a block is worth, by one slice step; nothing where it is given."""

    def step(self, rng: np.random.Generator, state: LearnsCells) -> Info:
        gamma = state.learned
        if gamma is None:
            return Info("pseudo-count", 0, 0)
        sums, family = state.blocks(), state.cell_family

        def log_density(t: float) -> float:
            if not math.log(LEAST) <= t <= math.log(MOST):
                return -math.inf
            value = math.exp(t)
            log_prior = log_gamma_density(gamma, value) + t
            return log_prior + float(log_blocks(family.at(value).block_prior(0), *sums))

        start = math.log(family.pseudo_count)
        drawn = slice_number(rng, start, log_density)
        state.take_family(family.at(min(max(math.exp(drawn), LEAST), MOST)))
        return Info("pseudo-count", 1, 1)
