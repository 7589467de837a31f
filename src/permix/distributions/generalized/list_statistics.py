"""Check top lists and count what one generalized Mallows model needs of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.generalized.list_statistics_jit import ListStatistics
from permix.errors import Argument, DataError

# Numbers in a table of all pairs (item, earlier item) of a stage, 32 MB; beyond, those that occur are sorted.
DENSE_UP_TO = 4_000_000
# Pairs counted or sorted at a time.
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
            f"{rankings.row_name(int(unknown[0]))} ranks a subset and leaves the rest unknown "
            f"({len(unknown)} such row(s)); a generalized Mallows model takes top lists, whose unlisted "
            "items are below. If that is what they are, build the rankings with ",
            Argument("unlisted", "below"),
        )
    return rankings._bare().collapse()


def list_statistics(parts: Sequence[tuple[Rankings, Array]]) -> ListStatistics:
    """Count lists over the same items, each table with a factor for every stage.

    Full rankings are cut by their last item, which follows from the others. Factors beyond a table's longest
    list are not looked at.
    """
    n = parts[0][0].n_items
    sizes = [np.minimum(table.lengths, n - 1) for table, _ in parts]
    n_stages = max(int(size.max(initial=0)) for size in sizes)
    named = np.zeros(n, dtype=np.bool_)
    for (table, _), size in zip(parts, sizes, strict=True):
        named[table.orders[np.arange(table.orders.shape[1]) < size[:, None]]] = True
    m, number = int(named.sum()), np.cumsum(named) - 1
    lists, totals = np.zeros(n_stages), np.zeros((n_stages, m))
    all_pairs: list[Array] = [np.empty(0, dtype=np.int64)]
    all_weights: list[Array] = [np.empty(0)]
    for j in range(n_stages):
        # Pairs (item at rank j, item before it), as item · m + earlier, and the weight of their lists.
        dense = m * m <= DENSE_UP_TO
        pairs: Array = np.empty(0, dtype=np.int64)
        weights: Array = np.zeros(m * m if dense else 0)
        for (table, factor), size in zip(parts, sizes, strict=True):
            rows = np.flatnonzero(size > j)
            for some in np.array_split(rows, 1 + len(rows) * j // CHUNK) if len(rows) else ():
                each = factor[j] * table.counts[some]
                codes = number[table.orders[some, : j + 1]]
                lists[j] += each.sum()
                totals[j] += np.bincount(codes[:, j], each, minlength=m)
                here, each = (codes[:, j:] * m + codes[:, :j]).ravel(), np.repeat(each, j)
                if dense:
                    weights += np.bincount(here, each, minlength=m * m)
                else:
                    pairs, place = np.unique(np.concatenate([pairs, here]), return_inverse=True)
                    weights = np.bincount(place, np.concatenate([weights, each]), minlength=len(pairs))
        if dense:
            pairs = np.flatnonzero(weights)
            weights = weights[pairs]
        all_pairs.append(pairs)
        all_weights.append(weights)
    item, earlier = (codes.astype(np.int32) for codes in np.divmod(np.concatenate(all_pairs), m))
    n_pairs = np.array([len(pairs) for pairs in all_pairs[1:]], dtype=int)
    stage = np.repeat(np.arange(n_stages, dtype=np.int32), n_pairs)
    weight = np.concatenate(all_weights)
    return ListStatistics(n, np.flatnonzero(named), lists, totals, stage, item, earlier, weight)
