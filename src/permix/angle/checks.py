"""Does a mixture of angle-based models fit at all?"""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.angle.components import AngleComponents
from permix.angle.data import as_rankings
from permix.angle.fit import AngleFit, fit_angle
from permix.angle.parameters import AngleParameters
from permix.data.labels import Array
from permix.estimators.agent_answers import sample_rankings
from permix.estimators.baselines import ranking_baselines
from permix.estimators.ranking_checks import check_rankings, needed
from permix.posterior.checks import FitChecks

# Replicated data sets come from so many draws of the posterior: sums over all rankings are found for each.
DRAWS = 50


def fit_checks(fit: AngleFit, data: Any, n_replicates: int, random_state: Any) -> FitChecks:
    """Compare data with what the mixture draws, each time from a draw of the posterior if there is one."""
    mixtures = [fit.components]
    if fit.posterior is not None:
        drawn = zip(*fit.posterior.evenly_spaced(DRAWS), strict=True)
        known = fit.components
        mixtures = [
            AngleComponents(known.items, weights, directions, kappas, known.normalizer)
            for weights, kappas, directions in drawn
        ]

    def draw(rng: np.random.Generator, n: int) -> Array:
        return np.asarray(sample_rankings(mixtures[rng.integers(len(mixtures))], n, rng)[0].orders)

    return check_rankings(needed(data), draw, n_replicates, random_state)


def baselines(fit: AngleFit, data: Any, known: Any) -> dict[str, Array]:
    """Return ln P of rows if all answers were alike, under one group, and by the shares of equal answers."""
    known = data if known is None else known
    one = fit_angle(as_rankings(known), AngleParameters(1, progress=False, random_state=0))
    return ranking_baselines(data, known, lambda rows: one.predictive.log_densities(as_rankings(rows))[0])
