"""What models of top lists take as data: strict lists, whatever they were written in."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.csr import indptr_of
from permix.data.labels import Array, Label
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, Wording
from permix.estimators.preference_input import as_preferences, as_table

OTHERWISE = (Wording("permix.MallowsMixture", "permix fit mallows"), " takes any kind of preference")
SILENT = ("says nothing", "leave such rows out")


def as_top_lists(data: Any, items: tuple[Label, ...] | None = None) -> Rankings:
    """Return data as top lists: every row names its best items in order, and all others are below.

    Preferences must amount to top lists; a row that ranks a subset only, leaves items tied, compares pairs,
    or says nothing is refused by name. Rows, ids and counts stay as given; data and items as in ``as_table``.
    """
    said = as_table(data, items)
    table = said if isinstance(said, Rankings) else rankings_of(as_preferences(said))
    below = (Wording("items=[all items] and ", ""), Argument("unlisted", "below"))
    way_out = ("if the rest is below, build the data with ", *below, "; if it is unknown, ", *OTHERWISE)
    subset = "ranks some items and says nothing about the rest, but this model takes top lists"
    _refuse(~table.unlisted_below, table, subset, *way_out)
    _refuse(table.lengths == 0, table, *SILENT)
    if table.n_items < 2:
        raise DataError("there is one item only, and one way to rank it; rankings need two items or more")
    return table


def rankings_of(table: Preferences) -> Rankings:
    """Read levels of one item each as rankings; what is not listed is below or unknown, as the rows say."""
    listed = np.diff(table.level_indptr)
    _refuse(np.diff(table.pair_indptr) > 0, table, _compares, *OTHERWISE)
    _refuse(listed == 0, table, *SILENT)
    table = without_tied_rest(table)
    listed = np.diff(table.level_indptr)
    # Levels are consecutive, so the last is one less than the items listed unless some are tied.
    last = table.levels[table.level_indptr[1:] - 1]
    _refuse(last + 1 < listed, table, _tied, "break the ties, or: ", *OTHERWISE)
    orders = np.full((len(table), int(listed.max())), -1, dtype=np.int32)
    orders[np.arange(orders.shape[1]) < listed[:, None]] = table.level_items
    about = (table.items, table.counts, table._agents, table.rest_below)
    return Rankings._from_arrays(orders, *about, **table._beside())


def without_tied_rest(table: Preferences) -> Preferences:
    """Return the same without a last level of several items where all items are listed: they are the rest.

    PrefLib writes what a list leaves out so in its ``.toc`` files; that the rest is below says the same.
    """
    lengths = np.diff(table.level_indptr)
    row = np.repeat(np.arange(len(table)), lengths)
    at_last = table.levels == table.levels[table.level_indptr[1:] - 1][row]
    n_last = np.bincount(row[at_last], minlength=len(table))
    tied = (lengths == table.n_items) & (n_last > 1) & (n_last < lengths)
    if not tied.any():
        return table
    kept = ~(at_last & tied[row])
    return table._replaced(
        level_indptr=indptr_of(np.bincount(row[kept], minlength=len(table))),
        level_items=table.level_items[kept],
        levels=table.levels[kept],
        rest_below=table.rest_below | tied,
    )


def _refuse(bad: Array, table: Any, reason: Any, *instead: str | Argument | Wording) -> None:
    """Refuse rows, the first by name; ``reason`` says what is wrong with it, or finds that out."""
    rows = np.flatnonzero(bad).tolist()
    if rows:
        what = reason if isinstance(reason, str) else reason(table, rows[0])
        others = f" ({len(rows)} such rows)" if len(rows) > 1 else ""
        raise DataError(f"{table.row_name(rows[0])} {what}{others}; ", *instead)


def _tied(table: Preferences, row: int) -> str:
    span = slice(int(table.level_indptr[row]), int(table.level_indptr[row + 1]))
    levels, items = table.levels[span], table.level_items[span]
    place = int(np.argmax(levels[1:] == levels[:-1]))
    first, second = (table.items[items[place + step]] for step in (0, 1))
    return f"ties {first!r} and {second!r}, but lists have no ties"


def _compares(table: Preferences, row: int) -> str:
    better, worse = (table.items[item] for item in table.pairs[table.pair_indptr[row]])
    return f"compares pairs ({better!r} ≻ {worse!r}), but lists have no comparisons"
