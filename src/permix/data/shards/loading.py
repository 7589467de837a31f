"""One shard of rankings or preferences, where it is worked on: read, checked, over the items of all."""

from __future__ import annotations

import dataclasses
import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from permix.data.cleaning import over_some_items
from permix.data.labels import Array, Label
from permix.data.more_items import over_more_items
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.data.shards.names import NO_NAMES, SomeNames, some_of
from permix.data.shards.notes import said_to_users
from permix.data.shards.sources import Table
from permix.errors import DataError, NoRows
from permix.runtime.fingerprint import digest

# Warnings can be caught in one thread at a time; reading keeps the interpreter busy anyway.
READING = threading.Lock()


class Facts(NamedTuple):
    """What everybody needs to know of a shard."""

    items: tuple[Label, ...]
    n_rows: int
    n_agents: int
    unlisted: str  # "below", "unknown" or "mixed", of rows that leave items out; "" where none does
    notes: tuple[str, ...]  # warnings while it was read
    cleaned: tuple[tuple[str, int], ...]  # what cleaning did, and to how many ballots
    names: SomeNames  # some ids of agents
    digest: str  # of all that it says

    @classmethod
    def of_nobody(cls, why: str) -> Facts:
        """Return the facts of a shard that has no rows."""
        return cls((), 0, 0, "", (why,), (), NO_NAMES, "")


class Chosen(NamedTuple):
    """Some agents of a shard, one row each, in their order, with their random numbers."""

    table: Preferences
    numbers: Array
    agents: Array  # places among all agents


@dataclasses.dataclass
class Shard:
    """A table of agents, those who say the same in one row, and what work has found out about it."""

    table: Preferences
    row_of: Array  # row of every agent, in the order of the source
    first: int  # how many agents come before the shard
    memo: dict[str, Any] = dataclasses.field(default_factory=dict)

    def chosen(self, key: Array, most: int) -> Chosen:
        """Return the agents with the smallest random numbers, ``most`` of them at most.

        Every agent has a number of its own, named by the key and by its place among all agents, so that those
        with the smallest of all are the same however agents are divided.
        """
        stream = np.random.Philox(key=key)
        stream.advance(self.first // 4)  # a step makes four numbers
        numbers = stream.random_raw(self.first % 4 + len(self.row_of))[self.first % 4 :]
        kept = np.arange(len(numbers))
        if len(numbers) > most:
            kept = np.sort(np.argpartition(numbers, most - 1)[:most])
        each = self.table._take(self.row_of[kept])
        alone = each._replaced(counts=np.ones(len(kept), dtype=np.int64))
        return Chosen(alone, numbers[kept], self.first + kept)


def facts_of(source: Callable[[], Table]) -> Facts:
    """Read a shard and say what is in it."""
    with READING, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            table = _checked(source())
        except NoRows as error:
            return Facts.of_nobody(str(error))
    listed = table.lengths if isinstance(table, Rankings) else np.diff(table.level_indptr)
    below = table.unlisted_below if isinstance(table, Rankings) else table.rest_below
    open_rows = below[(listed > 0) & (listed < table.n_items)]
    kinds = {True: "below", False: "unknown"}
    unlisted = "" if not len(open_rows) else kinds[bool(open_rows[0])]
    if unlisted and not (open_rows == open_rows[0]).all():
        unlisted = "mixed"
    notes = said_to_users(caught)
    audit = table.metadata.get("CLEANING") or []
    steps = tuple((f"{step['found']}: {step['done']}", int(step["ballots"])) for step in audit)
    n_agents, names = int(np.sum(table.counts)), some_of(table._agents)
    return Facts(table.items, len(table), n_agents, unlisted, notes, steps, names, _digest(table))


def _digest(table: Table) -> str:
    arrays = {name: np.asarray(getattr(table, name)) for name in table._statements}
    return digest({"items": np.array(table.items, dtype=object), "counts": table.counts, **arrays})


class Was(NamedTuple):
    """How a shard was when it was looked at first."""

    n_agents: int
    digest: str


class Weak(NamedTuple):
    """Items that too few agents of all shards mention, and how many of the others an agent must mention."""

    items: frozenset[Label]
    min_answers: int


def load(
    source: Callable[[], Table],
    items: tuple[Label, ...],
    unlisted: str,
    first: int,
    was: Was,
    weak: Weak | None = None,
) -> Shard:
    """Read a shard over the items of all; ``unlisted`` is what rows mean by leaving items out.

    ``first`` is how many agents come before it; it must still be as it ``was``. Weak items are left out of it
    then, with agents who have nothing else to say.
    """
    with READING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said when the facts were gathered
        table = _checked(source())
    n_now = int(np.sum(table.counts))
    if n_now != was.n_agents:
        raise DataError(f"it has {n_now:,} agents, but had {was.n_agents:,}; it was changed meanwhile")
    if _digest(table) != was.digest:
        raise DataError("it says something else than it did; it was changed meanwhile")
    if table.items != items:
        known = set(items)
        strangers = [name for name in table.items if name not in known]
        if strangers:
            raise DataError(f"it has items it did not have before: {strangers[:3]}; it was changed meanwhile")
        listed = table.lengths if isinstance(table, Rankings) else np.diff(table.level_indptr)
        below = np.array(table.unlisted_below if isinstance(table, Rankings) else table.rest_below)
        # Rows that list all items of their shard leave out those that others have.
        below[listed == table.n_items] = unlisted != "unknown"
        table = over_more_items(table, items, below)
    preferences = Preferences.from_rankings(table) if isinstance(table, Rankings) else table
    preferences = preferences._bare()
    if weak is not None:
        preferences = _without(preferences, weak)
    row_of = np.repeat(preferences.equal_rows().astype(np.int32), preferences.counts)
    return Shard(preferences.collapse(), row_of, first)


def _without(preferences: Preferences, weak: Weak) -> Preferences:
    kept = over_some_items(preferences, np.array([item not in weak.items for item in preferences.items]))
    said = np.bincount(_mentioned(kept)[0], minlength=len(kept))
    return kept[said >= max(weak.min_answers, 1)]


def support(shard: Shard, _: Any) -> Array:
    """Return how many agents mention each item."""
    row, item = _mentioned(shard.table)
    sums = np.bincount(item, shard.table.counts[row], shard.table.n_items)
    return np.rint(sums).astype(np.int64)


def _mentioned(preferences: Preferences) -> tuple[Array, Array]:
    """Return pairs of a row and an item that it mentions, each once."""
    n = preferences.n_items
    in_levels = np.repeat(np.arange(len(preferences)), np.diff(preferences.level_indptr)) * n
    in_pairs = np.repeat(np.arange(len(preferences)), np.diff(preferences.pair_indptr)) * n
    keys = [in_levels + preferences.level_items, *(in_pairs + side for side in preferences.pairs.T)]
    row, item = np.divmod(np.unique(np.concatenate(keys)), n)
    return row, item


def _checked(table: Any) -> Table:
    if not isinstance(table, Rankings | Preferences):
        raise DataError(f"it holds {type(table).__name__}, but shards hold rankings or preferences")
    if not len(table):
        raise NoRows("there are no rows")
    if isinstance(table, Preferences) and not table.consistent.all():
        row = int(np.argmin(table.consistent))
        raise DataError(f"{table.row_name(row)} contradicts itself; leave such rows out with on_cycle='drop'")
    return table
