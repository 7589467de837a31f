"""Does a mixture of Mallows models fit at all?"""

from __future__ import annotations

from typing import Any

from permix.data.labels import Array
from permix.estimators.agent_answers import sample_rankings
from permix.estimators.baselines import ranking_baselines
from permix.estimators.ranking_checks import check_rankings, fixed, needed
from permix.mallows.fit import fit_mallows
from permix.mallows.predict import score_samples
from permix.mallows.results import MallowsFit
from permix.posterior.checks import FitChecks


def fit_checks(fit: MallowsFit, data: Any, n_replicates: int, random_state: Any) -> FitChecks:
    """Compare data with what the mixture draws at its estimates."""
    draw = fixed(lambda n, rng: sample_rankings(fit.components, n, rng)[0])
    return check_rankings(needed(data), draw, n_replicates, random_state)


def baselines(fit: MallowsFit, data: Any, known: Any) -> dict[str, Array]:
    """Return ln P of rows if all answers were alike, under one group, and by the shares of equal answers."""
    known = data if known is None else known
    one = fit_mallows(known, fit.settings.replaced(n_components=1, n_init=1, weights_by=None, progress=False))
    return ranking_baselines(data, known, lambda rows: score_samples(one.components, rows, random_state=0)[0])
