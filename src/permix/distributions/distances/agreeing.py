"""All full rankings that agree with what agents said, where they are few enough to be listed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.errors import Argument, DataError

# Places of items in all rankings listed at a time: 64 MiB of them.
MOST_PLACES = 2**24
_MOST_ITEMS = 62  # one bit each


class Agreeing(NamedTuple):
    """Full rankings, those that agree with one row after those of the row before."""

    orders: Array  # int32 (M, items), best first
    starts: Array  # int64 (rows + 1,): where the rankings of each row begin

    @property
    def row_of(self) -> Array:
        """Row that each ranking agrees with."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def log_sums(self, values: Array) -> Array:
        """Return ln Σ exp(value) over the rankings of each row; ``values`` is (M, …)."""
        if len(values) == len(self.starts) - 1:
            return values
        largest = np.maximum.reduceat(values, self.starts[:-1], axis=0)
        shift = np.repeat(largest, np.diff(self.starts), axis=0)
        return np.asarray(largest + np.log(np.add.reduceat(np.exp(values - shift), self.starts[:-1], axis=0)))


def agreeing_rankings(table: Preferences, distance: str, most_places: int = MOST_PLACES) -> Agreeing:
    """List the full rankings that agree with each row.

    Items grow into rankings one place at a time, for all rows together; every beginning has a completion, so
    that no more is ever kept than is found.
    """
    n, n_rows = table.n_items, len(table)
    full = _full_orders(table)
    if full is not None:
        return Agreeing(full, np.arange(n_rows + 1))
    if n > _MOST_ITEMS:
        raise _too_many(table, distance, None)
    before = _items_before(table)
    rows, used = np.arange(n_rows), np.zeros(n_rows, dtype=np.int64)
    orders = np.empty((n_rows, 0), dtype=np.int8)
    for _ in range(n):
        allowed = [
            np.flatnonzero((used >> item & 1 == 0) & (before[rows, item] & ~used == 0)) for item in range(n)
        ]
        if sum(map(len, allowed)) * n > most_places:
            raise _too_many(table, distance, np.bincount(rows, minlength=n_rows))
        from_ = np.concatenate(allowed)
        item = np.repeat(np.arange(n), [len(each) for each in allowed])
        into_rows = np.argsort(from_, kind="stable")
        from_, item = from_[into_rows], item[into_rows]
        rows, used = rows[from_], used[from_] | (1 << item)
        orders = np.concatenate([orders[from_], item[:, None].astype(np.int8)], axis=1)
    sizes = np.bincount(rows, minlength=n_rows)
    if not sizes.all():
        row = table.row_name(int(np.argmin(sizes)))
        raise DataError(f"{row} contradicts itself: no ranking agrees with all that it says")
    return Agreeing(orders.astype(np.int32), np.concatenate([[0], np.cumsum(sizes)]))


def _full_orders(table: Preferences) -> Array | None:
    """Return the rows as orderings, where each is a full ranking without ties."""
    n = table.n_items
    lengths = np.diff(table.level_indptr)
    short = (lengths == n) | ((lengths == n - 1) & table.rest_below)
    if len(table.pairs) or not short.all():
        return None
    levels = np.full((len(table), n), n)  # a single item that is not listed is last
    row = np.repeat(np.arange(len(table)), lengths)
    levels[row, table.level_items] = table.levels
    orders: Array = np.argsort(levels, axis=1, kind="stable").astype(np.int32)
    in_order = np.take_along_axis(levels, orders.astype(np.int64), axis=1)
    return orders if (np.diff(in_order, axis=1) > 0).all() else None


def _items_before(table: Preferences) -> Array:
    """Return, as bits, which items each row puts before each item: directly, or through others in part."""
    n, n_rows = table.n_items, len(table)
    before = np.zeros((n_rows, n), dtype=np.int64)
    lengths = np.diff(table.level_indptr)
    row = np.repeat(np.arange(n_rows), lengths)
    listed, level = table.level_items.astype(np.int64), table.levels
    of_row = np.zeros(n_rows, dtype=np.int64)
    np.bitwise_or.at(of_row, row, 1 << listed)
    for item in range(n):
        at = np.full(n_rows, -1)
        mine = listed == item
        at[row[mine]] = level[mine]
        above = level < at[row]
        np.bitwise_or.at(before[:, item], row[above], 1 << listed[above])
        rest = table.rest_below & (at < 0)
        before[rest, item] |= of_row[rest]
    pair_row = np.repeat(np.arange(n_rows), np.diff(table.pair_indptr))
    first, second = table.pairs.astype(np.int64).reshape(-1, 2).T
    np.bitwise_or.at(before, (pair_row, second), 1 << first)
    return before


def _too_many(table: Preferences, distance: str, sizes: Array | None) -> DataError:
    row = "" if sizes is None else f" ({table.row_name(int(np.argmax(sizes)))} leaves most open)"
    return DataError(
        Argument("distance", distance),
        " sums over all full rankings that agree with what each agent said, and here are too many of "
        f"them{row}; rank more items, leave some items out, or use ",
        Argument("distance", "kendall"),
        ", which takes incomplete rankings of any length",
    )
