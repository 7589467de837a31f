"""The work behind :class:`permix.AngleClassifier`, free of scikit-learn, and what its archive holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from permix.angle.archive import SCHEMA as OF_CLASS
from permix.angle.fit import AngleFit, fit_angle
from permix.angle.parameters import AngleClassifierParameters
from permix.data.labels import Array, Label
from permix.data.rankings import Rankings
from permix.errors import DataError
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.checks import Made
from permix.estimators.fields import require
from permix.runtime.seeds import seed_sequence

# What a class may be called, so that a file can hold it.
NAMES = (str, bool, int, float)


@dataclass(frozen=True, eq=False)
class AngleClassifierFit:
    """A model for each class.

    Attributes
    ----------
    settings : AngleClassifierParameters
    classes : ndarray
        Sorted.
    fits : list of AngleFit
        One for each class, over the same items.
    """

    model: ClassVar[str] = "AngleClassifier"

    settings: AngleClassifierParameters
    classes: Array
    fits: list[AngleFit]

    @property
    def items(self) -> tuple[Label, ...]:
        """Item names."""
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
    fits: list[AngleFit] = []
    for number, (name, seed) in enumerate(zip(classes, seeds, strict=True)):
        try:
            of_class = settings.of_class(np.random.default_rng(seed))
            fits.append(fit_angle(rankings[labels == number], of_class))
        except DataError as error:
            raise DataError(f"class {str(name)!r}: {error}") from error
    return AngleClassifierFit(settings, classes, fits)


def _classes(names: Any) -> Array:
    require(isinstance(names, list) and len(names) > 1, "classes")
    require(len({type(name) for name in names}) == 1 and isinstance(names[0], NAMES), "classes")
    classes = np.array(names)
    require(np.array_equal(np.unique(classes), classes), "classes")
    return classes


def _written(classes: Array) -> list[Any]:
    names = classes.tolist()
    if not all(isinstance(name, NAMES) for name in names):
        raise DataError(
            f"a file holds classes that are words or numbers, not {type(names[0]).__name__}; fit with these"
        )
    return names


def _build(saved: Saved) -> AngleClassifierFit:
    classes, fits = saved.facts["classes"], saved.facts["members"]
    require(len(fits) == len(classes), "classes")
    expected = saved.settings.of_class(None).to_json()
    for fit in fits:
        require(fit.components.items == fits[0].components.items, "items")
        require(fit.settings.to_json() == expected, "parameters")
    return AngleClassifierFit(saved.settings, classes, fits)


SCHEMA = Schema(
    parameters=AngleClassifierParameters,
    pack=lambda fit: Content({"classes": fit.classes}, {}, fit.fits),
    build=_build,
    facts={"classes": Made(_classes, "a list of classes", to_json=_written)},
    members=OF_CLASS,
)
