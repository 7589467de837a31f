# mypy: ignore-errors
"""Births and deaths, splits and merges of groups of a finite mixture, nobody's group given.

A state is the number of groups K with their shares w, centers σ and decays θ; who belongs where is summed
out, so that the likelihood is Π_d (Σ_k w_k P(list d | σ_k, θ_k))^(agents of d), and a new group need not be
paid for agent by agent. Proposals are informed (Richardson & Green 1997 with proposals of this kind):

A birth draws an agent, gathers, in a few rounds as EM would, the lists that one more group beginning with the
agent's would have, and draws center, decays and share to suit them, each with a known probability. A death
takes a group away, draws an agent among those it speaks for, and weighs the birth that would bring it back.
With u = the agent's list, the ratio of a birth from K to K + 1 groups is

    L'/L × p(K + 1)/p(K) × Beta(w | γ, K γ) × p(θ)/n! × P(u | death)/(P(u | birth) q(w) q(σ) q(θ)):

shares of the others shrink by 1 - w, whose Jacobian makes a Beta density of the two Dirichlet densities, and
K + 1 times the chance of this very death, which is larger for small groups, belongs to it as well, since
there are K + 1 places that the new group could have. Agents whose lists are surprising are drawn more often.

A split draws a group by its share and two agents among those it speaks for, who gather its lists between
them; both parts are drawn to suit what they gathered. A merge draws a group, another one that competes with
it for the same agents, an agent of each, and draws one group to suit the lists of both. Only their shares
change. Groups are proposed as above; the Jacobian of dividing the share w is w.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.distributions.generalized.finite_beta_jit import draw_theta, log_integral
from permix.dp_mallows.lists.center_moves_jit import improve
from permix.dp_mallows.lists.pair_counts_jit import source_of
from permix.dp_mallows.lists.seating_jit import draw_index
from permix.dp_mallows.lists.split_merge_jit import propose_center
from permix.dp_mallows.lists.top_lists_jit import Members, skip_at
from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step
from permix.kernels.streams import categorical_log, integers, new_stream, open_stream, uniform

# Rounds in which a new group gathers its lists, the share it starts with, and what is too little to count.
ROUNDS, FIRST_SHARE, LEAST_WEIGHT = 3, 0.05, 1e-3
# Gathered lists count for this much of an agent: proposals must be wider than what they look for.
TRUST = 0.7
# A group of so many agents dies half as often as one of none.
SMALL = 5.0
BIRTH, DEATH, SPLIT, MERGE = range(4)


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
def is_in_use(k, n, out, also_out, first, second):
    """Say whether group ``k`` is one of the first ``n``, less two, and two more; -1 stands for none."""
    return k in (first, second) or (k < n and k not in (out, also_out))


@kernel
def mix(components, n, out, also_out, first, second, result):
    """Write ln Σ_k w_k P(list | k) over the groups in use (see ``is_in_use``), shares made to sum to one."""
    whole = 0.0
    largest = np.full(result.size, -np.inf)
    for d in range(result.size):
        result[d] = 0.0
    for turn in range(2):
        for k in range(components.shares.size):
            if not is_in_use(k, n, out, also_out, first, second):
                continue
            if turn == 0:
                whole += components.shares[k]
                for d in range(result.size):
                    largest[d] = max(largest[d], components.logs[k, d])
            else:
                for d in range(result.size):
                    result[d] += components.shares[k] * np.exp(components.logs[k, d] - largest[d])
    for d in range(result.size):
        result[d] = largest[d] + np.log(result[d] / whole)


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
def begin_with(lists, d, parent, order, places):
    """Write the center that begins with list ``d``; all other items follow in the order of ``parent``."""
    start, end = lists.starts[d], lists.starts[d + 1]
    for item in range(parent.size):
        places[item] = -1
        order[parent[item]] = item
    for at in range(start, end):
        places[lists.items[at]] = at - start
    rank = end - start
    for place in range(parent.size):
        if places[order[place]] < 0:
            places[order[place]] = rank
            rank += 1


@kernel
def refit(stream, form, lists, tables, weights, order, places, theta):
    """Set a center and decays to what suits weighted lists."""
    members = Members(np.empty(weights.size, np.int32), np.empty(weights.size))
    totals, counts = np.empty(theta.size), np.empty(theta.size)
    n = gather_weighed(weights, 1.0, members)
    source = source_of(form, lists, members, n, theta.size, places.size)
    improve(source, 0, tables, 1, stream, order, places, totals, counts, theta)


@kernel
def propose_group(stream, form, lists, tables, weights, draw, center, theta):
    """Draw a center and decays that suit weighted lists, or weigh those given; returns ln(prior / chance)."""
    n_items, n_stages = center.size, theta.size
    places, order = np.empty(n_items, np.int16), np.empty(n_items, np.int32)
    totals, counts = np.empty(n_stages), np.empty(n_stages)
    members = Members(np.empty(weights.size, np.int32), np.empty(weights.size))
    n = gather_weighed(weights, TRUST, members)
    source = source_of(form, lists, members, n, n_stages, n_items)
    for item in range(n_items):
        places[item] = center[item] if not draw else item
        order[places[item]] = item
    log_ratio = -propose_center(stream, source, tables, draw, order, places, totals, counts)
    log_ratio -= math.lgamma(n_items + 1.0)
    for item in range(n_items):
        center[item] = places[item]
    for j in range(n_stages):
        a, c = tables.prior_a[j] + totals[j], tables.prior_c + counts[j]
        if draw:
            theta[j] = draw_theta(stream, a, c, tables.skips[j])
        # Of two densities ∝ exp(-a θ) ψ(θ)^-c.
        log_psi = log_normalizer_step(theta[j], tables.skips[j] + 1)
        log_ratio += totals[j] * theta[j] + counts[j] * log_psi
        log_ratio += log_integral(tables, j, a, c) - tables.prior_log_integral[j]
    return log_ratio


@kernel
def propose_share(stream, expected, n_known, draw, share):
    """Draw a share between 0 and 1, or weigh one; returns it and ln of its density.

    ln(w / (1 - w)) has a logistic distribution, as wide as the share is uncertain after ``n_known`` agents.
    """
    middle = np.log(expected) - np.log1p(-expected)
    scale = 1.0 / np.sqrt(1.0 + 3.0 * n_known)
    if draw:
        u = uniform(stream)
        share = 1.0 / (1.0 + np.exp(-middle - scale * (np.log(u + 1e-300) - np.log1p(-u))))
        share = min(max(share, 1e-12), 1.0 - 1e-12)
    value = abs((np.log(share) - np.log1p(-share) - middle) / scale)
    return share, -2.0 * np.log1p(np.exp(-value)) - value - np.log(scale * share * (1.0 - share))


@kernel
def draw_list(stream, lists, logs, log_mix):
    """Draw a list by the agents that a group speaks for: agents × P(list | group) / P(list)."""
    total, drawn = 0.0, 0
    for turn in range(2):
        left = uniform(stream) * total if turn else np.inf
        for d in range(logs.size):
            weight = (lists.agent_starts[d + 1] - lists.agent_starts[d]) * np.exp(logs[d] - log_mix[d])
            total += weight
            left -= weight
            if turn and weight > 0.0:
                drawn = d
                if left < 0.0:
                    break
    return drawn


@kernel
def log_chance(lists, logs, log_mix, drawn):
    """Return ln of the probability that ``draw_list`` draws this list."""
    total = 0.0
    for d in range(logs.size):
        total += (lists.agent_starts[d + 1] - lists.agent_starts[d]) * np.exp(logs[d] - log_mix[d])
    times = lists.agent_starts[drawn + 1] - lists.agent_starts[drawn]
    return np.log(times / total) + logs[drawn] - log_mix[drawn]


@kernel
def surprise(lists, skips_left, log_mix, out):
    """Write half of ln P(list) + ln P(list if items were chosen at random).

    As ``logs`` of ``draw_list`` they make it draw lists that the groups do not expect.
    """
    for d in range(out.size):
        out[d] = log_mix[d]
        for j in range(lists.starts[d + 1] - lists.starts[d]):
            out[d] -= np.log(skips_left[j] + 1.0)
        out[d] *= 0.5


@kernel
def log_prior_step(pseudo_count, rate, n):
    """Return ln of p(n + 1)/p(n) and of the constants of the two Dirichlet densities."""
    constants = (
        math.lgamma((n + 1) * pseudo_count) - math.lgamma(n * pseudo_count) - math.lgamma(pseudo_count)
    )
    return np.log(rate) - np.log(n) + constants


@kernel
def log_likelihood_ratio(lists, after, before):
    """Return Σ over agents of the difference of two ln P(list)."""
    total = 0.0
    for d in range(after.size):
        total += (lists.agent_starts[d + 1] - lists.agent_starts[d]) * (after[d] - before[d])
    return total


@kernel
def birth_ratio(
    stream, form, lists, tables, pseudo_count, rate, components, n, new, anchor, draw, smaller, after
):
    """Draw group ``new`` beside others, or weigh it; returns ln of the ratio of its birth.

    ``n`` groups are in use, of which ``new`` is one if it is weighed; ``smaller`` is ln P(list) without it,
    and ``after`` becomes that with it.
    """
    n_items, n_stages, n_lists, n_agents = (
        tables.skips[0] + 1,
        tables.skips.size,
        smaller.size,
        lists.agents.size,
    )
    places, order, fitted = np.empty(n_items, np.int16), np.empty(n_items, np.int32), np.ones(n_stages)
    logs, weights = np.empty(n_lists), np.empty(n_lists)
    parent, best = 0, -np.inf
    for k in range(n):
        value = np.log(components.shares[k]) + components.logs[k, anchor]
        if k != new and value > best:
            parent, best = k, value
    begin_with(lists, anchor, components.places[parent], order, places)
    expected, total = FIRST_SHARE, 0.0
    for turn in range(ROUNDS):
        score_lists(lists, tables.skips, places, fitted, logs)
        total = weigh(lists, logs, smaller, expected, weights)
        expected = (total + 0.5) / (n_agents + 1.0)
        if turn < ROUNDS - 1:
            refit(stream, form, lists, tables, weights, order, places, fitted)
    share, log_density = propose_share(stream, expected, total, draw, components.shares[new])
    components.shares[new] = share
    center, theta = components.places[new], components.theta[new]
    log_ratio = propose_group(stream, form, lists, tables, weights, draw, center, theta) - log_density
    if draw:
        score_lists(lists, tables.skips, center, theta, components.logs[new])
    n_before = n if draw else n - 1
    log_ratio += log_prior_step(pseudo_count, rate, n_before)
    log_ratio += (pseudo_count - 1.0) * np.log(share) + (n_before * pseudo_count - 1.0) * np.log1p(-share)
    for d in range(n_lists):
        first = np.log1p(-share) + smaller[d]
        second = np.log(share) + components.logs[new, d]
        larger = max(first, second)
        after[d] = larger + np.log1p(np.exp(min(first, second) - larger))
    log_ratio += log_likelihood_ratio(lists, after, smaller)
    log_ratio += log_chance(lists, components.logs[new], after, anchor)
    surprise(lists, tables.skips, smaller, logs)
    log_ratio -= log_chance(lists, logs, smaller, anchor)
    # Small groups die more often; n_before + 1 places that the new one could have.
    total = 0.0
    for k in range(n + draw):
        scale = 1.0 - share if draw and k != new else 1.0
        total += 1.0 / (SMALL + n_agents * components.shares[k] * scale)
    return log_ratio + np.log((n_before + 1.0) / ((SMALL + n_agents * share) * total))


@kernel
def competitor(stream, lists, components, n, out, first, second, log_mix, chosen):
    """Draw a group to merge ``first`` with, or weigh one; returns it and ln of its probability.

    Groups count by the agents that they and ``first`` speak for.
    """
    weights = np.full(components.shares.size, -np.inf)
    total = 0.0
    for k in range(weights.size):
        if k != first and is_in_use(k, n, out, -1, first, second):
            both = 1e-9
            for d in range(log_mix.size):
                times = lists.agent_starts[d + 1] - lists.agent_starts[d]
                both += times * np.exp(components.logs[first, d] + components.logs[k, d] - 2.0 * log_mix[d])
            weights[k] = np.log(components.shares[k] * both)
            total += components.shares[k] * both
    if chosen < 0:
        chosen = categorical_log(stream, weights, weights.size)
    return chosen, weights[chosen] - np.log(total)


@kernel
def weigh_both(lists, components, first, second, log_mix, out):
    """Write how many agents of each list two groups have."""
    for d in range(out.size):
        out[d] = components.shares[first] * np.exp(components.logs[first, d] - log_mix[d])
        out[d] += components.shares[second] * np.exp(components.logs[second, d] - log_mix[d])
        out[d] *= lists.agent_starts[d + 1] - lists.agent_starts[d]


@kernel
def split_ratio(
    stream, form, lists, tables, pseudo_count, rate, components, n, whole, parts, splitting, before, after
):
    """Draw the parts of a split, or the whole of a merge; returns ln of the ratio of the split.

    ``parts`` are two of ``n`` groups and ``whole`` a free slot, or, if ``splitting``, the other way round.
    ``before`` is ln P(list) with the whole, ``after`` with the parts: that of the proposal is written.
    """
    n_items, n_stages, n_lists = tables.skips[0] + 1, tables.skips.size, before.size
    places, order = np.empty((2, n_items), np.int16), np.empty(n_items, np.int32)
    fitted, logs, weights = np.ones((2, n_stages)), np.empty((2, n_lists)), np.empty((2, n_lists))
    anchors, total = np.empty(2, np.int64), np.empty(2)
    center, theta = components.places[whole], components.theta[whole]
    log_ratio = 0.0
    if not splitting:
        components.shares[whole] = components.shares[parts[0]] + components.shares[parts[1]]
        weigh_both(lists, components, parts[0], parts[1], after, logs[0])
        log_ratio -= propose_group(stream, form, lists, tables, logs[0], True, center, theta)
        score_lists(lists, tables.skips, center, theta, components.logs[whole])
        mix(components, n, parts[0], parts[1], whole, -1, before)
    for side in range(2):
        if splitting:
            anchors[side] = draw_list(stream, lists, components.logs[whole], before)
        else:
            anchors[side] = draw_list(stream, lists, components.logs[parts[side]], after)
        begin_with(lists, anchors[side], center, order, places[side])
    # The agents of the whole gather around the two lists.
    share, part = components.shares[whole], 0.5
    for turn in range(ROUNDS):
        for side in range(2):
            score_lists(lists, tables.skips, places[side], fitted[side], logs[side])
            total[side] = 0.0
        log_odds = np.log(part) - np.log1p(-part)
        for d in range(n_lists):
            own = (lists.agent_starts[d + 1] - lists.agent_starts[d]) * share
            own *= np.exp(components.logs[whole, d] - before[d])
            weights[0, d] = own / (1.0 + np.exp(logs[1, d] - logs[0, d] - log_odds))
            weights[1, d] = own - weights[0, d]
            for side in range(2):
                total[side] += weights[side, d]
        part = (total[0] + 0.5) / (total[0] + total[1] + 1.0)
        if turn < ROUNDS - 1:
            for side in range(2):
                refit(stream, form, lists, tables, weights[side], order, places[side], fitted[side])
    n_known = total[0] * total[1] / (total[0] + total[1])
    given = 0.5 if splitting else components.shares[parts[0]] / share
    part, log_density = propose_share(stream, part, n_known, splitting, given)
    log_ratio -= log_density
    for side in range(2):
        k = parts[side]
        log_ratio += propose_group(
            stream, form, lists, tables, weights[side], splitting, components.places[k], components.theta[k]
        )
        if splitting:
            components.shares[k] = share * (part if side == 0 else 1.0 - part)
            score_lists(lists, tables.skips, components.places[k], components.theta[k], components.logs[k])
    if splitting:
        mix(components, n, whole, -1, parts[0], parts[1], after)
        weigh_both(lists, components, parts[0], parts[1], after, logs[0])
        log_ratio -= propose_group(stream, form, lists, tables, logs[0], False, center, theta)
        log_ratio += competitor(stream, lists, components, n, whole, parts[0], parts[1], after, parts[1])[1]
    log_ratio += log_prior_step(pseudo_count, rate, n if splitting else n - 1)
    # Of the densities of the shares; the chance w of splitting this group makes up for the Jacobian w.
    log_ratio += (pseudo_count - 1.0) * np.log(share * part * (1.0 - part))
    log_ratio += log_likelihood_ratio(lists, after, before)
    for side in range(2):
        log_ratio += log_chance(lists, components.logs[parts[side]], after, anchors[side])
        log_ratio -= log_chance(lists, components.logs[whole], before, anchors[side])
    return log_ratio


@kernel
def copy_group(components, source, to):
    """Copy what is known of a group into another slot."""
    components.shares[to] = components.shares[source]
    for item in range(components.places.shape[1]):
        components.places[to, item] = components.places[source, item]
    for j in range(components.theta.shape[1]):
        components.theta[to, j] = components.theta[source, j]
    for d in range(components.logs.shape[1]):
        components.logs[to, d] = components.logs[source, d]


@kernel
def jump(key, form, lists, tables, pseudo_count, rate, components, n, n_tries, splits, book):
    """Propose births and deaths, or, a share of ``splits``, splits and merges; returns the number of groups.

    ``components`` has ``n`` groups and room for ``n_tries`` + 1 more; ``book`` counts what was accepted.
    """
    stream = new_stream()
    open_stream(stream, key[0], key[1], 0, 0)
    n_lists, n_agents = lists.starts.size - 1, lists.agents.size
    for k in range(n):
        score_lists(lists, tables.skips, components.places[k], components.theta[k], components.logs[k])
    log_mix, other, logs = np.empty(n_lists), np.empty(n_lists), np.empty(n_lists)
    mix(components, n, -1, -1, -1, -1, log_mix)
    parts, chances = np.empty(2, np.int64), np.empty(components.shares.size)
    cumulated = np.empty(chances.size)
    given = (stream, form, lists, tables, pseudo_count, rate, components)
    for _ in range(n_tries):
        kind = integers(stream, 2)
        if uniform(stream) < splits:
            kind += SPLIT
        if n == 1 and kind % 2 == 1:
            continue
        chosen = integers(stream, n)
        if kind == BIRTH:
            surprise(lists, tables.skips, log_mix, logs)
            anchor = draw_list(stream, lists, logs, log_mix)
            log_ratio = birth_ratio(*given, n, n, anchor, True, log_mix, other)
        elif kind == DEATH:
            for k in range(n):
                chances[k] = 1.0 / (SMALL + n_agents * components.shares[k])
            chosen = draw_index(uniform(stream), chances, cumulated, n)
            mix(components, n, chosen, -1, -1, -1, other)
            anchor = draw_list(stream, lists, components.logs[chosen], log_mix)
            log_ratio = -birth_ratio(*given, n, chosen, anchor, False, other, logs)
        elif kind == SPLIT:
            left = uniform(stream)
            chosen = 0
            while chosen < n - 1 and left >= components.shares[chosen]:
                left -= components.shares[chosen]
                chosen += 1
            parts[0], parts[1] = n, n + 1
            log_ratio = split_ratio(*given, n, chosen, parts, True, log_mix, other)
        else:
            parts[0] = chosen
            parts[1], log_choice = competitor(stream, lists, components, n, -1, chosen, -1, log_mix, -1)
            log_ratio = -log_choice - split_ratio(*given, n, n, parts, False, other, log_mix)
        if log_ratio < 0.0 and uniform(stream) >= np.exp(log_ratio):
            continue
        book[kind] += 1
        if kind == BIRTH:
            for k in range(n):
                components.shares[k] *= 1.0 - components.shares[n]
            n += 1
        elif kind == SPLIT:
            copy_group(components, n + 1, chosen)
            n += 1
        elif kind == MERGE:
            copy_group(components, n, chosen)
            n -= 1
            copy_group(components, n, parts[1])
        else:
            n -= 1
            for k in range(n + 1):
                if k != chosen:
                    components.shares[k] /= 1.0 - components.shares[chosen]
            copy_group(components, n, chosen)
        for d in range(n_lists):
            log_mix[d] = other[d]
    return n
