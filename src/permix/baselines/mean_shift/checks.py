"""Does the mixture of Mallows models around the centers of a blurring mean-shift fit at all?"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np

from permix.baselines.mean_shift.fit import MeanShiftFit
from permix.data.labels import Array
from permix.distributions.mallows import Mallows
from permix.estimators.baselines import one_generalized_mallows, ranking_baselines
from permix.estimators.ranking_checks import check_rankings, needed
from permix.posterior.checks import FitChecks


def around_center(fit: MeanShiftFit, chosen: Array, rng: np.random.Generator) -> Array:
    """Draw a ranking that begins as each chosen center, and a Mallows draw around that."""
    n_items, centers = len(fit.items), fit.centers
    around = Mallows(range(n_items), exp(-fit.decay))
    row, place = np.nonzero(centers.orders >= 0)
    places = np.full((len(centers), n_items), n_items)
    places[row, centers.orders[row, place]] = place
    # Listed items by their places, the rest behind them in any order.
    completed = np.argsort(places[chosen] + rng.random((len(chosen), n_items)), axis=1)
    # A Mallows model around s is one around the identity with its items renamed.
    return np.take_along_axis(completed, around.sample(len(chosen), rng).orders.astype(np.int64), axis=1)


def fit_checks(fit: MeanShiftFit, data: Any, n_replicates: int, random_state: Any) -> FitChecks:
    """Compare data with draws around centers, which are chosen by their sizes."""
    centers = fit.centers

    def draw(rng: np.random.Generator, n: int) -> Array:
        return around_center(fit, rng.choice(len(centers), size=n, p=centers.counts / centers.n_agents), rng)

    return check_rankings(needed(data), draw, n_replicates, random_state)


def baselines(fit: MeanShiftFit, data: Any, known: Any) -> dict[str, Array]:
    """Return ln P of rows if all answers were alike, under one group, and by the shares of equal answers."""
    known = data if known is None else known
    return ranking_baselines(data, known, one_generalized_mallows(known))
