"""P(query | row) summed over rows of any form, by the nested sampling of Lu & Boutilier's section 6.

P(query | row) is the mean of P(query | s) over all rankings s that agree with the row. Rankings s
come from AMP at dispersion 1 with weights 1/q (equation 15). P(query | s) is closed form where the query
partitions all items, else estimated from an AMP draw around s (equation 27): one, because another s with a
draw of its own reduces the error more than a second draw around the same s. Random streams depend neither on
λ nor on threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.baselines.row_densities import partition_pairs_jit as kernels
from permix.baselines.row_densities.closed_form import block_sums
from permix.baselines.row_densities.split_rows import SplitRows
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.amp_insertions_jit import geometric_models
from permix.distributions.conditioning.draws import Jobs, amp_draws, mmp_draws
from permix.runtime.progress import Display
from permix.runtime.threads import at_most, run_in_threads, threads_here

# Rankings s at once, and pairs of a query and an s: they bound memory.
MOST_RANKINGS = 1024
MOST_PAIRS = 2**20
# Items up to which rankings that agree with a row are drawn by sums over at most 2^12 down-sets; beyond by
# this many steps of a Metropolis chain.
EXACT_ITEMS = 12
CHAIN_STEPS = 100


class SampledPairs:
    """Training rows and queries of which some do not partition all items; pairs of partitions are left out.

    One agent is left out of the training row ``own[q]`` for query q, -1 for none. ``keys`` (3, 2) are of
    the random streams for centers, rankings s (``n_samples`` for every training row) and draws around them.
    """

    def __init__(
        self, queries: SplitRows, training: SplitRows, own: Array, n_samples: int, keys: Array, n_jobs: Any
    ) -> None:
        self.queries, self.training, self.own = queries, training, own
        self.n_samples, self.keys, self.n_jobs = n_samples, keys, n_jobs
        self.n_items = training.preferences.n_items

    def log_sums(self, decays: Array, meter: Display) -> tuple[Array, Array]:
        """Return ln Σ_A c_A P(query | A) for every query (rows) and λ, and ln of its variance.

        The sum is over all A for queries that are no partitions, else over those A that are none.
        """
        n_queries = len(self.queries.preferences)
        total = np.full((n_queries, len(decays)), -np.inf)
        variance = np.full((n_queries, len(decays)), -np.inf)
        # Queries that are partitions need the training rows that are none, the others need all.
        pieces = self._pieces(self.training.other_rows)
        n_others = len(pieces)
        if len(self.queries.other_rows):
            pieces += self._pieces(self.training.partition_rows)
        meter.begin("sampling rankings", len(pieces))
        log_z = kernels.log_tables(decays, self.n_items)[0]
        of_blocks = block_sums(self.queries.partitions, self.n_items, log_z) - log_z[self.n_items]
        with at_most(self.n_jobs):
            for number, rows in enumerate(pieces):
                drawn = (rows, *self._rankings(rows, number))
                if number < n_others:
                    self._add_partitions(drawn, decays, of_blocks, (total, variance))
                if len(self.queries.other_rows):
                    self._add_others(drawn, decays, number, (total, variance))
                meter.step()
        return total, variance

    def _pieces(self, rows: Array) -> list[Array]:
        size = max(1, MOST_RANKINGS // self.n_samples)
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def _rankings(self, rows: Array, piece: int) -> tuple[Array, Array]:
        """Draw rankings that agree with training rows, and the logarithms of their weights."""
        arrays = self.training.preferences[rows].arrays()
        agents = np.arange(len(rows))
        flat = geometric_models(np.zeros(1), self.n_items)
        anywhere = Jobs.of(arrays, agents, 0 * agents, np.arange(self.n_items)[None], flat)
        centers = amp_draws(self.keys[0], piece, anywhere, 1)[0][:, 0]
        around = Jobs.of(arrays, agents, agents, centers, repeated(flat, len(rows)))
        orders, _, log_weights = amp_draws(self.keys[1], piece, around, self.n_samples)
        return orders, log_weights

    def _add_partitions(
        self, drawn: tuple[Array, Array, Array], decays: Array, of_blocks: Array, found: tuple[Array, Array]
    ) -> None:
        rows, orders, log_weights = drawn
        flat = orders.reshape(-1, self.n_items)
        step = max(1, MOST_PAIRS // len(flat))
        for start in range(0, len(self.queries.partition_rows), step):
            queries = self.queries.partition_rows[start : start + step]
            against: Array = np.empty((len(queries), len(flat)), dtype=np.int64)
            self._compare(start, flat, against)
            against = against.reshape(len(queries), len(rows), -1)
            for k, decay in enumerate(decays):
                with np.errstate(invalid="ignore"):  # 0 · ∞
                    logs = np.where(against > 0, -decay * against, 0.0)
                logs += of_blocks[start : start + len(queries), k, None, None]
                self._add(queries, rows, logs, log_weights, *(sums[:, k] for sums in found))

    def _compare(self, start: int, orders: Array, out: Array) -> None:
        """Discordances of queries from ``start`` on and orderings, in threads."""
        part = -(-len(out) // (4 * threads_here(self.n_jobs)))

        def compare(first: int) -> None:
            some = out[first : first + part]
            begin = start + first
            kernels.discordances(begin, begin + len(some), self.queries.partitions, orders, some)

        run_in_threads(compare, range(0, len(out), part), self.n_jobs)

    def _add_others(
        self, drawn: tuple[Array, Array, Array], decays: Array, piece: int, found: tuple[Array, Array]
    ) -> None:
        rows, orders, log_weights = drawn
        flat = orders.reshape(-1, self.n_items)
        arrays = self.queries.preferences.arrays()
        others = self.queries.other_rows
        step = max(1, MOST_PAIRS // len(flat))
        for k, decay in enumerate(decays):
            models = repeated(geometric_models(np.array([decay]), self.n_items), len(flat))
            for start in range(0, len(others), step):
                queries = others[start : start + step]
                # The numbers drawn are told apart by piece and place in it.
                sweep = piece * (len(others) // step + 1) + start // step
                around = np.tile(np.arange(len(flat)), len(queries))
                jobs = Jobs.of(arrays, np.repeat(queries, len(flat)), around, flat, models)
                logs = amp_draws(self.keys[2], sweep, jobs, 1, with_orders=False)[2]
                logs = logs.reshape(len(queries), len(rows), -1)
                self._add(queries, rows, logs, log_weights, *(sums[:, k] for sums in found))

    def _add(
        self, queries: Array, rows: Array, logs: Array, log_weights: Array, total: Array, variance: Array
    ) -> None:
        """Add up P(query | row) of training rows, from logarithms of P(query | s)."""
        log_means, log_variances = weighted_means(logs, log_weights)
        counts = np.broadcast_to(self.training.preferences.counts[rows], log_means.shape).astype(np.float64)
        counts = counts - (self.own[queries][:, None] == rows)
        with np.errstate(divide="ignore"):
            log_counts = np.log(counts)
        total[queries] = np.logaddexp(total[queries], np.logaddexp.reduce(log_counts + log_means, axis=1))
        variance[queries] = np.logaddexp(
            variance[queries], np.logaddexp.reduce(2.0 * log_counts + log_variances, axis=1)
        )


def weighted_means(logs: Array, log_weights: Array) -> tuple[Array, Array]:
    """Logarithms of Σ w x / Σ w over the last axis, and of the variance of that estimate (delta method).

    ``logs`` (queries, rows, draws) are ln x; ``log_weights`` (rows, draws).
    """
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    largest = logs.max(axis=2, keepdims=True)
    scale = np.where(np.isfinite(largest), largest, 0.0)
    values = np.exp(logs - scale)
    means = (weights * values).sum(axis=2)
    n = logs.shape[2]
    variances = (weights**2 * (values - means[:, :, None]) ** 2).sum(axis=2) * (n / (n - 1))
    with np.errstate(divide="ignore"):
        return np.log(means) + scale[:, :, 0], np.log(variances) + 2.0 * scale[:, :, 0]


def repeated(models: Any, times: int) -> Any:
    """Return the parameters of one model for as many models."""
    names = ("decays", "cumulative", "log_cumulative", "guide", "guide_scale")
    return models._replace(**{name: np.repeat(getattr(models, name), times, axis=0) for name in names})


def draw_agreeing(preferences: Preferences, rows: Array, rng: np.random.Generator) -> Array:
    """Draw, for every number in ``rows``, a ranking uniformly from those that agree with that row.

    Exact for up to 12 items, by sums over down-sets; beyond by the Metropolis chain MMP, 1000 steps for
    each.
    """
    n = preferences.n_items
    if n > EXACT_ITEMS:
        key = rng.integers(0, 2**64, size=2, dtype=np.uint64)
        models = geometric_models(np.zeros(1), n)
        jobs = Jobs.of(preferences.arrays(), rows, 0 * rows, np.arange(n)[None], models)
        return mmp_draws(key, 0, jobs, 1, CHAIN_STEPS, 1, local_moves=True)[0][:, 0]
    from permix.distributions.mallows import Mallows

    out = np.empty((len(rows), n), dtype=np.int32)
    uniform = Mallows(preferences.items, 1.0, items=preferences.items)
    for row in np.unique(rows).tolist():
        places = np.flatnonzero(rows == row)
        out[places] = uniform.condition(preferences[row]).sample(len(places), rng, method="exact").orders
    return out
