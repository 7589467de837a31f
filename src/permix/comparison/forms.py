"""Forms of data in which models are compared: votes, matrices, tables. Each is divided in its own way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from permix.data.agent_table import AgentTable
from permix.data.cells import Cells
from permix.data.labels import Array
from permix.errors import DataError
from permix.estimators.checks import Whole
from permix.estimators.preference_input import as_preferences

# With fewer held out in one part, everything is held out once instead, in so many parts.
LEAST_HELD_OUT = 100
N_FOLDS = 3
TEST_SIZE = 0.25


class Form:
    """What data of one form are called, and how they are divided."""

    name: ClassVar[str]
    unit: ClassVar[str]  # what is held out and scored: "agent", "cell" or "row"
    said: ClassVar[str]  # what is more or less probable, in a sentence
    member: ClassVar[str] = "a row"  # what belongs to groups

    def read(self, data: Any) -> Any:
        """Return data as all models of the form take them."""
        return data

    def size(self, table: Any) -> int:
        """Return how many units there are."""
        raise NotImplementedError

    def folds(
        self, table: Any, test_size: float, n_folds: int | None, rng: np.random.Generator
    ) -> Iterator[tuple[Any, Any]]:
        """Yield parts to fit, and parts to score; every unit is scored at most once."""
        raise NotImplementedError

    def some(self, table: Any, n: int, rng: np.random.Generator) -> Any:
        """Return so many units at random."""
        raise NotImplementedError

    def counts(self, held_out: Any) -> Array:
        """Return how many units each scored row stands for."""
        return np.ones(self.size(held_out), dtype=np.int64)

    def is_large(self, table: Any) -> bool:
        """Say whether a single part held out has enough units."""
        return TEST_SIZE * self.size(table) >= LEAST_HELD_OUT


class Votes(Form):
    """Agents with rankings or preferences; those who say the same are one row with a count."""

    name, unit, said = "votes", "agent", "what an agent says"
    member = "an agent"

    def read(self, data: Any) -> Any:
        return as_preferences(data)._bare().collapse()

    def size(self, table: Any) -> int:
        return int(table.n_agents)

    def folds(
        self, table: Any, test_size: float, n_folds: int | None, rng: np.random.Generator
    ) -> Iterator[tuple[Any, Any]]:
        if n_folds is None:
            yield table.split(test_size, rng)
            return
        rest, parts = table, []
        for left in range(n_folds, 1, -1):
            rest, part = rest.split(rest.n_agents // left, rng)
            parts.append(part)
        parts.append(rest)
        for number, part in enumerate(parts):
            yield type(table).concat(parts[:number] + parts[number + 1 :]).collapse(), part

    def some(self, table: Any, n: int, rng: np.random.Generator) -> Any:
        return table.split(n, rng)[1]

    def counts(self, held_out: Any) -> Array:
        return np.asarray(held_out.counts)


class Matrix(Form):
    """Filled cells of a matrix; rows and columns stay, some of their cells are held out."""

    name, unit, said = "matrix", "cell", "what a cell holds"

    def read(self, data: Any) -> Any:
        return Cells.coerce(data)

    def size(self, table: Any) -> int:
        return int(table.n_cells)

    def folds(
        self, table: Any, test_size: float, n_folds: int | None, rng: np.random.Generator
    ) -> Iterator[tuple[Any, Any]]:
        if n_folds is None:
            yield table.split(test_size, rng)
            return
        fold_of = rng.permutation(np.arange(table.n_cells) % n_folds)
        for fold in range(n_folds):
            yield table._some(fold_of != fold), table._some(fold_of == fold)

    def some(self, table: Any, n: int, rng: np.random.Generator) -> Any:
        """Return rows at random that have about so many cells; columns that become empty go."""
        n_rows = min(max(2, round(n * table.n_rows / table.n_cells)), table.n_rows)
        rows = np.zeros(table.n_rows, dtype=np.bool_)
        rows[rng.choice(table.n_rows, n_rows, replace=False)] = True
        columns = np.bincount(table.columns[rows[table.rows]], minlength=table.n_columns) > 0
        filled = np.bincount(table.rows, minlength=table.n_rows) > 0
        return table.take(rows & filled, columns)


class Table(Form):
    """Rows of numbers, counts and categories."""

    name, unit, said = "table", "row", "a row"

    def read(self, data: Any) -> Any:
        import pandas as pd

        if hasattr(data, "to_pandas"):
            data = data.to_pandas()
        return pd.DataFrame(data).reset_index(drop=True)

    def size(self, table: Any) -> int:
        return len(table)

    def folds(
        self, table: Any, test_size: float, n_folds: int | None, rng: np.random.Generator
    ) -> Iterator[tuple[Any, Any]]:
        order = rng.permutation(len(table))
        n_test = min(max(round(test_size * len(table)), 1), len(table) - 1)
        parts = [order[:n_test]] if n_folds is None else np.array_split(order, n_folds)
        for part in parts:
            held = np.zeros(len(table), dtype=np.bool_)
            held[part] = True
            yield table[~held], table[held]

    def some(self, table: Any, n: int, rng: np.random.Generator) -> Any:
        return table.iloc[np.sort(rng.choice(len(table), n, replace=False))]


FORMS: dict[str, Form] = {form.name: form for form in (Votes(), Matrix(), Table())}


def form_of(data: Any) -> Form:
    """Return the form that data have."""
    if isinstance(data, AgentTable):
        return FORMS["votes"]
    if isinstance(data, Cells) or hasattr(data, "tocoo"):
        return FORMS["matrix"]
    if hasattr(data, "columns"):
        return FORMS["table"]
    if isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind == "f":
        return FORMS["table"]
    if isinstance(data, np.ndarray) and data.ndim == 2:
        raise DataError(
            "an array of whole numbers may hold orderings, ratings or measurements: pass "
            "Rankings.from_orders(array), Cells.coerce(array), or a data frame"
        )
    known = "Rankings, Preferences, Cells, or a data frame"
    raise DataError(f"models are compared on {known}, not on a {type(data).__name__}")


def divided(
    form: Form, table: Any, test_size: float | None, n_folds: int | None, rng: np.random.Generator
) -> list[tuple[Any, Any]]:
    """Return pairs of a part to fit and a part to score.

    A quarter is held out; where that is less than 100 units, everything once, in three parts.
    """
    n = form.size(table)
    if n < 4:
        raise DataError(f"{n} {form.unit}s are too few to hold some of them out; four are needed at least")
    if test_size is not None and n_folds is not None:
        raise DataError("test_size and n_folds exclude each other; leave one out")
    if test_size is not None and not 0.0 < test_size < 1.0:
        raise DataError(f"test_size={test_size!r} must be a share above 0 and below 1")
    if test_size is None and n_folds is None and not form.is_large(table):
        n_folds = min(N_FOLDS, n // 2)
    if n_folds is not None:
        n_folds = Whole(2, n)("n_folds", n_folds)
    return list(form.folds(table, TEST_SIZE if test_size is None else test_size, n_folds, rng))
