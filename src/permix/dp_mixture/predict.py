"""Posterior predictive of a mixture: what draws of partitions say about new data.

Given a partition, a new datum joins cluster k with its prior weight and then has that cluster's
predictive; the posterior predictive is the average over draws. Statistics are rebuilt from labels,
so only labels, the concentration and learned hyper-parameters need to be kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.dp_mixture.fit import MixtureFit
from permix.dp_mixture.left_out import STACKED_ROWS, log_left_out, stacked_draws
from permix.errors import DataError
from permix.families.contract_jit import draw_many, score_new_data, seat_all
from permix.families.learning import learned_in
from permix.moves.state import MixtureState, learned_concentration, score_empty
from permix.partitions.priors import DirichletProcess, PartitionPrior
from permix.posterior.estimated import spaced
from permix.posterior.stacking import draws_of_chains, need_stacking, tried_draws, weights_of_chains
from permix.runtime.seeds import generator

FloatArray = npt.NDArray[np.float64]
# The predictive density is averaged over at most this many draws, evenly spaced over all chains.
MAX_PREDICTIVE_DRAWS = 200
# Its Monte Carlo error is taken from the means of so many batches of successive draws.
N_BATCHES = 20


class MixturePredictive:
    """Scores new data under partitions of the data of a fit; it has a state that threads do not share."""

    def __init__(self, fit: MixtureFit) -> None:
        self.prior = fit.prior
        # Prior predictives of the fitted data are of no use here.
        self.state = MixtureState(fit.family, fit.data, fit.n, fit.prior, empty_scores=np.empty(0))
        if self.state.missing is not None:
            self.state.fill_gaps(fit.family.typical_cells(fit.draws.arrays["missing_cells"]))

    def condition(
        self,
        labels: npt.NDArray[Any],
        concentration: float,
        learned: Mapping[str, Any] | None = None,
        cells: FloatArray | None = None,
    ) -> FloatArray:
        """Take a partition and what was learned and filled in in the same draw.

        Returns log weights of its clusters and, last, of a new one, normalized.
        """
        if learned:
            self.state.take_family(self.state.family.with_values(learned))
        if cells is not None:
            self.state.fill_gaps(cells)
        self.state.set_labels(labels)
        self.state.make_room(self.state.n_clusters + 1)
        return self.prior_at(concentration).sequential_log_weights(self.state.sizes_in_use)

    def prior_at(self, concentration: float) -> PartitionPrior:
        """Return the prior at the concentration of a draw, where that is learned."""
        unknown = learned_concentration(self.prior) is not None
        return DirichletProcess(concentration) if unknown else self.prior

    def log_joint(self, data: Any, m: int, empty: FloatArray, log_weights: FloatArray) -> FloatArray:
        """Return ln(weight × density) of new data under each cluster and, last, a new one: (m, K + 1)."""
        n_clusters = self.state.n_clusters
        scores = np.empty((m, n_clusters + 1))
        stats = self.state.family.scoring(self.state.stats, data, data)
        score_new_data(stats, data, m, n_clusters, scores)
        scores[:, n_clusters] = empty
        scores += log_weights
        return scores


class Membership(NamedTuple):
    """Where new data belong, given the point estimate."""

    known: FloatArray  # (m, K) probability of each group
    novelty: FloatArray  # (m,) probability that it is none of these: what is left
    group: npt.NDArray[np.int64]  # (m,) the most probable of them, however improbable all are


def membership_of(fit: MixtureFit, data: Any, m: int) -> Membership:
    """Return where new data belong under the point estimate."""
    predictive = MixturePredictive(fit)
    cells = None if fit.fillings is None else fit.family.typical_cells(fit.fillings[None])
    concentration = float(np.mean(fit.draws.arrays.get("concentration", 0.0)))
    log_weights = predictive.condition(fit.labels, concentration, cells=cells)
    joint = predictive.log_joint(data, m, score_empty(fit.family, data, m), log_weights)
    impossible = np.flatnonzero(~np.isfinite(joint.max(axis=1, initial=-np.inf)))
    if impossible.size:
        raise DataError(f"row {impossible[0] + 1} has probability zero under every group: it is too far away")
    # condition() numbers clusters by first appearance.
    first = np.unique(fit.labels, return_index=True)[1]
    known = joint[:, np.argsort(np.argsort(first))]
    total = np.logaddexp.reduce(joint, axis=1)
    shares = np.exp(known - total[:, None]), np.exp(joint[:, -1] - total)
    return Membership(*shares, known.argmax(axis=1))


def log_density(fit: MixtureFit, data: Any, m: int) -> tuple[FloatArray, FloatArray]:
    """Return ln of the posterior predictive density of new data, averaged over draws, and its error.

    The error is that of the mean of batches of successive draws, carried over to the logarithm.
    """
    predictive, draws = MixturePredictive(fit), spaced_draws(fit)
    n_batches = min(N_BATCHES, len(draws))
    batches = np.full((n_batches, m), -np.inf)
    batch_of = np.arange(len(draws)) * n_batches // len(draws)
    empty = score_empty(fit.family, data, m)
    for batch, draw in zip(batch_of, draws, strict=True):
        log_weights = predictive.condition(*draw)
        if draw.learned:
            empty = score_empty(predictive.state.family, data, m)
        joint = predictive.log_joint(data, m, empty, log_weights)
        batches[batch] = np.logaddexp(batches[batch], np.logaddexp.reduce(joint, axis=1))
    total = np.logaddexp.reduce(batches, axis=0) - np.log(len(draws))
    errors = np.zeros(m)
    if n_batches > 1:
        possible = np.isfinite(total)
        relative = np.exp(batches[:, possible] - np.log(np.bincount(batch_of))[:, None] - total[possible])
        errors[possible] = relative.std(axis=0, ddof=1) / np.sqrt(n_batches)
    return total, errors


def sample_rows(fit: MixtureFit, size: int, random_state: Any) -> npt.NDArray[Any]:
    """Draw new data in the user's terms: a posterior draw, a cluster of it, a datum of that, for each row."""
    if size < 1:
        raise DataError(f"size must be at least 1, got {size}")
    rng, predictive = generator(random_state), MixturePredictive(fit)
    draws = spaced_draws(fit)
    rows = np.empty((size, fit.family.n_features))
    which = rng.integers(len(draws), size=size)
    for index in np.unique(which):
        chosen = np.flatnonzero(which == index)
        rows[chosen] = draw_rows(predictive, draws[index], len(chosen), rng)
    return fit.family.decode(rows)


class Draw(NamedTuple):
    """What a predictive is conditioned on."""

    labels: npt.NDArray[Any]
    concentration: float
    learned: dict[str, Any]  # hyper-parameters of the family
    cells: FloatArray | None = None  # what is missing, where that is filled in


def draw_rows(predictive: MixturePredictive, draw: Draw, size: int, rng: np.random.Generator) -> FloatArray:
    """Draw new data, as the family encodes them, given the partition of one draw."""
    weights = np.exp(predictive.condition(*draw))
    clusters = rng.choice(len(weights), size=size, p=weights / weights.sum())
    state = predictive.state
    # One slot past the last cluster, emptied: the cluster nobody has opened yet.
    seat_all(state.stats, state.data, state.labels, state.n_clusters + 1)
    drawn = np.empty((size, state.family.n_features))
    draw_many(rng, state.stats, clusters, drawn)
    return drawn


def spaced_draws(fit: MixtureFit) -> list[Draw]:
    """Evenly spaced draws, few enough to average over, as many of each chain as its weight says."""
    n_chains, n_draws = fit.draws.arrays["labels"].shape[:2]
    weights = chain_weights(fit)
    if weights is None:
        return draws_at(fit, spaced(n_chains * n_draws, MAX_PREDICTIVE_DRAWS))
    return draws_at(fit, draws_of_chains(weights, n_draws, MAX_PREDICTIVE_DRAWS))


def draws_at(fit: MixtureFit, places: npt.NDArray[np.int64]) -> list[Draw]:
    """Return draws by their places, chains one after another."""
    arrays = fit.draws.arrays
    n_draws = arrays["labels"].shape[1]
    learned = learned_in(fit.family, arrays)
    alpha = arrays.get("concentration", np.zeros(arrays["labels"].shape[:2]))
    cells = arrays.get("missing_cells")
    return [
        Draw(
            arrays["labels"][at],
            float(alpha[at]),
            {name: _plain(array[at]) for name, array in learned.items()},
            None if cells is None else cells[at],
        )
        for at in (divmod(place, n_draws) for place in places.tolist())
    ]


def chain_weights(fit: MixtureFit) -> FloatArray | None:
    """How much chains that disagree count in predictions; None where all count alike.

    See :mod:`permix.posterior.stacking`.
    """
    if fit.n < 2 or not need_stacking(fit.draws):
        return None
    n_chains, n_draws = fit.draws.arrays["labels"].shape[:2]
    most = stacked_draws(fit.n, float(fit.draws.arrays["n_groups"].mean()))
    tried = tried_draws(n_chains, n_draws, most)
    rows = spaced(fit.n, STACKED_ROWS)
    log_densities = log_left_out(MixturePredictive(fit), draws_at(fit, tried), rows)
    return weights_of_chains(log_densities, tried // n_draws)


def _plain(value: Any) -> Any:
    return value if np.ndim(value) else float(value)
