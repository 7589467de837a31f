# mypy: ignore-errors
"""Two groups divide their agents anew, with nobody's group given.

Where groups overlap, two of them may divide the same agents in several ways, and moves of one agent, or of
one center given its agents, hardly lead from one way to another. Splits and merges change the number of
groups as well, which costs so much in prior probability that hardly any is accepted among thousands of
lists. Here two groups stay two groups.

Given the agents of both, their decays and the share p of the first are drawn; then who of them belongs where
is forgotten. What is left has density

    prior(θ_1) prior(θ_2) (p (1 - p))^(-1 - d) Π (p P(list | σ_1, θ_1) + (1 - p) P(list | σ_2, θ_2)),

where d is the discount of the prior of the partition and the two agents that chose the groups are not in the
product: they are apart, in one way or the other, so that neither group is empty. A proposal draws two lists,
gathers the others around them in a few rounds as EM would, and draws centers, decays and p to suit what was
gathered. To weigh the way back, two lists are drawn among those that the present groups speak for: the same
rounds from there lead to the proposal that would bring the present groups. At the end the agents draw their
groups, independently.
"""

from __future__ import annotations

import numpy as np

from permix.dp_mallows.lists.jumps_jit import (
    begin_with,
    draw_list,
    log_chance,
    propose_group,
    propose_share,
    refit,
    score_lists,
)
from permix.kernels.jit import kernel
from permix.kernels.streams import new_stream, open_stream, uniform

ROUNDS = 3


@kernel
def mix_two(share, logs, out):
    """Write ln P(list) under two groups."""
    for d in range(out.size):
        first = np.log(share) + logs[0, d]
        second = np.log1p(-share) + logs[1, d]
        out[d] = max(first, second) + np.log1p(np.exp(-abs(first - second)))


@kernel
def log_target(lists, discount, apart, share, logs, log_mix):
    """Return ln of the density above, without the priors of centers and decays."""
    total = -discount * (np.log(share) + np.log1p(-share))
    for d in range(log_mix.size):
        total += (lists.agent_starts[d + 1] - lists.agent_starts[d]) * log_mix[d]
    i, j = lists.list_of[apart[0]], lists.list_of[apart[1]]
    one, other = logs[0, i] + logs[1, j], logs[0, j] + logs[1, i]
    return total - log_mix[i] - log_mix[j] + max(one, other) + np.log1p(np.exp(-abs(one - other)))


@kernel
def gather_around(stream, form, lists, tables, parent, anchors, weights):
    """Let lists gather around two of them; writes who is where, returns the share of the first and how sure.

    Nothing here is random.
    """
    n_items, n_stages, n_lists = parent.size, tables.skips.size, weights.shape[1]
    places, order = np.empty((2, n_items), np.int16), np.empty(n_items, np.int32)
    theta, logs, total = np.ones((2, n_stages)), np.empty((2, n_lists)), np.empty(2)
    for side in range(2):
        begin_with(lists, anchors[side], parent, order, places[side])
    share = 0.5
    for turn in range(ROUNDS):
        for side in range(2):
            score_lists(lists, tables.skips, places[side], theta[side], logs[side])
            total[side] = 0.0
        log_odds = np.log(share) - np.log1p(-share)
        for d in range(n_lists):
            times = lists.agent_starts[d + 1] - lists.agent_starts[d]
            weights[0, d] = times / (1.0 + np.exp(logs[1, d] - logs[0, d] - log_odds))
            weights[1, d] = times - weights[0, d]
            for side in range(2):
                total[side] += weights[side, d]
        share = (total[0] + 0.5) / (total[0] + total[1] + 1.0)
        if turn < ROUNDS - 1:
            for side in range(2):
                refit(stream, form, lists, tables, weights[side], order, places[side], theta[side])
    return share, total[0] * total[1] / (total[0] + total[1])


@kernel
def weigh_groups(stream, form, lists, tables, parent, anchors, draw, share, places, theta):
    """Draw two groups that suit what gathers around two lists, or weigh those given.

    Returns the share of the first, and ln(prior / chance) of centers, decays and share.
    """
    weights = np.empty((2, lists.starts.size - 1))
    expected, n_known = gather_around(stream, form, lists, tables, parent, anchors, weights)
    share, log_density = propose_share(stream, expected, n_known, draw, share)
    log_ratio = -log_density
    for side in range(2):
        log_ratio += propose_group(
            stream, form, lists, tables, weights[side], draw, places[side], theta[side]
        )
    return share, log_ratio


@kernel
def draw_any(stream, lists):
    """Draw the list of any agent."""
    left = uniform(stream) * lists.agent_starts[-1]
    d = 0
    while d < lists.starts.size - 2 and lists.agent_starts[d + 1] <= left:
        d += 1
    return d


@kernel
def redivide(key, form, lists, tables, discount, apart, places, theta, share, sides):
    """Propose that two groups divide anew the agents of ``lists``; returns whether they do.

    ``places`` and ``theta`` are the groups and ``share`` that of the first; ``apart`` are the two agents who
    are kept apart. If the proposal is accepted, centers and the group, 0 or 1, of every agent are written.
    """
    stream = new_stream()
    open_stream(stream, key[0], key[1], 0, 0)
    n_items, n_stages, n_lists = places.shape[1], theta.shape[1], lists.starts.size - 1
    weights = np.empty(n_lists)
    for d in range(n_lists):
        weights[d] = lists.agent_starts[d + 1] - lists.agent_starts[d]
    parent, order, fitted = np.empty(n_items, np.int16), np.empty(n_items, np.int32), np.ones(n_stages)
    refit(stream, form, lists, tables, weights, order, parent, fitted)
    # The groups there are, and the lists around which they would have gathered.
    logs, log_mix = np.empty((2, n_lists)), np.empty(n_lists)
    anchors = np.empty(2, np.int64)
    log_ratio = 0.0
    for side in range(2):
        score_lists(lists, tables.skips, places[side], theta[side], logs[side])
    mix_two(share, logs, log_mix)
    for side in range(2):
        anchors[side] = draw_list(stream, lists, logs[side], log_mix)
        log_ratio += np.log(weights[anchors[side]]) - log_chance(lists, logs[side], log_mix, anchors[side])
    log_ratio -= log_target(lists, discount, apart, share, logs, log_mix)
    log_ratio -= weigh_groups(stream, form, lists, tables, parent, anchors, False, share, places, theta)[1]
    # The groups that are proposed.
    new_places, new_theta = np.empty((2, n_items), np.int16), np.empty((2, n_stages))
    for side in range(2):
        anchors[side] = draw_any(stream, lists)
    share, log_chances = weigh_groups(
        stream, form, lists, tables, parent, anchors, True, share, new_places, new_theta
    )
    for side in range(2):
        score_lists(lists, tables.skips, new_places[side], new_theta[side], logs[side])
    mix_two(share, logs, log_mix)
    for side in range(2):
        log_ratio += log_chance(lists, logs[side], log_mix, anchors[side]) - np.log(weights[anchors[side]])
    log_ratio += log_target(lists, discount, apart, share, logs, log_mix) + log_chances
    if not (log_ratio >= 0.0 or uniform(stream) < np.exp(log_ratio)):
        return False
    for side in range(2):
        for item in range(n_items):
            places[side, item] = new_places[side, item]
    for d in range(n_lists):
        chance = np.exp(np.log(share) + logs[0, d] - log_mix[d])
        for at in range(lists.agent_starts[d], lists.agent_starts[d + 1]):
            sides[lists.agents[at]] = 0 if uniform(stream) < chance else 1
    i, j = lists.list_of[apart[0]], lists.list_of[apart[1]]
    swapped = np.exp(logs[0, j] + logs[1, i] - logs[0, i] - logs[1, j])
    sides[apart[0]] = 0 if uniform(stream) * (1.0 + swapped) < 1.0 else 1
    sides[apart[1]] = 1 - sides[apart[0]]
    return True
