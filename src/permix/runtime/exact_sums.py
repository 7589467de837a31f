"""Sums that do not depend on the order of their terms, nor on how data are divided.

Terms are rounded to a grid that is so fine, and no finer, that every partial sum of them is a double: then
additions are exact, and so associative. The grid follows from the number of agents and the largest term,
which are the same however data are divided.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

# Bits of a double, less one for the sign of rounding.
BITS = 52


def grid_of(n_agents: int, largest: float) -> float:
    """Return the reciprocal of the distance of grid points, for terms up to ``largest`` of all agents."""
    whole = math.ceil(math.log2(max(n_agents, 2))) + math.ceil(math.log2(max(largest, 2.0**-60)))
    return 2.0 ** (BITS - whole)


def on_grid(terms: npt.NDArray[np.float64], grid: float) -> npt.NDArray[np.float64]:
    """Return terms, one for an agent, rounded to the grid."""
    return np.asarray(np.rint(terms * grid) / grid)


def rounders_of(*grids: float) -> npt.NDArray[np.float64]:
    """Return what compiled code adds to a term and takes off again, which rounds it to each of the grids.

    Doubles of that size have just the distance of grid points.
    """
    return 1.5 * 2.0**BITS / np.array(grids)
