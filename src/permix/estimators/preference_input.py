"""What ranking models take as data: Rankings, Preferences, or plain rows of item numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.labels import Label, some_names
from permix.data.more_items import over_more_items
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.data.shards.sharded import Sharded
from permix.distributions.base import aligned
from permix.errors import Argument, DataError, Wording


def as_preferences(data: Any, items: tuple[Label, ...] | None = None) -> Preferences:
    """Return data as consistent preferences; data and items are those of :func:`as_table`."""
    table = as_table(data, items)
    if isinstance(table, Rankings):
        table = Preferences.from_rankings(table)
    bad = np.flatnonzero(~table.consistent)
    if len(bad):
        other_way = Wording("as data[data.consistent] or ", "")
        why = "This model needs agents who do not; leave these out, "
        errors = Wording('BayesianMallowsMixture(errors="bernoulli")', "fit bayes-mallows --errors bernoulli")
        takes = (", or take them as they are: ", errors, " has a model of errors")
        way_out = (why, other_way, "with ", Argument("on_cycle", "drop"), *takes)
        raise table._cycle_error_with(int(bad[0]), len(bad), way_out)
    return table


def as_statements(data: Any, items: tuple[Label, ...] | None = None) -> Preferences:
    """Return data as preferences that may contradict themselves, for models of errors."""
    table = as_table(data, items)
    return Preferences.from_rankings(table) if isinstance(table, Rankings) else table


def without_pairs(table: Preferences) -> Preferences:
    """Return what agents said for certain, where comparisons may be wrong."""
    return table._replaced(
        pair_indptr=np.zeros_like(table.pair_indptr),
        pairs=np.zeros((0, 2), np.int32),
        consistent=np.ones(len(table), dtype=np.bool_),
    )


def as_table(data: Any, items: tuple[Label, ...] | None = None) -> Preferences | Rankings:
    """Return data as the table it is, over the given items where a model has them already.

    Rows of an array are orderings, best first, padded by -1; items that a row leaves out are below. Data may
    know fewer items than the model, as long as no row puts "the rest" below the items it lists: the model
    would have more items in that rest. A row that lists all items of its own table leaves the others open.
    """
    if isinstance(data, Preferences | Rankings):
        table: Preferences | Rankings = data
    elif isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind in "iu":
        table = Rankings.from_orders(data, items=items)
    elif isinstance(data, Sharded):
        raise DataError(
            "data in shards are taken by MallowsMixture.fit, AngleMixture.fit, kemeny and predict_shards "
            "alone, yet"
        )
    else:
        raise DataError(
            f"ranking models take Preferences, Rankings or a 2-D integer array of orderings, not "
            f"{type(data).__name__}; see Rankings.from_orders, Preferences.from_ratings, from_pairs"
        )
    if len(table) == 0:
        raise DataError("there are no rows; pass at least one")
    if items is not None and table.items != items:
        table = _over_items(table, items)
    return table


def _over_items(table: Any, items: tuple[Label, ...]) -> Any:
    known = set(items)
    strangers = [name for name in table.items if name not in known]
    if strangers:
        raise DataError(
            f"the model does not know {some_names(strangers)}; it was fitted to {len(items)} items: "
            f"{some_names(list(items))}"
        )
    if len(table.items) == len(items):
        return aligned(table, items)
    rankings = isinstance(table, Rankings)
    # A row that lists all items of its own table says nothing about those that the table does not know.
    listed = table.lengths if rankings else np.diff(table.level_indptr)
    below = (table.unlisted_below if rankings else table.rest_below) & (listed < len(table.items))
    if below.any():
        absent = [name for name in items if name not in set(table.items)]
        raise DataError(
            f"the data do not know {some_names(absent)} of the model's items, but "
            f"{table.row_name(int(np.argmax(below)))} puts everything it leaves out below what it lists; "
            "say that items not listed are unknown",
            Wording(", or build the data with items=model.items_", ": --unlisted unknown"),
        )
    return over_more_items(table, items, below)
