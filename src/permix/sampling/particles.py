"""Weighted draws that follow a posterior as data come in: how many they are worth, and which go on.

Sequential Monte Carlo goes from one distribution to the next by weights, draws particles anew in proportion
to them, and lets moves that leave the next distribution invariant act on each. The product of mean weights
estimates the ratio of the normalizing constants without bias: P(new data | data before), where data come in.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def normalized(log_weights: Array) -> Array:
    """Return weights that sum to one; refused where all are zero."""
    largest = float(log_weights.max())
    if not np.isfinite(largest):
        raise ValueError("all particles have weight zero")
    weights = np.exp(log_weights - largest)
    return np.asarray(weights / weights.sum())


def effective_size(log_weights: Array) -> float:
    """Return how many equal weights these are worth, (Σ w)² / Σ w²; 0 where all are zero."""
    if not np.isfinite(log_weights.max()):
        return 0.0
    return float(1.0 / (normalized(log_weights) ** 2).sum())


def effective_size_of_step(log_weights: Array, log_increments: Array) -> float:
    """Return what all particles would be worth after this step alone, N (Σ w u)² / Σ w u².

    ``log_increments`` (particles,) are ln u. This is the conditional effective size of Zhou, Johansen &
    Aston (2016): how far the next distribution is from the present one, whatever weights have become before.
    """
    n, share = len(log_weights), normalized(log_weights)
    largest = float(log_increments.max())
    if not np.isfinite(largest):
        return 0.0
    u = np.exp(log_increments - largest)
    return float(n * (share @ u) ** 2 / max(float(share @ u**2), 1e-300))


def step_size(log_weights: Array, log_increments: Array, least: float) -> int:
    """Return how many columns to take at once, so that the step leaves particles worth ``least`` of all.

    ``log_increments`` (particles, columns) are those of single steps, which are added up in their order. At
    least one is taken.
    """
    upto = np.cumsum(log_increments, axis=1)
    for taken in range(1, upto.shape[1] + 1):
        if effective_size_of_step(log_weights, upto[:, taken - 1]) < least * len(log_weights):
            return max(taken - 1, 1)
    return int(upto.shape[1])


def log_mean_increment(log_weights: Array, log_increments: Array) -> float:
    """Return ln of the weighted mean of exp(increments): ln P(data of a step | those before)."""
    share = normalized(log_weights)
    largest = float(log_increments.max())
    if not np.isfinite(largest):
        return -np.inf
    return largest + float(np.log(share @ np.exp(log_increments - largest)))


def resampled(rng: np.random.Generator, log_weights: Array) -> npt.NDArray[np.int64]:
    """Return which particles go on, systematically: each as often as its weight says, up to less than one.

    Particles that go on stay in order.
    """
    weights = normalized(log_weights)
    n = len(weights)
    ends = np.cumsum(weights)
    points = (np.arange(n) + rng.random()) / n * ends[-1]
    return np.minimum(np.searchsorted(ends, points, side="right"), n - 1).astype(np.int64)
