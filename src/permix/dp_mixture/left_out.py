"""How probable fitted rows are given all others, under each draw; and what chains that disagree count for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from permix.families.contract_jit import score_new_data
from permix.moves.state import score_empty

if TYPE_CHECKING:
    from permix.dp_mixture.predict import Draw, MixturePredictive

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Chains that disagree are weighed by so many rows, and by draws that go through so many scores.
STACKED_ROWS, STACKED_SCORES = 2000, 20_000_000
# ... but by at least so many draws, and at most.
FEWEST_STACKED, MOST_STACKED = 20, 100


def log_left_out(predictive: MixturePredictive, draws: Sequence[Draw], rows: IntArray) -> FloatArray:
    """Return ln p(row | all other rows, partition of the others) under each draw, (draw, row).

    The row joins cluster k with the prior weight of k without it, or opens one; a cluster that it was alone
    in is gone.
    """
    from permix.dp_mixture.left_out_jit import score_without

    state, out = predictive.state, np.empty((len(draws), len(rows)))
    for found, draw in zip(out, draws, strict=True):
        predictive.condition(*draw)
        k, labels = state.n_clusters, state.labels[rows].astype(np.int64)
        scores = np.empty((state.n, k + 1))
        stats, data = state.scoring, state.observed
        score_new_data(stats, data, state.n, k, scores)
        joint = scores[rows]
        joint[:, k] = score_empty(state.family, data, state.n)[rows]
        own = np.empty(len(rows))
        score_without(stats, data, state.labels, state.sizes, rows, own)
        joint[np.arange(len(rows)), labels] = own
        for cluster in np.unique(labels):
            members = labels == cluster
            joint[members] += _weights_without(predictive, draw.concentration, int(cluster))
        found[:] = np.logaddexp.reduce(joint, axis=1)
    return out


def _weights_without(predictive: MixturePredictive, concentration: float, cluster: int) -> FloatArray:
    """Log prior weights of the clusters, and last of a new one, once a cluster has lost a member."""
    sizes = predictive.state.sizes_in_use.copy()
    sizes[cluster] -= 1
    left = np.flatnonzero(sizes)
    weights = np.full(len(sizes) + 1, -np.inf)
    weights[np.append(left, len(sizes))] = predictive.prior_at(concentration).sequential_log_weights(
        sizes[left]
    )
    return weights


def stacked_draws(n: int, n_clusters: float) -> int:
    """Return how many draws weigh chains that disagree."""
    affordable = int(STACKED_SCORES / (n * (n_clusters + 1.0)))
    return min(max(affordable, FEWEST_STACKED), MOST_STACKED)
