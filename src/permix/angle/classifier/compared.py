"""What comparisons of models ask of the angle-based classifier."""

from __future__ import annotations

from typing import Any

from permix.angle.parameters import AngleParameters
from permix.data.labels import Array
from permix.estimators.comparable import Comparable, Way


class ClassifierCompared(Comparable):
    """A classifier is compared by the classes it finds, which is none of this."""

    form = "classes"
    parameters = AngleParameters
    finds = "classes that are given"

    def suits(self, data: Any) -> str | None:
        return "needs classes that are known, and finds no groups"

    def ways(self, data: Any) -> tuple[Way, ...]:
        return ()

    def fit(self, data: Any, settings: Any) -> Any:
        raise NotImplementedError

    def score(self, fit: Any, held_out: Any, seed: int) -> tuple[Array, Array]:
        raise NotImplementedError


COMPARED = ClassifierCompared()
