# mypy: ignore-errors
"""Work on all clusters of a partition of lists: their rows, likelihoods and centers."""

from __future__ import annotations

import numpy as np

from permix.distributions.generalized.finite_beta_jit import log_integral
from permix.dp_mallows.lists.center_moves_jit import center_scratch, draw_decays, greedy_center, update_center
from permix.dp_mallows.lists.seating_jit import draw_center, fill_stage
from permix.dp_mallows.lists.top_lists_jit import sum_skips
from permix.kernels.jit import kernel
from permix.kernels.streams import new_stream, open_stream


@kernel
def fill_all_rows(rows, tables, bins, clusters, n_clusters):
    """Fill the rows of every stage of every cluster."""
    for k in range(n_clusters):
        for stage in range(clusters.totals.shape[1]):
            fill_stage(rows, tables, bins, clusters, k, stage)


@kernel
def log_likelihoods(tables, clusters, n_clusters, out):
    """Write ln p(lists of cluster k | its center), decays integrated out (equation 15 with its constant)."""
    for k in range(n_clusters):
        total = 0.0
        for stage in range(clusters.totals.shape[1]):
            if clusters.counts[k, stage] > 0.0:
                total += (
                    log_integral(
                        tables,
                        stage,
                        tables.prior_a[stage] + clusters.totals[k, stage],
                        tables.prior_c + clusters.counts[k, stage],
                    )
                    - tables.prior_log_integral[stage]
                )
        out[k] = total


@kernel
def start_centers(lists, starts, members, multiplicity, clusters, n_clusters):
    """Set every center to the best item at every stage, given decays of 1."""
    n_items = clusters.places.shape[0]
    scratch = center_scratch(n_items)
    order = np.empty(n_items, np.int32)
    places = np.empty(n_items, np.int16)
    theta = np.ones(clusters.theta.shape[1])
    stream = new_stream()
    open_stream(stream, 0, 0, 0, 0)
    for k in range(n_clusters):
        greedy_center(
            lists, members, multiplicity, starts[k], starts[k + 1], theta, stream, order, places, scratch
        )
        for item in range(n_items):
            clusters.places[item, k] = places[item]
        for stage in range(theta.size):
            clusters.theta[k, stage] = 1.0


@kernel
def draw_some_decays(key, tables, clusters, which, theta):
    """Draw the decays of these clusters given their centers into the columns of ``theta``."""
    stream = new_stream()
    drawn = np.empty(theta.shape[0])
    for column in range(which.size):
        k = which[column]
        open_stream(stream, key[0], key[1], 0, k)
        draw_decays(stream, tables, clusters.totals[k], clusters.counts[k], drawn)
        for stage in range(drawn.size):
            theta[stage, column] = drawn[stage]


@kernel
def read_center(clusters, k, order, places):
    """Copy the center of cluster ``k``, both ways."""
    for item in range(places.size):
        places[item] = clusters.places[item, k]
        order[places[item]] = item


@kernel
def center_of_one(stream, lists, d, opening, clusters, k, code, taken):
    """Draw the center of a cluster of list ``d`` alone, by its known distribution (lemma 7); set sums."""
    first, last = lists.starts[d], lists.starts[d + 1]
    draw_center(stream, lists.items, first, last, opening, code, taken, clusters.places, k)
    for j in range(clusters.totals.shape[1]):
        reached = j < last - first
        clusters.totals[k, j] = code[j] if reached else 0.0
        clusters.counts[k, j] = 1.0 if reached else 0.0


@kernel
def update_centers(
    lists, starts, members, multiplicity, tables, opening, clusters, key, n_rounds, first, last, taken
):
    """Move the centers of clusters ``first`` to ``last``, each from its own stream, and leave sums right.

    Without rounds only the sums are computed.
    """
    n_items = clusters.places.shape[0]
    scratch = center_scratch(n_items)
    order = np.empty(n_items, np.int32)
    places = np.empty(n_items, np.int16)
    code = np.empty(n_items, np.int64)
    stream = new_stream()
    for k in range(first, last):
        read_center(clusters, k, order, places)
        totals, counts, theta = clusters.totals[k], clusters.counts[k], clusters.theta[k]
        begin, end = starts[k], starts[k + 1]
        if n_rounds == 0:
            sum_skips(lists, members, multiplicity, begin, end, places, scratch.skips, totals, counts)
            continue
        open_stream(stream, key[0], key[1], 0, k)
        if end - begin == 1 and multiplicity[begin] == 1.0:
            center_of_one(stream, lists, members[begin], opening, clusters, k, code, scratch.skips)
            draw_decays(stream, tables, totals, counts, theta)
            continue
        taken[k] = update_center(
            stream,
            lists,
            members,
            multiplicity,
            begin,
            end,
            tables,
            n_rounds,
            order,
            places,
            totals,
            counts,
            theta,
            scratch,
        )
        for item in range(n_items):
            clusters.places[item, k] = places[item]
