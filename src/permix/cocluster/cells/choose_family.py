"""Which family the cells of a matrix get where none is asked for: levels, or numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

# Numbers with decimals that have more different values than this are measurements, no levels.
MANY_LEVELS = 50
# A small matrix has fewer: it is judged by its share of different values, if there are more than this. Half
# stars from 0.5 to 5 are ten levels.
FEW_LEVELS = 10


def family_for(values: npt.NDArray[Any]) -> str:
    """Return the name of the family that cells look like.

    Text and whole numbers are levels, as answers and ratings are. Other numbers are so where there are few
    different ones, at most 50, or in a small matrix at most half as many as there are cells; else they are
    numbers, whose order and distance count.

    Examples
    --------
    >>> stars, measured = np.arange(100) % 10 / 2.0, np.arange(100) / 7.0
    >>> family_for(stars), family_for(measured), family_for(np.arange(100.0))
    ('categorical', 'gaussian', 'categorical')
    """
    if values.dtype.kind not in "iuf" or not np.any(values != np.floor(values)):
        return "categorical"
    most = min(MANY_LEVELS, max(FEW_LEVELS, len(values) // 2))
    return "gaussian" if len(np.unique(values)) > most else "categorical"
