# mypy: ignore-errors
"""Sums over all clusterings that cut an ordering of the data into segments, compiled (Liang et al. 2007).

For each of the three priors p(C) ∝ Π_{j<K} w_new(j) Π_c Π_{1≤i<|c|} w_existing(i), so with an ordering π
with p(π | C) = 1/K! Π_c m(π_c) the joint distribution has the form of their equation 4,

    p(C, π, x) = A(K) Π_c B(c),
    A(K) = Π_{j<K} w_new(j) / K!,   B(c) = m(π_c) p(x_c) Π_{1≤i<|c|} w_existing(i).

m(π_c) is 1/|c|! for a uniform ordering; for Markov Gibbs scans (section 4.1) it is the probability of
visiting the cluster's points in this order. ``scores[l, r]`` is ln B of the points l ... r of the ordering.
"""

from __future__ import annotations

import math

import numpy as np

from permix.families.contract_jit import add, clear, clear_members, copy_cluster, extend, log_predictive
from permix.kernels.jit import inlined, kernel
from permix.kernels.random import NEGLIGIBLE, categorical_log, shuffle

# --- orderings ------------------------------------------------------------------------------------


@inlined
def group_members(labels, sizes, cluster_order, order, firsts):
    """List data cluster by cluster; ``firsts`` gets where each cluster of ``cluster_order`` begins."""
    n_clusters = cluster_order.shape[0]
    place = np.empty(n_clusters, np.int64)
    total = 0
    for position in range(n_clusters):
        k = cluster_order[position]
        firsts[position] = total
        place[k] = total
        total += sizes[k]
    firsts[n_clusters] = total
    for i in range(labels.shape[0]):
        order[place[labels[i]]] = i
        place[labels[i]] += 1


@kernel
def draw_uniform_order(rng, labels, sizes, n_clusters, order, firsts):
    """Draw an ordering uniformly among those in which every cluster is a segment (equation 3)."""
    cluster_order = np.arange(n_clusters)
    shuffle(rng, cluster_order)
    group_members(labels, sizes, cluster_order, order, firsts)
    for position in range(n_clusters):
        shuffle(rng, order[firsts[position] : firsts[position + 1]])


@kernel
def draw_markov_order(rng, single, data, labels, sizes, n_clusters, order, firsts):
    """Draw an ordering by Markov Gibbs scans: the next point by its predictive given the last one alone.

    Clusters come in uniformly random order, and so does the first point of each (section 4.1). ``single`` is
    one empty cluster, and empty again afterwards.
    """
    draw_uniform_order(rng, labels, sizes, n_clusters, order, firsts)
    scores = np.empty(labels.shape[0])
    one = np.empty(1)
    for position in range(n_clusters):
        last = firsts[position + 1]
        for place in range(firsts[position], last - 2):
            add(single, data, order[place], 0)
            for left in range(place + 1, last):
                log_predictive(single, data, order[left], 1, one)
                scores[left - place - 1] = one[0]
            clear_members(single, data, order, place, place + 1, 0)
            chosen = place + 1 + max(categorical_log(rng, scores, last - place - 1), 0)
            order[place + 1], order[chosen] = order[chosen], order[place + 1]


@inlined
def follow_links(single, data, empty_scores, order, r, first, links, left, one):
    """Bring the sums of Markov Gibbs scans up to date with position ``r``, for positions first ... r - 1.

    ``links[t]`` = ln p(x_{t+1} | x_t) and ``left[t]`` = ln Σ_{t<u≤r} p(x_u | x_t), by Bayes' rule from one
    cluster that holds x_r alone: ``single``, empty before and afterwards. ``one`` is scratch.
    """
    add(single, data, order[r], 0)
    for t in range(first, r):
        log_predictive(single, data, order[t], 1, one)
        link = one[0] + empty_scores[order[r]] - empty_scores[order[t]]
        if t == r - 1:
            links[t] = link
            left[t] = link
        else:
            left[t] = log_sum(left[t], link)
    clear_members(single, data, order, r, r + 1, 0)


@inlined
def log_sum(a, b):
    """ln(e^a + e^b)."""
    if a < b:
        a, b = b, a
    if b == -np.inf:
        return a
    return a + math.log1p(math.exp(b - a))


# --- all segments: the exact and the approximate program ------------------------------------------


@kernel
def fill_scores(stats, single, data, empty_scores, order, size_weights, scores):
    """Fill ``scores[l, r]`` for all segments; O(n²) scores of a datum.

    ``stats`` and ``single`` are one empty cluster each, and empty again afterwards. ``single`` is for Markov
    Gibbs scans; None stands for uniform orderings, for which the code of scans is not compiled.
    """
    n = order.shape[0]
    one = np.empty(1)
    start = np.zeros(1, np.int64)
    for first in range(n):
        total = 0.0
        for r in range(first, n):
            extend(stats, data, order[r], start, 1, one)
            total += one[0]
            scores[first, r] = total + size_weights[r - first + 1]
        clear_members(stats, data, order, first, n, 0)
    if single is not None:
        links = np.empty(n)
        left = np.empty(n)
        for r in range(n):
            follow_links(single, data, empty_scores, order, r, 0, links, left, one)
            scan = 0.0
            for first in range(r, -1, -1):
                if first < r:
                    scan += links[first] - left[first]
                scores[first, r] += scan - math.log(r - first + 1)


@kernel
def exact_program(scores, sums):
    """Fill ``sums[r, K]`` = ln g(r, K), over all ways to cut the first r points into K segments; O(n³)."""
    n = scores.shape[0]
    for r in range(n + 1):
        for n_segments in range(n + 1):
            sums[r, n_segments] = -np.inf
    sums[0, 0] = 0.0
    for r in range(1, n + 1):
        for n_segments in range(1, r + 1):
            largest = -np.inf
            for first in range(n_segments - 1, r):
                largest = max(largest, sums[first, n_segments - 1] + scores[first, r - 1])
            if largest == -np.inf:
                continue
            total = 0.0
            for first in range(n_segments - 1, r):
                total += math.exp(sums[first, n_segments - 1] + scores[first, r - 1] - largest)
            sums[r, n_segments] = largest + math.log(total)


@kernel
def draw_exact(rng, scores, sums, count_weights, work, bounds):
    """Draw a clustering from p(C | π, x); writes where segments end, last first; returns how many."""
    n = scores.shape[0]
    for n_segments in range(n + 1):
        work[n_segments] = sums[n, n_segments] + count_weights[n_segments]
    left = categorical_log(rng, work, n + 1)
    if left < 0:
        return -1
    n_segments = 0
    r = n
    while r > 0:
        bounds[n_segments] = r
        n_segments += 1
        left -= 1
        for first in range(r):
            work[first] = sums[first, left] + scores[first, r - 1]
        r = categorical_log(rng, work, r)
    return n_segments


@kernel
def approximate_program(scores, slope, sums):
    """Fill ``sums[r]`` = ln g'(r), with A(K) replaced by e^(slope K) (equation 6); O(n²)."""
    n = scores.shape[0]
    sums[0] = 0.0
    for r in range(1, n + 1):
        largest = -np.inf
        for first in range(r):
            largest = max(largest, sums[first] + scores[first, r - 1])
        sums[r] = -np.inf
        if largest > -np.inf:
            total = 0.0
            for first in range(r):
                total += math.exp(sums[first] + scores[first, r - 1] - largest)
            sums[r] = largest + math.log(total) + slope


@kernel
def draw_approximate(rng, scores, sums, work, bounds):
    """Draw a clustering from q(C | π, x) of equation 5; as :func:`draw_exact`."""
    n_segments = 0
    r = scores.shape[0]
    while r > 0:
        bounds[n_segments] = r
        n_segments += 1
        for first in range(r):
            work[first] = sums[first] + scores[first, r - 1]
        r = categorical_log(rng, work, r)
        if r < 0:
            return -1
    return n_segments


# --- few segments at a time: the beam -------------------------------------------------------------


@kernel
def beam_program(
    stats,
    single,
    data,
    empty_scores,
    order,
    size_weights,
    slope,
    width,
    tolerance,
    present,
    kept_starts,
    kept_terms,
):
    """Sum over clusterings whose segments stay in the beam (section 3.3); returns ln g'(n).

    At each position the candidates are the starts kept at the position before, and the position itself.
    ``kept_starts[r]`` and ``kept_terms[r]`` get all candidates (start -1: none) and their contributions ln
    g'(start) B to g'(r + 1). The ``width`` largest stay for the next position, fewer when what is left out is
    less than ``tolerance`` of the sum. Segments of the ``present`` clustering, given by where they begin,
    stay in any case and take the place of others; it may be left out (empty). There is one slot of ``stats``
    for each candidate, width + 1; they are empty before and afterwards, so that work follows the data.
    ``single`` as for :func:`fill_scores`.
    """
    n = order.shape[0]
    n_slots = kept_starts.shape[1]
    starts = np.full(n_slots, -1)
    held_first = np.zeros(n_slots, np.int64)  # what a slot not in use last held
    held_last = np.zeros(n_slots, np.int64)
    before = np.zeros(n_slots)  # ln g'(start) + slope
    marginal = np.zeros(n_slots)
    out = np.zeros(n_slots)
    terms = np.zeros(n_slots)
    one = np.empty(1)
    links = np.zeros(n)
    left = np.zeros(n)
    total = 0.0
    segment = 0  # of the present clustering
    must_stay = -1
    for r in range(n):
        if segment < present.shape[0] and present[segment] == r:
            must_stay = r
            segment += 1
        free = 0
        while starts[free] >= 0:
            free += 1
        clear_members(stats, data, order, held_first[free], held_last[free], free)
        starts[free] = r
        before[free] = total + slope
        marginal[free] = 0.0
        extend(stats, data, order[r], starts, n_slots, out)
        largest = -np.inf
        for k in range(n_slots):
            terms[k] = -np.inf
            if starts[k] >= 0:
                marginal[k] += out[k]
                terms[k] = before[k] + marginal[k] + size_weights[r - starts[k] + 1]
        if single is not None:
            _add_scans(single, data, empty_scores, order, r, starts, links, left, terms, one)
        n_used = 0
        for k in range(n_slots):
            kept_starts[r, k] = starts[k]
            kept_terms[r, k] = terms[k]
            largest = max(largest, terms[k])
            if starts[k] >= 0:
                n_used += 1
        if largest == -np.inf:
            total = -np.inf
            break
        share = 0.0
        for k in range(n_slots):
            if terms[k] > largest - NEGLIGIBLE:
                share += math.exp(terms[k] - largest)
        total = largest + math.log(share)
        # The smallest go, ties later starts first, while they must or make no difference.
        spare = tolerance * share
        while n_used > width or (spare > 0.0 and n_used > 1):
            smallest = -1
            for k in range(n_slots):
                if (
                    starts[k] >= 0
                    and starts[k] != must_stay
                    and (
                        smallest < 0
                        or terms[k] < terms[smallest]
                        or (terms[k] == terms[smallest] and starts[k] > starts[smallest])
                    )
                ):
                    smallest = k
            if smallest < 0:
                break
            if spare > 0.0:
                spare -= math.exp(terms[smallest] - largest)
                if n_used <= width and spare < 0.0:
                    break
            held_first[smallest] = starts[smallest]
            held_last[smallest] = r + 1
            starts[smallest] = -1
            n_used -= 1
    for k in range(n_slots):
        if starts[k] >= 0:
            held_first[k] = starts[k]
            held_last[k] = r + 1
        clear_members(stats, data, order, held_first[k], held_last[k], k)
    return total


@inlined
def _add_scans(single, data, empty_scores, order, r, starts, links, left, terms, one):
    """Multiply the candidates' terms by the probability of visiting their points in this order."""
    earliest = r
    for k in range(starts.shape[0]):
        if starts[k] >= 0:
            earliest = min(earliest, starts[k])
    follow_links(single, data, empty_scores, order, r, earliest, links, left, one)
    scan = 0.0
    for t in range(r, earliest - 1, -1):
        if t < r:
            scan += links[t] - left[t]
        for k in range(starts.shape[0]):
            if starts[k] == t:
                terms[k] += scan - math.log(r - t + 1)


@kernel
def in_beam(kept_starts, firsts, n_clusters):
    """Say whether a clustering, given by where its segments begin (and end), is among those summed over."""
    for position in range(n_clusters):
        found = False
        last = firsts[position + 1] - 1
        for k in range(kept_starts.shape[1]):
            found |= kept_starts[last, k] == firsts[position]
        if not found:
            return False
    return True


@kernel
def draw_beam(rng, kept_starts, kept_terms, bounds):
    """Draw a clustering from the sum of :func:`beam_program`; as :func:`draw_exact`."""
    n_segments = 0
    r = kept_starts.shape[0]
    while r > 0:
        bounds[n_segments] = r
        n_segments += 1
        chosen = categorical_log(rng, kept_terms[r - 1], kept_terms.shape[1])
        if chosen < 0:
            return -1
        r = kept_starts[r - 1, chosen]
    return n_segments


# --- back to a state ------------------------------------------------------------------------------


@kernel
def adopt_segments(stats, data, order, bounds, n_segments, labels, sizes, n_clusters):
    """Make segments of the ordering the clusters; returns how many data are in clusters that are new.

    ``bounds`` as :func:`draw_exact` wrote them. A segment that is a cluster already keeps its number and its
    statistics; the others take numbers that are free. There must be room for ``n_segments`` clusters.
    """
    kept = np.full(max(n_clusters, n_segments), -1)  # segment that keeps a cluster's number
    number = np.full(n_segments, -1)
    for segment in range(n_segments):
        first = bounds[segment + 1] if segment + 1 < n_segments else 0
        last = bounds[segment]
        k = np.int64(labels[order[first]])
        same = sizes[k] == last - first
        for place in range(first, last):
            if not same:
                break
            same = labels[order[place]] == k
        if same:
            kept[k] = segment
            number[segment] = k
    # Clusters are numbered 0 ... n_segments - 1: those beyond move down into free numbers.
    free = 0
    for k in range(n_segments, n_clusters):
        if kept[k] >= 0:
            while kept[free] >= 0:
                free += 1
            _move_cluster(stats, order, bounds, n_segments, kept[k], labels, sizes, k, free)
            kept[free] = kept[k]
            kept[k] = -1
    n_moved = 0
    free = 0
    for segment in range(n_segments):
        if number[segment] >= 0:
            continue
        while kept[free] >= 0:
            free += 1
        kept[free] = segment
        first = bounds[segment + 1] if segment + 1 < n_segments else 0
        clear(stats, free)
        for place in range(first, bounds[segment]):
            add(stats, data, order[place], free)
            labels[order[place]] = free
        sizes[free] = bounds[segment] - first
        n_moved += bounds[segment] - first
    for k in range(n_segments, n_clusters):
        sizes[k] = 0
    return n_moved


@inlined
def _move_cluster(stats, order, bounds, n_segments, segment, labels, sizes, source, target):
    copy_cluster(stats, source, target)
    first = bounds[segment + 1] if segment + 1 < n_segments else 0
    for place in range(first, bounds[segment]):
        labels[order[place]] = target
    sizes[target] = bounds[segment] - first
