"""What choosing the number of groups asks of Bayesian Mallows models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from permix.bayes_mallows.data import reader_for
from permix.bayes_mallows.fit import BayesianMallowsFit, fit_bayes_mallows
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.bayes_mallows.predict import log_probability
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.errors import Argument, DataError, Message
from permix.estimators.selectable import Selectable


class BayesianMallowsSelection(Selectable):
    """Numbers of groups are compared by agents held out; the table has how far agents are from centers."""

    parameters = BayesianMallowsParameters

    def read(self, data: Any, items: Any = None) -> Preferences:
        table: Preferences = reader_for(BayesianMallowsParameters(errors="bernoulli"))(data, items)
        return table

    def check_settings(self, table: Preferences, settings: Sequence[BayesianMallowsParameters]) -> None:
        reader_for(settings[0])(table)  # without errors, nobody may contradict themselves

    def fit(self, table: Preferences, settings: BayesianMallowsParameters) -> BayesianMallowsFit:
        return fit_bayes_mallows(table, settings)

    def score(self, fit: BayesianMallowsFit, table: Preferences, seed: int) -> tuple[Array, Array]:
        return log_probability(fit, table, seed)

    def check_criterion(self, criterion: str, table: Any, settings: Any) -> None:
        raise DataError(
            Argument("criterion", criterion),
            " is not for BayesianMallowsMixture; use ",
            Argument("criterion", "held-out"),
        )

    def unsettled(self, said: str, settings: BayesianMallowsParameters) -> Message:
        return Message(said, Argument("n_draws", settings.n_draws))

    def columns(self, fits: Sequence[BayesianMallowsFit]) -> dict[str, Any]:
        """Return the elbow: how far agents are from the center of their group, on average over draws."""
        agents = np.array([fit.n_agents for fit in fits], dtype=np.float64)
        means = np.array([fit.draws.arrays["distance"].mean() for fit in fits])
        return {"distance": float(means @ agents / agents.sum())}


SELECTION = BayesianMallowsSelection()
