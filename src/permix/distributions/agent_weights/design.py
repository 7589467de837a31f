"""Columns that say something of agents, as numbers that weights can depend on.

A column of words has an indicator for each value but one, the *reference*: the most frequent value. A column
of numbers is taken as it is, from its mean, in units of its standard deviation, so that all coefficients are
of one size while they are sought; tables show them for one unit of the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from permix.data.agent_table import AgentTable
from permix.data.attributes import Column
from permix.data.labels import Array, some_names
from permix.errors import Argument, DataError

# What a column of words may have of different values; more are names of agents, or numbers written as words.
MOST_VALUES = 100


class Term(NamedTuple):
    """One column: words have ``values``, the reference first; numbers have a mean, a unit and quartiles."""

    name: str
    values: tuple[str, ...] = ()
    mean: float = 0.0
    unit: float = 1.0
    quartiles: tuple[float, ...] = ()

    @property
    def points(self) -> tuple[Any, ...]:
        """What the column is set to where shares are compared: each value, or the quartiles."""
        return self.values or self.quartiles

    @property
    def coefficients(self) -> tuple[str, ...]:
        """What each coefficient is of: a value beside the reference; "" for one more unit of numbers."""
        return self.values[1:] or ("",)

    @property
    def size(self) -> int:
        """How many coefficients it has for each group."""
        return len(self.values) - 1 if self.values else 1

    def at(self, point: Any) -> Array:
        """Return a point as numbers, (size,)."""
        if not self.values:
            return np.array([(point - self.mean) / self.unit])
        return np.array([float(value == point) for value in self.values[1:]])

    def numbers(self, column: Column, row_name: Any) -> Array:
        """Return the entries of a column as (rows, size); ``row_name(row)`` names a row for messages."""
        if bool(self.values) != (column.levels is not None):
            here, there = ("numbers", "words") if self.values else ("words", "numbers")
            said = f"the column {self.name!r} has {here}, and {there} where the model was fitted"
            raise DataError(said)
        entries = column.entries()
        missing = entries == "" if self.values else np.isnan(entries)
        if missing.any():
            row = int(np.argmax(missing))
            raise DataError(
                f"{row_name(row)} has no {self.name} ({int(missing.sum()):,} such row(s)), but weights "
                "depend on it here. Leave these rows out, or give what is missing a value of its own"
            )
        if not self.values:
            return np.asarray((entries - self.mean) / self.unit)[:, None]
        place = {value: at for at, value in enumerate(self.values)}
        places = np.array([place.get(value, -1) for value in entries.tolist()], dtype=np.int64)
        if (places < 0).any():
            row = int(np.argmax(places < 0))
            raise DataError(
                f"{row_name(row)} has {self.name} {entries[row]!r}, which nobody had where the model was "
                f"fitted: known are {some_names(list(self.values))}"
            )
        return np.asarray(places[:, None] == np.arange(1, len(self.values)), dtype=np.float64)


@dataclass(frozen=True)
class Design:
    """The columns that weights depend on."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, table: AgentTable, names: Sequence[str]) -> Design:
        """Return how columns of a table become numbers; refused where they say nothing, or all the same."""
        absent = [name for name in names if name not in table.covariates]
        if absent:
            known = some_names(list(table.covariates)) if table.covariates else "none"
            raise DataError(
                Argument("weights_by"),
                f" names {absent[0]!r}, but the columns known of the agents are: {known}. Give them before "
                "fitting, as by data.with_covariates({...}) or read(path, group_columns=[...])",
            )
        counts = table.counts.astype(np.float64)
        design = cls(tuple(_term(name, table.covariates.column(name), counts) for name in names))
        matrix = design.matrix(table)
        for at in range(1, len(names) + 1):
            n_columns = 1 + sum(term.size for term in design.terms[:at])
            if np.linalg.matrix_rank(matrix[:, :n_columns]) < n_columns:
                raise DataError(
                    Argument("weights_by"),
                    f": {names[at - 1]!r} follows from {some_names(list(names[: at - 1]))}, so that nobody "
                    "can tell which of them weights depend on; leave one out",
                )
        return design

    @property
    def n_columns(self) -> int:
        """How many coefficients each group has, that of the reference included."""
        return 1 + sum(term.size for term in self.terms)

    def matrix(self, table: AgentTable) -> Array:
        """Return (rows, columns) of numbers, the first of which are ones."""
        known = table.covariates
        for term in self.terms:
            if term.name not in known:
                raise DataError(
                    f"weights depend on {term.name} here, which is not known of these agents; give "
                    f"it, as by data.with_covariates({{{term.name!r}: [...]}})"
                )
        parts = [term.numbers(known.column(term.name), table.row_name) for term in self.terms]
        return np.hstack([np.ones((len(table), 1)), *parts])

    def columns_of(self, name: str) -> Array:
        """Return the places of a term's coefficients."""
        first = 1
        for term in self.terms:
            if term.name == name:
                return np.arange(first, first + term.size)
            first += term.size
        raise DataError(f"weights do not depend on {name!r} here")


def _term(name: str, column: Column, counts: Array) -> Term:
    if column.levels is None:
        there = ~np.isnan(column.values)
        if not there.any() or np.ptp(column.values[there]) == 0.0:
            raise _one_value(name)
        mean = float(np.average(column.values[there], weights=counts[there]))
        unit = float(np.sqrt(np.average((column.values[there] - mean) ** 2, weights=counts[there])))
        return Term(name, (), mean, unit, _quartiles(column.values[there], counts[there]))
    known, words = column.values >= 0, column.levels
    agents = np.bincount(column.values[known], counts[known], len(words))
    order = sorted(np.flatnonzero(agents > 0), key=lambda at: (-agents[at], words[at]))
    values = tuple(words[at] for at in order)
    if len(values) < 2:
        raise _one_value(name)
    if len(values) > MOST_VALUES:
        raise DataError(
            Argument("weights_by"),
            f": {name!r} has {len(values):,} different values, and {MOST_VALUES} at most are taken; join "
            "some, or give numbers as numbers",
        )
    return Term(name, values)


def _quartiles(values: Array, counts: Array) -> tuple[float, ...]:
    """Return the quartiles of agents, of which some may be the same."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(counts[order])
    places = np.searchsorted(below, below[-1] * np.array([0.25, 0.5, 0.75]))
    return tuple(np.unique(values[order][places]).tolist())


def _one_value(name: str) -> DataError:
    return DataError(Argument("weights_by"), f": all agents have the same {name}, which says nothing")
