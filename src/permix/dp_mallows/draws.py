"""Parameters of every cluster in a number of posterior draws: what all results are computed from.

Chains keep labels and scalars only. For evenly spaced draws the centers and decays of the clusters are then
drawn given the labels, and stay with the fit.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class ClusterDraws:
    """Clusters of D posterior draws, one after another.

    A new agent joins cluster k of a draw with weight ``sizes[k] - discount`` and a cluster of its own with
    weight ``concentration + discount * K``.
    """

    starts: Array  # int64 (D + 1,): clusters of draw d are rows starts[d] to starts[d + 1], end excluded
    sizes: Array  # int64 (rows,): members of each cluster, all agents counted
    centers: Array  # int32 (rows, n_items): central ordering of each, best first
    # (rows, n_stages): decay of each stage, as many as the longest list has (at most n_items - 1). Those of
    # stages that no list of a cluster reached are draws from the prior.
    theta: Array
    labels: Array  # int32 (D, n_agents): within the draw; agents in the order of Rankings.expand()
    concentration: Array  # (D,): α of each draw
    discount: float = 0.0  # d of the Pitman–Yor process, 0 for a Dirichlet process

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return len(self.starts) - 1

    def of_draw(self, d: int) -> slice:
        """Rows of the clusters of draw ``d``."""
        return slice(int(self.starts[d]), int(self.starts[d + 1]))

    def log_weights(self, d: int) -> Array:
        """Log prior weights of the clusters of draw ``d`` and, last, of a new one; they sum to one."""
        sizes = self.sizes[self.of_draw(d)]
        new = self.concentration[d] + self.discount * len(sizes)
        weights = np.append(sizes - self.discount, new)
        logs: Array = np.log(weights) - np.log(weights.sum())
        return logs
