# mypy: ignore-errors
"""Rising factorials and the concentration of a Dirichlet process, in plain Python.

Samplers call these once a step; :mod:`permix.partitions.concentration_jit` compiles the first for its use.
"""

from __future__ import annotations

import math

# Smallest concentration the auxiliary-variable update may return: its logarithm must stay finite.
SMALLEST_CONCENTRATION = 1e-300


def log_rising_factorial(x, n):
    """Log of x (x + 1) ... (x + n - 1) for x > 0, to full relative precision even for huge x.

    The difference of two log-gamma values loses all digits when x >> n; here the first factors are
    multiplied out until Stirling's series is exact to rounding, and its leading terms are
    subtracted by hand.
    """
    total = 0.0
    x = float(x)
    left = float(n)
    while left > 0.0 and x < 16.0:
        total += math.log(x)
        x += 1.0
        left -= 1.0
    if left <= 0.0:
        return total
    end = x + left
    main = (x - 0.5) * math.log1p(left / x) - left + left * math.log(end)
    # The parts of both log-gammas beyond (x - 1/2) log x - x + log(2 pi) / 2.
    tails = 0.0
    for at, sign in ((x, -1.0), (end, 1.0)):
        square = 1.0 / (at * at)
        tails += sign * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / at
    return total + main + tails


def update_concentration(rng, concentration, shape, rate, n_clusters, n):
    """One auxiliary-variable update of a Dirichlet process' concentration under Gamma(shape, rate).

    Escobar & West (1995), equations 13 and 14: eta ~ Beta(alpha + 1, n), then alpha from a mixture
    of Gamma(shape + K, rate - log eta) and Gamma(shape + K - 1, rate - log eta). Leaves
    p(alpha | K, n) invariant.
    """
    if n > 0:
        # -log eta as log(1 + Y / X) with two Gamma draws: exact where eta would round to 0 or 1.
        rate += math.log1p(rng.standard_gamma(float(n)) / rng.standard_gamma(concentration + 1.0))
        first = shape + n_clusters - 1.0
        shape = shape + n_clusters if rng.random() * (first + n * rate) < first else first
    if shape >= 1.0:
        drawn = rng.standard_gamma(shape)
    else:  # Gamma(shape + 1) U^(1 / shape) underflows later
        drawn = math.exp(math.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape)
    return max(drawn / rate, SMALLEST_CONCENTRATION)
