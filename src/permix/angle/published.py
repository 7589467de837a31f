"""What the paper printed where permix does otherwise (Xu, Alvo & Yu 2018), compiled when asked for.

``bound="published"`` finds the Gamma distribution of a concentration by bounds of the evidence bound
(equations 7 to 11), and ``score_samples(method="second-order")`` expands the predictive density (section
3.2).
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np

from permix.angle.components import EMPTY, AnglePrior
from permix.angle.published_jit import gamma_mode, variational_fixed_point
from permix.data.labels import Array
from permix.distributions.angle import concentration_jit as kernels
from permix.distributions.angle.bessel_jit import bessel, log_sphere_moment

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
        kappa = kernels.newton_concentration(order, min(float(np.linalg.norm(vector)) / mass, 0.999))
        start = float(kappa) if kappa > 0.0 else start
    known = (prior.strength, prior.shape, prior.rate)
    shape, rate, _ = variational_fixed_point(order, mass, length, *known, start, FIXED_POINT_STEPS)
    return float(shape), float(rate)


def second_order_density(n_items: int, eta: Array, length: float, shape: float, rate: float) -> Array:
    """Return ln q(y | Y) by the expansion of ln l(κ) in κ and ln κ about κ̄ (section 3.2, equations 25 to 28).

    With ln l(κ) + ν ln κ = M(ηκ) - M(βκ) - M(κ) up to constants, the expansion r, s of the paper follows from
    first and second derivatives of the right-hand side.
    """
    order = 0.5 * (n_items - 3.0)
    kappa = gamma_mode(shape, rate)
    out = np.empty(len(eta))
    for row, e in enumerate(eta):
        value = -log_sphere_moment(order, kappa) - log_sphere_moment(order, length * kappa)
        value += log_sphere_moment(order, e * kappa)
        _, a1, s1 = bessel(order, e * kappa)
        _, a2, s2 = bessel(order, length * kappa)
        _, a3, s3 = bessel(order, kappa)
        first = e * a1 - length * a2 - a3
        second = e * e * s1 - length * length * s2 - s3
        # value(κ) ≈ value - r (κ - κ̄) + s (ln κ - ln κ̄): equal first and second derivatives at κ̄.
        s = -second * kappa * kappa
        r = s / kappa - first
        integral = lgamma(shape + s) - lgamma(shape) + shape * log(rate) - (shape + s) * log(rate + r)
        out[row] = -lgamma(n_items + 1.0) + value + r * kappa - s * log(kappa) + integral
    return out
