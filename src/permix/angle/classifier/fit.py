"""The work behind :class:`permix.AngleClassifier`, free of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from permix.angle.fit import AngleFit, fit_angle, way_of
from permix.angle.parameters import AngleClassifierParameters
from permix.data.labels import Array, Label
from permix.data.rankings import Rankings
from permix.errors import DataError
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import Display
from permix.runtime.seeds import seed_sequence


@dataclass(frozen=True, eq=False)
class AngleClassifierFit:
    """A model for each class, all over the same items."""

    model: ClassVar[str] = "AngleClassifier"

    settings: AngleClassifierParameters
    classes: Array  # sorted
    fits: list[AngleFit]

    @property
    def items(self) -> tuple[Label, ...]:
        return self.fits[0].components.items

    @property
    def class_prior(self) -> Array:
        """Probability of each class beforehand."""
        if self.settings.class_weights == "equal":
            return np.full(len(self.fits), 1.0 / len(self.fits))
        shares = np.array([fit.counts.sum() for fit in self.fits]) + 1.0
        return np.asarray(shares / shares.sum())

    def log_probabilities(self, rankings: Rankings) -> Array:
        """Return ln P(class | ranking) (rows, classes)."""
        joint = np.stack([fit.predictive.log_densities(rankings)[0] for fit in self.fits], axis=1)
        joint += np.log(self.class_prior)
        return np.asarray(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))


def fit_classes(
    rankings: Rankings, of_rows: Array, settings: AngleClassifierParameters
) -> AngleClassifierFit:
    """Fit one model to the rankings of each class."""
    classes, labels = np.unique(of_rows, return_inverse=True)
    if len(classes) < 2:
        raise DataError("there is one class only; a classifier needs two classes or more")
    seeds = seed_sequence(settings.random_state).spawn(len(classes))
    tables = [rankings[labels == number] for number in range(len(classes))]
    shared = settings.of_class(None)
    shared.refuse_unused(*(way_of(table, shared) for table in tables))
    fits: list[AngleFit] = []
    # A Ctrl-C is heard by the class under way and by all that follow, which are left where they start.
    with Interrupts(), Display(settings.progress) as display:
        display.begin("fitting classes", len(classes))
        for name, seed, table in zip(classes, seeds, tables, strict=True):
            display.update(f"class {name}")
            of_class = settings.of_class(np.random.default_rng(seed))
            try:
                fits.append(fit_angle(table, of_class))
            except DataError as error:
                raise DataError(f"class {str(name)!r}: {error}") from error
            display.step()
    return AngleClassifierFit(settings, classes, fits)
