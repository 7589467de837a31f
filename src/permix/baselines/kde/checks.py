"""Does a density estimate over rankings fit at all?"""

from __future__ import annotations

from typing import Any

from permix.baselines.kde.fit import KDEFit
from permix.data.labels import Array
from permix.estimators.baselines import one_generalized_mallows, ranking_baselines
from permix.estimators.ranking_checks import check_rankings, fixed
from permix.posterior.checks import FitChecks


def fit_checks(fit: KDEFit, data: Any, n_replicates: int, random_state: Any) -> FitChecks:
    """Compare data, by default those fitted, with what the estimate draws."""
    table = fit.preferences if data is None else data
    return check_rankings(table, fixed(fit.sample), n_replicates, random_state)


def baselines(fit: KDEFit, data: Any, known: Any) -> dict[str, Array]:
    """Return ln P of rows if all answers were alike, under one group, and by the shares of equal answers."""
    known = fit.preferences if known is None else known
    return ranking_baselines(data, known, one_generalized_mallows(known))
