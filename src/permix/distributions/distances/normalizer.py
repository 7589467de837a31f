"""The sum over all rankings of exp(-λ d(ranking, center)), and the moments of d, for any λ at once.

For compiled code: ``normalizer("footrule", n).table`` is a :class:`DistanceTable`, the same type for all
distances, and ``table_value(table, LOG_Z, decay)`` of ``table_jit`` reads it in some fifty nanoseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from permix.data.labels import Array
from permix.distributions.distances.log_sums import log_sums
from permix.distributions.distances.names import code_of, largest_distance
from permix.distributions.distances.table_jit import (
    ERROR,
    LOG_Z,
    MEAN,
    VARIANCE,
    DistanceTable,
    table_value,
)

# Terms of a series, and how small its last ones are against its largest (or one).
TERMS = 24
PRECISION = 1e-14


class Normalizer:
    """ln Z(λ) of a distance over so many items, with the mean and the variance of the distance.

    Make it with :func:`normalizer`, which keeps those that were made.

    Attributes
    ----------
    distance, n_items, code
        The distance, as its name and its number in compiled code.
    table : DistanceTable
        For ``table_value`` in compiled code.
    error : float
        The largest standard error of ln Z over all λ; 0 where it is exact.
    largest : int
        The largest distance of two rankings.

    Examples
    --------
    >>> sums = normalizer("footrule", 10)
    >>> round(sums.log_z(0.0), 3), round(sums.mean_distance(0.0), 3), sums.error
    (15.104, 33.0, 0.0)
    >>> decay = sums.decay_at(20.0)
    >>> round(sums.mean_distance(decay), 9)
    20.0
    """

    def __init__(self, distance: str, n_items: int, table: DistanceTable) -> None:
        self.distance, self.n_items, self.table = distance, n_items, table
        self.code = code_of(distance)
        self.largest = largest_distance(distance, n_items)
        self.error = float(np.abs(table.series[ERROR]).sum(axis=1).max(initial=0.0))

    def log_z(self, decay: float) -> float:
        """Return ln Z(λ)."""
        return float(table_value.py_func(self.table, LOG_Z, decay))

    def mean_distance(self, decay: float) -> float:
        """Return the mean distance from the center, -d ln Z / dλ."""
        return float(table_value.py_func(self.table, MEAN, decay))

    def variance(self, decay: float) -> float:
        """Return the variance of the distance from the center, d² ln Z / dλ²."""
        return float(table_value.py_func(self.table, VARIANCE, decay))

    def error_at(self, decay: float) -> float:
        """Return the standard error of ln Z(λ), 0 where it is exact."""
        return float(table_value.py_func(self.table, ERROR, decay))

    def values(self, decays: Array) -> Array:
        """Return ln Z, the mean and the variance of the distance for each decay, (3, decays).

        >>> normalizer("cayley", 3).values(np.array([0.0, 1.0])).shape
        (3, 2)
        """
        knots, series, nearest = self.table.knots, self.table.series[:ERROR], self.table.nearest
        low = np.clip(np.searchsorted(knots, decays, side="right") - 1, 0, len(knots) - 2)
        x = np.clip((2.0 * decays - knots[low] - knots[low + 1]) / (knots[low + 1] - knots[low]), -1.0, 1.0)
        terms = np.cos(np.multiply.outer(np.arccos(x), np.arange(series.shape[2])))
        found = np.einsum("wdt,dt->wd", series[:, low], terms)
        far = decays >= knots[-1]
        if far.any():
            rest = nearest[0] * np.exp(-decays[far] * nearest[1])
            found[:, far] = np.log1p(rest), *(rest * nearest[1] ** power / (1.0 + rest) for power in (1, 2))
        return np.asarray(found)

    def decays_at(self, means: Array, starts: Array, most: float = math.inf) -> Array:
        """Return what :meth:`decay_at` returns for each mean; soon, where a start is near to it."""
        decays = np.maximum(starts, 1e-300)
        for _ in range(6):
            _, mean, variance = self.values(decays)
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = mean / variance * np.log(mean / means)
            following = decays + steps
            good = np.abs(steps) <= 1e-12 * decays
            if good.all():
                break
            decays = np.where((following > 0.0) & (following < most), following, decays)
        at = (means > 0.0) & good & (decays < most)
        pairs = zip(at.tolist(), decays.tolist(), means.tolist(), strict=True)
        return np.array([decay if known else self.decay_at(mean, most) for known, decay, mean in pairs])

    def decay_at(self, mean: float, most: float = math.inf) -> float:
        """Return the λ from 0 to ``most`` with this mean distance, or the nearest."""
        if mean >= self.mean_distance(0.0):
            return 0.0
        if mean <= 0.0 or mean <= self.mean_distance(most):
            return most
        low, high = 0.0, min(most, 1.0)
        while self.mean_distance(high) > mean:
            low, high = high, min(2.0 * high, most)
        decay = 0.5 * (low + high)
        for _ in range(200):
            rest = self.mean_distance(decay) - mean
            low, high = (decay, high) if rest > 0.0 else (low, decay)
            # In the logarithm of the mean, which falls in a straight line where the decay is large.
            value = rest + mean
            step = value / self.variance(decay) * math.log(value / mean) if value > 0.0 else math.inf
            following = decay + step if low < decay + step < high else 0.5 * (low + high)
            if abs(following - decay) <= 1e-15 * decay:
                return following
            decay = following
        return decay


@lru_cache(maxsize=32)
def normalizer(distance: str, n_items: int) -> Normalizer:
    """Return ln Z and the moments of a distance over so many items, from a table made at the first call."""
    code_of(distance)
    return Normalizer(
        distance, n_items, _table(distance, n_items, lambda at: log_sums(distance, n_items, at))
    )


def nearest_rankings(distance: str, n_items: int) -> tuple[int, int]:
    """Return how many rankings are nearest to a center, without itself, and how far away they are."""
    n = n_items
    count = {
        "kendall": n - 1,
        "footrule": n - 1,
        "spearman": n - 1,
        "cayley": n * (n - 1) // 2,
        "hamming": n * (n - 1) // 2,
        "ulam": (n - 1) ** 2,
    }[distance]
    return count, 2 if distance in ("footrule", "spearman", "hamming") else 1


def _table(distance: str, n_items: int, log_sums_at: Callable[[Array], Array]) -> DistanceTable:
    """Fit series to ln Z between knots, halving where they are not precise."""
    count, step = nearest_rankings(distance, n_items)
    # Beyond, the others have a share below 1e-16 of those nearest.
    end = (37.0 + 2.0 * math.log(n_items + 1.0)) / step
    # About how far from zero, in the complex plane, Z vanishes first; wide intervals make good derivatives.
    scale = {"kendall": 4.0 / n_items, "footrule": 4.0 / n_items, "spearman": 12.0 / n_items**2}.get(
        distance, 1.0
    )
    edges = [0.0, scale]
    while edges[-1] < end:
        edges.append(edges[-1] + min(edges[-1], 2.0))
    pending = np.stack([edges[:-1], edges[1:]], axis=1)
    # Points of Chebyshev, and the matrix from values there to coefficients.
    angles = math.pi * (np.arange(TERMS) + 0.5) / TERMS
    to_series = 2.0 / TERMS * np.cos(np.multiply.outer(np.arange(TERMS), angles))
    to_series[0] *= 0.5
    done: list[tuple[float, float, Array]] = []
    while len(pending):
        middle, half = pending.mean(axis=1), 0.5 * np.diff(pending, axis=1)[:, 0]
        values = log_sums_at(middle[:, None] + half[:, None] * np.cos(angles))
        series = values @ to_series.T
        rest = np.abs(series[:, -3:]).max(axis=1) / np.maximum(np.abs(series).max(axis=1), 1.0)
        # Rounding adds up in sums of n terms; halving would not make it less.
        good = (rest <= PRECISION * max(1.0, n_items / 50)) | (half < 0.02 * (scale + pending[:, 0]))
        done += [(*ends, found) for ends, found in zip(pending[good].tolist(), series[good], strict=True)]
        pending = np.concatenate(
            [
                np.stack([pending[~good, 0], middle[~good]], axis=1),
                np.stack([middle[~good], pending[~good, 1]], axis=1),
            ]
        )
    done.sort(key=lambda each: each[0])
    knots = np.array([each[0] for each in done] + [done[-1][1]])
    return DistanceTable(
        knots,
        _with_derivatives(knots, np.array([each[2] for each in done])),
        np.array([float(count), float(step)]),
    )


def _with_derivatives(knots: Array, series: Array) -> Array:
    """Return series of ln Z, of the mean and variance of the distance, and of an error of nothing."""
    half = 0.5 * np.diff(knots)[:, None]
    out = np.zeros((4, *series.shape))
    out[LOG_Z] = series
    slope = np.polynomial.chebyshev.chebder(series, axis=1)
    out[MEAN, :, :-1] = -slope / half
    out[VARIANCE, :, :-2] = np.polynomial.chebyshev.chebder(slope, axis=1) / half**2
    return out
