# mypy: ignore-errors
"""Agents of a shard: who belongs where, as a function of parameters and of random numbers that agents own.

Every agent has four uniform numbers for each key, named by the agent's place among all agents of all shards,
so that neither shards nor threads matter: the first says where the agent goes, the others who is chosen
among the members of a cluster.
"""

from __future__ import annotations

import numpy as np

from permix.dp_mallows.lists.top_lists_jit import write_skips
from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step
from permix.kernels.streams import new_stream, open_stream, uniform

# For how many purposes members are chosen: to stay where they are, and for two proposals.
PURPOSES = 3
# Log odds of two sides are no larger: what is drawn and what is weighed must be one distribution.
MOST_ADVANTAGE = 700.0


@kernel
def fill_normalizers(skips_left, theta, out):
    """Write ln ψ of every stage and cluster."""
    for j in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            out[j, k] = log_normalizer_step(theta[j, k], skips_left[j] + 1)


@kernel
def place(lists, skips_left, first_agent, words, theta, log_shares, key, labels, first, last):
    """Give the agents of lists ``first`` to ``last`` clusters, drawn given centers, decays and shares.

    ``first_agent`` is how many agents come before those of the shard.
    """
    n_stages, n_clusters = theta.shape
    log_psi = np.empty((n_stages, n_clusters))
    fill_normalizers(skips_left, theta, log_psi)
    skips = np.empty((n_stages, 4 * words.shape[1]), np.int16)
    scores, cumulated = np.empty(n_clusters), np.empty(n_clusters)
    stream = new_stream()
    for d in range(first, last):
        start, end = lists.starts[d], lists.starts[d + 1]
        write_skips(lists.items, start, end, words, n_clusters, skips)
        for k in range(n_clusters):
            scores[k] = log_shares[k]
        for j in range(end - start):
            for k in range(n_clusters):
                scores[k] -= theta[j, k] * skips[j, k] + log_psi[j, k]
        largest, total = -np.inf, 0.0
        for k in range(n_clusters):
            largest = max(largest, scores[k])
        for k in range(n_clusters):
            total += np.exp(scores[k] - largest)
            cumulated[k] = total
        for at in range(lists.agent_starts[d], lists.agent_starts[d + 1]):
            agent = lists.agents[at]
            open_stream(stream, key[0], key[1], 0, first_agent + agent)
            threshold = uniform(stream) * total
            k = 0
            while k < n_clusters - 1 and cumulated[k] <= threshold:
                k += 1
            labels[agent] = k


@kernel
def choose_members(labels, first_agent, key, numbers, agents):
    """Find the two members of every cluster with the smallest numbers, for each purpose.

    ``numbers`` and ``agents`` are (purposes, clusters, 2).
    """
    stream = new_stream()
    for purpose in range(numbers.shape[0]):
        for k in range(numbers.shape[1]):
            for place in range(2):
                numbers[purpose, k, place] = np.inf
                agents[purpose, k, place] = -1
    for agent in range(labels.size):
        k = labels[agent]
        open_stream(stream, key[0], key[1], 0, first_agent + agent)
        uniform(stream)
        for purpose in range(numbers.shape[0]):
            number = uniform(stream)
            if number < numbers[purpose, k, 0]:
                numbers[purpose, k, 1] = numbers[purpose, k, 0]
                agents[purpose, k, 1] = agents[purpose, k, 0]
                numbers[purpose, k, 0] = number
                agents[purpose, k, 0] = first_agent + agent
            elif number < numbers[purpose, k, 1]:
                numbers[purpose, k, 1] = number
                agents[purpose, k, 1] = first_agent + agent


@kernel
def weigh_sides(lists, skips_left, words, theta, log_odds, logs, first, last):
    """Write ln P(side 1) and ln P(side 2) of every list given two centers with decays, (2, lists)."""
    n_stages = theta.shape[0]
    log_psi = np.empty((n_stages, 2))
    fill_normalizers(skips_left, theta, log_psi)
    skips = np.empty((n_stages, 4 * words.shape[1]), np.int16)
    for d in range(first, last):
        start, end = lists.starts[d], lists.starts[d + 1]
        write_skips(lists.items, start, end, words, 2, skips)
        advantage = log_odds
        for j in range(end - start):
            advantage += theta[j, 1] * skips[j, 1] + log_psi[j, 1]
            advantage -= theta[j, 0] * skips[j, 0] + log_psi[j, 0]
        advantage = min(max(advantage, -MOST_ADVANTAGE), MOST_ADVANTAGE)
        logs[0, d] = -np.log1p(np.exp(-advantage))
        logs[1, d] = -np.log1p(np.exp(advantage))


@kernel
def draw_sides(list_of, first_agent, logs, key, side):
    """Draw side 1 or 2 of every agent whose side is not 0."""
    stream = new_stream()
    for agent in range(side.size):
        if side[agent] != 0:
            open_stream(stream, key[0], key[1], 0, first_agent + agent)
            side[agent] = 1 if uniform(stream) < np.exp(logs[0, list_of[agent]]) else 2
