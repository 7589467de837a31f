"""The state of a mixture of generalized Mallows models: a partition of top-t lists, and centers.

The decays of the clusters are integrated out (Meilă & Chen 2010, equation 15 with the finite-n integral), so
a state is a partition with centers, and its log joint is known exactly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from permix.distributions.generalized.finite_beta_jit import StageTables, stage_tables
from permix.dp_mallows.lists.clusters_jit import log_likelihoods, start_centers, update_centers
from permix.dp_mallows.lists.predictive_rows_jit import SkipBins, row_scratch, skip_bins
from permix.dp_mallows.lists.seating_jit import ListClusters, Opening, write_opening
from permix.dp_mallows.lists.top_lists_jit import TopLists, collect_members, top_lists
from permix.errors import DataError
from permix.kernels.streams import draw_key
from permix.moves.state import PartitionState, first_concentration, roomy
from permix.partitions.labels import canonical_labels
from permix.partitions.priors import PartitionPrior
from permix.runtime.threads import over_rows


@dataclasses.dataclass(frozen=True)
class ListModel:
    """Data and prior, shared by all chains and never written.

    Attributes
    ----------
    lists : TopLists
        Distinct lists and who gave them.
    n_items, n_stages : int
        Items, and the length of the longest list (at most n_items - 1).
    tables : StageTables
        The integrals over the decays.
    prior : PartitionPrior
        Dirichlet process or Pitman–Yor process.
    rows : callable
        Makes room for rows of scores; its type says what scores a list in a cluster, here the finite-n
        integral.
    """

    lists: TopLists
    n_items: int
    n_stages: int
    tables: StageTables
    prior: PartitionPrior
    bins: SkipBins
    opening: Opening
    rows: Callable[[], Any] = row_scratch

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return len(self.lists.list_of)

    @property
    def discount(self) -> float:
        """Discount of the Pitman–Yor process, 0 for a Dirichlet process."""
        return float(getattr(self.prior, "discount", 0.0))


def list_model(
    orders: np.ndarray,
    lengths: np.ndarray,
    counts: np.ndarray,
    n_items: int,
    rates: Callable[[int], np.ndarray],
    strength: float,
    prior: PartitionPrior,
) -> ListModel:
    """Prepare data and prior; ``rates(n)`` gives r_j of the first n stages."""
    lists = top_lists(orders, lengths, counts, n_items)
    n_stages = int(np.diff(lists.starts).max())
    tables = stage_tables(n_items, n_stages, rates(n_stages), strength, len(lists.list_of))
    bins = skip_bins(n_items, exact=False)
    opening = Opening(np.empty((n_stages, len(bins.middle))), np.empty((n_stages, n_items)))
    write_opening(tables, bins, opening, row_scratch())
    return ListModel(lists, n_items, n_stages, tables, prior, bins, opening)


class ListState(PartitionState):
    """A partition of agents' lists with a center for each cluster.

    ``labels[i]`` is the cluster of agent i, 0 ... n_clusters - 1 without gaps between steps, -1 before it is
    seated. The first ``n_clusters`` slots of ``clusters`` are in use; their sizes, centers and sums over
    lists are right between steps, rows are filled by the sweep that needs them.
    """

    def __init__(self, model: ListModel) -> None:
        self.model = model
        self.prior_spec = model.prior
        self.n = model.n_agents
        self.concentration = first_concentration(model.prior)
        self.labels = np.full(self.n, -1, dtype=np.int32)
        self.n_clusters = 0
        self.n_moved = 0
        self.clusters = self.make_clusters(roomy(1))

    # Slots.

    def make_clusters(self, capacity: int) -> ListClusters:
        """Return empty slots."""
        model = self.model
        stages = (capacity, model.n_stages)
        n_bins = len(model.bins.middle)
        return ListClusters(
            sizes=np.zeros(capacity, dtype=np.int64),
            log_sizes=np.full(capacity, -np.inf),
            places=np.zeros((model.n_items, capacity), dtype=np.int16),
            totals=np.zeros(stages),
            counts=np.zeros(stages),
            log_integrals=np.zeros(stages),
            joining=np.ones((*stages, n_bins)),
            own=np.ones((*stages, model.bins.n_exact)),
            theta=np.zeros(stages),
        )

    def make_room(self, capacity: int) -> None:
        """Give the state at least ``capacity`` slots, and keep what is in those it has."""
        if capacity > len(self.clusters.sizes):
            self.clusters = grown(self.clusters, self.make_clusters(roomy(capacity)))

    def compact(self) -> None:
        """Renumber slots so that those in use come first, in their order."""
        used = np.flatnonzero(self.clusters.sizes)
        self.n_clusters = len(used)
        if len(used) and used[-1] == len(used) - 1:
            return
        new = np.full(len(self.clusters.sizes), -1, dtype=np.int32)
        new[used] = np.arange(len(used))
        self.labels[:] = np.where(self.labels >= 0, new[self.labels], -1)
        for name, array in self.clusters._asdict().items():
            if name == "places":
                array[:, : len(used)] = array[:, used]
            else:
                array[: len(used)] = array[used]
        self.clusters.sizes[len(used) :] = 0
        self.clusters.log_sizes[len(used) :] = -np.inf

    # Statistics.

    def count_members(self) -> None:
        """Recompute sizes from the labels."""
        sizes = np.bincount(self.labels[self.labels >= 0], minlength=self.n_clusters)
        self.clusters.sizes[:] = 0
        self.clusters.sizes[: self.n_clusters] = sizes
        with np.errstate(divide="ignore"):
            self.clusters.log_sizes[:] = np.log(
                np.where(self.clusters.sizes > 0, self.clusters.sizes - self.model.discount, 0.0)
            )

    def set_labels(self, labels: np.ndarray, rng: np.random.Generator) -> None:
        """Put agents into the clusters named by ``labels`` (any integers), and give these plausible centers.

        A center is the best item at every stage given equal decays; items that no list mentions follow.
        """
        self.labels[:] = canonical_labels(labels)
        self.n_clusters = int(self.labels.max()) + 1
        self.make_room(self.n_clusters + 1)
        self.count_members()
        starts, members, multiplicity = self.members()
        start_centers(self.model.lists, starts, members, multiplicity, self.clusters, self.n_clusters)
        self.update_centers(rng, 0)

    def members(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the lists of each cluster: starts, list numbers, multiplicities."""
        starts = np.empty(self.n_clusters + 2, dtype=np.int64)
        members = np.empty(self.n, dtype=np.int32)
        multiplicity = np.empty(self.n)
        collect_members(self.model.lists, self.labels, self.n_clusters, starts, members, multiplicity)
        return starts, members, multiplicity

    def update_centers(
        self,
        rng: np.random.Generator,
        n_rounds: int,
        which: np.ndarray | None = None,
        update: Callable[..., object] = update_centers,
    ) -> int:
        """Move centers ``n_rounds`` times and leave sums and decays right; 0 rounds recompute sums only.

        All centers, or those of the clusters ``which``; ``update`` is the compiled move. Returns how many
        stagewise proposals were accepted.
        """
        starts, members, multiplicity = self.members()
        key = draw_key(rng) if n_rounds else np.zeros(2, dtype=np.uint64)
        taken = np.zeros(self.n_clusters, dtype=np.int64)

        def work(first: int, last: int) -> None:
            update(
                self.model.lists,
                starts,
                members,
                multiplicity,
                self.model.tables,
                self.model.opening,
                self.clusters,
                key,
                n_rounds,
                first,
                last,
                taken,
            )

        if which is None:
            over_rows(work, self.n_clusters, self.n * self.model.n_stages)
        else:
            for k in which:
                work(int(k), int(k) + 1)
        return int(taken.sum())

    def refresh(self) -> None:
        """Recompute all statistics from labels and centers."""
        self.count_members()
        self.update_centers(np.random.default_rng(0), 0)

    # What is reported.

    @property
    def sizes_in_use(self) -> np.ndarray:
        """Members of each cluster."""
        return self.clusters.sizes[: self.n_clusters]

    def log_prior(self) -> float:
        """Log prior of the partition, of the concentration where that is learned, and of the centers."""
        return super().log_prior() - self.n_clusters * math.lgamma(self.model.n_items + 1.0)

    def cluster_log_likelihoods(self) -> np.ndarray:
        """Return ln p(lists | center) of every cluster, decays integrated out."""
        values = np.zeros(self.n_clusters)
        log_likelihoods(self.model.tables, self.clusters, self.n_clusters, values)
        return values

    def log_likelihood(self) -> float:
        """Log likelihood of the lists given partition and centers, decays integrated out."""
        return float(self.cluster_log_likelihoods().sum())

    def centers(self) -> np.ndarray:
        """Return the central orderings, best first, one per row."""
        return np.argsort(self.clusters.places[:, : self.n_clusters], axis=0).T.astype(np.int32)

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Everything that cannot be recomputed."""
        return {
            "labels": self.labels.copy(),
            "places": self.clusters.places[:, : self.n_clusters].copy(),
            "theta": self.clusters.theta[: self.n_clusters].copy(),
            "concentration": np.array(self.concentration),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back what ``checkpoint`` gave."""
        labels, places = np.asarray(arrays["labels"]), np.asarray(arrays["places"])
        theta = np.asarray(arrays["theta"])
        if labels.shape != (self.n,) or places.ndim != 2 or len(places) != self.model.n_items:
            raise DataError(f"the checkpoint is of {labels.shape} agents, these are {self.n}")
        n_clusters = places.shape[1]
        # Compiled code does not check: a damaged checkpoint must not get there.
        proper = (
            np.array_equal(np.unique(labels), np.arange(n_clusters))
            and np.array_equal(
                np.sort(places, axis=0), np.tile(np.arange(len(places))[:, None], (1, n_clusters))
            )
            and theta.shape == (n_clusters, self.model.n_stages)
        )
        if not proper:
            raise DataError("the checkpoint's labels, centers and decays do not fit together")
        self.labels[:] = labels
        self.n_clusters = n_clusters
        self.clusters = self.make_clusters(roomy(n_clusters + 1))
        self.clusters.places[:, :n_clusters] = places
        self.clusters.theta[:n_clusters] = theta
        self.concentration = float(arrays["concentration"])
        self.refresh()


def grown(old: ListClusters, new: ListClusters) -> ListClusters:
    """Copy slots into a larger set."""
    for name, source in old._asdict().items():
        target: Any = getattr(new, name)
        if name == "places":
            target[:, : source.shape[1]] = source
        else:
            target[: len(source)] = source
    return new
