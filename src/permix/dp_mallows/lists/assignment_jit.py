# mypy: ignore-errors
"""Assigning all lists at once, given instantiated clusters: centers, decays and shares.

Given these, lists are independent, so they are scored in threads, each distinct list once; every list draws
from a stream of its own, so results do not depend on the number of threads or on how the lists are divided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.dp_mallows.lists.predictive_rows_jit import LEAST
from permix.dp_mallows.lists.seating_jit import CHUNK
from permix.dp_mallows.lists.top_lists_jit import write_stage
from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step
from permix.kernels.streams import new_stream, open_stream, uniform

# Relative probabilities are tabulated up to this skip.
MOST_TABULATED = 64


class Instantiated(NamedTuple):
    """Clusters with parameters, clusters last so that loops over them vectorize."""

    words: np.ndarray  # uint64 (items, clusters / 4): places of the items, four to a word
    theta: np.ndarray  # (stages, clusters)
    shares: np.ndarray  # (clusters,): up to a factor


@kernel
def assign(lists, skips_left, clusters, pinned, labels, key, first, last):
    """Give the agents of lists ``first`` to ``last`` new clusters, drawn given the instantiated clusters.

    Clusters are those of ``clusters``, by number; agents whose label is negative (of a cluster that is not
    instantiated) and agents that are pinned stay where they are. ``skips_left`` are the largest skips of the
    stages. Lists are sorted, so that many begin like the one before: those stages are scored once.
    """
    n_stages, n_clusters = clusters.theta.shape
    n_tabulated = min(clusters.words.shape[0], MOST_TABULATED)
    heads = np.empty((n_stages, n_clusters))  # of the relative probability, see predictive_rows_jit
    chances = np.empty((n_clusters, n_stages, n_tabulated))
    for j in range(n_stages):
        for k in range(n_clusters):
            m, theta = skips_left[j], clusters.theta[j, k]
            heads[j, k] = np.log(m + 1.0) - log_normalizer_step(theta, m + 1)
            for skip in range(n_tabulated):
                chances[k, j, skip] = max(np.exp(heads[j, k] - theta * skip), LEAST)
    skips = np.empty(4 * clusters.words.shape[1], np.int16)
    weights = np.empty((n_stages + 1, n_clusters))  # share × relative probability of the first stages
    for k in range(n_clusters):
        weights[0, k] = clusters.shares[k]
    cumulated = np.empty(n_clusters)
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
            write_stage(lists.items, start, j, clusters.words, n_clusters, skips)
            scale = 1.0
            if j > 0 and j % CHUNK == 0:
                largest = 0.0
                for k in range(n_clusters):
                    largest = max(largest, weights[j, k])
                scale = 1.0 / largest
            if n_tabulated > skips_left[j]:
                for k in range(n_clusters):
                    weights[j + 1, k] = scale * weights[j, k] * chances[k, j, skips[k]]
            else:
                for k in range(n_clusters):
                    chance = max(np.exp(heads[j, k] - clusters.theta[j, k] * skips[k]), LEAST)
                    weights[j + 1, k] = scale * weights[j, k] * chance
        total = 0.0
        for k in range(n_clusters):
            total += weights[t, k]
            cumulated[k] = total
        open_stream(stream, key[0], key[1], 0, d)
        for at in range(lists.agent_starts[d], lists.agent_starts[d + 1]):
            agent = lists.agents[at]
            if labels[agent] >= 0 and not pinned[agent]:
                threshold = uniform(stream) * total  # below the total, whatever is drawn
                k = 0
                while cumulated[k] <= threshold:
                    k += 1
                labels[agent] = k
