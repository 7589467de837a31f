"""Matrices in shards of rows, none of which the client holds.

Every shard has some rows, with all their cells. Rows are known by a number of their own, which their name
decides where they have one, so that it is the same however rows are divided.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from permix.data.cells import Cells
from permix.data.labels import Array, some_names
from permix.data.shards.sharded import _paths, _repeat_notes
from permix.errors import DataError, ShardError
from permix.runtime.exact_sums import grid_of, on_grid
from permix.runtime.executors import Executor, Here, Recipe, Reduce, new_token

# Different values of cells that are told one by one; of more, cells are counts or numbers.
MOST_VALUES = 1000
# Warnings can be caught in one thread at a time; reading keeps the interpreter busy anyway.
_READING = threading.Lock()


class CellFacts(NamedTuple):
    """What everybody needs to know of a shard."""

    ids: Array  # (rows,) uint64
    named: bool
    columns: tuple[str, ...] | None
    n_columns: int
    n_cells: int
    values: Array | None  # different ones; None where there are very many
    largest: float  # in size, of numbers; NaN of text
    notes: tuple[str, ...]


@dataclasses.dataclass
class CellShard:
    """Rows of a matrix, over the columns of all, and what work has found out about them."""

    cells: Cells
    ids: Array  # (rows,) uint64: what rows are known by
    first: int  # how many rows come before the shard
    memo: dict[str, Any] = dataclasses.field(default_factory=dict)


class CellFile(NamedTuple):
    """A file that :func:`permix.read_cells` reads, here or at an address of fsspec."""

    path: str
    options: tuple[tuple[str, Any], ...]

    def __call__(self) -> Cells:
        """Read it."""
        from permix.data.io.cells_io import read_cells

        if "://" not in self.path:
            return read_cells(self.path, new_rows=True, **dict(self.options))
        import fsspec

        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / Path(self.path).name
            with fsspec.open(self.path, "rb") as remote, copy.open("wb") as local:
                shutil.copyfileobj(remote, local)
            return read_cells(copy, new_rows=True, **dict(self.options))


class CellRows(NamedTuple):
    """Rows of a matrix that the client has."""

    cells: Cells

    def __call__(self) -> Cells:
        """Return them."""
        return self.cells


class CellPartition(NamedTuple):
    """A partition of a Dask data frame, wide or long, which is computed where it is needed."""

    delayed: Any
    options: tuple[tuple[str, Any], ...]

    def __call__(self) -> Cells:
        """Compute it."""
        part = self.delayed.compute(scheduler="synchronous")
        return Cells.from_frame(part, new_rows=True, **dict(self.options))


CellSource = CellFile | CellRows | CellPartition


class ShardedCells:
    """A matrix in shards of rows.

    Attributes
    ----------
    column_names : tuple of str, or None
        Columns of all shards: numbers first, then names, each sorted.
    n_rows, n_columns, n_cells, n_shards : int
        How many there are.
    executor : Executor
        Where shards are worked on.
    values : ndarray or None
        The different values of cells, sorted; None where there are more than 1000.
    largest : float
        The largest value, in size; NaN where cells are text.
    """

    def __init__(self, sources: Sequence[tuple[str, CellSource]], executor: Executor | None = None) -> None:
        """Look at all shards once; what is wrong with one is said now."""
        if not sources:
            raise DataError("there are no shards")
        self.executor = Here() if executor is None else executor
        token, names = new_token(), [name for name, _ in sources]
        recipes = [
            Recipe(f"{token}-facts-{at}", name, cell_facts, (source,))
            for at, (name, source) in enumerate(sources)
        ]
        facts: list[CellFacts] = self.executor.map_shards(_as_it_is, recipes)
        self.executor.forget(recipes)
        self.column_names, self.n_columns = _all_columns(facts, names)
        self.n_cells = sum(each.n_cells for each in facts)
        if not self.n_cells:
            raise DataError("the matrix has no filled cell; there is nothing to learn from")
        self.rows_before = np.cumsum([0, *(len(each.ids) for each in facts)])
        self.values, self.largest = _all_values(facts, names)
        self.recipes = [
            Recipe(
                f"{token}-{at}",
                name,
                load_cells,
                (source, self.column_names, int(self.rows_before[at]), len(facts[at].ids)),
            )
            for at, (name, source) in enumerate(sources)
        ]
        self._refuse_divided_rows(facts)
        _repeat_notes(facts, names)  # type: ignore[arg-type]

    @classmethod
    def of(cls, cells: Cells, n_shards: int, executor: Executor | None = None) -> ShardedCells:
        """Divide a matrix that is here."""
        if n_shards < 1:
            raise DataError(f"n_shards={n_shards} must be at least 1")
        ends = [cells.n_rows * at // n_shards for at in range(n_shards + 1)]
        sources: list[tuple[str, CellSource]] = [
            (f"rows {first + 1} to {last}", CellRows(_rows_of(cells, first, last)))
            for first, last in pairwise(ends)
            if last > first
        ]
        return cls(sources, executor)

    def __repr__(self) -> str:
        shards = "shard" if self.n_shards == 1 else "shards"
        share = self.n_cells / (self.n_rows * self.n_columns)
        return (
            f"ShardedCells: {self.n_rows:,} rows x {self.n_columns:,} columns, {share:.0%} filled, in "
            f"{self.n_shards} {shards}"
        )

    @property
    def n_rows(self) -> int:
        """Number of rows in all shards."""
        return int(self.rows_before[-1])

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.recipes)

    def map(
        self, work: Callable[[CellShard, Any], Any], shared: Any = None, reduce: Reduce | None = None
    ) -> Any:
        """Return ``work(shard, shared)`` of all shards as a list, or reduced, in their order."""
        return self.executor.map_shards(work, self.recipes, shared, reduce)

    def forget(self) -> None:
        """Let workers let go of what they keep; it is read again where it is needed."""
        self.executor.forget(self.recipes)

    def sample(self, n: int, key: Array) -> Cells:
        """Return ``n`` rows drawn at random; the same, in the same order, however rows are divided."""
        numbers = np.sort(np.concatenate(self.map(_smallest, (key, n))))
        last = numbers[min(n, len(numbers)) - 1]
        parts: list[tuple[Array, Cells]] = self.map(_rows_below, (key, last))
        ids = np.concatenate([ids for ids, _ in parts])
        place = np.empty(len(ids), dtype=np.int64)
        place[np.argsort(ids, kind="stable")] = np.arange(len(ids))
        before = np.cumsum([0, *(cells.n_rows for _, cells in parts)])
        rows = [place[cells.rows + first] for (_, cells), first in zip(parts, before[:-1], strict=True)]
        named: list[str] = [""] * len(ids)
        at = 0
        for _, cells in parts:
            for name in cells.row_names or ():
                named[place[at]] = name
                at += 1
        return Cells(
            np.concatenate(rows),
            np.concatenate([cells.columns for _, cells in parts]),
            np.concatenate([cells.values for _, cells in parts]),
            (len(ids), self.n_columns),
            named,
            self.column_names,
            new_rows=True,
        )

    def ids_of_sample(self, n: int, key: Array) -> Array:
        """Return what the rows of :meth:`sample` are known by, in their order."""
        numbers = np.sort(np.concatenate(self.map(_smallest, (key, n))))
        last = numbers[min(n, len(numbers)) - 1]
        return np.sort(np.concatenate([ids for ids, _ in self.map(_rows_below, (key, last))]))

    def exact_sum(self, what: Callable[[Array], Array], largest: float) -> float:
        """Return the sum of ``what(values)`` over all cells, each at most ``largest`` in size."""
        grid = grid_of(self.n_cells, max(largest, 2.0**-60))
        grids = (grid, grid_of(self.n_cells, 0.5 / grid))
        return float(np.sum(self.map(_sum_of, (what, grids), np.add)))

    def _refuse_divided_rows(self, facts: Sequence[CellFacts]) -> None:
        """Refuse rows whose cells are in two shards."""
        if not facts[0].named:
            return
        ids = np.sort(np.concatenate([each.ids for each in facts]))
        twice = ids[1:][ids[1:] == ids[:-1]]
        if not len(twice):
            return
        first = twice[0]
        where = [at for at, each in enumerate(facts) if first in each.ids]
        name = self.executor.map_shards(_name_of, [self.recipes[where[0]]], first)[0]
        shards = " and ".join(self.recipes[at].name for at in where[:2])
        raise ShardError(
            f"row {name!r} is in {shards}, but all cells of a row must be in one shard ({len(twice):,} such "
            "rows); sort by row before the table is divided, or partition it by row, for example with "
            "dask: frame.shuffle('row')"
        )


def read_sharded_cells(
    data: Any, *, executor: Executor | None = None, client: Any = None, **options: Any
) -> ShardedCells:
    """Read a matrix whose rows are in several files, or in the partitions of a Dask data frame.

    Parameters
    ----------
    data : path, sequence of paths, or Dask data frame
        A folder, each file of which is a shard (in the order of their names); a pattern such as
        ``"ratings/*.parquet"``; several paths. Every file may have any form that :func:`permix.read_cells`
        takes, wide or long, and has all cells of its rows.
    executor : Executor, optional
        Where shards are read and worked on. Left out, threads of this process.
    client : distributed.Client, optional
        A Dask cluster, instead of ``executor``.
    **options
        Passed on to :func:`permix.read_cells`, or to :meth:`permix.Cells.from_frame`.

    Returns
    -------
    ShardedCells
        Which :class:`permix.CoClustering` takes.
    """
    for name in ("group_columns", "item_table"):
        if options.get(name):
            raise DataError(f"{name} cannot be given for data in shards: covariates are not kept")
    if client is not None:
        if executor is not None:
            raise DataError("give an executor or a client of Dask, not both")
        from permix.runtime.on_dask import OnDask

        executor = OnDask(client)
    given = tuple(sorted(options.items()))
    sources: list[tuple[str, CellSource]]
    if hasattr(data, "to_delayed"):
        sources = [
            (f"partition {at}", CellPartition(part, given)) for at, part in enumerate(data.to_delayed())
        ]
    else:
        sources = [(path, CellFile(path, given)) for path in _paths(data)]
    return ShardedCells(sources, executor)


def _rows_of(cells: Cells, first: int, last: int) -> Cells:
    chosen = (cells.rows >= first) & (cells.rows < last)
    names = None if cells.row_names is None else cells.row_names[first:last]
    return Cells(
        cells.rows[chosen] - first,
        cells.columns[chosen],
        cells.values[chosen],
        (last - first, cells.n_columns),
        names,
        cells.column_names,
        new_rows=True,
    )


def _all_columns(facts: Sequence[CellFacts], names: Sequence[str]) -> tuple[tuple[str, ...] | None, int]:
    for each, name in zip(facts, names, strict=True):
        if each.named != facts[0].named or (each.columns is None) != (facts[0].columns is None):
            raise ShardError(
                f"{name} has no names of rows or columns, or has some, unlike {names[0]}; all shards need "
                "them, or none"
            )
    if facts[0].columns is None:
        for each, name in zip(facts, names, strict=True):
            if each.n_columns != facts[0].n_columns:
                raise ShardError(
                    f"{name} has {each.n_columns} columns without names, and {names[0]} has "
                    f"{facts[0].n_columns}"
                )
        return None, facts[0].n_columns
    found = {name for each in facts for name in each.columns or ()}
    numbers = sorted((name for name in found if name.isdecimal()), key=lambda name: (int(name), name))
    columns = (*numbers, *sorted(name for name in found if not name.isdecimal()))
    return columns, len(columns)


def _all_values(facts: Sequence[CellFacts], names: Sequence[str]) -> tuple[Array | None, float]:
    filled = [(each, name) for each, name in zip(facts, names, strict=True) if each.n_cells]
    text = [np.isnan(each.largest) for each, _ in filled]
    if any(text) and not all(text):
        raise ShardError(
            f"cells are text in {filled[text.index(True)][1]} and numbers in {filled[text.index(False)][1]}"
        )
    largest = max(each.largest for each, _ in filled)
    if any(each.values is None for each, _ in filled):
        return None, largest
    values = np.unique(np.concatenate([np.asarray(each.values) for each, _ in filled]))
    return (values if len(values) <= MOST_VALUES else None), largest


# Recipes and work of shards: functions of this module, so that other processes know them.


def cell_facts(source: Callable[[], Cells]) -> CellFacts:
    """Read a shard and say what is in it."""
    with _READING, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cells = source()
    values: Array | None = np.unique(cells.values)
    largest = np.nan if cells.is_text else float(np.abs(cells.values).max(initial=0.0))
    if values is not None and len(values) > MOST_VALUES:
        values = None
    notes = tuple(dict.fromkeys(str(each.message) for each in caught))
    named = cells.row_names is not None
    # Rows without names are known by their place among all.
    ids = _ids(cells) if named else np.zeros(cells.n_rows, dtype=np.uint64)
    facts = (cells.column_names, cells.n_columns, cells.n_cells, values, largest, notes)
    return CellFacts(ids, named, *facts)


def load_cells(
    source: Callable[[], Cells], columns: tuple[str, ...] | None, first: int, n_rows: int
) -> CellShard:
    """Read a shard over the columns of all; ``first`` rows come before it."""
    with _READING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said when the facts were gathered
        cells = source()
    if cells.n_rows != n_rows:
        raise DataError(f"it has {cells.n_rows:,} rows, but had {n_rows:,}; it was changed meanwhile")
    named = cells.row_names is not None
    ids = _ids(cells) if named else np.arange(first, first + n_rows, dtype=np.uint64)
    if columns is not None and cells.column_names != columns:
        place = {name: at for at, name in enumerate(columns)}
        own = cells.column_names or ()
        strangers = [name for name in own if name not in place]
        if strangers:
            raise DataError(f"it has columns it did not have before: {some_names(strangers)}")
        where = np.array([place[name] for name in own], dtype=np.int64)
        shape = (n_rows, len(columns))
        known = (cells.row_names, columns)
        cells = Cells(cells.rows, where[cells.columns], cells.values, shape, *known, new_rows=True)
    return CellShard(cells, ids, first)


def _ids(cells: Cells) -> Array:
    """Return numbers that the names of rows decide."""
    import hashlib

    names = cells.row_names or ()
    digests = (hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def numbers_of_rows(shard: CellShard, key: Array, sweep: int) -> Array:
    """Return a random number of every row, whose place among all does not matter."""
    from permix.kernels.streams import first_words

    out = np.empty(len(shard.ids), dtype=np.uint64)
    first_words(key, sweep, np.array(shard.ids), out)
    return out


def _as_it_is(facts: CellFacts, _: Any) -> CellFacts:
    return facts


def _name_of(shard: CellShard, row_id: Any) -> str:
    return shard.cells.row_name(int(np.flatnonzero(shard.ids == row_id)[0]))


def _smallest(shard: CellShard, shared: tuple[Array, int]) -> Array:
    key, n = shared
    return np.sort(numbers_of_rows(shard, key, 0))[:n]


def _rows_below(shard: CellShard, shared: tuple[Array, Any]) -> tuple[Array, Cells]:
    key, last = shared
    chosen = numbers_of_rows(shard, key, 0) <= last
    cells = shard.cells.take(chosen, np.ones(shard.cells.n_columns, dtype=np.bool_))
    if shard.cells.row_names is None:
        names = [str(shard.first + at + 1) for at in np.flatnonzero(chosen)]
        known = (names, cells.column_names)
        cells = Cells(cells.rows, cells.columns, cells.values, cells.shape, *known, new_rows=True)
    return shard.ids[chosen], cells


def _sum_of(shard: CellShard, shared: tuple[Callable[[Array], Array], tuple[float, float]]) -> Array:
    what, (grid, rest) = shared
    terms = what(np.asarray(shard.cells.values, dtype=np.float64))
    rounded = on_grid(terms, grid)
    return np.array([rounded.sum(), on_grid(terms - rounded, rest).sum()])
