"""The client's side of a chain over rows in shards: groups, blocks, and how rows are placed among them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from permix.cocluster.cells.block_sums_jit import log_blocks
from permix.cocluster.cells.blocks_jit import MomentPrior
from permix.cocluster.cells.encoded_matrix import BlockSums
from permix.cocluster.cells.families import CellFamily, CellValueError
from permix.cocluster.cells.learned import LearnsCells
from permix.cocluster.sharded.columns import LONGEST
from permix.data.cells import Cells
from permix.data.labels import Array
from permix.data.shards.matrices import ShardedCells
from permix.errors import ShardError
from permix.kernels.lines_jit import Lines, lines_of
from permix.moves.sharded.encodings import LineEncoding
from permix.moves.sharded.state import ShardedRows, log_gammas
from permix.moves.sharded.work import Shape
from permix.moves.state import first_concentration, learned_concentration, log_gamma_density
from permix.partitions.labels import canonical_labels
from permix.partitions.priors import DirichletProcess, Gamma, PartitionPrior, PriorTables


class CellLines(LineEncoding):
    """Cells of a family, row by row."""

    def __init__(self, family: CellFamily, n_columns: int) -> None:
        self.family, self.n_columns = family, n_columns
        self.levels, self.n_slots = family.has_levels, family.n_slots + (not family.has_levels)

    def rows(self, cells: Cells) -> Lines:
        try:
            codes = self.family.encode(cells.values)
        except CellValueError as error:
            raise ShardError(str(error.at(cells.place(error.position)))) from None
        return lines_of(cells.rows, cells.columns, codes, cells.n_rows)


@dataclasses.dataclass(frozen=True)
class ShardedModel:
    """A matrix in shards and the prior; never written to."""

    data: ShardedCells
    family: CellFamily
    shape: Shape
    priors: tuple[PartitionPrior, PartitionPrior]
    learned: Gamma | None
    log_constant: float
    largest: float  # of counts; of levels 1


class ShardedGrid(ShardedRows, LearnsCells):
    """A partition of the rows, which are in shards, and one of the columns.

    Beside what shards say, labels of columns, concentrations and the pseudo-count of blocks are all that is
    known.
    """

    def __init__(self, model: ShardedModel, chain: str) -> None:
        super().__init__(model.data, model.shape, chain)
        self.model, self.cell_family, self.learned = model, model.family, model.learned
        self.row_concentration, self.column_concentration = map(first_concentration, model.priors)
        self.column_labels = np.zeros(model.data.n_columns, dtype=np.int32)

    @property
    def row_prior(self) -> PriorTables:
        """The prior of rows, at the present concentration."""
        prior = self.model.priors[0]
        learned = learned_concentration(prior) is not None
        return (DirichletProcess(self.row_concentration) if learned else prior).tables(self.n_rows)

    @property
    def column_groups(self) -> Array:
        return self.column_labels.astype(np.int64)

    @property
    def sums(self) -> Array:
        """What the cells of each group of rows add up to, column by column."""
        return self._numbers(self.seen.counts)

    def _numbers(self, counts: Array) -> Array:
        encoding = self.shape.encoding
        assert isinstance(encoding, CellLines)
        return encoding.numbers(counts)

    def block_sums(self, counts: Array) -> BlockSums:
        """Add up counts (groups of rows, columns, slots) over the groups of columns."""
        counts = self._numbers(counts)
        n_groups = int(self.column_labels.max()) + 1
        summed = np.zeros((counts.shape[0], n_groups, counts.shape[2]))
        for column, group in enumerate(self.column_labels.tolist()):
            summed[:, group] += counts[:, column]
        return as_blocks(self.cell_family, summed)

    def blocks(self) -> BlockSums:
        return self.block_sums(self.seen.counts)

    def table(self, rng: np.random.Generator | None, counts: Array) -> Array:
        return drawn_table(rng, self.cell_family, self.block_sums(counts), len(counts))

    def most_apart(self, table: Array) -> float:
        apart = np.abs(table[:, :, 0] - table[:, :, 1])
        if self.cell_family.has_levels:
            by_group = apart.max(axis=1)
        else:
            by_group = (apart * self.model.largest ** np.arange(apart.shape[1])).sum(axis=1)
        return float(by_group[self.column_labels].sum())

    def log_of(self, counts: Array) -> float:
        return float(log_blocks(self.cell_family.block_prior(LONGEST), *self.block_sums(counts)))

    def take_family(self, family: CellFamily) -> None:
        self.cell_family = family

    def log_likelihood(self) -> float:
        """Log marginal likelihood of the cells given both partitions, in an order of groups of its own."""
        order = np.lexsort(self.seen.counts.reshape(len(self.seen.sizes), -1).T)
        labels, own = canonical_labels(self.column_labels), self.column_labels
        self.column_labels = labels
        try:
            return self.log_of(self.seen.counts[order]) + self.model.log_constant
        finally:
            self.column_labels = own

    def log_prior(self) -> float:
        """Log prior of both partitions, and of what is learned beside them."""
        value = self.log_hyper_prior() + self.row_prior.log_prob(np.sort(self.seen.sizes))
        columns = self.model.priors[1]
        if learned_concentration(columns) is not None:
            columns = DirichletProcess(self.column_concentration)
        value += columns._log_prob_of_sizes(np.sort(np.bincount(self.column_labels)))
        for prior, at in zip(
            self.model.priors, (self.row_concentration, self.column_concentration), strict=True
        ):
            gamma = learned_concentration(prior)
            if gamma is not None:
                value += log_gamma_density(gamma, at)
        return value

    def refresh(self) -> None:
        """Ask all shards again."""
        self.ask()

    def record(self) -> dict[str, float | int | Array]:
        log_likelihood = self.log_likelihood()
        n_rows, n_columns = len(self.seen.sizes), int(self.column_labels.max()) + 1
        draw: dict[str, float | int | Array] = {
            "row_labels": canonical_labels(self.seen.record),
            "column_labels": canonical_labels(self.column_labels),
            "n_row_groups": n_rows,
            "n_column_groups": n_columns,
            "n_blocks": n_rows * n_columns,
            "log_likelihood": log_likelihood,
            "log_joint": self.log_prior() + log_likelihood,
            **self.recorded(),
        }
        for name, prior in zip(("row", "column"), self.model.priors, strict=True):
            if learned_concentration(prior) is not None:
                draw[f"{name}_concentration"] = getattr(self, f"{name}_concentration")
        return draw

    def progress(self) -> dict[str, float]:
        return {
            "groups of rows": float(len(self.seen.sizes)),
            "groups of columns": float(self.column_labels.max() + 1),
        }

    def checkpoint(self) -> dict[str, Array]:
        kept = self.place_checkpoint()
        kept |= {"column_labels": self.column_labels.copy()}
        kept |= {
            "row_concentration": np.array(self.row_concentration),
            "column_concentration": np.array(self.column_concentration),
        }
        return kept | self.saved()

    def restore(self, arrays: Mapping[str, Array]) -> None:
        self.restore_places(arrays)
        self.take_saved(arrays)
        self.column_labels = np.array(arrays["column_labels"])
        self.row_concentration = float(arrays["row_concentration"])
        self.column_concentration = float(arrays["column_concentration"])


def as_blocks(family: CellFamily, summed: Array) -> BlockSums:
    """Return counts of blocks (groups of rows, groups of columns, slots) as families of cells have them."""
    flat = summed.reshape(-1, summed.shape[2])
    if family.has_levels:
        levels = flat.astype(np.int64)
        return BlockSums(levels.sum(axis=1), levels)
    sums = np.zeros((len(flat), 2))
    sums[:, : flat.shape[1] - 1] = flat[:, 1:]
    return BlockSums(flat[:, 0].astype(np.int64), sums)


def drawn_table(rng: np.random.Generator | None, family: CellFamily, blocks: BlockSums, k: int) -> Array:
    """Return what cells score in blocks (groups of columns, slots, ``k`` groups of rows).

    Parameters of blocks are drawn given their cells; without a generator, they are posterior means.
    """
    n, sums = blocks
    if family.has_levels:
        shapes = sums + family.pseudo_count
        if rng is None:
            table = np.log(shapes) - np.log(shapes.sum(axis=1, keepdims=True))
        else:
            table = log_gammas(rng, shapes)
            table -= np.logaddexp.reduce(table, axis=1)[:, None]
    else:
        prior = family.block_prior(0)
        assert isinstance(prior, MomentPrior)
        shape, rate = prior.shape + sums[:, 0], prior.rate + n
        log_rate = (np.log(shape) if rng is None else log_gammas(rng, shape)) - np.log(rate)
        table = np.stack([-np.exp(log_rate), log_rate], axis=1)
    return np.ascontiguousarray(table.reshape(k, -1, table.shape[1]).transpose(1, 2, 0))
