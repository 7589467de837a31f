"""Matrices with missing cells: the filled cells, sorted by row and column, with the names of both."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from permix.data import cells_checks as checks
from permix.data.attributes import NONE, Attributes, item_labels
from permix.data.cells_arrays import dense_entries, sparse_entries
from permix.data.cells_checks import Names, called, match_names
from permix.data.cells_codes import Missing, MissingCodes, warn_of_codes
from permix.data.io.columns import is_frame
from permix.data.labels import Array
from permix.errors import Argument, DataError, PermixWarning
from permix.runtime.seeds import generator

CellLayout = Literal["auto", "wide", "long"]


class Cells:
    """The filled cells of a matrix; all others are missing.

    Most people need no more than :meth:`coerce`, :meth:`from_long`, :meth:`from_frame` or
    :func:`permix.read_cells`.

    Parameters
    ----------
    rows, columns : sequence of int
        Where each filled cell is, counted from 0, in any order.
    values : sequence of numbers or of str
        What is in it: all numbers, or all text.
    shape : (int, int)
        Number of rows and of columns.
    row_names, column_names : sequence of str, optional
        Left out, rows and columns are known by number.
    origin : str, optional
        Words for where the cells come from and how they were read; shown by ``repr``.
    new_rows : bool
        Whether these are new rows for a model that is fitted already: then no cell needs to be filled.
    covariates, item_attributes : Attributes, optional
        What is known of rows and of columns beside the cells; no model uses it.
    metadata : mapping, optional
        What was done to the rows and columns on the way here.

    Attributes
    ----------
    rows, columns : ndarray of int32
        Sorted by row, then column.
    values : ndarray
        float64, or objects of type str.

    Examples
    --------
    >>> cells = Cells([0, 1, 1], [1, 0, 2], [4, 2, 5], (2, 3), row_names=["Ann", "Bo"])
    >>> cells
    Cells: 2 rows x 3 columns, 3 of 6 cells filled (50%)
    >>> cells.dense()
    array([[nan,  4., nan],
           [ 2., nan,  5.]])
    """

    rows: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]
    values: Array
    shape: tuple[int, int]
    row_names: Names
    column_names: Names
    origin: str
    covariates: Attributes
    item_attributes: Attributes
    metadata: dict[str, Any]

    def __init__(
        self,
        rows: object,
        columns: object,
        values: object,
        shape: tuple[int, int],
        row_names: Iterable[object] | None = None,
        column_names: Iterable[object] | None = None,
        origin: str = "",
        *,
        new_rows: bool = False,
        covariates: Attributes = NONE,
        item_attributes: Attributes = NONE,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.shape = checks.checked_shape(shape)
        self.covariates = covariates.checked(self.shape[0], "rows")
        self.item_attributes = item_attributes.checked(self.shape[1], "columns")
        self.metadata = dict(metadata or {})
        self.row_names = checks.clean_names(row_names, self.shape[0], "row")
        self.column_names = checks.clean_names(column_names, self.shape[1], "column")
        self.origin = origin
        row = checks.checked_positions(rows, self.shape[0], "row")
        column = checks.checked_positions(columns, self.shape[1], "column")
        filled, present = checks.clean_values(values)
        if not len(row) == len(column) == len(present):
            raise DataError(
                f"there are {len(row)} row positions, {len(column)} column positions and {len(present)} "
                "values; give one of each per cell"
            )
        row, column = row[present], column[present]
        key = row * self.shape[1] + column
        if np.any(key[1:] <= key[:-1]):
            order = np.argsort(key, kind="stable")
            row, column, filled, key = row[order], column[order], filled[order], key[order]
        self.rows, self.columns, self.values = row.astype(np.int32), column.astype(np.int32), filled
        if not len(key) and not new_rows:
            raise DataError("the matrix has no filled cell; there is nothing to learn from")
        for at in np.flatnonzero(key[1:] == key[:-1])[:1].tolist():
            raise DataError(
                f"{self.place(at)} is given twice ({filled[at]} and {filled[at + 1]}); keep one "
                "value per cell, for example the mean or the latest"
            )
        for at in np.flatnonzero(~np.isfinite(filled))[:1].tolist() if filled.dtype.kind == "f" else ():
            raise DataError(
                f"{self.place(at)}: {filled[at]} is not finite; use a finite number, or NaN for missing"
            )
        for array in (self.rows, self.columns, self.values):
            array.flags.writeable = False

    # -- other ways in ---------------------------------------------------------------------------

    @classmethod
    def coerce(cls, X: object, *, missing: Missing = None, new_rows: bool = False) -> Cells:
        """Take a matrix in any usual form.

        Parameters
        ----------
        X : Cells, array, masked array, list of rows, sparse matrix or wide data frame
            NaN, None and what is masked are missing. In a sparse matrix (scipy, any format) what is stored
            is filled, zeros included, and what is not stored is missing. A data frame has a column for
            every column of the matrix; long frames go to :meth:`from_frame`.
        missing : number, str, or a list of these, optional
            Values that stand for missing cells, such as -1 or "refused".
        new_rows : bool
            Whether these are new rows for a model that is fitted already: then nobody is warned of rows and
            columns without filled cells.

        Examples
        --------
        >>> Cells.coerce([[1, None], [0, 1]])
        Cells: 2 rows x 2 columns, 3 of 4 cells filled (75%)
        """
        codes = MissingCodes(missing)
        if isinstance(X, cls):
            if codes:
                said = "these are Cells already; say "
                raise DataError(said, Argument("missing"), " where they are made or read")
            return X
        if hasattr(X, "tocoo"):
            return looked_over(cls(*sparse_entries(X, codes), new_rows=new_rows), codes, new_rows)
        if is_frame(X):
            from permix.data.io.cells_io import refuse_long_frame

            refuse_long_frame(X)
            return cls.from_frame(X, layout="wide", missing=missing, new_rows=new_rows)
        return looked_over(cls(*dense_entries(X, codes), new_rows=new_rows), codes, new_rows)

    @classmethod
    def from_long(
        cls,
        rows: object,
        columns: object,
        values: object,
        shape: tuple[int, int] | None = None,
        row_names: Iterable[object] | None = None,
        column_names: Iterable[object] | None = None,
        *,
        missing: Missing = None,
        new_rows: bool = False,
    ) -> Cells:
        """Make a matrix from one entry per filled cell.

        Parameters
        ----------
        rows, columns : sequences of str or int
            Names of row and column. Integers are names too (user 17), and come out in ascending order, text
            in order of first appearance; with ``shape`` integers are positions counted from 0.
        values : sequence
            Missing ones are left out.
        shape : (int, int), optional
            Number of rows and columns, for positions.
        row_names, column_names : sequence, optional
            All names, in the order wanted; also those without a filled cell.
        missing, new_rows
            As in :meth:`coerce`.

        Examples
        --------
        >>> cells = Cells.from_long(["Ann", "Bo", "Bo"], ["tea", "tea", "milk"], [5, 2, 4])
        >>> cells.row_names, cells.column_names, cells.rows.tolist(), cells.columns.tolist()
        (('Ann', 'Bo'), ('tea', 'milk'), [0, 1, 1], [0, 0, 1])
        """
        codes = MissingCodes(missing)
        filled = codes.blanked(checks.as_flat(values)) if codes else values
        if shape is not None:
            cells = cls(rows, columns, filled, shape, row_names, column_names, new_rows=new_rows)
            return looked_over(cells, codes, new_rows)
        row, names = checks.encode_names(rows, row_names, "row")
        column, others = checks.encode_names(columns, column_names, "column")
        if not names or not others:
            raise DataError("the matrix has no filled cell; there is nothing to learn from")
        size = (len(names), len(others))
        both = (names, others) if new_rows else (checks.unless_plain(names), checks.unless_plain(others))
        return looked_over(cls(row, column, filled, size, *both, new_rows=new_rows), codes, new_rows)

    @classmethod
    def from_frame(
        cls,
        frame: object,
        layout: CellLayout = "auto",
        *,
        row_column: str | Literal[False] | None = None,
        missing: Missing = None,
        new_rows: bool = False,
    ) -> Cells:
        """Take a pandas or polars frame, wide or long.

        Parameters
        ----------
        frame : data frame
        layout : {"auto", "wide", "long"}
            * ``wide``: a column for every column of the matrix; a pandas index other than 0, 1, 2, … holds
              the names of rows.
            * ``long``: one filled cell in each row of the frame, with columns for row, column and value
              (called so, or ``user``, ``item``, ``rating`` and the like; else the first three).
            * ``auto``: long where the names of columns say so, wide where it cannot be long, and an error
              that asks where it could be both.
        row_column : str or False, optional
            Wide frames: the column that names the rows. Left out, a first column called ``name``, ``id``,
            ``user`` and the like, one without a name, or one of text, all different, beside numbers; False
            means that there is none.
        missing, new_rows
            As in :meth:`coerce`.

        Examples
        --------
        >>> import pandas as pd
        >>> Cells.from_frame(pd.DataFrame({"user": ["a", "b"], "film": ["x", "y"], "rating": [3, 4]}))
        Cells: 2 rows x 2 columns, 2 of 4 cells filled (50%), from a frame, read as a long table
        """
        from permix.data.io.cells_io import cells_from_frame

        codes = MissingCodes(missing)
        return looked_over(cells_from_frame(frame, layout, row_column, codes, new_rows), codes, new_rows)

    # -- what people ask -------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.shape[1]

    @property
    def n_cells(self) -> int:
        """Number of filled cells."""
        return len(self.values)

    @property
    def is_text(self) -> bool:
        """Whether values are text."""
        return self.values.dtype.kind == "O"

    def row_index(self, name: object) -> int:
        """Position of a row given by name, or by number from 0 where no name is a number."""
        return checks.index_of(name, self.row_names, self._row_places, self.shape[0], "row")

    def column_index(self, name: object) -> int:
        """Position of a column given by name, or by number from 0 where no name is a number."""
        return checks.index_of(name, self.column_names, self._column_places, self.shape[1], "column")

    def row_name(self, position: int) -> str:
        """Name of a row; where there are none, its number from 1."""
        return str(position + 1) if self.row_names is None else self.row_names[position]

    def column_name(self, position: int) -> str:
        """Name of a column; where there are none, its number from 1."""
        return str(position + 1) if self.column_names is None else self.column_names[position]

    def column_labels(self) -> list[str]:
        """Return what columns are called in tables: with party or text, where these are known."""
        names = [self.column_name(place) for place in range(self.n_columns)]
        return item_labels(names, self.item_attributes)

    def place(self, position: int) -> str:
        """Words for where the filled cell number ``position`` is; numbers in them count from 1."""
        row, column = int(self.rows[position]), int(self.columns[position])
        return f"{called('row', row, self.row_names)}, {called('column', column, self.column_names)}"

    def dense(self) -> Array:
        """Return the whole matrix: NaN where missing, or None where values are text."""
        table: Array = np.full(self.shape, None if self.is_text else np.nan, dtype=self.values.dtype)
        table[self.rows, self.columns] = self.values
        return table

    def split(self, share: float = 0.25, random_state: Any = None) -> tuple[Cells, Cells]:
        """Hold a share of the filled cells out, at random.

        Parameters
        ----------
        share : float
            Between 0 and 1.
        random_state : int, Generator, optional

        Returns
        -------
        kept, held_out : Cells
            Both with all rows and columns and their names.

        Examples
        --------
        >>> kept, held_out = Cells.coerce(np.ones((4, 5))).split(0.25, random_state=0)
        >>> kept.n_cells, held_out.n_cells, held_out.shape
        (15, 5, (4, 5))
        """
        if not isinstance(share, int | float | np.number) or not 0.0 < share < 1.0:
            raise DataError(f"the share of held-out cells must be above 0 and below 1, got {share!r}")
        n = round(float(share) * self.n_cells)
        if n in (0, self.n_cells):
            raise DataError(f"a share of {share:g} of {self.n_cells} cells leaves one part empty")
        rng = generator(random_state)
        held = np.zeros(self.n_cells, dtype=np.bool_)
        held[rng.choice(self.n_cells, size=n, replace=False, shuffle=False)] = True
        return self._some(~held), self._some(held)

    def _some(self, chosen: Array) -> Cells:
        names = (self.row_names, self.column_names)
        cells = (self.rows[chosen], self.columns[chosen], self.values[chosen])
        return type(self)(*cells, self.shape, *names, **self._beside())

    def _beside(self) -> dict[str, Any]:
        return {
            "covariates": self.covariates,
            "item_attributes": self.item_attributes,
            "metadata": self.metadata,
        }

    def take(self, rows: Array, columns: Array) -> Cells:
        """Return some rows and some columns, given by masks, with all that is known of them."""
        kept = rows[self.rows] & columns[self.columns]
        where = [np.cumsum(mask) - 1 for mask in (rows, columns)]
        names = [
            None if listed is None else [name for name, stays in zip(listed, mask, strict=True) if stays]
            for listed, mask in ((self.row_names, rows), (self.column_names, columns))
        ]
        # A row without a name is known by its number, which must not change in silence.
        if names[0] is None and not rows.all():
            names[0] = [str(place + 1) for place in np.flatnonzero(rows)]
        if names[1] is None and not columns.all():
            names[1] = [str(place + 1) for place in np.flatnonzero(columns)]
        return type(self)(
            where[0][self.rows[kept]],
            where[1][self.columns[kept]],
            self.values[kept],
            (int(rows.sum()), int(columns.sum())),
            names[0],
            names[1],
            self.origin,
            covariates=self.covariates.take(np.flatnonzero(rows)),
            item_attributes=self.item_attributes.take(np.flatnonzero(columns)),
            metadata=self.metadata,
        )

    def with_covariates(self, columns: Mapping[str, object]) -> Cells:
        """Return the same with columns that say something of each row: precinct, age, region, …."""
        return self._with(covariates=Attributes(columns))

    def with_item_attributes(self, columns: Mapping[str, object]) -> Cells:
        """Return the same with columns that say something of each column: party, color, text, …."""
        return self._with(item_attributes=Attributes(columns))

    def _with(self, **changes: Any) -> Cells:
        names = (self.row_names, self.column_names)
        cells = (self.rows, self.columns, self.values, self.shape, *names, self.origin)
        return type(self)(*cells, new_rows=True, **(self._beside() | changes))

    def aligned(self, other: Cells, *, rows: bool = True) -> Cells:
        """Return the same cells on the rows and columns of another matrix.

        Columns (and rows) that both name are matched by name. Where these have no names, they are matched by
        position; where the other has none, names of these must be numbers, from 0 or from 1.

        Parameters
        ----------
        other : Cells
        rows : bool
            False leaves the rows alone: they are new.

        Raises
        ------
        DataError
            For a row or column that the other does not have, or cannot be told to have; positions need equal
            numbers.
        """
        like = other if rows else self
        shape, names = (like.n_rows, other.n_columns), (like.row_names, other.column_names)
        column = match_names(self.column_names, names[1], self.n_columns, shape[1], "column")
        row = match_names(self.row_names, names[0], self.n_rows, shape[0], "row")
        cells = (row[self.rows], column[self.columns], self.values)
        return type(self)(*cells, shape, *names, new_rows=not rows)

    @cached_property
    def _row_places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.row_names or ())}

    @cached_property
    def _column_places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.column_names or ())}

    def __repr__(self) -> str:
        n = self.shape[0] * self.shape[1]
        source = f", {self.origin}" if self.origin else ""
        return (
            f"Cells: {self.shape[0]} rows x {self.shape[1]} columns, {self.n_cells} of {n} cells filled "
            f"({100 * self.n_cells / n:.3g}%){source}"
        )


def looked_over(cells: Cells, codes: MissingCodes, new_rows: bool) -> Cells:
    """Warn of what is likely to be a slip: values that look like codes, rows and columns that say nothing."""
    if new_rows:  # they may have few cells; what the fitted rows mean by nothing was settled when they came
        return cells
    codes.warn_of_unseen()
    warn_of_codes(cells.values)
    places, names = (cells.rows, cells.columns), (cells.row_names, cells.column_names)
    for what, at, size, known in zip(("row", "column"), places, cells.shape, names, strict=True):
        empty = np.flatnonzero(np.bincount(at, minlength=size) == 0)
        if empty.size:
            first = called(what, int(empty[0]), known)
            said = f"{empty.size} {what}(s) have no filled cell (first: {first}); only the prior says where "
            warnings.warn(f"{said}they belong", PermixWarning, stacklevel=3)
    return cells
