# mypy: ignore-errors
"""One generalized Mallows model: draws from per-row streams, probabilities of lists, exact marginals.

Stage j = 0, 1, … takes one of the n - j items that are left and skips s_j of those the center puts before it,
P(s_j) ∝ exp(-theta[j] s_j) (Meilă & Chen 2010, equations 2 to 4). The last stage has nothing to choose, so
there are n - 1 decays. Items are numbered by their place in the center.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.fenwick import take_in_turn
from permix.kernels.jit import kernel, ufunc
from permix.kernels.mallows import displacement_moments, log_normalizer_step, log_probability_step
from permix.kernels.orders import stage_code
from permix.kernels.random import truncated_geometric_quantile
from permix.kernels.streams import fill_uniform, padded

# Skips that are looked up in a table; longer ones, rare unless theta is small, are computed.
TABLED = 32
GUIDE = 128


@kernel
def skip_tables(theta, n):
    """Return thresholds and a guide that turn a uniform number into the skip of each stage.

    ``thresholds[j, k]`` = P(s_j <= k), so the u-quantile is the number of thresholds that u reaches; at or
    below b / GUIDE lie ``guide[j, b]`` of them.
    """
    thresholds = np.ones((theta.size, TABLED))
    guide = np.empty((theta.size, GUIDE), np.uint8)
    for j in range(theta.size):
        for k in range(min(TABLED, n - j - 1)):
            if (n - j) * theta[j] < 1e-17:  # uniform to double precision
                thresholds[j, k] = (k + 1) / (n - j)
            else:
                thresholds[j, k] = np.expm1(-(k + 1) * theta[j]) / np.expm1(-(n - j) * theta[j])
        k = 0
        for b in range(GUIDE):
            while k < TABLED and thresholds[j, k] <= b / GUIDE:
                k += 1
            guide[j, b] = k
    return thresholds, guide


@kernel
def sample_list_rows(key, first, last, center, theta, thresholds, guide, lengths, out):
    """Fill rows ``first..last-1`` of ``out``, each from the stream of its row, up to its length.

    A longer list begins with the shorter one that the same stream would give. Thresholds and guide are
    from :func:`skip_tables`, for as many stages as the longest list has.
    """
    n = center.size
    uniforms = np.empty(padded(n))
    skipped = np.zeros(n, np.int64)
    taken = np.empty(n, np.int64)
    for row in range(first, last):
        t = lengths[row]
        fill_uniform(key[0], key[1], 0, row, uniforms[: padded(t)])
        for j in range(min(t, n - 1)):
            u = uniforms[j]
            k = np.int64(guide[j, np.int64(u * GUIDE)])
            while k < TABLED and thresholds[j, k] <= u:
                k += 1
            if k == TABLED:
                k = truncated_geometric_quantile(u, theta[j], n - j)
            skipped[j] = k
        take_in_turn(skipped, t, n, False, taken)
        for j in range(t):
            out[row, j] = center[taken[j]]


@kernel
def list_log_prob_rows(first, last, orders, lengths, ranks, theta, out):
    """Set ``out[row]`` to the log-probability of the top list in each row; ``ranks`` are the center's."""
    n = ranks.size
    log_totals = np.empty(n)  # of the first stages together
    log_totals[0] = 0.0
    for j in range(n - 1):
        log_totals[j + 1] = log_totals[j] + log_normalizer_step(theta[j], n - j)
    code = np.empty(n, np.int64)
    for row in range(first, last):
        t = min(lengths[row], n - 1)
        stage_code(orders[row], t, ranks, code)
        paid = 0.0
        for j in range(t):
            if code[j] > 0:  # no skip costs nothing, also where theta is infinite
                paid += theta[j] * code[j]
        out[row] = -paid - log_totals[t]


@ufunc
def log_psi(theta, places):
    """Return ln ψ of a stage at which so many items are left."""
    return log_normalizer_step(theta, places)


@ufunc
def mean_skip(theta, places):
    """Return the mean number of items skipped at a stage at which so many are left."""
    return displacement_moments(theta, places)[0]


@kernel
def skip_probabilities(theta, n):
    """Return P(stage n-1-i skips s), row i = number of items behind the first that are left, s = 0..i.

    Read backwards the stages insert ranks: rank n-1-i goes to place s_(n-1-i) of the i later ranks, when all
    are listed by the center. So row i says where to insert, and the place of a rank there is the item that
    has this rank.
    """
    out = np.zeros((n, n))
    out[0, 0] = 1.0
    for i in range(1, n):
        for s in range(i + 1):
            out[i, s] = np.exp(log_probability_step(theta[n - 1 - i], s, i + 1))
    return out


@kernel
def worse_first(theta, n):
    """Return ``q[b, a]`` = P(item b is taken before item a), a < b places in the center, in O(n³) operations.

    With m + 1 items left, of which the two are the a-th and the b-th, the next stage takes one before both,
    one of them, one between them or one after both; three of the five leave two items one or no place
    farther up among m. Stages are gone through from the last. No term is a difference, so that small
    probabilities keep their digits.
    """
    q = np.zeros((n, n))
    chance = np.empty(n)  # P(s)
    below = np.empty(n)  # P(less than s)
    above = np.empty(n)  # P(more than s)
    between = np.empty(n)  # φ + … + φ^(g-1): P(a < s < a + g) / P(a)
    for m in range(1, n):
        decay = theta[n - 1 - m]
        total, run = 0.0, 0.0
        for s in range(m + 1):
            chance[s] = np.exp(log_probability_step(decay, s, m + 1))
            below[s] = total
            total += chance[s]
            between[s] = run
            if s > 0:
                run += np.exp(-decay * s)
        total = 0.0
        for s in range(m, -1, -1):
            above[s] = total
            total += chance[s]
        for b in range(m, 0, -1):
            here, ahead = q[b], q[b - 1]
            stay, take = above[b], chance[b]
            here[0] = take + stay * here[0] + chance[0] * between[b] * ahead[0]
            for a in range(1, b):
                before_both = below[a] * ahead[a - 1]
                here[a] = take + stay * here[a] + chance[a] * between[b - a] * ahead[a] + before_both
    return q
