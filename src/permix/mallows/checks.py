"""Does a mixture of Mallows models fit at all?"""

from __future__ import annotations

from typing import Any

from permix.estimators.agent_answers import sample_rankings
from permix.estimators.ranking_checks import check_rankings, fixed, needed
from permix.mallows.results import MallowsFit
from permix.posterior.checks import FitChecks


def fit_checks(fit: MallowsFit, data: Any, n_replicates: int, random_state: Any) -> FitChecks:
    """Compare data with what the mixture draws at its estimates."""
    draw = fixed(lambda n, rng: sample_rankings(fit.components, n, rng)[0])
    return check_rankings(needed(data), draw, n_replicates, random_state)
