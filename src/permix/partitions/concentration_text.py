"""Concentrations as people write them: a number, or a Gamma prior that learns it."""

from __future__ import annotations

import re

from permix.errors import ParameterError
from permix.partitions.priors import Gamma


def concentration_of(text: str) -> float | Gamma:
    """Read a concentration: a number, or gamma(SHAPE,RATE).

    Examples
    --------
    >>> concentration_of("0.5"), concentration_of("gamma(2, 1)")
    (0.5, Gamma(shape=2.0, rate=1.0))
    """
    found = re.fullmatch(r"\s*gamma\s*\(([^,()]+),([^,()]+)\)\s*", text, flags=re.IGNORECASE)
    try:
        numbers = [float(part) for part in (found.groups() if found else (text,))]
    except ValueError:
        must = "a number or gamma(SHAPE,RATE), such as 'gamma(1,1)'"
        raise ParameterError("concentration", text, must) from None
    return Gamma(*numbers) if found else numbers[0]
