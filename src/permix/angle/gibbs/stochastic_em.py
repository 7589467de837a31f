"""Maximum likelihood with incomplete rankings: stochastic approximation EM (section 4.1, last remark)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from permix.angle.ascent import Likelihood
from permix.angle.components import AngleComponents, is_expensive
from permix.angle.gibbs.state import AngleChainModel, AngleState

# Where exact sums are expensive, balanced ones are taken but for the last sweeps.
EXACT_SWEEPS = 30


def stochastic_em(
    model: AngleChainModel, start: AngleComponents, rng: np.random.Generator, follow: Callable[[], bool]
) -> tuple[Likelihood, list[float], bool]:
    """Draw completions in sweeps, and maximize given averaged sums.

    Returns where the sweeps ended, the log-likelihood of the completed rankings after each, and whether
    ``follow`` stopped them.

    Sums are averaged over the sweeps of the second half with weights 1/1, 1/2, 1/3, …, so that Monte Carlo
    errors die out; the first half finds the neighborhood.
    """
    settings, data = model.settings, model.data
    state = AngleState(model, rng, start)
    if is_expensive(model.normalizer, data.n_items):
        state.normalizer = "balanced"
    point = Likelihood(state.components())
    n_sweeps = settings.n_burn_in + settings.n_fixed_draws
    history: list[float] = []
    sums, masses = np.zeros_like(state.sums), np.zeros_like(state.masses)
    for sweep in range(n_sweeps):
        if n_sweeps - sweep <= EXACT_SWEEPS and state.normalizer != model.normalizer:
            state.normalizer = model.normalizer
            point = Likelihood(state.components())
        state.sweep(rng, soft=True)
        share = 1.0 if sweep < settings.n_burn_in else 1.0 / (sweep - settings.n_burn_in + 1)
        sums += share * (state.sums - sums)
        masses += share * (state.masses - masses)
        point = point.following(sums, masses, data)
        found = point.components
        state.weights, state.directions = found.weights, found.directions
        state.kappas = np.maximum(found.concentrations, 1e-12)
        history.append(state.log_likelihood)
        interrupted = not follow()
        if interrupted:
            break
    if state.normalizer != model.normalizer:  # interrupted before the last sweeps
        point = Likelihood(replace(point.components, normalizer=model.normalizer))
    return point, history, interrupted
