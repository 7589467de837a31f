"""Priors of groups: decays are gamma, and centers anywhere alike, or around a ranking."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.bayes_mallows.chain.statistics_jit import cost_of_one, has_costs
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.data.labels import Array, Label, some_names
from permix.distributions.distances.draws import draw_orders
from permix.distributions.distances.normalizer import Normalizer
from permix.distributions.mallows import Mallows
from permix.errors import Argument, DataError
from permix.partitions.priors import Gamma
from permix.runtime.seeds import stream_key

# Decays lie between these: beyond them all rankings, or all but one, are alike.
LEAST_DECAY, MOST_DECAY = 1e-30, 1e3


class GroupPrior(NamedTuple):
    """Priors of a group's center and decay, for compiled code."""

    shape: float
    rate: float
    center: Array  # int32 (items,): ranks in the center of centers
    costs: Array  # (items, items): of that ranking; see ``places_jit``
    center_decay: float  # around it; 0 where all centers are alike


def group_prior(
    settings: BayesianMallowsParameters, items: tuple[Label, ...], sums: Normalizer
) -> GroupPrior:
    """Return the priors that were chosen."""
    gamma = settings.decay_prior or default_decay_prior(sums)
    center, center_decay = expected_ranks(settings, items)
    return GroupPrior(gamma.shape, gamma.rate, center, costs_of(sums, center), center_decay)


def default_decay_prior(sums: Normalizer) -> Gamma:
    """Return an exponential prior whose mean is where rankings are half as far away as even ones."""
    if sums.largest == 0:
        return Gamma(1.0, 1.0)
    return Gamma(1.0, 1.0 / sums.decay_at(0.5 * sums.mean_distance(0.0)))


def expected_ranks(settings: BayesianMallowsParameters, items: tuple[Label, ...]) -> tuple[Array, float]:
    """Return the ranks of items where centers are expected, and the decay around it; 0 if anywhere alike."""
    named = settings.center_prior
    if named is None:
        return np.arange(len(items), dtype=np.int32), 0.0
    place = {item: at for at, item in enumerate(items)}
    if not set(named) <= place.keys():  # typed names are words, also of items that are numbers
        place = {str(item): at for at, item in enumerate(items)}
        named = [str(name) for name in named]
    unknown = [name for name in named if name not in place]
    if unknown:
        known = some_names(list(items))
        raise DataError(Argument("center_prior"), f" names {unknown[0]!r}, but the items are {known}")
    absent = [item for item, at in place.items() if item not in set(named)]
    if absent or len(named) != len(items):
        what = f"does not rank {some_names(absent)}" if absent else "ranks an item twice"
        raise DataError(Argument("center_prior"), f" {what}; it must rank all items once, best first")
    order = np.array([place[name] for name in named])
    return np.argsort(order).astype(np.int32), -math.log(settings.center_dispersion)


def costs_of(sums: Normalizer, ranks: Array) -> Array:
    """Return what a ranking costs by its distance from this one, where the distance has such a form."""
    costs = np.zeros((sums.n_items, sums.n_items))
    if has_costs.py_func(sums.code):
        cost_of_one(sums.code, ranks, np.empty_like(costs), costs)
    return costs


def around(distance: str, decay: float, center: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw orderings around a center, an ordering."""
    if decay == 0.0:
        every = np.arange(len(center), dtype=np.int32)
        return rng.permuted(np.tile(every, (size, 1)), axis=1)
    if distance == "kendall":
        return np.asarray(Mallows(center.tolist(), math.exp(-decay)).sample(size, rng).orders)
    return draw_orders(distance, decay, center, size, stream_key(rng))


def draw_groups(prior: GroupPrior, distance: str, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw centers, as rank vectors, and decays of groups that nobody is in."""
    orders = around(distance, prior.center_decay, np.argsort(prior.center).astype(np.int32), size, rng)
    decays = rng.gamma(prior.shape, 1.0 / prior.rate, size)
    return np.argsort(orders, axis=1).astype(np.int32), np.clip(decays, LEAST_DECAY, MOST_DECAY)
