# mypy: ignore-errors
"""Metropolis steps of the tilts η = κθ of angle-based models under the exact or the balanced normalizer."""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.angle.balanced_jit import balanced_log_sum_and_mean
from permix.distributions.angle.bessel_jit import sphere_moments
from permix.distributions.angle.subset_table_jit import log_sum_and_mean
from permix.kernels.jit import kernel


@kernel
def _dot(a, b):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def _value_and_drift(
    tilts, n, sums, pull, prior_length, prior_shape, prior_rate, scores, table, back, balanced, drift
):
    """Return ln p(η | Y) without its constant, and fill ``drift`` with its gradient in the zero-sum plane.

    ``sums`` is Σ y of the ``n`` rankings of a component, ``pull`` the vector β₀ m₀; ``table``, ``back`` and
    ``balanced`` are the work space of the normalizer; balancing is not compiled where that is None. A priori
    κ ~ Gamma, θ | κ von Mises–Fisher(m₀, β₀κ), times κ^-(t-2) for the change of variables.
    """
    t = tilts.size
    if balanced is None:
        log_sum = log_sum_and_mean(tilts, scores, table, back, drift)
    else:
        log_sum = balanced_log_sum_and_mean(tilts, scores, drift)
    kappa, power = math.sqrt(_dot(tilts, tilts)), prior_shape - 1.0 - (t - 2.0)
    moment, ratio, _ = sphere_moments(0.5 * (t - 3.0), prior_length * kappa)
    radial = power / kappa - prior_rate - prior_length * ratio
    for i in range(t):
        drift[i] = sums[i] - n * drift[i] + pull[i] + radial * tilts[i] / kappa
    _center(drift)
    log_prior = power * math.log(kappa) - prior_rate * kappa + _dot(tilts, pull) - moment
    return _dot(tilts, sums) - n * log_sum + log_prior


@kernel
def _log_proposal(start, end, drift, mean, across, along):
    """Return ln of the density of a Langevin proposal, without its constant."""
    t = start.size
    projection, square = 0.0, 0.0
    for i in range(t):
        projection += (end[i] - start[i]) * mean[i]
    slope = _dot(drift, mean)
    for i in range(t):
        rest = end[i] - start[i] - projection * mean[i] - 0.5 * across * across * (drift[i] - slope * mean[i])
        square += rest * rest / (across * across)
    rest = projection - 0.5 * along * along * slope
    return -0.5 * (square + rest * rest / (along * along))


@kernel
def metropolis_tilts(rng, known, tilts, mean, widths, n_steps):
    """Move η by Metropolis steps under the exact or the balanced normalizer; return how many were accepted.

    ``known`` are the arguments of :func:`_value_and_drift`, ``mean`` is the direction of Σ y. Every other
    step is Langevin's, along the gradient; the others change κ alone, in its logarithm. Their ``widths``
    across the mean, along it and of ln κ come from the sums, never from the present η.
    """
    t = tilts.size
    across, along, stretch = widths
    # Rounding errors of the sum grow with every stretch, and nothing in the likelihood would stop them.
    _center(tilts)
    drift, trial_drift = np.empty(t), np.empty(t)
    trial, step = np.empty(t), np.empty(t)
    value = _value_and_drift(tilts, *known, drift)
    accepted = 0
    for turn in range(n_steps):
        correction = 0.0
        if turn % 2:
            factor = math.exp(stretch * rng.standard_normal())
            for i in range(t):
                trial[i] = factor * tilts[i]
            correction = (t - 1.0) * math.log(factor)  # of scaling a vector of the plane
        else:
            for i in range(t):
                step[i] = rng.standard_normal()
            _center(step)
            projection, uphill = _dot(step, mean), _dot(drift, mean)
            for i in range(t):
                trial[i] = tilts[i] + across * (step[i] - projection * mean[i])
                trial[i] += 0.5 * across * across * (drift[i] - uphill * mean[i])
                trial[i] += (along * projection + 0.5 * along * along * uphill) * mean[i]
        trial_value = _value_and_drift(trial, *known, trial_drift)
        if turn % 2 == 0:
            correction = _log_proposal(trial, tilts, trial_drift, mean, across, along)
            correction -= _log_proposal(tilts, trial, drift, mean, across, along)
        if trial_value - value + correction >= -rng.standard_exponential():
            for i in range(t):
                tilts[i], drift[i] = trial[i], trial_drift[i]
            value = trial_value
            accepted += 1
    return accepted


@kernel
def _center(vector):
    """Take the mean off, so that the vector lies in the zero-sum plane."""
    total = 0.0
    for i in range(vector.size):
        total += vector[i]
    for i in range(vector.size):
        vector[i] -= total / vector.size
