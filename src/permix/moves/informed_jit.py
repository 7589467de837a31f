# mypy: ignore-errors
"""Splits and merges of groups where the pair to merge is chosen by what the data say, compiled.

A merge draws the pair of clusters a, b with probability proportional to the root of

    g(a, b) = p(members of a and b together) / (p(members of a) p(members of b)),

prior weights of the sizes included, so that of many pairs those that could be one are tried; then a member i
of either, uniformly. A split draws i uniformly from all data and divides its cluster. i is always in A, so
that the two sides have one name each.

A division is drawn by scans of Gibbs between both sides (Jain & Neal 2004). They begin with sequential
allocation to {i} and {j}, j any other member; only i stays. Order, j and this launch state depend on i and
the members of both sides, never on how these are divided now. With q the probability of the last scan, m
members of n data, and w the chance of drawing this pair among all pairs of the divided state, a split is
accepted with probability min(1, r/q × w n/m), r = p(divided state)/p(state with both as one), and a merge
with the inverse. As q and w are at most 1, most proposals are refused before these are computed.
"""

from __future__ import annotations

import math

import numpy as np

import permix.families.contract_jit as contract
from permix.kernels.jit import inlined, kernel
from permix.kernels.random import categorical_log, shuffle
from permix.moves.split_merge_jit import (
    NOBODY,
    A,
    B,
    adopt,
    empty_sides,
    log_chance_of,
    make_room,
)

# Slots that a proposal needs beside the clusters: for both sides and for what they are merged with.
SPARE = 3


@kernel
def informed_split_merge(
    rng, n_proposals, n_scans, joining, totals, opening, stats, data, labels, sizes, sides_stats, n_clusters
):
    """Make proposals; returns (proposals made, number of clusters, proposals accepted, scores taken).

    Stops early, before the next proposal, when fewer than ``SPARE`` slots are free: the caller makes room and
    calls again. ``sides_stats`` are two empty clusters.
    """
    n = labels.shape[0]
    room = make_room(labels, sizes.shape[0], n_clusters)
    n_accepted = work = 0
    known = False
    marginals = np.empty(sizes.shape[0])
    gains = np.empty((sizes.shape[0], sizes.shape[0]))
    weights = np.empty(sizes.shape[0] * sizes.shape[0])
    for proposal in range(n_proposals):
        if n_clusters + SPARE > sizes.shape[0]:
            return proposal, n_clusters, n_accepted, work
        splitting = rng.random() < 0.5
        threshold = -rng.standard_exponential()
        n_merged = n_clusters if splitting else n_clusters - 1
        if n_merged == 0 or opening[n_merged] == -np.inf:
            continue  # one cluster has nothing to be merged with; a finite prior has no further component
        if not known:
            _compare_all(totals, stats, sizes, n_clusters, marginals, gains)
            work += n_clusters * n_clusters
            known = True
        if splitting:
            i = np.int64(rng.random() * n)
            first = second = np.int64(labels[i])
            if sizes[first] == 1:
                continue
            log_ratio = 0.0
        else:
            n_pairs = _list_pairs(gains, n_clusters, NOBODY, weights)
            pair = categorical_log(rng, weights, n_pairs)
            if pair < 0:
                continue
            log_pair = weights[pair] - _log_sum(weights, n_pairs)
            first, second = _pair_at(pair, n_clusters)
            i = _one_of(rng, room, sizes, first, second)
            if labels[i] == second:
                first, second = second, first
            log_ratio = opening[n_merged] - gains[first, second] + log_pair
            log_ratio += math.log(n / (sizes[first] + sizes[second]))
            if not threshold < -log_ratio:
                continue
        size = _members(room, i, first, second)
        shuffle(rng, room.order[1:size])
        if not splitting:
            for position in range(size):
                room.present[position] = A if labels[room.order[position]] == first else B
        log_q = _divide(rng, n_scans, joining, data, sides_stats, room, size, not splitting)
        work += 2 * (n_scans + 2) * size
        n_first = empty_sides(data, sides_stats, room, size)
        if splitting:
            if n_first == size:
                continue  # nobody but i is to be parted
            for side in range(2):
                k = n_clusters + side
                contract.clear(stats, k)
                for position in range(0 if side == A else n_first, n_first if side == A else size):
                    contract.add(stats, data, room.order[position], k)
                marginals[k] = contract.log_marginal(stats, k)
                sizes[k] = n_first if side == A else size - n_first
            work += size
            parted = marginals[n_clusters] + totals[n_first] + marginals[n_clusters + 1]
            parted += totals[size - n_first]
            log_ratio = parted - marginals[first] - totals[size] + opening[n_merged]
            log_ratio += math.log(n / size)
            accepted = threshold < log_ratio - log_q
            if accepted:
                work += 2 * n_clusters
                log_ratio += _log_new_pair(totals, stats, sizes, n_clusters, first, marginals, gains, weights)
                accepted = threshold < log_ratio - log_q
            sizes[n_clusters] = sizes[n_clusters + 1] = 0
        else:
            accepted = threshold < log_q - log_ratio
        if accepted:
            n_accepted += 1
            known = False
            n_clusters = adopt(stats, data, labels, sizes, room, n_clusters, n_first, size, splitting)
    return n_proposals, n_clusters, n_accepted, work


# --- which two to merge --------------------------------------------------------------------------


@inlined
def _compare(totals, stats, sizes, spare, marginals, a, b):
    """Return ln g of clusters a and b; ``spare`` is a free slot."""
    contract.copy_cluster(stats, a, spare)
    contract.merge(stats, b, spare)
    joined = contract.log_marginal(stats, spare) + totals[sizes[a] + sizes[b]]
    gain = joined - marginals[a] - marginals[b] - totals[sizes[a]] - totals[sizes[b]]
    # Not a number where data are impossible in any cluster: those stay where they are.
    return gain if gain == gain else -np.inf


@kernel
def _compare_all(totals, stats, sizes, n_clusters, marginals, gains):
    """Write the marginal likelihoods of all clusters and ln g of all pairs."""
    for a in range(n_clusters):
        marginals[a] = contract.log_marginal(stats, a)
        for b in range(a):
            gains[a, b] = gains[b, a] = _compare(totals, stats, sizes, n_clusters, marginals, a, b)


@inlined
def _list_pairs(gains, n_clusters, without, weights):
    """Write half of ln g of all pairs b < a, except those of a cluster; returns how many there are."""
    n_pairs = 0
    for a in range(1, n_clusters):
        for b in range(a):
            if a != without and b != without:
                weights[n_pairs] = 0.5 * gains[a, b]
                n_pairs += 1
    return n_pairs


@inlined
def _pair_at(pair, n_clusters):
    """Return the clusters of a pair by its place in the list of all."""
    a = 1
    while pair >= a:
        pair -= a
        a += 1
    return a, pair


@kernel
def _log_sum(weights, n):
    """Return ln Σ exp(weights)."""
    largest = -np.inf
    for place in range(n):
        largest = max(largest, weights[place])
    total = 0.0
    for place in range(n):
        total += math.exp(weights[place] - largest)
    return largest + math.log(total)


@kernel
def _log_new_pair(totals, stats, sizes, n_clusters, parted, marginals, gains, weights):
    """Return the log chance of drawing the two sides of a cluster, which are in the slots after the last."""
    n_pairs = _list_pairs(gains, n_clusters, parted, weights)
    spare = n_clusters + 2
    for side in range(2):
        for k in range(n_clusters):
            if k != parted:
                gain = _compare(totals, stats, sizes, spare, marginals, n_clusters + side, k)
                weights[n_pairs] = 0.5 * gain
                n_pairs += 1
    own = _compare(totals, stats, sizes, spare, marginals, n_clusters, n_clusters + 1)
    weights[n_pairs] = 0.5 * own
    return 0.5 * own - _log_sum(weights, n_pairs + 1)


# --- who is on which side ------------------------------------------------------------------------


@inlined
def _one_of(rng, room, sizes, first, second):
    """Draw a member of either of two clusters."""
    left = np.int64(rng.random() * (sizes[first] + sizes[second]))
    member = room.heads[first]
    if left >= sizes[first]:
        left -= sizes[first]
        member = room.heads[second]
    for _ in range(left):
        member = room.following[member]
    return member


@inlined
def _members(room, i, first, second):
    """Write the members of one cluster, or two, i first; returns how many."""
    room.order[0] = i
    size = 1
    for turn in range(1 if first == second else 2):
        member = room.heads[first if turn == 0 else second]
        while member != NOBODY:
            if member != i:
                room.order[size] = member
                size += 1
            member = room.following[member]
    return size


@inlined
def _divide(rng, n_scans, joining, data, sides_stats, room, size, forced):
    """Divide everybody between the empty clusters A and B, or force the division of now in the last scan.

    Returns the log probability of the last scan.
    """
    order, sides, scores = room.order, room.sides, room.scores
    n_a = 0
    log_q = 0.0
    for scan in range(n_scans + 2):
        last = scan == n_scans + 1
        for position in range(size):
            member = order[position]
            if position == 0:
                if scan == 0:
                    sides[0] = A
                    contract.add(sides_stats, data, member, A)
                    n_a = 1
                continue
            if scan == 0 and position == 1:
                sides[1] = B
                contract.add(sides_stats, data, member, B)
                continue
            contract.log_predictive(sides_stats, data, member, 2, scores)
            own = NOBODY
            others, n_others = n_a, position
            if scan > 0:
                own = sides[position]
                n_others = size - 1
                if own == A:
                    others = n_a - 1
                if (others if own == A else n_others - others) > 0:
                    scores[own] = contract.log_predictive_without(sides_stats, data, member, own)
                else:
                    contract.remove(sides_stats, data, member, own)
                    contract.log_predictive(sides_stats, data, member, 2, scores)
                    contract.add(sides_stats, data, member, own)
            to_a = scores[A] + joining[others]
            to_b = scores[B] + joining[n_others - others]
            if last and forced:
                chosen = room.present[position]
            else:
                chosen = A if rng.random() < 1.0 / (1.0 + math.exp(to_b - to_a)) else B
            if last:
                log_q += log_chance_of(to_a, to_b) if chosen == A else log_chance_of(to_b, to_a)
            n_a = others + 1 if chosen == A else others
            if chosen != own:
                sides[position] = chosen
                if own != NOBODY:
                    contract.remove(sides_stats, data, member, own)
                contract.add(sides_stats, data, member, chosen)
    return log_q
