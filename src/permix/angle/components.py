"""The parameters of a mixture of angle-based models, and their prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import lgamma
from typing import Literal, get_args

import numpy as np

from permix.angle.parameters import AngleParameters
from permix.data.labels import Array, Label
from permix.distributions.angle.angle import Angle
from permix.distributions.angle.bessel_jit import sphere_moments
from permix.distributions.angle.concentration import INTERPRETED, concentration_cap
from permix.distributions.angle.normalizers import log_sum
from permix.distributions.angle.scores import standard_scores
from permix.errors import DataError

UsedNormalizer = Literal["vmf", "exact", "balanced"]
# With more items exact sums are expensive (0.02 s each at 20 items): what needs thousands of them takes
# balanced ones on the way, and exact ones where they decide.
CHEAP_ITEMS = 12
# Below this share of one ranking a component is empty and stays where it was.
EMPTY = 1e-8


@dataclass(eq=False)
class AngleComponents:
    """Mixture Σ_k π_k P(y | θ_k, κ_k)."""

    items: tuple[Label, ...]
    weights: Array
    # Unit vectors with sum zero (K, items); the item with the smallest entry is preferred.
    directions: Array
    concentrations: Array
    normalizer: UsedNormalizer

    def __post_init__(self) -> None:
        weights, directions = np.array(self.weights, float), np.array(self.directions, float)
        concentrations = np.array(self.concentrations, float)
        k, t = len(weights), len(self.items)
        if weights.ndim != 1 or k == 0 or directions.shape != (k, t) or concentrations.shape != (k,):
            raise DataError("weights, directions and concentrations must have one row for each group")
        if not (weights.min() >= 0.0 and abs(weights.sum() - 1.0) < 1e-6):
            raise DataError("weights must be 0 or more and sum to one")
        if not (concentrations.min() >= 0.0 and concentrations.max() < np.inf):
            raise DataError("concentrations must be finite and 0 or more")
        squares, total = np.einsum("kt,kt->k", directions, directions), directions.sum(axis=1)
        if not (np.abs(squares - 1.0).max() < 1e-6 and np.abs(total).max() < 1e-6):
            raise DataError("directions must have length one and sum zero")
        if self.normalizer not in get_args(UsedNormalizer):
            raise DataError(f"normalizer={self.normalizer!r} must be 'vmf', 'exact' or 'balanced'")
        # Never written to: a change makes a new object, whose sums are found anew.
        self.weights, self.directions, self.concentrations = weights, directions, concentrations
        self.parameters = (weights, directions, concentrations)
        self.n_components, self.n_items = k, t
        self.tilts = concentrations[:, None] * directions  # κ_k θ_k (K, items)

    @cached_property
    def log_sums(self) -> Array:
        """Ln of the sum over all rankings, of every component."""
        return self.log_sums_by(self.normalizer)

    def log_sums_by(self, normalizer: UsedNormalizer) -> Array:
        """Return the same by some normalizer, whatever the one in use."""
        scores = standard_scores(self.n_items)
        return np.array([log_sum(normalizer, row, scores) for row in self.tilts])

    @property
    def offsets(self) -> Array:
        """Ln π_k - ln of the sum over all rankings."""
        with np.errstate(divide="ignore"):
            return np.log(self.weights) - self.log_sums

    @property
    def orders(self) -> Array:
        """Items of each component, most preferred first (K, items)."""
        return np.argsort(self.directions, axis=1, kind="stable").astype(np.int32)

    def component(self, k: int) -> Angle:
        """Component k as a distribution of its own."""
        return Angle(self.directions[k], float(self.concentrations[k]), self.normalizer, items=self.items)

    def taken(self, order: Array) -> AngleComponents:
        """Return the same mixture with its components in another order."""
        weights, directions, kappas = (values[order] for values in self.parameters)
        return AngleComponents(self.items, weights, directions, kappas, self.normalizer)


@dataclass(frozen=True, eq=False)
class AnglePrior:
    """κ ~ Gamma(shape, rate), θ | κ ~ von Mises–Fisher(m₀, β₀κ), weights ~ Dirichlet(pseudo_count)."""

    shape: float
    rate: float
    pseudo_count: float
    pulls: Array  # β₀ m₀ of every component (K, items)
    strength: float  # β₀
    bound: Literal["tight", "published"] = "tight"  # how the Gamma of κ is found in variational inference

    @classmethod
    def of(cls, settings: AngleParameters, items: tuple[Label, ...]) -> AnglePrior:
        """Check the prior direction against the items."""
        k, t = settings.n_components, len(items)
        pulls = np.zeros((k, t))
        if settings.prior_strength > 0.0:
            pulls[:] = settings.prior_strength * unit_directions(settings.prior_direction, items, k)
        known = (settings.prior_shape, settings.rate_for(t), settings.pseudo_count)
        return cls(*known, pulls, settings.prior_strength, settings.bound)

    def of_component(self, g: int) -> AnglePrior:
        """Return the prior of one component alone."""
        return replace(self, pulls=self.pulls[g : g + 1])


def unit_directions(given: Array | dict[Label, float], items: tuple[Label, ...], k: int) -> Array:
    """Check directions: one for all components or one each, by position or by item name."""
    t = len(items)
    if isinstance(given, dict):
        if set(given) != set(items):
            raise DataError("prior_direction must give a score for every item and for no other")
        given = np.array([given[name] for name in items])
    values = np.asarray(given)
    if values.shape not in ((t,), (k, t)):
        raise DataError(
            f"prior_direction has shape {values.shape}, but must have one score for each of the {t} items, "
            f"or {k} rows of them"
        )
    values = np.atleast_2d(values - values.mean(axis=-1, keepdims=True))
    size = np.linalg.norm(values, axis=1, keepdims=True)
    if not (np.isfinite(values).all() and (size > 0.0).all()):
        raise DataError("prior_direction must be finite, with scores that are not all equal")
    return np.asarray(values / size)


def is_expensive(normalizer: str, n_items: int) -> bool:
    """Say whether the normalizer is exact and each of its sums takes a notable time."""
    return normalizer == "exact" and n_items > CHEAP_ITEMS


@cache
def largest_concentration(n_items: int) -> float:
    """Return the concentration up to which no direction gives a ranking a probability above one."""
    return concentration_cap(n_items, 1.0, INTERPRETED)


def cap_of(direction: Array, scores: Array, kappa: float = np.inf) -> float:
    """Return the concentration above which the approximate normalizer gives probabilities above one.

    Where ``kappa`` is certainly below it, infinity stands for it: one moment tells, and the cap takes dozens.
    """
    t, reach = len(scores), float(np.sort(direction) @ scores)  # the largest θ'y: of the ranking by θ itself
    if kappa < np.inf:
        moment, ratio, _ = sphere_moments(0.5 * (t - 3.0), kappa)
        if ratio <= reach and kappa * reach - lgamma(t + 1.0) <= moment:
            return np.inf
    return concentration_cap(t, reach)
