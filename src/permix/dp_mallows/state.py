"""The state of a mixture of generalized Mallows models: a partition of top-t lists, and centers.

The decays of the clusters are integrated out (Meilă & Chen 2010, equation 15 with the finite-n integral), so
a state is a partition with centers, and its log joint is known exactly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from permix.distributions.generalized.finite_beta_jit import StageTables, stage_tables
from permix.dp_mallows.lists.clusters_jit import START, log_integrals, log_prior_chances, update_centers
from permix.dp_mallows.lists.many_items_jit import ByList
from permix.dp_mallows.lists.pair_counts_jit import MOST_PAIRS, ByPair, count_pairs
from permix.dp_mallows.lists.predictive_rows_jit import LEAST, SkipBins, row_scratch, skip_bins
from permix.dp_mallows.lists.seating_jit import ListClusters, Opening
from permix.dp_mallows.lists.top_lists_jit import Members, TopLists, collect_members, top_lists
from permix.errors import DataError
from permix.families.learning import LogNormal
from permix.kernels.streams import draw_key
from permix.moves.state import PartitionState, first_concentration, roomy
from permix.partitions.labels import canonical_labels
from permix.partitions.priors import PartitionPrior
from permix.runtime.threads import over_rows

# To move a center takes as long as to go through its counts of pairs; so many of them are one unit of work.
PAIRS_WORK = 16
MISFIT = "the checkpoint's labels, centers and decays do not fit together"


@dataclasses.dataclass(frozen=True)
class ListModel:
    """Data and prior, shared by all chains and never written."""

    lists: TopLists  # distinct lists and who gave them
    n_items: int
    n_stages: int  # length of the longest list, at most n_items - 1
    tables: StageTables  # the integrals over the decays
    prior: PartitionPrior
    bins: SkipBins
    opening: Opening
    # The prior of the decays, or where chains start, and what is learned of it, by name.
    strength: float
    rates: np.ndarray
    learned: Mapping[str, LogNormal]
    # Makes room for rows of scores; its type says what scores a list in a cluster: the finite-n integral.
    rows: Callable[[], Any] = row_scratch

    @property
    def n_agents(self) -> int:
        return len(self.lists.list_of)

    @cached_property
    def discount(self) -> float:
        """Discount of a Pitman–Yor process, 0 for a Dirichlet process, minus the pseudo-count else."""
        return self.prior.tables(1).discount


def list_model(
    orders: np.ndarray,
    lengths: np.ndarray,
    counts: np.ndarray,
    n_items: int,
    rates: Callable[[int], np.ndarray],
    strength: float,
    prior: PartitionPrior,
    learned: Mapping[str, LogNormal] | None = None,
    n_agents: int | None = None,
    n_stages: int | None = None,
) -> ListModel:
    """Prepare data and prior; ``rates(n)`` gives r_j of the first n stages.

    ``learned`` are the priors of what chains learn of the prior of the decays, which they start from. Of
    lists that are a part of more, ``n_agents`` is how many there are in all, and ``n_stages`` the length of
    the longest.
    """
    lists = top_lists(orders, lengths, counts, n_items)
    n_stages = int(np.diff(lists.starts).max()) if n_stages is None else n_stages
    n_agents = len(lists.list_of) if n_agents is None else n_agents
    known, learned = rates(n_stages), learned or {}
    least_rate = learned["prior_rate"].low if "prior_rate" in learned else known.min(initial=np.inf)
    least = least_rate * (learned["prior_strength"].low if "prior_strength" in learned else strength)
    tables = stage_tables(n_items, n_stages, known, strength, n_agents, least)
    bins = skip_bins(n_items, exact=False)
    opening = opening_of(tables, bins, n_items)
    return ListModel(lists, n_items, n_stages, tables, prior, bins, opening, strength, known, learned)


def with_prior(tables: StageTables, strength: float, rates: np.ndarray) -> StageTables:
    """Return the same tables with another prior of the decays."""
    prior_a = strength * rates
    integrals = np.empty((1, len(rates)))
    log_integrals(tables, prior_a[None], np.full(integrals.shape, strength), integrals)
    return tables._replace(prior_a=prior_a, prior_c=float(strength), prior_log_integral=integrals[0])


def opening_of(tables: StageTables, bins: SkipBins, n_items: int) -> Opening:
    """Return rows of a cluster that nobody is in."""
    chances = np.exp(log_prior_chances(tables, n_items))
    # Relative to choosing at random, as in all rows.
    joining = chances[:, np.minimum(bins.middle, n_items - 1)] * (tables.skips[:, None] + 1)
    return new_cluster(tables, np.maximum(joining, LEAST), chances)


def empty_slots(capacity: int, n_items: int, n_stages: int, bins: SkipBins) -> ListClusters:
    """Return slots for clusters, all free; ``capacity`` is a multiple of four."""
    stages = (capacity, n_stages)
    places = np.repeat(np.arange(n_items, dtype=np.int16)[:, None], capacity, axis=1)
    few = n_stages * n_items**2 <= MOST_PAIRS
    return ListClusters(
        sizes=np.zeros(capacity, dtype=np.int64),
        weights=np.zeros(capacity),
        places=places,
        words=places.view(np.uint64),
        totals=np.zeros(stages),
        counts=np.zeros(stages),
        log_integrals=np.zeros(stages),
        joining=np.ones((*stages, len(bins.middle))),
        own=np.ones((*stages, bins.n_exact)),
        theta=np.zeros(stages),
        settled=np.zeros(capacity, dtype=np.bool_),
        pairs=np.zeros((*stages, n_items, n_items) if few else (capacity, 0, 0, 0)),
    )


def new_cluster(tables: StageTables, joining: np.ndarray, chances: np.ndarray) -> Opening:
    """Return rows of a cluster that nobody is in, and the distribution of its first list's skips.

    These have ``chances`` (stages, items).
    """
    last = tables.skips[:, None]
    totals = np.cumsum(chances, axis=1)
    within = np.arange(chances.shape[1]) < last
    cumulative = np.where(within, totals / np.take_along_axis(totals, last, axis=1), 1.0)
    return Opening(np.ascontiguousarray(joining), cumulative)


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
        self.strength, self.rates = model.strength, model.rates
        self.tables, self.opening = model.tables, model.opening
        self.labels = np.full(len(model.lists.list_of), -1, dtype=np.int32)
        self.n_clusters = 0
        self.n_moved = 0
        self.clusters = self.make_clusters(roomy(1))
        self._openings = (self.concentration, np.exp(self.prior.opening))

    @property
    def openings(self) -> np.ndarray:
        """Prior weights of opening a cluster beside 0, 1, ... others, at the present concentration."""
        if self._openings[0] != self.concentration:
            self._openings = (self.concentration, np.exp(self.prior.opening))
        return self._openings[1]

    def take_decay_prior(self, strength: float, rates: np.ndarray) -> None:
        """Go on with another prior of the decays."""
        self.strength, self.rates = strength, rates
        self.tables = with_prior(self.model.tables, strength, rates)
        self.opening = opening_of(self.tables, self.model.bins, self.model.n_items)

    def learned(self) -> dict[str, Any]:
        """Return what is learned of the prior of the decays, by name."""
        values = {"prior_strength": self.strength, "prior_rate": self.rates}
        return {name: values[name] for name in self.model.learned}

    def take_learned(self, values: Mapping[str, Any]) -> None:
        """Go on with other values of what is learned; those without a name stay."""
        if values:
            strength = float(values.get("prior_strength", self.strength))
            self.take_decay_prior(strength, np.ascontiguousarray(values.get("prior_rate", self.rates)))

    # Slots.

    def make_clusters(self, capacity: int) -> ListClusters:
        return empty_slots(capacity, self.model.n_items, self.model.n_stages, self.model.bins)

    def make_room(self, capacity: int) -> None:
        """Give the state at least ``capacity`` slots, and keep what is in those it has."""
        if capacity > len(self.clusters.sizes):
            old, self.clusters = self.clusters, self.make_clusters(roomy(capacity))
            for name, source in old._asdict().items():
                getattr(self.clusters, name)[tuple(map(slice, source.shape))] = source

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
            elif name != "words":
                array[: len(used)] = array[used]
        self.clusters.sizes[len(used) :] = 0
        self.clusters.weights[len(used) :] = 0.0

    # Statistics.

    def count_members(self) -> None:
        """Compute sizes and pairs from the labels."""
        sizes = np.bincount(self.labels[self.labels >= 0], minlength=self.n_clusters)
        self.clusters.sizes[:] = 0
        self.clusters.sizes[: self.n_clusters] = sizes
        held = self.clusters.sizes
        self.clusters.weights[:] = np.where(held > 0, held - self.model.discount, 0.0)
        if self.clusters.pairs.size:
            self.clusters.pairs[: self.n_clusters] = 0.0
            count_pairs(self.model.lists, self.labels, self.n_clusters, self.clusters.pairs)

    def set_labels(self, labels: np.ndarray, rng: np.random.Generator) -> None:
        """Put agents into the clusters named by ``labels`` (any integers), and give these plausible centers.

        A center is the best item at every stage given equal decays; items that no list mentions follow.
        """
        self.labels[:] = canonical_labels(labels)
        self.n_clusters = int(self.labels.max()) + 1
        self.make_room(self.n_clusters + 1)
        self.count_members()
        self.update_centers(rng, START)

    def update_centers(
        self, rng: np.random.Generator, n_rounds: int, which: np.ndarray | None = None, redraw: bool = True
    ) -> int:
        """Move centers ``n_rounds`` times and leave sums and decays right; 0 rounds recompute sums only.

        All centers, or those of the clusters ``which``. Decays are drawn given where the centers went, or,
        without ``redraw``, stay those that centers were moved given. Returns how many stagewise proposals
        were accepted.
        """
        model = self.model
        key = draw_key(rng) if n_rounds > 0 else np.zeros(2, dtype=np.uint64)
        taken = np.zeros(self.n_clusters, dtype=np.int64)
        given = (model.rows(), self.source(), model.lists, self.tables, self.opening, self.clusters, key)

        def work(first: int, last: int) -> None:
            update_centers(*given, n_rounds, redraw, first, last, taken)

        if which is None:
            # Threads would take more time than they save, unless clusters or rounds are very many.
            of_pairs = -(-self.clusters.pairs[0].size * max(n_rounds, 1) // PAIRS_WORK)
            over_rows(work, self.n_clusters, of_pairs or self.n * model.n_stages)
        for k in () if which is None else which.tolist():
            work(k, k + 1)
        return int(taken.sum())

    @property
    def form(self) -> ByPair | ByList:
        """A source without clusters, whose type says what compiled code reads."""
        if self.clusters.pairs.size:
            return ByPair(self.clusters.pairs, np.empty(0, dtype=np.int32))
        none = Members(np.empty(0, dtype=np.int32), np.empty(0))
        return ByList(self.model.lists, np.zeros(1, dtype=np.int64), none)

    def source(self) -> ByPair | ByList:
        """What centers depend on, for compiled code: counts of pairs, or lists."""
        lists = self.model.lists
        if isinstance(self.form, ByList):
            return ByList(lists, *collect_members(lists, self.labels, self.n_clusters))
        alone = np.full(self.n_clusters, -1, dtype=np.int32)
        agents = np.flatnonzero(self.clusters.sizes[self.labels] == 1)
        alone[self.labels[agents]] = lists.list_of[agents]
        return ByPair(self.clusters.pairs, alone)

    def refresh(self) -> None:
        """Recompute all statistics from labels and centers."""
        self.count_members()
        self.update_centers(np.random.default_rng(0), 0)

    # What is reported.

    @property
    def sizes_in_use(self) -> np.ndarray:
        return self.clusters.sizes[: self.n_clusters]

    def log_prior(self) -> float:
        """Log prior of the partition, of the centers, and of what is learned beside them."""
        value = super().log_prior() - self.n_clusters * math.lgamma(self.model.n_items + 1.0)
        for name, drawn in self.learned().items():
            value += float(self.model.learned[name].log_density(np.log(drawn)).sum())
        return value

    def record(self) -> dict[str, float | int | np.ndarray]:
        """One draw."""
        return {**super().record(), **self.learned()}

    def cluster_log_likelihoods(self) -> np.ndarray:
        """Return ln p(lists | center) of every cluster, decays integrated out."""
        tables, used = self.tables, slice(None, self.n_clusters)
        totals, counts = self.clusters.totals[used], self.clusters.counts[used]
        values = np.empty(totals.shape)
        log_integrals(tables, tables.prior_a + totals, tables.prior_c + counts, values)
        return np.asarray((values - tables.prior_log_integral).sum(axis=1, where=counts > 0.0))

    def log_likelihood(self) -> float:
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
            **{name: np.array(value) for name, value in self.learned().items()},
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        labels, places = np.asarray(arrays["labels"]), np.asarray(arrays["places"])
        if labels.shape != (self.n,) or places.ndim != 2:
            raise DataError(f"the checkpoint is of {labels.shape} agents, these are {self.n}")
        # Compiled code does not check: a damaged checkpoint must not get there.
        if not np.array_equal(np.unique(labels), np.arange(places.shape[1])):
            raise DataError(MISFIT)
        self.labels[:] = labels
        self._restore_clusters(arrays)

    def _restore_clusters(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back all but the labels."""
        places, theta = np.asarray(arrays["places"]), np.asarray(arrays["theta"])
        n_clusters, n_items = places.shape[1], self.model.n_items
        proper = np.array_equal(np.sort(places, axis=0), np.tile(np.arange(n_items)[:, None], n_clusters))
        if not proper or theta.shape != (n_clusters, self.model.n_stages):
            raise DataError(MISFIT)
        self.n_clusters = n_clusters
        self.clusters = self.make_clusters(roomy(n_clusters + 1))
        self.clusters.places[:, :n_clusters] = places
        self.clusters.theta[:n_clusters] = theta
        self.concentration = float(arrays["concentration"])
        learned = {}
        for name, prior in self.model.learned.items():
            value = np.asarray(arrays[name], dtype=np.float64)
            if value.shape != np.shape(self.learned()[name]) or not np.array_equal(
                value, prior.within(value)
            ):
                raise DataError(f"the checkpoint's {name} is not one that can be learned")
            learned[name] = value
        self.take_learned(learned)
        self.refresh()
