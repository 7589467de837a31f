"""How finely terms are rounded, so that sums over all agents are exact."""

from __future__ import annotations

import math
from typing import NamedTuple

from permix.runtime.exact_sums import grid_of

# What a group's share adds to the size of ln P(row), at most.
LARGEST_LOG_WEIGHT = 800.0


class Grids(NamedTuple):
    """How finely terms of sums over all agents are rounded."""

    shares: float
    distances: float
    logs: float
    rest_of_logs: float  # what rounding to ``logs`` leaves
    gains: float

    @classmethod
    def of(cls, n_agents: int, n_items: int, largest_decay: float) -> Grids:
        """Return those of so many agents."""
        n_pairs = max(n_items * (n_items - 1) / 2, 1.0)
        # -ln P is at most the decay of all pairs, ln Z, which is at most ln m!, and that of the share.
        largest = n_pairs * largest_decay + math.lgamma(n_items + 1) + LARGEST_LOG_WEIGHT
        logs = grid_of(n_agents, largest)
        return cls(
            shares=grid_of(n_agents, 1.0),
            distances=grid_of(n_agents, n_pairs),
            logs=logs,
            rest_of_logs=grid_of(n_agents, 0.5 / logs),
            gains=grid_of(n_agents, largest_decay),
        )
