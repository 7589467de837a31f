"""How the clusters of every draw share their agents with those of the point estimate.

Labels of draws mean nothing by themselves. What a draw says about an estimated cluster it says through the
agents they have in common; all results go through these counts.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.data.labels import Array
from permix.models.dp_mallows_draws import ClusterDraws


@dataclasses.dataclass(frozen=True)
class Overlap:
    """Agents in common, for every cluster of every draw, in compressed rows.

    Attributes
    ----------
    indptr : int64 array (clusters + 1,)
        Row c is ``indptr[c]`` to ``indptr[c + 1]``.
    members : int32 array
        Estimated clusters that share agents with cluster c.
    counts : int64 array
        How many.
    sizes : int64 array (estimated clusters,)
        Agents of each estimated cluster.
    """

    indptr: Array
    members: Array
    counts: Array
    sizes: Array

    @classmethod
    def of(cls, clusters: ClusterDraws, labels: Array) -> Overlap:
        """Compare all draws with the estimated ``labels`` of the agents."""
        sizes = np.bincount(labels)
        n_estimated = len(sizes)
        rows, members, counts = [], [], []
        for d in range(clusters.n_draws):
            here = clusters.of_draw(d)
            n = here.stop - here.start
            common = np.bincount(
                clusters.labels[d].astype(np.int64) * n_estimated + labels, minlength=n * n_estimated
            )
            found = np.flatnonzero(common)
            rows.append(np.bincount(found // n_estimated, minlength=n))
            members.append((found % n_estimated).astype(np.int32))
            counts.append(common[found])
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(rows))]).astype(np.int64)
        return cls(indptr, np.concatenate(members), np.concatenate(counts), sizes)

    @property
    def rows(self) -> Array:
        """Cluster of each entry."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    @property
    def shares(self) -> Array:
        """Share of a cluster's agents that are in the estimated one, for each entry."""
        totals = np.add.reduceat(self.counts, self.indptr[:-1])
        return np.asarray(self.counts / np.repeat(totals, np.diff(self.indptr)))

    def of_estimated(self, e: int) -> tuple[Array, Array]:
        """Clusters of all draws that share agents with the estimated one ``e``, and how many agents each."""
        at = np.flatnonzero(self.members == e)
        return np.searchsorted(self.indptr, at, side="right") - 1, self.counts[at]
