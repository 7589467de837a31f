# mypy: ignore-errors
"""Assigning all lists at once, given instantiated clusters: centers, decays and shares.

Given these, lists are independent, so they are scored in threads, each distinct list once; every list draws
from a stream of its own, so results do not depend on the number of threads or on how the lists are divided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step
from permix.kernels.random import NEGLIGIBLE
from permix.kernels.streams import new_stream, open_stream, uniform


class Instantiated(NamedTuple):
    """Clusters with parameters, clusters last so that loops over them vectorize."""

    places: np.ndarray  # int16 (items, clusters)
    theta: np.ndarray  # (stages, clusters)
    log_shares: np.ndarray  # (clusters,)


@kernel
def assign(lists, skips_left, clusters, pinned, labels, key, first, last):
    """Give the agents of lists ``first`` to ``last`` new clusters, drawn given the instantiated clusters.

    Clusters are those of ``clusters``, by number; agents whose label is negative (of a cluster that is not
    instantiated) and agents that are pinned stay where they are. ``skips_left`` are the largest skips of the
    stages. Lists are sorted, so that many begin like the one before: those stages are scored once.
    """
    n_stages, n_clusters = clusters.theta.shape
    log_psi = np.empty((n_stages, n_clusters))
    for j in range(n_stages):
        for k in range(n_clusters):
            log_psi[j, k] = log_normalizer_step(clusters.theta[j, k], skips_left[j] + 1)
    found = np.empty((n_stages, n_clusters), np.int16)
    skips = np.empty(n_clusters, np.int16)
    logs = np.empty((n_stages + 1, n_clusters))  # of the share and the first stages
    for k in range(n_clusters):
        logs[0, k] = clusters.log_shares[k]
    weights = np.empty(n_clusters)
    stream = new_stream()
    before, n_known = 0, 0  # the list whose stages are scored
    for d in range(first, last):
        n_free = 0
        for at in range(lists.agent_starts[d], lists.agent_starts[d + 1]):
            agent = lists.agents[at]
            n_free += labels[agent] >= 0 and not pinned[agent]
        if n_free == 0:
            continue
        start = lists.starts[d]
        t = lists.starts[d + 1] - start
        n_same = 0
        while n_same < min(t, n_known) and lists.items[start + n_same] == lists.items[before + n_same]:
            n_same += 1
        before, n_known = start, t
        for j in range(n_same, t):
            item = lists.items[start + j]
            for k in range(n_clusters):
                found[j, k] = clusters.places[item, k]
                skips[k] = found[j, k]
            for earlier in range(j):
                for k in range(n_clusters):
                    skips[k] -= np.int16(found[earlier, k] < found[j, k])
            for k in range(n_clusters):
                logs[j + 1, k] = logs[j, k] - clusters.theta[j, k] * skips[k] - log_psi[j, k]
        largest = -np.inf
        for k in range(n_clusters):
            largest = max(largest, logs[t, k])
        total = 0.0
        for k in range(n_clusters):
            weights[k] = 0.0
            if logs[t, k] >= largest - NEGLIGIBLE:
                weights[k] = np.exp(logs[t, k] - largest)
                total += weights[k]
        open_stream(stream, key[0], key[1], 0, d)
        for at in range(lists.agent_starts[d], lists.agent_starts[d + 1]):
            agent = lists.agents[at]
            if labels[agent] >= 0 and not pinned[agent]:
                left = uniform(stream) * total
                for k in range(n_clusters):
                    if weights[k] > 0.0:
                        labels[agent] = k
                        left -= weights[k]
                        if left < 0.0:
                            break
