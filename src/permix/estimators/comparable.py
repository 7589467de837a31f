"""What :func:`permix.compare` asks of a model: one small object in the model's folder, ``compared.py``."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.errors import DataError
from permix.estimators.parameters import Parameters
from permix.estimators.registry import Model, has_part, part


class Way(NamedTuple):
    """One way to fit a model: words that ``permix fit`` takes beside the file, and parameters."""

    words: tuple[str, ...]  # such as ("dp-mixture", "--family", "gaussian-diagonal")
    options: Mapping[str, Any] = {}

    @property
    def label(self) -> str:
        """What tables call it."""
        return " ".join(self.words)


class Comparable(abc.ABC):
    """A model whose probabilities of what was held out can be put beside those of other models.

    ``form`` says what is divided into a part to fit and a part to score: ``"votes"`` (a consistent
    :class:`permix.Preferences`, whose rows are agents), ``"matrix"`` (:class:`permix.Cells`, cell by cell)
    or ``"table"`` (a data frame, row by row). All models of one form score the same rows.
    """

    form: ClassVar[str]
    parameters: type[Parameters]
    #: Models that take long come last, so that they get the time that others leave: 0 to 2.
    pace: ClassVar[int] = 1
    #: Why the model is compared only where it is named, going on from its name; "" for one that always is.
    if_named: ClassVar[str] = ""
    #: What the model finds, for a sentence: "groups with a typical ranking ...".
    finds: ClassVar[str]

    @abc.abstractmethod
    def suits(self, data: Any) -> str | None:
        """Return why the model cannot be fitted to such data; None where it can.

        The reason goes on from the model's name: "needs three items or more".
        """

    @abc.abstractmethod
    def ways(self, data: Any) -> tuple[Way, ...]:
        """Return in which ways to fit it, the default first. Parts of the data must not matter.

        What all data share belongs here, such as the levels that cells may have: no part may lack one.
        """

    @abc.abstractmethod
    def fit(self, data: Any, settings: Any) -> Any:
        """Return a fit to a part of the data."""

    @abc.abstractmethod
    def score(self, fit: Any, held_out: Any, seed: int) -> tuple[Array, Array]:
        """Return ln p of each row (or cell) that was held out, and its Monte Carlo error."""

    def improper(self, fit: Any) -> str | None:
        """Return by how much probabilities do not sum to one, where that matters; None if they do."""
        return None

    def affordable(self, held_out: Any, rng: np.random.Generator) -> Any:
        """Return what was held out, or a random part of it where scoring all takes too long."""
        return held_out

    def baselines(self, data: Any, held_out: Any, options: Mapping[str, Any], seed: int) -> dict[str, Array]:
        """Return ln p of what was held out under simpler models, by name; one model of a form has them."""
        return {}


def comparable_of(about: Model) -> Comparable | None:
    """Return what a model has for comparisons; None where it has nothing."""
    return part(about.compared) if has_part(about.compared) else None


def refusal(read: Callable[[Any], Any], data: Any) -> str | None:
    """Return why a reader refuses data, without the way out; None if it does not."""
    try:
        read(data)
    except DataError as error:
        return f"cannot take them: {str(error).partition('; ')[0]}"
    return None
