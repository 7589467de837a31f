# mypy: ignore-errors
"""Moves of a cluster's center, given the decays of its stages.

The lists of a cluster weigh an ordering σ by exp(-Σ_j θ_j S_j(σ)). Putting item x before item y costs A_y -
C_xy: A_y sums θ_j over the lists that have y at rank j, C_xy over those of them that have x earlier (the
matrix R of Meilă & Chen 2010, figure 2, is A less C). C is tabulated for the items that the lists mention;
where they mention very many, what one item needs of it is found by walking the lists that mention the item,
so that no array is larger than the lists. Items that no list mentions are alike: they are counted, not looped
over, and shuffled among their places.

``reinsert`` takes out one item and puts it back anywhere, by its exact conditional distribution.
``stagewise`` rebuilds a window of the center stage by stage (figure 2). Lemma 2 calls this exact, but its
stage normalizers depend on what was placed before, so it is a proposal here: the ratio of target to proposal
is the product of the stages' normalizers, and a Metropolis–Hastings step accepts or refuses it.
"""

from __future__ import annotations

import math

import numpy as np

from permix.distributions.generalized.finite_beta_jit import theta_mode
from permix.dp_mallows.lists.mentions_jit import attract, survey, total_skips
from permix.kernels.jit import kernel
from permix.kernels.streams import categorical_log, integers, uniform

# Decays used to propose stay within these, whatever the data say.
LEAST_DECAY, MOST_DECAY = 0.01, 10.0


@kernel
def reinsert(stream, mentions, theta, order, places):
    """Give every mentioned item in turn a new place from its exact conditional distribution.

    ``order`` and ``places`` are the center, both ways. Moving x down past y changes the energy by
    (A_x - C_yx) - (A_y - C_xy).
    """
    attraction, balance, energies = mentions.attraction, mentions.balance, mentions.energies
    for own in range(mentions.mentioned.size):
        x = mentions.mentioned[own]
        if mentions.table.size:
            for index in range(mentions.mentioned.size):
                balance[mentions.mentioned[index]] = mentions.table[own, index] - mentions.table[index, own]
        else:
            for at in range(mentions.starts[x], mentions.starts[x + 1]):
                begin, here = mentions.spans[at, 0], mentions.spans[at, 1]
                for other in range(begin, here):
                    balance[mentions.items[other]] += mentions.times[at] * theta[here - begin]
                for other in range(here + 1, mentions.spans[at, 2]):
                    balance[mentions.items[other]] -= mentions.times[at] * theta[other - begin]
        old = places[x]
        energy = 0.0
        energies[0] = 0.0
        slot = 0
        for place in range(order.size):
            y = order[place]
            if y != x:
                energy += attraction[x] - attraction[y] - balance[y]
                slot += 1
                energies[slot] = -energy
        new = categorical_log(stream, energies, order.size)
        for index in range(mentions.mentioned.size):
            balance[mentions.mentioned[index]] = 0.0
        step = 1 if new > old else -1
        for place in range(old, new, step):
            order[place] = order[place + step]
            places[order[place]] = place
        order[new] = x
        places[x] = new


@kernel
def _count(mentions, theta, y, sign):
    """Add what y is worth to the items that lists mention before it (sign 1), or take it from them (-1)."""
    earlier = mentions.earlier
    if mentions.table.size:
        row = mentions.table[mentions.position[y]]
        for index in range(row.size):
            earlier[mentions.mentioned[index]] += sign * row[index]
        return
    for at in range(mentions.starts[y], mentions.starts[y + 1]):
        begin, own = mentions.spans[at, 0], mentions.spans[at, 1]
        weight = sign * theta[own - begin] * mentions.times[at]
        for other in range(begin, own):
            earlier[mentions.items[other]] += weight


@kernel
def stage_by_stage(stream, mentions, theta, n_window, how, out):
    """Place the items of ``window[:n_window]`` one by one; returns Σ ln of the stages' normalizers.

    The next item is x with weight exp(-Σ_y (A_y - C_xy)) over the y that are left. ``how`` is 0 to draw into
    ``out``, 1 to follow the order in ``out``, 2 to take the best item every time.
    """
    left, logs = mentions.left, mentions.energies
    # Mentioned items come first.
    n_left, n_other = 0, 0
    for is_mentioned in (True, False):
        for index in range(n_window):
            x = mentions.window[index]
            if (mentions.starts[x + 1] > mentions.starts[x]) == is_mentioned:
                mentions.earlier[x] = 0.0
                left[n_left + n_other] = x
                n_left += is_mentioned
                n_other += not is_mentioned
    for index in range(n_left):
        _count(mentions, theta, left[index], 1.0)
    remaining = 0.0
    for index in range(n_left):
        remaining += mentions.attraction[left[index]]
    total = 0.0
    for place in range(n_window):
        if n_left == 0:
            # Nothing tells the others apart: Π of 1/n, 1/(n-1), ...
            total += math.lgamma(n_other + 1.0)
            for rest in range(n_other):
                if how != 1:
                    chosen = rest
                    if how == 0:
                        chosen += integers(stream, n_other - rest)
                    out[place + rest] = left[chosen]
                    left[chosen] = left[rest]
            break
        largest = 0.0
        for index in range(n_left):
            logs[index] = mentions.attraction[left[index]] + mentions.earlier[left[index]]
            largest = max(largest, logs[index])
        n_options = n_left
        if n_other > 0:
            logs[n_left] = np.log(n_other)
            n_options += 1
            largest = max(largest, logs[n_left])
        sum_here = 0.0
        for index in range(n_options):
            if logs[index] > largest - 40.0:
                sum_here += np.exp(logs[index] - largest)
        total += largest + np.log(sum_here) - remaining
        if how == 1:
            y = out[place]
            chosen = n_left
            if mentions.starts[y + 1] > mentions.starts[y]:
                chosen = 0
                while left[chosen] != y:
                    chosen += 1
        elif how == 0:
            chosen = categorical_log(stream, logs, n_options)
        else:
            chosen = 0
            for index in range(1, n_left):
                if logs[index] > logs[chosen]:
                    chosen = index
        if chosen < n_left:
            y = left[chosen]
            remaining -= mentions.attraction[y]
            _count(mentions, theta, y, -1.0)
            # Keep mentioned items first: the last of them moves up, the last of the others takes its place.
            n_left -= 1
            left[chosen] = left[n_left]
            left[n_left] = left[n_left + n_other]
        else:
            if how != 1:
                pick = n_left + integers(stream, n_other)
                y = left[pick]
                left[pick] = left[n_left + n_other - 1]
            n_other -= 1
        if how != 1:
            out[place] = y
    return total


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
def shuffle_unmentioned(stream, mentions, order, places):
    """Deal the items that no list mentions among their places at random."""
    n = 0
    for place in range(order.size):
        if mentions.starts[order[place] + 1] == mentions.starts[order[place]]:
            mentions.left[n] = order[place]
            n += 1
    if n < 2:
        return
    for place in range(order.size):
        if mentions.starts[order[place] + 1] == mentions.starts[order[place]]:
            chosen = integers(stream, n)
            order[place] = mentions.left[chosen]
            places[order[place]] = place
            n -= 1
            mentions.left[chosen] = mentions.left[n]


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
def improve(source, k, tables, n_rounds, stream, order, places, totals, counts, theta):
    """Find a center and decays that suit cluster ``k``, from the decays at hand; nothing here is random.

    A round sets the center to the best item at every stage given θ, and θ to what is most plausible then.
    """
    mentions = survey(source, k, order.size)
    for item in range(order.size):
        mentions.window[item] = item
    for _ in range(n_rounds):
        attract(mentions, theta)
        stage_by_stage(stream, mentions, theta, order.size, 2, order)
        for place in range(order.size):
            places[order[place]] = place
        total_skips(source, k, places, totals, counts)
        for j in range(theta.size):
            mode = theta_mode(tables.prior_a[j] + totals[j], tables.prior_c + counts[j], tables.skips[j])
            theta[j] = min(max(mode, LEAST_DECAY), MOST_DECAY)
    return mentions
