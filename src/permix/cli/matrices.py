"""What ``info`` says about a matrix."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from permix.cli.output import print_json, print_table
from permix.cli.stdin import is_stdin
from permix.cli.votes import ReadOptions
from permix.data.io.text_files import plain_suffix

# What --layout says of a matrix, and the options that only matrices have.
LAYOUTS = ("wide", "long")
ONLY_MATRICES = ("row", "column_of_cell", "value")
# Rows and columns with fewer cells say little about their group.
FEW = 5
# Values that a table lists one by one.
MOST_LEVELS = 20


def is_matrix(file: Path) -> bool:
    """Whether a file holds a matrix and nothing else: scipy's, or the votes of a Polis conversation."""
    if file.suffix == ".npz":
        return True
    if not file.is_file() or plain_suffix(file) != "csv":
        return False
    from permix.data.io.ballots.source import Source

    first = Source(file).head.partition(b"\n")[0]
    if b"comment-id" not in first and b"group-id" not in first:  # most files: without loading matrices
        return False
    from permix.data.io.polis import is_polis

    return is_polis(file) is not None


def says_matrix(values: Mapping[str, Any]) -> bool:
    """Whether options say that a file holds a matrix: those that no other kind of file has."""
    layout = values.get("layout") or "auto"
    if layout in LAYOUTS or any(values.get(name) for name in ONLY_MATRICES):
        return True
    return layout == "auto" and bool(values.get("missing"))


def describe_matrix(cells: Any) -> dict[str, Any]:
    """Facts about a matrix as plain values."""
    per_row = np.bincount(cells.rows, minlength=cells.n_rows)
    per_column = np.bincount(cells.columns, minlength=cells.n_columns)
    levels, counts = np.unique(
        cells.values.astype(str) if cells.is_text else cells.values, return_counts=True
    )
    facts: dict[str, Any] = {
        "kind": "matrix",
        "read": (cells.origin.partition(", ")[2] or cells.origin).removeprefix("read "),
        "rows": cells.n_rows,
        "columns": cells.n_columns,
        "cells": cells.n_cells,
        "share_of_cells_present": cells.n_cells / (cells.n_rows * cells.n_columns),
        "cells_of_a_row": [int(per_row.min()), float(np.median(per_row)), int(per_row.max())],
        "cells_of_a_column": [int(per_column.min()), float(np.median(per_column)), int(per_column.max())],
        f"rows_with_fewer_than_{FEW}_cells": int(np.sum(per_row < FEW)),
        f"columns_with_fewer_than_{FEW}_cells": int(np.sum(per_column < FEW)),
        "number_of_levels": len(levels),
    }
    if len(levels) <= MOST_LEVELS:
        facts["levels"] = {_level(level): int(n) for level, n in zip(levels.tolist(), counts, strict=True)}
    else:
        facts["range"] = [_level(levels[0].item()), _level(levels[-1].item())]
    return facts


def _level(level: Any) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


def show_matrix(options: ReadOptions, cells: Any, as_json: bool, why: str = "") -> None:
    """Write what a matrix holds, and why it was taken for one."""
    facts = ({"recognized_by": why} if why else {}) | describe_matrix(cells)
    if as_json:
        print_json({"file": str(options.file), **facts})
        return
    rows = [[name.replace("_", " "), _readable(value)] for name, value in facts.items() if name != "levels"]
    print_table(options.file.name, ["", ""], rows)
    if "levels" in facts:
        n = facts["cells"]
        shown = [[level, count, f"{count / n:.1%}"] for level, count in facts["levels"].items()]
        print_table("Levels", ["value", "cells", "of all"], shown)
    print(f"{_fit_command(options)} finds groups of rows and of columns.")


def _fit_command(options: ReadOptions) -> str:
    """Return the command that fits what was described, read in the same way."""
    given = options.given
    words = ["permix", "fit", "cocluster", "FILE" if is_stdin(options.file) else str(options.file)]
    if given.get("layout", "auto") != "auto":
        words += ["--layout", given["layout"]]
    if "header" in given:
        words.append("--header" if given["header"] else "--no-header")
    for name in given.get("ignore", ()):
        words += ["--ignore", str(name)]
    for code in given.get("missing", ()):
        words += ["--missing", str(code)]
    if "sheet" in given:
        words += ["--sheet", given["sheet"]]
    return shlex.join([*words, "-o", "groups.permix"])


def _readable(value: Any) -> str:
    if isinstance(value, list):
        if len(value) == 2:
            return " to ".join(map(str, value))
        return f"{value[0]:,} to {value[2]:,} (median {value[1]:g})"
    if isinstance(value, float):
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else str(value)
