"""The names of the distances, and their numbers in compiled code."""

from __future__ import annotations

from permix.errors import ParameterError
from permix.kernels.distances import METRICS

# In the order of their numbers: kendall 0, footrule 1, spearman 2, cayley 3, hamming 4, ulam 5.
DISTANCES = tuple(METRICS)


def code_of(distance: str) -> int:
    """Return the number of a distance in compiled code.

    Examples
    --------
    >>> [code_of(name) for name in DISTANCES]
    [0, 1, 2, 3, 4, 5]
    """
    if distance not in METRICS:
        raise ParameterError("distance", distance, f"one of {', '.join(DISTANCES)}")
    return METRICS[distance]


def largest_distance(distance: str, n_items: int) -> int:
    """Return the largest distance between two rankings of so many items.

    Examples
    --------
    >>> [largest_distance(name, 4) for name in DISTANCES]
    [6, 8, 20, 3, 4, 3]
    """
    n = n_items
    return {
        "kendall": n * (n - 1) // 2,
        "footrule": n * n // 2,
        "spearman": n * (n * n - 1) // 3,
        "cayley": n - 1,
        "hamming": n if n > 1 else 0,
        "ulam": n - 1,
    }[distance]
