"""What comparisons of models ask of blurring mean-shift."""

from __future__ import annotations

import numpy as np

from permix.baselines.mean_shift.fit import MeanShiftFit, fit_mean_shift
from permix.baselines.mean_shift.parameters import MeanShiftParameters
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.estimators.comparable import Comparable, Way, refusal
from permix.estimators.ranking_lists import as_top_lists


class MeanShiftCompared(Comparable):
    """Mean-shift takes top lists, and has Mallows models around the places where they came to rest."""

    form = "votes"
    pace = 0
    parameters = MeanShiftParameters
    finds = "groups around the rankings where many gather"

    def suits(self, data: Preferences) -> str | None:
        return refusal(as_top_lists, data)

    def ways(self, data: Preferences) -> tuple[Way, ...]:
        return (Way(("mean-shift",)),)

    def fit(self, data: Preferences, settings: MeanShiftParameters) -> MeanShiftFit:
        return fit_mean_shift(as_top_lists(data), settings)

    def score(self, fit: MeanShiftFit, held_out: Preferences, seed: int) -> tuple[Array, Array]:
        values = fit.log_probability(as_top_lists(held_out, fit.items))
        return values, np.zeros_like(values)


COMPARED = MeanShiftCompared()
