"""P(query | row) summed over rows that partition all items: closed form, at many λ at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from permix.baselines.row_densities import partition_lists_jit as lists
from permix.baselines.row_densities import partition_pairs_jit as kernels
from permix.baselines.row_densities.partition_pairs_jit import Comparisons, PartitionRows
from permix.baselines.row_densities.split_rows import SplitRows
from permix.data.labels import Array
from permix.runtime.progress import Display
from permix.runtime.threads import run_in_threads

# Pairs of rows in one piece of work: some milliseconds, and memory for a few megabytes of what they have.
PIECE_PAIRS = 2**18
# Comparisons that would take more bytes than this are not kept but made again for every set of λ.
MOST_KEPT_BYTES = 2**28


class ClosedPairs:
    """Training rows and queries that are partitions; how they compare is worked out once where possible.

    One agent is left out of the training row ``own[q]`` for query q, -1 for none. ``keep`` says whether
    :meth:`log_sums` will be called again.
    """

    def __init__(
        self, queries: SplitRows, training: SplitRows, own: Array, n_jobs: int | None, keep: bool
    ) -> None:
        number = np.full(len(training.preferences) + 1, -1)
        number[training.partition_rows] = np.arange(len(training.partition_rows))
        self.queries, self.training, self.n_jobs = queries.partitions, training.partitions, n_jobs
        self.n_items = training.preferences.n_items
        self.counts = training.preferences.counts[training.partition_rows].astype(np.int64)
        self.own = number[own[queries.partition_rows]]
        self.keep = keep
        self.n_queries, self.n_training = len(queries.partition_rows), len(training.partition_rows)
        self._kept: dict[int, Comparisons] = {}
        # Eight pieces or more, so that threads have something to share.
        self._rows_at_once = max(1, min(PIECE_PAIRS // max(self.n_training, 1), -(-self.n_queries // 8)))
        self._starts = list(range(0, self.n_queries, self._rows_at_once))

    def log_sums(self, decays: Array, meter: Display) -> Array:
        """Return ln Σ_A c_A P(query | A) for every query (rows) and λ (columns)."""
        decays = np.array(decays, dtype=np.float64)
        out = np.full((self.n_queries, len(decays)), -np.inf)
        if self.n_queries == 0 or self.n_training == 0:
            return out
        log_z, gain = kernels.log_tables(decays, self.n_items)
        training_gain = block_sums(self.training, self.n_items, gain)
        compare = self._comparison
        meter.begin(f"comparing {self.n_queries} rows with {self.n_training}", len(self._starts))

        def piece(start: int) -> None:
            last = min(start + self._rows_at_once, self.n_queries)
            found = self._kept.get(start)
            if found is None:
                found = _trimmed(compare(start, last))
                size = sum(int(array.nbytes) for array in found)
                if self.keep and size * len(self._starts) <= MOST_KEPT_BYTES:
                    self._kept[start] = found
            kernels.log_sums(found, training_gain, decays, gain, out[start:last])
            meter.step()

        run_in_threads(piece, self._starts, self.n_jobs)
        return out + block_sums(self.queries, self.n_items, log_z) - log_z[self.n_items]

    @cached_property
    def _comparison(self) -> Callable[[int, int], Comparisons]:
        """What compares some of the queries with the training rows, the quickest way there is."""
        n, own, counts = self.n_items, self.own, self.counts
        bit_bytes = (self.n_queries + self.n_training) * n * (n - 1) // 16
        both = (self.queries, self.training)
        if bit_bytes <= MOST_KEPT_BYTES and all(lists.are_full(rows, n) for rows in both):
            bits = [lists.full_pair_bits(rows, n) for rows in both]
            return lambda first, last: lists.compare_full(first, last, *bits, own, counts, n)
        if all(lists.are_lists(rows) for rows in both):
            by_length = np.argsort(np.diff(self.training.indptr), kind="stable")
            return lambda first, last: lists.compare_lists(first, last, *both, by_length, own, counts, n)
        codes = np.random.default_rng(0).integers(0, 2**64, size=(2, n + 1), dtype=np.uint64)
        training_codes = np.zeros(self.n_training, dtype=np.uint64)
        rows, sizes = _blocks(self.training, n)
        np.add.at(training_codes, rows, codes[0][sizes])
        work = (*both, own, counts, n, codes[1], training_codes)
        return lambda first, last: kernels.compare_partitions(first, last, *work)


def _blocks(rows: PartitionRows, n_items: int) -> tuple[Array, Array]:
    """Return the row and the size of every block, that of the rest last."""
    lengths = np.diff(rows.indptr)
    row = np.repeat(np.arange(len(lengths)), lengths)
    begins = np.ones(len(row), dtype=np.bool_)
    begins[1:] = (np.diff(row) > 0) | (np.diff(rows.levels) != 0)
    sizes = np.diff(np.append(np.flatnonzero(begins), len(row)))
    return np.append(row[begins], np.arange(len(lengths))), np.append(sizes, n_items - lengths)


def block_sums(rows: PartitionRows, n_items: int, table: Array) -> Array:
    """Return Σ over the blocks of every row of ``table[size]``, shape (rows, table's columns)."""
    row, sizes = _blocks(rows, n_items)
    return np.column_stack([np.bincount(row, column[sizes], len(rows.indptr) - 1) for column in table.T])


def _trimmed(found: Comparisons) -> Comparisons:
    """Give back the room that was not needed."""
    names = ("row", "discordance", "weight", "n_shared")
    each = {name: getattr(found, name)[: found.indptr[-1]].copy() for name in names}
    return found._replace(**each, shared=found.shared[: found.shared_indptr[-1]].copy())
