"""AMP and MMP for many agents at once, in threads; what conditioning and mixtures are built on.

The numbers drawn depend on the key, the sweep and the place of the draw in the work alone, never on threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.amp_jit import amp_rows
from permix.distributions.conditioning.local_moves_jit import local_models, mmp_rows
from permix.distributions.insertion_jit import place_scratch
from permix.runtime.threads import over_rows


class Jobs(NamedTuple):
    """Agents paired with models: agent ``agents[job]`` under model ``clusters[job]``."""

    arrays: Any  # PreferenceArrays of consistent agents
    agents: Array  # int64 (jobs,)
    clusters: Array
    centers: Array  # int32 (models, items)
    ranks: Array  # int64 (models, items): rank of each item in each center
    models: Any  # InsertionModels

    @classmethod
    def of(cls, arrays: Any, agents: Array, clusters: Array, centers: Array, models: Any) -> Jobs:
        """Give arrays the types that compiled code was compiled for."""
        orderings = np.ascontiguousarray(centers, dtype=np.int32)
        pairs = np.array(agents, dtype=np.int64), np.array(clusters, dtype=np.int64)
        return cls(arrays, *pairs, orderings, np.argsort(orderings, axis=1), models)


def amp_draws(
    key: Array, sweep: int, jobs: Jobs, n_draws: int, with_orders: bool = True
) -> tuple[Array, Array, Array]:
    """Draw ``n_draws`` rankings by AMP for every job; ``sweep`` tells rounds with the same key apart.

    Returns orderings (jobs, draws, items), or (0, 0, 0) where they are not wanted, their Kendall distances
    from the center, and the importance weights ln P(r) - ln q(r), whose exponentials average to P(v).
    """
    n_jobs, n_items = len(jobs.agents), jobs.centers.shape[1]
    orders = np.empty((n_jobs, n_draws, n_items) if with_orders else (0, 0, 0), dtype=np.int32)
    found = (orders, np.empty((n_jobs, n_draws), dtype=np.int64), np.empty((n_jobs, n_draws)))

    def draw(first: int, last: int) -> None:
        amp_rows(first, last, key, sweep, jobs, place_scratch(n_items, last - first), *found)

    over_rows(draw, n_jobs * n_draws, n_items)
    return found


def mmp_draws(
    key: Array, sweep: int, jobs: Jobs, n_draws: int, n_burn_in: int, n_thin: int, local_moves: bool = False
) -> tuple[Array, Array, Array]:
    """Run the Metropolis chain MMP for every job and keep ``n_draws`` states, ``n_thin`` steps apart.

    With ``local_moves`` a sweep over all items follows every proposal (``local_moves_jit``). Returns
    orderings and distances as :func:`amp_draws`, and the acceptance rate of every job.
    """
    n_jobs, n_items = len(jobs.agents), jobs.centers.shape[1]
    orders = np.empty((n_jobs, n_draws, n_items), dtype=np.int32)
    distances = np.empty((n_jobs, n_draws), dtype=np.int64)
    accepted = np.zeros(n_jobs, dtype=np.int64)
    length = n_burn_in + n_draws * n_thin
    chain = (local_models(jobs.models), local_moves, n_burn_in, n_thin, orders, distances, accepted)
    over_rows(mmp_rows, n_jobs, n_items * (length + 1), key, sweep, jobs, *chain)
    return orders, distances, accepted / max(length, 1)


def log_mean_exp(logs: Array) -> tuple[Array, Array]:
    """Return ln of the mean of exp over the last axis, and its standard error by the delta method."""
    largest = logs.max(axis=-1)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    ratios = np.exp(logs - shift[..., None])
    mean = ratios.mean(axis=-1)
    n = logs.shape[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = shift + np.log(mean)
        error = ratios.std(axis=-1, ddof=1) / np.sqrt(n) / mean if n > 1 else np.full_like(mean, np.nan)
    return value, np.where(mean > 0.0, error, 0.0)
