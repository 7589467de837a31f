"""What choosing a number of groups, and comparing models, ask of mixtures of Mallows models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.errors import Argument, DataError
from permix.estimators.baselines import one_generalized_mallows, ranking_baselines
from permix.estimators.comparable import Comparable, Way
from permix.estimators.preference_input import as_preferences
from permix.estimators.selectable import Selectable
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters
from permix.mallows.predict import score_samples
from permix.mallows.results import RECURS, MallowsFit


class MallowsSelection(Selectable):
    """Mixtures of Mallows models are compared by agents held out alone."""

    parameters = MallowsParameters

    def read(self, data: Any, items: Any = None) -> Preferences:
        return as_preferences(data, items)

    def fit(self, table: Preferences, settings: MallowsParameters) -> MallowsFit:
        return fit_mallows(table, settings)

    def fit_more(self, table: Preferences, settings: MallowsParameters, smaller: MallowsFit) -> MallowsFit:
        return fit_mallows(table, settings, smaller.components)

    def refit(self, table: Preferences, settings: MallowsParameters, part: MallowsFit) -> MallowsFit:
        return fit_mallows(table, settings, part.components)

    def score(self, fit: MallowsFit, table: Preferences, seed: int) -> tuple[Array, Array]:
        return score_samples(fit.components, table, random_state=seed)

    def check_criterion(self, criterion: str, table: Preferences, settings: MallowsParameters) -> None:
        raise DataError(
            Argument("criterion", criterion),
            " counts parameters, but the central rankings of a MallowsMixture are not numbers that could "
            "be counted; use ",
            Argument("criterion", "held-out"),
        )

    def recurs(self, fit: MallowsFit) -> bool | None:
        """Return whether all groups recur in every restart that counts; None for a single one."""
        judged = fit.judged_restarts
        if fit.components.n_components == 1 or len(judged) < 2:
            return None
        return bool((fit.group_matches[judged] >= RECURS).all())


SELECTION = MallowsSelection()


class MallowsCompared(Comparable):
    """Mixtures of Mallows models take every kind of preference, as long as nobody contradicts themselves."""

    form = "votes"
    parameters = MallowsParameters
    finds = "groups with a typical ranking and a spread around it"

    def suits(self, data: Preferences) -> str | None:
        return None if data.n_items > 1 else "needs two items or more"

    def ways(self, data: Preferences) -> tuple[Way, ...]:
        return (Way(("mallows",)),)

    def fit(self, data: Preferences, settings: MallowsParameters) -> MallowsFit:
        return fit_mallows(data, settings)

    def score(self, fit: MallowsFit, held_out: Preferences, seed: int) -> tuple[Array, Array]:
        return score_samples(fit.components, held_out, random_state=seed)

    def baselines(
        self, data: Preferences, held_out: Preferences, options: Mapping[str, Any], seed: int
    ) -> dict[str, Array]:
        """All answers alike; one group, generalized Mallows where all are lists; shares of equal answers."""
        one = one_generalized_mallows(data)
        if one is None:
            fit = fit_mallows(data, MallowsParameters(1, n_init=1, random_state=seed, progress=False))

            def one(table: Preferences) -> Array:
                return score_samples(fit.components, table, random_state=seed)[0]

        found = ranking_baselines(held_out, data, one)
        if not np.isfinite(found["one group"]).all():  # pragma: no cover (no data are known to do that)
            raise DataError("one group makes some of the answers that were held out impossible")
        return found


COMPARED = MallowsCompared()
