"""Rankings or preferences in shards, none of which the client holds.

Every shard is a file, a partition of a Dask data frame or bag, or some rows. It is read where it is worked
on, by the workers of an executor (:mod:`permix.runtime.executors`), and its rows are those that
:func:`permix.read` would have.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from permix.data.cleaning_candidates import names_alike
from permix.data.labels import Array, Label, some_names
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.data.shards.loading import Chosen, Facts, File, Partition, Rows, Shard, facts_of, load
from permix.errors import DataError, PermixWarning, ShardError
from permix.runtime.executors import Executor, Here, Recipe, Reduce, new_token

Source = File | Rows | Partition
# Warnings of shards that are repeated one by one.
MOST_NOTES = 5


class Sharded:
    """Agents in shards, in the order of the shards.

    Attributes
    ----------
    items : tuple
        All items of all shards: numbers first, then names, each sorted.
    n_agents, n_rows, n_shards : int
        How many there are.
    executor : Executor
        Where shards are worked on.
    cleaned : Counter
        What cleaning did, and to how many ballots of all shards.
    """

    def __init__(
        self,
        sources: Sequence[tuple[str, Source]],
        executor: Executor | None = None,
        items: Iterable[Label] | None = None,
        unlisted: str | None = None,
    ) -> None:
        """Look at all shards once; what is wrong with one is said now."""
        if not sources:
            raise DataError("there are no shards")
        self.executor = Here() if executor is None else executor
        token = new_token()
        # Whole tables are not kept here: a shard is read once for its facts, and again to be worked on.
        recipes = [
            Recipe(f"{token}-facts-{at}", name, facts_of, (source,))
            for at, (name, source) in enumerate(sources)
        ]
        facts: list[Facts] = self.executor.map_shards(_as_it_is, recipes)
        self.executor.forget(recipes)
        self.items = _all_items(facts, [name for name, _ in sources], items)
        self.n_rows = sum(each.n_rows for each in facts)
        self.agents_before = np.cumsum([0, *(each.n_agents for each in facts)])
        unlisted = unlisted or _unlisted(facts, [name for name, _ in sources], self.items)
        self.recipes = [
            Recipe(
                f"{token}-{at}",
                name,
                load,
                (source, self.items, unlisted, int(self.agents_before[at]), facts[at].n_agents),
            )
            for at, (name, source) in enumerate(sources)
        ]
        self.cleaned = Counter[str]()
        for each in facts:
            for step, n_ballots in each.cleaned:
                self.cleaned[step] += n_ballots
        _repeat_notes(facts, [name for name, _ in sources])
        alike = names_alike([item for item in self.items if isinstance(item, str)])
        if alike and all(set(alike[0]) - set(each.items) for each in facts):
            said = f"{some_names(alike[0])} look alike, and are {len(alike[0])} items of different shards"
            warnings.warn(PermixWarning(said), stacklevel=3)

    @classmethod
    def of(cls, table: Rankings | Preferences, n_shards: int, executor: Executor | None = None) -> Sharded:
        """Divide a table that is here."""
        if n_shards < 1:
            raise DataError(f"n_shards={n_shards} must be at least 1")
        ends = [len(table) * at // n_shards for at in range(n_shards + 1)]
        sources: list[tuple[str, Source]] = [
            (f"rows {first + 1} to {last}", Rows(table[first:last]))
            for first, last in pairwise(ends)
            if last > first
        ]
        return cls(sources, executor, table.items)

    def __repr__(self) -> str:
        shards = "shard" if self.n_shards == 1 else "shards"
        return f"Sharded: {self.n_agents:,} agents over {len(self.items)} items, in {self.n_shards} {shards}"

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_agents(self) -> int:
        """Number of agents in all shards."""
        return int(self.agents_before[-1])

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.recipes)

    def map(self, work: Callable[[Shard, Any], Any], shared: Any = None, reduce: Reduce | None = None) -> Any:
        """Return ``work(shard, shared)`` of all shards as a list, or reduced, in their order."""
        return self.executor.map_shards(work, self.recipes, shared, reduce)

    def forget(self) -> None:
        """Let workers let go of what they keep; it is read again where it is needed."""
        self.executor.forget(self.recipes)

    def pairwise_counts(self) -> Array:
        """Return how many agents put item a before item b, (items, items), as the tables have it."""
        return np.asarray(self.map(_pair_counts, reduce=np.add))

    def distinct(self, most: int) -> Preferences | None:
        """Return what agents say, in rows that differ, with counts; None where there are over ``most``."""
        found: list[Preferences | None] = self.map(_rows_up_to, most)
        if any(each is None for each in found):
            return None
        joined = Preferences.concat([each for each in found if each is not None]).collapse()
        return joined if len(joined) <= most else None

    def sample(self, n: int, key: Array) -> Preferences:
        """Return ``n`` agents drawn at random, in their order; the same however agents are divided."""
        parts: list[Chosen] = self.map(_chosen, (key, n))
        numbers = np.concatenate([part.numbers for part in parts])
        last = np.partition(numbers, n - 1)[n - 1] if len(numbers) > n else numbers.max()
        tables = [part.table._take(np.flatnonzero(part.numbers <= last)) for part in parts]
        return Preferences.concat([table for table in tables if len(table)]).collapse()


def read_sharded(
    data: Any, *, executor: Executor | None = None, client: Any = None, items: Any = None, **options: Any
) -> Sharded:
    """Read rankings or preferences that are in several files, or in the partitions of a Dask collection.

    Parameters
    ----------
    data : path, sequence of paths, or Dask data frame, series or bag
        A folder, each file of which is a shard (in the order of their names, with those in folders below),
        so that all that an agent says must be in one file;
        a pattern such as ``"votes/*.parquet"``; several paths. Every file may have any form that
        :func:`permix.read` takes. Addresses such as ``s3://…`` need fsspec and its parts. The partitions
        of a data frame are tables as in :func:`permix.from_frame`, those of a bag orderings.
    executor : Executor, optional
        Where shards are read and worked on. Left out, threads of this process.
    client : distributed.Client, optional
        A Dask cluster, instead of ``executor``.
    items : sequence, optional
        All items, in this order. Left out, those found, numbers first, then names, each sorted.
    **options
        Passed on to :func:`permix.read`, or to :func:`permix.from_frame` and ``Rankings.from_orders``.

    Returns
    -------
    Sharded
        Which the models take that are fitted to shards: :class:`permix.MallowsMixture`,
        :func:`permix.kemeny`.
    """
    _refuse_what_needs_all(options)
    if client is not None:
        if executor is not None:
            raise DataError("give an executor or a client of Dask, not both")
        from permix.runtime.on_dask import OnDask

        executor = OnDask(client)
    given = tuple(sorted(options.items()))
    if hasattr(data, "to_delayed"):
        sources: list[tuple[str, Source]] = [
            (f"partition {at}", Partition(delayed, given)) for at, delayed in enumerate(data.to_delayed())
        ]
    else:
        sources = [(path, File(path, given)) for path in _paths(data)]
    return Sharded(sources, executor, items, options.get("unlisted"))


# What decides by all data, and what shards do not keep: with why.
OF_ALL = {
    "min_support": "how many mention an item is known of all shards together alone",
    "below_support": "how many mention an item is known of all shards together alone",
    "names": "which names look alike is known of all shards together alone",
    "group_columns": "covariates are not kept",
}


def _refuse_what_needs_all(options: dict[str, Any]) -> None:
    for name, why in OF_ALL.items():
        if options.get(name) is not None:
            raise DataError(f"{name} cannot be given for data in shards: {why}; clean the files first")


def _paths(data: Any) -> list[str]:
    """Return the paths of all files, those of folders in the order of their names."""
    if isinstance(data, list | tuple):
        return [path for each in data for path in _paths(each)]
    if not isinstance(data, str | os.PathLike):
        raise DataError(
            "read_sharded takes a folder, a pattern, paths, or a Dask data frame or bag, not "
            f"{type(data).__name__}; Sharded.of(table, n) divides a table that is here"
        )
    path = os.fspath(data)
    if "://" in path:
        import fsspec

        files, root = fsspec.core.url_to_fs(path)
        if files.isdir(root):
            found = [name for name in sorted(files.find(root)) if _is_data(Path(name[len(root) :]))]
        else:
            found = sorted(files.glob(root)) if any(sign in root for sign in "*?[") else [root]
        names = [files.unstrip_protocol(name) for name in found]
    elif Path(path).is_dir():
        names = [
            str(each)
            for each in sorted(Path(path).rglob("*"))
            if each.is_file() and _is_data(each.relative_to(path))
        ]
    elif any(sign in path for sign in "*?[") and not Path(path).exists():
        import glob

        names = [name for name in sorted(glob.glob(path, recursive=True)) if _is_data(Path(Path(name).name))]
    else:
        names = [path]
    if not names:
        raise DataError(f"{path}: there are no files")
    return names


def _is_data(path: Path) -> bool:
    """Say whether a file is data: not hidden, and none of those that writers of Parquet leave beside it."""
    return not any(part.startswith((".", "_")) for part in path.parts)


def _all_items(
    facts: Sequence[Facts], names: Sequence[str], given: Iterable[Label] | None
) -> tuple[Label, ...]:
    found = {item for each in facts for item in each.items}
    twice = sorted({str(item) for item in found if not isinstance(item, str)} & found)
    if twice:
        raise ShardError(
            f"{some_names(twice)}: numbers in some shards and text in others, such as '01'; save as text "
            "in all"
        )
    if given is None:
        numbers = sorted(item for item in found if not isinstance(item, str))
        return (*numbers, *sorted(item for item in found if isinstance(item, str)))
    items = tuple(given)
    known = set(items)
    for each, name in zip(facts, names, strict=True):
        strangers = [item for item in each.items if item not in known]
        if strangers:
            raise ShardError(f"{name}: not among the items given: {some_names(strangers)}")
    return items


def _unlisted(facts: Sequence[Facts], names: Sequence[str], items: tuple[Label, ...]) -> str:
    """Return what rows mean by leaving items out; it must be clear where shards do not know all items."""
    kinds = {each.unlisted for each in facts} - {""}
    lacking = [name for each, name in zip(facts, names, strict=True) if len(each.items) < len(items)]
    if lacking and ("mixed" in kinds or len(kinds) > 1):
        raise ShardError(
            f"{lacking[0]} does not have all {len(items)} items, and whether rows put what they leave out "
            "below is not the same in all shards; say so with unlisted='below' or unlisted='unknown'"
        )
    return next(iter(kinds), "below")


def _repeat_notes(facts: Sequence[Facts], names: Sequence[str]) -> None:
    """Warn of what reading warned of, once for the same words in many shards."""
    of_note: dict[str, list[str]] = {}
    for each, name in zip(facts, names, strict=True):
        for note in each.notes:
            of_note.setdefault(note.replace(name, "shard"), []).append(name)
    for at, (note, where) in enumerate(of_note.items()):
        if at == MOST_NOTES:
            more = f"{len(of_note) - MOST_NOTES} more warnings came while shards were read"
            warnings.warn(PermixWarning(more), stacklevel=4)
            return
        beside = f" and {len(where) - 1} more" if len(where) > 1 else ""
        warnings.warn(PermixWarning(f"{where[0]}{beside}: {note}"), stacklevel=4)


# Work of shards: functions of this module, so that other processes know them.


def _as_it_is(facts: Facts, _: Any) -> Facts:
    return facts


def _pair_counts(shard: Shard, _: Any) -> Array:
    return np.asarray(shard.table.pairwise_counts(), dtype=np.int64)


def _rows_up_to(shard: Shard, most: int) -> Preferences | None:
    return shard.table if len(shard.table) <= most else None


def _chosen(shard: Shard, shared: tuple[Array, int]) -> Chosen:
    return shard.chosen(*shared)
