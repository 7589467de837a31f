"""Rows in shards as chains know them: by numbers of their own, however rows are divided."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from permix.data.cells import Cells
from permix.data.labels import Array
from permix.data.shards.matrices import CellShard, ShardedCells
from permix.errors import ShardError
from permix.kernels.streams import first_words
from permix.runtime.exact_sums import grid_of, on_grid


def row_ids(shard: CellShard) -> Array:
    """Return what rows are known by: what their names decide, or else their places among all."""
    if "ids" not in shard.memo:
        cells = shard.cells
        ids = np.arange(shard.first, shard.first + cells.n_rows, dtype=np.uint64)
        if cells.row_names is not None:
            digests = (hashlib.blake2b(name.encode(), digest_size=8).digest() for name in cells.row_names)
            ids = np.array(np.frombuffer(b"".join(digests), dtype=np.uint64))
        shard.memo["ids"] = ids
    found: Array = shard.memo["ids"]
    return found


def numbers_of_rows(shard: CellShard, key: Array, sweep: int) -> Array:
    """Return a random number of every row."""
    ids = row_ids(shard)
    out = np.empty(len(ids), dtype=np.uint64)
    first_words(key, sweep, ids, out)
    return out


def refuse_divided_rows(data: ShardedCells) -> None:
    """Refuse rows whose cells are in two shards."""
    by_shard: list[Array] = data.map(_ids)
    ids = np.sort(np.concatenate(by_shard))
    twice = ids[1:][ids[1:] == ids[:-1]]
    if not len(twice):
        return
    where = [at for at, each in enumerate(by_shard) if twice[0] in each]
    name = data.executor.map_shards(_name_of, [data.recipes[where[0]]], twice[0])[0]
    shards = " and ".join(data.recipes[at].name for at in where[:2])
    raise ShardError(
        f"row {name!r} is in {shards}, but all cells of a row must be in one shard ({len(twice):,} such "
        "rows); sort by row before the table is divided, or partition it by row, for example with "
        "dask: frame.shuffle('row')"
    )


def sample(data: ShardedCells, n: int, key: Array) -> tuple[Cells, Array]:
    """Return ``n`` rows drawn at random, and what they are known by, in that order."""
    numbers = np.sort(np.concatenate(data.map(_smallest, (key, n))))
    last = numbers[min(n, len(numbers)) - 1]
    parts: list[tuple[Array, Cells]] = data.map(_rows_below, (key, last))
    ids = np.concatenate([ids for ids, _ in parts])
    place = np.empty(len(ids), dtype=np.int64)
    place[np.argsort(ids, kind="stable")] = np.arange(len(ids))
    before = np.cumsum([0, *(cells.n_rows for _, cells in parts)])
    rows = [place[cells.rows + first] for (_, cells), first in zip(parts, before[:-1], strict=True)]
    names = np.empty(len(ids), dtype=object)
    names[place] = [name for _, cells in parts for name in cells.row_names or ()]
    cells = Cells(
        np.concatenate(rows),
        np.concatenate([cells.columns for _, cells in parts]),
        np.concatenate([cells.values for _, cells in parts]),
        (len(ids), data.n_columns),
        names.tolist(),
        data.column_names,
        new_rows=True,
    )
    return cells, np.sort(ids)


def largest_of(data: ShardedCells) -> float:
    """Return the largest number, in size."""
    return float(data.map(_largest, None, max))


def exact_sum(data: ShardedCells, what: Callable[[Array], Array], largest: float) -> float:
    """Return the sum of ``what(values)`` over all cells, each at most ``largest`` in size."""
    grid = grid_of(data.n_cells, max(largest, 2.0**-60))
    grids = (grid, grid_of(data.n_cells, 0.5 / grid))
    return float(np.sum(data.map(_sum_of, (what, grids), np.add)))


# Work of shards: functions of this module, so that other processes know them.


def _ids(shard: CellShard, _: object) -> Array:
    return row_ids(shard)


def _name_of(shard: CellShard, row_id: object) -> str:
    return shard.cells.row_name(int(np.flatnonzero(row_ids(shard) == row_id)[0]))


def _smallest(shard: CellShard, shared: tuple[Array, int]) -> Array:
    key, n = shared
    return np.sort(numbers_of_rows(shard, key, 0))[:n]


def _rows_below(shard: CellShard, shared: tuple[Array, int]) -> tuple[Array, Cells]:
    key, last = shared
    chosen = numbers_of_rows(shard, key, 0) <= last
    cells = shard.cells.take(chosen, np.ones(shard.cells.n_columns, dtype=np.bool_))
    if shard.cells.row_names is None:
        names = [str(shard.first + at + 1) for at in np.flatnonzero(chosen)]
        known = (names, shard.cells.column_names)
        cells = Cells(cells.rows, cells.columns, cells.values, cells.shape, *known, new_rows=True)
    return row_ids(shard)[chosen], cells


def _largest(shard: CellShard, _: object) -> float:
    return float(np.abs(np.asarray(shard.cells.values, dtype=np.float64)).max(initial=0.0))


def _sum_of(shard: CellShard, shared: tuple[Callable[[Array], Array], tuple[float, float]]) -> Array:
    what, (grid, rest) = shared
    terms = what(np.asarray(shard.cells.values, dtype=np.float64))
    rounded = on_grid(terms, grid)
    return np.array([rounded.sum(), on_grid(terms - rounded, rest).sum()])
