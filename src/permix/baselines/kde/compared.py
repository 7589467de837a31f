"""What comparisons of models ask of density estimates of rankings."""

from __future__ import annotations

from permix.baselines.kde.fit import KDEFit, fit_kde
from permix.baselines.kde.parameters import KDEParameters
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.estimators.comparable import Comparable, Way


class KDECompared(Comparable):
    """A density estimate takes every kind of preference."""

    form = "votes"
    pace = 0
    parameters = KDEParameters
    finds = "no groups, but how common every ranking is"

    def suits(self, data: Preferences) -> str | None:
        return None if data.n_items > 1 else "needs two items or more"

    def ways(self, data: Preferences) -> tuple[Way, ...]:
        return (Way(("kde",)),)

    def fit(self, data: Preferences, settings: KDEParameters) -> KDEFit:
        return fit_kde(data, settings)

    def score(self, fit: KDEFit, held_out: Preferences, seed: int) -> tuple[Array, Array]:
        return fit.log_probability(held_out)


COMPARED = KDECompared()
