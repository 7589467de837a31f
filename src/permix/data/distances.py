"""Distances between rankings, between preferences, and between both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from permix.data.labels import Array, some_names
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError
from permix.runtime.threads import over_rows

Orderings = Rankings | Preferences

_BITS_UP_TO = 2000  # items; beyond, counting inversions beats comparing bits of pairs (measured)


def distance(a: object, b: object, metric: str = "kendall", penalty: float = 0.5) -> float | Array:
    """Distance between two rankings, or row by row between two tables of them.

    Parameters
    ----------
    a, b : Rankings, Preferences or arrays of orderings (item numbers, best first)
        Of equal length, or one of them a single row that is compared with every row of the other.
    metric : {"kendall", "footrule", "spearman", "cayley", "hamming", "ulam"}
        ``kendall``: pairs of items in different order. ``footrule``: sum of differences of ranks.
        ``spearman``: sum of squared differences of ranks. ``cayley``: fewest exchanges of two items.
        ``hamming``: items whose rank differs. ``ulam``: fewest items to take out and insert elsewhere.
        All but ``kendall`` need full rankings.
    penalty : float, between 0 and 1
        For partial rankings under ``kendall``: what a pair of items costs that only one of the two
        orders. With 0, only contradictions count; from 0.5 on the result is a metric (Fagin et al. 2006).

    Returns
    -------
    float or int, or an array of one number per row
        Whole numbers for full rankings.

    Examples
    --------
    >>> import permix
    >>> permix.distance([0, 1, 2, 3], [3, 0, 1, 2])
    3
    >>> permix.distance([0, 1, 2, 3], [[3, 0, 1, 2], [0, 1, 3, 2]], metric="ulam")
    array([1, 1])
    """
    from permix.kernels import distances, partial_kendall

    code = _checked(metric, penalty)
    first, second = _same_items(a, b)
    if not len(first) or not len(second):
        raise DataError("there is nothing to compare: a or b has no rows")
    if min(len(first), len(second)) != 1 and len(first) != len(second):
        raise DataError(
            f"a has {len(first)} rows and b has {len(second)}; they must agree, or one must be a single row "
            "(distance_matrix compares every row with every row)"
        )
    form, in_a, in_b = _in_one_form(metric, first, second)
    if form == "ranks" and isinstance(first, Rankings):
        result = distances.row_distances(code, first.orders, in_a, in_b)
    elif form == "levels":
        result = partial_kendall.kendall_rows_of_levels(in_a, in_b, float(penalty))
    else:
        result = partial_kendall.kendall_rows_of_keys(*in_a, *in_b, first.n_items, float(penalty))
    if _is_single(a) and _is_single(b):
        number: float = result[0].item()
        return number
    return np.asarray(result)


def distance_matrix(
    rankings: object, other: object = None, metric: str = "kendall", penalty: float = 0.5
) -> Array:
    """Distances between all rows of one table, or of one and another.

    Rows with counts above one are one row of the result each. Runs on all cores.

    Parameters
    ----------
    rankings, other : Rankings, Preferences or arrays of orderings (item numbers, best first)
        Without ``other``, the rows of ``rankings`` with each other.
    metric, penalty
        As in :func:`distance`.

    Returns
    -------
    ndarray, shape (rows of rankings, rows of other)
        Integers for full rankings, else floats.

    Examples
    --------
    >>> import permix
    >>> permix.distance_matrix([[0, 1, 2], [2, 1, 0], [0, 2, 1]])
    array([[0, 3, 1],
           [3, 0, 2],
           [1, 2, 0]])
    """
    from permix.kernels import distances, partial_kendall

    code, penalty = _checked(metric, penalty), float(penalty)
    symmetric = other is None
    first, second = _same_items(rankings, rankings if symmetric else other)
    second = first if symmetric else second
    shape = (len(first), len(second))
    fill: Callable[..., object]
    given: tuple[Any, ...]
    n = first.n_items
    form, in_a, in_b = _in_one_form(metric, first, second)
    if form == "ranks" and isinstance(first, Rankings):
        out = np.empty(shape, np.int64)
        # Writing down the bits of all pairs pays when there are enough rows to compare, and is not done
        # where it would take more memory than the answer.
        rows, pairs = sum(shape), shape[0] * shape[1]
        affordable = rows * n * n / 16 <= max(2**26, out.nbytes)
        if metric == "kendall" and n <= _BITS_UP_TO and affordable and 16 * pairs >= rows * n:
            bits_a = _pair_bits(in_a)
            bits_b = bits_a if symmetric else _pair_bits(in_b)
            fill, given = distances.kendall_matrix_of_bits, (symmetric, bits_a, bits_b, out)
        else:
            fill, given = distances.distance_matrix, (code, symmetric, first.orders, in_a, in_b, out)
        over_rows(lambda start, stop: fill(start, stop, *given), (len(first) + 1) // 2, 2 * len(second) * n)
        return out
    floats = np.empty(shape)
    if form == "levels":
        fill, given = partial_kendall.kendall_matrix_of_levels, (in_a, in_b, penalty, floats)
    else:
        fill, given = partial_kendall.kendall_matrix_of_keys, (*in_a, *in_b, n, penalty, floats)
    over_rows(lambda start, stop: fill(start, stop, *given), len(first), len(second) * n)
    return floats


def _pair_bits(ranks: Array) -> Array:
    from permix.kernels.distances import all_pair_bits, words_of_pairs

    n = ranks.shape[1]
    out: Array = np.empty((len(ranks), words_of_pairs(n)), np.uint64)
    over_rows(lambda start, stop: all_pair_bits(start, stop, ranks, out), len(ranks), n * n)
    return out


def _in_one_form(metric: str, first: Orderings, second: Orderings) -> tuple[str, Any, Any]:
    """Return "ranks", "levels" or "keys", and both tables as arrays of that form."""
    tables: tuple[Any, Any] = (first, second)
    form: Callable[[Any], Any]
    if all(isinstance(table, Rankings) and table.is_full for table in tables):
        name, form = "ranks", _rank_array
    else:
        _only_kendall(metric, *tables)
        in_levels = all(isinstance(table, Rankings) or not len(table.pairs) for table in tables)
        name, form = ("levels", _level_matrix) if in_levels else ("keys", _keys)
    one = form(tables[0])
    return name, one, one if second is first else form(tables[1])


def _is_single(rows: object) -> bool:
    """One ranking, not a table of rankings."""
    return len(rows) == 1 if isinstance(rows, Orderings) else np.asarray(rows).ndim == 1


def _checked(metric: str, penalty: float) -> int:
    """Return the metric's number after a look at both arguments."""
    from permix.kernels.distances import METRICS

    if metric not in METRICS:
        raise DataError(f"metric={metric!r} is not one of {', '.join(METRICS)}")
    if not 0 <= penalty <= 1:
        raise DataError(f"penalty={penalty!r} must lie between 0 and 1")
    return METRICS[metric]


def _only_kendall(metric: str, *tables: Orderings) -> None:
    if metric == "kendall":
        return
    for table in tables:
        if isinstance(table, Preferences):
            raise DataError(
                f"metric={metric!r} needs full rankings, not Preferences; metric='kendall' takes both"
            )
        short = np.flatnonzero(table.lengths < table.n_items)
        if len(short):
            raise DataError(
                f"metric={metric!r} needs full rankings, but {table.row_name(int(short[0]))} lists "
                f"{table.lengths[short[0]]} of {table.n_items} items; metric='kendall' takes partial ones"
            )


def _same_items(a: object, b: object) -> tuple[Orderings, Orderings]:
    """Both as tables over the same items in the same order; arrays take their items from the other."""
    if isinstance(a, Orderings) and isinstance(b, Orderings):
        return a, _reindexed(b, a)
    if isinstance(a, Orderings):
        return a, _from_numbers(b, a)
    if isinstance(b, Orderings):
        return _from_numbers(a, b), b
    rows_a, rows_b = _number_rows(a), _number_rows(b)
    n = int(max(rows_a.max(initial=-1), rows_b.max(initial=-1))) + 1
    return Rankings.from_orders(rows_a, n_items=n), Rankings.from_orders(rows_b, n_items=n)


def _number_rows(rows: object) -> Array:
    try:
        array = np.asarray(rows)
    except ValueError:
        array = np.array(None)
    if array.ndim not in (1, 2) or array.dtype.kind not in "iu":
        raise DataError(
            "orderings must be whole numbers, best first: one row, or rows of equal length padded by -1; "
            "for names and lists of unequal length use Rankings.from_orders"
        )
    return np.atleast_2d(array)


def _from_numbers(rows: object, model: Orderings) -> Rankings:
    plain = Rankings.from_orders(_number_rows(rows), n_items=model.n_items)
    return plain._replaced(items=model.items)


def _reindexed(table: Orderings, model: Orderings) -> Orderings:
    different = set(table.items) ^ set(model.items)
    if different:
        shown = [name for name in (*table.items, *model.items) if name in different]
        raise DataError(
            f"the two are over different items: {some_names(shown)} only in one of them; "
            "build both with the same items="
        )
    return table._reindexed(model.items)


def _rank_array(table: Rankings) -> Array:
    ranks = np.empty(table.orders.shape, np.int32)
    np.put_along_axis(ranks, table.orders, np.arange(table.n_items, dtype=np.int32)[None], axis=1)
    return ranks


def _level_matrix(table: Orderings) -> Array:
    """Level of every item in every row; -1 where the row says nothing about it."""
    levels = np.full((len(table), table.n_items), -1, np.int32)
    stored = table.arrays()
    row = np.repeat(np.arange(len(table)), np.diff(stored.level_indptr))
    levels[row, stored.level_items] = stored.levels
    depth = levels.max(axis=1, initial=-1) + 1
    rest = (levels < 0) & stored.rest_below[:, None]
    levels[rest] = np.broadcast_to(depth[:, None], levels.shape)[rest]
    return levels


def _keys(table: Orderings) -> tuple[Array, Array]:
    """All ordered pairs of every row as sorted numbers better × n_items + worse, in CSR form."""
    preferences = Preferences.from_rankings(table) if isinstance(table, Rankings) else table
    n = preferences.n_items
    parts = [np.zeros(0, np.int64)]
    for row in range(len(preferences)):
        mentioned, better = preferences.closure(row)
        items = mentioned.astype(np.int64)
        above, below = np.nonzero(better)
        keys = items[above] * n + items[below]
        if preferences.rest_below[row]:
            start, stop = preferences.level_indptr[row : row + 2]
            listed = preferences.level_items[start:stop].astype(np.int64)
            silent = np.setdiff1d(np.arange(n), items)
            keys = np.concatenate([keys, (listed[:, None] * n + silent[None]).ravel()])
        parts.append(np.sort(keys))
    return np.cumsum([len(part) for part in parts]), np.concatenate(parts)
