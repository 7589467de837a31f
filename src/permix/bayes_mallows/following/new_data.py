"""Fitted and new data as one table: agents who are new, and agents who say more than before."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from permix.data.csr import indptr_of
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.errors import Argument, DataError


@dataclass(frozen=True)
class Growth:
    """What there was, and what comes in: rows that say more, then rows of new agents."""

    before: Preferences
    more: Preferences  # rows of ``rows``, with all that they say now
    rows: Array  # int64: which rows of ``before`` say more; each is one agent
    new: Preferences  # rows of new agents

    @property
    def n_changed(self) -> int:
        return len(self.rows)

    def table(self, n_changed: int, n_new: int) -> Preferences:
        """Return the table after so many rows have changed, and so many new agents have come.

        Where not all have, new agents are rows of their own.
        """
        parts = [self._changed(n_changed)]
        if n_new == self.new.n_agents and len(self.new):
            parts.append(self.new)
        elif n_new:
            parts.append(one_by_one(self.new, np.arange(n_new)))
        return Preferences.concat(parts)

    def _changed(self, n_changed: int) -> Preferences:
        if not n_changed:
            return self.before
        both = Preferences.concat([self.before, self.more])
        rows = np.arange(len(self.before))
        rows[self.rows[:n_changed]] = len(self.before) + np.arange(n_changed)
        return both[rows]


def one_by_one(table: Preferences, agents: Array) -> Preferences:
    """Return some agents, counted through all rows, as rows of their own."""
    rows = table[table.rows_of_agents()[agents]]
    return rows._replaced(counts=np.ones(len(rows), dtype=np.int64))


def growth(before: Preferences, new: Preferences, same_agents: bool, certain: bool) -> Growth:
    """Sort new rows into more answers of known agents, by their names, and new agents.

    ``certain``: comparisons are taken at their word, so that they must not contradict what was said before.
    """
    none = np.zeros(0, dtype=np.int64)
    if not same_agents or before._agents is None or new._agents is None:
        return Growth(before, before[none], none, new)
    place = {name: row for row, name in enumerate(before.agents.tolist())}
    at = np.array([place.get(name, -1) for name in new.agents.tolist()], dtype=np.int64)
    known = np.flatnonzero(at >= 0)
    rows = at[known]
    if len(np.unique(rows)) < len(rows):
        twice = new.agents[known][np.argsort(rows, kind="stable")][1:][np.diff(np.sort(rows)) == 0][0]
        raise DataError(f"agent {twice!r} is there twice; give all that an agent says anew in one row")
    for row, at_new in zip(rows.tolist(), known.tolist(), strict=True):
        if before.counts[row] > 1 or new.counts[at_new] > 1:
            raise DataError(
                f"{before.row_name(row)} stands for several agents, so that nobody knows which of them says "
                "more. Give agents names of their own, or with ",
                Argument("same_agents", False),
                " take all rows as new agents",
            )
    more = _together(before[rows], new[known], certain) if len(rows) else before[none]
    return Growth(before, more, rows, new[np.flatnonzero(at < 0)])


def _together(old: Preferences, new: Preferences, certain: bool) -> Preferences:
    """Return rows that say what both say."""
    levels, pairs, below = [], [], []
    for row in range(len(old)):
        sides = [_levels_of(table, row) for table in (old, new)]
        compared = [table.pairs[table.pair_indptr[row] : table.pair_indptr[row + 1]] for table in (old, new)]
        kept = sides[0] if len(sides[0][0]) else sides[1]
        if len(sides[0][0]) and len(sides[1][0]) and not _same(*sides):
            if not certain:
                raise DataError(
                    f"{old.row_name(row)} gave a ranking before, and gives another now. With errors, "
                    "rankings are certain and comparisons are not; give what is new as comparisons"
                )
            compared.append(_as_pairs(*sides[1], old.n_items))
        levels.append(kept[:2])
        below.append(kept[2])
        pairs.append(np.concatenate(compared))
    joined = old._replaced(
        level_indptr=indptr_of(np.array([len(items) for items, _ in levels])),
        level_items=np.concatenate([items for items, _ in levels]),
        levels=np.concatenate([of_items for _, of_items in levels]),
        rest_below=np.array(below, dtype=np.bool_),
        pair_indptr=indptr_of(np.array([len(each) for each in pairs])),
        pairs=np.ascontiguousarray(np.concatenate(pairs), dtype=np.int32),
        consistent=np.ones(len(old), dtype=np.bool_),
    )
    if certain:
        _refuse_contradictions(joined)
    return joined._with_cycles("keep")


def _refuse_contradictions(table: Preferences) -> None:
    bad = np.flatnonzero(~table._with_cycles("keep").consistent)
    if len(bad):
        way_out = ("Leave these answers out, or fit with ", Argument("errors", "bernoulli"))
        raise table._cycle_error_with(int(bad[0]), len(bad), way_out)


def _levels_of(table: Preferences, row: int) -> tuple[Array, Array, bool]:
    here = slice(table.level_indptr[row], table.level_indptr[row + 1])
    return table.level_items[here], table.levels[here], bool(table.rest_below[row])


def _same(a: tuple[Array, Array, bool], b: tuple[Array, Array, bool]) -> bool:
    return a[2] == b[2] and np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1])


def _as_pairs(items: Array, levels: Array, below: bool, n_items: int) -> Array:
    """Return levels as comparisons of neighboring ones, and of the last with the rest."""
    groups = [items[levels == level] for level in range(int(levels.max()) + 1)]
    if below:
        groups.append(np.setdiff1d(np.arange(n_items, dtype=np.int32), items))
    found = [
        np.stack(np.meshgrid(better, worse, indexing="ij"), axis=-1).reshape(-1, 2)
        for better, worse in pairwise(groups)
    ]
    return np.concatenate(found) if found else np.zeros((0, 2), dtype=np.int32)
