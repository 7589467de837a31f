"""Concentrations as people write them: a number, or a Gamma prior that learns it."""

from __future__ import annotations

import re

from permix.errors import Argument, DataError
from permix.partitions.priors import Gamma


def concentration_of(text: str) -> float | Gamma:
    """Read a concentration: a number, or gamma(SHAPE,RATE).

    Examples
    --------
    >>> concentration_of("0.5"), concentration_of("gamma(2, 1)")
    (0.5, Gamma(shape=2.0, rate=1.0))
    """
    number = _number(text)
    if number is not None:
        return number
    found = re.fullmatch(r"\s*gamma\s*\(([^,()]+),([^,()]+)\)\s*", text, flags=re.IGNORECASE)
    numbers = [] if found is None else [_number(part) for part in found.groups()]
    if not numbers or None in numbers:
        raise DataError(
            Argument("concentration", text),
            " must be a number or gamma(SHAPE,RATE), such as 'gamma(1,1)'",
        )
    return Gamma(*(value for value in numbers if value is not None))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
