"""How probable fitted lists are given all others, under each draw; and what chains that disagree count for.

A list is left out of its own cluster: with decays integrated out that is exact, since the cluster is known by
the sums over its lists. Its center stays, which the list had a say in; importance weights make up for that
(:mod:`permix.posterior.stacking`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.dp_mallows.lists.clusters_jit import log_integrals
from permix.posterior.estimated import spaced
from permix.posterior.stacking import draws_of_chains, need_stacking, weights_of_chains
from permix.sampling import Draws

if TYPE_CHECKING:
    from permix.dp_mallows.draws import ClusterDraws
    from permix.dp_mallows.state import ListState

# Chains that disagree are weighed by so many agents.
STACKED_AGENTS = 2000


def log_left_out(state: ListState, log_weights: Array, agents: Array) -> Array:
    """Return ln p(list | all other lists, partition of the others, centers) of these agents.

    ``log_weights[k]`` are the log prior weights of all clusters, and last of a new one, for somebody who is
    left out of cluster k; minus infinity for a cluster that is then empty.
    """
    lists, tables, k = state.model.lists, state.tables, state.n_clusters
    known = lists.list_of[agents]
    starts, lengths = lists.starts[known], np.diff(lists.starts)[known]
    n_stages = int(lengths.max())
    items = lists.items[np.minimum(starts[:, None] + np.arange(n_stages), len(lists.items) - 1)]
    places = state.clusters.places[:, :k].T[:, items]  # (clusters, agents, stages)
    n_skips = int(tables.skips[0]) + 1
    joining, own = _tables(state, n_skips)
    labels = state.labels[agents]
    rows = np.arange(len(agents))
    scores = np.zeros((len(agents), k + 1))
    for j in range(n_stages):
        reached = lengths > j
        skips = places[:, :, j] - (places[:, :, :j] < places[:, :, j : j + 1]).sum(axis=2)
        skips[:, ~reached] = 0  # those of shorter lists mean nothing
        here = np.take_along_axis(joining[:, j], skips, axis=1).T
        here[rows, labels] = own[labels, j, skips[labels, rows]]
        scores[:, :k] += np.where(reached[:, None], here, 0.0)
        scores[:, k] -= np.where(reached, np.log(tables.skips[j] + 1.0), 0.0)
    return np.asarray(np.logaddexp.reduce(scores + log_weights[labels], axis=1))


def _tables(state: ListState, n_skips: int) -> tuple[Array, Array]:
    """Return ln P(skip) of one more list in each cluster, and of a member given the others.

    Both (clusters, stages, skips); what no list or no member can have means nothing.
    """
    tables, used = state.tables, slice(None, state.n_clusters)
    totals, counts = state.clusters.totals[used], state.clusters.counts[used]
    a, c = tables.prior_a + totals, tables.prior_c + counts
    shape = (n_skips, *a.shape)
    skips = np.arange(n_skips)[:, None, None]

    def integrals(a: Array, c: Array) -> Array:
        out = np.empty(shape)
        flat = tuple(
            np.ascontiguousarray(np.broadcast_to(part, shape).reshape(-1, shape[2])) for part in (a, c)
        )
        log_integrals(tables, *flat, out.reshape(-1, shape[2]))
        return out

    whole = integrals(a, c)
    joining = integrals(a + skips, c + 1.0) - whole
    rest_a = np.maximum(a - skips, tables.prior_a)
    own = whole - integrals(rest_a, np.maximum(c - 1.0, tables.prior_c))
    return np.moveaxis(joining, 0, 2), np.moveaxis(own, 0, 2)


def weights_without(clusters: ClusterDraws, d: int) -> Array:
    """Log prior weights of clusters and of a new one once one of them has lost a member, a row for each."""
    sizes = clusters.sizes[clusters.of_draw(d)]
    weights = np.full((len(sizes), len(sizes) + 1), -np.inf)
    for k in range(len(sizes)):
        left = sizes.copy()
        left[k] -= 1
        kept = np.flatnonzero(left)
        weights[k, np.append(kept, len(sizes))] = clusters.prior_of(d).sequential_log_weights(left[kept])
    return weights


def stacked_draws(draws: Draws, tried: Array, log_densities: Array, most: int) -> Array:
    """Return which draws to average over, as many of each chain as its weight says.

    ``log_densities`` are ln p(list | others) under the draws ``tried``, (draw, agent).
    """
    n_draws = draws.arrays["labels"].shape[1]
    weights = weights_of_chains(log_densities, tried // n_draws)
    return draws_of_chains(weights, n_draws, most)


def stacked_agents(draws: Draws) -> Array | None:
    """Return the agents that chains are weighed by; None where all chains count alike."""
    n = draws.arrays["labels"].shape[2]
    return spaced(n, STACKED_AGENTS) if n > 1 and need_stacking(draws) else None
