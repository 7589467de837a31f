# mypy: ignore-errors
"""Rank models with weights exp(tilt_i score_r), item i at rank r: exact sums, means and draws.

The sum over the t! orderings is a permanent. f(S) = Σ_{i ∈ S} f(S∖i) exp(tilt_i score_|S|), the total weight
of placing the items S on the best |S| ranks, costs O(2^t t); the same recursion from the other end gives all
marginals.

The table holds plain numbers, not logarithms, so that an entry costs additions and multiplications alone. It
is safe at any concentration: with potentials u, v of the assignment problem (the best ordering pairs sorted
tilts with sorted scores) every factor exp(tilt_i score_r - u_i - v_r) is at most 1, and 1 along the best
ordering. So entries are at most t!, the total is at least 1, and what underflows is below 1e-280 of it.

Throughout, ``scores`` ascend, and the bits of a subset are items in ascending order of tilts: see
:func:`scaled_factors`. Scratch arrays ``table`` and ``back`` have 2^t entries.
"""

from __future__ import annotations

import math

import numpy as np

from permix.kernels.bits import popcount
from permix.kernels.jit import kernel
from permix.kernels.streams import new_stream, open_stream, uniform

# Two tables of 2^22 numbers take 64 MiB and a tenth of a second.
MOST_ITEMS = 22


@kernel
def scaled_factors(tilts, scores):
    """Return the items by ascending tilt, the factors (rank × place in that order) and ln of their scale."""
    t = tilts.size
    items = np.empty(t, np.int64)
    for item in range(t):  # sorted by insertion: the items are few, and NumPy's sort takes seconds to compile
        place = item
        while place > 0 and tilts[items[place - 1]] > tilts[item]:
            items[place] = items[place - 1]
            place -= 1
        items[place] = item
    factors = np.empty((t, t))
    log_scale = 0.0
    for rank in range(t):
        log_scale += tilts[items[rank]] * scores[rank]
        # Potentials differ between neighbors by (difference of tilts) × (midpoint of scores): summed
        # outwards from the best pairing, so that nothing cancels.
        factors[rank, rank] = 1.0
        log_factor = 0.0
        for place in range(rank + 1, t):
            step = tilts[items[place]] - tilts[items[place - 1]]
            log_factor += step * (scores[rank] - 0.5 * (scores[place - 1] + scores[place]))
            factors[rank, place] = math.exp(log_factor)
        log_factor = 0.0
        for place in range(rank - 1, -1, -1):
            step = tilts[items[place + 1]] - tilts[items[place]]
            log_factor += step * (0.5 * (scores[place] + scores[place + 1]) - scores[rank])
            factors[rank, place] = math.exp(log_factor)
    return items, factors, log_scale


@kernel
def fill_table(factors, table):
    """Set ``table[S]`` to the scaled weight of all arrangements of S on the first ranks; return the total."""
    table[0] = 1.0
    for subset in range(1, 1 << factors.shape[0]):
        rank = popcount(np.uint64(subset)) - 1
        total = 0.0
        left = subset
        while left:
            bit = left & -left
            total += table[subset ^ bit] * factors[rank, popcount(np.uint64(bit - 1))]
            left ^= bit
        table[subset] = total
    return table[(1 << factors.shape[0]) - 1]


@kernel
def fill_back(factors, table, back, marginals):
    """Set ``back[S]`` to the scaled weight of all arrangements of the items outside S on the last ranks.

    Where there is a ``table``, the probability of each item at each rank is added to ``marginals`` (rank ×
    place).
    """
    t = factors.shape[0]
    full = (1 << t) - 1
    back[full] = 1.0
    for subset in range(full - 1, -1, -1):
        rank = popcount(np.uint64(subset))
        before = table[subset] / table[full] if table.size else 0.0
        total = 0.0
        left = full ^ subset
        while left:
            bit = left & -left
            place = popcount(np.uint64(bit - 1))
            after = factors[rank, place] * back[subset | bit]
            marginals[rank, place] += before * after
            total += after
            left ^= bit
        back[subset] = total


@kernel
def log_sum_and_mean(tilts, scores, table, back, mean):
    """Return ln of the sum of exp(Σ_r tilts[order[r]] scores[r]) over all orderings.

    Where there is scratch in ``back``, also set ``mean`` to its gradient in the tilts: the mean score of each
    item.
    """
    items, factors, log_scale = scaled_factors(tilts, scores)
    total = fill_table(factors, table)
    if back.size:
        marginals = np.zeros(factors.shape)
        fill_back(factors, table, back, marginals)
        for place in range(tilts.size):
            expected = 0.0
            for rank in range(tilts.size):
                expected += marginals[rank, place] * scores[rank]
            mean[items[place]] = expected
    return math.log(total) + log_scale


def _filled(tilts, scores):
    """Return items, factors, both tables and the marginals (rank × place)."""
    items, factors, _ = scaled_factors(tilts, scores)
    table, back, marginals = np.empty(1 << tilts.size), np.empty(1 << tilts.size), np.zeros(factors.shape)
    fill_table(factors, table)
    fill_back(factors, table, back, marginals)
    return items, factors, table, back, marginals


def rank_marginals(tilts, scores):
    """Return P(item a has rank r), items × ranks."""
    items, *_, marginals = _filled(tilts, scores)
    return marginals.T[np.argsort(items)]


def pairwise(tilts, scores):
    """Return P(item a before item b), items × items."""
    items, *known, _ = _filled(tilts, scores)
    places = np.argsort(items)
    return _flows(*known)[np.ix_(places, places)]


@kernel
def _flows(factors, table, back):
    """Return P(place a before place b): the flow through a's placement while b is still open.

    It costs 2^t t²/4 additions.
    """
    t = factors.shape[0]
    full = (1 << t) - 1
    by_place = np.zeros((t, t))
    open_places = np.empty(t, np.int64)
    for subset in range(full):
        rank = popcount(np.uint64(subset))
        before = table[subset] / table[full]
        if before == 0.0:
            continue
        n_open = 0
        for place in range(t):
            if not subset >> place & 1:
                open_places[n_open] = place
                n_open += 1
        for k in range(n_open):
            a = open_places[k]
            flow = before * factors[rank, a] * back[subset | (1 << a)]
            for j in range(n_open):
                if j != k:
                    by_place[a, open_places[j]] += flow
    return by_place


@kernel
def sample_table_rows(key, first, last, items, factors, table, out):
    """Fill rows ``first`` to ``last`` of ``out`` with orderings (item at each rank, best first), exactly.

    ``items`` and ``factors`` come from :func:`scaled_factors`, ``table`` from :func:`fill_table`.
    """
    t = items.size
    stream = new_stream()
    for row in range(first, last):
        open_stream(stream, key[0], key[1], 0, row)
        subset = (1 << t) - 1
        for rank in range(t - 1, -1, -1):
            remaining = uniform(stream) * table[subset]
            chosen = 0
            left = subset
            while left:
                bit = left & -left
                weight = table[subset ^ bit] * factors[rank, popcount(np.uint64(bit - 1))]
                left ^= bit
                if weight > 0.0:
                    chosen = bit  # kept where rounding leaves some of ``remaining``
                    remaining -= weight
                    if remaining < 0.0:
                        break
            out[row, rank] = items[popcount(np.uint64(chosen - 1))]
            subset ^= chosen
