"""Maximum likelihood of an angle-based model under the exact or the balanced normalizer.

In terms of η = κθ the model is an exponential family: ln P = η'y - ln Z(η), with Z and its gradient, the mean
of y, from the table over subsets (``subset_table_jit``) or, for many items, by balancing (``balanced_jit``).
"""

from __future__ import annotations

import math

import numpy as np

from permix.angle.components import largest_concentration
from permix.data.labels import Array
from permix.distributions.angle.concentration import INTERPRETED, newton_concentration
from permix.distributions.angle.normalizers import Tables, log_sum_and_gradient

# A likelihood that has no maximum (all rankings alike) is followed until so little is left to gain.
ENOUGH = 1e-10


def _dot(a: Array, b: Array) -> float:
    """Return a'b, added up in order: to the last bit the same whatever BLAS is used."""
    return float((a * b).cumsum()[-1])


def _inverse_hessian(tilts: Array) -> Array:
    """Return that of a von Mises–Fisher here: 1/A'(κ) along the tilts, κ/A(κ) across."""
    t, length = len(tilts), math.sqrt(_dot(tilts, tilts))
    if length <= 1e-9:
        return np.asarray((t - 1.0) * np.eye(t))
    kappa = min(length, largest_concentration(t))
    _, ratio, slope = INTERPRETED(0.5 * (t - 3.0), kappa)
    along, across = 1.0 / slope, kappa / ratio
    return np.asarray(np.outer((along - across) * tilts, tilts) / (length * length) + across * np.eye(t))


def maximize(
    mean: Array, scores: Array, tilts: Array, tables: Tables, max_iter: int
) -> tuple[Array, float, float]:
    """Climb η'ȳ - ln Z(η) from ``tilts``; return where it ends, the value and ln Z there.

    BFGS in the zero-sum plane; the function is concave, so the climb finds the maximum. From 0 it starts at
    the von Mises–Fisher estimate. The curvature dies away exponentially far out, where a step too long would
    strand: no step is longer than 2 or than the tilts themselves.
    """
    t = len(mean)
    log_sum, expected = log_sum_and_gradient(tilts, scores, tables)
    value = _dot(tilts, mean) - log_sum
    r = math.sqrt(_dot(mean, mean))
    if r > 1e-9 and not tilts.any():
        kappa = newton_concentration(0.5 * (t - 3.0), min(r, 0.999), INTERPRETED)
        trial = min(kappa, largest_concentration(t)) / r * mean
        trial_log_sum, trial_expected = log_sum_and_gradient(trial, scores, tables)
        if _dot(trial, mean) - trial_log_sum > value:
            tilts, log_sum, expected = trial, trial_log_sum, trial_expected
            value = _dot(tilts, mean) - log_sum
    slope = mean - expected
    inverse, fresh = _inverse_hessian(tilts), True
    for _ in range(max_iter):
        direction = inverse @ slope
        climb = _dot(direction, slope)
        if climb < ENOUGH:
            break
        longest = max(2.0, math.sqrt(_dot(tilts, tilts)))
        size = min(1.0, longest / math.sqrt(_dot(direction, direction)))
        while size >= 1e-10:
            trial = tilts + size * direction
            trial_log_sum, expected = log_sum_and_gradient(trial, scores, tables)
            trial_value = _dot(trial, mean) - trial_log_sum
            if trial_value >= value + 1e-4 * size * climb:
                break
            size *= 0.5
        else:
            if fresh:
                break
            inverse, fresh = _inverse_hessian(tilts), True  # what was learned misleads
            continue
        change = trial - tilts
        bend = slope - (mean - expected)  # positive along the change, since the function is concave
        tilts, value, log_sum, slope = trial, trial_value, trial_log_sum, mean - expected
        curvature = _dot(change, bend)
        if curvature > 1e-12 * math.sqrt(_dot(change, change) * _dot(bend, bend)):
            fresh = False
            moved = inverse @ bend
            scale = (1.0 + _dot(bend, moved) / curvature) / curvature
            both = np.outer(moved, change)
            inverse = inverse + np.outer(scale * change, change) - (both + both.T) / curvature
    return tilts, float(value), log_sum
