"""How cells of a shard become what compiled code reads, for each family; these travel to workers."""

from __future__ import annotations

import numpy as np

from permix.data.cells import Cells
from permix.data.labels import Array
from permix.errors import CellError, ShardError
from permix.families import Categorical, Multinomial
from permix.kernels.lines_jit import Lines, lines_of
from permix.moves.sharded.encodings import LineEncoding, VectorEncoding


class Numbers(LineEncoding):
    """Numbers, some of them missing, measured from ``center`` in units of their columns."""

    levels, n_slots = False, 3

    def __init__(self, center: Array, unit: Array) -> None:
        self.center, self.unit, self.n_columns = center, unit, len(unit)

    def rows(self, cells: Cells) -> Lines:
        return lines_of(cells.rows, cells.columns, measured(cells, self.center, self.unit), cells.n_rows)


class Vectors(VectorEncoding):
    """Rows of numbers, none of them missing, measured from ``center`` in units of their columns."""

    def __init__(self, center: Array, unit: Array) -> None:
        self.center, self.unit, self.n_columns = center, unit, len(unit)

    def rows(self, cells: Cells) -> Array:
        # Cells are sorted by row and column, and none is missing.
        found = measured(cells, self.center, self.unit).reshape(cells.n_rows, self.n_columns)
        return np.ascontiguousarray(found)


class Answers(LineEncoding):
    """Answers by their numbers; what is missing is left out."""

    levels = True

    def __init__(self, family: Categorical) -> None:
        self.family, self.n_columns = family, len(family.levels or ())
        self.n_slots = max(len(column) for column in family.levels or ())

    def rows(self, cells: Cells) -> Lines:
        try:
            codes = self.family.encode(cells.dense())
        except CellError as error:
            raise ShardError(named(error, cells)) from None
        row, column = np.nonzero(codes >= 0)
        return lines_of(row, column, codes[row, column].astype(np.float64), cells.n_rows)


class Words(LineEncoding):
    """Counts, of which zeros say nothing."""

    levels, n_slots = False, 2

    def __init__(self, family: Multinomial, n_columns: int) -> None:
        self.family, self.n_columns = family, n_columns

    def rows(self, cells: Cells) -> Lines:
        try:
            counts = self.family.encode(cells.dense())
        except CellError as error:
            raise ShardError(named(error, cells)) from None
        return Lines(counts.indptr, counts.indices, counts.values)


def measured(cells: Cells, center: Array, unit: Array) -> Array:
    """Return numbers as distances from the center of their column, in its units."""
    return np.asarray((cells.values - center[cells.columns]) / unit[cells.columns])


def named(error: CellError, cells: Cells) -> str:
    """Say where a wrong cell is, by the names that its shard has."""
    column = cells.column_name(error.column)
    row = "" if error.row is None else f"{cells.row_name(error.row)}, "
    return error.what.format(place=f"row {row}column {column}", columns="")
