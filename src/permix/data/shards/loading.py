"""One shard of rankings or preferences, where it is worked on: read, checked, over the items of all."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import Array, Label
from permix.data.more_items import over_more_items
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError

Table = Rankings | Preferences
# Warnings can be caught in one thread at a time; reading keeps the interpreter busy anyway.
_READING = threading.Lock()


class Facts(NamedTuple):
    """What everybody needs to know of a shard."""

    items: tuple[Label, ...]
    n_rows: int
    n_agents: int
    unlisted: str  # "below", "unknown" or "mixed", of rows that leave items out; "" where none does
    notes: tuple[str, ...]  # warnings while it was read
    cleaned: tuple[tuple[str, int], ...]  # what cleaning did, and to how many ballots


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
        return Chosen(
            each._replaced(counts=np.ones(len(kept), dtype=np.int64)), numbers[kept], self.first + kept
        )


def facts_of(source: Callable[[], Table]) -> Facts:
    """Read a shard and say what is in it."""
    with _READING, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = _checked(source())
    listed = table.lengths if isinstance(table, Rankings) else np.diff(table.level_indptr)
    below = table.unlisted_below if isinstance(table, Rankings) else table.rest_below
    open_rows = below[(listed > 0) & (listed < table.n_items)]
    kinds = {True: "below", False: "unknown"}
    unlisted = "" if not len(open_rows) else kinds[bool(open_rows[0])]
    if unlisted and not (open_rows == open_rows[0]).all():
        unlisted = "mixed"
    notes = tuple(dict.fromkeys(str(each.message) for each in caught))
    audit = table.metadata.get("CLEANING") or []
    steps = tuple((f"{step['found']}: {step['done']}", int(step["ballots"])) for step in audit)
    return Facts(table.items, len(table), int(np.sum(table.counts)), unlisted, notes, steps)


def load(
    source: Callable[[], Table], items: tuple[Label, ...], unlisted: str, first: int, n_agents: int
) -> Shard:
    """Read a shard over the items of all; ``unlisted`` is what rows mean by leaving items out.

    ``first`` is how many agents come before it, ``n_agents`` how many it had.
    """
    with _READING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said when the facts were gathered
        table = _checked(source())
    if int(np.sum(table.counts)) != n_agents:
        raise DataError(
            f"it has {int(np.sum(table.counts)):,} agents, but had {n_agents:,}; it was changed meanwhile"
        )
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
    row_of = np.repeat(preferences.equal_rows().astype(np.int32), preferences.counts)
    return Shard(preferences.collapse(), row_of, first)


def _checked(table: Any) -> Table:
    if not isinstance(table, Rankings | Preferences):
        raise DataError(f"it holds {type(table).__name__}, but shards hold rankings or preferences")
    if not len(table):
        raise DataError("there are no rows")
    if isinstance(table, Preferences) and not table.consistent.all():
        row = int(np.argmin(table.consistent))
        raise DataError(f"{table.row_name(row)} contradicts itself; leave such rows out with on_cycle='drop'")
    return table


# Sources: where a shard comes from. They are tuples of plain values, so that nothing but these travels.


class File(NamedTuple):
    """A file or folder that :func:`permix.read` reads, here or at an address of fsspec."""

    path: str
    options: tuple[tuple[str, Any], ...]

    def __call__(self) -> Table:
        """Read it."""
        from permix.data.io.read_write import read

        if "://" not in self.path:
            return read(self.path, **dict(self.options))
        import fsspec

        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / os.path.basename(self.path.rstrip("/"))
            with fsspec.open(self.path, "rb") as remote, copy.open("wb") as local:
                shutil.copyfileobj(remote, local)
            return read(copy, **dict(self.options))


class Rows(NamedTuple):
    """Rows of a table that the client has."""

    table: Table

    def __call__(self) -> Table:
        """Return them."""
        return self.table


class Partition(NamedTuple):
    """A partition of a Dask data frame or bag, which is computed where it is needed."""

    delayed: Any
    options: tuple[tuple[str, Any], ...]

    def __call__(self) -> Table:
        """Compute it."""
        part = self.delayed.compute(scheduler="synchronous")
        if hasattr(part, "columns"):
            from permix.data.io.tables import from_frame

            return from_frame(part, **dict(self.options))
        return Rankings.from_orders([list(order) for order in part], **dict(self.options))
