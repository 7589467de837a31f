"""What data are, in a sentence, and which models suit them."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.comparison.compare import Candidate
from permix.comparison.forms import Form
from permix.data.preferences import Preferences
from permix.estimators.preference_input import as_preferences
from permix.estimators.wording import listed


def describe(form: Form, data: Any) -> str:
    """Say what the data are: how many, how long, with which ties and gaps."""
    return {"votes": _votes, "matrix": _matrix, "table": _table}[form.name](data)


def _votes(data: Any) -> str:
    table: Preferences = as_preferences(data)
    t = table.n_items
    listed_items, compared = np.diff(table.level_indptr), np.diff(table.pair_indptr)
    said = []
    if compared.any():
        share = float(table.counts @ (compared > 0)) / table.n_agents
        pairs = f"{compared.sum():,} comparisons" if len(table) == table.n_agents else "comparisons"
        said.append(f"{pairs} by {_share(share)} agents")
    if listed_items.any():
        lengths = listed_items[listed_items > 0]
        tied = _has_ties(table)
        span = f"{lengths.min()} to {lengths.max()}" if lengths.min() < lengths.max() else f"{lengths.min()}"
        whole = bool(np.all(lengths >= t - 1))
        asked = "all" if whole else f"{span} of"
        rest = _rest(table, listed_items)
        said.append(
            f"rankings of {asked} {t} items{'' if whole else rest}, {'with' if tied else 'without'} ties"
        )
    n = f"{table.n_agents:,} agent{'' if table.n_agents == 1 else 's'}"
    return f"These are votes: {n} with {listed(said or ['nothing said'])}; nobody contradicts themselves."


def _share(share: float) -> str:
    return "all" if share >= 1.0 else f"{share:.0%} of the"


def _has_ties(table: Preferences) -> bool:
    from permix.estimators.ranking_lists import without_tied_rest

    table = without_tied_rest(table)
    lengths = np.diff(table.level_indptr)
    filled = lengths > 0
    last = table.levels[table.level_indptr[1:][filled] - 1]
    return bool(np.any(last + 1 < lengths[filled]))


def _rest(table: Preferences, lengths: Any) -> str:
    """Say what rankings of some items mean for the others."""
    short = (lengths > 0) & (lengths < table.n_items - 1)
    below = table.rest_below[short]
    if below.all():
        return ", the rest below"
    return ", the rest not asked" if not below.any() else ", the rest below or not asked"


def _matrix(cells: Any) -> str:
    n = cells.n_rows * cells.n_columns
    levels = np.unique(cells.values.astype(str) if cells.is_text else cells.values)
    held = f"{len(levels)} different values" if len(levels) > 1 else "one value"
    return (
        f"This is a matrix: {cells.n_rows:,} rows by {cells.n_columns:,} columns, "
        f"{cells.n_cells / n:.0%} of the cells filled, with {held}."
    )


def _table(frame: Any) -> str:
    from permix.families.table_columns import columns_of

    columns = columns_of(frame)
    numeric = sum(column.numeric for column in columns)
    text = len(columns) - numeric
    gaps = sum(int(column.missing.sum()) for column in columns)
    kinds = [
        f"{n} column{'' if n == 1 else 's'} of {what}"
        for n, what in ((numeric, "numbers"), (text, "text"))
        if n
    ]
    missing = f", {gaps:,} cells missing" if gaps else ", no cell missing"
    return f"This is a table: {len(frame):,} rows with {listed(kinds)}{missing}."


def what_suits(candidates: list[Candidate], left_out: dict[str, str]) -> str:
    """Say which models suit the data, what each looks for, and why others do not."""
    finds = [f"{candidate.way.label} ({candidate.compared.finds})" for candidate in candidates]
    verb = "suits" if len(finds) == 1 else "suit"
    others = [f"{name} {why}" for name, why in left_out.items()]
    return f"{listed(finds)} {verb} them{f'; {listed(others)}' if others else ''}."
