# mypy: ignore-errors
"""Assigning all lists at once, given instantiated clusters: centers, decays and shares.

Given these, lists are independent, so they are scored in threads, each distinct list once; every agent draws
from a stream of its own, so results do not depend on the number of threads or on how the lists are divided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.dp_mallows.lists.top_lists_jit import write_skips
from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step
from permix.kernels.random import NEGLIGIBLE
from permix.kernels.streams import new_stream, open_stream, uniform


class Instantiated(NamedTuple):
    """Clusters with parameters, clusters last so that loops over them vectorize."""

    places: np.ndarray  # int16 (items, clusters)
    theta: np.ndarray  # (stages, clusters)
    log_heads: np.ndarray  # (stages + 1, clusters): ln of share × Π over the first t stages of (m_j + 1)/ψ_j


@kernel
def write_heads(log_shares, skips, theta, log_heads):
    """Fill ``log_heads`` from the clusters' log shares and decays."""
    n_stages, n_clusters = theta.shape
    for k in range(n_clusters):
        log_heads[0, k] = log_shares[k]
    for j in range(n_stages):
        m = skips[j]
        for k in range(n_clusters):
            log_heads[j + 1, k] = log_heads[j, k] + np.log(m + 1.0) - log_normalizer_step(theta[j, k], m + 1)


@kernel
def assign(lists, clusters, pinned, labels, key, first, last):
    """Give the agents of lists ``first`` to ``last`` new clusters, drawn given the instantiated clusters.

    Clusters are those of ``clusters``, by number; agents whose label is negative (of a cluster that is not
    instantiated) and agents that are pinned stay where they are.
    """
    n_stages, n_clusters = clusters.theta.shape
    found = np.empty((n_stages, n_clusters), np.int16)
    skips = np.empty((n_stages, n_clusters), np.int16)
    logs = np.empty(n_clusters)
    weights = np.empty(n_clusters)
    stream = new_stream()
    for d in range(first, last):
        n_free = 0
        for at in range(lists.agent_starts[d], lists.agent_starts[d + 1]):
            agent = lists.agents[at]
            n_free += labels[agent] >= 0 and not pinned[agent]
        if n_free == 0:
            continue
        start, end = lists.starts[d], lists.starts[d + 1]
        write_skips(lists.items, start, end, clusters.places, n_clusters, found, skips)
        t = end - start
        for k in range(n_clusters):
            logs[k] = clusters.log_heads[t, k]
        for j in range(t):
            for k in range(n_clusters):
                logs[k] -= clusters.theta[j, k] * skips[j, k]
        largest = -np.inf
        for k in range(n_clusters):
            largest = max(largest, logs[k])
        floor = largest - NEGLIGIBLE
        total = 0.0
        for k in range(n_clusters):
            weights[k] = 0.0
            if logs[k] >= floor:
                weights[k] = np.exp(logs[k] - largest)
                total += weights[k]
        for at in range(lists.agent_starts[d], lists.agent_starts[d + 1]):
            agent = lists.agents[at]
            if labels[agent] >= 0 and not pinned[agent]:
                open_stream(stream, key[0], key[1], 0, agent)
                left = uniform(stream) * total
                for k in range(n_clusters):
                    if weights[k] > 0.0:
                        labels[agent] = k
                        left -= weights[k]
                        if left < 0.0:
                            break
