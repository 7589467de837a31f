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

from permix.dp_mallows.lists.center_moves_jit import attract, improve, stage_by_stage
from permix.dp_mallows.lists.clusters_jit import log_likelihoods
from permix.dp_mallows.lists.pair_counts_jit import source_of, total_skips
from permix.dp_mallows.lists.top_lists_jit import Members, skip_at, write_skips
from permix.kernels.jit import kernel
from permix.kernels.streams import categorical_log, integers, new_stream, open_stream, uniform

GATHERING_ROUNDS = 4
ENOUGH_TO_GATHER = 400
# Clusters to merge with are looked for with this decay at every stage.
SEARCH_DECAY = 0.5
SMART_SPLIT, SMART_MERGE, BLIND_SPLIT, BLIND_MERGE = 0, 1, 2, 3
# The share of splits among blind proposals; they are there for the merges. Of the smart ones half are splits.
BLIND_SPLITS = 0.2


@kernel
def gather(lists, side, wanted, members):
    """Collect the lists of agents whose ``side`` has a bit in common with ``wanted``; returns how many."""
    n = 0
    for position in range(lists.agents.size):
        agent = lists.agents[position]
        if side[agent] & wanted:
            d = lists.list_of[agent]
            if n > 0 and members.lists[n - 1] == d:
                members.times[n - 1] += 1.0
            else:
                members.lists[n] = d
                members.times[n] = 1.0
                n += 1
    return n


@kernel
def propose_center(stream, source, tables, draw, order, places, totals, counts):
    """Draw a center for cluster 0, or, ``draw`` False, take the one given; returns ln of its probability.

    ``order`` and ``places`` are the center on return, ``totals`` and ``counts`` its sums over the lists; what
    was proposed from is a function of the lists alone.
    """
    kept = np.empty(order.size, np.int32)
    theta = np.empty(totals.size)
    for j in range(theta.size):
        theta[j] = 1.0
    for place in range(order.size):
        kept[place] = order[place]
    mentions = improve(source, 0, tables, 2, stream, order, places, totals, counts, theta)
    attract(mentions, theta)
    for place in range(order.size):
        order[place] = kept[place]
    log_normalizers = stage_by_stage(stream, mentions, theta, order.size, 0 if draw else 1, order)
    for place in range(order.size):
        places[order[place]] = place
    total_skips(source, 0, places, totals, counts)
    energy = 0.0
    for j in range(theta.size):
        energy += theta[j] * totals[j]
    return -energy - log_normalizers


@kernel
def smart_allocation(stream, source, lists, side, members, n, anchors, tables, n_items, draw, out):
    """Divide the agents with a side between two anchors, or weigh a division; returns ln of its probability.

    The first ``n`` members are the lists of these agents. Each anchor starts with its own list as center;
    rounds of giving each list to the better center and finding the centers anew follow. Then every agent but
    the anchors goes to side 1 or 2 in ``out`` with its probability given the two; with ``draw`` False,
    ``out`` is weighed as it is.
    """
    n_stages = tables.skips.size
    orders = np.empty((2, n_items), np.int32)
    places = np.empty((2, n_items), np.int16)
    theta, log_psi, sums = np.empty((2, n_stages)), np.empty((2, n_stages)), np.empty((2, n_stages))
    for which in range(2):
        for j in range(n_stages):
            theta[which, j] = 1.0
    chosen = Members(np.empty(n, np.int32), np.empty(n))
    log_shares, scores = np.empty(2), np.empty(2)
    log_shares[0], log_shares[1] = 0.0, 0.0
    advantage = np.empty(n)
    # Of many lists every so-manieth is enough to find where they gather.
    stride = max(1, n // ENOUGH_TO_GATHER)
    for turn in range(-1, GATHERING_ROUNDS + 1):
        if turn >= 0:
            for which in range(2):
                for j in range(n_stages):
                    decay = theta[which, j]
                    log_psi[which, j] = math.log(
                        -math.expm1(-(tables.skips[j] + 1) * decay) / -math.expm1(-decay)
                    )
            for entry in range(0, n, 1 if turn == GATHERING_ROUNDS else stride):
                d = members.lists[entry]
                start = lists.starts[d]
                for which in range(2):
                    scores[which] = 0.0
                    for j in range(lists.starts[d + 1] - start):
                        skip = skip_at(lists.items, start, j, places[which])
                        scores[which] -= theta[which, j] * skip + log_psi[which, j]
                advantage[entry] = log_shares[0] - log_shares[1] + scores[0] - scores[1]
        if turn == GATHERING_ROUNDS:
            break
        # Before the first turn all lists are taken together.
        for which in range(2 if turn >= 0 else 1):
            n_side = 0
            weight = 1.0
            for entry in range(0, n, stride):
                if turn < 0 or (advantage[entry] >= 0.0) == (which == 0):
                    chosen.lists[n_side] = members.lists[entry]
                    chosen.times[n_side] = members.times[entry]
                    weight += members.times[entry]
                    n_side += 1
            if turn >= 0:
                log_shares[which] = np.log(weight)
            if n_side > 0:
                improve(
                    source_of(source, lists, chosen, n_side, n_stages, n_items),
                    0,
                    tables,
                    1 if turn >= 0 else 2,
                    stream,
                    orders[which],
                    places[which],
                    sums[0],
                    sums[1],
                    theta[which],
                )
        if turn < 0:
            # A center begins with its anchor's list; all other items follow in their common order.
            for which in range(2):
                for j in range(n_stages):
                    theta[which, j] = 1.0
                for item in range(n_items):
                    places[which, item] = -1
                rank = 0
                d = lists.list_of[anchors[which]]
                start, end = lists.starts[d], lists.starts[d + 1]
                for at in range(start, end + n_items):
                    item = lists.items[at] if at < end else orders[0, at - end]
                    if places[which, item] < 0:
                        places[which, item] = rank
                        rank += 1
    log_probability = 0.0
    entry = 0
    for position in range(lists.agents.size):
        agent = lists.agents[position]
        if side[agent] == 0:
            continue
        d = lists.list_of[agent]
        while members.lists[entry] != d:
            entry += 1
        if agent == anchors[0]:
            out[agent] = 1
        elif agent == anchors[1]:
            out[agent] = 2
        else:
            log_first = -np.log1p(np.exp(-advantage[entry]))
            log_second = -np.log1p(np.exp(advantage[entry]))
            if draw:
                out[agent] = 1 if uniform(stream) < np.exp(log_first) else 2
            log_probability += log_first if out[agent] == 1 else log_second
    return log_probability


@kernel
def blind_allocation(stream, side, anchor, draw, out):
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
def log_partner(lists, d, clusters, n_clusters, apart, partner, stream):
    """Choose a cluster to merge with list ``d``'s, or weigh one; returns it and ln of its probability.

    Clusters other than ``apart`` are weighed by size × exp(-0.5 Σ skips of the list). With ``partner`` -1 one
    is drawn from the first ``n_clusters``.
    """
    start, end = lists.starts[d], lists.starts[d + 1]
    skips = np.empty((end - start, clusters.places.shape[1]), np.int16)
    write_skips(lists.items, start, end, clusters.words, n_clusters, skips)
    logs = np.empty(n_clusters)
    largest = -np.inf
    for k in range(n_clusters):
        total = 0.0
        for j in range(end - start):
            total += skips[j, k]
        logs[k] = np.log(clusters.sizes[k]) - SEARCH_DECAY * total if k != apart else -np.inf
        largest = max(largest, logs[k])
    if partner < 0:
        partner = categorical_log(stream, logs, n_clusters)
    total = 0.0
    for k in range(n_clusters):
        total += np.exp(logs[k] - largest)
    return partner, logs[partner] - largest - np.log(total)


@kernel
def log_split_prior(openings, discount, n_clusters, first, second):
    """Return the log prior of ``n_clusters`` with one of them split, less that without the split."""
    return (
        np.log(openings[n_clusters])
        + math.lgamma(first - discount)
        + math.lgamma(second - discount)
        - math.lgamma(first + second - discount)
        - math.lgamma(1.0 - discount)
    )


@kernel
def split_or_merge(key, openings, discount, tables, source, lists, clusters, labels, n_clusters, kind):
    """Propose one move of this kind and take it or not; returns the number of clusters.

    The slot after the last must be free. A split puts its second part there; a merge leaves its second
    cluster empty; the caller closes the gap and counts pairs, where ``source`` is of that type, anew.
    """
    stream = new_stream()
    open_stream(stream, key[0], key[1], 0, 0)
    n_agents, n_items = labels.size, clusters.places.shape[0]
    anchors = np.empty(2, np.int64)
    anchors[0], anchors[1] = integers(stream, n_agents), -1
    a = np.int64(labels[anchors[0]])
    first_list = lists.list_of[anchors[0]]
    splitting = kind in (SMART_SPLIT, BLIND_SPLIT)
    smart = kind in (SMART_SPLIT, SMART_MERGE)
    b = n_clusters
    log_choice = 0.0
    if clusters.sizes[a] < 2 if splitting else n_clusters < 2:
        return n_clusters
    if not splitting:
        b, log_choice = log_partner(lists, first_list, clusters, n_clusters, a, -1, stream)
    if smart:
        # Any other member of the cluster to split, or any member of the one to merge with.
        left = integers(stream, clusters.sizes[a] - 1 if splitting else clusters.sizes[b])
        for agent in range(n_agents):
            if labels[agent] == (a if splitting else b) and agent != anchors[0]:
                if left == 0:
                    anchors[1] = agent
                    break
                left -= 1
    # Everybody concerned, on side 1 or 2; a split starts with all on side 1.
    side = np.empty(n_agents, np.int64)
    for agent in range(n_agents):
        side[agent] = 1 if labels[agent] == a else 2 if labels[agent] == b else 0
    members = Members(np.empty(n_agents, np.int32), np.empty(n_agents))
    if smart:
        n_lists = gather(lists, side, 3, members)
        log_allocation = smart_allocation(
            stream, source, lists, side, members, n_lists, anchors, tables, n_items, splitting, side
        )
    else:
        log_allocation = blind_allocation(stream, side, anchors[0], splitting, side)
    sizes = np.empty(3, np.int64)
    sizes[0], sizes[1], sizes[2] = 0, 0, 0
    for agent in range(n_agents):
        sizes[side[agent]] += 1
    if sizes[1] == 0 or sizes[2] == 0:
        return n_clusters  # everybody on one side: nothing was proposed
    sizes[0] = sizes[1] + sizes[2]
    totals, counts = np.empty((3, tables.skips.size)), np.empty((3, tables.skips.size))
    order = np.empty((3, n_items), np.int32)
    places = np.empty((3, n_items), np.int16)
    log_centers, values = np.empty(3), np.empty(3)
    # The whole (0) and its parts (1, 2): ln p(lists | center) - ln q(center), those that exist weighed as
    # they are.
    for part in range(3):
        for item in range(n_items):
            places[part, item] = clusters.places[item, b if part == 2 and not splitting else a]
            order[part, places[part, item]] = item
        n_lists = gather(lists, side, part if part > 0 else 3, members)
        log_centers[part] = propose_center(
            stream,
            source_of(source, lists, members, n_lists, tables.skips.size, n_items),
            tables,
            splitting == (part > 0),
            order[part],
            places[part],
            totals[part],
            counts[part],
        )
    log_likelihoods(tables, totals, counts, values)
    log_ratio = log_split_prior(
        openings, discount, n_clusters - (not splitting), float(sizes[1]), float(sizes[2])
    ) - math.lgamma(n_items + 1.0)
    for part in range(3):
        log_ratio += (values[part] - log_centers[part]) * (1.0 if part > 0 else -1.0)
    # Probability of choosing the merge that undoes the split, less that of choosing and dividing as it does.
    # The slot of the second part is free so far.
    if splitting:
        for item in range(n_items):
            clusters.places[item, b] = places[2, item]
        clusters.sizes[b] = sizes[2]
        _, log_choice = log_partner(lists, first_list, clusters, n_clusters + 1, a, b, stream)
        clusters.sizes[b] = 0
    log_ratio += log_choice - log_allocation
    if smart:
        # The second anchor: any member of its cluster, or any other member of the whole.
        log_ratio += np.log((sizes[0] - 1.0) / sizes[2])
    else:
        log_ratio += np.log((1.0 - BLIND_SPLITS) / BLIND_SPLITS)
    if not splitting:
        log_ratio = -log_ratio
    if log_ratio < 0.0 and uniform(stream) >= np.exp(log_ratio):
        return n_clusters
    for part in range(1 if splitting else 0, 3 if splitting else 1):
        k = b if part == 2 else a
        clusters.sizes[k] = sizes[part]
        for item in range(n_items):
            clusters.places[item, k] = places[part, item]
        for j in range(totals.shape[1]):
            clusters.totals[k, j] = totals[part, j]
            clusters.counts[k, j] = counts[part, j]
    if not splitting:
        clusters.sizes[b] = 0
    for agent in range(n_agents):
        if side[agent] == 2:
            labels[agent] = b if splitting else a
    return n_clusters + (1 if splitting else -1)
