"""What comparisons of models ask of Dirichlet-process mixtures of generalized Mallows models."""

from __future__ import annotations

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.dp_mallows.fit import DPMallowsFit, fit_dp_mallows
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.dp_mallows.predict import ListPredictive
from permix.estimators.comparable import Comparable, Way, refusal
from permix.estimators.ranking_lists import as_top_lists


class DPMallowsCompared(Comparable):
    """Mixtures of generalized Mallows models take top lists without ties."""

    form = "votes"
    pace = 2
    parameters = DPMallowsParameters
    finds = "groups with a typical ranking, followed more closely at some places than at others"

    def suits(self, data: Preferences) -> str | None:
        return refusal(as_top_lists, data)

    def ways(self, data: Preferences) -> tuple[Way, ...]:
        return (Way(("dp-mallows",)),)

    def fit(self, data: Preferences, settings: DPMallowsParameters) -> DPMallowsFit:
        return fit_dp_mallows(as_top_lists(data), settings)

    def score(self, fit: DPMallowsFit, held_out: Preferences, seed: int) -> tuple[Array, Array]:
        return ListPredictive(fit).log_probability(as_top_lists(held_out, fit.items))


COMPARED = DPMallowsCompared()
