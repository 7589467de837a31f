"""How much people agree."""

from __future__ import annotations

import numpy as np

from permix.data.labels import Array

# Where the median majority is below this, people disagree about most pairs.
NARROW = 0.6


def median_majority(counts: Array) -> float:
    """Return the median, over pairs that somebody compares, of the share that the majority has.

    Examples
    --------
    >>> median_majority(np.array([[0, 3, 1], [1, 0, 2], [1, 2, 0]]))
    0.5
    """
    first, second = np.triu_indices(len(counts), 1)
    wins, losses = counts[first, second], counts[second, first]
    compared = wins + losses > 0
    if not compared.any():
        return float("nan")
    return float(np.median((np.maximum(wins, losses) / np.maximum(wins + losses, 1))[compared]))
