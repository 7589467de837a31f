# mypy: ignore-errors
"""ln Z of a distance as a function of the decay, from a table: one form for all distances and sizes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.kernels.jit import kernel

# What a table tells of a decay: ln Z, mean and variance of the distance, and the standard error of ln Z.
LOG_Z, MEAN, VARIANCE, ERROR = range(4)


class DistanceTable(NamedTuple):
    """Chebyshev series between the knots; beyond the last, all but the nearest rankings are negligible."""

    knots: np.ndarray  # (P + 1,): decays from 0, ascending
    series: np.ndarray  # (4, P, terms): coefficients of what LOG_Z, MEAN, VARIANCE and ERROR name
    nearest: np.ndarray  # (2,): how many rankings are nearest to the center, and how far away they are


@kernel
def table_value(table, what, decay):
    """Return ln Z(decay), the mean or the variance of the distance, or the standard error of ln Z."""
    knots, last = table.knots, table.knots.size - 1
    if decay >= knots[last]:
        step = table.nearest[1]
        rest = table.nearest[0] * math.exp(-decay * step)
        if what == ERROR:
            return 0.0
        return math.log1p(rest) if what == LOG_Z else rest * step**what / (1.0 + rest)
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) >> 1
        if knots[middle] <= decay:
            low = middle
        else:
            high = middle
    x = (2.0 * decay - knots[low] - knots[low + 1]) / (knots[low + 1] - knots[low])
    one, two = 0.0, 0.0  # Clenshaw's sum
    for term in range(table.series.shape[2] - 1, 0, -1):
        one, two = 2.0 * x * one - two + table.series[what, low, term], one
    return x * one - two + table.series[what, low, 0]
