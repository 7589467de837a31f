# mypy: ignore-errors
"""Shares and decays of groups move together, with nobody's group given.

Where groups overlap, who belongs where says little of what a group is like: shares and decays that are drawn
given who belongs where, again and again, take many small steps. Here that is summed out. With the centers σ
as they are, the weights x of groups, shares up to a factor, and their decays θ have density

    Π_k x_k^(-1-d) e^(-x_k) Π_j p(θ_kj) × Π_pinned (x P(list | σ, θ) of the agent's group)
                                        × Π_others Σ_k x_k P(list | σ_k, θ_k),

where d is the discount of the prior of the partition, and some agents are pinned to their groups, which do
not become empty thereby. A step follows a trajectory of Hamiltonian dynamics (Neal 2011) in

    ρ_k = 2 √x_k   and   η_kj = ρ_k c_j (ln θ_kj - m_j).

Were it known who belongs where, these would have variances of about one; the constants depend on nothing that
moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.distributions.generalized.finite_beta_jit import theta_mode
from permix.dp_mallows.lists.top_lists_jit import skip_at
from permix.kernels.jit import kernel
from permix.kernels.mallows import displacement_moments, log_normalizer_step
from permix.kernels.streams import new_stream, normal, open_stream, uniform

# Decays that are taken as usual are no smaller or larger than these; places that few lists reach count for
# this share of the agents.
LEAST_USUAL, MOST_USUAL, LEAST_REACH = 0.1, 10.0, 0.01
# Trajectories along which a decay has a logarithm beyond these are refused.
LEAST_LOG, MOST_LOG = -25.0, 10.0
# Steps are up to so much shorter or longer than asked for, so that no trajectory always comes back.
SPREAD = 0.2


class Beginnings(NamedTuple):
    """Beginnings of lists, each once and after what it begins with; number 0 is the empty list."""

    parent: np.ndarray  # int64: the same without its last item
    stage: np.ndarray  # int64: the place of its last item, -1 of the empty list
    starts: np.ndarray  # int64: where a list that begins so starts
    whole: np.ndarray  # int64 (lists,): the whole list


@kernel
def beginnings(lists):
    """Return the beginnings of lists, which are sorted."""
    n_lists, most = lists.starts.size - 1, lists.items.size + 1
    parent, stage, starts = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    whole, path = np.empty(n_lists, np.int64), np.empty(most, np.int64)
    parent[0], stage[0], starts[0], path[0] = 0, -1, 0, 0
    n, before, n_known = 1, 0, 0
    for d in range(n_lists):
        start = lists.starts[d]
        t = lists.starts[d + 1] - start
        j = 0
        while j < min(t, n_known) and lists.items[start + j] == lists.items[before + j]:
            j += 1
        while j < t:
            parent[n], stage[n], starts[n] = path[j], j, start
            path[j + 1] = n
            n += 1
            j += 1
        whole[d] = path[t]
        before, n_known = start, t
    return Beginnings(parent[:n], stage[:n], starts[:n], whole)


class Given(NamedTuple):
    """What does not move."""

    times: np.ndarray  # (lists,): agents of each list who are not pinned
    pinned: np.ndarray  # (groups, lists): agents who are
    discount: float
    skips: np.ndarray  # int16 (groups, beginnings): of their last item under the centers
    middle: np.ndarray  # m_j
    scales: np.ndarray  # c_j


@kernel
def slope(tables, tree, given, point, chances, out):
    """Write the gradient of ln density at ``point``, (groups, 1 + stages), to ``out``; returns ln density.

    ``chances`` (groups, beginnings) is room for work.
    """
    n, n_stages, n_nodes, n_lists = point.shape[0], given.middle.size, tree.parent.size, given.times.size
    power = -1.0 - 2.0 * given.discount - n_stages  # of ρ, the Jacobian included
    table = np.empty((n_stages, tables.skips[0] + 1))
    value = 0.0
    for k in range(n):
        rho, row, skips = point[k, 0], chances[k], given.skips[k]
        if not rho > 0.0:
            return -np.inf
        value += power * np.log(rho) - 0.25 * rho * rho
        for j in range(n_stages):
            log_theta = given.middle[j] + point[k, 1 + j] / (rho * given.scales[j])
            if not LEAST_LOG < log_theta < MOST_LOG:
                return -np.inf
            theta, m = np.exp(log_theta), tables.skips[j]
            log_psi = log_normalizer_step(theta, m + 1)
            value += log_theta - tables.prior_a[j] * theta - tables.prior_c * log_psi
            # Relative to choosing at random.
            chance, factor = np.exp(np.log(m + 1.0) - log_psi), np.exp(-theta)
            for skip in range(m + 1):
                table[j, skip] = chance
                chance *= factor
        row[0] = 0.25 * rho * rho
        for node in range(1, n_nodes):
            row[node] = row[tree.parent[node]] * table[tree.stage[node], skips[node]]
    shares = np.zeros(n_lists)
    for k in range(n):
        for d in range(n_lists):
            chance = chances[k, tree.whole[d]]
            shares[d] += chance
            if given.pinned[k, d] > 0.0:
                value += given.pinned[k, d] * np.log(chance)
    for d in range(n_lists):
        if given.times[d] == 0.0:
            shares[d] = 0.0
            continue
        if not shares[d] > 0.0:
            return -np.inf
        value += given.times[d] * np.log(shares[d])
        shares[d] = given.times[d] / shares[d]
    if not value > -np.inf:
        return -np.inf
    # How many agents of the group have lists with each beginning.
    agents, totals, counts = np.empty(n_nodes), np.empty(n_stages), np.empty(n_stages)
    for k in range(n):
        rho, row, skips = point[k, 0], chances[k], given.skips[k]
        for node in range(n_nodes):
            agents[node] = 0.0
        for d in range(n_lists):
            agents[tree.whole[d]] = shares[d] * row[tree.whole[d]] + given.pinned[k, d]
        for j in range(n_stages):
            totals[j] = counts[j] = 0.0
        for node in range(n_nodes - 1, 0, -1):
            here, j = agents[node], tree.stage[node]
            agents[tree.parent[node]] += here
            totals[j] += here * skips[node]
            counts[j] += here
        out[k, 0] = (2.0 * agents[0] + power) / rho - 0.5 * rho
        for j in range(n_stages):
            from_middle = point[k, 1 + j] / (rho * given.scales[j])
            theta = np.exp(given.middle[j] + from_middle)
            mean, _ = displacement_moments(theta, tables.skips[j] + 1)
            by_log = 1.0 + theta * ((tables.prior_c + counts[j]) * mean - tables.prior_a[j] - totals[j])
            out[k, 1 + j] = by_log / (rho * given.scales[j])
            out[k, 0] -= by_log * from_middle / rho
    return value


@kernel
def given_of(lists, tree, tables, discount, places, times, pinned):
    """Collect what does not move."""
    n, n_stages = places.shape[0], tables.skips.size
    skips = np.zeros((n, tree.parent.size), np.int16)
    for k in range(n):
        for node in range(1, tree.parent.size):
            skips[k, node] = skip_at(lists.items, tree.starts[node], tree.stage[node], places[k])
    middle, scales = np.empty(n_stages), np.zeros(n_stages)
    for d in range(times.size):
        for j in range(lists.starts[d + 1] - lists.starts[d]):
            scales[j] += times[d]
    for j in range(n_stages - 1, -1, -1):
        mode = theta_mode(tables.prior_a[j], tables.prior_c, tables.skips[j])
        middle[j] = np.log(min(max(mode, LEAST_USUAL), MOST_USUAL))
        # All lists reach the first place.
        scales[j] = 0.5 * np.sqrt(scales[j] / (scales[0] + 1e-9) + LEAST_REACH)
    return Given(times, pinned, discount, skips, middle, scales)


@kernel
def drift(key, lists, tables, discount, places, times, pinned, n_steps, step, shares, theta):
    """Propose a trajectory for all groups; returns whether it was accepted.

    ``places`` (groups, items) are the centers, ``shares`` (groups,) and ``theta`` (stages, groups) move.
    ``times`` are the agents of each list who are not pinned, and ``pinned`` (groups, lists) those who are.
    """
    stream = new_stream()
    open_stream(stream, key[0], key[1], 0, 0)
    n_stages, n = theta.shape
    tree = beginnings(lists)
    given = given_of(lists, tree, tables, discount, places, times, pinned)
    chances = np.empty((n, tree.parent.size))
    point, push, gradient = (
        np.empty((n, 1 + n_stages)),
        np.empty((n, 1 + n_stages)),
        np.empty((n, 1 + n_stages)),
    )
    for k in range(n):
        point[k, 0] = 2.0 * np.sqrt(shares[k])
        for j in range(n_stages):
            point[k, 1 + j] = point[k, 0] * given.scales[j] * (np.log(theta[j, k]) - given.middle[j])
    log_ratio = -slope(tables, tree, given, point, chances, gradient)
    if not log_ratio < np.inf:
        return False
    for k in range(n):
        for j in range(1 + n_stages):
            push[k, j] = normal(stream)
            log_ratio += 0.5 * push[k, j] ** 2
    step *= 1.0 - SPREAD + 2.0 * SPREAD * uniform(stream)
    value = -np.inf
    for _ in range(n_steps):
        for k in range(n):
            for j in range(1 + n_stages):
                push[k, j] += 0.5 * step * gradient[k, j]
                point[k, j] += step * push[k, j]
        value = slope(tables, tree, given, point, chances, gradient)
        if not value > -np.inf:
            return False
        for k in range(n):
            for j in range(1 + n_stages):
                push[k, j] += 0.5 * step * gradient[k, j]
    log_ratio += value
    for k in range(n):
        for j in range(1 + n_stages):
            log_ratio -= 0.5 * push[k, j] ** 2
    if not (log_ratio >= 0.0 or uniform(stream) < np.exp(log_ratio)):
        return False
    for k in range(n):
        shares[k] = 0.25 * point[k, 0] ** 2
        for j in range(n_stages):
            theta[j, k] = np.exp(given.middle[j] + point[k, 1 + j] / (point[k, 0] * given.scales[j]))
    return True
