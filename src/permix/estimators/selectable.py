"""What :func:`permix.select_components` asks of a model: one small object in the model's folder."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.errors import Message
from permix.estimators.parameters import Parameters
from permix.estimators.wording import cut_short

# Whether groups recur is looked at in a random part of more agents: all of them say little more.
MOST_LOOKED_AT = 6_000


class Selectable(abc.ABC):
    """A mixture whose number of groups can be chosen.

    Its parameters have ``n_components``, ``random_state`` and ``progress``; its fits have
    ``log_likelihood``, ``converged``, ``interrupted`` and ``draws``, or ``history``.
    """

    parameters: type[Parameters]

    @abc.abstractmethod
    def read(self, data: Any, items: Any = None) -> Any:
        """Return data as the fit takes them, a table of agents; over given items, where there are any."""

    @abc.abstractmethod
    def fit(self, table: Any, settings: Any) -> Any:
        """Return a fit, without warnings about it."""

    def fit_more(self, table: Any, settings: Any, smaller: Any) -> Any:
        """Return a fit with more groups than ``smaller``, a fit to the same data that it may begin with."""
        return self.fit(table, settings)

    def refit(self, table: Any, settings: Any, part: Any) -> Any:
        """Return a fit to all data, of which a part was fitted with as many groups."""
        return self.fit(table, settings)

    @abc.abstractmethod
    def score(self, fit: Any, table: Any, seed: int) -> tuple[Array, Array]:
        """Return ln P of each row and its Monte Carlo error."""

    @abc.abstractmethod
    def check_criterion(self, criterion: str, table: Any, settings: Any) -> None:
        """Refuse a criterion that cannot be had, before anything is fitted."""

    def criterion(self, criterion: str, fit: Any, table: Any) -> tuple[float, float]:
        """Return its value, and the (maybe effective) number of parameters in it."""
        raise NotImplementedError

    def check_settings(self, table: Any, settings: Sequence[Any]) -> None:  # noqa: B027 (some use all)
        """Refuse parameters that no fit to such data uses, from the fewest groups to the most."""

    def unsettled(self, said: str, settings: Any) -> Message:
        """Say, at the end of a sentence, by which arguments a fit comes to rest."""
        return cut_short(said, settings.max_iter)

    def affordable(self, table: Any, rng: np.random.Generator) -> Any:
        """Return the table, or a random part of the agents where scoring all takes too long."""
        return table

    def recurs(self, fit: Any) -> bool | None:
        """Return whether all groups recur in every restart that counts; None where a model has none."""
        return None

    def columns(self, fits: Sequence[Any]) -> dict[str, Any]:
        """Return further columns of the table, from the fits to all folds."""
        return {}
