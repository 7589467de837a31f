"""What ``info`` says about a table of measurements, counts and answers."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from permix.cli.output import cell_text, print_json, print_table
from permix.cli.stdin import is_stdin
from permix.cli.votes import ReadOptions
from permix.errors import CellError, DataError
from permix.registries import part

# A smaller table that does not read as votes is rather a mistake in a file of votes.
LEAST_ROWS = 20
# Columns that are shown.
MOST_COLUMNS = 30
# Categories that are listed one by one.
MOST_LEVELS = 6


def describe_table(rows: Any) -> dict[str, Any]:
    """Facts about the columns of a table as plain values."""
    from permix.families.table_columns import columns_of

    n_rows, n_columns = rows.shape
    facts = {"kind": "table", "rows": int(n_rows), "columns": int(n_columns)}
    if hasattr(rows, "indptr"):  # sparse: counts, whose columns have no names
        return facts | {"cells_above_zero": int(rows.nnz), "column_facts": []}
    columns = columns_of(rows)
    names = [str(column.name if isinstance(column.name, str) else column.name + 1) for column in columns]
    return facts | {
        "missing_cells": int(sum(column.missing.sum() for column in columns)),
        "column_facts": [_describe(place, column, names) for place, column in enumerate(columns)],
    }


def _describe(place: int, column: Any, names: list[str]) -> dict[str, Any]:
    """Say what a column is read as, and what it holds; one that cannot be used says why."""
    from permix.families.table_columns import kind_of, levels_of

    about = {"column": names[place], "missing": int(column.missing.sum())}
    try:
        kind = kind_of(place, column)
        if kind in ("category", "ordered"):
            levels = [str(level) for level in levels_of(place, column)]
            more = f", … {len(levels)} in all" if len(levels) > MOST_LEVELS else ""
            return about | {"read_as": kind, "holds": ", ".join(levels[:MOST_LEVELS]) + more}
    except CellError as error:
        return about | {"read_as": "not used", "holds": str(error.with_names(names))}
    present = column.present
    low, high = (cell_text(float(bound)) for bound in (np.min(present), np.max(present)))
    return about | {"read_as": kind, "holds": f"{low} to {high}, mean {cell_text(float(np.mean(present)))}"}


def table_of_some_size(file: Path, values: Mapping[str, Any]) -> Any:
    """Return a file that holds no votes as a table, or None if it is too small or none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = part("permix.comparison.any_file:read_any")(file, {**values, "read_as": "table"}).data
    except DataError:
        return None
    return table if table.rows.shape[0] >= LEAST_ROWS else None


def show_table(options: ReadOptions, table: Any, as_json: bool, why: str = "", no_votes: str = "") -> None:
    """Write what a table holds, why it was taken for one or not for votes, and which commands fit it."""
    facts = ({"recognized_by": why} if why else {}) | describe_table(table.rows)
    facts |= {"not_votes_because": no_votes} if no_votes else {}
    fits = _commands(options)
    if as_json:
        print_json({"file": str(options.file), **facts, "fits": fits})
        return
    columns = facts["column_facts"]
    rows = [[about["column"], about["read_as"], about["missing"], about["holds"]] for about in columns]
    title = f"{options.file.name}: a table of {facts['rows']:,} rows and {facts['columns']:,} columns"
    print_table(title, ["column", "read as", "missing", "holds"], rows[:MOST_COLUMNS])
    if len(columns) > MOST_COLUMNS:
        print(f"... and {len(columns) - MOST_COLUMNS:,} more columns; --json shows all")
    if no_votes:
        print(f"It is not read as votes; if it holds votes: {no_votes}")
    print(f"{fits['groups_of_rows']}\n    finds groups of rows")
    both = "finds groups of rows and of columns, where all cells are of one kind"
    print(f"{fits['groups_of_rows_and_of_columns']}\n    {both}")


def _commands(options: ReadOptions) -> dict[str, str]:
    """Return the commands that fit a table, read in the same way."""
    file, given = "FILE" if is_stdin(options.file) else str(options.file), options.given
    read = [word for name in given.get("ignore", ()) for word in ("--ignore", str(name))]
    read += ["--sheet", given["sheet"]] if "sheet" in given else []
    output = ("-o", "groups.permix")
    return {
        "groups_of_rows": shlex.join(["permix", "fit", "dp-mixture", file, *read, *output]),
        "groups_of_rows_and_of_columns": shlex.join(
            ["permix", "fit", "cocluster", file, *read, "--layout", "wide", *output]
        ),
    }
