"""One run of the search for the partition of least expected loss: the order of its compiled steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from permix.partitions.labels import IntArray, canonical_labels
from permix.partitions.search_jit import BLOCK, Draws, Estimate, best_merge, sweep
from permix.partitions.weighted_draws import WeightedDraws

Numbers = npt.NDArray[np.int64]
NOWHERE = np.zeros(0, np.int32)
# Clusters that one run may dissolve and rebuild.
MAX_REBUILDS = 20
# In units of the weight of all draws: far above rounding, far below any difference that matters.
TOLERANCE = 1e-9
# Once fewer than one in SETTLED observations move, only the one in DOUBTFUL that would move most easily are
# looked at until these rest; all of them have the last word.
SETTLED, DOUBTFUL = 20, 8
# A cluster is not rebuilt that would need so many more sweeps as good as the last.
HOPE = 5


class Layout:
    """Draws for compiled code, the greatest number of clusters, and the space that a run needs."""

    def __init__(self, draws: WeightedDraws, max_clusters: int) -> None:
        self.max_clusters = max_clusters
        # A list has one entry for its length and at most one for each member.
        longest = draws.labels.size + int(draws.n_clusters.sum())
        places = np.empty((draws.n, draws.n_draws), np.int32 if longest < 2**31 else np.int64)
        all_places = []
        self.n_tables = self.list_length = 0
        for m, labels in enumerate(draws.labels):
            sizes = np.bincount(labels)
            in_list = sizes < max_clusters
            list_ends = self.list_length + np.cumsum(np.where(in_list, 1 + sizes, 0))
            table_ends = self.n_tables + np.cumsum(~in_list)
            all_places.append(np.where(in_list, list_ends - 1 - sizes, -table_ends))
            places[:, m] = all_places[m][labels]
            self.n_tables, self.list_length = int(table_ends[-1]), int(list_ends[-1])
        by_place = (np.concatenate(all_places), np.repeat(draws.weights, draws.n_clusters))
        g = np.diff(draws.f, append=0.0)
        self.draws = Draws(places, *by_place, draws.weights, draws.f, g, float(draws.weights.sum()))


class Search:
    """A partition that only ever gets better; ``stop[0]`` is set by another thread to end the work early."""

    def __init__(
        self,
        layout: Layout,
        rng: np.random.Generator,
        stop: npt.NDArray[np.uint8],
        tell: Callable[[int], object] | None = None,
    ) -> None:
        self.draws, self.rng, self.stop = layout.draws, rng, stop
        self._tell = tell  # told how many observations were visited
        self.tolerance = TOLERANCE * self.draws.total_weight
        n, max_clusters = len(self.draws.places), layout.max_clusters
        self.state = Estimate(
            np.full(n, -1, np.int32),
            np.zeros(max_clusters, np.int64),
            np.zeros(n),
            np.zeros((layout.n_tables, max_clusters), np.int32),
            np.zeros((layout.n_tables, max_clusters)),
            np.zeros((layout.list_length, 2), np.int32),
            np.empty((1 + BLOCK, max_clusters)),
        )

    def run(self, start: IntArray | None, rebuilds: int = MAX_REBUILDS) -> IntArray | None:
        """Labels found from ``start``, or from a random sequential allocation.

        None if the work was stopped before all observations were allocated.
        """
        observations = np.arange(len(self.draws.places))
        if start is None:
            self.allocate(self.rng.permutation(observations))
            if self.state.labels.min() < 0:
                return None
        else:
            self.move(observations, start)
        # Move observations, merge and rebuild clusters until none of these helps.
        better = True
        while better and not self.stop[0]:
            self.settle(self.rng.permutation(observations))
            better = self._merge()
            if not better:
                clusters = self.rng.permutation(np.flatnonzero(self.state.sizes))[:rebuilds]
                rebuilds -= len(clusters)
                for cluster in clusters:
                    better |= self._rebuild(cluster)
        return self.state.labels

    def move(self, observations: Numbers, clusters: IntArray) -> float:
        """Put observations into clusters, -1 for none; returns, as all steps do, the objective's change."""
        return self._sweep(observations, clusters)[0]

    def allocate(self, order: Numbers) -> float:
        """Put the observations one after another where each adds the least."""
        return self._sweep(order, block=1)[0]

    def settle(self, order: Numbers, debt: float = 0.0) -> float:
        """Move one observation at a time until none of them gains by moving.

        Or until ``debt`` is far more than what sweeps still gain.
        """
        total = 0.0
        some = order
        while not self.stop[0]:
            self._close_gaps()
            change, n_moved = self._sweep(some)
            total += change
            if (n_moved == 0 and len(some) == len(order)) or debt + total + HOPE * change > 0.0:
                break
            if n_moved == 0:
                some = order
            elif len(some) == len(order) and SETTLED * n_moved < len(order):
                margins = self.state.margins[order]
                some = order[margins <= np.quantile(margins, 1.0 / DOUBTFUL)]
        return total

    def _sweep(self, order: Numbers, clusters: IntArray = NOWHERE, block: int = BLOCK) -> tuple[float, int]:
        done: tuple[float, int] = sweep(
            self.draws, self.state, order, clusters, block, self.tolerance, self.stop
        )
        if self._tell is not None:
            self._tell(len(order))
        return done

    def _close_gaps(self) -> None:
        """Number clusters anew where many numbers are empty, since these are scored too."""
        occupied = np.flatnonzero(self.state.sizes)
        if 2 * (occupied[-1] + 1) > 3 * len(occupied) + 1 and self.state.labels.min() >= 0:
            labels = canonical_labels(self.state.labels)
            self.state.labels.fill(-1)
            for counts in (
                self.state.sizes,
                self.state.table_counts,
                self.state.table_scores,
                self.state.lists,
            ):
                counts.fill(0)
            self.move(np.arange(len(labels)), labels)

    def _merge(self) -> bool:
        """Unite the two clusters whose union helps most, again and again; says whether there were any."""
        first, second, change = best_merge(self.draws, self.state, np.flatnonzero(self.state.sizes))
        if change >= -self.tolerance:
            return False
        members = np.flatnonzero(self.state.labels == first)
        self.move(members, np.full(len(members), second, np.int32))
        self._merge()
        return True

    def _rebuild(self, cluster: int) -> bool:
        """Dissolve a cluster and allocate its members anew; undo that unless it helps."""
        members = self.rng.permutation(np.flatnonzero(self.state.labels == cluster))
        if len(members) == 0 or self.stop[0]:
            return False
        change = self.move(members, np.full(len(members), -1, np.int32))
        change += self.allocate(members)
        change += self.settle(members, change)
        if change < -self.tolerance and not self.stop[0]:
            return True
        self.move(members, np.full(len(members), cluster, np.int32))
        return False
