# mypy: ignore-errors
"""Distances of two rank vectors, one function for all six."""

from __future__ import annotations

from permix.kernels.distances import distance_between
from permix.kernels.jit import kernel


@kernel
def distance(code, ranks_a, ranks_b, scratch):
    """Return the distance of two full rankings; ``ranks_a[item]`` is the rank of an item, from 0.

    ``code`` is that of :func:`permix.distributions.distances.names.code_of`; all arrays are int64, and
    ``scratch`` has two entries per item.
    """
    n = ranks_a.size
    for item in range(n):
        scratch[n + ranks_a[item]] = item
    return distance_between(code, scratch[n : 2 * n], ranks_a, ranks_b, scratch[:n])
