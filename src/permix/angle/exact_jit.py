# mypy: ignore-errors
"""Angle-based models in terms of their tilts: maximum likelihood, and Metropolis steps of the parameters.

In terms of η = κθ the model is an exponential family: ln P = η'y - ln Z(η), with Z and its gradient, the mean
of y, from the table over subsets (``subset_table_jit``) or, for many items, by balancing (``balanced_jit``).
"""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.angle.balanced_jit import balanced_log_sum_and_mean
from permix.distributions.angle.bessel_jit import bessel, log_sphere_moment
from permix.distributions.angle.concentration_jit import concentration_cap, newton_concentration
from permix.distributions.angle.subset_table_jit import log_sum_and_mean
from permix.kernels.jit import kernel

# A likelihood that has no maximum (all rankings alike) is followed until so little is left to gain.
ENOUGH = 1e-10


@kernel
def _dot(a, b):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def log_sum_with_mean(tilts, scores, table, back, mean):
    """Return ln Z and fill ``mean`` with its gradient: by the table over subsets, or balanced without one."""
    if table.size:
        return log_sum_and_mean(tilts, scores, table, back, mean)
    return balanced_log_sum_and_mean(tilts, scores, mean)


@kernel
def _inverse_hessian(tilts, cap, inverse):
    """Fill ``inverse`` with that of a von Mises–Fisher here: 1/A'(κ) along the tilts, κ/A(κ) across."""
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
def maximize(mean, scores, tilts, table, back, max_iter):
    """Climb η'ȳ - ln Z(η) from ``tilts``, which is changed; return the value and ln Z there.

    BFGS in the zero-sum plane; the function is concave, so the climb finds the maximum. From 0 it starts at
    the von Mises–Fisher estimate. The curvature dies away exponentially far out, where a step too long would
    strand: no step is longer than 2 or than the tilts themselves.
    """
    t = mean.size
    order = 0.5 * (t - 3.0)
    cap = concentration_cap(t, 1.0)
    expected = np.empty(t)
    log_sum = log_sum_with_mean(tilts, scores, table, back, expected)
    value = _dot(tilts, mean) - log_sum
    r = math.sqrt(_dot(mean, mean))
    if r > 1e-9 and _dot(tilts, tilts) == 0.0:
        kappa = min(newton_concentration(order, min(r, 0.999)), cap)
        trial = kappa / r * mean
        trial_log_sum = log_sum_with_mean(trial, scores, table, back, expected)
        if _dot(trial, mean) - trial_log_sum > value:
            for i in range(t):
                tilts[i] = trial[i]
            value, log_sum = _dot(trial, mean) - trial_log_sum, trial_log_sum
        else:
            log_sum = log_sum_with_mean(tilts, scores, table, back, expected)
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
            trial_log_sum = log_sum_with_mean(trial, scores, table, back, expected)
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
def _drift(tilts, expected, n, sums, prior_pull, prior_length, prior_shape, prior_rate, out):
    """Fill ``out`` with the gradient of the log-posterior of η, given the mean of y there."""
    t = tilts.size
    kappa = math.sqrt(_dot(tilts, tilts))
    radial = (prior_shape - 1.0 - (t - 2.0)) / kappa - prior_rate
    if prior_length > 0.0:
        radial -= prior_length * bessel(0.5 * (t - 3.0), prior_length * kappa)[1]
    for i in range(t):
        out[i] = sums[i] - n * expected[i] + prior_pull[i] + radial * tilts[i] / kappa


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
def metropolis_tilts(
    rng, n, sums, prior_pull, prior_length, prior_shape, prior_rate, scores, tilts, table, back, n_steps
):
    """Move η by Metropolis steps under the exact or the balanced normalizer; return how many were accepted.

    ``sums`` is Σ y of the ``n`` rankings of a component, ``prior_pull`` the vector β₀ m₀; ``table`` and
    ``back`` have 2^t entries, or none for the balanced normalizer. Every other step is Langevin's, along the
    gradient; its width comes from the sums alone (the von Mises–Fisher posterior), never from the present η.
    The others change κ alone, in its logarithm.
    """
    t = scores.size
    order = 0.5 * (t - 3.0)
    length = math.sqrt(_dot(sums, sums))
    r = min(length / max(n, 1.0), 0.98)
    kappa = max(newton_concentration(order, r), 1.0)
    mean = np.zeros(t)
    mean[0] = math.sqrt(1.0 - 1.0 / t)  # any direction of the plane, where the rankings cancel
    for i in range(1, t):
        mean[i] = -mean[0] / (t - 1.0)
    if length > 1e-9 * (1.0 + n):
        mean[:] = sums / length
    _, ratio, slope = bessel(order, kappa)
    width = 1.2 * (t - 1.0) ** (-1.0 / 6.0)
    across = width * math.sqrt(kappa / (ratio * (n + 1.0)))
    along = width / math.sqrt(slope * (n + 1.0))
    stretch = 2.4 / (kappa * math.sqrt(slope * (n + 1.0)))
    # Rounding errors of the sum grow with every stretch, and nothing in the likelihood would stop them.
    _center(tilts)
    expected, trial_expected = np.empty(t), np.empty(t)
    drift, trial_drift = np.empty(t), np.empty(t)
    known = (prior_length, prior_shape, prior_rate)
    value = _dot(tilts, sums) - n * log_sum_with_mean(tilts, scores, table, back, expected)
    value += log_prior(tilts, _dot(tilts, prior_pull), *known)
    _drift(tilts, expected, n, sums, prior_pull, *known, drift)
    _center(drift)
    step = np.empty(t)
    accepted = 0
    for turn in range(n_steps):
        correction = 0.0
        if turn % 2:
            factor = math.exp(stretch * rng.standard_normal())
            trial = factor * tilts
            correction = (t - 1.0) * math.log(factor)  # of scaling a vector of the plane
        else:
            for i in range(t):
                step[i] = rng.standard_normal()
            _center(step)
            projection, uphill = _dot(step, mean), _dot(drift, mean)
            trial = tilts.copy()
            for i in range(t):
                trial[i] += across * (step[i] - projection * mean[i])
                trial[i] += 0.5 * across * across * (drift[i] - uphill * mean[i])
                trial[i] += (along * projection + 0.5 * along * along * uphill) * mean[i]
        trial_value = _dot(trial, sums) - n * log_sum_with_mean(trial, scores, table, back, trial_expected)
        trial_value += log_prior(trial, _dot(trial, prior_pull), *known)
        _drift(trial, trial_expected, n, sums, prior_pull, *known, trial_drift)
        _center(trial_drift)
        if turn % 2 == 0:
            correction = _log_proposal(trial, tilts, trial_drift, mean, across, along)
            correction -= _log_proposal(tilts, trial, drift, mean, across, along)
        if trial_value - value + correction >= -rng.standard_exponential():
            tilts[:] = trial
            drift[:] = trial_drift
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
