# mypy: ignore-errors
"""Seating lists in clusters one by one, the decays of the clusters integrated out.

Given everything else, a list joins cluster k with weight (size - discount) × Π_j B̃eta(a + s_j, c +
2)/B̃eta(a, c + 1) (Meilă & Chen 2010, equation 17 with lemma 1), and opens one with weight (concentration +
discount × clusters) (n - t)!/n!; the center of a new cluster is then drawn given the list, exactly (lemma 7
with B̃eta). All probabilities are relative to choosing items at random, see
:mod:`permix.dp_mallows.lists.predictive_rows_jit`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.distributions.generalized.finite_beta_jit import log_integral
from permix.dp_mallows.lists.predictive_rows_jit import RowScratch, fill_finite, last_own, own_relative
from permix.dp_mallows.lists.top_lists_jit import write_skips
from permix.kernels.fenwick import take_in_turn
from permix.kernels.jit import implements, kernel
from permix.kernels.streams import categorical_log, integers, uniform

CHUNK = 8  # this many table entries are multiplied before a logarithm is taken


class ListClusters(NamedTuple):
    """Clusters in slots; a slot of size 0 is free. Sums over lists are additive over parts of the data."""

    sizes: np.ndarray  # int64 (slots,)
    log_sizes: np.ndarray  # (slots,): ln(size - discount), minus infinity for free slots
    places: np.ndarray  # int16 (items, slots): place of the item in the slot's center
    totals: np.ndarray  # (slots, stages): skips of the members, summed
    counts: np.ndarray  # (slots, stages): members that reach the stage
    log_integrals: np.ndarray  # (slots, stages)
    joining: np.ndarray  # (slots, stages, bins)
    own: np.ndarray  # (slots, stages, exact bins)
    theta: np.ndarray  # (slots, stages), for decays that are not integrated out


class Opening(NamedTuple):
    """A new cluster: rows of its empty stages, and the distribution of its center given the first list."""

    joining: np.ndarray  # (stages, bins)
    cumulative: np.ndarray  # (stages, items): P(first list's skip <= v)


class SeatingScratch(NamedTuple):
    """Room for one list under all clusters."""

    found: np.ndarray  # int16 (stages, slots)
    skips: np.ndarray  # int16 (stages, slots)
    products: np.ndarray  # (slots,)
    logs: np.ndarray  # (slots + 2,)
    code: np.ndarray  # int64 (items,)
    taken: np.ndarray  # int64 (items,)


# Positions in the book of a sweep.
OCCUPIED, HIGH, MOVED, REFUSED = 0, 1, 2, 3


# What rows are made of is chosen by the type of ``rows``: RowScratch is exact, and those of the published
# samplers are in published_jit, which the exact sampler neither imports nor compiles.


def _undefined(name):
    raise NotImplementedError(f"{name} is implemented by the type of rows; call it from compiled code")


def fill_stage(rows, tables, bins, clusters, k, stage):
    """Recompute the rows of one stage of cluster ``k`` from its sums."""
    _undefined("fill_stage")


def member_entry(rows, tables, bins, clusters, k, stage, skip):
    """Return the relative probability of the skip of a member of ``k`` given the other members."""
    _undefined("member_entry")


def open_stages(rows, stream, tables, bins, lists, clusters, opening, k, d, code):
    """Set sums and rows of the new cluster ``k`` of list ``d``, whose skips are ``code``."""
    _undefined("open_stages")


@implements(fill_stage, RowScratch, "rows")
def _fill_stage(rows, tables, bins, clusters, k, stage):
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


@implements(open_stages, RowScratch, "rows")
def _open_stages(rows, stream, tables, bins, lists, clusters, opening, k, d, code):
    open_by_skips(rows, tables, bins, clusters, opening, k, lists.starts[d + 1] - lists.starts[d], code)


@kernel
def open_by_skips(rows, tables, bins, clusters, opening, k, t, code):
    """Set sums and rows of a new cluster of one list with these skips, decays integrated out."""
    for j in range(clusters.totals.shape[1]):
        if j < t:
            clusters.totals[k, j] = code[j]
            clusters.counts[k, j] = 1.0
            fill_stage(rows, tables, bins, clusters, k, j)
        else:
            clusters.totals[k, j] = 0.0
            clusters.counts[k, j] = 0.0
            clusters.log_integrals[k, j] = tables.prior_log_integral[j]
            for b in range(opening.joining.shape[1]):
                clusters.joining[k, j, b] = opening.joining[j, b]


@kernel
def write_opening(tables, bins, opening, rows):
    """Fill the distribution of new clusters."""
    n_stages, n_items = opening.cumulative.shape
    own = np.empty(1)
    for stage in range(n_stages):
        m = tables.skips[stage]
        fill_finite(tables, bins, stage, 0.0, 0.0, opening.joining[stage], own, rows)
        total = 0.0
        for v in range(m + 1):
            total += np.exp(
                log_integral(tables, stage, tables.prior_a[stage] + v, tables.prior_c + 1.0)
                - tables.prior_log_integral[stage]
            )
            opening.cumulative[stage, v] = total
        for v in range(n_items):
            opening.cumulative[stage, v] = opening.cumulative[stage, v] / total if v < m else 1.0


@kernel
def draw_center(stream, items, first, last, opening, code, taken, places, k):
    """Draw a center given one list, independently stage by stage, into column ``k`` of ``places``.

    The list's j-th item goes to the V_j-th place that is free (figure 4); the skips of the list are then V_j
    and are left in ``code``. Items not in the list fill the other places at random.
    """
    n_items = places.shape[0]
    t = last - first
    for j in range(t):
        code[j] = np.searchsorted(opening.cumulative[j], uniform(stream), side="right")
        code[j] = min(code[j], n_items - 1 - j)
    take_in_turn(code, t, n_items, False, taken)
    for item in range(n_items):
        places[item, k] = -1
    for j in range(t):
        places[items[first + j], k] = taken[j]
    # Free places, in taken[t:], are dealt to the other items at random.
    used = np.zeros(n_items, np.bool_)
    for j in range(t):
        used[taken[j]] = True
    n_free = 0
    for place in range(n_items):
        if not used[place]:
            taken[t + n_free] = place
            n_free += 1
    for item in range(n_items):
        if places[item, k] < 0:
            chosen = t + integers(stream, n_free)
            places[item, k] = taken[chosen]
            n_free -= 1
            taken[chosen] = taken[t + n_free]


@kernel
def log_relative_weights(bins, lists, clusters, d, high, scratch):
    """Write ln(prior weight × relative probability of joining) of list ``d`` to ``scratch.logs[:high]``."""
    first, last = lists.starts[d], lists.starts[d + 1]
    write_skips(lists.items, first, last, clusters.places, high, scratch.found, scratch.skips)
    t = last - first
    for k in range(high):
        scratch.logs[k] = clusters.log_sizes[k]
    for chunk in range(0, t, CHUNK):
        for k in range(high):
            scratch.products[k] = 1.0
        for j in range(chunk, min(chunk + CHUNK, t)):
            for k in range(high):
                scratch.products[k] *= clusters.joining[k, j, bins.of_skip[scratch.skips[j, k]]]
        for k in range(high):
            scratch.logs[k] += np.log(scratch.products[k])
    return t


@kernel
def log_own(rows, tables, bins, clusters, k, t, skips):
    """Return ln of the relative probability of a member of ``k`` with these skips given the other members."""
    total = 0.0
    product = 1.0
    for j in range(t):
        product *= member_entry(rows, tables, bins, clusters, k, j, skips[j, k])
        if j % CHUNK == CHUNK - 1:
            total += np.log(product)
            product = 1.0
    return total + np.log(product)


@kernel
def correction(tables, bins, clusters, k, t, skips, is_member):
    """Return ln(exact / tabulated) probability of a list in cluster ``k``; only shared bins differ."""
    total = 0.0
    for j in range(t):
        skip = skips[j, k]
        if skip >= bins.n_exact:
            middle = bins.middle[bins.of_skip[skip]]
            a = tables.prior_a[j] + clusters.totals[k, j]
            c = tables.prior_c + clusters.counts[k, j]
            if is_member:
                a -= skip
                c -= 1.0
            m = tables.skips[j]
            exact = log_integral(tables, j, a + skip, c + 1.0)
            whole = clusters.log_integrals[k, j]
            if is_member:
                whole = log_integral(tables, j, a, c)
            tabulated = log_integral(tables, j, a + middle, c + 1.0)
            floor = np.log(1e-36) - np.log(m + 1.0)
            total += exact - whole - max(tabulated - whole, floor)
    return total


@kernel
def open_cluster(stream, rows, tables, bins, lists, clusters, opening, k, d, discount, scratch):
    """Make slot ``k`` a cluster of list ``d`` alone, its center drawn given the list."""
    first, last = lists.starts[d], lists.starts[d + 1]
    draw_center(stream, lists.items, first, last, opening, scratch.code, scratch.taken, clusters.places, k)
    clusters.sizes[k] = 1
    clusters.log_sizes[k] = np.log(1.0 - discount)
    open_stages(rows, stream, tables, bins, lists, clusters, opening, k, d, scratch.code)


@kernel
def change(rows, tables, bins, clusters, k, t, skips, sign, discount):
    """Add (sign 1) or take out (-1) a list with these skips."""
    clusters.sizes[k] += sign
    if clusters.sizes[k] == 0:
        clusters.log_sizes[k] = -np.inf
        return
    clusters.log_sizes[k] = np.log(clusters.sizes[k] - discount)
    for j in range(t):
        clusters.totals[k, j] += sign * skips[j, k]
        clusters.counts[k, j] += sign
        fill_stage(rows, tables, bins, clusters, k, j)


@kernel
def _log_opening(concentration, discount, n_others):
    """Return ln of the prior weight of a new cluster beside others; with none it is the only choice."""
    if n_others == 0:  # here the concentration of a Pitman–Yor process may be negative
        return 0.0
    return np.log(concentration + discount * n_others)


@kernel
def seat_in_turn(
    stream,
    concentration,
    discount,
    rows,
    tables,
    bins,
    lists,
    clusters,
    opening,
    labels,
    visits,
    position,
    book,
    scratch,
):
    """Visit the agents ``visits[position:]``; returns the next position, the end when all were visited.

    ``labels`` are slots, or -1 for agents that are in no cluster yet. Stops before an agent when all slots
    are taken: the caller makes room and calls again.
    """
    capacity = clusters.sizes.size
    for at in range(position, visits.size):
        agent = visits[at]
        d = lists.list_of[agent]
        if book[OCCUPIED] == capacity:
            return at
        high = book[HIGH]
        own = np.int64(labels[agent])
        t = log_relative_weights(bins, lists, clusters, d, high, scratch)
        logs = scratch.logs
        logs[high] = _log_opening(concentration, discount, book[OCCUPIED])
        if own >= 0:
            if clusters.sizes[own] == 1:
                # Alone: staying is opening a cluster; its center is one that opening it would draw.
                logs[own] = _log_opening(concentration, discount, book[OCCUPIED] - 1)
                logs[high] = -np.inf
            else:
                logs[own] = np.log(clusters.sizes[own] - 1.0 - discount) + log_own(
                    rows, tables, bins, clusters, own, t, scratch.skips
                )
        chosen = categorical_log(stream, logs, high + 1)
        if chosen == own:
            continue
        if own >= 0 and bins.n_exact < tables.skips[0] + 1:
            # Proposed from tables with shared bins: accepted by a Metropolis–Hastings step.
            ratio = 0.0
            if chosen < high:
                ratio += correction(tables, bins, clusters, chosen, t, scratch.skips, False)
            if clusters.sizes[own] > 1:
                ratio -= correction(tables, bins, clusters, own, t, scratch.skips, True)
            if ratio < 0.0 and uniform(stream) >= np.exp(ratio):
                book[REFUSED] += 1
                continue
        book[MOVED] += 1
        if own >= 0:
            change(rows, tables, bins, clusters, own, t, scratch.skips, -1, discount)
            if clusters.sizes[own] == 0:
                book[OCCUPIED] -= 1
        if chosen == high:
            chosen = 0
            while clusters.sizes[chosen] > 0:
                chosen += 1
            open_cluster(stream, rows, tables, bins, lists, clusters, opening, chosen, d, discount, scratch)
            book[OCCUPIED] += 1
            book[HIGH] = max(book[HIGH], chosen + 1)
        else:
            change(rows, tables, bins, clusters, chosen, t, scratch.skips, 1, discount)
        labels[agent] = chosen
    return visits.size
