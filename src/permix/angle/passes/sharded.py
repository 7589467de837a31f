"""Passes over rankings in shards, from the client's side: workers hold the rows and return sums.

A climb does not know the difference. Sums are exact, so that neither the number of shards nor the order in
which they are added changes a bit of them.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from permix.angle.data import AngleData, TopLists, are_top_lists, as_rankings
from permix.angle.passes.sums import Asked, Passes, Sums
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.shards.loading import Shard
from permix.data.shards.sharded import Sharded
from permix.distributions.angle.scores import standard_scores
from permix.errors import DataError, ShardError
from permix.runtime.seeds import stream_key


class ShardedRankings(Passes):
    """Full rankings, or top lists of few items, in shards."""

    def __init__(self, data: Sharded, n_jobs: int | None = None) -> None:
        """Look at all rows once; rows that are no rankings are refused now."""
        self.data, self.items, self.n_items, self.n_jobs = data, data.items, data.n_items, n_jobs
        self.n_agents, self.n_rows = data.n_agents, data.n_rows
        self.scores = standard_scores(data.n_items)
        seen: list[Seen] = data.map(_seen)
        for each, recipe in zip(seen, data.recipes, strict=True):
            if each.wrong:
                raise ShardError(f"{recipe.name}: {each.wrong}")
        self.is_full = all(each.full for each in seen)
        self.are_top_lists = all(each.top_lists for each in seen)

    def _pass(self, asked: Asked) -> Sums:
        found: Sums = self.data.reduced(_sums, (asked, self.is_full), Sums.plus)
        return found

    @cached_property
    def sum_of_scores(self) -> Array:
        return np.asarray(self.data.map(_sum_of_scores, self.n_agents, np.add))

    def some(self, n_rows: int, rng: np.random.Generator) -> AngleData:
        """Return so many agents at random, the same however agents are divided."""
        rankings = as_rankings(self.data.sample(n_rows, stream_key(rng)))
        return (AngleData if self.is_full else TopLists)(rankings, self.n_jobs)


class Seen(NamedTuple):
    """What the rows of a shard are."""

    full: bool
    top_lists: bool
    wrong: str  # why an agent has no ranking, or nothing


# Work of shards: functions of this module, so that other processes know them.


def _rows(shard: Shard, full: bool) -> AngleData:
    name = "full rankings" if full else "top lists"
    if name not in shard.memo:
        shard.memo[name] = (AngleData if full else TopLists)(as_rankings(shard.table))
    found: AngleData = shard.memo[name]
    return found


def _seen(shard: Shard, _: Any) -> Seen:
    if _wrong(shard.table):
        return Seen(False, False, _first_wrong(shard))
    rankings = as_rankings(shard.table)
    return Seen(rankings.is_full, are_top_lists(rankings), "")


def _wrong(table: Preferences) -> str:
    try:
        as_rankings(table)
    except DataError as error:
        return str(error)
    return ""


def _first_wrong(shard: Shard) -> str:
    """Name the first agent without a ranking: rows are agents who say the same, in another order."""
    _, first = np.unique(shard.row_of, return_index=True)
    agents = np.sort(first)
    while len(agents) > 1:
        half = agents[: len(agents) // 2]
        wrong = _wrong(shard.table._take(shard.row_of[half]))
        agents = half if wrong else agents[len(half) :]
    why = _wrong(shard.table._take(shard.row_of[agents]))
    why = re.sub(r"^row \d+( \(.*?\))? ", "", why)  # the row of a table that nobody knows
    return f"agent {shard.first + int(agents[0]) + 1:,} {why}"


def _sums(shard: Shard, shared: tuple[Asked, bool]) -> Sums:
    asked, full = shared
    return _rows(shard, full)._pass(asked)


def _sum_of_scores(shard: Shard, n_agents: int) -> Array:
    return _rows(shard, full=True).summed_scores(n_agents)
