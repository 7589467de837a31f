"""Densities of rows under Mallows models around other rows, closed form where there is one."""

from __future__ import annotations

import numpy as np

from permix.baselines.row_densities.closed_form import ClosedPairs
from permix.baselines.row_densities.sampled import SampledPairs
from permix.baselines.row_densities.split_rows import SplitRows
from permix.data.labels import Array
from permix.runtime.progress import Display


class RowPairs:
    """Densities of queries from training rows at any λ.

    One agent is left out of the training row ``own[q]`` for query q, -1 for none. ``sampling`` says how many
    rankings are sampled for a training row where there is no closed form, and the keys (3, 2) of the random
    streams. ``keep`` says whether densities will be wanted at further λ.
    """

    def __init__(
        self,
        queries: SplitRows,
        training: SplitRows,
        own: Array | None = None,
        *,
        sampling: tuple[int, Array] | None = None,
        n_jobs: int | None = None,
        keep: bool = False,
    ) -> None:
        counts = training.preferences.counts
        if own is None:
            own = np.full(len(queries.preferences), -1)
        if sampling is None:
            sampling = 2, np.zeros((3, 2), dtype=np.uint64)
        self.queries = queries
        self.n_agents = counts.sum() - (own >= 0)
        self.closed = ClosedPairs(queries, training, own, n_jobs, keep)
        self.is_closed = queries.is_closed and training.is_closed
        self.sampled = SampledPairs(queries, training, own, *sampling, n_jobs)

    def log_densities(self, decays: Array, meter: Display) -> tuple[Array, Array]:
        """Return ln p and its standard errors for every query (rows) and λ (columns)."""
        shape = (len(self.queries.preferences), len(decays))
        total, variance = np.full(shape, -np.inf), np.full(shape, -np.inf)
        if not self.is_closed:
            total, variance = self.sampled.log_sums(decays, meter)
        closed = self.queries.partition_rows
        total[closed] = np.logaddexp(total[closed], self.closed.log_sums(decays, meter))
        with np.errstate(invalid="ignore"):
            errors = np.where(variance > -np.inf, np.exp(0.5 * variance - total), 0.0)
        return total - np.log(self.n_agents)[:, None], errors
