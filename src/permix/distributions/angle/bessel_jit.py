# mypy: ignore-errors
"""Moments of the uniform distribution on a sphere, by modified Bessel functions I_ν of the first kind.

Right to about 1e-12 for orders from -1/2 to 10⁴ and beyond and for x from 1e-8 to 1e8, where
``scipy.special.ive`` has long underflowed. One expansion serves all arguments: Debye's, uniform in x for
large orders,

    ln I_ν(x) = s + ν ln(x / (ν + s)) - ln(2π s) / 2 + Σ_k D_k(ν²/s²) / s^k,   s = √(ν² + x²),

with polynomials D_k. Its derivatives are written so that nothing cancels, neither for x far below ν nor far
above. Small orders are reached from an order of ``LEAST_ORDER`` or more by the recurrence
I_{ν-1} = I_{ν+1} + (2ν/x) I_ν downwards, which is stable.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from permix.kernels.jit import kernel, ufunc

# At this order the last term kept is below the rounding of the first.
LEAST_ORDER = 16.0
N_TERMS = 11
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Logarithms of so many ratios are taken at once: their product cannot underflow for x above 1e-30.
_RATIOS_PER_LOGARITHM = 8


def _debye_coefficients(n_terms):
    """Return row k-1 with the coefficients of D_k in powers of q = ν²/s², exact until they are rounded.

    The classical polynomials u_k(p), p = √q, obey u_{k+1} = p²(1-p²) u_k'/2 + ∫₀ᵖ (1-5r²) u_k(r) dr / 8; the
    logarithm of Σ u_k/ν^k has the terms d_k = u_k - Σ_{j<k} (j/k) d_j u_{k-j}, and d_k = p^k D_k(p²).
    """
    u = [{0: Fraction(1)}]
    for _ in range(n_terms):
        following: dict[int, Fraction] = {}
        for power, c in u[-1].items():
            for at, value in (
                (power + 1, c * power / 2 + c / (8 * (power + 1))),
                (power + 3, -c * power / 2 - 5 * c / (8 * (power + 3))),
            ):
                following[at] = following.get(at, Fraction(0)) + value
        u.append(following)
    d: list[dict[int, Fraction]] = [{}]
    for k in range(1, n_terms + 1):
        row = dict(u[k])
        for j in range(1, k):
            for left, a in d[j].items():
                for right, b in u[k - j].items():
                    row[left + right] = row.get(left + right, Fraction(0)) - Fraction(j, k) * a * b
        d.append(row)
    table = np.zeros((n_terms, n_terms + 1))
    for k in range(1, n_terms + 1):
        for power, value in d[k].items():
            table[k - 1, (power - k) // 2] = float(value)
    return table


_DEBYE = _debye_coefficients(N_TERMS)


@kernel
def sphere_moments(order, x):
    """Return M = ln E[exp(x u₁)] for u uniform on the unit sphere in 2ν + 2 dimensions, M' and M''.

    M = ln of Γ(ν+1) (2/x)^ν I_ν(x), so that M' is A = I_{ν+1}(x) / I_ν(x), for ν >= -1/2 and x >= 0.
    """
    if not (order >= -0.5 and x >= 0.0 and x < np.inf):
        return np.nan, np.nan, np.nan
    if x == 0.0:
        return 0.0, 0.0, 0.5 / (order + 1.0)
    steps = max(0, math.ceil(LEAST_ORDER - order))
    high = order + steps
    s = float(np.hypot(high, x))
    q = (high / s) ** 2
    # Σ s^-k D_k, and the same with coefficients multiplied by k + 2j once and twice: what d/dx brings down.
    series = first = second = 0.0
    scale = 1.0
    for k in range(1, N_TERMS + 1):
        scale /= s
        a = b = c = 0.0
        for j in range(k, -1, -1):
            value = float(_DEBYE[k - 1, j])  # arithmetic of Python numbers is quicker than of NumPy scalars
            weight = k + 2.0 * j
            a = a * q + value
            b = b * q + value * weight
            c = c * q + value * weight * weight
        series += scale * a
        first += scale * b
        second += scale * c
    log_i = s + high * math.log(x / (high + s)) - _HALF_LOG_TWO_PI - 0.5 * math.log(s) + series
    r = x / s
    ratio = x / (s + high) - r / s * (0.5 + first)
    slope = high / (s * (s + high)) + ((r * r - q) * (0.5 + first) + r * r * second) / (s * s)
    product = 1.0
    for step in range(steps - 1, -1, -1):
        # A_{μ} = 1 / (2(μ+1)/x + A_{μ+1}) at μ = ν + step, and its derivative.
        gap = 2.0 * (order + step + 1.0) / x
        ratio = 1.0 / (gap + ratio)
        slope = ratio * ratio * (gap / x - slope)
        product *= ratio
        if step % _RATIOS_PER_LOGARITHM == 0:
            log_i -= math.log(product)
            product = 1.0
    z = 0.25 * x * x
    if z > order + 1.0:
        return math.lgamma(order + 1.0) + order * math.log(2.0 / x) + log_i, ratio, slope
    # The logarithms would cancel: ln Σ_k z^k / (k! (ν+1)_k), relatively exact near ln 1.
    total, term, k = 0.0, 1.0, 0.0
    while term > 1e-18 * total or k < 1.0:
        k += 1.0
        term *= z / (k * (order + k))
        total += term
    return math.log1p(total), ratio, slope


@ufunc
def log_sphere_moment(order, x):
    """Return M of :func:`sphere_moments` elementwise."""
    return sphere_moments(order, x)[0]


@ufunc
def bessel_ratio(order, x):
    """Return I_{ν+1}(x) / I_ν(x) elementwise: the mean of θ'x under a von Mises–Fisher distribution."""
    return sphere_moments(order, x)[1]
