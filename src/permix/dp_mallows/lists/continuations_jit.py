# mypy: ignore-errors
"""How a top list goes on under the clusters of all posterior draws: its next item, and draws of the rest.

Given the list so far, the next stage skips s of the items left, taken in the order of the center, with
P(s) ∝ exp(-θ_j s); the weights of clusters change with every item. In a cluster nobody is in yet all
continuations are alike, because its center and decays are integrated out (lemma 1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.distributions.generalized.finite_beta_jit import draw_theta
from permix.dp_mallows.lists.scores_jit import BLOCK, add_stage, joint_scores, normalized, skips_at, weigh
from permix.kernels.jit import kernel
from permix.kernels.streams import integers, new_stream, open_stream, truncated_geometric_log, uniform

# Probabilities below this are left out of sums over clusters.
TINY = 1e-30


@kernel
def next_chances(order, length, tables, weights, new, out):
    """Set ``out[item]`` to P(next item | list), given the weights of clusters; 0 for those of the list."""
    n_items = out.size
    left = n_items - length
    used = np.zeros(n_items, np.bool_)
    for j in range(length):
        used[order[j]] = True
    n_stages = tables.theta.shape[0]
    for item in range(n_items):
        out[item] = 0.0 if used[item] else new / left
    for c in range(weights.size):
        if weights[c] < TINY:
            continue
        if left == 1:  # only one item can follow, whatever the stage
            p, ratio = weights[c], 1.0
        elif length < n_stages:
            p = weights[c] * np.exp(-tables.log_psi[length, c])
            ratio = np.exp(-tables.theta[length, c])
        else:
            p, ratio = weights[c], 0.0
        skip = 0
        for rank in range(n_items):
            item = tables.centers[c, rank]
            if used[item]:
                continue
            if left == 1 or length < n_stages:
                out[item] += p
                p *= ratio
                if p < TINY:
                    break
            else:
                out[item] += p * np.exp(tables.beyond[length - n_stages, skip])
                skip += 1


@kernel
def next_rows(first, last, orders, lengths, tables, out):
    """Set ``out[row, item]`` to P(next item | list); rows of full lists are zero."""
    weights = np.empty(tables.ranks.shape[1])
    for row in range(first, last):
        out[row] = 0.0
        if lengths[row] < out.shape[1]:
            new = weigh(orders[row], lengths[row], tables, weights)
            next_chances(orders[row], lengths[row], tables, weights, new, out[row])


@kernel
def greedy_rows(first, last, orders, lengths, wanted, tables, out):
    """Continue every list to ``wanted[row]`` items, each time by the item most probable to come next.

    ``out`` (rows, items or fewer) holds the lists on entry and is filled from ``lengths[row]`` on.
    """
    n_items, n_clusters = tables.ranks.shape
    codes = np.empty(min(BLOCK, n_clusters), tables.ranks.dtype)
    scores, weights = np.empty(n_clusters), np.empty(n_clusters)
    chances = np.empty(n_items)
    for row in range(first, last):
        log_new = joint_scores(orders[row], lengths[row], tables, scores)
        for j in range(lengths[row], wanted[row]):
            new = normalized(scores, log_new, weights)
            next_chances(out[row], j, tables, weights, new, chances)
            for earlier in range(j):
                chances[out[row, earlier]] = -1.0
            out[row, j] = chances.argmax()
            if j + 1 < wanted[row] and j < n_items - 1:
                log_new -= np.log(n_items - j)
                for low in range(0, n_clusters, BLOCK):
                    high = min(low + BLOCK, n_clusters)
                    skips_at(out[row], j, tables.ranks, low, high, codes)
                    add_stage(j, tables, low, high, codes, scores)
                    if j < tables.theta.shape[0]:
                        for c in range(low, high):
                            scores[c] -= tables.log_psi[j, c]


class Beyond(NamedTuple):
    """The prior of decays at stages that no list of the data reaches: ν r_j and ν."""

    a: np.ndarray
    c: float


@kernel
def continue_list(stream, cumulated, passed, length, wanted, tables, beyond, order):
    """Draw items ``order[length:wanted]`` from a cluster, drawn from cumulated weights and returned.

    It is -1 for a new cluster. After any other, so many numbers are ``passed`` over.
    """
    c, u = -1, uniform(stream)
    if u < cumulated[-1]:
        c = np.searchsorted(cumulated, u, side="right")
        for _ in range(passed):
            uniform(stream)
    n_items = tables.ranks.shape[0]
    n_stages = tables.theta.shape[0]
    left = np.empty(n_items, np.int32)
    used = np.zeros(n_items, np.bool_)
    for j in range(length):
        used[order[j]] = True
    n_left = 0
    for rank in range(n_items):
        item = rank if c < 0 else tables.centers[c, rank]
        if not used[item]:
            left[n_left] = item
            n_left += 1
    for j in range(length, wanted):
        if n_left == 1:
            skip = 0
        elif c < 0:
            skip = integers(stream, n_left)
        else:
            if j < n_stages:
                theta = tables.theta[j, c]
            else:
                theta = draw_theta(stream, beyond.a[j - n_stages], beyond.c, n_left - 1)
            skip = truncated_geometric_log(stream, theta, n_left)
        order[j] = left[skip]
        n_left -= 1
        for place in range(skip, n_left):
            left[place] = left[place + 1]
    return c


@kernel
def completion_rows(first, last, key, orders, lengths, wanted, tables, beyond, out, clusters):
    """Draw continuations of every list; ``out`` (rows, draws, items or fewer) holds the lists on entry.

    The cluster of each goes to ``clusters``.
    """
    weights = np.empty(tables.ranks.shape[1])
    stream = new_stream()
    for row in range(first, last):
        weigh(orders[row], lengths[row], tables, weights)
        cumulated = np.cumsum(weights)
        open_stream(stream, key[0], key[1], 0, row)
        for draw in range(out.shape[1]):
            clusters[row, draw] = continue_list(
                stream, cumulated, 1, lengths[row], wanted[row], tables, beyond, out[row, draw]
            )


@kernel
def sample_rows(first, last, key, wanted, tables, cumulated, beyond, out, clusters):
    """Draw new lists of ``wanted[row]`` items; ``cumulated`` are weights of all clusters of all draws."""
    stream = new_stream()
    for row in range(first, last):
        open_stream(stream, key[0], key[1], 0, row)
        clusters[row] = continue_list(stream, cumulated, 1, 0, wanted[row], tables, beyond, out[row])
