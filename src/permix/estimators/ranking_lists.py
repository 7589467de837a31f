"""What models of top lists take as data: strict lists, whatever they were written in."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.labels import Array, Label
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, Wording
from permix.estimators.preference_input import as_preferences, as_table

OTHERWISE = (Wording("permix.MallowsMixture", "permix fit mallows"), " takes any kind of preference")
# What is wrong with a row, and the parts of a message that says what to do.
Reason = tuple[str, tuple[str | Argument | Wording, ...]]


def as_top_lists(data: Any, items: tuple[Label, ...] | None = None) -> Rankings:
    """Return data as top lists: every row names its best items in order, and all others are below.

    Preferences must amount to top lists; a row that ranks a subset only, leaves items tied, compares pairs,
    or says nothing is refused by name. Rows, ids and counts stay as given; data and items as in ``as_table``.
    """
    said = as_table(data, items)
    table = said if isinstance(said, Rankings) else rankings_of(as_preferences(said))
    _refuse(~table.unlisted_below, table, _subset)
    _refuse(table.lengths == 0, table, _silent)
    if table.n_items < 2:
        raise DataError("there is one item only, and one way to rank it; rankings need two items or more")
    return table


def rankings_of(table: Preferences) -> Rankings:
    """Read levels of one item each as rankings; what is not listed is below or unknown, as the rows say."""
    listed = np.diff(table.level_indptr)
    paired = np.diff(table.pair_indptr) > 0
    _refuse(paired, table, _compares)
    _refuse(listed == 0, table, _silent)
    # Levels are consecutive, so the last is one less than the items listed unless some are tied.
    last = np.zeros(len(table), dtype=np.int64)
    last[:] = table.levels[table.level_indptr[1:] - 1]
    _refuse(last + 1 < listed, table, _tied)
    orders = np.full((len(table), int(listed.max())), -1, dtype=np.int32)
    orders[np.arange(orders.shape[1]) < listed[:, None]] = table.level_items
    return Rankings._from_arrays(
        orders, table.items, table.counts, table._agents, table.rest_below, metadata=table.metadata
    )


def _refuse(bad: Array, table: Any, reason: Any) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        what, instead = reason(table, int(rows[0]))
        others = f" ({len(rows)} such rows)" if len(rows) > 1 else ""
        raise DataError(f"{table.row_name(int(rows[0]))} {what}{others}; ", *instead)


def _subset(table: Any, row: int) -> Reason:
    return (
        "ranks some items and says nothing about the rest, but this model takes top lists",
        (
            "if the rest is below, build the data with ",
            Wording("items=[all items] and ", ""),
            Argument("unlisted", "below"),
            "; if it is unknown, ",
            *OTHERWISE,
        ),
    )


def _tied(table: Preferences, row: int) -> Reason:
    span = slice(int(table.level_indptr[row]), int(table.level_indptr[row + 1]))
    levels, items = table.levels[span], table.level_items[span]
    place = int(np.argmax(levels[1:] == levels[:-1]))
    first, second = (table.items[items[place + step]] for step in (0, 1))
    return f"ties {first!r} and {second!r}, but lists have no ties", ("break the ties, or: ", *OTHERWISE)


def _compares(table: Preferences, row: int) -> Reason:
    better, worse = table.pairs[table.pair_indptr[row]]
    return (
        f"compares pairs ({table.items[better]!r} ≻ {table.items[worse]!r}), but lists have no comparisons",
        OTHERWISE,
    )


def _silent(table: Any, row: int) -> Reason:
    return "says nothing", ("leave such rows out",)
