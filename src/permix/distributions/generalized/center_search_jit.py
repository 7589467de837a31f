# mypy: ignore-errors
"""Maximum likelihood of one generalized Mallows model: the decays of a center, and the best center.

Given the center, stage j with N lists that skip S items in total has log-likelihood -θ S - N ln ψ(θ), concave
in θ; its maximum over θ is N h(S / N). h falls from h(0) = 0, where θ is infinite, to h(m/2) = -ln(m + 1),
where θ is 0, and stays; it is convex, being a maximum of straight lines. The best center maximizes
Σ_j N_j h_j(S_j / N_j).
"""

from __future__ import annotations

import numpy as np

from permix.distributions.generalized.finite_beta_jit import theta_mode
from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step

# Nodes of the table of h, spaced evenly in the square root of S / N because h is steep near 0.
NODES = 2048


@kernel
def best_theta(skips, lists, m):
    """Return the maximum-likelihood decay of a stage with largest skip ``m``; from 0 to infinity."""
    if skips <= 0.0:
        return np.inf
    return theta_mode(skips, lists, m)


@kernel
def stage_maximum(skips, lists, m):
    """Return N h(S / N), the largest log-likelihood of a stage."""
    theta = best_theta(skips, lists, m)
    if theta == np.inf:
        return 0.0
    return -theta * skips - lists * log_normalizer_step(theta, m + 1)


@kernel
def profile(skips, lists, n_items, theta):
    """Set ``theta`` to the best decays for these totals and return the log-likelihood they reach."""
    total = 0.0
    for j in range(theta.size):
        theta[j] = best_theta(skips[j], lists[j], n_items - 1 - j)
        total += stage_maximum(skips[j], lists[j], n_items - 1 - j)
    return total


@kernel
def stage_table(lists, m):
    """Tabulate N h at S / N = m/2 (g / NODES)², g = 0..NODES."""
    out = np.empty(NODES + 1)
    for g in range(NODES + 1):
        out[g] = stage_maximum(lists * 0.5 * m * (g / NODES) ** 2, lists, m)
    return out


@kernel
def _at_most(table, skips, lists, m):
    """Return an upper bound of N h(S / N): a chord of a convex function lies above it."""
    full = 0.5 * m * lists
    if skips >= full:
        return table[NODES]
    x = skips / full
    g = min(np.int64(NODES * np.sqrt(x)), NODES - 1)
    low, high = (g / NODES) ** 2, ((g + 1) / NODES) ** 2
    share = min(1.0, max(0.0, (x - low) / (high - low)))
    return table[g] + share * (table[g + 1] - table[g])


@kernel
def search_centers(counts, lists, n_items, max_nodes, tolerance, best, best_order):
    """Go through all centers of m items from the top, leaving out what cannot beat ``best`` by ``tolerance``.

    ``counts[i, k, j]`` = R_j[i, k]. A beginning of the center has paid for its own pairs and for those with
    the items that are left; each pair of these costs every stage at least the lesser of R_j[i, k] and
    R_j[k, i]. So S_j is at least what is paid in excess of those lesser numbers plus all of them. The best
    center found replaces ``best_order``. Returns its log-likelihood and whether the search was complete.
    """
    m, _, n_stages = counts.shape
    tables = np.empty((n_stages, NODES + 1))
    for j in range(n_stages):
        tables[j] = stage_table(lists[j], n_items - 1 - j)
    # What item k pays more than the lesser number for standing before i, by stage.
    excess = np.empty((m, m, n_stages))
    least = np.zeros((m, n_stages))  # least[depth]: lower bounds of S of the present beginning
    pay = np.zeros((m, m, n_stages))  # pay[depth, k]: excess of k over all others that are left
    for k in range(m):
        for i in range(m):
            for j in range(n_stages):
                lesser = min(counts[i, k, j], counts[k, i, j])
                excess[k, i, j] = counts[i, k, j] - lesser
                pay[0, k, j] += excess[k, i, j]
                if i < k:
                    least[0, j] += lesser
    left = np.empty((m, m), np.int64)  # left[depth, :m-depth]: items that are left, most promising first
    bound = np.empty((m, m))
    turn = np.zeros(m, np.int64)
    order = np.empty(m, np.int64)
    theta = np.empty(n_stages)
    skips = np.empty(n_stages)
    for k in range(m):
        left[0, k] = k
    depth, nodes, entered = 0, 0, True
    while depth >= 0:
        n_left = m - depth
        if entered:
            entered = False
            turn[depth] = 0
            nodes += 1
            if nodes > max_nodes:
                return best, False
            for c in range(n_left):
                k = left[depth, c]
                total = 0.0
                for j in range(n_stages):
                    total += _at_most(
                        tables[j], least[depth, j] + pay[depth, k, j], lists[j], n_items - 1 - j
                    )
                bound[depth, c] = total
            for c in range(1, n_left):  # sort by insertion: few, and nearly in order from the level above
                k, value = left[depth, c], bound[depth, c]
                d = c - 1
                while d >= 0 and bound[depth, d] < value:
                    left[depth, d + 1], bound[depth, d + 1] = left[depth, d], bound[depth, d]
                    d -= 1
                left[depth, d + 1], bound[depth, d + 1] = k, value
        c = turn[depth]
        if c == n_left or bound[depth, c] <= best + tolerance:
            depth -= 1
            continue
        turn[depth] += 1
        k = left[depth, c]
        order[depth] = k
        if n_left == 1:
            for j in range(n_stages):
                skips[j] = least[depth, j]
            value = profile(skips, lists, n_items, theta)
            if value > best + tolerance:
                best = value
                best_order[:] = order
            continue
        for j in range(n_stages):
            least[depth + 1, j] = least[depth, j] + pay[depth, k, j]
        d = 0
        for other in range(n_left):
            i = left[depth, other]
            if i != k:
                left[depth + 1, d] = i
                d += 1
                for j in range(n_stages):
                    pay[depth + 1, i, j] = pay[depth, i, j] - excess[i, k, j]
        depth += 1
        entered = True
    return best, True
