# mypy: ignore-errors
"""How a top list goes on under the clusters of all posterior draws: its next item, and draws of the rest.

Given the list so far, the next stage skips s of the items left, taken in the order of the center, with
P(s) ∝ exp(-θ_j s); the weights of clusters change with every item. In a cluster nobody is in yet all
continuations are alike, because its center and decays are integrated out (lemma 1).
"""

from __future__ import annotations

import numpy as np

from permix.distributions.generalized.finite_beta_jit import draw_theta
from permix.dp_mallows.lists.scores_jit import BLOCK, add_stage, joint_scores, normalized, room, skips_at
from permix.kernels.jit import kernel
from permix.kernels.streams import integers, new_stream, open_stream, truncated_geometric_log, uniform

# Probabilities below this are left out of sums over clusters.
TINY = 1e-30


@kernel
def next_chances(length, used, tables, weights, new, out):
    """Set ``out[item]`` to P(next item | list), given the weights of clusters; 0 for items ``used``."""
    n_items = used.size
    left = n_items - length
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
    n_items, n_clusters = tables.ranks.shape
    codes = room(tables)
    scores = np.empty(n_clusters)
    weights = np.empty(n_clusters)
    used = np.empty(n_items, np.bool_)
    for row in range(first, last):
        if lengths[row] == n_items:
            out[row] = 0.0
            continue
        new = joint_scores(orders[row], lengths[row], tables, codes, scores)
        new = normalized(scores, new, weights)
        used[:] = False
        for j in range(lengths[row]):
            used[orders[row, j]] = True
        next_chances(lengths[row], used, tables, weights, new, out[row])


@kernel
def greedy_rows(first, last, orders, lengths, wanted, tables, out):
    """Continue every list to ``wanted[row]`` items, each time by the item most probable to come next.

    ``out`` (rows, items or fewer) holds the lists on entry and is filled from ``lengths[row]`` on.
    """
    n_items, n_clusters = tables.ranks.shape
    n_stages = tables.theta.shape[0]
    codes = room(tables)
    scores = np.empty(n_clusters)
    weights = np.empty(n_clusters)
    chances = np.empty(n_items)
    used = np.empty(n_items, np.bool_)
    for row in range(first, last):
        log_new = joint_scores(orders[row], lengths[row], tables, codes, scores)
        used[:] = False
        for j in range(lengths[row]):
            used[orders[row, j]] = True
        for j in range(lengths[row], wanted[row]):
            new = normalized(scores, log_new, weights)
            next_chances(j, used, tables, weights, new, chances)
            best = -1
            for item in range(n_items):
                if not used[item] and (best < 0 or chances[item] > chances[best]):
                    best = item
            out[row, j] = best
            used[best] = True
            if j + 1 < wanted[row] and j < n_items - 1:
                log_new -= np.log(n_items - j)
                for low in range(0, n_clusters, BLOCK):
                    high = min(low + BLOCK, n_clusters)
                    skips_at(out[row], j, tables.ranks, low, high, codes)
                    add_stage(j, tables, low, high, codes, scores)
                    if j < n_stages:
                        for c in range(low, high):
                            scores[c] -= tables.log_psi[j, c]


@kernel
def continue_list(stream, c, length, wanted, tables, prior_a, prior_c, left, order):
    """Draw items ``order[length:wanted]`` from cluster ``c`` (a new one where c is -1).

    ``left`` is room for the items; ``prior_a`` (stages beyond those known) and ``prior_c`` are ν r_j and ν.
    """
    n_items = left.size
    n_stages = tables.theta.shape[0]
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
        elif j < n_stages:
            skip = truncated_geometric_log(stream, tables.theta[j, c], n_left)
        else:
            theta = draw_theta(stream, prior_a[j - n_stages], prior_c, n_left - 1)
            skip = truncated_geometric_log(stream, theta, n_left)
        order[j] = left[skip]
        n_left -= 1
        for place in range(skip, n_left):
            left[place] = left[place + 1]


@kernel
def draw_cluster(stream, cumulated):
    """Draw a cluster from cumulated weights; -1, a new one, beyond the last of them."""
    u = uniform(stream)
    if u >= cumulated[-1]:
        return -1
    return np.searchsorted(cumulated, u, side="right")


@kernel
def draw_member(stream, c, indptr, members, shares):
    """Draw the estimated cluster of a random agent of cluster ``c``; -1 for a new cluster."""
    if c < 0:
        return -1
    u = uniform(stream)
    for at in range(indptr[c], indptr[c + 1] - 1):
        u -= shares[at]
        if u < 0.0:
            return members[at]
    return members[indptr[c + 1] - 1]


@kernel
def completion_rows(
    first, last, key, orders, lengths, wanted, tables, prior_a, prior_c, indptr, members, shares, out, labels
):
    """Draw continuations of every list; ``out`` (rows, draws, items or fewer) holds the lists on entry."""
    n_items, n_clusters = tables.ranks.shape
    codes = room(tables)
    scores = np.empty(n_clusters)
    weights = np.empty(n_clusters)
    left = np.empty(n_items, np.int32)
    stream = new_stream()
    for row in range(first, last):
        new = joint_scores(orders[row], lengths[row], tables, codes, scores)
        normalized(scores, new, weights)
        cumulated = np.cumsum(weights)
        open_stream(stream, key[0], key[1], 0, row)
        for draw in range(out.shape[1]):
            c = draw_cluster(stream, cumulated)
            labels[row, draw] = draw_member(stream, c, indptr, members, shares)
            continue_list(
                stream, c, lengths[row], wanted[row], tables, prior_a, prior_c, left, out[row, draw]
            )


@kernel
def sample_rows(
    first, last, key, wanted, tables, cumulated, prior_a, prior_c, indptr, members, shares, out, labels
):
    """Draw new lists of ``wanted[row]`` items; ``cumulated`` are weights of all clusters of all draws."""
    left = np.empty(tables.ranks.shape[0], np.int32)
    stream = new_stream()
    for row in range(first, last):
        open_stream(stream, key[0], key[1], 0, row)
        c = draw_cluster(stream, cumulated)
        labels[row] = draw_member(stream, c, indptr, members, shares)
        continue_list(stream, c, 0, wanted[row], tables, prior_a, prior_c, left, out[row])
