"""Angle-based models under the exact normaliser: maximum likelihood, and Metropolis steps of the parameters.

In terms of the tilts η = κθ the model is an exponential family: ln P = η'y - ln Z(η), with Z and its
gradient, the mean of y, from the table over subsets (:mod:`permix.kernels.subset_table`).
"""

from __future__ import annotations

import math

import numpy as np

from permix.kernels.angle_concentration import concentration_cap, newton_concentration
from permix.kernels.bessel import bessel, log_sphere_moment
from permix.kernels.jit import kernel
from permix.kernels.subset_table import log_sum_and_mean, log_sum_only

# A likelihood that has no maximum (all rankings alike) is followed until so little is left to gain.
ENOUGH = 1e-10


@kernel
def _dot(a, b):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def _inverse_hessian(tilts, cap, inverse):
    """Fill ``inverse`` with that of a von Mises–Fisher law here: 1/A'(κ) along the tilts, κ/A(κ) across."""
    t = tilts.size
    length = math.sqrt(_dot(tilts, tilts))
    along = across = t - 1.0
    if length > 1e-9:
        kappa = min(length, cap)
        _, ratio, slope = bessel(0.5 * (t - 3.0), kappa)
        along, across = 1.0 / slope, kappa / ratio
    for i in range(t):
        for j in range(t):
            inverse[i, j] = 0.0
            if length > 1e-9:
                inverse[i, j] = (along - across) * tilts[i] * tilts[j] / (length * length)
        inverse[i, i] += across


@kernel
def maximise(mean, scores, tilts, table, back, max_iter):
    """Climb η'ȳ - ln Z(η) from ``tilts``, which is changed; return the value and ln Z there.

    BFGS in the zero-sum plane; the function is concave, so the climb finds the maximum. From 0 it starts at
    the von Mises–Fisher estimate. The curvature dies away exponentially far out, where a step too long would
    strand: no step is longer than 2 or than the tilts themselves.
    """
    t = mean.size
    order = 0.5 * (t - 3.0)
    cap = concentration_cap(t, 1.0)
    expected = np.empty(t)
    log_sum = log_sum_and_mean(tilts, scores, table, back, expected)
    value = _dot(tilts, mean) - log_sum
    r = math.sqrt(_dot(mean, mean))
    if r > 1e-9 and _dot(tilts, tilts) == 0.0:
        kappa = min(newton_concentration(order, min(r, 0.999)), cap)
        trial = kappa / r * mean
        trial_log_sum = log_sum_and_mean(trial, scores, table, back, expected)
        if _dot(trial, mean) - trial_log_sum > value:
            for i in range(t):
                tilts[i] = trial[i]
            value, log_sum = _dot(trial, mean) - trial_log_sum, trial_log_sum
        else:
            log_sum = log_sum_and_mean(tilts, scores, table, back, expected)
    slope = mean - expected
    inverse = np.empty((t, t))
    _inverse_hessian(tilts, cap, inverse)
    fresh = True
    for _ in range(max_iter):
        direction = inverse @ slope
        climb = _dot(direction, slope)
        if climb < ENOUGH:
            break
        longest = max(2.0, math.sqrt(_dot(tilts, tilts)))
        size = min(1.0, longest / math.sqrt(_dot(direction, direction)))
        trial_value = trial_log_sum = -np.inf
        trial = tilts
        while size >= 1e-10:
            trial = tilts + size * direction
            trial_log_sum = log_sum_and_mean(trial, scores, table, back, expected)
            trial_value = _dot(trial, mean) - trial_log_sum
            if trial_value >= value + 1e-4 * size * climb:
                break
            size *= 0.5
        if size < 1e-10:
            if fresh:
                break
            _inverse_hessian(tilts, cap, inverse)  # what was learnt misleads
            fresh = True
            continue
        change = trial - tilts
        bend = slope - (mean - expected)  # positive along the change, since the function is concave
        slope = mean - expected
        for i in range(t):
            tilts[i] = trial[i]
        value, log_sum = trial_value, trial_log_sum
        curvature = _dot(change, bend)
        if curvature > 1e-12 * math.sqrt(_dot(change, change) * _dot(bend, bend)):
            fresh = False
            moved = inverse @ bend
            scale = (1.0 + _dot(bend, moved) / curvature) / curvature
            for i in range(t):
                for j in range(t):
                    inverse[i, j] += scale * change[i] * change[j]
                    inverse[i, j] -= (moved[i] * change[j] + change[i] * moved[j]) / curvature
    return value, log_sum


@kernel
def log_prior(tilts, pull, prior_length, prior_shape, prior_rate):
    """Return the log-density of η: κ ~ Gamma, θ | κ von Mises–Fisher(m₀, β₀κ), times κ^-(t-2) for the change.

    ``pull`` is β₀ m₀'η.
    """
    t = tilts.size
    kappa = math.sqrt(_dot(tilts, tilts))
    value = (prior_shape - 1.0 - (t - 2.0)) * math.log(kappa) - prior_rate * kappa + pull
    if prior_length > 0.0:
        value -= log_sphere_moment(0.5 * (t - 3.0), prior_length * kappa)
    return value


@kernel
def metropolis_tilts(
    rng, n, sums, prior_pull, prior_length, prior_shape, prior_rate, scores, tilts, table, n_steps
):
    """Move η by random-walk Metropolis under the exact normaliser; return how many steps were accepted.

    ``sums`` is Σ y of the ``n`` rankings of a component, ``prior_pull`` the vector β₀ m₀. The width of a step
    comes from these sums alone (2.4/√d standard deviations of the von Mises–Fisher posterior), never from the
    present η, so proposals are symmetric. Half of the steps change κ alone, in its logarithm.
    """
    t = scores.size
    order = 0.5 * (t - 3.0)
    length = math.sqrt(_dot(sums, sums))
    r = min(length / max(n, 1.0), 0.98)
    kappa = max(newton_concentration(order, r), 1.0)
    mean = np.zeros(t)
    if length > 1e-6:  # rankings that cancel leave rounding errors, which have no direction in the plane
        mean[:] = sums / length
    _, ratio, slope = bessel(order, kappa)
    width = 2.4 / math.sqrt(t - 1.0)
    across = width * math.sqrt(kappa / (ratio * (n + 1.0)))
    along = width / math.sqrt(slope * (n + 1.0))
    stretch = 2.4 / (kappa * math.sqrt(slope * (n + 1.0)))
    # Rounding errors of the sum grow with every stretch, and nothing in the likelihood would stop them.
    total = 0.0
    for i in range(t):
        total += tilts[i]
    for i in range(t):
        tilts[i] -= total / t
    value = _dot(tilts, sums) - n * log_sum_only(tilts, scores, table)
    value += log_prior(tilts, _dot(tilts, prior_pull), prior_length, prior_shape, prior_rate)
    step = np.empty(t)
    accepted = 0
    for turn in range(n_steps):
        jacobian = 0.0
        if turn % 2:
            factor = math.exp(stretch * rng.standard_normal())
            trial = factor * tilts
            jacobian = (t - 1.0) * math.log(factor)  # of scaling a vector of the plane
        else:
            total = 0.0
            for i in range(t):
                step[i] = across * rng.standard_normal()
                total += step[i]
            for i in range(t):
                step[i] -= total / t
            projection = _dot(step, mean)
            trial = tilts + step + (along / across - 1.0) * projection * mean
        trial_value = _dot(trial, sums) - n * log_sum_only(trial, scores, table)
        trial_value += log_prior(trial, _dot(trial, prior_pull), prior_length, prior_shape, prior_rate)
        if trial_value - value + jacobian >= -rng.standard_exponential():
            tilts[:] = trial
            value = trial_value
            accepted += 1
    return accepted
