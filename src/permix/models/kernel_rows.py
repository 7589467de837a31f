"""Which rows of preferences partition all items, and these in the form that closed sums need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from permix.data.csr import indptr_of
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.kernels.partition_pairs import PartitionRows


@dataclass(frozen=True, eq=False)
class SplitRows:
    """Rows of preferences by kind.

    Attributes
    ----------
    preferences : Preferences
        All rows.
    partitions : PartitionRows
        Those that put all items into blocks, one above the other.
    partition_rows, other_rows : int array
        Row numbers of these, and of all others.
    """

    preferences: Preferences
    partitions: PartitionRows
    partition_rows: Array
    other_rows: Array

    @property
    def is_closed(self) -> bool:
        """Whether all rows are partitions."""
        return len(self.other_rows) == 0


def split_rows(preferences: Preferences) -> SplitRows:
    """Find the rows that are partitions, also where comparisons amount to one.

    The last block is left out of what is stored: it is what remains. A row that says nothing is one block.
    """
    n_rows, n_items = len(preferences), preferences.n_items
    listed = np.diff(preferences.level_indptr)
    row = np.repeat(np.arange(n_rows), listed)
    last_level = np.zeros(n_rows, dtype=np.int64)
    some = listed > 0
    last_level[some] = preferences.levels[preferences.level_indptr[1:][some] - 1]
    compares = np.diff(preferences.pair_indptr) > 0
    says_nothing = ~compares & (last_level == 0) & ~(preferences.rest_below & (listed < n_items))
    is_partition = ~compares & (says_nothing | preferences.rest_below)
    is_last = (listed[row] == n_items) & (preferences.levels == last_level[row])
    kept = is_partition[row] & ~says_nothing[row] & ~is_last
    rows, items, levels = [row[kept]], [preferences.level_items[kept]], [preferences.levels[kept]]
    for number in np.flatnonzero(compares & _may_be_partitions(preferences, listed)).tolist():
        found = _blocks_of_comparisons(preferences, number)
        if found is not None:
            is_partition[number] = True
            rows.append(np.full(len(found[0]), number))
            items.append(found[0])
            levels.append(found[1])
    all_rows = np.concatenate(rows)
    order = np.argsort(all_rows, kind="stable")
    sizes = np.bincount(all_rows, minlength=n_rows)[is_partition]
    return SplitRows(
        preferences,
        PartitionRows(
            indptr_of(sizes),
            np.concatenate(items)[order].astype(np.int32),
            np.concatenate(levels)[order].astype(np.int32),
        ),
        np.flatnonzero(is_partition),
        np.flatnonzero(~is_partition),
    )


def _may_be_partitions(preferences: Preferences, listed: Array) -> Array:
    """Say which rows relate every item to some other; no other row with a comparison is a partition."""
    n_rows, n_items = len(preferences), preferences.n_items
    pair_row = np.repeat(np.arange(n_rows), np.diff(preferences.pair_indptr))
    row = np.repeat(np.arange(n_rows), listed)
    keys = np.concatenate(
        [row * n_items + preferences.level_items]
        + [pair_row * n_items + preferences.pairs[:, side] for side in (0, 1)]
    )
    n_mentioned = np.bincount(np.unique(keys) // n_items, minlength=n_rows)
    return np.asarray(preferences.rest_below | (n_mentioned == n_items))


def _blocks_of_comparisons(preferences: Preferences, row: int) -> tuple[Array, Array] | None:
    """Items and blocks, the last block left out, where incomparable is an equivalence of all items."""
    from permix.kernels.amp_plans import relation_bits, relation_matrix

    n = preferences.n_items
    steps, below, above = relation_bits(preferences.arrays(), row, np.arange(n))
    n_below, n_above = relation_matrix(below).sum(axis=1), relation_matrix(above).sum(axis=1)
    if len(steps) < n:
        return None
    # Items with as many above them are never related; where they and all related ones make up everything,
    # nobody else is incomparable.
    alike = np.bincount(n_above, minlength=n + 1)[n_above]
    if np.any(n_above + n_below + alike != n):
        return None
    block = np.unique(n_above, return_inverse=True)[1]
    order = np.argsort(block, kind="stable")
    order = order[block[order] < block.max()]
    return steps[order], block[order]
