# mypy: ignore-errors
"""Top lists under angle-based models, all at once: one table over subsets serves every list.

What a top list leaves open depends on the set of its items alone. ``rest[S]``, the scaled weight of all
arrangements of the items outside S on the last ranks, therefore gives the probability of every list, and one
pass forward through the same table the expected scores of all unlisted items together: both cost 2^t t,
whatever the number of lists. Scaling and order of the bits are those of ``subset_table_jit``.
"""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.angle.subset_table_jit import fill_back, scaled_factors
from permix.kernels.bits import popcount
from permix.kernels.jit import kernel

# Weights below this have lost digits: the best arrangement of what is left stands for all.
LEAST = 1e-290


@kernel
def weigh_lists(listed, lengths, tilts, scores, rest, subsets, log_sums):
    """Sum the weights of all rankings that agree with each list.

    ``rest`` is filled for these tilts, ``subsets`` with the set of each list's items in the order of the
    table, ``log_sums`` with ln of the sum; where ``rest`` is no more than ``LEAST``, with the largest term
    alone. Returns the items and factors that :func:`add_lists` needs.
    """
    t = tilts.size
    items, factors, _ = scaled_factors(tilts, scores)
    fill_back(factors, np.empty(0), rest, np.zeros((t, t)))
    places = np.empty(t, np.int64)
    # ln factor[rank, place] = tilt · score - by_place[place] - by_rank[rank].
    by_place, by_rank = np.zeros(t), np.empty(t + 1)
    for place in range(t):
        places[items[place]] = place
        if place:
            step = tilts[items[place]] - tilts[items[place - 1]]
            by_place[place] = by_place[place - 1] + step * 0.5 * (scores[place] + scores[place - 1])
    by_rank[t] = 0.0  # becomes the sum over this rank and those below
    for rank in range(t - 1, -1, -1):
        by_rank[rank] = by_rank[rank + 1] + tilts[items[rank]] * scores[rank] - by_place[rank]
    scale = by_place.sum()
    for row in range(lengths.size):
        n, subset = lengths[row], 0
        value = scale + by_rank[n]
        for rank in range(n):
            place = places[listed[row, rank]]
            subset |= 1 << place
            value += tilts[listed[row, rank]] * scores[rank] - by_place[place]
        subsets[row] = subset
        if rest[subset] > LEAST:
            log_sums[row] = value + math.log(rest[subset])
            continue
        value = 0.0
        for rank in range(n):
            value += tilts[listed[row, rank]] * scores[rank]
        rank = n
        for place in range(t):
            if not subset >> place & 1:
                value += tilts[items[place]] * scores[rank]
                rank += 1
        log_sums[row] = value
    return items, factors


@kernel
def add_lists(listed, lengths, masses, scores, items, factors, rest, subsets, flow, sums):
    """Add the expected scores of all items, given each list and so often as ``masses`` says, to ``sums``.

    ``items``, ``factors``, ``rest`` and ``subsets`` are those of :func:`weigh_lists`; ``flow`` is scratch of
    the size of ``rest``.
    """
    full = rest.size - 1
    flow[:] = 0.0
    for row in range(lengths.size):
        for rank in range(lengths[row]):
            sums[listed[row, rank]] += masses[row] * scores[rank]
        flow[subsets[row]] += masses[row]
    for subset in range(full):
        mass = flow[subset]
        if mass == 0.0:
            continue
        rank = popcount(np.uint64(subset))
        left = full ^ subset
        while left:
            bit = left & -left
            place = popcount(np.uint64(bit - 1))
            share = mass
            if rest[subset] > LEAST:
                share *= factors[rank, place] * (rest[subset | bit] / rest[subset])
                left ^= bit
            else:  # the best arrangement: the item with the smallest tilt comes next
                left = 0
            flow[subset | bit] += share
            sums[items[place]] += share * scores[rank]
