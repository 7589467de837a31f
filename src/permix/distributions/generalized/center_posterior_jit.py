# mypy: ignore-errors
"""Posterior of the center and the decays of one generalized Mallows model.

Density ∝ Π_j exp(-(ν r_j + S_j(center)) θ_j) ψ_j(θ_j)^-(ν + N_j) (Meilă & Chen 2010, equation 8); prior lists
are counted in S. With θ integrated out it is Π_j B̃eta(ν r_j + S_j, ν + N_j + 1, n - 1 - j).

A chain knows the items that some list names; all others are alike and held as ``-1`` in the order. Their
order among themselves is uniform and drawn when a state is written down.
"""

from __future__ import annotations

import numpy as np

from permix.distributions.generalized.finite_beta_jit import draw_theta, log_integral
from permix.distributions.generalized.list_statistics_jit import pair_costs, skip_totals
from permix.kernels.jit import kernel
from permix.kernels.kemeny_search import move_item
from permix.kernels.streams import categorical_log, integers, new_stream, open_stream, uniform

# Proposals per round that see θ integrated out: they leave states to which a large θ would hold fast.
COLLAPSED_PROPOSALS = 4


@kernel
def marginal_density(tables, lists, skips):
    """Return ln Π_j B̃eta(ν r_j + S_j, ν + N_j + 1), what the posterior of a center is proportional to."""
    total = 0.0
    for j in range(skips.size):
        total += log_integral(tables, j, tables.prior_a[j] + skips[j], tables.prior_c + lists[j])
    return total


@kernel
def marginal_densities(tables, lists, stage, values):
    """Return ln B̃eta of one stage for many totals S."""
    out = np.empty(values.size)
    for i in range(values.size):
        out[i] = log_integral(tables, stage, tables.prior_a[stage] + values[i], tables.prior_c + lists[stage])
    return out


@kernel
def draw_decays(key, tables, lists, skips, out):
    """Fill row after row with decays given the skips in the same row of ``skips``."""
    stream = new_stream()
    for row in range(skips.shape[0]):
        open_stream(stream, key[0], key[1], 0, row)
        for j in range(skips.shape[1]):
            a, c = tables.prior_a[j] + skips[row, j], tables.prior_c + lists[j]
            out[row, j] = draw_theta(stream, a, c, tables.skips[j])


@kernel
def _ranks_of_named(order, ranks):
    for rank in range(order.size):
        if order[rank] >= 0:
            ranks[order[rank]] = rank


@kernel
def place_of(order, item):
    """Return where the item stands."""
    place = 0
    while order[place] != item:
        place += 1
    return place


@kernel
def reinsert(stream, net, item, order, logs):
    """Take one named item out and put it back at a place drawn given all others and θ.

    ``net[i, k]``: what the center pays for k before i less what it pays for i before k; the last column is
    for items that no list names.
    """
    n = order.size
    blank = net.shape[1] - 1
    move_item(order, place_of(order, item), n - 1)
    paid = 0.0
    logs[0] = 0.0
    for p in range(n - 1):
        passed = order[p] if order[p] >= 0 else blank
        paid += net[item, passed]
        logs[p + 1] = -paid
    move_item(order, n - 1, categorical_log(stream, logs, n))


@kernel
def run_center_chain(key, chain, stats, tables, n_burn_in, n_draws, n_thin, centers, thetas, log_joints):
    """Run one chain from a random center and write its draws.

    A round is a few proposals that move any named item to any place, accepted with θ integrated out; a draw
    of θ given the center; and every named item reinserted given θ. Returns the share of accepted proposals.
    """
    n, m, n_stages = stats.n_items, stats.items.size, stats.lists.size
    stream = new_stream()
    order = np.full(n, -1)
    trial = np.empty(n, np.int64)
    ranks = np.empty(m, np.int64)
    skips, trial_skips, theta = np.empty(n_stages), np.empty(n_stages), np.empty(n_stages)
    costs, net, logs = np.empty((m, m + 1)), np.empty((m, m + 1)), np.empty(n)
    unnamed = np.empty(n - m, np.int64)
    is_named = np.zeros(n, np.bool_)
    is_named[stats.items] = True
    count = 0
    for item in range(n):
        if not is_named[item]:
            unnamed[count] = item
            count += 1
    open_stream(stream, key[0], key[1], 0, chain)
    for i in range(m):
        order[i] = i
    _shuffle(stream, order)
    accepted, proposed = 0, 0
    for step in range(n_burn_in + n_draws * n_thin):
        open_stream(stream, key[0], key[1], step + 1, chain)
        _ranks_of_named(order, ranks)
        skip_totals(stats, ranks, skips)
        density = marginal_density(tables, stats.lists, skips)
        for _ in range(COLLAPSED_PROPOSALS if m > 0 else 0):
            trial[:] = order
            move_item(trial, place_of(trial, integers(stream, m)), integers(stream, n))
            _ranks_of_named(trial, ranks)
            skip_totals(stats, ranks, trial_skips)
            found = marginal_density(tables, stats.lists, trial_skips)
            proposed += 1
            if np.log1p(-uniform(stream)) < found - density:
                accepted += 1
                order[:] = trial
                skips[:] = trial_skips
                density = found
        for j in range(n_stages):
            a, c = tables.prior_a[j] + skips[j], tables.prior_c + stats.lists[j]
            theta[j] = draw_theta(stream, a, c, tables.skips[j])
        pair_costs(stats, theta, costs)
        for i in range(m):
            net[i, m] = costs[i, m]
            for k in range(m):
                net[i, k] = costs[i, k] - costs[k, i]
        for i in range(m):
            reinsert(stream, net, i, order, logs)
        kept = step - n_burn_in + 1
        if kept > 0 and kept % n_thin == 0:
            row = kept // n_thin - 1
            _shuffle(stream, unnamed)
            count = 0
            for rank in range(n):
                if order[rank] >= 0:
                    centers[row, rank] = stats.items[order[rank]]
                else:
                    centers[row, rank] = unnamed[count]
                    count += 1
            thetas[row] = theta
            _ranks_of_named(order, ranks)
            skip_totals(stats, ranks, skips)
            log_joints[row] = marginal_density(tables, stats.lists, skips)
    return accepted / max(proposed, 1)


@kernel
def _shuffle(stream, values):
    for i in range(values.size - 1, 0, -1):
        j = integers(stream, i + 1)
        values[i], values[j] = values[j], values[i]
