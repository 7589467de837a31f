"""The client's side of a chain over rows in shards: groups of rows, and how rows are placed among them."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.shards.matrices import ShardedCells
from permix.errors import DataError
from permix.kernels.streams import draw_key
from permix.moves.sharded.work import Division, Edit, Look, Placing, Shape, look
from permix.partitions.priors import PriorTables
from permix.runtime.exact_sums import grid_of, rounders_of

PLAIN = ("columns", "table", "weights", "key", "stay", "stay_labels", "first", "final")


class ShardedRows(abc.ABC):
    """A partition of rows in shards; ``seen`` is what all shards say of ``placing``.

    Models say what the counts of a group are worth, and which tables score rows by its parameters.
    """

    placing: Placing
    seen: Look

    def __init__(self, data: ShardedCells, shape: Shape, chain: str) -> None:
        self.data, self.shape, self.chain = data, shape, chain

    # What models say.

    @property
    @abc.abstractmethod
    def row_prior(self) -> PriorTables:
        """The prior of the partition, at the present concentration."""

    @property
    @abc.abstractmethod
    def column_groups(self) -> Array:
        """Where tables have each column, int64."""

    @abc.abstractmethod
    def table(self, rng: np.random.Generator | None, counts: Array) -> Array:
        """Return what cells score, (groups of columns, slots, groups), given the counts of groups.

        Parameters are drawn given these; without a generator, any function of them will do.
        """

    @abc.abstractmethod
    def log_of(self, counts: Array) -> float:
        """Return ln p(rows) of groups with these counts, up to a constant that is the same for all rows."""

    @abc.abstractmethod
    def most_apart(self, table: Array) -> float:
        """Return how far apart the scores of a row in two groups are at most."""

    # What is the same for all.

    @property
    def n_rows(self) -> int:
        """Number of rows in all shards."""
        return self.data.n_rows

    def place(self, placing: Placing) -> None:
        """Put the rows where ``placing`` says, and ask what they are; labels without rows are left out."""
        self.placing = placing
        self.ask()
        there = np.flatnonzero(self.seen.sizes)
        if len(there) < len(self.seen.sizes):
            renumbered = np.full(len(self.seen.sizes), -1, dtype=np.int64)
            renumbered[there] = np.arange(len(there))
            first = renumbered[placing.first]
            first[first < 0] = 0  # nobody
            self.placing = placing._replace(first=first, final=np.arange(len(there)))
            self.ask()

    def counts_of(self, rows: Any, labels: Array, k: int) -> Array:
        """Return the counts of groups of rows that are here, encoded."""
        counts = self.shape.encoding.counts(k)
        self.shape.encoding.count(rows, labels.astype(np.int64), self.shape.rounding, counts)
        return counts

    def place_all(self, rng: np.random.Generator, counts: Array, weights: Array) -> None:
        """Begin: place all rows among groups with parameters drawn given these counts; nobody stays."""
        k, nobody = len(weights), (np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64))
        groups = (self.column_groups, self.table(rng, counts), weights, draw_key(rng))
        self.place(Placing(*groups, *nobody, np.arange(k), (), np.arange(k)))

    def ask(self) -> None:
        """Ask all shards again."""
        self.seen = self.data.map(look, (self.shape, self.placing, self.chain), Look.plus)

    def place_checkpoint(self) -> dict[str, Array]:
        """Return how rows are placed, as checkpoints hold it."""
        kept = {f"placing/{name}": np.asarray(getattr(self.placing, name)) for name in PLAIN}
        for at, (division, to) in enumerate(self.placing.edits):
            kept |= {f"edit-{at}/{name}": np.asarray(value) for name, value in division._asdict().items()}
            kept[f"edit-{at}/to"] = np.array(to)
        return kept

    def restore_places(self, arrays: Mapping[str, Array]) -> None:
        """Take back what ``place_checkpoint`` gave, and have rows placed again."""
        if "placing/key" not in arrays:
            raise DataError("the checkpoint is not one of rows in shards")
        plain: dict[str, Any] = {name: np.array(arrays[f"placing/{name}"]) for name in PLAIN}
        edits: list[Edit] = []
        while f"edit-{len(edits)}/to" in arrays:
            at = f"edit-{len(edits)}/"
            parts: dict[str, Any] = {name: np.array(arrays[at + name]) for name in Division._fields}
            parts["turn"] = int(parts["turn"])
            edits.append(Edit(Division(**parts), int(arrays[at + "to"])))
        self.placing = Placing(**plain, edits=tuple(edits))
        self.ask()


def rounding_of(n: int, largest: float) -> Array:
    """Return what rounds ``n`` numbers and their squares, up to ``largest`` in size, for exact sums."""
    grids = []
    for most in (largest, largest**2):
        grids += [grid_of(n, most), grid_of(n, 0.5 / grid_of(n, most))]
    return rounders_of(*grids)


def log_gammas(rng: np.random.Generator, shapes: Array) -> Array:
    """Draw ln of Gamma variables; of small shapes they are too small for numbers themselves."""
    # Gamma(a) is Gamma(a + 1) times a uniform to the power 1 / a.
    return np.log(rng.standard_gamma(shapes + 1.0)) - rng.standard_exponential(shapes.shape) / shapes


def log_dirichlet(rng: np.random.Generator, shapes: Array) -> Array:
    """Draw ln of shares."""
    drawn = log_gammas(rng, shapes)
    return np.asarray(drawn - np.logaddexp.reduce(drawn))
