"""Columns as data of a mixture, where rows are known by what the cells of each group of rows add up to."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from permix.cocluster.cells.blocks_jit import CountPrior
from permix.cocluster.cells.families import CellFamily
from permix.cocluster.cells.line_counts_jit import LineCounts
from permix.cocluster.cells.line_family import LineCountFamily, LineFamily, LineMomentFamily
from permix.cocluster.cells.line_moments_jit import LineMoments
from permix.data.labels import Array
from permix.families.base import Family
from permix.families.contract_jit import score_new_data
from permix.kernels.lines_jit import Lines
from permix.moves.state import MixtureState, roomy
from permix.partitions.priors import PartitionPrior

# Tables of logarithms are no longer than this: beyond, they are computed.
LONGEST = 20_000


def column_mixture(
    family: CellFamily, counts: Array, labels: Array, prior: PartitionPrior, concentration: float
) -> MixtureState:
    """Return the mixture of columns, whose cells are grouped by groups of rows.

    ``counts`` are (groups of rows, columns, slots) as :class:`~permix.cocluster.sharded.work.Look` has them.
    """
    k, n_columns, _ = counts.shape
    block_prior = family.block_prior(LONGEST)
    n_cells = int(counts.sum()) if family.has_levels else int(counts[..., 0].sum())
    # How many cells there are is all that is asked of them, since they are grouped already.
    cells = np.broadcast_to(np.zeros(1, dtype=np.int64), (n_cells,))
    lines = Lines(np.zeros(n_columns + 1, dtype=np.int64), np.empty(0, dtype=np.int32), cells)
    levels = isinstance(block_prior, CountPrior)
    kind: type[LineFamily] = LineCountFamily if levels else LineMomentFamily
    lines_family = kind(lines, block_prior, roomy(k))
    lines_family.n_groups[0] = k
    data: Any = grouped_levels(counts) if levels else grouped_numbers(counts)
    empty_scores = np.zeros(n_columns)
    score_new_data(lines_family.statistics(1), data, n_columns, 1, empty_scores[:, None])
    mixture = MixtureState(cast(Family, lines_family), data, n_columns, prior, empty_scores)
    mixture.concentration = concentration
    mixture.set_labels(labels)
    return mixture


def grouped_levels(counts: Array) -> LineCounts:
    """Return columns as compiled code has them: levels with one cell first, totals with one cell last."""
    _, n_columns, n_levels = counts.shape
    by_column = np.concatenate([counts, counts.sum(axis=2, keepdims=True)], axis=2).transpose(1, 0, 2)
    column, group, level = np.nonzero(by_column)
    n = by_column[column, group, level].astype(np.int64)
    slot, total = group * (n_levels + 1) + level, level == n_levels
    order = np.lexsort((slot, np.where(total, n == 1, n != 1), total, column))
    entries = np.column_stack([slot, n])[order].astype(np.int32)
    bounds = np.zeros((n_columns + 1, 2), dtype=np.int64)
    starts = np.append(0, np.cumsum(np.bincount(column, minlength=n_columns)))
    bounds[:, 0] = starts
    bounds[:-1, 1] = starts[:-1] + np.bincount(column[~total], minlength=n_columns)
    return LineCounts(bounds, np.ascontiguousarray(entries))


def grouped_numbers(counts: Array) -> LineMoments:
    """Return the same of numbers: how many cells, their sum, and that of their squares."""
    _, n_columns, n_slots = counts.shape
    by_column = counts.transpose(1, 0, 2)
    column, group = np.nonzero(by_column[..., 0])
    starts = np.append(0, np.cumsum(np.bincount(column, minlength=n_columns))).astype(np.int64)
    entries = np.column_stack([group, by_column[column, group, 0]]).astype(np.int32)
    sums = np.zeros((len(column), 2))
    sums[:, : n_slots - 1] = by_column[column, group, 1:]
    return LineMoments(starts, np.ascontiguousarray(entries), sums)
