"""Levels: scores become, for every agent, groups of tied items from best to worst."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from permix.data import labels
from permix.data.agent_table import row_name
from permix.data.csr import equal_pair, fits_one_key, indptr_of
from permix.data.io.column_names import column_places
from permix.data.io.columns import frame_columns, in_row, is_frame, long_columns, number_column
from permix.data.labels import Array, Label
from permix.errors import DataError, ParameterError


class Scores(NamedTuple):
    """Scored items in long form, agents and items by index."""

    items: tuple[Label, ...]
    n_agents: int
    agents: Array | None
    agent: Array
    item: Array
    score: Array
    where: Callable[[int], str]


class Levels(NamedTuple):
    """Levels of all agents in CSR form."""

    indptr: Array
    items: Array
    levels: Array


def levels_from_scores(scores: Scores) -> Levels:
    """Sort every agent's items into levels, highest score first; equal scores share a level.

    One sort of one integer per entry that holds agent, score and item at once; where that would not fit
    into 64 bits, a sort by three keys.
    """
    n, m = max(scores.n_agents, 1), max(len(scores.items), 1)
    _refuse_twice(scores, m)
    distinct = np.unique(scores.score)
    r = max(len(distinct), 1)
    place = (r - 1) - np.searchsorted(distinct, scores.score)
    if fits_one_key(n, r, m):
        key = (scores.agent.astype(np.int64) * r + place) * m + scores.item
        key.sort()
        item = (key % m).astype(np.int32)
        key //= m
    else:
        order = np.lexsort((scores.item, place, scores.agent))
        item = scores.item[order].astype(np.int32)
        # Only differences between neighbors matter from here on; agents keep levels apart.
        key = np.zeros(len(order), dtype=np.int64)
        agent, place = scores.agent[order], place[order]
        key[1:] = np.cumsum((agent[1:] != agent[:-1]) | (place[1:] != place[:-1]))
    indptr = indptr_of(np.bincount(scores.agent, minlength=scores.n_agents))
    return Levels(indptr, item, consecutive_levels(key, indptr))


def consecutive_levels(key: Array, indptr: Array) -> Array:
    """Number the runs of equal keys 0, 1, … within every agent."""
    if key.size == 0:
        return np.zeros(0, dtype=np.int32)
    change = np.zeros(key.size, dtype=np.int32)
    change[1:] = key[1:] != key[:-1]
    starts = indptr[:-1][np.diff(indptr) > 0]
    change[starts] = 1
    run = np.cumsum(change, dtype=np.int32)
    return run - np.repeat(run[starts], np.diff(np.append(starts, key.size)))


def _refuse_twice(scores: Scores, m: int) -> None:
    """Refuse an item scored twice by one agent."""
    for first, second in equal_pair(scores.agent.astype(np.int64) * m + scores.item):
        agent = int(scores.agent[first])
        name = agent if scores.agents is None else scores.agents.tolist()[agent]
        raise DataError(
            f"agent {name!r} rated {scores.items[scores.item[first]]!r} twice: {scores.score[first]:g} in "
            f"{scores.where(first)} and {scores.score[second]:g} in {scores.where(second)}; keep "
            "one rating, for example the mean or the latest"
        )


def read_ratings(
    ratings: object, items: Iterable[object] | None, agents: object | None, layout: str
) -> Scores:
    """Ratings in any accepted form as scores; see ``Preferences.from_ratings``."""
    if layout not in ("auto", "long", "matrix"):
        raise ParameterError("layout", layout, "'auto', 'long' or 'matrix'")
    sparse = hasattr(ratings, "tocoo")
    if layout == "long" or (layout == "auto" and not sparse and _looks_long(ratings)):
        return _read_long(ratings, items, agents)
    if sparse:
        stored = ratings.tocoo()  # type: ignore[attr-defined]
        values = np.asarray(stored.data, dtype=np.float64)
        row, column = (np.asarray(place, dtype=np.int64) for place in (stored.row, stored.col))
        for at in np.flatnonzero(np.isnan(values))[:1].tolist():
            raise DataError(
                f"the stored rating at row {row[at] + 1}, column {column[at] + 1} is NaN; "
                "leave unrated items out of a sparse matrix"
            )
        return matrix_scores(row, column, values, stored.shape, items, agents, "rating")
    if items is None and is_frame(ratings):
        items = frame_columns(ratings)
    raw = ratings.to_numpy() if hasattr(ratings, "to_numpy") else ratings
    try:
        dense = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        found = f"; the columns are {labels.some_names(frame_columns(ratings))}" if is_frame(ratings) else ""
        raise DataError(
            "ratings are neither a table with columns agent, item, rating nor a matrix of numbers (agents × "
            f"items, NaN = not rated){found}. Rename the columns; permix.from_frame reads tables of other "
            "layouts"
        ) from None
    if dense.ndim != 2:
        raise DataError(f"a matrix of ratings has agents × items; this one has shape {dense.shape}")
    row, column = np.nonzero(~np.isnan(dense))
    return matrix_scores(row, column, dense[row, column], dense.shape, items, agents, "rating")


def _looks_long(ratings: object) -> bool:
    """Decide between a long table and a matrix, or ask where both are possible."""
    if is_frame(ratings) and not isinstance(ratings, np.ndarray):
        # Two of the three tell enough; what is missing is then asked for by name.
        names = frame_columns(ratings)
        return sum(bool(column_places(names, role)) for role in ("agent", "item", "rating")) >= 2
    if isinstance(ratings, list | tuple) and ratings and all(isinstance(row, tuple) for row in ratings):
        return True
    try:
        table = np.asarray(ratings)
    except ValueError:
        return False
    if table.ndim != 2 or table.shape[1] != 3:
        return False
    if table.dtype.kind not in "iuf":
        return True
    if table.dtype.kind == "f" and np.isnan(table).any():
        return False
    raise DataError(
        "an array of three columns may be a long table (agent, item, rating) or a matrix over three items; "
        "say layout='long' or layout='matrix'"
    )


def _read_long(table: object, items: Iterable[object] | None, agents: object | None) -> Scores:
    agent_column, item_column, rating_column = long_columns(table, ("agent", "item", "rating"))
    score = number_column(rating_column, "rating")
    n, ids, agent = labels.encode_agents(labels.as_column(agent_column, "agent"), agents, in_row)
    names, item = labels.encode_items(labels.as_column(item_column, "item"), items, None, in_row)
    for at in np.flatnonzero(item < 0)[:1].tolist():
        raise DataError(f"{in_row(at)}: the item is missing; leave the row out")
    if not names:
        raise DataError("there are no ratings and no items; pass items= for an empty table")
    return Scores(names, n, ids, agent, item, score, in_row)


def matrix_scores(
    row: Array,
    column: Array,
    values: Array,
    shape: tuple[int, int],
    items: Iterable[object] | None,
    agents: object | None,
    what: str,
) -> Scores:
    """Entries of a matrix agents × items as scores."""
    n, m = shape
    names = tuple(range(m)) if items is None else labels.clean_items(items)
    if len(names) != m:
        raise DataError(f"the matrix has {m} columns but items has {len(names)} names; they must agree")
    if not names:
        raise DataError("the matrix has no columns; every item needs one")
    ids = labels.clean_agents(agents, n)

    def where(position: int) -> str:
        return row_name(int(row[position]), ids)

    for at in np.flatnonzero(np.isinf(values))[:1].tolist():
        raise DataError(
            f"{where(at)}: {what} {values[at]} of {names[column[at]]!r} is infinite; "
            "use a finite number or NaN"
        )
    if agents is None:
        refuse_silent(np.bincount(row, minlength=n), f"has no {what}")
    return Scores(names, n, ids, row, column, values, where)


def refuse_silent(sizes: Array, why: str) -> None:
    """Refuse agents who say nothing, unless the caller named the agents."""
    silent = np.flatnonzero(sizes == 0)
    if silent.size:
        raise DataError(
            f"{in_row(silent[0])} {why} ({silent.size} such agent(s)); leave them out, or pass "
            "agents= with all ids to keep agents who said nothing"
        )


def read_groups(
    groups: Iterable[Any], items: Iterable[object] | None, agents: object | None
) -> tuple[tuple[Label, ...], Array | None, Levels]:
    """Read lists of groups, best first; see ``Preferences.from_levels``."""
    rows = list(groups)
    ids = labels.clean_agents(agents, len(rows))
    entries: list[object] = []
    levels: list[int] = []
    sizes = np.zeros(len(rows), dtype=np.int64)
    for row, listed in enumerate(rows):
        if isinstance(listed, str | dict | set | frozenset) or not hasattr(listed, "__iter__"):
            raise DataError(
                f"{row_name(row, ids)} is {listed!r}; give a list of groups, best first, such as "
                "[['a', 'b'], ['c']]"
            )
        start = len(entries)
        for level, group in enumerate(listed):
            members = [group] if isinstance(group, str) or not hasattr(group, "__iter__") else list(group)
            if not members:
                raise DataError(f"{row_name(row, ids)}: group {level + 1} is empty; leave it out")
            entries.extend(members)
            levels.extend([level] * len(members))
        sizes[row] = len(entries) - start
    if agents is None:
        refuse_silent(sizes, "has no groups")
    indptr = indptr_of(sizes)

    def where(position: int) -> str:
        return row_name(int(np.searchsorted(indptr, position, side="right")) - 1, ids)

    names, codes = labels.encode_items(labels.as_column(entries, "item"), items, None, where)
    if not names:
        raise DataError("there are no groups and no items; pass items= for an empty table")
    for at in np.flatnonzero(codes < 0)[:1].tolist():
        raise DataError(f"{where(at)}: an item is missing in group {levels[at] + 1}; leave it out")
    agent = np.repeat(np.arange(len(rows)), sizes)
    order = np.lexsort((codes, np.array(levels, dtype=np.int64), agent))
    for first, _ in equal_pair(agent * len(names) + codes):
        name = names[codes[first]]
        raise DataError(f"{where(first)}: {name!r} is listed twice; keep it in one group")
    return names, ids, Levels(indptr, codes[order], np.array(levels, dtype=np.int32))
