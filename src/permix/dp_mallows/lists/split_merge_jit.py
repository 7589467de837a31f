# mypy: ignore-errors
"""Splitting a cluster of lists in two, and merging two into one.

Both change a partition and its centers at once, so a proposal has three parts, each with a known probability:
which clusters; who goes where; and the new centers, drawn stagewise (Meilă & Chen 2010, figure 2) with decays
that suit the lists. Decays are integrated out of the target.

Two ways to divide a cluster go with two ways to undo it. The smart way lets two of its lists gather the
others, as Jain & Neal (2007) launch a split: good at finding clusters that are two. The blind way divides at
random with a random share: splits made so are hardly ever taken, but the merges that undo them are whenever
two clusters are one, which a smart split could never have made by chance (Wang & Russell 2015 pair moves so).
"""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.generalized.finite_beta_jit import log_integral, theta_mode
from permix.dp_mallows.lists.center_moves_jit import (
    attract,
    center_scratch,
    find_mentions,
    greedy_center,
    stage_by_stage,
)
from permix.dp_mallows.lists.top_lists_jit import sum_skips, write_skips_of_one
from permix.kernels.jit import kernel
from permix.kernels.streams import categorical_log, integers, uniform

GATHERING_ROUNDS = 4
ENOUGH_TO_GATHER = 400
# Decays used to propose stay within these, whatever the data say.
LEAST_DECAY, MOST_DECAY = 0.01, 10.0
# Clusters to merge with are looked for with this decay at every stage.
SEARCH_DECAY = 0.5
SMART_SPLIT, SMART_MERGE, BLIND_SPLIT, BLIND_MERGE = 0, 1, 2, 3
# The share of splits among blind proposals; they are there for the merges. Of the smart ones half are splits.
BLIND_SPLITS = 0.2


@kernel
def gather(lists, side, wanted, members, multiplicity):
    """Collect the lists of agents whose ``side`` has a bit in common with ``wanted``; returns how many."""
    n = 0
    for position in range(lists.agents.size):
        agent = lists.agents[position]
        if side[agent] & wanted:
            d = lists.list_of[agent]
            if n > 0 and members[n - 1] == d:
                multiplicity[n - 1] += 1.0
            else:
                members[n] = d
                multiplicity[n] = 1.0
                n += 1
    return n


@kernel
def _plausible_decays(tables, totals, counts, theta):
    for j in range(theta.size):
        mode = theta_mode(tables.prior_a[j] + totals[j], tables.prior_c + counts[j], tables.skips[j])
        theta[j] = min(max(mode, LEAST_DECAY), MOST_DECAY)


@kernel
def _improve(stream, lists, members, multiplicity, n, tables, order, places, totals, counts, theta, scratch):
    """Find center and decays anew from the decays at hand, once."""
    greedy_center(lists, members, multiplicity, 0, n, theta, stream, order, places, scratch)
    sum_skips(lists, members, multiplicity, 0, n, places, scratch.skips, totals, counts)
    _plausible_decays(tables, totals, counts, theta)


@kernel
def summarize(stream, lists, members, multiplicity, n, tables, order, places, totals, counts, theta, scratch):
    """Set ``order`` and ``theta`` to a center and decays that suit the lists; nothing here is random."""
    for j in range(theta.size):
        theta[j] = 1.0
    for _ in range(2):
        _improve(
            stream, lists, members, multiplicity, n, tables, order, places, totals, counts, theta, scratch
        )


@kernel
def log_likelihood(lists, members, multiplicity, n, tables, places, totals, counts, scratch):
    """Return ln p(lists | center), decays integrated out."""
    sum_skips(lists, members, multiplicity, 0, n, places, scratch.skips, totals, counts)
    total = 0.0
    for j in range(totals.size):
        if counts[j] > 0.0:
            total += (
                log_integral(tables, j, tables.prior_a[j] + totals[j], tables.prior_c + counts[j])
                - tables.prior_log_integral[j]
            )
    return total


@kernel
def propose_center(
    stream, lists, members, multiplicity, n, tables, draw, order, places, totals, counts, theta, scratch
):
    """Draw a center for the lists, or with ``draw`` False take the one given; returns ln of its probability.

    ``order`` and ``places`` are the center on return, and what was proposed from is a function of the lists
    alone.
    """
    n_items = order.size
    kept = order.copy()
    summarize(stream, lists, members, multiplicity, n, tables, order, places, totals, counts, theta, scratch)
    mentions = find_mentions(lists, members, 0, n, n_items)
    attract(lists, members, multiplicity, mentions, theta, scratch)
    for item in range(n_items):
        scratch.window[item] = item
        order[item] = kept[item]
    log_normalizers = stage_by_stage(
        stream, lists, members, multiplicity, mentions, theta, n_items, 0 if draw else 1, order, scratch
    )
    for place in range(n_items):
        places[order[place]] = place
    sum_skips(lists, members, multiplicity, 0, n, places, scratch.skips, totals, counts)
    energy = 0.0
    for j in range(theta.size):
        energy += theta[j] * totals[j]
    return -energy - log_normalizers


@kernel
def _log_score(lists, d, places, theta, log_psi, skips):
    start, end = lists.starts[d], lists.starts[d + 1]
    write_skips_of_one(lists.items, start, end, places, skips)
    total = 0.0
    for j in range(end - start):
        total -= theta[j] * skips[j] + log_psi[j]
    return total


@kernel
def _log_normalizers(tables, theta, log_psi):
    for j in range(theta.size):
        log_psi[j] = math.log(-math.expm1(-(tables.skips[j] + 1) * theta[j]) / -math.expm1(-theta[j]))


@kernel
def _anchor_center(lists, d, common, order, places):
    """Set a center to list ``d`` followed by all other items in their ``common`` order."""
    n = 0
    for item in range(places.size):
        places[item] = -1
    for at in range(lists.starts[d], lists.starts[d + 1]):
        order[n] = lists.items[at]
        places[order[n]] = n
        n += 1
    for place in range(common.size):
        if places[common[place]] < 0:
            order[n] = common[place]
            places[order[n]] = n
            n += 1


@kernel
def smart_allocation(
    stream, lists, side, members, multiplicity, n, first_anchor, second_anchor, tables, draw, out, scratch
):
    """Divide the agents with a side between two anchors, or weigh a division; returns ln of its probability.

    ``members[:n]`` are the lists of these agents. Each anchor starts with its own list as center; rounds of
    giving each list to the better center and finding the centers anew follow. Then every agent but the
    anchors goes to side 1 or 2 in ``out`` with its probability given the two; with ``draw`` False, ``out`` is
    weighed as it is.
    """
    n_items, n_stages = scratch.attraction.size, tables.skips.size
    orders = np.empty((2, n_items), np.int32)
    places = np.empty((2, n_items), np.int16)
    common = np.empty(n_items, np.int32)
    theta = np.empty((2, n_stages))
    log_psi = np.empty((2, n_stages))
    totals, counts = np.empty(n_stages), np.empty(n_stages)
    chosen = np.empty(n, np.int32)
    share = np.empty(n)
    log_shares = np.zeros(2)
    advantage = np.empty(n)
    # Of many lists every so-manieth is enough to find where they gather.
    stride = max(1, n // ENOUGH_TO_GATHER)
    n_side = 0
    for entry in range(0, n, stride):
        chosen[n_side] = members[entry]
        share[n_side] = multiplicity[entry]
        n_side += 1
    summarize(
        stream, lists, chosen, share, n_side, tables, common, places[0], totals, counts, theta[0], scratch
    )
    _anchor_center(lists, lists.list_of[first_anchor], common, orders[0], places[0])
    _anchor_center(lists, lists.list_of[second_anchor], common, orders[1], places[1])
    for j in range(n_stages):
        theta[0, j] = 1.0
        theta[1, j] = 1.0
    for turn in range(GATHERING_ROUNDS + 1):
        for which in range(2):
            _log_normalizers(tables, theta[which], log_psi[which])
        for entry in range(0, n, 1 if turn == GATHERING_ROUNDS else stride):
            advantage[entry] = (
                log_shares[0]
                - log_shares[1]
                + _log_score(lists, members[entry], places[0], theta[0], log_psi[0], scratch.skips)
                - _log_score(lists, members[entry], places[1], theta[1], log_psi[1], scratch.skips)
            )
        if turn == GATHERING_ROUNDS:
            break
        for which in range(2):
            n_side = 0
            weight = 1.0
            for entry in range(0, n, stride):
                if (advantage[entry] >= 0.0) == (which == 0):
                    chosen[n_side] = members[entry]
                    share[n_side] = multiplicity[entry]
                    weight += multiplicity[entry]
                    n_side += 1
            log_shares[which] = np.log(weight)
            if n_side > 0:
                _improve(
                    stream,
                    lists,
                    chosen,
                    share,
                    n_side,
                    tables,
                    orders[which],
                    places[which],
                    totals,
                    counts,
                    theta[which],
                    scratch,
                )
    log_probability = 0.0
    entry = 0
    for position in range(lists.agents.size):
        agent = lists.agents[position]
        if side[agent] == 0:
            continue
        d = lists.list_of[agent]
        while members[entry] != d:
            entry += 1
        if agent == first_anchor:
            out[agent] = 1
        elif agent == second_anchor:
            out[agent] = 2
        else:
            log_first = -np.log1p(np.exp(-advantage[entry]))
            log_second = -np.log1p(np.exp(advantage[entry]))
            if draw:
                out[agent] = 1 if uniform(stream) < np.exp(log_first) else 2
            log_probability += log_first if out[agent] == 1 else log_second
    return log_probability


@kernel
def blind_allocation(stream, lists, side, anchor, draw, out):
    """Divide the agents with a side at random with a uniform share; returns ln of the probability.

    The anchor is on side 1. The probability of n_1 and n_2 on the sides is B(n_1, n_2 + 1).
    """
    share = uniform(stream)
    first, second = 0, 0
    for agent in range(side.size):
        if side[agent] != 0:
            if draw:
                out[agent] = 1 if agent == anchor or uniform(stream) < share else 2
            first += out[agent] == 1
            second += out[agent] == 2
    return math.lgamma(float(first)) + math.lgamma(second + 1.0) - math.lgamma(first + second + 1.0)


@kernel
def log_partner(lists, d, clusters, n_clusters, apart, partner, places, stream):
    """Choose a cluster to merge with list ``d``'s, or weigh one; returns it and ln of its probability.

    Clusters other than ``apart`` are weighed by size × exp(-0.5 Σ skips of the list). With ``partner`` -1 one
    is drawn; otherwise ``places`` is the center of the cluster weighed, which may not be in ``clusters`` yet:
    then ``partner`` is n_clusters or more, and its size that of ``clusters.sizes[partner]``.
    """
    start, end = lists.starts[d], lists.starts[d + 1]
    logs = np.full(n_clusters + 1, -np.inf)
    skips = np.empty(end - start, np.int64)
    for k in range(n_clusters + 1):
        if k == apart or (k == n_clusters and partner != n_clusters):
            continue
        if k == n_clusters:
            write_skips_of_one(lists.items, start, end, places, skips)
        else:
            write_skips_of_one(lists.items, start, end, clusters.places[:, k], skips)
        total = 0.0
        for j in range(end - start):
            total += skips[j]
        logs[k] = np.log(clusters.sizes[k]) - SEARCH_DECAY * total
    if partner < 0:
        partner = categorical_log(stream, logs, n_clusters + 1)
    largest = -np.inf
    for k in range(n_clusters + 1):
        largest = max(largest, logs[k])
    total = 0.0
    for k in range(n_clusters + 1):
        total += np.exp(logs[k] - largest)
    return partner, logs[partner] - largest - np.log(total)


@kernel
def log_split_prior(concentration, discount, n_clusters, first, second):
    """Return the log prior of ``n_clusters`` with one of them split, less that without the split."""
    return (
        np.log(concentration + discount * n_clusters)
        + math.lgamma(first - discount)
        + math.lgamma(second - discount)
        - math.lgamma(first + second - discount)
        - math.lgamma(1.0 - discount)
    )


@kernel
def _pick_other(stream, labels, cluster, anchor, size):
    """Return an agent of the cluster, uniformly among those that are not ``anchor`` (-1: among all)."""
    n = size if anchor < 0 else size - 1
    left = integers(stream, n)
    for agent in range(labels.size):
        if labels[agent] == cluster and agent != anchor:
            if left == 0:
                return agent
            left -= 1
    return -1


@kernel
def split_or_merge(stream, concentration, discount, tables, lists, clusters, labels, n_clusters, kind, climb):
    """Propose one move of this kind and take it or not; returns the number of clusters.

    With ``climb`` it is taken when it raises the log joint, which does not leave the posterior invariant. The
    slot after the last must be free. A split puts its second part there; a merge leaves its second cluster
    empty, and the caller closes the gap.
    """
    n_agents, n_items = labels.size, clusters.places.shape[0]
    n_stages = tables.skips.size
    first_anchor = integers(stream, n_agents)
    a = np.int64(labels[first_anchor])
    splitting = kind in (SMART_SPLIT, BLIND_SPLIT)
    smart = kind in (SMART_SPLIT, SMART_MERGE)
    b = n_clusters
    second_anchor = -1
    log_choice = 0.0
    nowhere = np.empty(0, np.int16)
    if splitting:
        if clusters.sizes[a] < 2:
            return n_clusters
        if smart:
            second_anchor = _pick_other(stream, labels, a, first_anchor, clusters.sizes[a])
    else:
        if n_clusters < 2:
            return n_clusters
        b, log_choice = log_partner(
            lists, lists.list_of[first_anchor], clusters, n_clusters, a, -1, nowhere, stream
        )
        if smart:
            second_anchor = _pick_other(stream, labels, b, -1, clusters.sizes[b])
    # Everybody concerned, on side 1 or 2; a split starts with all on side 1.
    side = np.zeros(n_agents, np.int8)
    for agent in range(n_agents):
        if labels[agent] == a:
            side[agent] = 1
        elif labels[agent] == b:
            side[agent] = 2
    members = np.empty(n_agents, np.int32)
    multiplicity = np.empty(n_agents)
    n_lists = gather(lists, side, 3, members, multiplicity)
    scratch = center_scratch(n_items)
    if smart:
        log_allocation = smart_allocation(
            stream,
            lists,
            side,
            members,
            multiplicity,
            n_lists,
            first_anchor,
            second_anchor,
            tables,
            splitting,
            side,
            scratch,
        )
    else:
        log_allocation = blind_allocation(stream, lists, side, first_anchor, splitting, side)
    sizes = np.zeros(3, np.int64)
    for agent in range(n_agents):
        sizes[side[agent]] += 1
    if sizes[1] == 0 or sizes[2] == 0:
        return n_clusters  # everybody on one side: nothing was proposed
    totals, counts, theta = np.empty((3, n_stages)), np.empty((3, n_stages)), np.empty(n_stages)
    order = np.empty((3, n_items), np.int32)
    places = np.empty((3, n_items), np.int16)
    for item in range(n_items):
        places[0, item] = clusters.places[item, a]
        order[0, places[0, item]] = item
        places[1, item] = places[0, item]
        order[1, places[1, item]] = item
        places[2, item] = clusters.places[item, b] if not splitting else places[0, item]
        order[2, places[2, item]] = item
    # The whole (0) and its parts (1, 2): ln p(lists | center) - ln q(center), those that exist weighed as
    # they are.
    log_ratio = log_split_prior(
        concentration, discount, n_clusters - (not splitting), float(sizes[1]), float(sizes[2])
    ) - math.lgamma(n_items + 1.0)
    part_members = np.empty(n_lists, np.int32)
    part_multiplicity = np.empty(n_lists)
    for part in range(3):
        if part > 0:
            n_part = gather(lists, side, part, part_members, part_multiplicity)
        else:
            n_part = n_lists
            for entry in range(n_lists):
                part_members[entry] = members[entry]
                part_multiplicity[entry] = multiplicity[entry]
        log_center = propose_center(
            stream,
            lists,
            part_members,
            part_multiplicity,
            n_part,
            tables,
            splitting == (part > 0),
            order[part],
            places[part],
            totals[part],
            counts[part],
            theta,
            scratch,
        )
        value = log_likelihood(
            lists,
            part_members,
            part_multiplicity,
            n_part,
            tables,
            places[part],
            totals[part],
            counts[part],
            scratch,
        )
        if climb:
            log_center = 0.0
        log_ratio += (value - log_center) * (1.0 if part > 0 else -1.0)
    # Probability of choosing the merge that undoes the split, less that of choosing and dividing as it does.
    if splitting and not climb:
        clusters.sizes[b] = sizes[2]
        _, log_choice = log_partner(
            lists, lists.list_of[first_anchor], clusters, n_clusters, a, n_clusters, places[2], stream
        )
        clusters.sizes[b] = 0
    if not climb:
        log_ratio += log_choice - log_allocation
        if smart:
            # The second anchor: any member of its cluster, or any other member of the whole.
            log_ratio += np.log((sizes[1] + sizes[2] - 1.0) / sizes[2])
        else:
            log_ratio += np.log((1.0 - BLIND_SPLITS) / BLIND_SPLITS)
    if not splitting:
        log_ratio = -log_ratio
    if log_ratio < 0.0 and (climb or uniform(stream) >= np.exp(log_ratio)):
        return n_clusters
    if splitting:
        for part in range(1, 3):
            _write_cluster(clusters, a if part == 1 else b, places[part], totals[part], counts[part])
        clusters.sizes[a] = sizes[1]
        clusters.sizes[b] = sizes[2]
        for agent in range(n_agents):
            if side[agent] == 2:
                labels[agent] = b
        return n_clusters + 1
    _write_cluster(clusters, a, places[0], totals[0], counts[0])
    clusters.sizes[a] = sizes[1] + sizes[2]
    clusters.sizes[b] = 0
    for agent in range(n_agents):
        if side[agent] == 2:
            labels[agent] = a
    return n_clusters - 1


@kernel
def _write_cluster(clusters, k, places, totals, counts):
    for item in range(places.size):
        clusters.places[item, k] = places[item]
    for j in range(totals.size):
        clusters.totals[k, j] = totals[j]
        clusters.counts[k, j] = counts[j]
