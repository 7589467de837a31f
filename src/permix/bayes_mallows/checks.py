"""Does a Bayesian Mallows model fit at all?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from permix.bayes_mallows.fit import BayesianMallowsFit, fit_bayes_mallows
from permix.bayes_mallows.predict import draw_rankings, log_probability
from permix.data.labels import Array
from permix.errors import Argument, DataError
from permix.estimators.baselines import ranking_baselines
from permix.estimators.ranking_checks import check_rankings
from permix.posterior.checks import FitChecks

# One group needs few draws.
N_DRAWS, N_BURN_IN = 100, 200


def fit_checks(fit: BayesianMallowsFit, data: Any, n_replicates: int, random_state: Any) -> FitChecks:
    """Compare data, by default those fitted, with what the model draws, each time from one draw."""
    _refuse_errors(fit)

    def draw(rng: np.random.Generator, n: int) -> Array:
        return draw_rankings(fit, n, rng, of_draw=int(rng.integers(fit.groups.n_draws)))[0]

    return check_rankings(fit.preferences if data is None else data, draw, n_replicates, random_state)


def baselines(fit: BayesianMallowsFit, data: Any, known: Any) -> dict[str, Array]:
    """Return ln P of rows if all answers were alike, under one group, and by the shares of equal answers."""
    _refuse_errors(fit)
    known = fit.preferences if known is None else known
    short = {"n_draws": N_DRAWS, "n_burn_in": N_BURN_IN, "n_chains": 1, "store": None, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few draws
        one = fit_bayes_mallows(known, fit.settings.replaced(n_components=1, weights_by=None, **short))
    return ranking_baselines(data, known, lambda rows: log_probability(one, rows)[0])


def _refuse_errors(fit: BayesianMallowsFit) -> None:
    if fit.settings.errors is not None:
        raise DataError(
            "checks and baselines take comparisons at their word; they are not made for ",
            Argument("errors", fit.settings.errors),
        )
