"""Pairwise comparisons: rows (agent, better, worse) are coded, checked and sorted by agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from permix.data.csr import fits_one_key, indptr_of
from permix.data.io.columns import in_row, long_columns
from permix.data.labels import Array, Label, as_column, encode_agents, encode_items
from permix.errors import DataError


class Comparisons(NamedTuple):
    """Comparisons sorted by agent, in stated order within an agent."""

    items: tuple[Label, ...]
    agents: Array | None
    indptr: Array
    pairs: Array


def read_pairs(pairs: object, items: Iterable[object] | None, agents: object | None) -> Comparisons:
    """Comparisons in any accepted form; see ``Preferences.from_pairs``."""
    agent_column, better, worse = long_columns(pairs, ("agent", "better", "worse"))
    n, ids, agent = encode_agents(as_column(agent_column, "agent"), agents, in_row)
    names, coded = _encode_both(as_column(better, "item"), as_column(worse, "item"), items)
    for row in np.flatnonzero((coded < 0).any(axis=1))[:1].tolist():
        which = "better" if coded[row, 0] < 0 else "worse"
        raise DataError(f"{in_row(row)}: the {which} item is missing; leave the row out")
    for row in np.flatnonzero(coded[:, 0] == coded[:, 1])[:1].tolist():
        who = int(agent[row]) if ids is None else ids[agent[row]]
        raise DataError(
            f"{in_row(row)}: agent {who!r} says {names[coded[row, 0]]!r} is better than itself; "
            "leave the row out"
        )
    if np.any(agent[1:] < agent[:-1]):
        coded = np.take(coded, _stable_order(agent, n), axis=0)
    return Comparisons(names, ids, indptr_of(np.bincount(agent, minlength=n)), coded)


def _encode_both(
    better: Array, worse: Array, items: Iterable[object] | None
) -> tuple[tuple[Label, ...], Array]:
    """Code both columns together; names appear in reading order."""
    kind: Any = object if object in (better.dtype, worse.dtype) else np.result_type(better, worse)
    both = np.empty((len(better), 2), dtype=kind)
    both[:, 0], both[:, 1] = better, worse
    names, codes = encode_items(both.ravel(), items, None, lambda position: in_row(position // 2))
    if not names:
        raise DataError("there are no comparisons and no items; pass items= for an empty table")
    return names, codes.reshape(-1, 2)


def _stable_order(agent: Array, n: int) -> Array:
    """Positions sorted by agent, equal agents in old order."""
    size = len(agent)
    if not fits_one_key(n, size):
        return np.argsort(agent, kind="stable")
    key = agent.astype(np.int64)
    key *= size
    key += np.arange(size)
    key.sort()
    key %= size
    return key


def sorted_pairs(agent: Array, pairs: Array, n_items: int) -> Array:
    """Sort the comparisons of every agent by item; ``agent`` is sorted already."""
    m = max(n_items, 1)
    if not fits_one_key(int(agent[-1]) + 1 if len(agent) else 1, m, m):
        return pairs[np.lexsort((pairs[:, 1], pairs[:, 0], agent))]
    key = (agent * m + pairs[:, 0]) * m + pairs[:, 1]
    key.sort()
    return np.column_stack([key // m % m, key % m]).astype(np.int32)


def choice_rows(choices: Iterable[Any]) -> list[tuple[object, object, object]]:
    """Turn choices (agent, chosen, alternatives) into comparisons."""
    rows: list[tuple[object, object, object]] = []
    for row, entry in enumerate(choices):
        if isinstance(entry, str) or not hasattr(entry, "__len__") or len(entry) != 3:
            raise DataError(f"{in_row(row)} is {entry!r}; it needs (agent, chosen, alternatives)")
        agent, chosen, alternatives = entry
        if isinstance(alternatives, str) or not hasattr(alternatives, "__iter__"):
            raise DataError(f"{in_row(row)}: the alternatives {alternatives!r} must be a list of items")
        others = [other for other in alternatives if other != chosen]
        if not others:
            raise DataError(f"{in_row(row)}: {chosen!r} was chosen from nothing else; leave the row out")
        for place, other in enumerate(others):
            if other in others[:place]:
                raise DataError(f"{in_row(row)}: {other!r} is offered twice; keep it once")
        rows.extend((agent, chosen, other) for other in others)
    return rows
