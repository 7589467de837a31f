"""Parameters of every cluster in a number of posterior draws: what all results are computed from.

Chains keep labels and scalars only. For evenly spaced draws the centers and decays of the clusters are then
drawn given the labels, and stay with the fit.
"""

from __future__ import annotations

import dataclasses

from permix.data.labels import Array
from permix.partitions.priors import DirichletProcess, PartitionPrior


@dataclasses.dataclass(frozen=True)
class ClusterDraws:
    """Clusters of D posterior draws, one after another.

    A new agent joins a cluster of a draw, or one of its own, with the weights that the prior gives them.
    """

    starts: Array  # int64 (D + 1,): clusters of draw d are rows starts[d] to starts[d + 1], end excluded
    sizes: Array  # int64 (rows,): members of each cluster, all agents counted
    centers: Array  # int32 (rows, n_items): central ordering of each, best first
    # (rows, n_stages): decay of each stage, as many as the longest list has (at most n_items - 1). Those of
    # stages that no list of a cluster reached are draws from the prior.
    theta: Array
    labels: Array  # int32 (D, n_agents): within the draw; agents in the order of Rankings.expand()
    concentration: Array  # (D,): α of each draw, 0 for priors that have none
    prior: PartitionPrior  # of partitions

    @property
    def n_draws(self) -> int:
        return len(self.starts) - 1

    def of_draw(self, d: int) -> slice:
        """Rows of the clusters of draw ``d``."""
        return slice(int(self.starts[d]), int(self.starts[d + 1]))

    def log_weights(self, d: int) -> Array:
        """Log prior weights of the clusters of draw ``d`` and, last, of a new one; they sum to one."""
        return self.prior_of(d).sequential_log_weights(self.sizes[self.of_draw(d)])

    def prior_of(self, d: int) -> PartitionPrior:
        """Return the prior of partitions with the concentration of draw ``d``."""
        learned = isinstance(self.prior, DirichletProcess)
        return DirichletProcess(float(self.concentration[d])) if learned else self.prior
