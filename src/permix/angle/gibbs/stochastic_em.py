"""Maximum likelihood with incomplete rankings: stochastic approximation EM (section 4.1, last remark)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from permix.angle.ascent import Likelihood
from permix.angle.components import AngleComponents, is_expensive
from permix.angle.gibbs.state import AngleChainModel, AngleState

# Where exact sums are expensive, balanced ones are taken but for the last sweeps.
EXACT_SWEEPS = 30


class Swept(NamedTuple):
    """Where the sweeps ended, and the log-likelihood of the completed rankings after each."""

    point: Likelihood
    history: list[float]
    interrupted: bool


def stochastic_em(
    model: AngleChainModel,
    start: AngleComponents,
    rng: np.random.Generator,
    follow: Callable[[], bool] | None = None,
) -> Swept:
    """Draw completions in sweeps, and maximize given averaged sums.

    Sums are averaged over the sweeps of the second half with weights 1/1, 1/2, 1/3, …, so that Monte Carlo
    errors die out; the first half finds the neighborhood.
    """
    settings, data = model.settings, model.data
    state = AngleState(model, rng, start)
    if is_expensive(model.normalizer, data.n_items):
        state.normalizer = "balanced"
    point = Likelihood(state.weights, state.directions, state.kappas, state.normalizer, data)
    n_sweeps = settings.n_burn_in + settings.n_draws
    history: list[float] = []
    sums, masses = np.zeros_like(state.sums), np.zeros_like(state.masses)
    interrupted = False
    for sweep in range(n_sweeps):
        if n_sweeps - sweep <= EXACT_SWEEPS and state.normalizer != model.normalizer:
            state.normalizer = model.normalizer
            point = Likelihood(state.weights, state.directions, state.kappas, state.normalizer, data)
        state.sweep(rng, soft=True)
        share = 1.0 if sweep < settings.n_burn_in else 1.0 / (sweep - settings.n_burn_in + 1)
        sums += share * (state.sums - sums)
        masses += share * (state.masses - masses)
        point = point.following(sums, masses, data)
        state.weights, state.kappas = (
            point.components.weights,
            np.maximum(point.components.concentrations, 1e-12),
        )
        state.directions = point.components.directions
        history.append(state.log_likelihood)
        if follow is not None and not follow():
            interrupted = True
            break
    if state.normalizer != model.normalizer:  # interrupted before the last sweeps
        found = point.components
        point = Likelihood(found.weights, found.directions, found.concentrations, model.normalizer, data)
    return Swept(point, history, interrupted)
