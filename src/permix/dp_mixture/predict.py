"""Posterior predictive of a mixture: what draws of partitions say about new data.

Given a partition, a new datum joins cluster k with its prior weight and then has that cluster's
predictive; the posterior predictive is the average over draws. Statistics are rebuilt from labels,
so only labels and the concentration need to be kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from permix.families import Family
from permix.families.contract_jit import draw_many, score_new_data, seat_all
from permix.moves.state import MixtureState, learned_concentration, score_empty
from permix.partitions.priors import DirichletProcess, PartitionPrior

FloatArray = npt.NDArray[np.float64]


class MixturePredictive:
    """Scores and draws new data under partitions of the data a mixture was fitted to.

    Parameters
    ----------
    family, prior
        As fitted; ``family`` is resolved.
    data
        The encoded data.
    n : int
        How many there are.
    """

    def __init__(self, family: Family, prior: PartitionPrior, data: Any, n: int) -> None:
        self.family = family
        self.prior = prior
        # Prior predictives of the fitted data are of no use here.
        self._state = MixtureState(family, data, n, prior, empty_scores=np.empty(0))

    def condition(self, labels: npt.NDArray[Any], concentration: float) -> FloatArray:
        """Take a partition; returns log weights of its clusters and, last, of a new one, normalised."""
        state = self._state
        state.set_labels(labels)
        state.make_room(state.n_clusters + 1)
        prior = self.prior
        if learned_concentration(prior) is not None:
            prior = DirichletProcess(concentration)
        return prior.sequential_log_weights(state.sizes_in_use)

    def log_joint(self, data: Any, m: int, empty: FloatArray, log_weights: FloatArray) -> FloatArray:
        """Return ln(weight × density) of new data under each cluster and, last, a new one: (m, K + 1)."""
        n_clusters = self._state.n_clusters
        scores = np.empty((m, n_clusters + 1))
        score_new_data(self._state.stats, data, m, n_clusters, scores)
        scores[:, n_clusters] = empty
        scores += log_weights
        return scores

    def log_density(
        self, data: Any, m: int, label_draws: npt.NDArray[Any], concentrations: FloatArray
    ) -> FloatArray:
        """Return ln of the predictive density of each new datum, averaged over the draws."""
        empty = score_empty(self.family, data, m)
        total = np.full(m, -np.inf)
        for labels, concentration in zip(label_draws, concentrations, strict=True):
            log_weights = self.condition(labels, concentration)
            joint = self.log_joint(data, m, empty, log_weights)
            total = np.logaddexp(total, np.logaddexp.reduce(joint, axis=1))
        return total - np.log(len(label_draws))

    def sample(
        self,
        rng: np.random.Generator,
        size: int,
        label_draws: npt.NDArray[Any],
        concentrations: FloatArray,
    ) -> FloatArray:
        """Draw new data: a posterior draw, a cluster of it, a datum of that, for each row."""
        rows = np.empty((size, self.family.n_features))
        which = rng.integers(len(label_draws), size=size)
        for index in np.unique(which):
            chosen = np.flatnonzero(which == index)
            weights = np.exp(self.condition(label_draws[index], concentrations[index]))
            clusters = rng.choice(len(weights), size=len(chosen), p=weights / weights.sum())
            state = self._state
            # One slot past the last cluster, emptied: the cluster nobody has opened yet.
            seat_all(state.stats, state.data, state.labels, state.n_clusters + 1)
            drawn = np.empty((len(chosen), rows.shape[1]))
            draw_many(rng, state.stats, clusters, drawn)
            rows[chosen] = drawn
        return rows

    def cluster_parameters(self, labels: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Posterior means of the parameters of each cluster, in the order of the labels 0 ... K-1."""
        state = self._state
        state.set_labels(labels)
        parameters = self.family.parameters(state.stats, state.n_clusters)
        # set_labels renumbers by first appearance: put the rows back in the caller's order.
        order = np.empty(state.n_clusters, dtype=np.int64)
        order[np.asarray(labels)] = state.labels
        return {name: values[order] for name, values in parameters.items()}
