# mypy: ignore-errors
"""Models of insertion: at which place of 0..i a model puts the i-th item of its center.

Three kinds: GEOMETRIC (Mallows, one λ), WEIGHTED (a λ for every step) and GENERAL (any probabilities). One
:class:`InsertionModels` holds K models of the same kind over the same number of items.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step
from permix.kernels.random import truncated_geometric_quantile

Array = npt.NDArray[Any]

GEOMETRIC, WEIGHTED, GENERAL = 0, 1, 2


class InsertionModels(NamedTuple):
    """K insertion models over m items; made by the three functions below."""

    kind: int
    decays: Array  # (K, m): λ of each step; for GENERAL of no meaning
    cumulative: Array  # GEOMETRIC, (K, m + 1): 1 + φ + … + φ^(k-1)
    log_cumulative: Array
    guide: Array  # GEOMETRIC, (K, G): the first displacement of each stretch of ``cumulative``
    guide_scale: Array  # (K,): stretches per unit of ``cumulative``
    probabilities: Array  # GENERAL, (K, m, m): probability of each place 0..i at step i


def geometric_models(decays: Array, n_items: int) -> InsertionModels:
    """Mallows models with one λ = -ln φ in [0, inf] each: P(place at step i) ∝ exp(-λ (i - place))."""
    decays = np.asarray(decays, dtype=np.float64).reshape(-1)
    powers = np.ones((len(decays), n_items))
    powers[:, 1:] = np.exp(-decays[:, None] * np.arange(1, n_items))
    cumulative = np.zeros((len(decays), n_items + 1))
    np.cumsum(powers, axis=1, out=cumulative[:, 1:])
    stretches = 4 * n_items
    scale = stretches / cumulative[:, -1]
    guide = np.empty((len(decays), stretches + 1), np.uint32)
    for k in range(len(decays)):
        # A little to the left, so that rounding of the product with the scale cannot lead too far.
        left = np.arange(stretches + 1) / scale[k] * (1.0 - 1e-12)
        guide[k] = np.minimum(np.searchsorted(cumulative[k], left, side="right") - 1, n_items - 1)
    log_cumulative = np.full_like(cumulative, -np.inf)
    log_cumulative[:, 1:] = np.log(cumulative[:, 1:])
    steps = np.broadcast_to(decays[:, None], (len(decays), n_items)).copy()
    return InsertionModels(GEOMETRIC, steps, cumulative, log_cumulative, guide, scale, np.zeros((0, 0, 0)))


def weighted_models(decays: Array) -> InsertionModels:
    """Models with a λ for every step of the center, shape (K, m): the weighted Kendall distance."""
    decays = np.ascontiguousarray(decays, dtype=np.float64)
    return _without_tables(WEIGHTED, decays, np.zeros((0, 0, 0)))


def general_models(probabilities: Array) -> InsertionModels:
    """Repeated-insertion models: ``probabilities[k, i, place]``, shape (K, m, m)."""
    probabilities = np.ascontiguousarray(probabilities, dtype=np.float64)
    return _without_tables(GENERAL, np.zeros(probabilities.shape[:2]), probabilities)


def _without_tables(kind: int, decays: Array, probabilities: Array) -> InsertionModels:
    empty = np.zeros((len(decays), 1))  # a row for every model, so that compiled code may take it
    guide = np.zeros((len(decays), 1), np.uint32)
    return InsertionModels(kind, decays, empty, empty, guide, empty[:, 0].copy(), probabilities)


# Places low..high of one step of one model. In hot loops the rows of geometric models are taken out first:
# handing the whole tuple to a function costs more than the draw.


@kernel
def geometric_back(u, cumulative, guide, scale, width):
    """Return the ``u``-quantile of P(back) ∝ φ^back on 0..width-1, from the tables of a model."""
    # Unsigned indices spare the test for negative ones.
    target = u * cumulative[np.uint32(width)]
    back = guide[np.uint32(target * scale)]
    back = np.uint32(back + (cumulative[np.uint32(back + 1)] <= target))  # nearly always the end of it
    while cumulative[np.uint32(back + 1)] <= target and back + 1 < width:
        back = np.uint32(back + 1)
    return min(np.int64(back), width - 1)  # rounding at the very end


@kernel
def place_quantile(u, models, k, i, low, high):
    """Return the ``u``-quantile, counted from the high end, of the place of step i within low..high under
    model k.

    Where all of these places have probability zero, the answer is ``high``: the limit of φ towards 0.
    """
    width = high - low + 1
    if models.kind == GEOMETRIC:
        return high - geometric_back(u, models.cumulative[k], models.guide[k], models.guide_scale[k], width)
    if models.kind == WEIGHTED:
        return high - truncated_geometric_quantile(u, models.decays[k, i], width)
    total = 0.0
    for place in range(low, high + 1):
        total += models.probabilities[k, i, place]
    remaining = u * total
    chosen = high
    for place in range(high, low - 1, -1):
        if models.probabilities[k, i, place] > 0.0:
            chosen = place
            remaining -= models.probabilities[k, i, place]
            if remaining < 0.0:
                break
    return chosen


@kernel
def log_mass(models, k, i, low, high):
    """Return ln of the probability that model k puts step i within low..high."""
    if models.kind == GENERAL:
        total = 0.0
        for place in range(low, high + 1):
            total += models.probabilities[k, i, place]
        return np.log(total) if total > 0.0 else -np.inf
    log_odds = 0.0
    if high < i:  # kept apart because 0 · inf is no number
        log_odds = -models.decays[k, i] * (i - high)
    if models.kind == GEOMETRIC:
        return log_odds + models.log_cumulative[k, high - low + 1] - models.log_cumulative[k, i + 1]
    decay = models.decays[k, i]
    return log_odds + log_normalizer_step(decay, high - low + 1) - log_normalizer_step(decay, i + 1)


@kernel
def log_conditional(models, k, i, place, low, high):
    """Return ln P(place | low..high) at step i; the limit where low..high has probability zero."""
    if models.kind == GENERAL:
        total = log_mass(models, k, i, low, high)
        if total == -np.inf:
            return 0.0 if place == high else -np.inf
        return log_mass(models, k, i, place, place) - total
    log_odds = 0.0
    if place < high:
        log_odds = -models.decays[k, i] * (high - place)
    if models.kind == GEOMETRIC:
        return log_odds - models.log_cumulative[k, high - low + 1]
    return log_odds - log_normalizer_step(models.decays[k, i], high - low + 1)


@kernel
def log_prior(models, k, places):
    """Return ln P of the ordering with these insertion places under model k, without any preferences."""
    total = 0.0
    for i in range(places.size):
        total += log_conditional(models, k, i, places[i], 0, i)
    return total


@kernel
def step_probabilities(models, k, steps, lows, highs):
    """Return P(place | lows..highs) of each step, from its first allowed place on, as rows of a matrix."""
    out = np.zeros((steps.size, steps.size))
    for t in range(steps.size):
        for place in range(lows[t], highs[t] + 1):
            out[t, place - lows[t]] = np.exp(log_conditional(models, k, steps[t], place, lows[t], highs[t]))
    return out
