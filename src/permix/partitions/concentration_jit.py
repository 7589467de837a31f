# mypy: ignore-errors
"""The concentration of a Dirichlet process given a partition, compiled.

Given K clusters of n data, ln α = t has density ∝ exp f(t) with f(t) = (shape + K - 1) t - rate e^t -
Σ_{0<i<n} ln(e^t + i), each term of which is concave in t. So there is one mode, the mass is within reach of
it, and tangents lie above the density.
"""

from __future__ import annotations

import math

from permix.kernels.jit import kernel
from permix.partitions.concentration import SMALLEST_CONCENTRATION
from permix.partitions.concentration import log_rising_factorial as plain_log_rising_factorial

log_rising_factorial = kernel(plain_log_rising_factorial)
# Density below e^-45 of its top is left out of an integral.
NEGLIGIBLE = 45.0
# Where α is below e^-40, rate and sizes make no difference: the density is e^((shape + K - 1) t).
SMALL = -40.0


@kernel
def _log_density(t, shape, rate, n_clusters, n):
    alpha = math.exp(t)
    return (shape + n_clusters - 1.0) * t - rate * alpha - log_rising_factorial(alpha + 1.0, n - 1)


@kernel
def _digamma(x):
    """Derivative of ln Γ: recurrence, then the asymptotic series."""
    value = 0.0
    while x < 12.0:
        value -= 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    tail = square * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square / 240.0)))
    return value + math.log(x) - 0.5 / x - tail


@kernel
def _slope(t, shape, rate, n_clusters, n):
    alpha = math.exp(t)
    others = _digamma(alpha + n) - _digamma(alpha + 1.0) if alpha < 1e8 else math.log1p((n - 1.0) / alpha)
    return shape + n_clusters - 1.0 - rate * alpha - alpha * others


@kernel
def _mode(shape, rate, n_clusters, n):
    low, high = -1.0, 1.0
    while _slope(low, shape, rate, n_clusters, n) < 0.0 and low > -690.0:
        low -= 2.0
    while _slope(high, shape, rate, n_clusters, n) > 0.0 and high < 690.0:
        high += 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _slope(middle, shape, rate, n_clusters, n) > 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@kernel
def _deviation(mode, shape, rate, n_clusters, n):
    """Distance from the mode at which the density has fallen about as a normal one has at one deviation."""
    h = 1e-3
    curvature = (
        _slope(mode - h, shape, rate, n_clusters, n) - _slope(mode + h, shape, rate, n_clusters, n)
    ) / (2.0 * h)
    return 1.0 / math.sqrt(max(curvature, 1e-12))


@kernel
def log_mean_power(shape, rate, n_clusters, n):
    """Ln E[α^K / (α (α + 1) ... (α + n - 1))] under α ~ Gamma(shape, rate), by the trapezoidal rule in ln α.

    The grid starts at the mode; the rule converges like e^(-1/step) for functions as smooth as this one. K
    and n are at least 1: for less the mean is infinite.
    """
    mode = _mode(shape, rate, n_clusters, n)
    top = _log_density(mode, shape, rate, n_clusters, n)
    step = 0.25 * min(_deviation(mode, shape, rate, n_clusters, n), 1.0)
    total = 1.0
    for direction in (-1.0, 1.0):
        t = mode
        while True:
            t += direction * step
            fall = top - _log_density(t, shape, rate, n_clusters, n)
            if fall > NEGLIGIBLE:
                break
            total += math.exp(-fall)
            if direction < 0.0 and t < SMALL:
                # What is left is a geometric series, and a long one where the shape is small.
                total += math.exp(-fall) / math.expm1((shape + n_clusters - 1.0) * step)
                break
    return top + math.log(total * step) + shape * math.log(rate) - math.lgamma(shape)


@kernel
def draw_concentration(rng, shape, rate, n_clusters, n):
    """Draw α given K clusters of n data: tangents about one deviation from the mode are the hat."""
    mode = _mode(shape, rate, n_clusters, n)
    top = _log_density(mode, shape, rate, n_clusters, n)
    reach = _deviation(mode, shape, rate, n_clusters, n)
    left, right = mode - reach, mode + reach
    left_slope = _slope(left, shape, rate, n_clusters, n)
    right_slope = -_slope(right, shape, rate, n_clusters, n)
    knee_left = left + (top - _log_density(left, shape, rate, n_clusters, n)) / left_slope
    knee_right = right - (top - _log_density(right, shape, rate, n_clusters, n)) / right_slope
    flat = knee_right - knee_left
    total = flat + 1.0 / left_slope + 1.0 / right_slope
    while True:
        u = rng.random() * total
        over = rng.standard_exponential()
        if u < flat:
            t, hat = knee_left + u, 0.0
        elif u < flat + 1.0 / right_slope:
            t, hat = knee_right + over / right_slope, -over
        else:
            t, hat = knee_left - over / left_slope, -over
        # The hat is at least as high as the density: accept with the ratio of the two.
        if t < 690.0 and rng.standard_exponential() >= hat + top - _log_density(
            t, shape, rate, n_clusters, n
        ):
            return max(math.exp(t), SMALLEST_CONCENTRATION)
