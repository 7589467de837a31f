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
