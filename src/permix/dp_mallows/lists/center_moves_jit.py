# mypy: ignore-errors
"""Moves of a cluster's center, given the decays of its stages.

The lists of a cluster weigh an ordering σ by exp(-Σ_j θ_j S_j(σ)). Putting item x before item y costs A_y -
C_xy: A_y sums θ_j over the lists that have y at rank j, C_xy over those of them that have x earlier (the
matrix R of Meilă & Chen 2010, figure 2, is A less C). Where there are few items, both are sums of counts of
pairs. Where there are many, lists are read, see ``many_items_jit``.

``reinsert`` takes out one item and puts it back anywhere, by its exact conditional distribution.
``stagewise`` rebuilds a window of the center stage by stage (figure 2). Lemma 2 calls this exact, but its
stage normalizers depend on what was placed before, so it is a proposal here: the ratio of target to proposal
is the product of the stages' normalizers, and a Metropolis–Hastings step accepts or refuses it.
"""

from __future__ import annotations

import numpy as np

from permix.distributions.generalized.finite_beta_jit import theta_mode
from permix.dp_mallows.lists.pair_counts_jit import Pairs, survey, total_skips
from permix.dp_mallows.lists.top_lists_jit import undefined
from permix.kernels.jit import implements, kernel
from permix.kernels.streams import categorical_log, integers, uniform

# Decays used to propose stay within these, whatever the data say.
LEAST_DECAY, MOST_DECAY = 0.01, 10.0


# How A and C are known is chosen by the type of ``mentions``: Pairs, or Mentions.


def attract(mentions, theta):
    """Write A and C, given θ."""
    undefined("attract")


def reinsert(stream, mentions, theta, order, places):
    """Give every item in turn a new place from its exact conditional distribution.

    ``order`` and ``places`` are the center, both ways. Moving x down past y changes the energy by
    (A_x - C_yx) - (A_y - C_xy).
    """
    undefined("reinsert")


def stage_by_stage(stream, mentions, theta, n_window, how, out):
    """Place the items of ``window[:n_window]`` one by one; returns Σ ln of the stages' normalizers.

    The next item is x with weight exp(-Σ_y (A_y - C_xy)) over the y that are left. ``how`` is 0 to draw into
    ``out``, 1 to follow the order in ``out``, 2 to take the best item every time.
    """
    undefined("stage_by_stage")


@implements(attract, Pairs, "mentions")
def _attract(mentions, theta):
    n_items = mentions.left.size
    for y in range(n_items):
        for x in range(n_items):
            total = 0.0
            for j in range(theta.size):
                total += theta[j] * mentions.pairs[j, y, x]
            mentions.table[y, x] = total
        mentions.attraction[y] = mentions.table[y, y]
        mentions.table[y, y] = 0.0


@implements(reinsert, Pairs, "mentions")
def _reinsert(stream, mentions, theta, order, places):
    attraction, table, energies = mentions.attraction, mentions.table, mentions.energies
    for x in range(order.size):
        energy, slot = 0.0, 0
        energies[0] = 0.0
        for place in range(order.size):
            y = order[place]
            if y != x:
                energy += (attraction[x] - table[x, y]) - (attraction[y] - table[y, x])
                slot += 1
                energies[slot] = -energy
        move_item(x, categorical_log(stream, energies, order.size), order, places)


@implements(stage_by_stage, Pairs, "mentions")
def _stage_by_stage(stream, mentions, theta, n_window, how, out):
    left, logs, table, earlier = mentions.left, mentions.energies, mentions.table, mentions.earlier
    total, remaining = 0.0, 0.0
    for index in range(n_window):
        x = mentions.window[index]
        left[index] = x
        remaining += mentions.attraction[x]
        earlier[x] = 0.0
        for other in range(n_window):
            earlier[x] += table[mentions.window[other], x]
    for place in range(n_window):
        n_left = n_window - place
        largest, chosen = -np.inf, 0
        for index in range(n_left):
            logs[index] = mentions.attraction[left[index]] + earlier[left[index]]
            if logs[index] > largest:
                largest, chosen = logs[index], index
        sum_here = 0.0
        for index in range(n_left):
            sum_here += np.exp(logs[index] - largest)
        total += largest + np.log(sum_here) - remaining
        if how == 0:
            chosen = categorical_log(stream, logs, n_left)
        elif how == 1:
            chosen = 0
            while left[chosen] != out[place]:
                chosen += 1
        y = left[chosen]
        out[place] = y
        remaining -= mentions.attraction[y]
        left[chosen] = left[n_left - 1]
        for index in range(n_left - 1):
            earlier[left[index]] -= table[y, left[index]]
    return total


@kernel
def move_item(x, new, order, places):
    """Move item ``x`` to another place."""
    old = np.int64(places[x])
    step = 1 if new > old else -1
    for place in range(old, new, step):
        order[place] = order[place + step]
        places[order[place]] = place
    order[new] = x
    places[x] = new


@kernel
def stagewise(stream, mentions, theta, order, places, low, high):
    """Propose a new order of the places ``low`` to ``high``; returns whether it was accepted."""
    proposal = np.empty(high - low, np.int32)
    for index in range(proposal.size):
        proposal[index] = order[low + index]
        mentions.window[index] = proposal[index]
    # First the present order is followed, then a new one is drawn.
    log_normalizers = np.empty(2)
    for turn in range(2):
        log_normalizers[turn] = stage_by_stage(stream, mentions, theta, proposal.size, 1 - turn, proposal)
    gain = log_normalizers[1] - log_normalizers[0]
    accepted = gain >= 0.0 or uniform(stream) < np.exp(gain)
    if accepted:
        for index in range(proposal.size):
            order[low + index] = proposal[index]
            places[order[low + index]] = low + index
    return accepted


@kernel
def draw_window(stream, n):
    """Return the ends of a random window of 2 to ``n`` places, short ones most.

    Drawn without regard to the state, so that proposals within it are reversible.
    """
    if n < 2:
        return 0, n
    length = np.int64(2.0 * np.exp(uniform(stream) * np.log(0.5 * n + 0.5)))
    length = min(max(length, 2), n)
    low = integers(stream, n - length + 1)
    return low, low + length


@kernel
def find_center(stream, mentions, theta, order, places):
    """Set a center to the best item at every stage given θ; nothing here is random."""
    for item in range(order.size):
        mentions.window[item] = item
    attract(mentions, theta)
    stage_by_stage(stream, mentions, theta, order.size, 2, order)
    for place in range(order.size):
        places[order[place]] = place


@kernel
def improve(source, k, tables, n_rounds, stream, order, places, totals, counts, theta):
    """Find a center and decays that suit cluster ``k``, from the decays at hand; nothing here is random.

    A round sets the center given θ, and θ to what is most plausible then.
    """
    mentions = survey(source, k, order.size)
    for _ in range(n_rounds):
        find_center(stream, mentions, theta, order, places)
        total_skips(source, k, places, totals, counts)
        for j in range(theta.size):
            mode = theta_mode(tables.prior_a[j] + totals[j], tables.prior_c + counts[j], tables.skips[j])
            theta[j] = min(max(mode, LEAST_DECAY), MOST_DECAY)
    return mentions
