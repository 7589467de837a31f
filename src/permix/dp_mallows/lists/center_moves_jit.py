# mypy: ignore-errors
"""Moves of a cluster's center, given the decays of its stages.

The lists of a cluster weigh an ordering σ by exp(-Σ_j θ_j S_j(σ)). Putting item x before item y costs A_y -
C_xy: A_y sums θ_j over the lists that have y at rank j, C_xy over those of them that have x earlier (the
matrix R of Meilă & Chen 2010, figure 2, is A less C). C is tabulated for the items that the lists mention,
in one small table that all clusters share in turn; where they mention very many, what one item needs of it is
found by walking the lists that mention the item, so that no array is larger than the lists. Items that no
list mentions are alike: they are counted, not looped over, and shuffled among their places.

``reinsert`` takes out one item and puts it back anywhere, by its exact conditional distribution.
``stagewise`` rebuilds a window of the center stage by stage (figure 2). Lemma 2 calls this exact, but its
stage normalizers depend on what was placed before, so it is a proposal here: the ratio of target to proposal
is the product of the stages' normalizers, and a Metropolis–Hastings step accepts or refuses it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.distributions.generalized.finite_beta_jit import draw_theta
from permix.dp_mallows.lists.top_lists_jit import sum_skips
from permix.kernels.jit import kernel
from permix.kernels.streams import categorical_log, integers, uniform

# Up to so many mentioned items C is tabulated; with more, lists are walked.
MOST_TABULATED = 256


class Mentions(NamedTuple):
    """Lists of a cluster by item: entries ``starts[x]`` to ``starts[x + 1]`` are the mentions of item x."""

    starts: np.ndarray  # int64 (items + 1,)
    member: np.ndarray  # int32: which entry of the cluster's members
    rank: np.ndarray  # int32: at which rank of its list


class CenterScratch(NamedTuple):
    """Room for the moves of one center."""

    attraction: np.ndarray  # A, by item
    balance: np.ndarray  # C_yx - C_xy for one x, by y; all 0 between uses
    energies: np.ndarray  # (items + 1,)
    earlier: np.ndarray  # Σ C_xy over the y that are left, by x
    inside: np.ndarray  # bool, by item: in the window and not placed yet
    left: np.ndarray  # int32 (items,)
    window: np.ndarray  # int32 (items,)
    proposal: np.ndarray  # int32 (items,)
    skips: np.ndarray  # int64 (items,)
    n_mentioned: np.ndarray  # int64 (1,)
    mentioned: np.ndarray  # int32 (items,)
    position: np.ndarray  # int32, by item: which of the mentioned ones
    table: np.ndarray  # C_xy at [position of y, position of x], where few items are mentioned


@kernel
def center_scratch(n_items):
    """Make room for the moves of centers over ``n_items``."""
    return CenterScratch(
        np.zeros(n_items),
        np.zeros(n_items),
        np.zeros(n_items + 1),
        np.zeros(n_items),
        np.zeros(n_items, np.bool_),
        np.zeros(n_items, np.int32),
        np.zeros(n_items, np.int32),
        np.zeros(n_items, np.int32),
        np.zeros(n_items, np.int64),
        np.zeros(1, np.int64),
        np.zeros(n_items, np.int32),
        np.zeros(n_items, np.int32),
        np.empty((min(n_items, MOST_TABULATED), min(n_items, MOST_TABULATED))),
    )


@kernel
def find_mentions(lists, members, first, last, n_items):
    """Return the mentions of every item in the lists ``members[first:last]``."""
    starts = np.zeros(n_items + 2, np.int64)
    for entry in range(first, last):
        d = members[entry]
        for at in range(lists.starts[d], lists.starts[d + 1]):
            starts[lists.items[at] + 2] += 1
    for item in range(2, n_items + 2):
        starts[item] += starts[item - 1]
    member = np.empty(starts[n_items + 1], np.int32)
    rank = np.empty(starts[n_items + 1], np.int32)
    for entry in range(first, last):
        d = members[entry]
        for at in range(lists.starts[d], lists.starts[d + 1]):
            slot = starts[lists.items[at] + 1]
            member[slot] = entry
            rank[slot] = at - lists.starts[d]
            starts[lists.items[at] + 1] += 1
    return Mentions(starts, member, rank)


@kernel
def attract(lists, members, multiplicity, mentions, theta, scratch):
    """Write A, list the items that are mentioned, and where these are few, tabulate C."""
    n = 0
    for item in range(scratch.attraction.size):
        total = 0.0
        for at in range(mentions.starts[item], mentions.starts[item + 1]):
            total += theta[mentions.rank[at]] * multiplicity[mentions.member[at]]
        scratch.attraction[item] = total
        if mentions.starts[item + 1] > mentions.starts[item]:
            scratch.mentioned[n] = item
            scratch.position[item] = n
            n += 1
    scratch.n_mentioned[0] = n
    if n > scratch.table.shape[0]:
        return
    for index in range(n):
        row = scratch.table[index]
        for other in range(n):
            row[other] = 0.0
        y = scratch.mentioned[index]
        for at in range(mentions.starts[y], mentions.starts[y + 1]):
            entry = mentions.member[at]
            start = lists.starts[members[entry]]
            weight = theta[mentions.rank[at]] * multiplicity[entry]
            for earlier in range(start, start + mentions.rank[at]):
                row[scratch.position[lists.items[earlier]]] += weight


@kernel
def _is_tabulated(scratch):
    return scratch.n_mentioned[0] <= scratch.table.shape[0]


@kernel
def _weigh_against(lists, members, multiplicity, mentions, theta, x, scratch):
    """Write C_yx - C_xy to ``balance[y]`` for every y that shares a list with x; the others have 0."""
    balance = scratch.balance
    if _is_tabulated(scratch):
        own = scratch.position[x]
        for index in range(scratch.n_mentioned[0]):
            balance[scratch.mentioned[index]] = scratch.table[own, index] - scratch.table[index, own]
        return
    for at in range(mentions.starts[x], mentions.starts[x + 1]):
        entry = mentions.member[at]
        start, end = lists.starts[members[entry]], lists.starts[members[entry] + 1]
        own = start + mentions.rank[at]
        weight = multiplicity[entry]
        for other in range(start, own):
            balance[lists.items[other]] += weight * theta[own - start]
        for other in range(own + 1, end):
            balance[lists.items[other]] -= weight * theta[other - start]


@kernel
def reinsert(stream, lists, members, multiplicity, mentions, theta, order, places, scratch):
    """Give every mentioned item in turn a new place from its exact conditional distribution.

    ``order`` and ``places`` are the center, both ways. Moving x down past y changes the energy by
    (A_x - C_yx) - (A_y - C_xy).
    """
    n = order.size
    attraction, energies = scratch.attraction, scratch.energies
    for index in range(scratch.n_mentioned[0]):
        x = scratch.mentioned[index]
        _weigh_against(lists, members, multiplicity, mentions, theta, x, scratch)
        old = places[x]
        energy = 0.0
        energies[0] = 0.0
        slot = 0
        for place in range(n):
            y = order[place]
            if y != x:
                energy += attraction[x] - attraction[y] - scratch.balance[y]
                slot += 1
                energies[slot] = -energy
        new = categorical_log(stream, energies, n)
        for other in range(scratch.n_mentioned[0]):
            scratch.balance[scratch.mentioned[other]] = 0.0
        if new > old:
            for place in range(old, new):
                order[place] = order[place + 1]
                places[order[place]] = place
        else:
            for place in range(old, new, -1):
                order[place] = order[place - 1]
                places[order[place]] = place
        order[new] = x
        places[x] = new


@kernel
def _take(lists, members, multiplicity, mentions, theta, y, scratch):
    """Take item y out of the window: those placed before it no longer count it."""
    scratch.inside[y] = False
    if _is_tabulated(scratch):
        row = scratch.table[scratch.position[y]]
        for index in range(scratch.n_mentioned[0]):
            scratch.earlier[scratch.mentioned[index]] -= row[index]
        return
    for at in range(mentions.starts[y], mentions.starts[y + 1]):
        entry = mentions.member[at]
        start = lists.starts[members[entry]]
        weight = theta[mentions.rank[at]] * multiplicity[entry]
        for other in range(start, start + mentions.rank[at]):
            x = lists.items[other]
            if scratch.inside[x]:
                scratch.earlier[x] -= weight


@kernel
def _open_window(lists, members, multiplicity, mentions, theta, n_window, scratch):
    """Prepare ``window[:n_window]``; returns how many of its items are mentioned, put first in ``left``."""
    n_left = 0
    for index in range(n_window):
        x = scratch.window[index]
        scratch.inside[x] = True
        scratch.earlier[x] = 0.0
        if mentions.starts[x + 1] > mentions.starts[x]:
            scratch.left[n_left] = x
            n_left += 1
    n_other = 0
    for index in range(n_window):
        x = scratch.window[index]
        if mentions.starts[x + 1] == mentions.starts[x]:
            scratch.left[n_left + n_other] = x
            n_other += 1
    for index in range(n_left):
        y = scratch.left[index]
        if _is_tabulated(scratch):
            row = scratch.table[scratch.position[y]]
            for other in range(scratch.n_mentioned[0]):
                scratch.earlier[scratch.mentioned[other]] += row[other]
            continue
        for at in range(mentions.starts[y], mentions.starts[y + 1]):
            entry = mentions.member[at]
            start = lists.starts[members[entry]]
            weight = theta[mentions.rank[at]] * multiplicity[entry]
            for other in range(start, start + mentions.rank[at]):
                x = lists.items[other]
                if scratch.inside[x]:
                    scratch.earlier[x] += weight
    return n_left


@kernel
def stage_by_stage(stream, lists, members, multiplicity, mentions, theta, n_window, how, out, scratch):
    """Place the items of ``window[:n_window]`` one by one; returns Σ ln of the stages' normalizers.

    The next item is x with weight exp(-Σ_y (A_y - C_xy)) over the y that are left. ``how`` is 0 to draw into
    ``out``, 1 to follow the order in ``out``, 2 to take the best item every time.
    """
    n_left = _open_window(lists, members, multiplicity, mentions, theta, n_window, scratch)
    n_other = n_window - n_left
    left, logs = scratch.left, scratch.energies
    remaining = 0.0
    for index in range(n_left):
        remaining += scratch.attraction[left[index]]
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
            logs[index] = scratch.attraction[left[index]] + scratch.earlier[left[index]]
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
            remaining -= scratch.attraction[y]
            _take(lists, members, multiplicity, mentions, theta, y, scratch)
            # Keep mentioned items first: the last of them moves up, the last of the others takes its place.
            n_left -= 1
            left[chosen] = left[n_left]
            left[n_left] = left[n_left + n_other]
        else:
            if how != 1:
                pick = n_left + integers(stream, n_other)
                y = left[pick]
                left[pick] = left[n_left + n_other - 1]
            scratch.inside[y] = False
            n_other -= 1
        if how != 1:
            out[place] = y
    for index in range(n_window):
        scratch.inside[scratch.window[index]] = False
    return total


@kernel
def stagewise(stream, lists, members, multiplicity, mentions, theta, order, places, low, high, scratch):
    """Propose a new order of the places ``low`` to ``high``; returns whether it was accepted."""
    n_window = high - low
    for index in range(n_window):
        scratch.window[index] = order[low + index]
        scratch.proposal[index] = order[low + index]
    old = stage_by_stage(
        stream, lists, members, multiplicity, mentions, theta, n_window, 1, scratch.proposal, scratch
    )
    new = stage_by_stage(
        stream, lists, members, multiplicity, mentions, theta, n_window, 0, scratch.proposal, scratch
    )
    accepted = new >= old or uniform(stream) < np.exp(new - old)
    if accepted:
        for index in range(n_window):
            order[low + index] = scratch.proposal[index]
            places[order[low + index]] = low + index
    return accepted


@kernel
def shuffle_unmentioned(stream, mentions, order, places, scratch):
    """Deal the items that no list mentions among their places at random."""
    n = 0
    for place in range(order.size):
        if mentions.starts[order[place] + 1] == mentions.starts[order[place]]:
            scratch.left[n] = order[place]
            n += 1
    if n < 2:
        return
    for place in range(order.size):
        if mentions.starts[order[place] + 1] == mentions.starts[order[place]]:
            chosen = integers(stream, n)
            order[place] = scratch.left[chosen]
            places[order[place]] = place
            n -= 1
            scratch.left[chosen] = scratch.left[n]


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
def draw_decays(stream, tables, totals, counts, theta):
    """Draw θ of every stage from its exact distribution given the center."""
    for stage in range(theta.size):
        theta[stage] = draw_theta(
            stream,
            tables.prior_a[stage] + totals[stage],
            tables.prior_c + counts[stage],
            tables.skips[stage],
        )


@kernel
def update_center(
    stream,
    lists,
    members,
    multiplicity,
    first,
    last,
    tables,
    n_rounds,
    order,
    places,
    totals,
    counts,
    theta,
    scratch,
):
    """Make ``n_rounds`` of: θ given the center; then stagewise, reinsertion and shuffling given θ.

    ``order`` and ``places`` are changed in place; ``totals`` and ``counts`` must be right for the old center
    and are left right, with ``theta``, for the new one, θ a draw given it. Returns how many stagewise
    proposals were taken.
    """
    n = order.size
    mentions = find_mentions(lists, members, first, last, n)
    accepted = 0
    for _ in range(n_rounds):
        draw_decays(stream, tables, totals, counts, theta)
        attract(lists, members, multiplicity, mentions, theta, scratch)
        low, high = draw_window(stream, n)
        accepted += stagewise(
            stream, lists, members, multiplicity, mentions, theta, order, places, low, high, scratch
        )
        reinsert(stream, lists, members, multiplicity, mentions, theta, order, places, scratch)
        shuffle_unmentioned(stream, mentions, order, places, scratch)
        sum_skips(lists, members, multiplicity, first, last, places, scratch.skips, totals, counts)
    draw_decays(stream, tables, totals, counts, theta)
    return accepted


@kernel
def greedy_center(lists, members, multiplicity, first, last, theta, stream, order, places, scratch):
    """Set the center to the best item at every stage, given θ."""
    n = order.size
    mentions = find_mentions(lists, members, first, last, n)
    attract(lists, members, multiplicity, mentions, theta, scratch)
    for item in range(n):
        scratch.window[item] = item
    stage_by_stage(stream, lists, members, multiplicity, mentions, theta, n, 2, order, scratch)
    for place in range(n):
        places[order[place]] = place
