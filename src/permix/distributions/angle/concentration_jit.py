# mypy: ignore-errors
"""Concentration of angle-based models under the von Mises–Fisher normalizer: estimates, bounds, posterior.

A cluster of N rankings is seen through β m = β₀ m₀ + Σ y (length β, unit direction m). With M(x) = ln E exp(x
u₁) over the unit sphere of the zero-sum plane (``log_sphere_moment`` of order ν = (t-3)/2), the direction
given κ is von Mises–Fisher(m, βκ), and

    ln p(κ | Y) = (a₀-1) ln κ - b₀ κ + M(βκ) - M(β₀κ) - N M(κ) + constant.

The paper counts the direction in t dimensions, with Bessel functions of order (t-2)/2 for it; but y sums to
zero, so the component of θ along (1, …, 1) is seen by nobody, and probabilities would not sum to one.
"""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.angle.bessel_jit import bessel, log_sphere_moment
from permix.kernels.jit import kernel

# Steps of the trapezoidal rule in ln κ: in standard deviations, and at most so much. The rule errs by
# |Γ(a + 2πi/h)| / Γ(a) for moments of a Gamma of shape a: below 1e-11 for the first where a is 20 or
# more, for the second where it is less.
STEP, LONGEST_STEP = 0.75, 0.2
# What is e^-37 of the largest is below rounding.
NEGLIGIBLE = 37.0
LEAST, MOST = 1e-12, 1e12
# A step that gains less of the evidence bound, in nats, is the last.
ENOUGH = 1e-9


@kernel
def newton_concentration(order, r):
    """Solve I_{ν+1}(κ)/I_ν(κ) = r for κ, 0 <= r < 1: Banerjee's start, then Newton steps (equation 3)."""
    if not r > 0.0:
        return 0.0
    if r >= 1.0:
        return np.inf
    p = 2.0 * order + 2.0
    kappa = r * (p - r * r) / (1.0 - r * r)
    for _ in range(100):
        _, ratio, slope = bessel(order, kappa)
        step = (ratio - r) / slope
        # The ratio is concave in κ, so a step from the left cannot overshoot far; never below a tenth.
        following = max(kappa - step, 0.1 * kappa)
        if abs(following - kappa) <= 1e-14 * kappa:
            return following
        kappa = following
    return kappa


@kernel
def concentration_cap(n_items, reach):
    """Return the largest κ at which the approximate normalizer gives no ranking a probability above one.

    ``reach`` is the largest θ'y of all rankings. f(κ) = κ reach - ln t! - M(κ) is concave and negative at 0;
    where its maximum is not positive there is no limit (infinity).
    """
    order = 0.5 * (n_items - 3.0)
    log_factorial = math.lgamma(n_items + 1.0)
    top = newton_concentration(order, min(reach, 1.0 - 1e-12))
    if top * reach - log_factorial - log_sphere_moment(order, top) <= 0.0:
        return np.inf
    low, high = 0.0, top
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle * reach - log_factorial - log_sphere_moment(order, middle) <= 0.0:
            low = middle
        else:
            high = middle
        if high - low <= 1e-12 * high:
            break
    return low


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
        pull += w * kappa * bessel(order, length * kappa)[1]
        moment += w * log_sphere_moment(order, kappa)
        gain += w * log_sphere_moment(order, length * kappa)
        if prior_length > 0.0:
            gain -= w * log_sphere_moment(order, prior_length * kappa)
    return pull, moment, gain


@kernel
def digamma(x):
    """Return ψ(x) for x > 0: recurrence to 10 and beyond, then the asymptotic series."""
    result = 0.0
    while x < 10.0:
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
def log_posterior(order, n, length, prior_length, prior_shape, prior_rate, kappa):
    """Return ln p(κ | Y) as a density of ln κ, without its constant."""
    value = prior_shape * math.log(kappa) - prior_rate * kappa
    value += log_sphere_moment(order, length * kappa) - n * log_sphere_moment(order, kappa)
    if prior_length > 0.0:
        value -= log_sphere_moment(order, prior_length * kappa)
    return value


@kernel
def log_posteriors(order, n, length, prior_length, prior_shape, prior_rate, kappas, out):
    """Fill ``out`` with :func:`log_posterior` at many κ."""
    for i in range(kappas.size):
        out[i] = log_posterior(order, n, length, prior_length, prior_shape, prior_rate, kappas[i])


@kernel
def posterior_slope(order, n, length, prior_length, prior_shape, prior_rate, kappa):
    """Return the derivative of :func:`log_posterior` in ln κ."""
    value = prior_shape - prior_rate * kappa + length * kappa * bessel(order, length * kappa)[1]
    value -= n * kappa * bessel(order, kappa)[1]
    return value - prior_length * kappa * bessel(order, prior_length * kappa)[1]


@kernel
def posterior_mode(order, n, length, prior_length, prior_shape, prior_rate, cap):
    """Return the mode of ln κ by bisection of the slope, from ``LEAST`` to the cap or ``MOST``."""
    low, high = math.log(LEAST), math.log(min(cap, MOST))
    if posterior_slope(order, n, length, prior_length, prior_shape, prior_rate, math.exp(high)) >= 0.0:
        return math.exp(high)
    for _ in range(100):
        middle = 0.5 * (low + high)
        slope = posterior_slope(order, n, length, prior_length, prior_shape, prior_rate, math.exp(middle))
        if slope > 0.0:
            low = middle
        else:
            high = middle
        if high - low < 1e-10:
            break
    return math.exp(0.5 * (low + high))


@kernel
def posterior_grid(order, n, length, prior_length, prior_shape, prior_rate, cap, n_nodes):
    """Return nodes κ, equally spaced in ln κ, their probabilities and ln of the integral over ln κ.

    The nodes span all that is within e^-37 of the mode, up to ``cap``.
    """
    mode = math.log(posterior_mode(order, n, length, prior_length, prior_shape, prior_rate, cap))
    top = log_posterior(order, n, length, prior_length, prior_shape, prior_rate, math.exp(mode))
    ends = np.empty(2)
    for side in range(2):
        direction = -1.0 if side == 0 else 1.0
        limit = math.log(LEAST) if side == 0 else math.log(min(cap, MOST))
        step = 1e-3
        end = mode
        # Double the step outwards until negligible, then come back by bisection.
        while (limit - end) * direction > 0.0:
            inner = end
            end = mode + direction * step
            if (limit - end) * direction <= 0.0:
                end = limit
            value = log_posterior(order, n, length, prior_length, prior_shape, prior_rate, math.exp(end))
            if value < top - NEGLIGIBLE:
                for _ in range(8):
                    middle = 0.5 * (inner + end)
                    value = log_posterior(
                        order, n, length, prior_length, prior_shape, prior_rate, math.exp(middle)
                    )
                    if value < top - NEGLIGIBLE:
                        end = middle
                    else:
                        inner = middle
                break
            step *= 2.0
        ends[side] = end
    low, high = ends[0], ends[1]
    nodes = np.empty(n_nodes)
    probabilities = np.empty(n_nodes)
    total = 0.0
    for i in range(n_nodes):
        kappa = math.exp(low + (high - low) * i / (n_nodes - 1.0))
        value = log_posterior(order, n, length, prior_length, prior_shape, prior_rate, kappa)
        weight = math.exp(value - top)
        if i == 0 or i == n_nodes - 1:
            weight *= 0.5  # matters where the cap cuts
        nodes[i] = kappa
        probabilities[i] = weight
        total += weight
    for i in range(n_nodes):
        probabilities[i] /= total
    return nodes, probabilities, top + math.log(total * (high - low) / (n_nodes - 1.0))


@kernel
def draw_from_grid(rng, nodes, probabilities):
    """Draw κ: a node by its probability, then evenly within half a step in ln κ.

    With some hundred nodes over the whole posterior the steps are far below its width.
    """
    u = rng.random()
    n = nodes.size
    chosen = n - 1
    for i in range(n):
        u -= probabilities[i]
        if u < 0.0:
            chosen = i
            break
    step = math.log(nodes[n - 1] / nodes[0]) / (n - 1.0)
    low = 0.0 if chosen == 0 else -0.5
    high = 0.0 if chosen == n - 1 else 0.5
    return nodes[chosen] * math.exp(step * (low + (high - low) * rng.random()))


@kernel
def laplace_gamma(order, n, length, prior_length, prior_shape, prior_rate):
    """Return the Gamma distribution with the mode and the curvature of p(κ | Y) in ln κ."""
    mode = posterior_mode(order, n, length, prior_length, prior_shape, prior_rate, MOST)
    h = 1e-3
    curvature = (
        posterior_slope(order, n, length, prior_length, prior_shape, prior_rate, mode * math.exp(-h))
        - posterior_slope(order, n, length, prior_length, prior_shape, prior_rate, mode * math.exp(h))
    ) / (2.0 * h)
    shape = max(curvature, 0.5 * min(prior_shape, 1.0))
    return shape, shape / mode


@kernel
def evidence_at(order, n, length, prior_length, prior_shape, prior_rate, shape, rate):
    """Return what q(κ) = Gamma(shape, rate) adds to the evidence bound, E[g(κ)] - KL(q ‖ prior).

    g(κ) = M(βκ) - M(β₀κ) - N M(κ). Also the nodes κ, their weights, and g there.
    """
    kappas, weights = gamma_nodes(shape, rate)
    gains = np.empty(kappas.size)
    for i in range(kappas.size):
        gains[i] = log_sphere_moment(order, length * kappas[i]) - n * log_sphere_moment(order, kappas[i])
        if prior_length > 0.0:
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
