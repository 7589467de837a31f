# mypy: ignore-errors
"""Repeated insertion: draws from per-row streams, probabilities of rows, and exact marginals.

Items are numbered by their step of insertion, i = 0, 1, …; ``center`` turns steps into items. Item i goes to
a place 0..i of the i items before it; ``i - place`` is its displacement.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.fenwick import count_smaller_before
from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step, log_probability_step
from permix.kernels.orders import ordering_from_places
from permix.kernels.random import truncated_geometric_quantile
from permix.kernels.streams import fill_uniform, padded

# Up to this many items, places are small numbers that the processor compares many at a time (measured).
FEW_ITEMS = 512


def place_scratch(n, n_rows):
    """Make the memory for places of many rows at once, items × rows, for the functions below."""
    if n <= 256:
        return np.empty((n, min(max(n_rows, 32), 256)), np.uint8)
    if n <= FEW_ITEMS:
        return np.empty((n, 64), np.uint16)
    return np.empty((n, 1), np.int32)


@kernel
def push_places(places):
    """Turn insertion places, items × rows, into ranks: an insertion pushes what is at or behind its place."""
    for i in range(1, places.shape[0]):
        newest = places[i]
        for a in range(i):
            older = places[a]
            for lane in range(places.shape[1]):
                older[lane] += np.uint8(older[lane] >= newest[lane])


@kernel
def grow_orderings(centers, clusters, places, count, first, slots, out):
    """Set rows ``first..first+count-1`` of ``out`` to what inserting the items at their places makes.

    ``places[i, lane]`` is where item i of the center ``clusters[lane]`` goes in a row; used up. n²/2
    comparisons, but without a branch and over all lanes at once, beat the O(n log n) search for free slots up
    to some hundreds of items.
    """
    n = places.shape[0]
    if n <= FEW_ITEMS:
        push_places(places)
    for lane in range(count):
        center = centers[clusters[lane]]
        if n <= FEW_ITEMS:
            for i in range(n):
                out[first + lane, places[i, lane]] = center[i]
        else:
            ordering_from_places(center, places[:, lane], slots, out[first + lane])


@kernel
def displacement_table(decay, n):
    """Return thresholds and a guide that turn a uniform number into a displacement for every step.

    ``thresholds[k] = (1 - φ^(k+1)) / (1 - φ^n)``. Step i with displacements P(k) ∝ φ^k on 0..i has
    distribution function thresholds[k] / thresholds[i], so its u-quantile is the number of thresholds that
    ``u * thresholds[i]`` reaches: one table serves all steps. ``guide[b]`` counts the thresholds that lie
    at or below b / guide.size.
    """
    thresholds = np.empty(n)
    for k in range(n):
        if n * decay < 1e-17:  # uniform to double precision
            thresholds[k] = (k + 1) / n
        else:
            thresholds[k] = np.expm1(-(k + 1) * decay) / np.expm1(-n * decay)
    size = 64
    while size < 8 * n:
        size *= 2
    guide = np.empty(size, np.int32)
    k = 0
    for b in range(size):
        while thresholds[k] <= b / size:  # the last threshold is 1
            k += 1
        guide[b] = k
    return thresholds, guide


# Arguments of ``sample_rows`` for the three ways to say where items go; what does not apply is empty.


def geometric_steps(decay, n):
    """Say that every step has this decay."""
    return *displacement_table(decay, n), np.zeros(0), np.zeros((0, 0))


def weighted_steps(decays):
    """Say that each step has a decay of its own."""
    return np.zeros(0), np.zeros(0, np.int32), decays, np.zeros((0, 0))


def general_steps(probabilities):
    """Say the probability of every place at every step."""
    cumulative = np.cumsum(probabilities, axis=1)
    cumulative /= cumulative[:, -1:]  # exactly 1 from the last possible place on
    return np.zeros(0), np.zeros(0, np.int32), np.zeros(0), cumulative


@kernel
def sample_rows(key, first, last, centers, thresholds, guide, decays, cumulative, places, out):
    """Fill rows ``first..last-1`` of ``out`` with orderings, each from the stream of its row.

    ``centers`` has one row; ``cumulative[i, j]`` = P(place <= j) at step i; ``places``: :func:`place_scratch`
    """
    n, lanes = places.shape
    uniforms = np.empty(padded(n))
    slots = np.empty(n, np.int64)
    clusters = np.zeros(lanes, np.int64)
    for start in range(first, last, lanes):
        count = min(lanes, last - start)
        for lane in range(count):
            fill_uniform(key[0], key[1], 0, start + lane, uniforms)
            if thresholds.size > 0:
                for i in range(n):
                    reached = uniforms[i] * thresholds[i]
                    k = np.int64(guide[np.int64(reached * guide.size)])
                    while thresholds[k] <= reached:
                        k += 1
                    places[i, lane] = i - min(k, i)
            elif decays.size > 0:
                for i in range(n):
                    places[i, lane] = i - truncated_geometric_quantile(uniforms[i], decays[i], i + 1)
            else:
                for i in range(n):
                    low, high = 0, i  # the first place whose cumulated probability exceeds the uniform
                    while low < high:
                        middle = (low + high) // 2
                        if cumulative[i, middle] > uniforms[i]:
                            high = middle
                        else:
                            low = middle + 1
                    places[i, lane] = low
        grow_orderings(centers, clusters, places, count, start, slots, out)


# Rows that list their best items, perhaps all; the rest is below in any order.


@kernel
def mallows_log_prob_rows(first, last, orders, lengths, step_of, decay, out):
    """Set ``out[row]`` to the log-probability of top lists under one decay, in O(t log t) a row.

    Chosen best first, the j-th item skips s_j of the n - j items left, P(s_j) ∝ φ^s_j independently; the sum
    of the skips is the number of pairs against the center.
    """
    n = step_of.size
    log_totals = np.zeros(n + 1)  # of the first t choices
    for j in range(n):
        log_totals[j + 1] = log_totals[j] + log_normalizer_step(decay, n - j)
    steps = np.empty(n, np.int64)
    smaller = np.empty(n, np.int64)
    for row in range(first, last):
        t = lengths[row]
        for j in range(t):
            steps[j] = step_of[orders[row, j]]
        count_smaller_before(steps, t, n, smaller)
        against = 0
        for j in range(t):
            against += steps[j] - smaller[j]
        out[row] = -log_totals[t]
        if against > 0:
            out[row] -= decay * against


@kernel
def insertion_places(order, length, step_of, places, listed):
    """Find where repeated insertion puts the items of a top list.

    ``listed[i]`` says whether item i is in the list; ``places[i]`` is its place where it is, and else the
    first place below all listed items before it: any place from there on agrees with the list.
    """
    n = step_of.size
    rank = np.full(n, -1, np.int64)
    for j in range(length):
        rank[step_of[order[j]]] = j
    ranks = np.empty(length, np.int64)
    smaller = np.empty(length, np.int64)
    seen = 0
    for i in range(n):
        if rank[i] >= 0:
            ranks[seen] = rank[i]
            seen += 1
    count_smaller_before(ranks, length, length, smaller)
    seen = 0
    for i in range(n):
        listed[i] = rank[i] >= 0
        if listed[i]:
            places[i] = smaller[seen]
            seen += 1
        else:
            places[i] = seen


@kernel
def insertion_log_prob_rows(first, last, orders, lengths, step_of, decays, probabilities, tails, out):
    """Set ``out[row]`` to the log-probability of top lists.

    Either each step has a decay, or ``probabilities[i, j]`` is that of place j at step i and ``tails[i, j]``
    P(place >= j), which is not looked at for full rankings; what does not apply is empty.
    """
    n = step_of.size
    places = np.empty(n, np.int64)
    listed = np.empty(n, np.bool_)
    for row in range(first, last):
        insertion_places(orders[row], lengths[row], step_of, places, listed)
        total = 0.0
        for i in range(1, n):
            if decays.size > 0:
                if listed[i]:
                    total += log_probability_step(decays[i], i - places[i], i + 1)
                elif places[i] > 0:
                    total += log_normalizer_step(decays[i], i - places[i] + 1)
                    total -= log_normalizer_step(decays[i], i + 1)
            elif listed[i] or places[i] > 0:
                chance = probabilities[i, places[i]] if listed[i] else tails[i, places[i]]
                total += np.log(chance) if chance > 0.0 else -np.inf
        out[row] = total


# Exact marginals: the place of every item inserted so far is a Markov chain that depends on no other item.


@kernel
def pair_order(decays, probabilities, earlier, later):
    """Return P(earlier step first) and P(later step first), in O(later²) operations.

    Items go to places by ``probabilities``, as below, or where that is empty geometrically with ``decays``.
    """
    position = np.zeros(later + 1)  # of the earlier step
    chance = np.empty(later + 1)
    leaves = np.empty(later + 1)  # P(step t goes behind place p), so that what is at p stays
    earlier_first, later_first = 0.0, 0.0
    for t in range(earlier, later + 1):
        for p in range(t + 1):
            if probabilities.size > 0:
                chance[p] = probabilities[t, p]
            else:
                chance[p] = np.exp(log_probability_step(decays[t], t - p, t + 1))
        if t == earlier:
            position[: t + 1] = chance[: t + 1]
            continue
        total = 0.0
        for p in range(t, -1, -1):
            leaves[p] = total
            total += chance[p]
        pushes, moved = 0.0, 0.0  # P(step t goes to p or before it)
        for p in range(t):
            pushes += chance[p]
            here = position[p]
            if t == later:
                earlier_first += here * leaves[p]
                later_first += here * pushes
            else:
                position[p] = here * leaves[p] + moved
                moved = here * pushes
        if t < later:
            position[t] = moved
    return earlier_first, later_first


@kernel
def insertion_marginals(probabilities):
    """Return P(item at place) and P(one item before the other) in O(n³) operations.

    ``probabilities[i, j]`` = P(item i goes to place j). Of the results the first has places as rows and
    items as columns, so that the inner loops run over items and vectorize.
    """
    n = probabilities.shape[0]
    position = np.zeros((n, n))
    before = np.zeros((n, n))
    pushes = np.empty(n)  # P(item i goes to a place <= p), which pushes what is at p one place back
    leaves = np.empty(n)
    for i in range(n):
        total = 0.0
        for p in range(i + 1):
            total += probabilities[i, p]
            pushes[p] = total
        total = 0.0
        for p in range(i, -1, -1):
            leaves[p] = total
            total += probabilities[i, p]
        worse_first = before[i]
        better_first = np.zeros(i)
        for p in range(i, -1, -1):
            here, push, leave = position[p], pushes[p], leaves[p]
            for a in range(i):
                worse_first[a] += here[a] * push
                better_first[a] += here[a] * leave
            if p > 0:
                ahead, push_ahead = position[p - 1], pushes[p - 1]
                for a in range(i):
                    here[a] = here[a] * leave + ahead[a] * push_ahead
            else:
                for a in range(i):
                    here[a] *= leave
            here[i] = probabilities[i, p]
        for a in range(i):
            before[a, i] = better_first[a]
    return position, before
