"""Draws of a partition as losses are computed from them: each once, with its weight."""

from __future__ import annotations

from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt

from permix.partitions.geometry import FloatArray, loss_scale, loss_table, n_clusters_of
from permix.partitions.geometry_jit import losses_to_draws
from permix.partitions.labels import IntArray, as_draws
from permix.runtime.threads import run_in_threads

Numbers = npt.NDArray[np.int64]

# All draws are compared with all others while that takes no more than this many comparisons of labels
# (a third of a second); beyond, those that are near to a few draws are compared with all.
MOST_COMPARISONS = 3 * 10**8
LEAST_COMPARED = 4


class WeightedDraws:
    """Canonical draws, one in each row, their weights, and the loss to be averaged over them."""

    def __init__(self, labels: IntArray, weights: FloatArray, loss: str) -> None:
        self.labels, self.weights, self.loss = labels, weights, loss
        self.n_draws, self.n = labels.shape
        self.f = loss_table(loss, self.n)
        sizes = [np.bincount(draw) for draw in labels]
        self.n_clusters = np.array([len(each) for each in sizes], np.int64)
        # Added one after another, as compiled code does, so that equal partitions have no loss at all.
        self.sums = np.array([self.f[each].cumsum()[-1:].sum() for each in sizes])

    @classmethod
    def collapsed(cls, draws: npt.ArrayLike, loss: str) -> Self:
        """Distinct draws, sorted, and how often each occurs.

        Sorting makes everything that follows independent of the order of the draws.
        """
        canonical = as_draws(draws)
        order = sorted(range(len(canonical)), key=lambda row: canonical[row].tobytes())
        new = [not np.array_equal(canonical[i], canonical[j]) for i, j in pairwise(order)]
        starts = np.flatnonzero([True, *new])
        times = np.diff(np.append(starts, len(order)))
        return cls(canonical[np.array(order)[starts]], times.astype(np.float64), loss)

    def losses_of(self, labels: IntArray) -> FloatArray:
        """Loss between one canonical partition and each draw."""
        raw = losses_to_draws(labels, n_clusters_of(labels), self.labels, self.n_clusters, self.sums, self.f)
        return np.maximum(raw, 0.0) / loss_scale(self.loss, self.n)

    def expected_loss(self, labels: IntArray) -> float:
        """Weighted mean of the losses of a canonical partition."""
        return float(np.average(self.losses_of(labels), weights=self.weights))

    def evenly_spaced(self, most: int) -> Self:
        """At most so many of the draws, which stand for all; their weights are how often they were met."""
        if most >= self.n_draws:
            return self
        ends = np.cumsum(self.weights)
        met = np.searchsorted(ends, (np.arange(most) + 0.5) / most * ends[-1])
        which, weights = np.unique(met, return_counts=True)
        return type(self)(self.labels[which], weights.astype(np.float64), self.loss)

    def compared(self, capacity: int, n_jobs: int | None) -> tuple[Numbers, FloatArray]:
        """Draws, and the expected loss of each.

        All of them, or, where these are too many to compare each with all, those that are nearest to a few,
        and of those with no more clusters than ``capacity`` as many.
        """
        candidates = np.arange(self.n_draws)
        if self.labels.size * self.n_draws > MOST_COMPARISONS:
            most = max(MOST_COMPARISONS // (2 * self.labels.size), LEAST_COMPARED)
            few = self.evenly_spaced(most)
            losses = np.array(run_in_threads(self.losses_of, few.labels, n_jobs))
            weights = np.where(losses > 0.0, few.weights[:, np.newaxis], 0.0)  # none is compared with itself
            means = (losses * weights).sum(axis=0) / np.maximum(weights.sum(axis=0), 1.0)
            order = np.argsort(means, kind="stable")
            allowed = order[self.n_clusters[order] <= capacity]
            candidates = np.union1d(order[:most], allowed[:most])
        return candidates, np.array(run_in_threads(self.expected_loss, self.labels[candidates], n_jobs))
