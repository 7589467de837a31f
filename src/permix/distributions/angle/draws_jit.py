# mypy: ignore-errors
"""Draws from the angle-based model with any number of items: importance sampling rank by rank, and exchanges.

ln weight of an ordering is Σ_r tilts[order[r]] scores[r], so an ordering picks one entry from each row and
column of the matrix exp(tilt_i score_r). Scaled by potentials so that its rows and columns sum to one
(Sinkhorn), the matrix P_ir = exp(tilt_i score_r - u_i - v_r) is close to the probability of item i at rank r.

:func:`sample_rows` lets each item take a rank by its own row of P, conditioned on one item for each rank:
of the items left at rank r, one is chosen with probability proportional to its odds P_ir / Σ_{s>r} P_is. This
is exact for two items and for equal ones, and its weights hardly vary: the effective number of draws is above
0.9 of the number drawn, from concentration 0 to 10 t, with 20 to 1000 items. (Looking ahead by the von
Mises–Fisher approximation for the items left is far worse: 0.04 at t = 1000, concentration 2 t, and nothing
beyond.)

:func:`exchange` is a Metropolis chain: exchange the items at two ranks, whose distance is drawn from all
scales alike, so that it moves whether an item's rank is known to within 1 or within t.
"""

from __future__ import annotations

import math

import numpy as np

from permix.kernels.jit import kernel
from permix.kernels.streams import integers, new_stream, open_stream, uniform

# Below this many items potentials are found without a coarser problem first.
_COARSEST = 48
# Column sums within this of one. Potentials need not be exact: the weights correct for them.
_TOLERANCE = 1e-3
# Most entries computed at one level: 40 sweeps over a matrix of 1000 × 1000, a second.
_MOST_ENTRIES = 80_000_000.0
# A probability below this counts as this, so that no ordering is impossible; and what rounding leaves of one.
_TINY = 1e-300
_LEAST_EXPONENT = math.log(_TINY)
_LEAST_UNUSED = 1e-15


@kernel
def balancing_potentials(tilts, scores):
    """Return u (by item) and v (by rank) such that exp(tilts_i scores_r - u_i - v_r) has sums near one.

    Sinkhorn's iteration is slow in the smooth directions alone, so it runs on groups of neighboring items
    and ranks first, and each solution starts the next finer problem. Rows sum to one exactly.
    """
    items = np.argsort(tilts)
    sizes = [tilts.size]
    while sizes[-1] > _COARSEST:
        sizes.append((sizes[-1] + 1) // 2)
    u = np.empty(0)
    v = np.empty(0)
    for size in sizes[::-1]:
        a = _group_means(tilts[items], size)
        y = _group_means(scores, size)
        u = np.empty(size)
        coarse = v
        v = _assignment_potentials(a, y)  # the answer where the model is concentrated on one ordering
        if coarse.size:
            stretched = _stretched(coarse, size)
            if _balance(a, y, u, stretched.copy(), 1) < _balance(a, y, u, v.copy(), 1):
                v = stretched
        _balance(a, y, u, v, min(2000, max(2, int(_MOST_ENTRIES / (2.0 * size * size)))))
    by_item = np.empty(tilts.size)
    by_item[items] = u
    return by_item, v


@kernel
def _balance(a, y, u, v, most):
    """Run Sinkhorn's iteration up to ``most`` times; return the last error of a column's ln sum."""
    error = np.inf
    for _ in range(most):
        _log_sums(a, y, v, u)
        error = _log_sums(y, a, u, v)
        if error < _TOLERANCE:
            break
    _log_sums(a, y, v, u)
    return error


@kernel
def _log_sums(x, others, potentials, out):
    """Set ``out[i]`` to ln Σ_k exp(x_i others_k - potentials_k); return the largest change."""
    change = 0.0
    for i in range(x.size):
        largest = -np.inf
        for k in range(others.size):
            largest = max(largest, x[i] * others[k] - potentials[k])
        total = 0.0
        for k in range(others.size):
            total += math.exp(x[i] * others[k] - potentials[k] - largest)
        value = largest + math.log(total)
        change = max(change, abs(value - out[i]))
        out[i] = value
    return change


@kernel
def _assignment_potentials(a, y):
    """Return v of the assignment problem that pairs ascending ``a`` with ascending ``y``."""
    v = np.empty(a.size)
    u = 0.0
    for r in range(a.size):
        if r:
            u += (a[r] - a[r - 1]) * 0.5 * (y[r] + y[r - 1])
        v[r] = a[r] * y[r] - u
    return v


@kernel
def _group_means(values, n_groups):
    means = np.zeros(n_groups)
    for group in range(n_groups):
        first = group * values.size // n_groups
        last = (group + 1) * values.size // n_groups
        for k in range(first, last):
            means[group] += values[k] / (last - first)
    return means


@kernel
def _stretched(values, size):
    """Interpolate linearly from groups to ``size`` finer ones."""
    out = np.empty(size)
    for k in range(size):
        place = (k + 0.5) * values.size / size - 0.5
        left = min(max(math.floor(place), 0), values.size - 2)
        out[k] = values[left] + (place - left) * (values[left + 1] - values[left])
    return out


@kernel
def _draw_ranking(stream, tilts, scores, u, v, left, unused, weights, order):
    """Draw an ordering rank by rank; return ln of its weight over its probability under the draw."""
    t = tilts.size
    for i in range(t):
        left[i] = i
        unused[i] = 1.0
    log_weight = 0.0
    for rank in range(t):
        n_left = t - rank
        chosen = 0
        if n_left > 1:
            total = 0.0  # of the odds of this rank against later ones
            for k in range(n_left):
                i = left[k]
                exponent = tilts[i] * scores[rank] - u[i] - v[rank]
                probability = math.exp(exponent) if exponent > _LEAST_EXPONENT else _TINY
                unused[i] -= probability
                weights[k] = probability / max(unused[i], _LEAST_UNUSED)
                total += weights[k]
            remaining = uniform(stream) * total
            while chosen < n_left - 1:
                remaining -= weights[chosen]
                if remaining < 0.0:
                    break
                chosen += 1
            log_weight -= math.log(weights[chosen] / total)
        order[rank] = left[chosen]
        log_weight += tilts[order[rank]] * scores[rank]
        left[chosen] = left[n_left - 1]
    return log_weight


@kernel
def exchange_distance(stream, t):
    """Draw a distance from 1 to t-1: a power of two with equal chances, then evenly up to the next."""
    n_scales = 0
    while 1 << n_scales < t:
        n_scales += 1
    least = 1 << integers(stream, n_scales)
    return least + integers(stream, min(least, t - least))


@kernel
def exchange(stream, tilts, scores, n_exchanges, order):
    """Move ``order`` by Metropolis proposals to exchange the items at two ranks; return how many succeed."""
    t = tilts.size
    accepted = 0
    for _ in range(n_exchanges):
        distance = exchange_distance(stream, t)
        upper = integers(stream, t - distance)
        lower = upper + distance
        above = order[upper]
        below = order[lower]
        gain = (tilts[below] - tilts[above]) * (scores[upper] - scores[lower])
        if gain >= 0.0 or uniform(stream) < math.exp(gain):
            order[upper] = below
            order[lower] = above
            accepted += 1
    return accepted


@kernel
def sample_rows(key, first, last, tilts, scores, u, v, n_exchanges, out, log_weights):
    """Fill rows ``first`` to ``last``: an importance draw each with its ln weight, then moved by exchanges.

    The mean weight estimates the sum over all orderings without bias.
    """
    stream = new_stream()
    left = np.empty(tilts.size, np.int64)
    unused = np.empty(tilts.size)
    weights = np.empty(tilts.size)
    for row in range(first, last):
        open_stream(stream, key[0], key[1], 0, row)
        log_weights[row] = _draw_ranking(stream, tilts, scores, u, v, left, unused, weights, out[row])
        exchange(stream, tilts, scores, n_exchanges, out[row])
