"""Matrices without columns that few rows answer, and without rows that answer little; with an audit."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.ballots import Entry
from permix.data.cells import Cells
from permix.data.cleaning_candidates import least_support, some
from permix.errors import Argument, DataError


def clean_cells(cells: Cells, rules: Any) -> Cells:
    """Leave out columns with too little support, then rows with too few answers in the columns left."""
    if not isinstance(cells, Cells):
        raise DataError(
            f"a {type(cells).__name__} has no votes to clean; give Ballots, Rankings, Preferences or Cells"
        )
    audit: list[Entry] = []
    least = least_support(rules, cells.n_rows)
    filled = np.bincount(cells.columns, minlength=cells.n_columns)
    columns = filled >= least
    if not columns.any():
        raise DataError("no column is left: a smaller ", Argument("min_support"), " keeps some")
    if not columns.all():
        names = [cells.column_name(place) for place in np.flatnonzero(~columns).tolist()]
        touched = len(np.unique(cells.rows[~columns[cells.columns]]))
        found = f"columns with fewer than {least:,} answers"
        done = f"left out, {len(names):,} of {cells.n_columns:,}"
        audit.append(Entry(found, done, touched, some(names), rule="min_support"))
    answers = np.bincount(cells.rows[columns[cells.columns]], minlength=cells.n_rows)
    # Rows without any answer stay where nothing is asked for: only the prior says where they belong.
    rows = answers >= rules.min_answers if rules.min_answers > 1 or audit else np.ones(cells.n_rows, np.bool_)
    if not rows.any():
        raise DataError("no row is left: a smaller ", Argument("min_answers"), " keeps some")
    if not rows.all():
        names = [cells.row_name(place) for place in np.flatnonzero(~rows).tolist()]
        found = f"rows with fewer than {max(rules.min_answers, 1):,} answers"
        n = len(names)
        audit.append(Entry(found, "left out", n, some(names), left_out=n, rule="min_answers"))
    if not audit:
        return cells
    kept = cells.take(rows, columns)
    before = cells.metadata.get("CLEANING", ())
    kept.metadata["CLEANING"] = [*before, *(entry._asdict() for entry in audit)]
    return kept
