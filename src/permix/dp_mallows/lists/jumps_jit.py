# mypy: ignore-errors
"""Births and deaths of groups in a finite mixture of generalized Mallows models, nobody's group given.

A state is the number of groups K with their shares w, centers σ and decays θ; who belongs where is summed
out, so that the likelihood is Π_d (Σ_k w_k P(list d | σ_k, θ_k))^(agents of d), and the new group of a birth
need not be paid for agent by agent. A birth is informed: an agent is drawn, the lists that are more like that
agent's than like what the groups there are expect are gathered in a few rounds, as EM would for one more
group, and center, decays and share of the new group are drawn to suit them, each with a known probability
(Richardson & Green 1997 with proposals of this kind). A death takes a group away, draws an agent among those
it speaks for, and weighs the birth that would have brought it back.

With u = the agent's list, the ratio of a birth from K to K + 1 groups is

    L'/L × p(K + 1)/p(K) × Beta(w | γ, K γ) × p(θ)/n! × P(u | death)/(P(u | birth) q(w) q(σ) q(θ)):

shares of the others shrink by 1 - w, whose Jacobian makes a Beta density of the two Dirichlet densities, and
the chance 1/(K + 1) of this very death makes up for the K + 1 places that the new group could have.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.distributions.generalized.finite_beta_jit import draw_theta, log_integral
from permix.dp_mallows.lists.center_moves_jit import improve
from permix.dp_mallows.lists.pair_counts_jit import source_of
from permix.dp_mallows.lists.split_merge_jit import propose_center
from permix.dp_mallows.lists.top_lists_jit import Members, skip_at
from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step
from permix.kernels.streams import integers, new_stream, open_stream, uniform

# Rounds in which a new group gathers its lists, the share it starts with, and what is too little to count.
ROUNDS, FIRST_SHARE, LEAST_WEIGHT = 3, 0.05, 1e-3
# Gathered lists count for this much of an agent: proposals must be wider than what they look for.
TRUST = 0.7


class Components(NamedTuple):
    """Groups with parameters, in rows; those in use come first."""

    shares: np.ndarray
    places: np.ndarray  # int16 (groups, items)
    theta: np.ndarray  # (groups, stages)
    logs: np.ndarray  # (groups, lists): ln P(list | group)


@kernel
def score_lists(lists, skips_left, places, theta, out):
    """Write ln P(list) of every list under one center and its decays."""
    n_stages = theta.size
    log_psi, known = np.empty(n_stages), np.zeros(n_stages + 1)
    for j in range(n_stages):
        log_psi[j] = log_normalizer_step(theta[j], skips_left[j] + 1)
    before, n_known = 0, 0
    for d in range(lists.starts.size - 1):
        start = lists.starts[d]
        t = lists.starts[d + 1] - start
        # Lists are sorted: many begin like the one before.
        j = 0
        while j < min(t, n_known) and lists.items[start + j] == lists.items[before + j]:
            j += 1
        while j < t:
            known[j + 1] = known[j] - theta[j] * skip_at(lists.items, start, j, places) - log_psi[j]
            j += 1
        out[d] = known[t]
        before, n_known = start, t


@kernel
def mix(components, n, left_out, out):
    """Write ln Σ_k w_k P(list | k) of every list, of all groups but one, their shares summing to one."""
    whole = 1.0 - (components.shares[left_out] if left_out >= 0 else 0.0)
    largest = np.full(out.size, -np.inf)
    for d in range(out.size):
        out[d] = 0.0
    for k in range(n):
        if k != left_out:
            for d in range(out.size):
                largest[d] = max(largest[d], components.logs[k, d])
    for k in range(n):
        if k != left_out:
            for d in range(out.size):
                out[d] += components.shares[k] * np.exp(components.logs[k, d] - largest[d])
    for d in range(out.size):
        out[d] = largest[d] + np.log(out[d] / whole)


@kernel
def weigh(lists, logs, log_mix, share, out):
    """Write how many agents of each list the new group would have beside the others; returns their sum."""
    total = 0.0
    log_odds = np.log(share) - np.log1p(-share)
    for d in range(out.size):
        odds = log_odds + logs[d] - log_mix[d]
        out[d] = (lists.agent_starts[d + 1] - lists.agent_starts[d]) / (1.0 + np.exp(-odds))
        total += out[d]
    return total


@kernel
def gather_weighed(weights, factor, members):
    """Collect the lists with their weights; returns how many."""
    n = 0
    for d in range(weights.size):
        if weights[d] > LEAST_WEIGHT:
            members.lists[n] = d
            members.times[n] = factor * weights[d]
            n += 1
    return n


@kernel
def log_decay_density(tables, j, a, c, theta):
    """Return ln of the density ∝ exp(-a θ) ψ(θ)^-c of a decay."""
    return -a * theta - c * log_normalizer_step(theta, tables.skips[j] + 1) - log_integral(tables, j, a, c)


@kernel
def propose_group(stream, form, lists, tables, log_mix, parent, d, n_agents, draw, share, center, theta):
    """Draw a group given list ``d``, or weigh one; returns its share, its center and ln(prior / probability).

    ``log_mix`` is of the other groups, ``parent`` the center of the one that expects the list most.
    ``center`` and ``theta`` are written, or read where ``draw`` is False. The prior is that of center and
    decays, without the share's.
    """
    n_items, n_stages, n_lists = parent.size, theta.size, log_mix.size
    places, order = np.empty(n_items, np.int16), np.empty(n_items, np.int32)
    fitted, totals, counts = np.ones(n_stages), np.empty(n_stages), np.empty(n_stages)
    logs, weights = np.empty(n_lists), np.empty(n_lists)
    members = Members(np.empty(n_lists, np.int32), np.empty(n_lists))
    # It begins with the list; all other items follow in the order of the parent.
    start, end = lists.starts[d], lists.starts[d + 1]
    for item in range(n_items):
        places[item] = -1
        order[parent[item]] = item
    for at in range(start, end):
        places[lists.items[at]] = at - start
    rank = end - start
    for place in range(n_items):
        if places[order[place]] < 0:
            places[order[place]] = rank
            rank += 1
    expected = FIRST_SHARE
    for turn in range(ROUNDS):
        score_lists(lists, tables.skips, places, fitted, logs)
        total = weigh(lists, logs, log_mix, expected, weights)
        expected = (total + 0.5) / (n_agents + 1.0)
        factor = TRUST if turn == ROUNDS - 1 else 1.0
        n = gather_weighed(weights, factor, members)
        source = source_of(form, lists, members, n, n_stages, n_items)
        if turn < ROUNDS - 1:
            improve(source, 0, tables, 1, stream, order, places, totals, counts, fitted)
    # A logistic distribution of ln(w / (1 - w)), as wide as the share is uncertain.
    middle = np.log(expected) - np.log1p(-expected)
    scale = 1.0 / np.sqrt(1.0 + 3.0 * total)
    if draw:
        u = uniform(stream)
        share = 1.0 / (1.0 + np.exp(-middle - scale * (np.log(u + 1e-300) - np.log1p(-u))))
    value = (np.log(share) - np.log1p(-share) - middle) / scale
    log_ratio = 2.0 * np.log1p(np.exp(-abs(value))) + abs(value) + np.log(scale * share * (1.0 - share))
    if not draw:
        for item in range(n_items):
            places[item] = center[item]
            order[places[item]] = item
    log_ratio -= propose_center(stream, source, tables, draw, order, places, totals, counts)
    log_ratio -= math.lgamma(n_items + 1.0)
    for item in range(n_items):
        center[item] = places[item]
    for j in range(n_stages):
        a, c = tables.prior_a[j] + totals[j], tables.prior_c + counts[j]
        if draw:
            theta[j] = draw_theta(stream, a, c, tables.skips[j])
        log_ratio += log_decay_density(tables, j, tables.prior_a[j], tables.prior_c, theta[j])
        log_ratio -= log_decay_density(tables, j, a, c, theta[j])
    return share, log_ratio


@kernel
def jump(key, form, lists, tables, pseudo_count, rate, components, n, n_tries, book):
    """Propose births and deaths, as many as ``n_tries``; returns the number of groups.

    ``components`` has ``n`` groups and room for ``n_tries`` more; ``book`` counts births and deaths accepted.
    """
    stream = new_stream()
    open_stream(stream, key[0], key[1], 0, 0)
    n_lists, n_agents = lists.starts.size - 1, lists.agents.size
    for k in range(n):
        score_lists(lists, tables.skips, components.places[k], components.theta[k], components.logs[k])
    log_mix, smaller = np.empty(n_lists), np.empty(n_lists)
    mix(components, n, -1, log_mix)
    for _ in range(n_tries):
        birth = uniform(stream) < 0.5
        new = n if birth else integers(stream, n)
        if n == 1 and not birth:
            continue
        if birth:
            for d in range(n_lists):
                smaller[d] = log_mix[d]
            anchor = np.int64(lists.list_of[integers(stream, n_agents)])
        else:
            # Among the agents that the group speaks for.
            mix(components, n, new, smaller)
            total = 0.0
            for d in range(n_lists):
                times = lists.agent_starts[d + 1] - lists.agent_starts[d]
                total += times * np.exp(components.logs[new, d] - log_mix[d])
            left = uniform(stream) * total
            anchor = -1
            while left >= 0.0 and anchor < n_lists - 1:
                anchor += 1
                times = lists.agent_starts[anchor + 1] - lists.agent_starts[anchor]
                left -= times * np.exp(components.logs[new, anchor] - log_mix[anchor])
        parent, best = 0, -np.inf
        for k in range(n):
            value = np.log(components.shares[k]) + components.logs[k, anchor]
            if k != new and value > best:
                parent, best = k, value
        share, log_ratio = propose_group(
            stream,
            form,
            lists,
            tables,
            smaller,
            components.places[parent],
            anchor,
            n_agents,
            birth,
            components.shares[new],
            components.places[new],
            components.theta[new],
        )
        if birth:
            score_lists(
                lists, tables.skips, components.places[new], components.theta[new], components.logs[new]
            )
        n_before = n if birth else n - 1
        log_ratio += np.log(rate) - np.log(n_before)
        log_ratio += math.lgamma((n_before + 1) * pseudo_count) - math.lgamma(n_before * pseudo_count)
        log_ratio += (pseudo_count - 1.0) * np.log(share) - math.lgamma(pseudo_count)
        log_ratio += (n_before * pseudo_count - 1.0) * np.log1p(-share)
        # The likelihood, and the chance of the anchor when the group dies.
        log_share, log_rest, spoken_for, of_anchor = np.log(share), np.log1p(-share), 0.0, 0.0
        for d in range(n_lists):
            times = lists.agent_starts[d + 1] - lists.agent_starts[d]
            first, second = log_rest + smaller[d], log_share + components.logs[new, d]
            larger = max(first, second)
            log_sum = larger + np.log1p(np.exp(min(first, second) - larger))
            log_ratio += times * (log_sum - smaller[d])
            own = np.exp(second - log_sum)
            spoken_for += times * own
            if d == anchor:
                of_anchor = times * own
                log_ratio -= np.log(times / n_agents)
            if birth:
                log_mix[d] = log_sum
        log_ratio += np.log(of_anchor) - np.log(spoken_for)
        if not birth:
            log_ratio = -log_ratio
        accepted = log_ratio >= 0.0 or uniform(stream) < np.exp(log_ratio)
        if birth and accepted:
            for k in range(n):
                components.shares[k] *= 1.0 - share
            components.shares[n] = share
            n += 1
        elif birth:
            for d in range(n_lists):
                log_mix[d] = smaller[d]
        elif accepted:
            n -= 1
            for k in range(n + 1):
                components.shares[k] /= 1.0 - share
            components.shares[new] = components.shares[n]
            for item in range(components.places.shape[1]):
                components.places[new, item] = components.places[n, item]
            for j in range(components.theta.shape[1]):
                components.theta[new, j] = components.theta[n, j]
            for d in range(n_lists):
                components.logs[new, d] = components.logs[n, d]
                log_mix[d] = smaller[d]
        if accepted:
            book[0 if birth else 1] += 1
    return n
