# mypy: ignore-errors
"""Gamma distributions of the concentration of angle-based models: expectations, the nearest to a posterior.

The words are those of :mod:`permix.distributions.angle.concentration`.
"""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.angle.bessel_jit import log_sphere_moment, sphere_moments
from permix.kernels.jit import kernel

# Steps of the trapezoidal rule in ln κ: in standard deviations, and at most so much. The rule errs by
# |Γ(a + 2πi/h)| / Γ(a) for moments of a Gamma of shape a: below 1e-11 for the first where a is 20 or
# more, for the second where it is less.
STEP, LONGEST_STEP = 0.75, 0.2
# What is e^-37 of the largest is below rounding.
NEGLIGIBLE = 37.0
# A step that gains less of the evidence bound, in nats, is the last.
ENOUGH = 1e-9


@kernel
def gamma_nodes(shape, rate):
    """Return nodes κ and weights that integrate smooth functions over Gamma(shape, rate).

    Trapezoidal rule in u = ln κ, over all u at which the density is not negligible. What is integrated goes
    to zero with κ, so that the long left tail of small shapes may be cut.
    """
    width = math.sqrt(2.0 * NEGLIGIBLE / shape)
    low = -min(NEGLIGIBLE / shape + width, 45.0)
    high = math.log1p(NEGLIGIBLE / shape + width)
    n_nodes = math.ceil((high - low) / min(LONGEST_STEP, STEP / math.sqrt(shape))) + 1
    step = (high - low) / (n_nodes - 1.0)
    center = math.log(shape / rate)
    kappas = np.empty(n_nodes)
    weights = np.empty(n_nodes)
    # ln density of u about its center: shape (u - e^u + 1) + constant.
    constant = shape * math.log(shape) - shape - math.lgamma(shape) + math.log(step)
    for i in range(n_nodes):
        u = low + i * step
        kappas[i] = math.exp(center + u)
        weights[i] = math.exp(constant - shape * (math.expm1(u) - u))
    if shape >= 1.0:  # nothing was cut; for large shapes the constant is a difference of large numbers
        weights /= weights.sum()
    return kappas, weights


@kernel
def gamma_expectations(order, length, prior_length, shape, rate):
    """Return E[κ A(βκ)], E[M(κ)] and E[M(βκ) - M(β₀κ)] under Gamma(shape, rate)."""
    kappas, weights = gamma_nodes(shape, rate)
    pull = 0.0
    moment = 0.0
    gain = 0.0
    for i in range(kappas.size):
        kappa, w = kappas[i], weights[i]
        pull += w * kappa * sphere_moments(order, length * kappa)[1]
        moment += w * log_sphere_moment(order, kappa)
        gain += w * log_sphere_moment(order, length * kappa)
        gain -= w * log_sphere_moment(order, prior_length * kappa)
    return pull, moment, gain


@kernel
def digamma(x):
    """Return ψ(x) for x > 0: recurrence to 10 and beyond, then the asymptotic series."""
    result = 0.0
    for _ in range(math.ceil(10.0 - x)):
        result -= 1.0 / x
        x += 1.0
    z = 1.0 / (x * x)
    tail = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132)))))
    return result + math.log(x) - 0.5 / x - tail


@kernel
def gamma_divergence(shape, rate, prior_shape, prior_rate):
    """Return KL(Gamma(shape, rate) ‖ Gamma(prior_shape, prior_rate))."""
    if shape > 1e3:  # Stirling's series, without the terms of size shape·ln(shape) that cancel
        return (
            0.5 * math.log(shape / (2.0 * math.pi))
            - 0.5
            - 1.0 / (6.0 * shape)
            - prior_shape * digamma(shape)
            + math.lgamma(prior_shape)
            + prior_shape * (math.log(rate) - math.log(prior_rate))
            + shape * (prior_rate / rate)
        )
    return (
        (shape - prior_shape) * digamma(shape)
        - math.lgamma(shape)
        + math.lgamma(prior_shape)
        + prior_shape * (math.log(rate) - math.log(prior_rate))
        + shape * (prior_rate - rate) / rate
    )


@kernel
def evidence_at(order, n, length, prior_length, prior_shape, prior_rate, shape, rate):
    """Return what q(κ) = Gamma(shape, rate) adds to the evidence bound, E[g(κ)] - KL(q ‖ prior).

    g(κ) = M(βκ) - M(β₀κ) - N M(κ). Also the nodes κ, their weights, and g there.
    """
    kappas, weights = gamma_nodes(shape, rate)
    gains = np.empty(kappas.size)
    for i in range(kappas.size):
        gains[i] = log_sphere_moment(order, length * kappas[i]) - n * log_sphere_moment(order, kappas[i])
        gains[i] -= log_sphere_moment(order, prior_length * kappas[i])
    value = (weights * gains).sum() - gamma_divergence(shape, rate, prior_shape, prior_rate)
    return value, kappas, weights, gains


@kernel
def nearest_gamma(order, n, length, prior_length, prior_shape, prior_rate, shape, rate, max_iter):
    """Return the Gamma that maximizes the evidence bound itself: the nearest to p(κ | Y) in KL(q ‖ p).

    At the maximum, g(κ) = M(βκ) - M(β₀κ) - N M(κ) regressed on (ln κ, κ) under q has the coefficients
    (a - a₀, b₀ - b): a step of the natural gradient from the present one. No step is taken that lowers the
    bound. The published bounds (7) and (8) give the same mean but far too narrow a Gamma, by a factor
    of 2 to 8.
    """
    known = (order, n, length, prior_length, prior_shape, prior_rate)
    best, kappas, weights, gains = evidence_at(*known, shape, rate)
    for _ in range(max_iter):
        # Weighted regression on x = κ/mean - 1 and z = ln(κ/mean) - x, which are nearly uncorrelated.
        mean = shape / rate
        total = weights.sum()
        xs = kappas / mean - 1.0
        zs = np.log1p(xs) - xs
        xs -= (weights * xs).sum() / total
        zs -= (weights * zs).sum() / total
        fs = gains - (weights * gains).sum() / total
        sxx, sxz, szz = (weights * xs * xs).sum(), (weights * xs * zs).sum(), (weights * zs * zs).sum()
        sxf, szf = (weights * xs * fs).sum(), (weights * zs * fs).sum()
        determinant = sxx * szz - sxz * sxz
        if not determinant > 0.0:
            break
        c_x = (sxf * szz - szf * sxz) / determinant
        c_z = (szf * sxx - sxf * sxz) / determinant
        # c_x x + c_z z = c_z ln κ + (c_x - c_z) κ/mean + constant.
        target_shape, target_rate = prior_shape + c_z, prior_rate + (c_z - c_x) / mean
        little = ENOUGH * (1.0 + 1e-3 * abs(best))  # rounding grows with the size of the bound
        size = 1.0
        improved = False
        while size > 1e-4:
            new_shape = shape + size * (target_shape - shape)
            new_rate = rate + size * (target_rate - rate)
            if new_shape > 0.0 and new_rate > 0.0:
                value, new_kappas, new_weights, new_gains = evidence_at(*known, new_shape, new_rate)
                if value >= best:
                    improved = value > best + little
                    shape, rate, best = new_shape, new_rate, value
                    kappas, weights, gains = new_kappas, new_weights, new_gains
                    break
                if value > best - little:  # there already
                    break
            size *= 0.5
        if not improved:
            break
    return shape, rate
