# mypy: ignore-errors
"""Split-merge moves of a partition, compiled, for every family.

A split and a merge are proposed equally often: with uniform pairs of data, as published, nearly all of many
clusters' proposals would be merges. i is drawn uniformly; j, for a split, from the rest of its cluster, which
becomes A, which holds i, and B, which holds j; for a merge of their clusters A and B, from all other
clusters. A proposed split is drawn by sequential allocation (Dahl 2005): from A = {i} and B = {j} on, the
others come in random order and join A or B with probability proportional to prior weight × predictive. Other
ways implement :func:`launch`; see ``published_jit.py``.

There is one way to merge, so with r = p(split state)/p(merged state), times the ratio (m - 1)/(n - |A|) of
the chances of drawing this j among n data, m = |A| + |B| of which are in question, and q the probability of
drawing this split, a split is accepted with probability min(1, r/q) and a merge with min(1, q/r). As q is at
most 1, a merge that 1/r alone refuses, as nearly all do, is refused before q is computed. Order, throws and
launch state depend on i, j and the members of both clusters, never on how these are divided now: given them
the move is reversible, hence also on average.

The prior comes as tables: ``joining[m]`` is the log weight of joining a
cluster of m, ``totals[m]`` the sum of those before it, ``opening[K]`` that of opening one beside K.

Proposals work on clusters of their own, A and B in ``sides_stats`` and, where marginal likelihoods cost much,
their union in ``union_stats``, which are empty between proposals. Members of the state's clusters are in
linked lists, so that no proposal reads other clusters.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.kernels.jit import implements, inlined, kernel
from permix.kernels.random import shuffle

A, B = 0, 1
# A merge is refused early when its log chance is that far below what would do.
SLACK = 2.0
NOBODY = -1


class Room(NamedTuple):
    """Arrays that proposals write on."""

    order: np.ndarray  # (n,) members of A and B: i first, j last
    sides: np.ndarray  # (n,) A or B, of each of ``order``
    present: np.ndarray  # (n,) the same as it is now, where a merge is proposed
    scores: np.ndarray  # (2,) of A and B
    heads: np.ndarray  # (capacity,) a member of each cluster
    following: np.ndarray  # (n,) the next member of the same cluster, or NOBODY


@inlined
def make_room(labels, capacity, n_clusters):
    """Return what proposals write on, with the members of all clusters listed."""
    n = labels.shape[0]
    order, sides, present = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    heads, following = np.empty(capacity, np.int64), np.empty(n, np.int64)
    for k in range(n_clusters):
        heads[k] = NOBODY
    for i in range(n - 1, -1, -1):
        following[i] = heads[labels[i]]
        heads[labels[i]] = i
    return Room(order, sides, present, np.empty(2), heads, following)


class Sequential(NamedTuple):
    """Splits are drawn by sequential allocation."""

    n_scans: int  # 0: nothing is launched


def launch(how, rng, joining, data, sides_stats, room, size, forced):
    """Draw sides as ``how`` says, or force those of now; returns the log probability of drawing them.

    Called before ``room.sides`` is scored. ``how`` is a NamedTuple that dispatches; where its ``n_scans`` is
    0, splits are drawn while they are scored instead.
    """
    raise NotImplementedError("launch is implemented by overload; call it from compiled code")


@implements(launch, Sequential, argument="how")
def _no_launch(how, rng, joining, data, sides_stats, room, size, forced):
    return 0.0


@kernel
def split_merge(
    rng,
    n_proposals,
    how,
    joining,
    totals,
    opening,
    stats,
    data,
    labels,
    sizes,
    sides_stats,
    union_stats,
    n_clusters,
):
    """Make proposals, with splits drawn as ``how`` says: a NamedTuple that implements :func:`launch`.

    Returns (proposals made, number of clusters, proposals accepted, scores taken). Stops early, before the
    next proposal, when all slots are taken: the caller makes room and calls again. ``union_stats`` is None
    for families whose marginal likelihoods cost little; with these, merges are looked at first.
    """
    n = labels.shape[0]
    room = make_room(labels, sizes.shape[0], n_clusters)
    n_accepted = 0
    work = 0
    for proposal in range(n_proposals):
        if n_clusters == sizes.shape[0]:
            return proposal, n_clusters, n_accepted, work
        splitting = rng.random() < 0.5
        threshold = -rng.standard_exponential()
        i = np.int64(rng.random() * n)
        n_merged = n_clusters if splitting else n_clusters - 1
        if opening[n_merged] == -np.inf:
            continue  # a finite prior has no further component
        if splitting:
            if sizes[labels[i]] == 1:
                continue
            j = _another_member(rng, labels, sizes, room, i)
        else:
            if n_clusters == 1:
                continue
            j = _member_of_another(rng, labels, i)
            if union_stats is None:
                work += 1
                a, b = np.int64(labels[i]), np.int64(labels[j])
                log_merge = _log_merge(opening, totals, stats, sizes, a, b, n_clusters)
                log_merge += _log_pairs(n, sizes[a], sizes[b])
                # Rounding may make this a little wrong, or no number; then the whole proposal decides.
                if log_merge < threshold - SLACK:
                    continue
        size = _gather(labels, room, i, j)
        shuffle(rng, room.order[1 : size - 1])
        launched = how.n_scans > 0
        if not splitting:
            _write_sides(labels, room.order, room.present if launched else room.sides, size)
        log_launched = launch(how, rng, joining, data, sides_stats, room, size, not splitting)
        if launched:
            work += 2 * (how.n_scans + 1) * (size - 2)
        forced = launched or not splitting
        log_ratio, log_proposal = _allocate(rng, joining, data, sides_stats, room, size, forced)
        if launched:
            log_proposal = log_launched
        work += 2 * size
        if union_stats is None:
            union = np.int64(labels[i])
            if not splitting:
                union = n_clusters
                work += size
                _fill(stats, data, room.order, size, union)
            log_ratio -= contract.log_marginal(stats, union) + totals[size]
        else:
            work += size
            log_ratio -= _log_union(data, union_stats, room.order, size) + totals[size]
            contract.clear_members(union_stats, data, room.order, 0, size, 0)
        log_ratio += opening[n_merged]
        n_first = empty_sides(data, sides_stats, room, size)
        log_ratio -= _log_pairs(n, n_first, size - n_first)
        # Not a number where both states are impossible: no such proposal is accepted.
        log_chance = log_ratio - log_proposal if splitting else log_proposal - log_ratio
        if threshold < log_chance:
            n_accepted += 1
            n_clusters = adopt(stats, data, labels, sizes, room, n_clusters, n_first, size, splitting)
    return n_proposals, n_clusters, n_accepted, work


# --- proposals ----------------------------------------------------------------------------------


@inlined
def _another_member(rng, labels, sizes, room, i):
    """Draw one of the others in the cluster of i."""
    left = np.int64(rng.random() * (sizes[labels[i]] - 1))
    member = room.heads[labels[i]]
    while True:
        if member != i:
            if left == 0:
                return member
            left -= 1
        member = room.following[member]


@inlined
def _member_of_another(rng, labels, i):
    """Draw one that is not in the cluster of i."""
    while True:
        j = np.int64(rng.random() * labels.shape[0])
        if labels[j] != labels[i]:
            return j


@inlined
def _log_pairs(n, n_a, n_b):
    """Log of the chance of drawing j for a split over that of drawing it for the merge that undoes it."""
    return math.log((n - n_a) / (n_a + n_b - 1.0))


@inlined
def _log_merge(opening, totals, stats, sizes, a, b, n_clusters):
    """Log probability of the state with clusters a and b merged over that of the present one."""
    union = n_clusters  # a slot that is free
    contract.copy_cluster(stats, a, union)
    contract.merge(stats, b, union)
    log_likelihood = 0.0
    for k in (union, a, b):
        value = contract.log_marginal(stats, k)
        log_likelihood += value if k == union else -value
    log_prior = totals[sizes[a] + sizes[b]] - totals[sizes[a]] - totals[sizes[b]] - opening[n_clusters - 1]
    return log_likelihood + log_prior


@inlined
def _gather(labels, room, i, j):
    """Write the members of the clusters of i and j, i first and j last; returns how many."""
    size = 1
    room.order[0] = i
    for turn in range(1 if labels[i] == labels[j] else 2):
        member = room.heads[labels[i] if turn == 0 else labels[j]]
        while member != NOBODY:
            if member != i and member != j:
                room.order[size] = member
                size += 1
            member = room.following[member]
    room.order[size] = j
    return size + 1


@inlined
def _write_sides(labels, order, sides, size):
    """Write on which side everybody is now."""
    for position in range(size):
        sides[position] = A if labels[order[position]] == labels[order[0]] else B


@inlined
def log_chance_of(chosen, other):
    """Log probability of the first of two options with these log weights."""
    difference = other - chosen
    return -max(difference, 0.0) - math.log1p(math.exp(-abs(difference)))


@inlined
def _fill(stats, data, order, size, k):
    """Make cluster k one of these members."""
    contract.clear(stats, k)
    for position in range(size):
        contract.add(stats, data, order[position], k)


@inlined
def _log_union(data, union_stats, order, size):
    """Log marginal likelihood of these members, who fill the empty ``union_stats``."""
    start, score = np.zeros(1, np.int64), np.empty(1)
    total = 0.0
    for position in range(size):
        contract.extend(union_stats, data, order[position], start, 1, score)
        total += score[0]
    return total


@inlined
def _allocate(rng, joining, data, sides_stats, room, size, forced):
    """Fill the empty clusters one datum after another, by chance or as ``sides`` says; i and j come first.

    Returns the probabilities of both clusters with their data and of drawing these sides, both in logs.
    """
    order, sides, scores = room.order, room.sides, room.scores
    sides[0] = A
    sides[size - 1] = B
    n_a = n_b = 0
    log_ratio = log_proposal = 0.0
    for turn in range(size):
        position = turn - 1 if turn > 1 else turn * (size - 1)
        contract.log_predictive(sides_stats, data, order[position], 2, scores)
        to_a = scores[A] + joining[n_a]
        to_b = scores[B] + joining[n_b]
        if turn > 1:
            if not forced:
                sides[position] = A if rng.random() < 1.0 / (1.0 + math.exp(to_b - to_a)) else B
            log_proposal += log_chance_of(to_a, to_b) if sides[position] == A else log_chance_of(to_b, to_a)
        if sides[position] == A:
            log_ratio += to_a
            n_a += 1
        else:
            log_ratio += to_b
            n_b += 1
        contract.add(sides_stats, data, order[position], sides[position])
    return log_ratio, log_proposal


@inlined
def empty_sides(data, sides_stats, room, size):
    """Sort ``order`` by side and empty A and B; returns how many are in A.

    The first and the last, i and j, stay where they are.
    """
    order, sides = room.order, room.sides
    n_a = 0
    for position in range(size):
        if sides[position] == A:
            order[position], order[n_a] = order[n_a], order[position]
            sides[position], sides[n_a] = sides[n_a], sides[position]
            n_a += 1
    for side in range(2):
        contract.clear_members(
            sides_stats, data, order, 0 if side == A else n_a, n_a if side == A else size, side
        )
    return n_a


@inlined
def adopt(stats, data, labels, sizes, room, n_clusters, n_a, size, splitting):
    """Make A = ``order[:n_a]`` and the rest two clusters, or one; returns the number of clusters.

    In a split the rest becomes a new cluster. In a merge the smaller of the two joins the other, and the last
    cluster takes the number of the one that dies.
    """
    first, second = np.int64(labels[room.order[0]]), np.int64(labels[room.order[size - 1]])
    a_is_smaller = n_a < size - n_a
    if splitting:
        second = n_clusters
        n_clusters += 1
        contract.clear_members(stats, data, room.order, 0, size, first)
        contract.clear(stats, second)
        for k in (first, second):
            room.heads[k] = NOBODY
            sizes[k] = 0
    for side in range(2):
        if splitting or (side == A) == a_is_smaller:
            k = first if (side == A) == splitting else second
            for position in range(0 if side == A else n_a, n_a if side == A else size):
                member = room.order[position]
                contract.add(stats, data, member, k)
                labels[member] = k
                sizes[k] += 1
                room.following[member] = room.heads[k]
                room.heads[k] = member
    if not splitting:
        gone = first if a_is_smaller else second
        n_clusters -= 1
        if gone != n_clusters:
            contract.copy_cluster(stats, n_clusters, gone)
            sizes[gone] = sizes[n_clusters]
            room.heads[gone] = room.heads[n_clusters]
            member = room.heads[gone]
            while member != NOBODY:
                labels[member] = gone
                member = room.following[member]
        sizes[n_clusters] = 0
    return n_clusters
