"""The state of a mixture sampler: a partition of the data, its statistics, and the concentration."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from permix.errors import DataError
from permix.families import Family
from permix.families.contract_jit import score_new_data, seat_all, total_log_marginal
from permix.families.learning import Learning
from permix.moves.gibbs_jit import gibbs_sweep
from permix.moves.permutation_jit import adopt_segments
from permix.partitions.labels import canonical_labels
from permix.partitions.priors import DirichletProcess, Gamma, PartitionPrior, PriorTables

# Slots are 8 × an odd number: columns of cluster-last arrays then spread over all sets of the cache.
FIRST_CAPACITY = 24


class PartitionState(abc.ABC):
    """What states of all mixtures have in common: a partition, its prior, and what is reported of them."""

    prior_spec: PartitionPrior
    concentration: float
    labels: np.ndarray
    n: int
    n_clusters: int
    n_moved: int

    @property
    def prior(self) -> PriorTables:
        """The prior as moves read it, at the present concentration."""
        learned = learned_concentration(self.prior_spec) is not None
        return (DirichletProcess(self.concentration) if learned else self.prior_spec).tables(self.n)

    @property
    @abc.abstractmethod
    def sizes_in_use(self) -> np.ndarray:
        """Members of each cluster."""

    @abc.abstractmethod
    def log_likelihood(self) -> float:
        """Log likelihood of the data given the partition."""

    def log_prior(self) -> float:
        """Log prior of the partition, and of the concentration where that is learned."""
        value = self.prior.log_prob(self.sizes_in_use)
        gamma = learned_concentration(self.prior_spec)
        if gamma is not None:
            value += log_gamma_density(gamma, self.concentration)
        return value

    def log_joint(self) -> float:
        """Log of prior × marginal likelihood, what a draw is weighed by."""
        return self.log_prior() + self.log_likelihood()

    def record(self) -> dict[str, float | int | np.ndarray]:
        """One draw."""
        largest = float(self.sizes_in_use.max()) if self.n_clusters else 0.0
        log_likelihood = self.log_likelihood()
        draw: dict[str, float | int | np.ndarray] = {
            "labels": canonical_labels(self.labels),
            "n_groups": self.n_clusters,
            "largest_group": largest / max(self.n, 1),
            "log_likelihood": log_likelihood,
            "log_joint": log_likelihood + self.log_prior(),
        }
        if learned_concentration(self.prior_spec) is not None:
            draw["concentration"] = self.concentration
        return draw

    def progress(self) -> dict[str, float]:
        """Live numbers."""
        numbers = {"groups": float(self.n_clusters), "log joint": self.log_joint()}
        return {**numbers, "moved": float(self.n_moved)}


class MixtureState(PartitionState):
    """A partition of n data, which ``family.encode`` returned and nobody writes, under a partition prior.

    Where the family fills gaps in, ``data`` are a copy with the present draw of what is missing, and
    ``observed`` what was given; elsewhere these are the same.

    A Dirichlet process whose concentration is a ``Gamma`` starts at that prior's mean. ``empty_scores`` are
    ln p(x_i) under an empty cluster, where the caller has them already.

    ``labels[i]`` is the cluster of datum i, 0 ... n_clusters - 1 without gaps, or -1 before it is seated.
    ``n_moved`` is how many data the last sweep moved, for display only. The first ``n_clusters`` slots of
    ``sizes`` and ``stats`` are in use.
    """

    def __init__(
        self,
        family: Family,
        data: Any,
        n: int,
        prior: PartitionPrior,
        empty_scores: np.ndarray | None = None,
        learning: Learning | None = None,
    ) -> None:
        self.family = family
        self.learning = learning
        self.family_version = 0  # changes with the family: what moves keep may be of an earlier one
        self.observed, self.data = data, family.completed(data)
        self.missing = family.filled_cells(data)
        self.n = n
        self.prior_spec = prior
        self.concentration = first_concentration(prior)
        self.labels = np.full(n, -1, dtype=np.int32)
        self.n_clusters = 0
        self.n_moved = 0
        with_gaps = np.zeros(n, np.bool_) if self.missing is None else family.rows_filled(self.missing, data)
        self._order, self.rows_with_gaps = np.flatnonzero(~with_gaps), np.flatnonzero(with_gaps)
        self._allocate(FIRST_CAPACITY)
        self.empty_scores = score_empty(family, data, n) if empty_scores is None else empty_scores

    def _allocate(self, capacity: int) -> None:
        self.capacity = capacity
        self.stats = self.family.statistics(capacity)
        self.sizes = np.zeros(capacity, dtype=np.int64)
        self.scores = np.zeros(capacity + 1)

    def take_family(self, family: Family) -> None:
        """Take other hyper-parameters, with no datum seated."""
        self.family = family
        self.family_version += 1
        self._allocate(self.capacity)

    def adopt_family(self, family: Family) -> None:
        """Take other hyper-parameters, for the same data in the same clusters."""
        self.take_family(family)
        self.refresh()
        self.empty_scores = score_empty(family, self.observed, self.n)

    def fill_gaps(self, cells: np.ndarray) -> None:
        """Take other values of what is missing; the caller brings statistics up to date."""
        assert self.missing is not None
        self.family.put_cells(self.data, self.missing, cells)

    @property
    def scoring(self) -> Any:
        """The statistics as ones that score ``observed`` data by what was observed of them."""
        return (
            self.stats if self.missing is None else self.family.scoring(self.stats, self.observed, self.data)
        )

    def log_prior(self) -> float:
        """Log prior of the partition, and of what is learned beside it."""
        return super().log_prior() + (self.learning.log_prior(self.family) if self.learning else 0.0)

    def record(self) -> dict[str, float | int | np.ndarray]:
        """One draw."""
        return {**super().record(), **self._learned(), **self._filled()}

    def empty_clusters(self, n_clusters: int) -> Any:
        """Return statistics of empty clusters, for moves that try things out."""
        return empty_statistics(self.family, self.data, n_clusters)

    def require_seated(self, move: str) -> None:
        """Refuse to go on where data are in no cluster; compiled code does not check."""
        if int(self.sizes_in_use.sum()) != self.n:
            raise DataError(f"{move} needs every datum in a group: make a Gibbs sweep first")

    def sweep(self, rng: np.random.Generator, order: np.ndarray | None = None) -> int:
        """One collapsed Gibbs visit to every datum, seated or not; returns how many were moved.

        Without an ``order``, those whose gaps are filled in are left out: see
        :class:`permix.moves.MissingCells`.
        """
        filling = order is not None and self.missing is not None
        order = self._order if order is None else order
        visit: Any = gibbs_sweep
        if filling:  # what is not asked for is not compiled
            from permix.moves.missing_cells_jit import sweep_gaps as visit
        prior = self.prior
        weights = (prior.joining, prior.opening)
        position = n_moved = 0
        while True:
            data = (self.scoring, self.observed) if filling else (self.stats, self.data)
            clusters = (self.labels, self.sizes, self.scores, order, position, self.n_clusters)
            position, self.n_clusters, moved = visit(rng, *weights, *data, self.empty_scores, *clusters)
            n_moved += moved
            if position == len(order):
                return n_moved
            if position < 0:
                raise DataError(
                    f"row {-position} has probability zero under every group: its values are too far from"
                    " all others for the scales of this family. Check the units, or widen the scales."
                )
            self.make_room(self.capacity + 1)

    def refill(self, rng: np.random.Generator) -> None:
        """Draw what is missing anew, every row in its cluster."""
        from permix.moves.missing_cells_jit import refill

        refill(rng, self.scoring, self.observed, self.labels, self.rows_with_gaps)

    def make_room(self, capacity: int) -> None:
        """Give the state at least ``capacity`` slots."""
        if capacity > self.capacity:
            self._allocate(roomy(capacity))
            self.refresh()

    def set_labels(self, labels: np.ndarray) -> None:
        """Put the data into the clusters named by ``labels`` (any integers)."""
        self.labels[:] = canonical_labels(labels)
        self.n_clusters = int(self.labels.max()) + 1 if self.n else 0
        if self.n_clusters > self.capacity:
            self._allocate(roomy(self.n_clusters))
        self.refresh()

    def adopt_segments(self, order: np.ndarray, bounds: np.ndarray, n_segments: int) -> int:
        """Make segments of an ordering the clusters; returns how many data are in clusters that are new.

        ``bounds`` holds where the segments end, last first.
        """
        self.make_room(n_segments)
        n_moved: int = adopt_segments(
            self.stats, self.data, order, bounds, n_segments, self.labels, self.sizes, self.n_clusters
        )
        self.n_clusters = n_segments
        return n_moved

    def refresh(self) -> None:
        """Recompute all cached statistics from the labels."""
        seat_all(self.stats, self.data, self.labels, self.n_clusters)
        self.sizes[:] = np.bincount(self.labels[self.labels >= 0], minlength=self.capacity)

    @property
    def sizes_in_use(self) -> np.ndarray:
        return self.sizes[: self.n_clusters]

    def log_likelihood(self) -> float:
        """Log marginal likelihood of the data given the partition."""
        return float(total_log_marginal(self.stats, self.n_clusters))

    # What a chain asks of a state.

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Everything that cannot be recomputed."""
        return {
            "labels": self.labels.copy(),
            "n_clusters": np.array(self.n_clusters),
            "concentration": np.array(self.concentration),
            "capacity": np.array(self.capacity),
            **self._filled(),
            **{name: np.array(value) for name, value in self._learned().items()},
        }

    def _filled(self) -> dict[str, np.ndarray]:
        return (
            {} if self.missing is None else {"missing_cells": self.family.cells_at(self.data, self.missing)}
        )

    def _learned(self) -> dict[str, Any]:
        return {} if self.learning is None else self.learning.values(self.family)

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back what ``checkpoint`` gave."""
        labels = np.asarray(arrays["labels"])
        n_clusters, capacity = int(arrays["n_clusters"]), int(arrays["capacity"])
        if labels.shape != (self.n,):
            raise DataError(f"the checkpoint is of {labels.shape} data, these are {self.n}")
        # Compiled code does not check: a damaged checkpoint must not get there.
        dense = np.array_equal(np.unique(labels), np.arange(n_clusters))
        if not dense or not n_clusters <= capacity <= roomy(self.n + 1):
            raise DataError("the checkpoint's labels, number of groups and capacity do not fit together")
        concentration = float(arrays["concentration"])
        if not 0.0 <= concentration < np.inf:
            raise DataError(f"the checkpoint's concentration is {concentration}")
        self.labels[:] = labels
        self.n_clusters, self.concentration = n_clusters, concentration
        if capacity != self.capacity:
            self._allocate(capacity)
        if self.missing is not None:
            cells = np.asarray(arrays["missing_cells"], dtype=np.float64)
            if cells.shape != (int(self.missing.sum()),) or not np.all(np.isfinite(cells)):
                raise DataError("the checkpoint's missing cells are not those of these data")
            self.fill_gaps(cells)
        learned = {}
        for name, present in self._learned().items():
            value = np.asarray(arrays[name], dtype=np.float64)
            if value.shape != np.shape(present) or not np.all(np.isfinite(value) & (value > 0)):
                raise DataError(f"the checkpoint's {name} is not what this family has")
            learned[name] = value if value.ndim else float(value)
        if learned:
            self.adopt_family(self.family.with_values(learned))
        else:
            self.refresh()


def score_empty(family: Family, data: Any, n: int) -> np.ndarray:
    """Return ln p(x_i) under an empty cluster for every datum."""
    scores = np.empty((n, 1))
    score_new_data(family.scoring(empty_statistics(family, data, 1), data, data), data, n, 1, scores)
    return scores[:, 0]


def empty_statistics(family: Family, data: Any, n_clusters: int) -> Any:
    """Return statistics of empty clusters."""
    stats = family.statistics(n_clusters)
    seat_all(stats, data, np.empty(0, dtype=np.int32), n_clusters)
    return stats


def roomy(capacity: int) -> int:
    """Return the first of 24, 40, 72, 136, ... that is large enough."""
    roomy = FIRST_CAPACITY
    while roomy < capacity:
        roomy = 2 * roomy - 8
    return roomy


def learned_concentration(prior: PartitionPrior) -> Gamma | None:
    """The Gamma prior of the concentration, where it is learned."""
    if isinstance(prior, DirichletProcess) and isinstance(prior.concentration, Gamma):
        return prior.concentration
    return None


def log_gamma_density(gamma: Gamma, x: float) -> float:
    constant = gamma.shape * math.log(gamma.rate) - math.lgamma(gamma.shape)
    return constant + (gamma.shape - 1.0) * math.log(x) - gamma.rate * x


def first_concentration(prior: PartitionPrior) -> float:
    """The concentration a chain starts from; 0 stands for priors that have none."""
    gamma = learned_concentration(prior)
    return float(getattr(prior, "concentration", 0.0)) if gamma is None else gamma.mean
