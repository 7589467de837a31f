"""Parameters of every cluster in a number of posterior draws: what all results are computed from.

Chains keep labels and scalars only. For evenly spaced draws the centers and decays of the clusters are then
drawn given the labels, and stay with the fit.
"""

from __future__ import annotations

import dataclasses

import numpy as np

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
        prior = self.prior
        if isinstance(prior, DirichletProcess):
            prior = DirichletProcess(float(self.concentration[d]))
        return prior.sequential_log_weights(self.sizes[self.of_draw(d)])


@dataclasses.dataclass(frozen=True)
class Overlap:
    """Links from the clusters of all draws, row by row, to the estimated ones.

    Labels of draws mean nothing by themselves. What a draw says about an estimated cluster it says through
    the agents they have in common: a cluster of a draw speaks for the estimated one it is most like, by the
    cosine similarity of the two sets, n_common² / (n_1 n_2). All results go through these links. (Averaging
    over agents instead blurs groups that overlap: where it is unsure who belongs where, members of all groups
    are in all.)
    """

    linked: Array  # int32 (rows,): the estimated cluster that each row speaks for
    counts: Array  # int64 (rows,): agents they have in common
    nearest: Array  # int64 (draws, estimated clusters): the row of the draw that is most like it
    in_nearest: Array  # int64 (draws, estimated clusters): agents they have in common

    @classmethod
    def of(cls, clusters: ClusterDraws, labels: Array) -> Overlap:
        """Compare all draws with the estimated ``labels`` of the agents."""
        sizes = np.bincount(labels)
        n_estimated = len(sizes)
        linked, counts, nearest, in_nearest = [], [], [], []
        for d in range(clusters.n_draws):
            here = clusters.of_draw(d)
            n = here.stop - here.start
            cells = clusters.labels[d].astype(np.int64) * n_estimated + labels
            common = np.bincount(cells, minlength=n * n_estimated).reshape(n, n_estimated)
            likeness = common.astype(float) ** 2 / (clusters.sizes[here][:, None] * sizes)
            best = likeness.argmax(axis=1)
            linked.append(best.astype(np.int32))
            counts.append(common[np.arange(n), best])
            row = likeness.argmax(axis=0)
            nearest.append(here.start + row)
            in_nearest.append(common[row, np.arange(n_estimated)])
        rows = np.array(nearest, dtype=np.int64), np.array(in_nearest, dtype=np.int64)
        return cls(np.concatenate(linked), np.concatenate(counts), *rows)

    def of_estimated(self, e: int) -> tuple[Array, Array]:
        """Rows that speak for ``e``, and the agents each has in common with it.

        A cluster for which none speaks, because all that are like it are more like another, is spoken for by
        the nearest of every draw.
        """
        rows = np.flatnonzero(self.linked == e)
        if len(rows):
            return rows, self.counts[rows]
        return self.nearest[:, e], self.in_nearest[:, e]
