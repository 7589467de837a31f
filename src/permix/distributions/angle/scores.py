"""Angle-based models: scores of ranks, their directions, and the von Mises–Fisher normalizer."""

from __future__ import annotations

import math

import numpy as np

from permix.data.labels import Array
from permix.distributions.angle.bessel_jit import sphere_moments
from permix.kernels.random import von_mises_fisher_gap


def standard_scores(n_items: int) -> Array:
    """Return y of ranks 1..t: zero sum, unit length, ascending (section 2.1)."""
    scale = math.sqrt(n_items * (n_items * n_items - 1.0) / 12.0)
    return np.asarray((np.arange(1.0, n_items + 1.0) - 0.5 * (n_items + 1.0)) / scale)


def vmf_log_sum(concentration: float, n_items: int) -> float:
    """Approximate ln Σ_y exp(κ θ'y) = -ln C_t(κ) by t! times the mean over the sphere (appendix A)."""
    return math.lgamma(n_items + 1.0) + float(sphere_moments(0.5 * (n_items - 3.0), concentration)[0])


def draw_direction(rng: np.random.Generator, mean_direction: Array, kappa: float) -> Array:
    """Draw θ von Mises–Fisher around a direction of the zero-sum plane, within that plane.

    The plane has t - 1 dimensions; a normal vector less its mean and less its projection is uniform across
    it.
    """
    gap = von_mises_fisher_gap(rng, len(mean_direction) - 1, kappa)
    square = 0.0
    while square < 1e-8:  # what is left of a vector along the mean would be rounding errors
        drawn = rng.standard_normal(len(mean_direction))
        across = drawn - drawn.mean() - (drawn @ mean_direction) * mean_direction
        square = float(across @ across)
    return np.asarray((1.0 - gap) * mean_direction + math.sqrt(gap * (2.0 - gap) / square) * across)
