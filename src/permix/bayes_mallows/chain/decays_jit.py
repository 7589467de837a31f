# mypy: ignore-errors
"""The decay of a group given how far its members are from its center, by slice sampling.

p(λ | distances) ∝ λ^(shape - 1) e^(-rate λ) e^(-λ D) Z(λ)^(-n): D is the sum of the distances of n members,
and Z the sum over all rankings, from the table of the distance.
"""

from __future__ import annotations

import math

from permix.distributions.distances.table_jit import LOG_Z, table_value
from permix.kernels.jit import kernel

# Slices are widened in steps of this, in ln λ, and no decay is beyond these.
WIDTH, LEAST, MOST = 0.5, -80.0, 7.0


@kernel
def log_decay_density(t, total, size, shape, rate, table):
    """Return ln of the density of t = ln λ, up to a constant."""
    decay = math.exp(t)
    value = shape * t - (rate + total) * decay
    if size > 0:
        value -= size * table_value(table, LOG_Z, decay)
    return value


@kernel
def slice_decay(rng, decay, total, size, shape, rate, table):
    """Draw a decay anew, once (Neal 2003: stepping out, then shrinking)."""
    t = math.log(decay)
    level = log_decay_density(t, total, size, shape, rate, table) - rng.standard_exponential()
    width = WIDTH if size < 16 else max(4.0 / math.sqrt(size), 1e-3)
    low = t - width * rng.random()
    high = low + width
    while low > LEAST and log_decay_density(low, total, size, shape, rate, table) > level:
        low -= width
    while high < MOST and log_decay_density(high, total, size, shape, rate, table) > level:
        high += width
    low, high = max(low, LEAST), min(high, MOST)
    while True:
        new = low + (high - low) * rng.random()
        if log_decay_density(new, total, size, shape, rate, table) > level:
            return math.exp(new)
        if new < t:
            low = new
        else:
            high = new
        if high - low < 1e-15 * abs(t):
            return decay
