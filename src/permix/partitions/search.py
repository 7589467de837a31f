"""One run of the search for the partition of least expected loss: the order of its compiled steps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from permix.partitions.labels import IntArray
from permix.partitions.search_jit import (
    BLOCK,
    Draws,
    Estimate,
    allocate,
    best_merge,
    insert_all,
    remove_all,
    sweeten,
)

# Clusters that one run may dissolve and rebuild.
MAX_REBUILDS = 20
# In units of the weight of all draws: far above rounding, far below any difference that matters.
TOLERANCE = 1e-9


class Search:
    """A partition that only ever gets better; ``stop[0]`` is set by another thread to end the work early.

    ``space`` is the number of tables, and the length of all lists, that the draws need.
    """

    def __init__(
        self,
        draws: Draws,
        max_clusters: int,
        space: tuple[int, int],
        rng: np.random.Generator,
        stop: npt.NDArray[np.uint8],
    ) -> None:
        n_tables, list_length = space
        self.draws, self.rng, self.stop = draws, rng, stop
        self.tolerance = TOLERANCE * draws.total_weight
        self.state = Estimate(
            np.full(len(draws.places), -1, np.int32),
            np.zeros(max_clusters, np.int64),
            np.zeros((n_tables, max_clusters), np.int32),
            np.zeros((n_tables, max_clusters)),
            np.zeros((list_length, 2), np.int32),
            np.empty((1 + BLOCK, max_clusters)),
        )

    def run(self, start: IntArray | None) -> IntArray | None:
        """Labels found from ``start``, or from a random sequential allocation.

        None if the work was stopped before all observations were allocated.
        """
        observations = np.arange(len(self.draws.places))
        if start is None:
            order = self.rng.permutation(observations)
            allocate(self.draws, self.state, order, self.tolerance, self.stop)
            if self.state.labels.min() < 0:
                return None
        else:
            insert_all(self.draws, self.state, observations, start)
        # Move observations, merge and rebuild clusters until none of these helps.
        rebuilds_left = MAX_REBUILDS
        better = True
        while better and not self.stop[0]:
            order = self.rng.permutation(len(self.state.labels))
            sweeten(self.draws, self.state, order, self.tolerance, self.stop)
            better = self._merge_once()
            if not better:
                clusters = self.rng.permutation(np.flatnonzero(self.state.sizes))[:rebuilds_left]
                rebuilds_left -= len(clusters)
                for cluster in clusters:
                    better |= self._rebuild(cluster)
        return self.state.labels

    def _merge_once(self) -> bool:
        """Unite the two clusters whose union helps most, if there are any."""
        first, second, change = best_merge(self.draws, self.state, np.flatnonzero(self.state.sizes))
        if change >= -self.tolerance:
            return False
        members = np.flatnonzero(self.state.labels == first)
        remove_all(self.draws, self.state, members)
        insert_all(self.draws, self.state, members, np.full(len(members), second, np.int32))
        return True

    def _rebuild(self, cluster: int) -> bool:
        """Dissolve a cluster and allocate its members anew; undo that unless it helps."""
        members = self.rng.permutation(np.flatnonzero(self.state.labels == cluster))
        if len(members) == 0 or self.stop[0]:
            return False
        change = remove_all(self.draws, self.state, members)
        change += allocate(self.draws, self.state, members, self.tolerance, self.stop)
        change += sweeten(self.draws, self.state, members, self.tolerance, self.stop)
        if change < -self.tolerance and not self.stop[0]:
            return True
        remove_all(self.draws, self.state, members[self.state.labels[members] >= 0])
        insert_all(self.draws, self.state, members, np.full(len(members), cluster, np.int32))
        return False
