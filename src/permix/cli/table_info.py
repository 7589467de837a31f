"""What ``info`` says about a table of measurements, counts and answers."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from permix.cli.output import cell_text, print_json, print_table, say
from permix.cli.stdin import is_stdin
from permix.cli.votes import ReadOptions
from permix.errors import CellError, DataError, Message
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

    about: dict[str, Any] = {"column": names[place], "missing": int(column.missing.sum())}
    try:
        kind = kind_of(place, column)
        if kind in ("category", "ordered"):
            levels = [str(level) for level in levels_of(place, column)]
            more = f", … {len(levels)} in all" if len(levels) > MOST_LEVELS else ""
            return about | {"read_as": kind, "holds": ", ".join(levels[:MOST_LEVELS]) + more}
    except CellError as error:
        text = error.with_names(names).args[0]
        said = text.as_options() if isinstance(text, Message) else str(text)
        n_different = len(set(column.present.tolist()))
        return about | {"read_as": "not used", "holds": said, "names_rows": n_different == len(column.cells)}
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
    fits = _commands(options, facts["column_facts"], table.rows)
    if as_json:
        print_json({"file": str(options.file), **facts, "fits": fits})
        return
    columns = facts["column_facts"]
    idle = [about for about in columns if about["read_as"] == "not used"]
    rows = [
        [
            about["column"],
            about["read_as"],
            about["missing"],
            "see below" if about in idle else about["holds"],
        ]
        for about in columns
    ]
    title = f"{options.file.name}: a table of {facts['rows']:,} rows and {facts['columns']:,} columns"
    print_table(title, ["column", "read as", "missing", "holds"], rows[:MOST_COLUMNS])
    if len(columns) > MOST_COLUMNS:
        print(f"... and {len(columns) - MOST_COLUMNS:,} more columns; --json shows all")
    for about in idle[:MOST_COLUMNS]:
        say(f"{about['holds'][:1].upper()}{about['holds'][1:].removesuffix('.')}.")
    if no_votes:
        print(f"It is not read as votes; if it holds votes: {no_votes}")
    print(f"{fits['groups_of_rows']}\n    finds groups of rows")
    if "groups_of_rows_and_of_columns" in fits:
        both = "finds groups of rows and of columns, where all cells are of one kind"
        print(f"{fits['groups_of_rows_and_of_columns']}\n    {both}")


def _commands(options: ReadOptions, columns: list[dict[str, Any]], rows: Any) -> dict[str, str]:
    """Return the commands that fit a table, read in the same way, with what sets columns apart."""
    file, given = "FILE" if is_stdin(options.file) else str(options.file), options.given
    idle = [about for about in columns if about["read_as"] == "not used"]
    ids = [given["row_column"]] if given.get("row_column") else []
    ids += [about["column"] for about in idle if about["names_rows"]]
    left_out = [*given.get("ignore", ()), *(about["column"] for about in idle if about["column"] not in ids)]
    read = ["--id", str(ids[0])] if ids else []
    read += [word for name in (*ids[1:], *left_out) for word in ("--ignore", str(name))]
    read += [word for code in given.get("missing", ()) for word in ("--missing", str(code))]
    read += ["--sheet", given["sheet"]] if "sheet" in given else []
    output = ("-o", "groups.permix")
    fits = {"groups_of_rows": shlex.join(["permix", "fit", "dp-mixture", file, *read, *output])}
    if _of_one_kind(rows, {about["column"] for about in idle}):
        words = ["permix", "fit", "cocluster", file, *read, "--layout", "wide", *output]
        fits["groups_of_rows_and_of_columns"] = shlex.join(words)
    return fits


def _of_one_kind(rows: Any, idle: set[str]) -> bool:
    """Whether the columns that are used may be one matrix: all are numbers, or share their categories."""
    from permix.families.table_columns import columns_of, label

    if hasattr(rows, "indptr"):
        return True
    used = [column for column in columns_of(rows) if str(column.name) not in idle]
    if len(used) < 2 or any(column.numeric for column in used):
        return len(used) > 1 and all(column.numeric for column in used)
    levels = [set(map(label, column.present.tolist())) for column in used]
    return len(set().union(*levels)) <= 2 * max(map(len, levels))
