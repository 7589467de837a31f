"""What comparisons of models ask of Bayesian Mallows models."""

from __future__ import annotations

from permix.bayes_mallows.fit import BayesianMallowsFit, fit_bayes_mallows
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.bayes_mallows.predict import log_probability
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.estimators.comparable import Comparable, Way


class BayesianMallowsCompared(Comparable):
    """They take every kind of preference; the number of groups is left open.

    ``MallowsMixture`` finds the same kind of groups more quickly, so that they are compared where they are
    named.
    """

    form = "votes"
    pace = 2
    if_named = "takes longer to find the groups that mallows finds, and is compared only where it is named"
    parameters = BayesianMallowsParameters
    finds = "groups with a typical ranking and a spread around it, with all that is not known about them"

    def suits(self, data: Preferences) -> str | None:
        return None if data.n_items > 1 else "needs two items or more"

    def ways(self, data: Preferences) -> tuple[Way, ...]:
        return (Way(("bayes-mallows", "-k", "mfm"), {"n_components": "mfm"}),)

    def fit(self, data: Preferences, settings: BayesianMallowsParameters) -> BayesianMallowsFit:
        return fit_bayes_mallows(data, settings)

    def score(self, fit: BayesianMallowsFit, held_out: Preferences, seed: int) -> tuple[Array, Array]:
        return log_probability(fit, held_out, seed)


COMPARED = BayesianMallowsCompared()
