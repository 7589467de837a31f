"""Exact random draws from a ``numpy.random.Generator`` inside compiled code.

Where a draw is an inversion of one uniform, the inversion is a function of its own
(``*_quantile``), so that generators and the streams of :mod:`permix.kernels.streams` share it.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel

# A weight below e^-40 of the largest is less than half the spacing of a double-precision uniform near 1.
NEGLIGIBLE = 40.0


@kernel
def _largest(values, n):
    largest = -np.inf
    for i in range(n):
        largest = max(largest, values[i])
    return largest


@kernel
def categorical_log_quantile(u, log_weights, n):
    """Return the first index whose share of ``exp(log_weights[:n])``, cumulated, exceeds ``u`` in [0, 1).

    Weights of minus infinity are never chosen; when all are, the answer is -1.
    """
    largest = _largest(log_weights, n)
    total = 0.0
    for i in range(n):
        gap = log_weights[i] - largest  # not a number where all are minus infinity, and so never enough
        if gap >= -NEGLIGIBLE:
            total += np.exp(gap)
    remaining = u * total
    chosen = -1
    for i in range(n):
        gap = log_weights[i] - largest
        if gap >= -NEGLIGIBLE:
            chosen = i
            remaining -= np.exp(gap)
            if remaining < 0.0:
                break
    return chosen  # the last candidate when rounding leaves a crumb


@kernel
def categorical_log(rng, log_weights, n):
    """Draw an index in 0..n-1 with probability proportional to ``exp(log_weights[i])``.

    One uniform per draw. Entries of minus infinity are never drawn; when all are, returns -1.
    """
    return categorical_log_quantile(rng.random(), log_weights, n)


@kernel
def categorical_log_overwrite(rng, log_weights, n):
    """Do as :func:`categorical_log`, with half the exponentials; ``log_weights[:n]`` is used up.

    The same generator state gives the same index up to rounding of the cumulated weights.
    """
    largest = _largest(log_weights, n)
    total = 0.0
    for i in range(n):
        gap = log_weights[i] - largest
        if gap >= -NEGLIGIBLE:
            total += np.exp(gap)
        log_weights[i] = total
    threshold = rng.random() * total  # below the total, whatever is drawn
    for i in range(n):
        if log_weights[i] > threshold:
            return i
    return -1


@kernel
def truncated_geometric_quantile(u, theta, n):
    """Return the ``u``-quantile of P(k) ∝ exp(-theta k) on 0..n-1, ``theta`` in [0, inf].

    F(k) = (1 - e^(-(k+1) theta)) / (1 - e^(-n theta)), inverted through ``expm1`` and ``log1p``: no
    cancellation for theta near 0.
    """
    if n * theta < 1e-17:  # uniform to double precision; also keeps denormal theta out of the quotient
        k = np.int64(u * n)
    else:
        k = np.int64(-np.log1p(u * np.expm1(-n * theta)) / theta)
    return min(k, n - 1)


@kernel
def truncated_geometric_log(rng, theta, n):
    """Draw k in 0..n-1 with P(k) ∝ exp(-theta k), ``theta`` in [0, inf]; one uniform."""
    return truncated_geometric_quantile(rng.random(), theta, n)


@kernel
def gamma_log(rng, shape):
    """Draw the logarithm of a Gamma(shape, 1) variate; right for shapes as small as 1e-300.

    For shape < 1: Gamma(shape) is distributed as Gamma(shape + 1) U^(1/shape), which underflows unless
    taken in logarithms. Shape 0 gives minus infinity.
    """
    if shape >= 1.0:
        return np.log(rng.standard_gamma(shape))
    boosted = np.log(rng.standard_gamma(shape + 1.0))
    if shape == 0.0:
        return -np.inf
    return boosted - rng.standard_exponential() / shape


@kernel
def log_dirichlet(rng, alpha, out):
    """Fill ``out`` with the logarithms of a Dirichlet(alpha) draw.

    Right for any positive alpha, however small; entries with alpha 0 get minus infinity.
    """
    largest = -np.inf
    for i in range(alpha.size):
        out[i] = gamma_log(rng, alpha[i])
        largest = max(largest, out[i])
    total = 0.0
    for i in range(alpha.size):
        total += np.exp(out[i] - largest)
    shift = largest + np.log(total)
    for i in range(alpha.size):
        out[i] -= shift


@kernel
def dirichlet(rng, alpha, out):
    """Fill ``out`` with a Dirichlet(alpha) draw; weights below 1e-308 become zero."""
    log_dirichlet(rng, alpha, out)
    for i in range(alpha.size):
        out[i] = np.exp(out[i])


@kernel
def von_mises_fisher_gap(rng, d, kappa):
    """Draw 1 - m'x for x von Mises–Fisher around m in ``d`` dimensions, d >= 2.

    Wood's (1994) rejection of the cosine, written in one minus it so that nothing cancels when kappa is
    large: valid for kappa from 0 to 1e8 and beyond.
    """
    half = 0.5 * (d - 1)
    b = (d - 1) / (np.hypot(2.0 * kappa, d - 1.0) + 2.0 * kappa)
    gap = 2.0 * b / (1.0 + b)  # 1 - x0, where x0 = (1-b)/(1+b) is the mode of the envelope
    x0 = 1.0 - gap
    log_one_minus_x0_squared = np.log(4.0 * b) - 2.0 * np.log1p(b)
    while True:
        g1 = rng.standard_gamma(half)
        g2 = rng.standard_gamma(half)
        if g1 + g2 == 0.0:
            continue
        t = 2.0 * b * g1 / (g2 + b * g1)  # 1 - W with Z = g1 / (g1 + g2) ~ Beta(half, half)
        log_ratio = kappa * (gap - t) + (d - 1) * (np.log(gap + x0 * t) - log_one_minus_x0_squared)
        if log_ratio >= -rng.standard_exponential():
            return t


@kernel
def shuffle(rng, values):
    """Put ``values`` into uniformly random order in place (Fisher–Yates)."""
    for i in range(values.size - 1, 0, -1):
        j = np.int64(rng.random() * (i + 1))  # five times faster than rng.integers, exact to 2^-53
        values[i], values[j] = values[j], values[i]
