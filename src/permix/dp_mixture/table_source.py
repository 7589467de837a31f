"""Tables of numbers, counts or categories on the command line: CSV, TSV, ``.npy`` and sparse ``.npz``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from permix.cli.command import BESIDE, IGNORE, MISSING, SHEET, Option, Source
from permix.cli.stdin import spooled
from permix.errors import Argument, DataError, about_parameters
from permix.runtime.telling import tell

TABLES = Source(
    "CSV, TSV (plain or .gz), Excel, Parquet, JSON lines, .npy, or scipy sparse .npz; - is standard input.",
    {
        "row_column": Option(str, "Column that names the rows and is not data.", ("--id",)),
        "header": Option(
            bool,
            "Whether the first line of a CSV file names the columns [default: what it looks like].",
            ("--header/--no-header",),
        ),
        "ignore": IGNORE,
        "group_columns": BESIDE["group_columns"],
        "missing": MISSING,
        "sheet": SHEET,
    },
    "permix.dp_mixture.table_source:read_table",
    "table",
)


class Table(NamedTuple):
    """What a file of rows holds."""

    file: Path
    rows: Any  # a frame, an array or a sparse matrix
    ids: list[Any]  # names of the rows, numbers from 1 on where they have none
    id_name: str
    covariates: Any = ()  # Attributes: columns that are not fitted

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns, where there are any."""
        return tuple(map(str, self.rows.columns)) if hasattr(self.rows, "columns") else None

    def alike(self) -> Any:
        """Number the rows, those that are alike by one number."""
        import pandas as pd

        if hasattr(self.rows, "indptr"):
            table = self.rows.copy()
            table.sum_duplicates()
            parts = zip(table.indptr[:-1], table.indptr[1:], strict=True)
            rows = [(table.indices[a:b].tobytes(), table.data[a:b].tobytes()) for a, b in parts]
            return pd.factorize(pd.Series(rows, dtype=object))[0]
        frame = pd.DataFrame(self.rows)
        return frame.groupby(list(frame.columns), dropna=False, sort=False).ngroup().to_numpy()

    def refuse_text(self, *way_out: str | Argument) -> None:
        """Refuse a column of text among numbers: say which, where it shows, and the ways out."""
        if self.columns is None:
            return
        import numpy as np
        import pandas as pd
        from pandas.api.types import is_numeric_dtype

        column = next((self.rows[name] for name in self.rows if not is_numeric_dtype(self.rows[name])), None)
        if column is None:
            return
        bad = np.flatnonzero(pd.to_numeric(column, errors="coerce").isna() & column.notna())
        example = f" (row {bad[0] + 1}: {column.iloc[bad[0]]!r})" if len(bad) else ""
        said = way_out or (
            " Name it with ",
            Argument("row_column"),
            " if it labels the rows, leave it out with ",
            Argument("ignore", column.name),
            ", or use ",
            Argument("family", "mixed"),
            ".",
        )
        raise DataError(f"column {column.name!r} of {self.file.name} is not numeric{example}.", *said)

    def like(self, columns: tuple[str, ...] | None, n_columns: int) -> Table:
        """Return the columns that a model was fitted to, in that order."""
        here = self.columns
        if columns is None or here is None:
            if self.rows.shape[1] != n_columns:
                raise DataError(
                    f"{self.file} has {self.rows.shape[1]} columns, but the model was fitted to {n_columns}"
                )
            return self
        missing = [name for name in columns if name not in here]
        if missing:
            raise DataError(f"{self.file}: there is no column {missing[0]!r}, to which the model was fitted")
        extra = [name for name in here if name not in columns]
        if extra:
            raise DataError(
                f"the model was not fitted to column {extra[0]!r} of {self.file}: name it with ",
                Argument("row_column"),
                " if it labels the rows, or leave it out with ",
                Argument("ignore", extra[0]),
            )
        return self._replace(rows=self.rows[[self.rows.columns[here.index(name)] for name in columns]])


def read_table(file: Path, values: Mapping[str, Any]) -> Table:
    """Read a table once."""
    file = spooled(file)
    row_column, ignore = values.get("row_column"), values.get("ignore") or []
    beside = values.get("group_columns") or []
    header = values.get("header")
    if file.suffix in (".npy", ".npz"):
        from permix.data.io.text_files import check_file

        check_file(file)
        if row_column is not None or ignore or beside or header is not None:
            idle = (Argument("row_column"), ", ", Argument("ignore"), " and ", Argument("header"))
            with about_parameters():
                raise DataError(*idle, f" are for CSV files; {file.name} has no column names")
        from permix.data.io.containers.numpy_files import read_npy, read_sparse

        if file.suffix == ".npz":
            from scipy import sparse

            rows: Any = sparse.csr_array(read_sparse(file))
        else:
            rows = read_npy(file)
        if rows.ndim != 2:
            raise DataError(f"{file} holds an array of shape {rows.shape}; expected rows and columns")
        if values.get("missing"):
            if file.suffix == ".npz":
                raise DataError(Argument("missing"), " is not for sparse files, which hold counts")
            rows = _without_codes(rows, values["missing"])
        return Table(file, rows, list(range(1, rows.shape[0] + 1)), "row")
    from permix.data.io.frames import read_frame
    from permix.data.io.table_columns import no_column

    frame = read_frame(file, header=header, sheet=values.get("sheet"))
    purposes = dict.fromkeys(ignore, " to ignore") | dict.fromkeys(beside, " of the rows")
    purposes |= {row_column: " to name the rows"} if row_column else {}
    left_out = list(purposes)
    for name, purpose in purposes.items():
        if name not in frame.columns:
            raise no_column(file, name, purpose, frame.columns)
    ids = list(frame[row_column]) if row_column else list(range(1, len(frame) + 1))
    from permix.data.attributes import from_text

    covariates = from_text({name: _as_written(frame[name]) for name in beside})
    frame = frame.drop(columns=left_out)
    if values.get("missing"):
        frame = _without_codes(frame, values["missing"])
    for name in frame.columns:
        if re.fullmatch(r"unnamed\d+", str(name)):
            tell(f"warning: a nameless column is taken as data; --ignore {name} leaves it out")
    if frame.shape[1] == 0:
        raise DataError(f"{file.name} has no column left")
    return Table(file, frame, ids, row_column or "row", covariates)


def _as_written(column: Any) -> list[Any]:
    """Return the entries of a column; whole numbers have no decimal point."""
    listed = column.tolist()
    return [int(value) if isinstance(value, float) and value.is_integer() else value for value in listed]


def _without_codes(table: Any, missing: list[str]) -> Any:
    """Return a frame or an array with gaps for the values that stand for missing cells."""
    import pandas as pd

    from permix.data.cells_codes import MissingCodes

    codes = MissingCodes(missing)
    if not hasattr(table, "columns"):
        table = codes.blanked(table.ravel()).reshape(table.shape)
    else:
        columns = {}
        for place, name in enumerate(table.columns):
            column = pd.Series(codes.blanked(table.iloc[:, place].to_numpy()), index=table.index)
            numbers = pd.to_numeric(column, errors="coerce")
            # Text such as "refused" among numbers made a column one of text.
            columns[name] = column if (numbers.isna() & column.notna()).any() else numbers
        table = pd.DataFrame(columns)
    codes.warn_of_unseen()
    return table
