# mypy: ignore-errors
"""Seating lists in clusters one by one, the decays of the clusters integrated out.

Given everything else, a list joins cluster k with weight (size - discount) × Π_j B̃eta(a + s_j, c +
2)/B̃eta(a, c + 1) (Meilă & Chen 2010, equation 17 with lemma 1), and opens one with weight openings[clusters]
(n - t)!/n!; the center of a new cluster is then drawn given the list, exactly (lemma 7 with B̃eta). All
probabilities are relative to choosing items at random, see
:mod:`permix.dp_mallows.lists.predictive_rows_jit`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.distributions.generalized.finite_beta_jit import draw_theta, log_integral
from permix.dp_mallows.lists.pair_counts_jit import add_pairs
from permix.dp_mallows.lists.predictive_rows_jit import (
    LEAST,
    RowScratch,
    fill_finite,
    fill_given,
    last_own,
    own_relative,
)
from permix.dp_mallows.lists.top_lists_jit import undefined, write_stage
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import implements, kernel
from permix.kernels.mallows import log_normalizer_step
from permix.kernels.streams import integers, new_stream, open_stream, uniform

CHUNK = 8  # so many table entries neither overflow nor underflow when multiplied


@by_reference
class ListClusters(NamedTuple):
    """Clusters in slots; a slot of size 0 is free. Sums over lists are additive over parts of the data."""

    sizes: np.ndarray  # int64 (slots,)
    weights: np.ndarray  # (slots,): size - discount, 0 for free slots
    places: np.ndarray  # int16 (items, slots): place of the item in the slot's center
    words: np.ndarray  # uint64 (items, slots / 4): the same memory, four places to a word
    totals: np.ndarray  # (slots, stages): skips of the members, summed
    counts: np.ndarray  # (slots, stages): members that reach the stage
    log_integrals: np.ndarray  # (slots, stages)
    joining: np.ndarray  # (slots, stages, bins)
    own: np.ndarray  # (slots, stages, exact bins)
    theta: np.ndarray  # (slots, stages), for decays that are not integrated out
    settled: np.ndarray  # bool (slots,): whether visits take the decays as given; of free slots: would take
    pairs: np.ndarray  # (slots, stages, items, items), see pair_counts_jit; empty where lists are read


@by_reference
class Opening(NamedTuple):
    """A new cluster: rows of its empty stages, and the distribution of its center given the first list."""

    joining: np.ndarray  # (stages, bins)
    cumulative: np.ndarray  # (stages, items): P(first list's skip <= v)


# Positions in the book of a sweep.
OCCUPIED, HIGH, MOVED, REFUSED, POSITION = range(5)


# What rows are made of is chosen by the type of ``rows``: RowScratch is exact, and those of the published
# samplers are in published_jit, which the exact sampler neither imports nor compiles.


def fill_stage(rows, tables, bins, clusters, k, stage):
    """Recompute the rows of one stage of cluster ``k`` from its sums."""
    undefined("fill_stage")


def member_entry(rows, tables, bins, clusters, k, stage, skip):
    """Return the relative probability of the skip of a member of ``k`` given the other members."""
    undefined("member_entry")


def draw_parameters(rows, stream, tables, lists, clusters, k, d):
    """Draw what the new cluster ``k`` of list ``d`` has beside its center, where θ is not integrated out."""
    undefined("draw_parameters")


@implements(fill_stage, RowScratch, "rows")
def _fill_stage(rows, tables, bins, clusters, k, stage):
    if clusters.settled[k]:
        fill_given(clusters.theta[k, stage], tables.skips[stage], bins, clusters.joining[k, stage])
        return
    clusters.log_integrals[k, stage] = fill_finite(
        tables,
        bins,
        stage,
        clusters.totals[k, stage],
        clusters.counts[k, stage],
        clusters.joining[k, stage],
        clusters.own[k, stage],
        rows,
    )


@implements(member_entry, RowScratch, "rows")
def _member_entry(rows, tables, bins, clusters, k, stage, skip):
    total, count = clusters.totals[k, stage], clusters.counts[k, stage]
    if skip <= last_own(bins, tables.prior_a[stage] + total, count):
        return clusters.own[k, stage, skip]
    return own_relative(tables, bins, stage, total, count, clusters.log_integrals[k, stage], skip)


@implements(draw_parameters, RowScratch, "rows")
def _draw_parameters(rows, stream, tables, lists, clusters, k, d):
    if clusters.settled[k]:
        for j in range(tables.skips.size):
            a, c = tables.prior_a[j] + clusters.totals[k, j], tables.prior_c + clusters.counts[k, j]
            clusters.theta[k, j] = draw_theta(stream, a, c, tables.skips[j])


@kernel
def fill_all_rows(rows, tables, bins, clusters, n_clusters):
    """Fill the rows of every stage of every cluster."""
    for k in range(n_clusters):
        for stage in range(clusters.totals.shape[1]):
            fill_stage(rows, tables, bins, clusters, k, stage)


@kernel
def draw_center(stream, lists, d, opening, code, places, k):
    """Draw a center given list ``d``, independently stage by stage, into column ``k`` of ``places``.

    The list's j-th item goes to the V_j-th place that is free (figure 4); the skips of the list are then V_j
    and are left in ``code[0]``. Items not in the list fill the other places at random.
    """
    n_free = places.shape[0]
    first = lists.starts[d]
    skips, free = code[0], code[1]
    for item in range(n_free):
        places[item, k] = -1
        free[item] = item
    for j in range(lists.starts[d + 1] - first):
        u = uniform(stream)
        skips[j] = 0
        while opening.cumulative[j, skips[j]] <= u:
            skips[j] += 1
        places[lists.items[first + j], k] = free[skips[j]]
        n_free -= 1
        for place in range(skips[j], n_free):
            free[place] = free[place + 1]
    for item in range(places.shape[0]):
        if places[item, k] < 0:
            chosen = integers(stream, n_free)
            places[item, k] = free[chosen]
            n_free -= 1
            free[chosen] = free[n_free]


@kernel
def correction(tables, bins, clusters, k, t, skips, is_member):
    """Return ln(exact / tabulated) probability of a list in cluster ``k``; only shared bins differ."""
    total = 0.0
    for j in range(t):
        skip = skips[j, k]
        if skip >= bins.n_exact:
            middle = bins.middle[bins.of_skip[skip]]
            m = tables.skips[j]
            floor = np.log(LEAST) - np.log(m + 1.0)
            if clusters.settled[k]:
                theta = clusters.theta[k, j]
                log_psi = log_normalizer_step(theta, m + 1)
                total += -theta * skip - log_psi - max(-theta * middle - log_psi, floor)
                continue
            a = tables.prior_a[j] + clusters.totals[k, j]
            c = tables.prior_c + clusters.counts[k, j]
            if is_member:
                a -= skip
                c -= 1.0
            exact = log_integral(tables, j, a + skip, c + 1.0)
            whole = clusters.log_integrals[k, j]
            if is_member:
                whole = log_integral(tables, j, a, c)
            tabulated = log_integral(tables, j, a + middle, c + 1.0)
            total += exact - whole - max(tabulated - whole, floor)
    return total


@kernel
def change(rows, tables, bins, lists, d, clusters, k, skips, sign, discount):
    """Add (sign 1) or take out (-1) list ``d``, which has these skips."""
    clusters.sizes[k] += sign
    clusters.weights[k] = clusters.sizes[k] - discount
    if clusters.sizes[k] == 0:
        clusters.weights[k] = 0.0
        return
    add_pairs(lists, d, np.float64(sign), clusters.pairs[k])
    for j in range(lists.starts[d + 1] - lists.starts[d]):
        clusters.totals[k, j] += sign * skips[j, k]
        clusters.counts[k, j] += sign
        if not clusters.settled[k]:
            fill_stage(rows, tables, bins, clusters, k, j)


@kernel
def draw_index(u, weights, cumulated, n):
    """Return the first index whose share of ``weights[:n]``, cumulated, exceeds ``u`` in [0, 1)."""
    total = 0.0
    for k in range(n):
        total += weights[k]
        cumulated[k] = total
    threshold = u * total  # below the total, whatever is drawn
    chosen = 0
    while chosen < n - 1 and cumulated[chosen] <= threshold:
        chosen += 1
    return chosen


@kernel
def seat_in_turn(key, openings, discount, rows, tables, bins, lists, clusters, opening, labels, visits, book):
    """Visit the agents ``visits[book[POSITION]:]``; returns the weights that the last one chose from.

    ``openings[K]`` is the prior weight of a new cluster beside K others. ``labels`` are slots, or -1 for
    agents that are in no cluster yet. Stops before an agent when all slots are taken, at that position: the
    caller makes room and calls again.

    Lists that begin like the one visited before share what is known of these stages: visits in the order of
    the lists take less time than others.
    """
    capacity, n_items = clusters.sizes.size, clusters.places.shape[0]
    n_stages = clusters.totals.shape[1]
    skips = np.empty((n_stages, capacity), np.int16)
    weights, cumulated = np.empty(capacity + 1), np.empty(capacity + 1)
    # Relative probabilities of the first stages of the list in every cluster, and in one of its own. Every so
    # many stages the largest becomes 1 again, by ``scales``; what is lost below cannot matter.
    relative = np.empty((n_stages + 1, capacity))
    alone, scales = np.empty(n_stages + 1), np.empty(n_stages)
    for k in range(capacity):
        relative[0, k] = 1.0
    alone[0] = 1.0
    before, n_known = (
        np.int64(0),
        np.int64(0),
    )  # where the list begins whose stages are known, and how many are
    code = np.empty((2, n_items), np.int64)
    stream = new_stream()
    open_stream(stream, key[0], key[1], book[POSITION], 0)
    if book[POSITION] == 0:
        fill_all_rows(rows, tables, bins, clusters, book[HIGH])
    while book[POSITION] < visits.size and book[OCCUPIED] < capacity:
        agent = visits[book[POSITION]]
        book[POSITION] += 1
        d = np.int64(lists.list_of[agent])
        start = lists.starts[d]
        t = lists.starts[d + 1] - start
        high = book[HIGH]
        own = np.int64(labels[agent])
        j = 0
        while j < min(t, n_known) and lists.items[start + j] == lists.items[before + j]:
            j += 1
        before, n_known = start, t
        while j < t:
            write_stage(lists.items, start, j, clusters.words, high, skips[j])
            scales[j] = 1.0
            if j > 0 and j % CHUNK == 0:
                largest = alone[j]
                for k in range(high):
                    if clusters.sizes[k] > 0:
                        largest = max(largest, relative[j, k])
                scales[j] = 1.0 / largest
            alone[j + 1] = scales[j] * alone[j]
            for k in range(high):
                chance = clusters.joining[k, j, bins.of_skip[skips[j, k]]]
                relative[j + 1, k] = scales[j] * relative[j, k] * chance
            j += 1
        # Prior weight × relative probability of joining.
        for k in range(high):
            weights[k] = clusters.weights[k] * relative[t, k] if clusters.sizes[k] > 0 else 0.0
        lonely = own >= 0 and clusters.sizes[own] == 1
        # Staying alone is opening a cluster; its center is one that opening it would draw.
        weights[high] = openings[book[OCCUPIED] - (1 if lonely else 0)] * alone[t]
        if own >= 0 and not lonely:
            weights[own] = clusters.weights[own] - 1.0
            if clusters.settled[own]:
                weights[own] *= relative[t, own]
            else:
                for j in range(t):
                    entry = member_entry(rows, tables, bins, clusters, own, j, skips[j, own])
                    weights[own] *= scales[j] * entry
        if lonely:
            weights[own], weights[high] = weights[high], 0.0
        chosen = draw_index(uniform(stream), weights, cumulated, high + 1)
        if chosen == own:
            continue
        if own >= 0 and bins.n_exact < tables.skips[0] + 1:
            # Proposed from tables with shared bins: accepted by a Metropolis–Hastings step.
            ratio = 0.0
            if chosen < high:
                ratio += correction(tables, bins, clusters, chosen, t, skips, False)
            if clusters.sizes[own] > 1:
                ratio -= correction(tables, bins, clusters, own, t, skips, True)
            if ratio < 0.0 and uniform(stream) >= np.exp(ratio):
                book[REFUSED] += 1
                continue
        book[MOVED] += 1
        if own >= 0:
            change(rows, tables, bins, lists, d, clusters, own, skips, -1, discount)
            if clusters.sizes[own] == 0:
                book[OCCUPIED] -= 1
        if chosen < high:
            change(rows, tables, bins, lists, d, clusters, chosen, skips, 1, discount)
            for k in (own, chosen):  # their rows are others now
                if k >= 0 and not clusters.settled[k]:
                    for j in range(t):
                        chance = clusters.joining[k, j, bins.of_skip[skips[j, k]]]
                        relative[j + 1, k] = scales[j] * relative[j, k] * chance
        else:
            n_known = 0
            # A cluster of the list alone, its center drawn given the list.
            chosen = 0
            while clusters.sizes[chosen] > 0:
                chosen += 1
            draw_center(stream, lists, d, opening, code, clusters.places, chosen)
            for j in range(n_stages):
                clusters.totals[chosen, j] = code[0, j] if j < t else 0.0
                clusters.counts[chosen, j] = 1.0 if j < t else 0.0
            for j in range(clusters.pairs.shape[1]):
                for y in range(n_items):
                    for x in range(n_items):
                        clusters.pairs[chosen, j, y, x] = 0.0
            add_pairs(lists, d, 1.0, clusters.pairs[chosen])
            draw_parameters(rows, stream, tables, lists, clusters, chosen, d)
            for j in range(n_stages):
                if j < t or rows.given or clusters.settled[chosen]:
                    fill_stage(rows, tables, bins, clusters, chosen, j)
                else:
                    clusters.log_integrals[chosen, j] = tables.prior_log_integral[j]
                    for b in range(opening.joining.shape[1]):
                        clusters.joining[chosen, j, b] = opening.joining[j, b]
            clusters.sizes[chosen] = 1
            clusters.weights[chosen] = 1.0 - discount
            book[OCCUPIED] += 1
            book[HIGH] = max(book[HIGH], chosen + 1)
        labels[agent] = chosen
    return weights
