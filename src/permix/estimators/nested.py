"""Parameters of parameters, such as ``family__noise_scale``, in scikit-learn's searches and pipelines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self


class NestedParameters:
    """An estimator some of whose parameters are frozen dataclasses with fields that can be set by name.

    The objects are never changed: :meth:`set_params` puts others in their place, so that copies of an
    estimator may share them.
    """

    #: Names of such parameters, and the functions that return the object for what was given: a name, or None.
    _nested: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; ``deep`` adds those of objects, as ``family__noise_scale``."""
        parameters: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        for name in self._nested if deep else ():
            value = parameters[name]
            if dataclasses.is_dataclass(value):
                fields = dataclasses.fields(value)
                parameters |= {f"{name}__{field.name}": getattr(value, field.name) for field in fields}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name; ``family__noise_scale=2.0`` replaces the family by one that differs so."""
        changes: dict[str, dict[str, Any]] = {}
        for key in list(parameters):
            name, separator, field = key.partition("__")
            if separator and name in self._nested:
                changes.setdefault(name, {})[field] = parameters.pop(key)
        super().set_params(**parameters)  # type: ignore[misc]
        for name, values in changes.items():
            value = self._nested[name](getattr(self, name))
            known = [field.name for field in dataclasses.fields(value)]
            for field in values:
                if field not in known:
                    raise ValueError(
                        f"Invalid parameter {field!r} for {name}={value!r}. Valid parameters are: {known}."
                    )
            setattr(self, name, dataclasses.replace(value, **values))
        return self
