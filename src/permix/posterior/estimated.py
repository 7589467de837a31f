"""The partition that stands for all draws, as fits of every mixture show it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.partitions.point_estimate import PointEstimate, point_estimate
from permix.sampling import Draws

Array = npt.NDArray[Any]
# The point estimate minimizes the expected loss over at most this many draws.
MAX_ESTIMATE_DRAWS = 1000
# From this many labels on, few searches do: they nearly always agree.
MANY_LABELS, FEW_RUNS = 500_000, 3
# Two groups that have this share of all members of either in common count as the same one.
SAME_GROUP = 0.6
# Groups are looked for in at most so many draws.
MATCHED_DRAWS = 200


class Recurrence(NamedTuple):
    """How well draws find each group of an estimate again.

    ``agreement``: the mean, over draws, of members in common with the most similar group of the draw as a
    share of the members of both. ``n_chains``: in how many chains that share is at least 0.6 in most draws.
    """

    agreement: npt.NDArray[np.float64]
    n_chains: npt.NDArray[np.int64]


class Memberships(NamedTuple):
    """To which groups rows belong, as a fit knows it."""

    labels: Array  # group of each row, or of each agent where ``agents`` says whose row each is
    n_groups: int
    counts: Array | None = None  # how many agents each row stands for; None: one each
    agents: Array | None = None  # row of each agent, where labels are of agents
    draws: Array | None = None  # (draws, rows or agents): groups in draws of the posterior, by any numbers
    probabilities: Array | None = None  # (rows, groups)
    recur: Array | None = None  # (groups,): share of chains, or of other restarts, that find each, if known


class EstimatedPartition:
    """What fits of all mixtures show of their point estimate."""

    estimate: PointEstimate
    draws: Draws

    @property
    def agent_rows(self) -> Array | None:
        """Row of each agent, where a row may stand for several; None where labels are of rows."""
        return None

    def memberships(self) -> Memberships:
        """Return to which groups rows or agents belong."""
        drawn = self.draws.arrays["labels"]
        return Memberships(
            self.labels,
            self.n_clusters,
            agents=self.agent_rows,
            draws=drawn.reshape(-1, drawn.shape[-1]),
            recur=self.recurrence.n_chains / len(drawn),
        )

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped the chains: what was drawn until then is here."""
        return self.draws.interrupted

    @cached_property
    def labels(self) -> npt.NDArray[np.int64]:
        """The point estimate; group 0 is the largest."""
        return by_size(self.estimate.labels)

    @cached_property
    def cluster_sizes(self) -> npt.NDArray[np.int64]:
        """Members of each group."""
        return np.bincount(self.labels)

    @cached_property
    def recurrence(self) -> Recurrence:
        """How well, and in how many chains, draws find each group again."""
        return recurrence_of(self.draws.arrays["labels"], self.labels)

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
    return estimate_of(draws.arrays[quantity], draws.arrays[number], settings)


def estimate_of(draws: Array, numbers: Array, settings: Any) -> PointEstimate:
    """Do as :func:`nearest_partition`, with labels (chain, draw, observation) and numbers of groups given."""
    labels = evenly_spaced(draws, MAX_ESTIMATE_DRAWS)
    return point_estimate(
        labels,
        loss=settings.loss,
        max_clusters=max(1, int(np.median(numbers))),
        n_runs=FEW_RUNS if labels.size > MANY_LABELS else None,
        random_state=0,
        n_jobs=settings.n_jobs,
        progress=settings.progress,
    )


def recurrence_of(draws: Array, labels: Array) -> Recurrence:
    """Compare a partition with draws of labels, (chain, draw, observation)."""
    n_chains, n_draws = draws.shape[:2]
    chosen = np.linspace(0, n_draws - 1, min(n_draws, max(MATCHED_DRAWS // n_chains, 1))).astype(np.int64)
    labels = np.asarray(labels, dtype=np.int64)
    k = int(labels.max()) + 1
    sizes = np.bincount(labels, minlength=k)
    found = np.empty((n_chains, len(chosen), k))
    for chain in range(n_chains):
        for place, draw in enumerate(chosen):
            others = draws[chain, draw].astype(np.int64)
            m = int(others.max()) + 1
            shared = np.bincount(labels * m + others, minlength=k * m).reshape(k, m)
            union = sizes[:, None] + np.bincount(others, minlength=m) - shared
            found[chain, place] = (shared / union).max(axis=1)
    return Recurrence(found.mean(axis=(0, 1)), (np.median(found, axis=1) >= SAME_GROUP).sum(axis=0))


def evenly_spaced(draws: Array, most: int) -> Array:
    """Put chains one after another and keep at most so many draws."""
    joined = draws.reshape(-1, *draws.shape[2:])
    return joined[spaced(len(joined), most)]


def spaced(n: int, most: int) -> npt.NDArray[np.int64]:
    """Return at most so many evenly spaced numbers below n."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def by_size(labels: Array, counted: Array | None = None) -> npt.NDArray[np.int64]:
    """Renumber groups so that 0 is the largest; ties in order of first appearance.

    Of members, those count that are ``counted``; by default all.
    """
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    sizes = np.bincount(group, weights=counted)
    return np.argsort(np.lexsort((first, -sizes)))[group]
