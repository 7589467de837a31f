"""Intervals that hold the mean shown with them.

Of a quantity with one long tail, such as the number of groups of which nearly all draws have two, the mean
may lie outside the points that leave out 5 % on either side. An interval is widened to the mean then: it
holds at least as much of the posterior as it says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Sums of weights that should reach a level are off by rounding.
SLACK = 1e-12


def holding(mean: Any, low: Any, high: Any) -> tuple[Array, Array]:
    """Return the ends of an interval, widened to the mean where it lies outside.

    Examples
    --------
    >>> [float(end) for end in holding(2.1, 2.0, 2.0)]
    [2.0, 2.1]
    """
    return np.minimum(low, mean), np.maximum(high, mean)


def ranks_holding(mean: Any, low: Any, high: Any) -> tuple[Array, Array]:
    """Return the same for ranks, which are whole numbers."""
    ends = holding(mean, low, high)
    return np.floor(ends[0] + 1e-9).astype(np.int64), np.ceil(ends[1] - 1e-9).astype(np.int64)


def weighted_quantiles(values: Array, weights: Array, levels: tuple[float, ...]) -> Array:
    """Return the smallest value of each row whose cumulated weight reaches each level, (levels, rows)."""
    out = np.empty((len(levels), len(values)), dtype=values.dtype)
    step = max(1, 2**22 // max(values.shape[1], 1))
    for first in range(0, len(values), step):
        block = values[first : first + step]
        order = np.argsort(block, axis=1, kind="stable")
        ascending = np.take_along_axis(block, order, axis=1)
        cumulated = np.cumsum(weights[order], axis=1)
        for at, level in enumerate(levels):
            # Rounding must not push a level beyond the last value, nor past one that it just reaches.
            place = np.argmax(cumulated >= level * cumulated[:, -1:] * (1.0 - 1e-12), axis=1)
            out[at, first : first + step] = np.take_along_axis(ascending, place[:, None], axis=1)[:, 0]
    return out


def shortest_around(places: Array, ranks: Array, weights: Array, share: float) -> tuple[Array, Array]:
    """Return, for each row of ranks, the shortest interval that holds its place and a share of the weight.

    Where several are as short, the one with most weight. All are whole numbers from 0. An item that is at its
    place with the probability asked for has that place alone, whatever the rest of the draws say.

    Examples
    --------
    >>> ranks = np.array([[3] * 3 + [4] * 91 + [5] * 6])
    >>> low, high = shortest_around(np.array([4]), ranks, np.ones(100), 0.9)
    >>> low.tolist(), high.tolist()
    ([4], [4])
    """
    ends = np.empty((2, len(places)), dtype=np.int64)
    for row, place in enumerate(places.tolist()):
        up_to = np.cumsum(np.bincount(ranks[row], weights, max(int(ranks[row].max()), place) + 1))
        up_to = np.concatenate([[0.0], up_to / up_to[-1]])
        low = np.arange(place + 1)
        low = low[1.0 - up_to[low] >= share - SLACK]
        high = np.maximum(np.searchsorted(up_to[1:], up_to[low] + share - SLACK), place)
        best = np.lexsort((up_to[low] - up_to[high + 1], high - low))[0]
        ends[:, row] = low[best], high[best]
    return ends[0], ends[1]
