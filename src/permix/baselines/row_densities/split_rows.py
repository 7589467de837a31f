"""Which rows of preferences partition all items, and these in the form that closed sums need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from permix.baselines.row_densities.partition_pairs_jit import PartitionRows
from permix.data.csr import indptr_of
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import with_weak_orders


@dataclass(frozen=True, eq=False)
class SplitRows:
    """Rows of preferences: those that put all items into blocks, one above the other, and the others."""

    preferences: Preferences  # all rows
    partitions: PartitionRows
    partition_rows: Array  # row numbers of these
    other_rows: Array

    @property
    def is_closed(self) -> bool:
        """Whether all rows are partitions."""
        return len(self.other_rows) == 0


def split_rows(preferences: Preferences) -> SplitRows:
    """Find the rows that are partitions, also where comparisons amount to one.

    The last block is left out of what is stored: it is what remains. A row that says nothing is one block.
    """
    stated = with_weak_orders(preferences)
    n_rows, n_items = len(stated), stated.n_items
    listed = np.diff(stated.level_indptr)
    row = np.repeat(np.arange(n_rows), listed)
    last_level = np.zeros(n_rows, dtype=np.int64)
    some = listed > 0
    last_level[some] = stated.levels[stated.level_indptr[1:][some] - 1]
    compares = np.diff(stated.pair_indptr) > 0
    says_nothing = ~compares & (last_level == 0) & ~(stated.rest_below & (listed < n_items))
    is_partition = ~compares & (says_nothing | stated.rest_below)
    is_last = (listed[row] == n_items) & (stated.levels == last_level[row])
    kept = is_partition[row] & ~says_nothing[row] & ~is_last
    sizes = np.bincount(row[kept], minlength=n_rows)[is_partition]
    partitions = PartitionRows(indptr_of(sizes), stated.level_items[kept], stated.levels[kept])
    return SplitRows(preferences, partitions, np.flatnonzero(is_partition), np.flatnonzero(~is_partition))
