"""Files with a matrix on the command line: the options that say how to read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from permix.cli.command import (
    BESIDE,
    IGNORE,
    MIN_ANSWERS,
    MIN_SUPPORT,
    MISSING,
    MODERATED,
    SHEET,
    Option,
    Source,
)
from permix.cli.stdin import spooled
from permix.runtime.telling import tell

if TYPE_CHECKING:
    from permix.data.cells import Cells

MATRIX_OPTIONS: Mapping[str, Option] = {
    "layout": Option(
        str,
        "Layout of a CSV file: a line for every row, or for every filled cell [default: what it looks like].",
        choices=("auto", "wide", "long"),
    ),
    "header": Option(
        bool,
        "Matrices: whether the first line of a CSV file names the columns [default: what it looks like].",
        ("--header/--no-header",),
    ),
    "row_column": Option(
        str,
        'Wide CSV file: column that names the rows and is no cell; "": none does.',
        ("--id",),
        empty="no column names the rows",
    ),
    "row": Option(str, "Long CSV file: column that names the row of a cell; with --column and --value."),
    "column_of_cell": Option(str, "Long CSV file: column that names the column of a cell.", ("--column",)),
    "value": Option(str, "Long CSV file: column that holds the value of a cell."),
    "repeated": Option(
        str,
        "Long CSV file: a cell that is given twice is an error, or the last one counts [default: error].",
        choices=("error", "last"),
    ),
    "ignore": IGNORE,
    **BESIDE,
    "min_support": MIN_SUPPORT,
    "min_answers": MIN_ANSWERS,
    "sheet": SHEET,
    "missing": MISSING,
    "moderated": MODERATED,
}


def read_matrix(file: Path, values: Mapping[str, Any]) -> Cells:
    """Read the matrix to fit, and say how it was read unless that is not wanted."""
    cells = read_rows(file, values, new_rows=False)
    if not (values["quiet"] or values["json"]):
        tell(repr(cells))
    return cells


def read_rows(file: Path, values: Mapping[str, Any], new_rows: bool = True) -> Cells:
    """Read rows, or cells, to predict for."""
    from permix.data.io.cells_io import read_cells

    row_column = values.get("row_column")
    cells = read_cells(
        spooled(file),
        values.get("layout") or "auto",
        header=values.get("header"),
        row_column=False if row_column == "" else row_column,
        missing=values.get("missing") or [],
        ignore=values.get("ignore") or [],
        row=values.get("row"),
        column=values.get("column_of_cell"),
        value=values.get("value"),
        repeated=values.get("repeated") or "error",
        group_columns=values.get("group_columns") or [],
        item_table=values.get("item_table"),
        sheet=values.get("sheet"),
        moderated=values.get("moderated"),
        new_rows=new_rows,
    )
    rules = {name: values[name] for name in ("min_support", "min_answers") if values.get(name) is not None}
    if not rules:
        return cells
    from permix.data import clean

    cleaned: Cells = clean(cells, **rules)
    return cleaned


MATRIX = Source(
    "CSV, TSV, Excel, Parquet or JSON lines, wide or with lines row,column,value; votes of a Polis "
    "conversation; PrefLib .cat; or scipy sparse .npz; - is standard input. Blank cells, and those a sparse "
    "matrix does not store, are missing.",
    MATRIX_OPTIONS,
    "permix.cocluster.matrix_source:read_matrix",
    "matrix",
)
