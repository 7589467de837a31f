"""AMP and MMP for many agents at once, in threads; what conditioning and mixtures are built on.

Jobs pair an agent with a model: agent ``agents[job]`` under model ``clusters[job]``. The numbers drawn
depend on the key, the sweep and the place of the draw in the work alone, never on threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.runtime.threads import over_rows


def amp_draws(
    key: Array,
    sweep: int,
    arrays: Any,
    agents: Array,
    clusters: Array,
    centers: Array,
    models: Any,
    n_draws: int,
    with_orders: bool = True,
    out: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Draw rankings by AMP for every job.

    Parameters
    ----------
    key : uint64 array (2,)
    sweep : int
        Number of the round, so that one key serves many.
    arrays : PreferenceArrays
        Of consistent agents: ``preferences.arrays()``.
    agents, clusters : int array (jobs,)
    centers : int array (models, items)
        Central orderings.
    models : InsertionModels
        Of the models, see ``permix.distributions.conditioning.amp_insertions_jit``.
    n_draws : int
        Rankings per job.
    with_orders : bool
        Whether the rankings themselves are needed; without them it is quicker and takes less memory.
    out : int32 array (jobs, draws, items), optional
        Memory for the rankings; fresh memory costs time in a loop.

    Returns
    -------
    orders : int32 array (jobs, draws, items), or (0, 0, 0)
    distances : int array (jobs, draws)
        Kendall distances from the center.
    log_weights : float array (jobs, draws)
        ln P(r) - ln q(r): importance weights for the posterior; the mean of their exponential estimates P(v).
    """
    from permix.distributions.conditioning.amp_jit import amp_rows

    n_jobs, n_items = len(agents), centers.shape[1]
    orders = out
    if orders is None:
        orders = np.empty((n_jobs, n_draws, n_items) if with_orders else (0, 0, 0), dtype=np.int32)
    distances = np.empty((n_jobs, n_draws), dtype=np.int64)
    log_weights = np.empty((n_jobs, n_draws))
    work = _work(arrays, agents, clusters, centers, models)

    def draw(first: int, last: int) -> None:
        amp_rows(first, last, key, sweep, *work, orders, distances, log_weights)

    over_rows(draw, n_jobs * n_draws, n_items)
    return orders, distances, log_weights


def mmp_draws(
    key: Array,
    sweep: int,
    arrays: Any,
    agents: Array,
    clusters: Array,
    centers: Array,
    models: Any,
    n_draws: int,
    n_burn_in: int,
    n_thin: int,
    local_moves: bool = False,
) -> tuple[Array, Array, Array]:
    """Run the Metropolis chain MMP for every job and keep ``n_draws`` states, ``n_thin`` steps apart.

    Arguments as in :func:`amp_draws`; with ``local_moves`` a sweep over all items follows every proposal (see
    :mod:`permix.distributions.conditioning.local_moves_jit`).

    Returns
    -------
    orders : int32 array (jobs, draws, items)
    distances : int array (jobs, draws)
    acceptance_rates : float array (jobs,)
    """
    from permix.distributions.conditioning.local_moves_jit import local_models, mmp_rows

    n_jobs, n_items = len(agents), centers.shape[1]
    orders = np.empty((n_jobs, n_draws, n_items), dtype=np.int32)
    distances = np.empty((n_jobs, n_draws), dtype=np.int64)
    accepted = np.zeros(n_jobs, dtype=np.int64)
    work = _work(arrays, agents, clusters, centers, models)
    length = n_burn_in + n_draws * n_thin
    chain = (local_models(models), local_moves, n_burn_in, n_thin, orders, distances, accepted)

    def run(first: int, last: int) -> None:
        mmp_rows(first, last, key, sweep, *work, *chain)

    over_rows(run, n_jobs, n_items * (length + 1))
    return orders, distances, accepted / max(length, 1)


def importance_log_normalizers(
    key: Array, sweep: int, arrays: Any, agents: Array, centers: Array, models: Any, n_draws: int
) -> tuple[Array, Array]:
    """Estimate ln P(v) of every agent under every model (equation 28), with standard errors.

    Arguments as in :func:`amp_draws`.

    Returns
    -------
    estimates, standard_errors : float array (agents, models)
        Exact, with error 0, where the preferences partition all items.
    """
    from permix.distributions.conditioning.amp_jit import log_normalizer_rows, rank_vectors

    n_models, n_items = centers.shape
    estimates, errors = np.empty((len(agents), n_models)), np.empty((len(agents), n_models))
    ranks = rank_vectors(np.ascontiguousarray(centers, dtype=np.int32))
    agents = np.asarray(agents, dtype=np.int64)

    def estimate(first: int, last: int) -> None:
        log_normalizer_rows(
            first, last, key, sweep, arrays, agents, ranks, models, n_draws, estimates, errors
        )

    over_rows(estimate, len(agents) * n_models, n_items * n_draws)
    return estimates, errors


def _work(
    arrays: Any, agents: Array, clusters: Array, centers: Array, models: Any
) -> tuple[Any, Array, Array, Array, Array, Any]:
    """Give arrays the types that compiled code was compiled for."""
    from permix.distributions.conditioning.amp_jit import rank_vectors

    orderings = np.ascontiguousarray(centers, dtype=np.int32)
    jobs = (np.array(agents, dtype=np.int64), np.array(clusters, dtype=np.int64))
    return arrays, *jobs, orderings, rank_vectors(orderings), models
