# mypy: ignore-errors
"""The predictive density of angle-based models, direction integrated out, concentration on nodes."""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.angle.bessel_jit import log_sphere_moment
from permix.kernels.jit import kernel


@kernel
def predictive_rows(n_items, eta, length, nodes, probabilities, out):
    """Fill ``out`` with ln Σ_κ p(κ) C(κ) exp(M(ηκ) - M(βκ)) for rows with η = ‖y + β m‖.

    The integral over θ of C(κ) exp(κ θ'y) under von Mises–Fisher(m, βκ) is closed (equation 25).
    """
    order = 0.5 * (n_items - 3.0)
    log_factorial = math.lgamma(n_items + 1.0)
    base = np.empty(nodes.size)
    for i in range(nodes.size):
        base[i] = -np.inf
        if probabilities[i] > 0.0:
            base[i] = math.log(probabilities[i]) - log_sphere_moment(order, nodes[i])
            base[i] -= log_sphere_moment(order, length * nodes[i])
    for row in range(eta.size):
        largest = -np.inf
        total = 0.0
        for i in range(nodes.size):
            if base[i] == -np.inf:
                continue
            value = base[i] + log_sphere_moment(order, eta[row] * nodes[i])
            if value > largest:
                total = total * math.exp(largest - value) + 1.0
                largest = value
            else:
                total += math.exp(value - largest)
        out[row] = largest + math.log(total) - log_factorial
