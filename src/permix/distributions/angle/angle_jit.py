# mypy: ignore-errors
"""Angle-based models: scores of ranks, and the von Mises–Fisher approximation of the normalizer."""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.angle.bessel_jit import log_sphere_moment
from permix.kernels.jit import kernel
from permix.kernels.random import von_mises_fisher_gap


@kernel
def standard_scores(n_items):
    """Return y of ranks 1..t: zero sum, unit length, ascending (section 2.1)."""
    scores = np.empty(n_items)
    scale = math.sqrt(n_items * (n_items * n_items - 1.0) / 12.0)
    for rank in range(n_items):
        scores[rank] = (rank + 1.0 - 0.5 * (n_items + 1.0)) / scale
    return scores


@kernel
def vmf_log_sum(concentration, n_items):
    """Approximate ln Σ_y exp(κ θ'y) = -ln C_t(κ) by t! times the mean over the sphere (appendix A)."""
    return math.lgamma(n_items + 1.0) + log_sphere_moment(0.5 * (n_items - 3.0), concentration)


@kernel
def draw_direction(rng, mean_direction, kappa, out):
    """Fill ``out`` with θ von Mises–Fisher around a direction of the zero-sum plane, within that plane.

    The plane has t - 1 dimensions; a normal vector less its mean and less its projection is uniform across
    it.
    """
    t = mean_direction.size
    gap = von_mises_fisher_gap(rng, t - 1, kappa)
    norm = 0.0
    while norm < 1e-8:  # what is left of a vector along the mean would be rounding errors
        total = 0.0
        projection = 0.0
        norm = 0.0
        for i in range(t):
            out[i] = rng.standard_normal()
            total += out[i]
            projection += out[i] * mean_direction[i]
        for i in range(t):
            out[i] -= total / t + projection * mean_direction[i]
            norm += out[i] * out[i]
    scale = math.sqrt(gap * (2.0 - gap) / norm)
    for i in range(t):
        out[i] = (1.0 - gap) * mean_direction[i] + scale * out[i]
