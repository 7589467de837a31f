# mypy: ignore-errors
"""Top lists under angle-based models: one table over subsets of the items serves all of them.

``rest[S]``, the weight of all arrangements of the items outside S on the last ranks, completes every list of
the items S; and what lists put on subsets, run forward through the same table, gives the expected scores of
all unlisted items together: both cost 2^t t, whatever the number of lists. The empty list is the sum over all
rankings, so the same pass has the normalizer and its gradient.

Four components are handled side by side, since finding one's way through the subsets costs more than the
sums; where fewer are left, the last one is repeated. Bit i of a subset is item i, and factors are scaled as
in ``subset_table_jit``.
"""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.angle.subset_table_jit import scaled_factors
from permix.kernels.bits import popcount
from permix.kernels.jit import kernel

# Components in one table.
LANES = 4
# Weights below this have lost digits: the best arrangement of what is left stands for all. What reaches
# subsets with weights below the second, out of lists with weights above the first, is nothing.
LEAST = 1e-280
NOTHING = 1e-300


def item_sets(listed):
    """Return the items of every list, padded by -1, as bits."""
    return np.where(listed >= 0, np.int64(1) << np.maximum(listed, 0).astype(np.int64), 0).sum(axis=1)


@kernel
def weigh_lists(first, listed, lengths, subsets, tilts, scores, factors, rest, log_sums, log_totals):
    """Sum the weights of all rankings that agree with each list, under components ``first`` and three more.

    ``subsets`` are the items of each list. ``factors`` (t, t, 4) and ``rest`` (2^t, 4) are filled for these
    components, ``log_sums`` (components, rows) with ln of the sums, and where ``rest`` is no more than
    ``LEAST`` with the largest term alone; ``log_totals`` with ln of the sums over all rankings.
    """
    n_components, t = tilts.shape
    n_lanes = min(LANES, n_components - first)
    orders = np.empty((LANES, t), np.int64)
    # ln factor[rank, item] = gains[rank, item] - by_rank[rank], gains = tilt · score - by_item[item].
    gains, by_item, by_length = np.empty((t, t, LANES)), np.zeros(t), np.empty((t + 1, LANES))
    for lane in range(LANES):
        k = min(first + lane, n_components - 1)
        items, scaled, _ = scaled_factors(tilts[k], scores)
        total = 0.0
        for place in range(t):
            item = items[place]
            orders[lane, place] = item
            by_item[item] = 0.0
            if place:
                before = items[place - 1]
                step = (tilts[k, item] - tilts[k, before]) * 0.5 * (scores[place] + scores[place - 1])
                by_item[item] = by_item[before] + step
            total += by_item[item]
            for rank in range(t):
                factors[rank, item, lane] = scaled[rank, place]
                gains[rank, item, lane] = tilts[k, item] * scores[rank] - by_item[item]
        by_length[t, lane] = total  # over all items; those above add the ranks below a list
        for rank in range(t - 1, -1, -1):
            by_length[rank, lane] = by_length[rank + 1, lane] + gains[rank, items[rank], lane]
    _fill_rest(factors, rest)
    for lane in range(n_lanes):
        log_totals[first + lane] = by_length[0, lane] + math.log(rest[0, lane])
    values = np.empty(LANES)
    for row in range(lengths.size):
        n, subset = lengths[row], subsets[row]
        for lane in range(LANES):
            values[lane] = by_length[n, lane]
        for rank in range(n):
            item = listed[row, rank]
            for lane in range(LANES):
                values[lane] += gains[rank, item, lane]
        for lane in range(n_lanes):
            k, weight = first + lane, rest[subset, lane]
            if weight > LEAST:
                log_sums[k, row] = values[lane] + math.log(weight)
                continue
            log_sums[k, row] = 0.0
            rank = n
            for place in range(t):
                item = orders[lane, place]
                if not subset >> item & 1:
                    log_sums[k, row] += tilts[k, item] * scores[rank]
                    rank += 1
            for rank in range(n):
                log_sums[k, row] += tilts[k, listed[row, rank]] * scores[rank]


@kernel
def _fill_rest(factors, rest):
    """Set ``rest[S]`` to the scaled weight of all arrangements of the items outside S on the last ranks."""
    full = rest.shape[0] - 1
    for lane in range(LANES):
        rest[full, lane] = 1.0
    for number in range(full - 1, -1, -1):
        subset = np.uint64(number)
        rank = np.uint64(popcount(subset))
        left = np.uint64(full) ^ subset
        a = b = c = d = 0.0
        while left:
            bit = left & -left
            item, above = np.uint64(popcount(bit - np.uint64(1))), subset | bit
            a += factors[rank, item, 0] * rest[above, 0]
            b += factors[rank, item, 1] * rest[above, 1]
            c += factors[rank, item, 2] * rest[above, 2]
            d += factors[rank, item, 3] * rest[above, 3]
            left ^= bit
        rest[subset, 0], rest[subset, 1], rest[subset, 2], rest[subset, 3] = a, b, c, d


@kernel
def count_lists(
    first, listed, lengths, subsets, counts, shares, rounding, tilts, scores, rest, flow, sums, masses
):
    """Add what lists say of items to ``sums`` (items, components), and shares to ``flow`` and ``masses``.

    ``shares`` (components, rows) are rounded as ``rounding`` says (see ``angle.mixture_jit``), so that sums
    are exact. ``first`` and ``rest`` are those of :func:`weigh_lists`, ``flow`` has the shape of ``rest``:
    what is below the lists of each subset, for :func:`add_below`.
    """
    n_components, t = tilts.shape
    n_lanes = min(LANES, n_components - first)
    for row in range(lengths.size):
        n, subset, count = lengths[row], subsets[row], counts[row]
        for lane in range(n_lanes):
            k = first + lane
            share = shares[k, row]
            mass = count * ((share + rounding) - rounding)
            masses[k] += mass
            for rank in range(n):
                sums[listed[row, rank], k] += count * ((share * scores[rank] + rounding) - rounding)
            if rest[subset, lane] > LEAST:
                flow[subset, lane] += mass
            elif mass > 0.0:  # the best arrangement: ranks by tilt
                for item in range(t):
                    rank = n
                    for other in range(t):
                        smaller = tilts[k, other] < tilts[k, item]
                        tied = tilts[k, other] == tilts[k, item] and other < item
                        if (smaller or tied) and not subset >> other & 1:
                            rank += 1
                    if not subset >> item & 1:
                        sums[item, k] += count * ((share * scores[rank] + rounding) - rounding)


@kernel
def add_below(first, scores, factors, rest, flow, sums):
    """Add the expected scores of unlisted items to ``sums`` (items, components), given what is in ``flow``.

    ``first``, ``factors`` and ``rest`` are those of :func:`weigh_lists`. What is in ``flow`` at the empty
    subset is lists of nothing, or, below zero, expectations without any list to be subtracted.
    """
    t = scores.size
    full = rest.shape[0] - 1
    n_lanes = min(LANES, sums.shape[1] - first)
    met = np.zeros((t, t, LANES))
    # ``flow`` becomes what passes a subset, divided by ``rest`` there; ``met`` what each item meets at each
    # rank, without the factors.
    for number in range(full + 1):
        subset = np.uint64(number)
        rank = np.uint64(max(popcount(subset) - 1, 0))
        left = subset
        ra, rb, rc, rd = rest[subset, 0], rest[subset, 1], rest[subset, 2], rest[subset, 3]
        a = flow[subset, 0] / ra if ra > NOTHING else 0.0
        b = flow[subset, 1] / rb if rb > NOTHING else 0.0
        c = flow[subset, 2] / rc if rc > NOTHING else 0.0
        d = flow[subset, 3] / rd if rd > NOTHING else 0.0
        while left:
            bit = left & -left
            item, below = np.uint64(popcount(bit - np.uint64(1))), subset ^ bit
            wa, wb, wc, wd = flow[below, 0], flow[below, 1], flow[below, 2], flow[below, 3]
            a += factors[rank, item, 0] * wa
            b += factors[rank, item, 1] * wb
            c += factors[rank, item, 2] * wc
            d += factors[rank, item, 3] * wd
            met[rank, item, 0] += wa * ra
            met[rank, item, 1] += wb * rb
            met[rank, item, 2] += wc * rc
            met[rank, item, 3] += wd * rd
            left ^= bit
        flow[subset, 0] = a if ra > NOTHING else 0.0
        flow[subset, 1] = b if rb > NOTHING else 0.0
        flow[subset, 2] = c if rc > NOTHING else 0.0
        flow[subset, 3] = d if rd > NOTHING else 0.0
    for lane in range(n_lanes):
        for item in range(t):
            for rank in range(t):
                sums[item, first + lane] += scores[rank] * factors[rank, item, lane] * met[rank, item, lane]
