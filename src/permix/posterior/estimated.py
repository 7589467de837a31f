"""The partition that stands for all draws, as fits of every mixture show it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from permix.partitions.point_estimate import PointEstimate, point_estimate
from permix.sampling import Draws

Array = npt.NDArray[Any]
# The point estimate minimizes the expected loss over at most this many draws.
MAX_ESTIMATE_DRAWS = 1000
# From this many labels on, few searches do: they nearly always agree.
MANY_LABELS, FEW_RUNS = 500_000, 3


class EstimatedPartition:
    """What fits of all mixtures show of their point estimate."""

    estimate: PointEstimate

    @cached_property
    def labels(self) -> npt.NDArray[np.int64]:
        """The point estimate; group 0 is the largest."""
        return by_size(self.estimate.labels)

    @cached_property
    def cluster_sizes(self) -> npt.NDArray[np.int64]:
        """Members of each group."""
        return np.bincount(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of groups of ``labels``."""
        return len(self.cluster_sizes)


def nearest_partition(
    draws: Draws, settings: Any, quantity: str = "labels", number: str = "n_groups"
) -> PointEstimate:
    """Return the partition of least expected loss, with at most as many groups as half of the draws have.

    Where groups overlap, data that might be in several of them would be shown as groups of their own, and
    there would be more groups than in any draw.
    """
    labels = evenly_spaced(draws.arrays[quantity], MAX_ESTIMATE_DRAWS)
    return point_estimate(
        labels,
        loss=settings.loss,
        max_clusters=max(1, int(np.median(draws.arrays[number]))),
        n_runs=FEW_RUNS if labels.size > MANY_LABELS else None,
        random_state=0,
        n_jobs=settings.n_jobs,
        progress=settings.progress,
    )


def evenly_spaced(draws: Array, most: int) -> Array:
    """Put chains one after another and keep at most so many draws."""
    joined = draws.reshape(-1, *draws.shape[2:])
    kept = np.linspace(0, len(joined) - 1, min(len(joined), most)).astype(np.int64)
    return joined[kept]


def by_size(labels: Array) -> npt.NDArray[np.int64]:
    """Renumber groups so that 0 is the largest; ties in order of first appearance."""
    _, first, group, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    return np.argsort(np.lexsort((first, -sizes)))[group]
