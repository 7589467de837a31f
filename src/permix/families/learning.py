"""Hyper-parameters that are learned: weak priors of them, and draws given the groups.

Where a user leaves hyper-parameters open, chains draw them anew after every sweep, each given all others and
the partition, by slice sampling (Neal 2003) on the marginal likelihood of the groups. Their logarithms have
normal priors, cut off far away, that are measured by the data's own scales: no units enter.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from permix.families.base import Family

FloatArray = npt.NDArray[np.float64]
LogDensity = Callable[[FloatArray], FloatArray]
# A slice is looked for in at most so many steps of this width, in logarithms.
WIDTH, MAX_STEPS = 1.0, 8


@dataclasses.dataclass(frozen=True)
class LogNormal:
    """Weak prior of a positive hyper-parameter: a normal logarithm, cut off at ``low`` and ``high``."""

    median: float
    deviation: float
    low: float
    high: float

    def log_density(self, logs: FloatArray) -> FloatArray:
        """Log density of logarithms, up to the constant that the cut-off makes."""
        scaled = (logs - math.log(self.median)) / self.deviation
        value = -0.5 * scaled * scaled - math.log(self.deviation * math.sqrt(2.0 * math.pi))
        inside = (logs >= math.log(self.low)) & (logs <= math.log(self.high))
        return np.where(inside, value, -np.inf)

    def within(self, values: Any) -> Any:
        """Return values that are inside the cut-offs, whatever rounding makes of them."""
        return np.clip(values, self.low, self.high)

    def log_density_of(self, log: float) -> float:
        """Do the same for one number, which is what a chain asks for most."""
        if not math.log(self.low) <= log <= math.log(self.high):
            return -math.inf
        scaled = (log - math.log(self.median)) / self.deviation
        return -0.5 * scaled * scaled - math.log(self.deviation * math.sqrt(2.0 * math.pi))


class Learning(abc.ABC):
    """What a chain learns about the hyper-parameters of a family."""

    #: The fields of the family that are learned.
    names: tuple[str, ...]

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator, family: Any, stats: Any, n_clusters: int) -> Any:
        """Return the family with hyper-parameters drawn given the groups that ``stats`` hold."""

    @abc.abstractmethod
    def log_prior(self, family: Any) -> float:
        """Log prior density of the logarithms of what is learned."""

    def values(self, family: Family) -> dict[str, Any]:
        """Return the learned hyper-parameters of a family as numbers and vectors."""
        return {name: family.learnable[name] for name in self.names}


def learned_in(family: Family, draws: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Draws of the hyper-parameters of a family that were learned, by name."""
    return {name: draws[name] for name in family.learnable if name in draws}


def with_means(family: Family, draws: Mapping[str, Any]) -> Family:
    """Return the family with the posterior means of what was learned."""
    means = {name: array.mean(axis=(0, 1)) for name, array in learned_in(family, draws).items()}
    return family.with_values({name: m if np.ndim(m) else float(m) for name, m in means.items()})


def one_slice(rng: np.random.Generator, value: float, log_density: Callable[[float], float]) -> float:
    """Draw one positive number by a slice step on its logarithm."""
    return math.exp(slice_number(rng, math.log(value), log_density))


def slice_number(rng: np.random.Generator, x: float, log_density: Callable[[float], float]) -> float:
    """Draw a number from a density that a slice step leaves invariant (Neal 2003, figures 3 and 5)."""
    level = log_density(x) - rng.standard_exponential()
    left = x - WIDTH * rng.random()
    right = left + WIDTH
    to_left = int(MAX_STEPS * rng.random())
    to_right = MAX_STEPS - 1 - to_left
    while to_left > 0 and log_density(left) > level:
        left -= WIDTH
        to_left -= 1
    while to_right > 0 and log_density(right) > level:
        right += WIDTH
        to_right -= 1
    while True:
        proposed = left + (right - left) * rng.random()
        # The present point is in the slice, whatever rounding makes of it.
        if proposed == x or log_density(proposed) > level:
            return proposed
        if proposed < x:
            left = proposed
        else:
            right = proposed


def slice_step(rng: np.random.Generator, x: FloatArray, log_density: LogDensity) -> FloatArray:
    """Do the same for numbers that are independent of each other; ``log_density`` gives that of each."""
    level = log_density(x) - rng.standard_exponential(len(x))
    left = x - WIDTH * rng.random(len(x))
    right = left + WIDTH
    to_left = np.floor(MAX_STEPS * rng.random(len(x)))
    to_right = MAX_STEPS - 1 - to_left
    for end, steps, width in ((left, to_left, -WIDTH), (right, to_right, WIDTH)):
        while True:
            going = (steps > 0) & (log_density(end) > level)
            if not going.any():
                break
            end[going] += width
            steps[going] -= 1
    found = x.copy()
    pending = np.ones(len(x), np.bool_)
    while pending.any():
        proposed = np.where(pending, left + (right - left) * rng.random(len(x)), found)
        inside = log_density(proposed) > level
        # The present point is in the slice: a proposal that rounding takes for it ends the search.
        found = np.where(pending & inside, proposed, found)
        pending &= ~inside & (proposed != x)
        left = np.where(pending & (proposed < x), proposed, left)
        right = np.where(pending & (proposed > x), proposed, right)
    return found
