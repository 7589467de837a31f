"""Matrices with missing cells whose rows are in shards, none of which the client holds."""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from permix.data.cells import Cells
from permix.data.cells_checks import Names
from permix.data.cleaning import Rules
from permix.data.cleaning_candidates import least_support, too_few
from permix.data.labels import Array, some_names
from permix.data.shards.loading import READING, Was
from permix.data.shards.names import NO_NAMES, SomeNames, said_of_several, some_of
from permix.data.shards.notes import repeat_notes, said_to_users, without_empty
from permix.data.shards.sources import Options, Partition, executor_of, fetched, looks_at, sources_of
from permix.errors import Argument, DataError, NoRows, PermixWarning, ShardError
from permix.runtime.executors import Executor, Here, Recipe, Reduce, new_token
from permix.runtime.fingerprint import digest

# Different values that are listed; more are not levels.
MOST_VALUES = 1000


class CellFacts(NamedTuple):
    """What everybody needs to know of a shard."""

    column_names: Names
    n_rows: int
    n_columns: int
    n_cells: int
    is_text: bool
    values: tuple[Any, ...] | None  # all different ones, sorted, or None where they are too many
    names: SomeNames  # of rows
    notes: tuple[str, ...]  # warnings while it was read
    digest: str  # of all that it says


@dataclasses.dataclass
class CellShard:
    """Some rows over the columns of all, and what work has found out about them."""

    cells: Cells
    first: int  # how many rows come before the shard
    memo: dict[str, Any] = dataclasses.field(default_factory=dict)


class CellFile(NamedTuple):
    """A file that :func:`permix.read_cells` reads, here or at an address of fsspec."""

    path: str
    options: Options

    def __call__(self) -> Cells:
        """Read it."""
        from permix.data.io.cells_io import read_cells

        with fetched(self.path) as path:
            return read_cells(path, **dict(self.options))


class CellRows(NamedTuple):
    """Rows of a matrix that the client has."""

    cells: Cells

    def __call__(self) -> Cells:
        """Return them."""
        return self.cells


class CellPartition(NamedTuple):
    """A partition of a Dask data frame, which is computed where it is needed."""

    partition: Partition

    def __call__(self) -> Cells:
        """Compute it."""
        part = self.partition.computed()
        if not hasattr(part, "columns"):
            raise DataError(f"it holds {type(part).__name__}, but matrices come in partitions of data frames")
        return Cells.from_frame(part, **dict(self.partition.options))


CellSource = CellFile | CellRows | CellPartition


def cell_facts(source: CellSource) -> CellFacts:
    """Read a shard and say what is in it."""
    with READING, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            cells = source()
        except NoRows as error:
            return CellFacts(None, 0, 0, 0, False, (), NO_NAMES, (str(error),), "")
    values = tuple(sorted(set(cells.values.tolist())))
    return CellFacts(
        cells.column_names,
        cells.n_rows,
        cells.n_columns,
        cells.n_cells,
        cells.is_text,
        values if len(values) <= MOST_VALUES else None,
        some_of(cells.row_names),
        said_to_users(caught),
        _digest(cells),
    )


class Kept(NamedTuple):
    """Columns that enough rows of all shards answer, and how many of these a row must answer."""

    columns: Array  # (columns,) of bool
    min_answers: int


def load_cells(
    source: CellSource, columns: Names, n_columns: int, first: int, was: Was, kept: Kept | None
) -> CellShard:
    """Read a shard over the columns of all; ``first`` is how many rows come before it."""
    with READING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said when the facts were gathered
        cells = source()
    if _digest(cells) != was.digest:
        raise DataError("it says something else than it did; it was changed meanwhile")
    if cells.column_names != columns:
        place = {name: at for at, name in enumerate(columns or ())}
        new = np.array([place[name] for name in cells.column_names or ()], dtype=np.int64)
        entries = (cells.rows, new[cells.columns], cells.values, (cells.n_rows, n_columns))
        cells = Cells(*entries, cells.row_names, columns, cells.origin, new_rows=True)
    if kept is not None:
        answers = np.bincount(cells.rows[kept.columns[cells.columns]], minlength=cells.n_rows)
        stays = answers >= kept.min_answers
        if not stays.any():
            n = int(kept.columns.sum())
            raise DataError(f"no row answers enough of the {n} columns that are kept; leave it out")
        cells = cells.take(stays, kept.columns)
    return CellShard(cells, first)


def _digest(cells: Cells) -> str:
    names = {
        what: np.array(list(listed or ()), dtype=object)
        for what, listed in (("row names", cells.row_names), ("column names", cells.column_names))
    }
    size = np.array(cells.shape)
    return digest({"shape": size, "r": cells.rows, "c": cells.columns, "v": cells.values, **names})


class ShardedCells:
    """Rows of a matrix in shards, in the order of the shards.

    Attributes
    ----------
    column_names : tuple of str, or None
        All columns of all shards: in their order where it is the same in all, else numbers first, then names,
        each sorted. None where columns have no names.
    n_rows, n_columns, n_cells, n_shards : int
        How many there are.
    is_text : bool
        Whether cells hold text.
    values : tuple, or None
        The different values, sorted; None where they are more than 1,000.
    executor : Executor
        Where shards are worked on.
    cleaned : Counter
        What cleaning did, and to how many.
    """

    def __init__(
        self,
        sources: Sequence[tuple[str, CellSource]],
        executor: Executor | None = None,
        rules: Rules | None = None,
    ) -> None:
        """Look at all shards once; what is wrong with one is said now."""
        if not sources:
            raise DataError("there are no shards")
        self.executor = Here() if executor is None else executor
        token = new_token()
        looks = looks_at(sources, cell_facts, token)
        found_in_all: list[CellFacts] = self.executor.map_shards(_as_it_is, looks)
        self.executor.forget(looks)
        sources, facts = without_empty(sources, found_in_all)
        names = [name for name, _ in sources]
        self.digest = digest({"shards": np.array([each.digest for each in facts], dtype=object)})
        self.column_names, self.n_columns = _all_columns(facts, names)
        self.is_text = _are_text(facts, names)
        self.values = _all_values(facts)
        self.n_cells = sum(each.n_cells for each in facts)
        self.cleaned = Counter[str]()
        found = self.column_names, self.n_columns

        def recipes(what: str, n_rows: Sequence[int], kept: Kept | None = None) -> list[Recipe]:
            """Return how shards are made, of which so many rows are kept."""
            self.rows_before = np.cumsum([0, *n_rows])
            return [
                Recipe(
                    f"{token}-{what}{at}",
                    name,
                    load_cells,
                    (source, *found, int(before), Was(each.n_rows, each.digest), kept),
                )
                for at, ((name, source), before, each) in enumerate(
                    zip(sources, self.rows_before, facts, strict=False)
                )
            ]

        self.recipes = recipes("", [each.n_rows for each in facts])
        if rules is not None and (rules.min_support > 0 or rules.min_answers > 1):
            self._leave_weak_out(rules, recipes)
        repeat_notes([each.notes for each in facts], names)
        several = said_of_several([each.names for each in facts], names, "row")
        if several:
            warnings.warn(PermixWarning(several), stacklevel=3)

    @classmethod
    def of(cls, cells: Cells, n_shards: int, executor: Executor | None = None) -> ShardedCells:
        """Divide a matrix that is here."""
        if n_shards < 1:
            raise DataError(f"n_shards={n_shards} must be at least 1")
        ends = [cells.n_rows * at // n_shards for at in range(n_shards + 1)]
        sources: list[tuple[str, CellSource]] = []
        for first, last in pairwise(ends):
            if last > first:
                low, high = np.searchsorted(cells.rows, [first, last])
                entries = (cells.rows[low:high] - first, cells.columns[low:high], cells.values[low:high])
                names = None if cells.row_names is None else cells.row_names[first:last]
                size = (last - first, cells.n_columns)
                part = Cells(*entries, size, names, cells.column_names, new_rows=True)
                sources.append((f"rows {first + 1} to {last}", CellRows(part)))
        return cls(sources, executor)

    def __repr__(self) -> str:
        shards = "shard" if self.n_shards == 1 else "shards"
        filled = 100 * self.n_cells / (self.n_rows * self.n_columns)
        return (
            f"ShardedCells: {self.n_rows:,} rows x {self.n_columns} columns, {self.n_cells:,} cells filled "
            f"({filled:.3g}%), in {self.n_shards} {shards}"
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

    def filled(self) -> Array:
        """Return how many cells of each column are filled."""
        return np.asarray(self.map(_filled, reduce=np.add))

    def _leave_weak_out(self, rules: Rules, recipes: Callable[..., list[Recipe]]) -> None:
        """Leave columns out that too few rows of all shards answer, and then rows that answer little."""
        n_before, least = self.n_rows, least_support(rules, self.n_rows)
        columns = self.filled() >= least
        self.forget()
        if not columns.any():
            raise DataError("no column is left: a smaller ", Argument("min_support"), " keeps some")
        if columns.all() and rules.min_answers <= 1:
            return
        kept = Kept(columns, int(rules.min_answers))
        self.recipes = recipes("counted-", [0] * self.n_shards, kept)
        sizes = np.array(self.map(_sizes))
        self.forget()
        self.recipes = recipes("", sizes[:, 0], kept)
        self.n_cells, self.n_columns = int(sizes[:, 1].sum()), int(columns.sum())
        names = self.column_names or tuple(str(at + 1) for at in range(len(columns)))
        gone = [name for name, stays in zip(names, columns, strict=True) if not stays]
        if gone:
            self.column_names = tuple(name for name, stays in zip(names, columns, strict=True) if stays)
            self.cleaned[f"{too_few(least, 'columns', 'rows')}: left out, {some_names(gone)}"] = len(gone)
        if n_before > self.n_rows:
            few = f"rows with fewer than {max(rules.min_answers, 1):,} answers: left out"
            self.cleaned[few] = n_before - self.n_rows


def read_sharded_cells(
    data: Any, *, executor: Executor | None = None, client: Any = None, **options: Any
) -> ShardedCells:
    """Read a matrix whose rows are in several files, or in the partitions of a Dask data frame.

    Parameters
    ----------
    data : path, sequence of paths, or Dask data frame
        As in :func:`permix.read_sharded`. Every file may have any form that :func:`permix.read_cells` takes,
        and holds whole rows; partitions are tables as in ``Cells.from_frame``.
    executor, client : optional
        As in :func:`permix.read_sharded`.
    **options
        Passed on to :func:`permix.read_cells`, or to ``Cells.from_frame``; and of the rules of
        :func:`permix.clean` those for matrices: ``min_support``, counted over all shards, and
        ``min_answers``.

    Returns
    -------
    ShardedCells
    """
    for name, why in (("group_columns", "covariates"), ("item_table", "attributes of columns")):
        if options.get(name):
            raise DataError(f"{name} cannot be given for data in shards: {why} are not kept")
    rules = Rules(**{name: options.pop(name) for name in ("min_support", "min_answers") if name in options})
    given = tuple(sorted(options.items()))
    sources = sources_of(
        data, partial(CellFile, options=given), lambda each: CellPartition(Partition(each, given))
    )
    return ShardedCells(sources, executor_of(executor, client), rules)


def _all_columns(facts: Sequence[CellFacts], names: Sequence[str]) -> tuple[Names, int]:
    first = facts[0]
    for each, name in zip(facts, names, strict=True):
        if (each.column_names is None) != (first.column_names is None):
            other = "names its columns" if first.column_names is None else "does not name its columns"
            raise ShardError(f"{name} {other}, unlike {names[0]}; all shards must")
        if each.column_names is None and each.n_columns != first.n_columns:
            raise ShardError(
                f"{name} has {each.n_columns} columns and {names[0]} {first.n_columns}; without names they "
                "must be as many"
            )
    if first.column_names is None or all(each.column_names == first.column_names for each in facts):
        return first.column_names, first.n_columns
    found = {name for each in facts for name in each.column_names or ()}
    numbers = sorted((name for name in found if name.isdecimal()), key=lambda name: (int(name), name))
    columns = (*numbers, *sorted(found - set(numbers)))
    return columns, len(columns)


def _are_text(facts: Sequence[CellFacts], names: Sequence[str]) -> bool:
    filled = [(each.is_text, name) for each, name in zip(facts, names, strict=True) if each.n_cells]
    text = [name for is_text, name in filled if is_text]
    numbers = [name for is_text, name in filled if not is_text]
    if text and numbers:
        raise ShardError(f"cells are text in {text[0]} and numbers in {numbers[0]}; save as text in all")
    return bool(text)


def _all_values(facts: Sequence[CellFacts]) -> tuple[Any, ...] | None:
    if any(each.values is None for each in facts):
        return None
    found = {value for each in facts for value in each.values or ()}
    return tuple(sorted(found)) if len(found) <= MOST_VALUES else None


# Work of shards: functions of this module, so that other processes know them.


def _as_it_is(facts: CellFacts, _: Any) -> CellFacts:
    return facts


def _filled(shard: CellShard, _: Any) -> Array:
    return np.bincount(shard.cells.columns, minlength=shard.cells.n_columns)


def _sizes(shard: CellShard, _: Any) -> tuple[int, int]:
    return shard.cells.n_rows, shard.cells.n_cells
