"""What every estimator is: its parameters, a fit behind it, files, and a score."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from permix.estimators.archive import write_model
from permix.estimators.parameters import Parameters, parameter_section, signature_of


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Base of all estimators.

    A subclass names its declared parameters, ``class MyModel(Estimator, parameters=MyParameters)``, which
    gives it the constructor and the parameter list of its docstring. It has ``fit``, which calls ``_adopt``,
    and ``_adopt(fit)``, which shows a fit under scikit-learn's names.
    """

    _parameters_class: ClassVar[type[Parameters]]
    _fit: Any

    def __init_subclass__(cls, *, parameters: type[Parameters] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if parameters is None:
            return
        cls._parameters_class = parameters
        signature = signature_of(parameters.declared)

        def __init__(self: Any, *args: Any, **given: Any) -> None:
            try:
                values = signature.bind(*args, **given)
            except TypeError as error:
                raise TypeError(f"{cls.__name__}() {error}{_near(given, parameters.declared)}") from None
            values.apply_defaults()
            for name, value in values.arguments.items():
                setattr(self, name, value)

        own = signature.parameters.values()
        first = type(next(iter(own)))("self", next(iter(own)).POSITIONAL_OR_KEYWORD)
        __init__.__signature__ = signature.replace(parameters=[first, *own])  # type: ignore[attr-defined]
        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        __init__.__module__ = cls.__module__
        cls.__init__ = __init__  # type: ignore[method-assign]
        cls.__doc__ = _with_parameters(cls.__doc__ or "", parameter_section(parameters.declared))

    def _settings(self) -> Any:
        """Return the parameters, checked."""
        return self._parameters_class(**self.get_params(deep=False))

    def _adopt(self, fit: Any) -> Self:
        """Show a fit under scikit-learn's names."""
        raise NotImplementedError

    @classmethod
    def _from_fit(cls, fit: Any) -> Self:
        return cls(**fit.settings.as_dict())._adopt(fit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, a zip of JSON and ``.npy``; :func:`permix.load` reads it."""
        check_is_fitted(self)
        write_model(self._fit, path)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log predictive probability of an agent; a row counts as often as its count says."""
        scores = np.asarray(self.score_samples(X))
        return float(np.average(scores, weights=getattr(X, "counts", None)))


def _with_parameters(docstring: str, section: str) -> str:
    """Put the list of parameters where numpydoc has it: after the introduction."""
    import inspect

    text = inspect.cleandoc(docstring)
    place = text.find("\nAttributes\n---")
    if place < 0:
        return f"{text}\n\n{section}\n"
    return f"{text[:place]}\n{section}\n{text[place:]}"


def _near(given: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Return what an unknown parameter may have meant, for an error."""
    from difflib import get_close_matches

    near = [match for name in given if name not in known for match in get_close_matches(name, known, 1, 0.75)]
    return f"; did you mean {near[0]!r}?" if near else ""
