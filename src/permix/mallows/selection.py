"""What choosing the number of groups asks of mixtures of Mallows models."""

from __future__ import annotations

from typing import Any

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.errors import Argument, DataError
from permix.estimators.preference_input import as_preferences
from permix.estimators.selectable import Selectable
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters
from permix.mallows.predict import score_samples
from permix.mallows.results import MallowsFit


class MallowsSelection(Selectable):
    """Mixtures of Mallows models are compared by agents held out alone."""

    parameters = MallowsParameters

    def read(self, data: Any, items: Any = None) -> Preferences:
        return as_preferences(data, items)

    def fit(self, table: Preferences, settings: MallowsParameters) -> MallowsFit:
        return fit_mallows(table, settings)

    def fit_more(self, table: Preferences, settings: MallowsParameters, smaller: MallowsFit) -> MallowsFit:
        return fit_mallows(table, settings, smaller.components)

    def score(self, fit: MallowsFit, table: Preferences, seed: int) -> tuple[Array, Array]:
        return score_samples(fit.components, table, random_state=seed)

    def check_criterion(self, criterion: str, table: Preferences, settings: MallowsParameters) -> None:
        raise DataError(
            Argument("criterion", criterion),
            " counts parameters, but the central rankings of a MallowsMixture are not numbers that could "
            "be counted; use ",
            Argument("criterion", "held-out"),
        )


SELECTION = MallowsSelection()
