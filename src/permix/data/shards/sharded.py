"""Rankings or preferences in shards, none of which the client holds.

Every shard is a file, a partition of a Dask data frame or bag, or some rows. It is read where it is worked
on, by the workers of an executor (:mod:`permix.runtime.executors`), and its rows are those that
:func:`permix.read` would have.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from permix.data.cleaning import Rules
from permix.data.cleaning_candidates import least_support, names_alike, refuse_nobody, too_few
from permix.data.labels import Array, Label, clean_items, some_names
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.data.shards.loading import (
    Chosen,
    Facts,
    Shard,
    Was,
    Weak,
    facts_of,
    load,
    support,
)
from permix.data.shards.names import said_of_several
from permix.data.shards.notes import repeat_notes, without_empty
from permix.data.shards.sources import File, Partition, Rows, executor_of, looks_at, sources_of
from permix.errors import Argument, DataError, PermixWarning, ShardError
from permix.files import PathLike
from permix.runtime.executors import Executor, Here, Recipe, Reduce, new_token
from permix.runtime.fingerprint import digest, fingerprint
from permix.runtime.journal import Journal

Source = File | Rows | Partition
Part = TypeVar("Part")


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
        rules: Rules | None = None,
        store: PathLike | None = None,
    ) -> None:
        """Look at all shards once; what is wrong with one is said now."""
        if not sources:
            raise DataError("there are no shards")
        self.executor = Here() if executor is None else executor
        token = new_token()
        # Whole tables are not kept here: a shard is read once for its facts, and again to be worked on.
        looks = looks_at(sources, facts_of, token)
        found_in_all: list[Facts] = self.executor.map_shards(_as_it_is, looks)
        self.executor.forget(looks)
        sources, facts = without_empty(sources, found_in_all)
        names = [name for name, _ in sources]
        self.digest = digest({"shards": np.array([each.digest for each in facts], dtype=object)})
        self.items = found = _all_items(facts, names, items)
        self.n_rows = sum(each.n_rows for each in facts)
        unlisted = unlisted or _unlisted(facts, names, found)

        def recipes(what: str, n_agents: Sequence[int], weak: Weak | None = None) -> list[Recipe]:
            """Return how shards are made, of which so many agents are kept."""
            self.agents_before = np.cumsum([0, *n_agents])
            return [
                Recipe(
                    f"{token}-{what}{at}",
                    name,
                    load,
                    (source, found, unlisted, int(before), Was(each.n_agents, each.digest), weak),
                )
                for at, ((name, source), before, each) in enumerate(
                    zip(sources, self.agents_before, facts, strict=False)
                )
            ]

        self.cleaned = Counter[str]()
        for each in facts:
            for step, n_ballots in each.cleaned:
                self.cleaned[step] += n_ballots
        self.recipes = recipes("", [each.n_agents for each in facts])
        if rules is not None and rules.min_support > 0:
            self._leave_weak_out(rules, recipes)
        self.journal = None
        if store is not None:
            # Agents who were left out, and what rows that leave items out mean, show in these.
            about = (self.digest, self.items, unlisted, self.agents_before)
            self.journal = Journal(Path(store), fingerprint(about))
        repeat_notes([each.notes for each in facts], names)
        _warn_of_names(self.items, facts, names)

    def _leave_weak_out(self, rules: Rules, recipes: Callable[..., list[Recipe]]) -> None:
        """Leave items out that too few agents of all shards mention, and then agents who say little."""
        n_before, least = self.n_agents, least_support(rules, self.n_agents)
        mentioned = np.asarray(self.map(support, reduce=np.add))
        self.forget()
        is_weak = mentioned < least
        refuse_nobody(is_weak)
        if not is_weak.any():
            return
        names = [item for item, gone in zip(self.items, is_weak, strict=True) if gone]
        weak = Weak(frozenset(names), int(rules.min_answers))
        self.recipes = recipes("counted-", [0] * self.n_shards, weak)
        n_rows, n_agents = zip(*self.map(_sizes), strict=True)
        self.forget()
        if not sum(n_agents):
            raise DataError("no agent is left: a smaller ", Argument("min_support"), " keeps some")
        self.recipes = recipes("", n_agents, weak)
        self.n_rows = sum(n_rows)
        self.items = tuple(item for item in self.items if item not in weak.items)
        listed = some_names(names)
        self.cleaned[f"{too_few(least, 'items', 'answers')}: left out, {listed}"] = len(names)
        self.cleaned["agents who then say too little: left out"] = n_before - self.n_agents

    @classmethod
    def of(
        cls,
        table: Rankings | Preferences,
        n_shards: int,
        executor: Executor | None = None,
        store: PathLike | None = None,
    ) -> Sharded:
        """Divide a table that is here."""
        if n_shards < 1:
            raise DataError(f"n_shards={n_shards} must be at least 1")
        ends = [len(table) * at // n_shards for at in range(n_shards + 1)]
        sources: list[tuple[str, Source]] = [
            (f"rows {first + 1} to {last}", Rows(table[first:last]))
            for first, last in pairwise(ends)
            if last > first
        ]
        return cls(sources, executor, table.items, store=store)

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

    def reduced(self, work: Callable[[Shard, Any], Any], shared: Any, reduce: Reduce) -> Any:
        """Return ``work(shard, shared)`` of all shards, reduced; out of the store, where that has it.

        Results are numbers, arrays and tuples of them; ``shared`` says all that they depend on.
        """

        def compute() -> Any:
            return self.map(work, shared, reduce)

        return compute() if self.journal is None else self.journal.get((work, shared), compute)

    def forget(self) -> None:
        """Let workers let go of what they keep; it is read again where it is needed."""
        self.executor.forget(self.recipes)

    def pairwise_counts(self) -> Array:
        """Return how many agents put item a before item b, (items, items), as the tables have it."""
        return np.asarray(self.map(_pair_counts, reduce=np.add))

    def distinct(self, most: int) -> Preferences | None:
        """Return what agents say, in rows that differ, with counts; None where there are over ``most``."""
        found: Parts[Preferences] | None = self.map(_rows_up_to, most, partial(_joined, most=most))
        return None if found is None else _collapsed(found, most)

    def sample(self, n: int, key: Array) -> Preferences:
        """Return ``n`` agents drawn at random, in their order; the same however agents are divided."""
        return self.chosen(n, key).table.collapse()

    def chosen(self, n: int, key: Array) -> Chosen:
        """Return ``n`` agents drawn at random, one row each, with their places among all."""
        drawn: Parts[Chosen] = self.map(_chosen, (key, n), partial(_drawn, most=n))
        return _smallest(drawn, n)


def read_sharded(
    data: Any,
    *,
    executor: Executor | None = None,
    client: Any = None,
    items: Any = None,
    store: PathLike | None = None,
    **options: Any,
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
    store : path, optional
        A folder that keeps the sums of every iteration of fits to these data: a fit whose client was killed
        goes on where it stopped when it is begun again in the same way, to the same bytes.
    **options
        Passed on to :func:`permix.read`, or to :func:`permix.from_frame` and ``Rankings.from_orders``.

    Returns
    -------
    Sharded
        Which the models take that are fitted to shards: :class:`permix.MallowsMixture`,
        :class:`permix.AngleMixture`, :class:`permix.DPMallowsMixture`, :func:`permix.kemeny`.
    """
    _refuse_what_needs_all(options)
    rules = Rules(min_support=options.pop("min_support", 0.0), min_answers=options.get("min_answers", 1))
    given = tuple(sorted(options.items()))
    sources = sources_of(data, partial(File, options=given), partial(Partition, options=given))
    return Sharded(sources, executor_of(executor, client), items, options.get("unlisted"), rules, store)


# What decides by all data, and what shards do not keep: with why.
OF_ALL = {
    "below_support": "items with little support are left out of shards, and cannot be merged",
    "names": "which names look alike is known of all shards together alone",
    "group_columns": "covariates are not kept",
}


def _refuse_what_needs_all(options: dict[str, Any]) -> None:
    for name, why in OF_ALL.items():
        if options.get(name) is not None:
            raise DataError(f"{name} cannot be given for data in shards: {why}; clean the files first")


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
    items = clean_items(given)
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
    return min(kinds, default="below")  # the same in every process: it is part of what a store is for


def _warn_of_names(items: tuple[Label, ...], facts: Sequence[Facts], names: Sequence[str]) -> None:
    """Warn of what only all shards together show: items that look alike, and agents in several shards."""
    alike = names_alike([item for item in items if isinstance(item, str)])
    if alike and all(set(alike[0]) - set(each.items) for each in facts):
        said = f"{some_names(alike[0])} look alike, and are {len(alike[0])} items of different shards"
        warnings.warn(PermixWarning(said), stacklevel=4)
    several = said_of_several([each.names for each in facts], names, "agent")
    if several:
        warnings.warn(PermixWarning(several), stacklevel=4)


# Work of shards: functions of this module, so that other processes know them.


def _as_it_is(facts: Facts, _: Any) -> Facts:
    return facts


def _sizes(shard: Shard, _: Any) -> tuple[int, int]:
    return len(shard.table), len(shard.row_of)


def _pair_counts(shard: Shard, _: Any) -> Array:
    return np.asarray(shard.table.pairwise_counts(), dtype=np.int64)


class Parts(NamedTuple, Generic[Part]):
    """Answers of neighboring shards, put together when they are many, and not with each that comes."""

    parts: tuple[Part, ...]
    n_rows: int

    def plus(self, other: Parts[Part]) -> Parts[Part]:
        """Return those of both."""
        return Parts(self.parts + other.parts, self.n_rows + other.n_rows)


def _rows_up_to(shard: Shard, most: int) -> Parts[Preferences] | None:
    n = len(shard.table)
    return Parts((shard.table,), n) if n <= most else None


def _collapsed(found: Parts[Preferences], most: int) -> Preferences | None:
    rows = Preferences.concat(found.parts).collapse()
    return rows if len(rows) <= most else None


def _joined(
    one: Parts[Preferences] | None, other: Parts[Preferences] | None, most: int
) -> Parts[Preferences] | None:
    if one is None or other is None:
        return None
    both = one.plus(other)
    if both.n_rows <= 2 * most:
        return both
    rows = _collapsed(both, most)
    return None if rows is None else Parts((rows,), len(rows))


def _smallest(drawn: Parts[Chosen], most: int) -> Chosen:
    """Return the agents with the smallest random numbers, in their order."""
    numbers = np.concatenate([each.numbers for each in drawn.parts])
    agents = np.concatenate([each.agents for each in drawn.parts])
    table = Preferences.concat([each.table for each in drawn.parts])
    if len(numbers) <= most:
        return Chosen(table, numbers, agents)
    kept = np.flatnonzero(numbers <= np.partition(numbers, most - 1)[most - 1])
    return Chosen(table._take(kept), numbers[kept], agents[kept])


def _drawn(one: Parts[Chosen], other: Parts[Chosen], most: int) -> Parts[Chosen]:
    both = one.plus(other)
    return both if both.n_rows <= 2 * most else Parts((_smallest(both, most),), most)


def _chosen(shard: Shard, shared: tuple[Array, int]) -> Parts[Chosen]:
    found = shard.chosen(*shared)
    return Parts((found,), len(found.numbers))
