"""What choosing the number of groups asks of mixtures of angle-based models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from permix.angle.data import as_rankings
from permix.angle.fit import AngleFit, fit_angle, way_of
from permix.angle.parameters import AngleParameters, refuse_comparisons
from permix.angle.results import criteria, n_parameters, refuse_expensive_rows
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.angle.completions import is_cheap
from permix.errors import Argument, DataError, about_parameters
from permix.estimators.selectable import Selectable

# Held-out rows whose probability is found by annealing, at most so many in each fold: they take tenths of a
# second each.
MOST_ANNEALED = 200
# Up to so many items the error of the balanced normalizer takes less than a second.
MOST_CHECKED_ITEMS = 500


class AngleSelection(Selectable):
    """Mixtures of angle-based models are compared by agents held out, or by criteria."""

    parameters = AngleParameters
    read = staticmethod(as_rankings)

    def fit(self, table: Rankings, settings: AngleParameters) -> AngleFit:
        return fit_angle(table, settings)

    def fit_more(self, table: Rankings, settings: AngleParameters, smaller: AngleFit) -> AngleFit:
        return fit_angle(table, settings, smaller.components)

    def score(self, fit: AngleFit, table: Rankings, seed: int) -> tuple[Array, Array]:
        return fit.predictive.log_densities(table, random_state=seed)

    def check_criterion(self, criterion: str, table: Rankings, settings: AngleParameters) -> None:
        if criterion in ("dic", "waic") and settings.inference == "em":
            em, sir = Argument("inference", "em"), Argument("inference", "sir")
            asked, bic = Argument("criterion", criterion), Argument("criterion", "bic")
            lacking = (asked, " averages over a posterior, which ", em, " does not have")
            with about_parameters():
                raise DataError(*lacking, "; use ", bic, " or aic, or ", sir)
        held_out = Argument("criterion", "held-out")
        refuse_expensive_rows(table, "a criterion needs all. Use ", held_out, ", which can do with some rows")

    def check_settings(self, table: Rankings, settings: Sequence[AngleParameters]) -> None:
        refuse_comparisons(settings[0].normalizer)
        settings[0].refuse_unused(*(way_of(table, asked) for asked in settings))

    def criterion(self, criterion: str, fit: AngleFit, table: Rankings) -> tuple[float, float]:
        if criterion in ("aic", "bic"):
            parameters = n_parameters(fit.components)
            price = 2.0 if criterion == "aic" else float(np.log(table.n_agents))
            return price * parameters - 2.0 * float(fit.log_likelihood), float(parameters)
        found = criteria(fit, table, doubts=criterion == "waic")
        return getattr(found, criterion), getattr(found, f"{criterion}_parameters")

    def affordable(self, table: Rankings, rng: np.random.Generator) -> Rankings:
        counts = affordable_counts(table, rng)
        return table if counts is None else table._with_counts(counts)

    def columns(self, fits: Sequence[AngleFit]) -> dict[str, Any]:
        """Say how far normalizing sums are off, for the worst component of all fits that has an agent at all.

        The concentration of one that has none is that of the prior, and nobody is scored by it.
        """
        components, worst = fits[0].components, np.nan
        if components.normalizer == "exact" or components.n_items <= MOST_CHECKED_ITEMS:
            errors = [float(error) for fit in fits for error in fit.normalizer_errors]
            agents = np.concatenate([fit.counts @ fit.probabilities for fit in fits])
            worst = max(np.array(errors)[agents >= 1.0].tolist(), key=abs)
        return {"normalizer": components.normalizer, "normalizer_error": worst}


def affordable_counts(table: Rankings, rng: np.random.Generator) -> Array | None:
    """Return how many agents of each row to score; None: all of them.

    Agents are kept in random order until there are ``MOST_ANNEALED`` different rows that need annealing.
    Those with other rows are left out in the same proportion, so that those kept stand for all.
    """
    expensive = ~is_cheap(table)
    if expensive.sum() <= MOST_ANNEALED:
        return None
    rows = rng.permutation(table.rows_of_agents())
    new = np.zeros(len(rows), dtype=bool)
    new[np.unique(rows, return_index=True)[1]] = True
    n_expensive = np.cumsum(new & expensive[rows])
    kept = rows[: np.searchsorted(n_expensive, MOST_ANNEALED, side="right")]
    return np.bincount(kept, minlength=len(table))


SELECTION = AngleSelection()
