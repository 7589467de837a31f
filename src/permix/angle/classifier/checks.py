"""Do the models of the classes fit at all?"""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.angle.classifier.fit import AngleClassifierFit
from permix.data.labels import Array
from permix.estimators.agent_answers import sample_rankings
from permix.estimators.ranking_checks import check_rankings, needed
from permix.posterior.checks import FitChecks


def fit_checks(fit: AngleClassifierFit, data: Any, n_replicates: int, random_state: Any) -> FitChecks:
    """Compare data with what the classes draw, as frequent as the classifier takes them to be."""

    def draw(rng: np.random.Generator, n: int) -> Array:
        sizes = rng.multinomial(n, fit.class_prior)
        parts = [
            sample_rankings(of_class.components, int(size), rng)[0].orders
            for of_class, size in zip(fit.fits, sizes, strict=True)
            if size
        ]
        return rng.permutation(np.concatenate(parts))

    return check_rankings(needed(data), draw, n_replicates, random_state)
