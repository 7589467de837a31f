# mypy: ignore-errors
"""AMP and MMP: rankings drawn from an insertion model subject to an agent's preferences.

AMP (Lu & Boutilier 2014, algorithm 1) inserts the items of the center one by one, each at a place drawn from
the model's own probabilities cut down to the places that the agent's closed preferences allow: below every
inserted item that must be above it, above every one that must be below. Its probabilities are equation 15.
MMP (algorithm 2) has AMP for the proposal of an independence Metropolis chain, whose stationary distribution
is the true posterior.

Where a direct implementation searches all inserted items at every step, a plan (``amp_plans``) says which few
numbers to look at; draws are inversions by table (``amp_insertions_jit``), and many of them become rankings
side by side.

``log_weight`` is always ln P(r) - ln q(r), with P the unconditional model and q that of AMP: importance
weights for the posterior, and the mean of their exponential estimates P(v) (equation 28). Every draw has a
random stream of its own, numbered by job and draw, so results do not depend on threads.
"""

from __future__ import annotations

import numpy as np

from permix.distributions.conditioning.amp_insertions_jit import (
    GEOMETRIC,
    geometric_back,
    log_conditional,
    log_mass,
    log_prior,
    place_quantile,
)
from permix.distributions.conditioning.amp_plans_jit import (
    allowed_places,
    allows,
    clear_slots,
    make_plan,
    raise_slots,
    room_for_plan,
    write_slots,
)
from permix.distributions.insertion_jit import grow_orderings
from permix.kernels.jit import kernel
from permix.kernels.orders import insertion_code, invert_order
from permix.kernels.streams import fill_uniform, padded


@kernel
def amp_places(uniforms, models, k, plan, slots, places):
    """Draw the insertion places of an ordering by AMP; return its ``log_weight``.

    ``uniforms`` holds a number for every step; ``slots`` is int32 scratch.
    """
    # Rows are taken out because handing all models to a function costs more than a draw.
    cumulative, log_cumulative, guide = models.cumulative[k], models.log_cumulative[k], models.guide[k]
    scale, decay, geometric = models.guide_scale[k], models.decays[k, 0], models.kind == GEOMETRIC
    clear_slots(plan, slots)
    log_weight = 0.0
    c = 0
    n = np.int64(places.size)
    following = np.int64(plan.steps[0]) if plan.n_constrained > 0 else n
    for i in range(n):
        low, high = np.int64(0), np.int64(i)
        constrained = i == following
        if constrained:
            low, high = allowed_places(plan, c, slots)
        if geometric:
            width = high - low + 1
            place = high - geometric_back(uniforms[i], cumulative, guide, scale, width)
            if constrained:
                log_weight += log_cumulative[width] - log_cumulative[i + 1]
                if high < i:
                    log_weight -= decay * (i - high)
        else:
            place = place_quantile(uniforms[i], models, k, i, low, high)
            if constrained:
                log_weight += log_mass(models, k, i, low, high)
        places[i] = place
        if c < plan.n_constrained:  # afterwards nobody looks at slots
            raise_slots(slots, plan.n_slots, place)
        if constrained:
            write_slots(plan, c, place, slots)
            c += 1
            following = np.int64(plan.steps[c]) if c < plan.n_constrained else n
    return log_weight


@kernel
def replay(models, k, plan, slots, places):
    """Return ``log_weight`` and ln q of an ordering that the preferences allow, q equation 15."""
    clear_slots(plan, slots)
    log_weight = 0.0
    log_q = 0.0
    c = 0
    for i in range(places.size):
        low, high = np.int64(0), np.int64(i)
        constrained = c < plan.n_constrained and plan.steps[c] == i
        if constrained:
            low, high = allowed_places(plan, c, slots)
            log_weight += log_mass(models, k, i, low, high)
        log_q += log_conditional(models, k, i, places[i], low, high)
        raise_slots(slots, plan.n_slots, places[i])
        if constrained:
            write_slots(plan, c, places[i], slots)
            c += 1
    return log_weight, log_q


@kernel
def amp_log_prob(arrays, agent, center, models, k, orders, log_priors, log_weights, log_qs):
    """Evaluate full orderings (rows) for one agent under model k.

    Fills ln P without preferences, ln P - ln q, and ln q of equation 15. Where the preferences rule an
    ordering out, the last two are minus infinity. Returns for each row whether it is allowed.
    """
    n = center.size
    ranks = np.empty(n, np.int64)
    invert_order(center, ranks)
    plan = make_plan(arrays, agent, ranks, room_for_plan(n))
    slots = np.empty(n, np.int32)
    row_ranks = np.empty(n, np.int64)
    places = np.empty(n, np.int64)
    allowed = np.empty(orders.shape[0], np.bool_)
    for row in range(orders.shape[0]):
        invert_order(orders[row], row_ranks)
        insertion_code(row_ranks, center, places)
        log_priors[row] = log_prior(models, k, places)
        log_weights[row] = log_qs[row] = -np.inf
        allowed[row] = allows(plan, slots, places)
        if allowed[row]:
            log_weights[row], log_qs[row] = replay(models, k, plan, slots, places)
    return allowed


# Many agents, many draws. Rows first..last-1 of the work; callers cut it up among threads.


@kernel
def amp_rows(first, last, key, sweep, jobs, scratch, orders, distances, log_weights):
    """Draw rankings by AMP; row ``job * S + s`` is draw s of a job. Fills the last three, (J, S, …).

    ``jobs`` are those of ``draws.Jobs``, ``scratch`` is of ``insertion_jit.place_scratch``; ``orders`` is of
    shape (0, 0, 0) where orderings are not needed.
    """
    n, lanes = scratch.shape
    n_draws = log_weights.shape[1]
    rows = orders.reshape(orders.shape[0] * orders.shape[1], n)
    room = room_for_plan(n)
    uniforms = np.empty(padded(n))
    slots = np.empty(n, np.int32)
    places = np.empty(n, np.int64)
    free = np.empty(n, np.int64)
    clusters = np.empty(lanes, np.int64)
    for row in range(first, last):
        job, s = row // n_draws, row % n_draws
        k = jobs.clusters[job]
        if s == 0 or row == first:
            plan = make_plan(jobs.arrays, jobs.agents[job], jobs.ranks[k], room)
        fill_uniform(key[0], key[1], sweep, row, uniforms)
        log_weights[job, s] = amp_places(uniforms, jobs.models, k, plan, slots, places)
        distance = np.int64(0)
        for i in range(n):
            distance += i - places[i]
        distances[job, s] = distance
        if rows.size > 0:
            lane = (row - first) % lanes
            clusters[lane] = k
            for i in range(n):
                scratch[i, lane] = places[i]
            if lane + 1 == lanes or row + 1 == last:
                grow_orderings(jobs.centers, clusters, scratch, lane + 1, row - lane, free, rows)


@kernel
def log_mean_exp(log_weights):
    """Return ln of the mean of exp(log_weights) and the standard error of that logarithm (delta method)."""
    largest = -np.inf
    for value in log_weights:
        largest = max(largest, value)
    if largest == -np.inf:
        return -np.inf, 0.0
    size = log_weights.size
    total = 0.0
    for value in log_weights:
        total += np.exp(value - largest)
    mean = total / size
    spread = 0.0
    for value in log_weights:
        spread += (np.exp(value - largest) - mean) ** 2
    error = np.sqrt(spread / (size - 1) / size) / mean if size > 1 else 0.0
    return largest + np.log(mean), error


@kernel
def weighted_marginals(orders, weights):
    """Sum, over full orderings (rows) with weights w: w and w² of "a before b" and of "item a at rank r"."""
    n = orders.shape[1]
    before = np.zeros((n, n))
    before_squared = np.zeros((n, n))
    at_rank = np.zeros((n, n))
    at_rank_squared = np.zeros((n, n))
    for row in range(orders.shape[0]):
        w = weights[row]
        if w == 0.0:
            continue
        for r in range(n):
            a = orders[row, r]
            at_rank[a, r] += w
            at_rank_squared[a, r] += w * w
            for later in range(r + 1, n):
                before[a, orders[row, later]] += w
                before_squared[a, orders[row, later]] += w * w
    return before, before_squared, at_rank, at_rank_squared
