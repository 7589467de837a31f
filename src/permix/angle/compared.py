"""What comparisons of models ask of mixtures of angle-based models."""

from __future__ import annotations

import numpy as np

from permix.angle.data import as_rankings
from permix.angle.fit import AngleFit, fit_angle
from permix.angle.parameters import AngleParameters
from permix.angle.selection import SELECTION, affordable_counts
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.estimators.comparable import Comparable, Way, refusal

# Nats by which the sum over all rankings may be off: a hundredth of the probability.
MOST_OFF = 0.01


class AngleCompared(Comparable):
    """Mixtures of angle-based models take rankings without ties, of all items or some."""

    form = "votes"
    parameters = AngleParameters
    finds = "groups with scores that say how far apart items are"

    def suits(self, data: Preferences) -> str | None:
        return refusal(as_rankings, data)

    def ways(self, data: Preferences) -> tuple[Way, ...]:
        return (Way(("angle",)),)

    def fit(self, data: Preferences, settings: AngleParameters) -> AngleFit:
        return fit_angle(as_rankings(data), settings)

    def score(self, fit: AngleFit, held_out: Preferences, seed: int) -> tuple[Array, Array]:
        return SELECTION.score(fit, as_rankings(held_out, fit.components.items), seed)

    def improper(self, fit: AngleFit) -> str | None:
        off = SELECTION.columns([fit])["normalizer_error"]
        if abs(off) <= MOST_OFF:
            return None
        known = "an unknown amount" if np.isnan(off) else f"{off:.2g} nats"
        return f"has probabilities that do not sum to one: their logarithms are off by {known}"

    def affordable(self, held_out: Preferences, rng: np.random.Generator) -> Preferences:
        counts = affordable_counts(as_rankings(held_out), rng)
        return held_out if counts is None else held_out._with_counts(counts)


COMPARED = AngleCompared()
