"""Does a Dirichlet-process mixture of generalized Mallows models fit at all?"""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mallows.predict import ListPredictive
from permix.estimators.baselines import one_generalized_mallows, ranking_baselines
from permix.estimators.preference_input import as_preferences
from permix.estimators.ranking_checks import check_rankings
from permix.posterior.checks import FitChecks


def fit_checks(fit: DPMallowsFit, data: Any, n_replicates: int, random_state: Any) -> FitChecks:
    """Compare data, by default those fitted, with what the mixture draws, each time from one draw."""
    predictive, n_draws = ListPredictive(fit), fit.clusters.n_draws

    def draw(rng: np.random.Generator, n: int) -> Array:
        which = int(rng.integers(n_draws))
        return predictive.sample_full(n, rng, of_draw=which)

    return check_rankings(fit.rankings if data is None else data, draw, n_replicates, random_state)


def baselines(fit: DPMallowsFit, data: Any, known: Any) -> dict[str, Array]:
    """Return ln P of rows if all answers were alike, under one group, and by the shares of equal answers."""
    known = as_preferences(fit.rankings) if known is None else known
    return ranking_baselines(data, known, one_generalized_mallows(known))
