"""Posterior predictive of a mixture: what draws of partitions say about new data.

Given a partition, a new datum joins cluster k with its prior weight and then has that cluster's
predictive; the posterior predictive is the average over draws. Statistics are rebuilt from labels,
so only labels and the concentration need to be kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.dp_mixture.fit import MixtureFit
from permix.errors import DataError
from permix.families import Family
from permix.families.contract_jit import draw_many, score_new_data, seat_all
from permix.moves.state import MixtureState, learned_concentration, score_empty
from permix.partitions.priors import DirichletProcess, PartitionPrior
from permix.posterior.estimated import evenly_spaced
from permix.runtime.seeds import generator

FloatArray = npt.NDArray[np.float64]
# The predictive density is averaged over at most this many draws, evenly spaced over all chains.
MAX_PREDICTIVE_DRAWS = 200
# Its Monte Carlo error is taken from the means of so many batches of successive draws.
N_BATCHES = 20


class MixturePredictive:
    """Scores and draws new data under partitions of the n encoded data a mixture was fitted to."""

    def __init__(self, family: Family, prior: PartitionPrior, data: Any, n: int) -> None:
        self.family = family
        self.prior = prior
        # Prior predictives of the fitted data are of no use here.
        self._state = MixtureState(family, data, n, prior, empty_scores=np.empty(0))

    def condition(self, labels: npt.NDArray[Any], concentration: float) -> FloatArray:
        """Take a partition; returns log weights of its clusters and, last, of a new one, normalized."""
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
    ) -> tuple[FloatArray, FloatArray]:
        """Return ln of the predictive density of each new datum, averaged over the draws, and its error.

        The error is that of the mean of batches of successive draws, carried over to the logarithm.
        """
        empty = score_empty(self.family, data, m)
        n_batches = min(N_BATCHES, len(label_draws))
        batches = np.full((n_batches, m), -np.inf)
        batch_of = np.arange(len(label_draws)) * n_batches // len(label_draws)
        for batch, labels, concentration in zip(batch_of, label_draws, concentrations, strict=True):
            joint = self.log_joint(data, m, empty, self.condition(labels, concentration))
            batches[batch] = np.logaddexp(batches[batch], np.logaddexp.reduce(joint, axis=1))
        total = np.logaddexp.reduce(batches, axis=0) - np.log(len(label_draws))
        if n_batches == 1:
            return total, np.zeros(m)
        sizes = np.bincount(batch_of)
        possible = np.isfinite(total)
        relative = np.exp(batches[:, possible] - np.log(sizes)[:, None] - total[possible])
        errors = np.zeros(m)
        errors[possible] = relative.std(axis=0, ddof=1) / np.sqrt(n_batches)
        return total, errors

    def sample(
        self, rng: np.random.Generator, size: int, label_draws: npt.NDArray[Any], concentrations: FloatArray
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


class Membership(NamedTuple):
    """Where new data belong, given the point estimate."""

    known: FloatArray  # (m, K) probability of each group, given that it is one of these
    novelty: FloatArray  # (m,) probability that it is none of these


def predictive_of(fit: MixtureFit) -> MixturePredictive:
    """Return a fresh scorer of new data; it has a state of its own, so threads do not share it."""
    return MixturePredictive(fit.family, fit.prior, fit.data, fit.n)


def membership_of(fit: MixtureFit, data: Any, m: int) -> Membership:
    """Return where new data belong under the point estimate."""
    predictive = predictive_of(fit)
    concentration = fit.draws.arrays.get("concentration")
    log_weights = predictive.condition(
        fit.labels, float(np.mean(concentration)) if concentration is not None else 0.0
    )
    joint = predictive.log_joint(data, m, score_empty(fit.family, data, m), log_weights)
    impossible = np.flatnonzero(~np.isfinite(joint.max(axis=1, initial=-np.inf)))
    if impossible.size:
        raise DataError(f"row {impossible[0] + 1} has probability zero under every group: it is too far away")
    # condition() numbers clusters by first appearance.
    first = np.unique(fit.labels, return_index=True)[1]
    known = joint[:, np.argsort(np.argsort(first))]
    return Membership(
        np.exp(known - np.logaddexp.reduce(known, axis=1)[:, None]),
        np.exp(joint[:, -1] - np.logaddexp.reduce(joint, axis=1)),
    )


def log_density(fit: MixtureFit, data: Any, m: int) -> tuple[FloatArray, FloatArray]:
    """Return ln of the posterior predictive density of new data, averaged over draws, and its error."""
    return predictive_of(fit).log_density(data, m, *spaced_draws(fit))


def sample_rows(fit: MixtureFit, size: int, random_state: Any) -> npt.NDArray[Any]:
    """Draw new data from the posterior predictive, in the user's terms."""
    if size < 1:
        raise DataError(f"size must be at least 1, got {size}")
    rows = predictive_of(fit).sample(generator(random_state), size, *spaced_draws(fit))
    decoded: npt.NDArray[Any] = fit.family.decode(rows)
    return decoded


def spaced_draws(fit: MixtureFit) -> tuple[npt.NDArray[Any], FloatArray]:
    """Labels and concentrations of evenly spaced draws, few enough to average over."""
    labels = evenly_spaced(fit.draws.arrays["labels"], MAX_PREDICTIVE_DRAWS)
    concentration = fit.draws.arrays.get("concentration")
    if concentration is None:
        return labels, np.zeros(len(labels))
    return labels, evenly_spaced(concentration, MAX_PREDICTIVE_DRAWS)
