"""Slice sampling of one number, for hyper-parameters whose conditional can be computed but not drawn from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def slice_step(
    rng: np.random.Generator,
    log_density: Callable[[float], float],
    start: float,
    width: float,
    bounds: tuple[float, float],
) -> float:
    """Move ``start`` by a step that leaves a density within ``bounds`` invariant.

    Neal (2003), figures 3 and 5: a level below the density at the start, an interval of ``width`` about the
    start that is stepped out until both ends are below the level, and uniform draws that shrink it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = [0.5]
    >>> for _ in range(2000):
    ...     x.append(slice_step(rng, lambda x: -x, x[-1], 1.0, (0.0, np.inf)))
    >>> abs(float(np.mean(x)) - 1.0) < 0.1
    True
    """
    level = log_density(start) - rng.standard_exponential()
    low = start - width * rng.random()
    high = low + width
    while low > bounds[0] and log_density(low) > level:
        low -= width
    while high < bounds[1] and log_density(high) > level:
        high += width
    low, high = max(low, bounds[0]), min(high, bounds[1])
    while True:
        new = low + (high - low) * rng.random()
        if log_density(new) > level or new == start:
            return new
        if new < start:
            low = new
        else:
            high = new
