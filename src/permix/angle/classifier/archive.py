"""What an archive of :class:`permix.AngleClassifier` holds: the classes, and the fit of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.angle.archive import SCHEMA as OF_CLASS
from permix.angle.classifier.fit import AngleClassifierFit
from permix.angle.parameters import AngleClassifierParameters
from permix.data.labels import Array
from permix.errors import DataError
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.checks import Made
from permix.estimators.fields import require

# What a class may be called, so that a file can hold it.
NAMES = (str, bool, int, float)


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
