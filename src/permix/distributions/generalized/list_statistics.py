"""Check top lists and count what one generalized Mallows model needs of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.errors import Argument, DataError, Message

if TYPE_CHECKING:
    from permix.distributions.generalized.list_statistics_jit import ListStatistics

# Numbers in a table of all triples (stage, item, earlier item), 32 MB; beyond, those that occur are sorted.
DENSE_UP_TO = 4_000_000
# Triples sorted at a time.
CHUNK = 4_000_000


def top_lists(rankings: object, what: str = "rankings") -> Rankings:
    """Check that these are top lists, and merge equal ones into counts."""
    if not isinstance(rankings, Rankings):
        raise DataError(
            f"{what} must be Rankings, not {type(rankings).__name__}; build Rankings.from_orders(...) from "
            "lists, best first"
        )
    if not len(rankings):
        raise DataError(f"{what} has no rows; a generalized Mallows model needs at least one list")
    unknown = np.flatnonzero(~rankings.unlisted_below)
    if len(unknown):
        raise DataError(
            Message(
                f"{rankings.row_name(int(unknown[0]))} ranks a subset and leaves the rest unknown "
                f"({len(unknown)} such row(s)); a generalized Mallows model takes top lists, whose unlisted "
                "items are below. If that is what they are, build the rankings with ",
                Argument("unlisted", "below"),
            )
        )
    return rankings.collapse()


def list_statistics(parts: Sequence[tuple[Rankings, Array]]) -> ListStatistics:
    """Count lists over the same items, each table with a factor for every stage.

    Full rankings are cut by their last item, which follows from the others. Factors beyond a table's longest
    list are not looked at.
    """
    from permix.distributions.generalized.list_statistics_jit import ListStatistics, count_triples

    n = parts[0][0].n_items
    tables = [table for table, _ in parts]
    sizes = [np.minimum(table.lengths, n - 1) for table in tables]
    n_stages = max(int(size.max(initial=0)) for size in sizes)
    named = np.zeros(n, dtype=np.bool_)
    lists = np.zeros(n_stages)
    for (table, factor), size in zip(parts, sizes, strict=True):
        for j in range(int(size.max(initial=0))):
            reached = size > j
            named[table.orders[reached, j]] = True
            lists[j] += factor[j] * table.counts[reached].sum()
    items = np.flatnonzero(named)
    m = len(items)
    number = np.cumsum(named) - 1
    totals = np.zeros((n_stages, m))
    if n_stages * m * m <= DENSE_UP_TO:
        earlier = np.zeros((n_stages, m, m))
        for (table, factor), size in zip(parts, sizes, strict=True):
            scale = np.zeros(n_stages)
            scale[: len(factor)] = factor[:n_stages]
            count_triples(table.orders, size, table.counts.astype(float), scale, number, totals, earlier)
        stage, item, before = np.nonzero(earlier)
        weight = earlier[stage, item, before]
    else:
        keys, weight = _sorted_triples(parts, sizes, number, totals)
        stage, rest = np.divmod(keys, m * m)
        item, before = np.divmod(rest, m)
    return ListStatistics(
        n,
        items,
        lists,
        totals,
        stage.astype(np.int32),
        item.astype(np.int32),
        before.astype(np.int32),
        weight,
    )


def _sorted_triples(
    parts: Sequence[tuple[Rankings, Array]], sizes: list[Array], number: Array, totals: Array
) -> tuple[Array, Array]:
    """Return keys (stage · m + item) · m + earlier of the triples that occur, and their weights."""
    m = totals.shape[1]
    keys: Array = np.empty(0, dtype=np.int64)
    weights: Array = np.empty(0)
    for (table, factor), size in zip(parts, sizes, strict=True):
        for j in range(int(size.max(initial=0))):
            rows = np.flatnonzero(size > j)
            np.add.at(totals[j], number[table.orders[rows, j]], factor[j] * table.counts[rows])
            per_chunk = max(1, CHUNK // max(j, 1))
            for start in range(0, len(rows) if j else 0, per_chunk):
                some = rows[start : start + per_chunk]
                codes = number[table.orders[some, : j + 1]]
                found = (((j * m + codes[:, j : j + 1]) * m) + codes[:, :j]).ravel()
                each = np.repeat(factor[j] * table.counts[some], j)
                keys, place = np.unique(np.concatenate([keys, found]), return_inverse=True)
                weights = np.bincount(place, np.concatenate([weights, each]), minlength=len(keys))
    return keys, weights
