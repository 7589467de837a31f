"""The Mondrian process as a prior over partitions of a matrix: draws, and what a budget means.

>>> import permix
>>> permix.mondrian.expected_blocks(budget=1.0)
4.0
>>> permix.mondrian.budget_for(n_blocks=9)
2.0
>>> permix.mondrian.sample(2.0, random_state=3)
MondrianTree(...)
"""

from __future__ import annotations

import math

import numpy as np

from permix.errors import DataError
from permix.partitions.mondrian import (
    UNIT_SQUARE,
    MondrianTree,
    Rectangle,
    check_budget,
    check_rectangle,
    sample_mondrian,
)
from permix.runtime.seeds import RandomState, generator

__all__ = ["MondrianTree", "budget_for", "expected_blocks", "sample"]


def __dir__() -> list[str]:
    return sorted(__all__)


def sample(
    budget: float = 1.0, rectangle: Rectangle = UNIT_SQUARE, random_state: RandomState = None
) -> MondrianTree:
    """Draw a partition of a rectangle from the Mondrian process.

    Parameters
    ----------
    budget : float
        Rate of cuts per unit of length; see :func:`expected_blocks`.
    rectangle : (row low, row high, column low, column high)
        The unit square by default.
    random_state : int, Generator, SeedSequence or None
        Source of randomness.

    Returns
    -------
    MondrianTree

    Examples
    --------
    >>> from permix import mondrian
    >>> tree = mondrian.sample(0.0)
    >>> tree.n_blocks
    1
    """
    return sample_mondrian(generator(random_state), budget, rectangle)


def expected_blocks(budget: float = 1.0, rectangle: Rectangle = UNIT_SQUARE) -> float:
    """Return the mean number of blocks: (1 + λ × height)(1 + λ × width).

    Examples
    --------
    >>> from permix import mondrian
    >>> mondrian.expected_blocks(0.5, (0, 2, 0, 1))
    3.0
    """
    budget = check_budget(budget)
    row_low, row_high, column_low, column_high = check_rectangle(rectangle)
    return (1.0 + budget * (row_high - row_low)) * (1.0 + budget * (column_high - column_low))


def budget_for(n_blocks: float) -> float:
    """Return the budget under which the unit square has this many blocks on average.

    Examples
    --------
    >>> from permix import mondrian
    >>> mondrian.budget_for(4)
    1.0
    """
    if not (isinstance(n_blocks, int | float | np.number) and 1 <= n_blocks < math.inf):
        raise DataError(f"n_blocks must be a number, at least 1, got {n_blocks!r}")
    return math.sqrt(n_blocks) - 1.0
