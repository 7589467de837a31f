"""What the paper printed where permix does otherwise (Xu, Alvo & Yu 2018).

``bound="published"`` finds the Gamma distribution of a concentration by bounds of the evidence bound
(equations 7 to 11), and ``score_samples(method="second-order")`` expands the predictive density (section
3.2).
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np

from permix.angle.components import EMPTY, AnglePrior
from permix.data.labels import Array
from permix.distributions.angle.bessel_jit import sphere_moments
from permix.distributions.angle.concentration import ConcentrationPosterior, newton_concentration

FIXED_POINT_STEPS = 400


def published_gamma(
    order: float, vector: Array, mass: float, length: float, prior: AnglePrior
) -> tuple[float, float]:
    """Return shape and rate of q(κ) at the fixed point of equations 9 to 11, given Σ p y and Σ p.

    It maximizes a bound of the evidence bound: it is too narrow, and a round of algorithm 2 may lower the
    evidence bound by a little.
    """
    # κ̄ to start from: maximum likelihood, or the prior mean for an empty component.
    start = prior.shape / prior.rate
    if mass > EMPTY:
        kappa = newton_concentration(order, min(float(np.linalg.norm(vector)) / mass, 0.999))
        start = kappa if kappa > 0.0 else start
    known = ConcentrationPosterior(order, mass, length, prior.strength, prior.shape, prior.rate)
    return variational_fixed_point(known, start, FIXED_POINT_STEPS)[:2]


def gamma_mode(shape: float, rate: float) -> float:
    """Return where the posterior of κ is expanded (equation 11)."""
    return (shape - 1.0) / rate if shape > 1.0 else shape / rate


def variational_update(known: ConcentrationPosterior, kappa: float) -> tuple[float, float]:
    """Return the shape and rate of q(κ) by bounds that touch at ``kappa`` (equations 9 and 10, corrected).

    a = a₀ + N ν + x (ln I)'(x) at x = β κ̄;  b = b₀ + N (ln I)'(κ̄) + β₀ (ln I)'(β₀ κ̄).
    """
    order, n, length, prior_length, shape, rate = known
    own, one, before = (sphere_moments(order, by * kappa)[1] for by in (length, 1.0, prior_length))
    shape += n * order + length * kappa * own + order
    rate += n * (one + order / kappa) + prior_length * before + order / kappa
    return shape, rate


def variational_fixed_point(
    known: ConcentrationPosterior, kappa: float, max_iter: int
) -> tuple[float, float, int]:
    """Repeat the update from κ̄ until it stays (algorithm 1, step 2); return shape, rate and iterations.

    The error of κ̄ shrinks by a constant factor a round, near 3/4 on typical data, so Aitken's extrapolation
    saves most rounds; what it settles on is the same fixed point.
    """
    n_iter = 0
    while True:
        first = gamma_mode(*variational_update(known, kappa))
        shape, rate = variational_update(known, first)
        second = gamma_mode(shape, rate)
        n_iter += 2
        if abs(second - first) <= 1e-11 * second or n_iter >= max_iter:
            return shape, rate, n_iter
        factor = (second - first) / (first - kappa)
        kappa = second
        if 0.0 < factor < 0.95:
            kappa = max(second + (second - first) * factor / (1.0 - factor), 0.1 * second)


def second_order_density(n_items: int, eta: Array, length: float, shape: float, rate: float) -> Array:
    """Return ln q(y | Y) by the expansion of ln l(κ) in κ and ln κ about κ̄ (section 3.2, equations 25 to 28).

    With ln l(κ) + ν ln κ = M(ηκ) - M(βκ) - M(κ) up to constants, the expansion r, s of the paper follows from
    first and second derivatives of the right-hand side.
    """
    order, kappa = 0.5 * (n_items - 3.0), gamma_mode(shape, rate)
    out = np.empty(len(eta))
    for row, e in enumerate(eta):
        m1, a1, s1 = sphere_moments(order, e * kappa)
        m2, a2, s2 = sphere_moments(order, length * kappa)
        m3, a3, s3 = sphere_moments(order, kappa)
        value = m1 - m2 - m3
        first = e * a1 - length * a2 - a3
        second = e * e * s1 - length * length * s2 - s3
        # value(κ) ≈ value - r (κ - κ̄) + s (ln κ - ln κ̄): equal first and second derivatives at κ̄.
        s = -second * kappa * kappa
        r = s / kappa - first
        integral = lgamma(shape + s) - lgamma(shape) + shape * log(rate) - (shape + s) * log(rate + r)
        out[row] = -lgamma(n_items + 1.0) + value + r * kappa - s * log(kappa) + integral
    return out
