# mypy: ignore-errors
"""A new partition of lists, with centers, from segments of an ordering, compiled."""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.generalized.finite_beta_jit import log_integral
from permix.dp_mallows.lists.center_moves_jit import center_scratch
from permix.dp_mallows.lists.seating_jit import draw_center
from permix.dp_mallows.lists.split_merge_jit import propose_center
from permix.families.contract_jit import clear_members, extend
from permix.kernels.jit import kernel

# What a proposal weighs, after less before: ln f, ln r and ln B.
TARGET, CENTERS, SURROGATE = 0, 1, 2


@kernel
def choose_clusters(rng, labels, sizes, n_clusters, share, large, agents, own_labels, own_sizes):
    """Choose clusters independently; returns how many, and how many agents they have.

    ``agents`` gets their members, ``own_labels`` which of the chosen each member is in, and ``own_sizes`` the
    sizes.
    """
    number = np.full(n_clusters, -1)
    n_chosen = 0
    for k in range(n_clusters):
        chance = share * min(1.0, large / sizes[k])
        if chance >= 1.0 or rng.random() < chance:
            number[k] = n_chosen
            own_sizes[n_chosen] = sizes[k]
            n_chosen += 1
    n = 0
    for agent in range(labels.shape[0]):
        if number[labels[agent]] >= 0:
            agents[n] = agent
            own_labels[n] = number[labels[agent]]
            n += 1
    return n_chosen, n


@kernel
def log_of_segment(surrogate, data, order, first, last):
    """Return what the surrogate says of a segment as one cluster; uses slot 0, which is empty between."""
    total = 0.0
    out = np.empty(1)
    in_use = np.zeros(1, np.int64)
    for place in range(first, last):
        extend(surrogate, data, order[place], in_use, 1, out)
        total += out[0]
    clear_members(surrogate, data, order, first, last, 0)
    return total


@kernel
def segment_lists(lists, order, first, last, members, multiplicity):
    """Collect the lists of a segment, each once, in the order of their numbers; returns how many."""
    numbers = np.empty(last - first, np.int32)
    for place in range(first, last):
        numbers[place - first] = lists.list_of[order[place]]
    numbers.sort()
    n = 0
    for d in numbers:
        if n > 0 and members[n - 1] == d:
            multiplicity[n - 1] += 1.0
        else:
            members[n] = d
            multiplicity[n] = 1.0
            n += 1
    return n


@kernel
def log_joint_of(tables, n_items, totals, counts):
    """Return ln f = ln p(lists, center) from sums over the lists, decays integrated out."""
    total = -math.lgamma(n_items + 1.0)
    for j in range(totals.size):
        if counts[j] > 0.0:
            total += (
                log_integral(tables, j, tables.prior_a[j] + totals[j], tables.prior_c + counts[j])
                - tables.prior_log_integral[j]
            )
    return total


@kernel
def weigh_center(
    stream, lists, tables, opening, order, first, last, draw, center, places, totals, counts, scratch
):
    """Draw a center for a segment, or with ``draw`` False take the one given; returns ln f and ln r.

    ``places``, ``totals`` and ``counts`` are right for the center on return, and have to be before where one
    is given. A list by itself gets a center from its true law (lemma 7): then f / r = p(list) = (n - t)!/n!
    whatever the center.
    """
    n_items = center.size
    if last - first == 1:
        d = lists.list_of[order[first]]
        start, end = lists.starts[d], lists.starts[d + 1]
        if draw:
            code = np.empty(n_items, np.int64)
            column = np.empty((n_items, 1), np.int16)
            draw_center(stream, lists.items, start, end, opening, code, scratch.skips, column, 0)
            for item in range(n_items):
                places[item] = column[item, 0]
            for j in range(totals.size):
                totals[j] = code[j] if j < end - start else 0.0
                counts[j] = 1.0 if j < end - start else 0.0
        log_joint = log_joint_of(tables, n_items, totals, counts)
        return log_joint, log_joint + math.lgamma(n_items + 1.0) - math.lgamma(n_items - (end - start) + 1.0)
    members = np.empty(last - first, np.int32)
    multiplicity = np.empty(last - first)
    n = segment_lists(lists, order, first, last, members, multiplicity)
    theta = np.empty(totals.size)
    log_proposal = propose_center(
        stream,
        lists,
        members,
        multiplicity,
        n,
        tables,
        draw,
        center,
        places,
        totals,
        counts,
        theta,
        scratch,
    )
    return log_joint_of(tables, n_items, totals, counts), log_proposal


@kernel
def weigh_segments(
    stream,
    lists,
    tables,
    opening,
    clusters,
    surrogate,
    order,
    labels,
    firsts,
    n_chosen,
    bounds,
    n_segments,
    kept,
    places,
    totals,
    counts,
    weights,
):
    """Draw centers for segments that are no clusters yet, and weigh these against clusters that are gone.

    ``firsts`` are where the ``n_chosen`` present clusters begin, ``labels`` the clusters of those in the
    ordering, ``bounds`` where the proposed segments end, last first. ``kept[s]`` says whether segment s is a
    cluster already; if not, its new center and sums are in row s of the three that follow.
    """
    n_items, n_stages = places.shape[1], totals.shape[1]
    scratch = center_scratch(n_items)
    center = np.empty(n_items, np.int32)
    gone = np.ones(n_chosen, np.bool_)
    position = n_chosen - 1
    for segment in range(n_segments):
        last = bounds[segment]
        first = bounds[segment + 1] if segment + 1 < n_segments else 0
        while firsts[position] >= last:
            position -= 1
        kept[segment] = firsts[position] == first and firsts[position + 1] == last
        if kept[segment]:
            gone[position] = False
            continue
        for item in range(n_items):
            center[item] = item
        log_joint, log_proposal = weigh_center(
            stream,
            lists,
            tables,
            opening,
            order,
            first,
            last,
            True,
            center,
            places[segment],
            totals[segment],
            counts[segment],
            scratch,
        )
        weights[TARGET] += log_joint
        weights[CENTERS] += log_proposal
        weights[SURROGATE] += log_of_segment(surrogate, lists, order, first, last)
    old_places = np.empty(n_items, np.int16)
    old_totals, old_counts = np.empty(n_stages), np.empty(n_stages)
    for position in range(n_chosen):
        if not gone[position]:
            continue
        first, last = firsts[position], firsts[position + 1]
        k = labels[order[first]]
        for item in range(n_items):
            old_places[item] = clusters.places[item, k]
            center[old_places[item]] = item
        for j in range(n_stages):
            old_totals[j] = clusters.totals[k, j]
            old_counts[j] = clusters.counts[k, j]
        log_joint, log_proposal = weigh_center(
            stream,
            lists,
            tables,
            opening,
            order,
            first,
            last,
            False,
            center,
            old_places,
            old_totals,
            old_counts,
            scratch,
        )
        weights[TARGET] -= log_joint
        weights[CENTERS] -= log_proposal
        weights[SURROGATE] -= log_of_segment(surrogate, lists, order, first, last)
