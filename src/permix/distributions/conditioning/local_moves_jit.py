# mypy: ignore-errors
"""Local moves beside AMP: one item after the other drawn anew, given the order of all others.

MMP (Lu & Boutilier 2014, algorithm 2) proposes whole rankings by AMP; with many constrained items hardly any
is accepted. A local move takes one item out; its allowed places lie between the last item that must be above
it and the first that must be below, and their probabilities, given the rest, follow from one walk through
them: stepping past a neighbor changes the insertion place of the later of the two in the center by one,
and nothing else. The new place is drawn from exactly that distribution (Gibbs), so the posterior stays as it
is and nothing is rejected. The chain here takes turns: a proposal of AMP, then a sweep of local moves over
all items.

All kinds of insertion models are served: one decay, a decay for each item, any probabilities.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.distributions.conditioning.amp_insertions_jit import GENERAL, GEOMETRIC, InsertionModels
from permix.distributions.conditioning.amp_jit import amp_places, replay
from permix.distributions.conditioning.amp_plans_jit import make_plan, room_for_plan
from permix.kernels.fenwick import count_smaller_before, take_in_turn
from permix.kernels.jit import kernel
from permix.kernels.streams import fill_uniform, padded

Array = npt.NDArray[Any]

_FAR = 1 << 30  # beyond all levels


class LocalModels(NamedTuple):
    """What local moves need of K insertion models over m items."""

    kind: int
    decays: Array  # (K, m), λ of each step
    powers: Array  # GEOMETRIC, (K, m): φ^d
    log_probabilities: Array  # GENERAL, (K, m, m)
    reach: Array  # (K,): how many places an item may go in one move


class Limits(NamedTuple):
    """What one agent's statements mean for a moving item; items are numbered by their steps.

    Levels: x may not pass y upwards where ``high[y] < low[x]``, nor downwards where ``low[y] > high[x]``;
    both are the level of an item, or -1 and a large number where it has none. Pairs: by present rank.
    """

    low: Array  # int32 (m,)
    high: Array
    has_pairs: bool
    above_start: Array  # x must stay below above_items[above_start[x]:above_start[x + 1]]
    above_items: Array
    below_start: Array
    below_items: Array


class State(NamedTuple):
    """A ranking on its way; items are numbered by their steps, so that the center is 0, 1, 2, …"""

    order: Array  # int32 (m,)
    rank: Array  # int64 (m,)
    places: Array  # int64 (m,): insertion place of each step


class Scratch(NamedTuple):
    """Memory for one move."""

    changes: Array  # int32 (m,)
    weights: Array  # float (m,)


# Displacements are a few times 1/λ. In moves within this multiple of it nearly nothing is lost, and a sweep
# takes n/λ operations instead of n².
REACH, LEAST_REACH = 32.0, 16


def local_models(models: InsertionModels) -> LocalModels:
    """Return the tables of local moves."""
    kind, decays = models.kind, models.decays
    n = decays.shape[1]
    reach = np.full(len(decays), n)
    if kind != GENERAL and n > 1:
        with np.errstate(divide="ignore"):
            reach = np.clip(np.ceil(REACH / np.abs(decays[:, 1:]).min(axis=1)), LEAST_REACH, n).astype(
                np.int64
            )
    powers = np.zeros((len(decays), 0))
    if kind == GEOMETRIC:
        powers = np.ones((len(decays), n))
        powers[:, 1:] = np.exp(-decays[:, :1] * np.arange(1, n))
    with np.errstate(divide="ignore"):
        return LocalModels(kind, decays, powers, np.log(models.probabilities), reach)


@kernel
def new_state(n):
    """Make the memory of a ranking."""
    return State(np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64))


@kernel
def new_scratch(n):
    """Make the memory for moves."""
    return Scratch(np.empty(n, np.int32), np.empty(n))


@kernel
def set_places(state, places):
    """Let the state be the ordering with these insertion places."""
    n = places.size
    take_in_turn(places, n, n, True, state.rank)
    for i in range(n):
        state.places[i] = places[i]
        state.order[state.rank[i]] = i


@kernel
def set_order(state, order, ranks):
    """Let the state be this ordering of items; ``ranks`` is the rank vector of the center."""
    for r in range(order.size):
        state.order[r] = ranks[order[r]]
        state.rank[state.order[r]] = r
    count_smaller_before(state.rank, order.size, order.size, state.places)


@kernel
def limits_by_step(arrays, agent, ranks):
    """Read one agent's statements, which have no cycle; ``ranks`` is the rank vector of the center.

    Stated pairs are enough: whatever they imply has a stated pair in between.
    """
    n = ranks.size
    first, last = arrays.level_indptr[agent], arrays.level_indptr[agent + 1]
    low, high = np.full(n, -1, np.int32), np.full(n, _FAR, np.int32)
    if last > first and arrays.rest_below[agent]:
        low[:] = high[:] = arrays.levels[last - 1] + 1
    for p in range(first, last):
        step = ranks[arrays.level_items[p]]
        low[step] = high[step] = arrays.levels[p]
    first, last = arrays.pair_indptr[agent], arrays.pair_indptr[agent + 1]
    above_start, above = _neighbors(arrays.pairs[first:last], 1, 0, ranks)
    below_start, below = _neighbors(arrays.pairs[first:last], 0, 1, ranks)
    return Limits(low, high, last > first, above_start, above, below_start, below)


@kernel
def _neighbors(pairs, of, which, ranks):
    """List for each step in column ``of`` the steps in column ``which`` of the same pairs."""
    start = np.zeros(ranks.size + 1 if len(pairs) > 0 else 1, np.int64)
    found = np.empty(len(pairs), np.int32)
    if len(pairs) == 0:
        return start, found
    for p in range(len(pairs)):
        start[ranks[pairs[p, of]] + 1] += 1
    for i in range(ranks.size):
        start[i + 1] += start[i]
    following = start.copy()
    for p in range(len(pairs)):
        step = ranks[pairs[p, of]]
        found[following[step]] = ranks[pairs[p, which]]
        following[step] += 1
    return start, found


@kernel
def allowed_window(x, state, limits):
    """Return the first and the last place that the preferences allow item x, the others staying in order."""
    order, rank = state.order, state.rank
    at = rank[x]
    first, last = np.int64(0), np.int64(order.size - 1)
    if limits.has_pairs:
        for e in range(limits.above_start[x], limits.above_start[x + 1]):
            first = max(first, rank[limits.above_items[e]] + 1)
        for e in range(limits.below_start[x], limits.below_start[x + 1]):
            last = min(last, rank[limits.below_items[e]] - 1)
    low, high = limits.low[x], limits.high[x]
    if low < 0:  # in no level
        return first, last
    left, right = at, at
    while left > first and limits.high[order[left - 1]] >= low:
        left -= 1
    while right < last and limits.low[order[right + 1]] <= high:
        right += 1
    return left, right


@kernel
def cumulate_places(x, state, models, k, first, last, scratch):
    """Cumulate P(item x is at a place | the order of all others) over its places, up to a factor.

    ``first..last`` is :func:`allowed_window`. Sets ``scratch.weights[0..right-left]`` and returns left and
    right: places outside have probability zero. The present ranking has positive probability.
    """
    if models.kind == GEOMETRIC:
        _cumulate_geometric(x, state, models.powers[k], first, last, scratch)
        return first, last
    left, right = _log_weights(x, state, models, k, first, last, scratch.weights)
    weights = scratch.weights[left : right + 1]
    largest = -np.inf
    for p in range(weights.size):
        largest = max(largest, weights[p])
    total = 0.0
    for p in range(weights.size):
        total += np.exp(weights[p] - largest)
        weights[p] = total
    for p in range(weights.size):
        scratch.weights[p] = weights[p]
    return left, right


@kernel
def _cumulate_geometric(x, state, powers, first, last, scratch):
    """Count how the distance changes from the first place on; the rest is powers of φ by table."""
    at = state.rank[x]
    before, behind = state.order[first:at], state.order[at + 1 : last + 1]  # slices spare tests of indices
    changes = scratch.changes[: last - first + 1]
    change, least = np.int32(0), np.int32(0)
    changes[0] = 0
    for p in range(before.size):
        change += np.int32(1) if before[p] > x else np.int32(-1)
        least = min(least, change)
        changes[p + 1] = change
    rest = changes[before.size + 1 :]
    for p in range(behind.size):
        change += np.int32(1) if behind[p] > x else np.int32(-1)
        least = min(least, change)
        rest[p] = change
    weights = scratch.weights[: changes.size]
    total = 0.0
    for p in range(changes.size):
        total += powers[np.uint32(changes[p] - least)]
        weights[p] = total


@kernel
def _log_weights(x, state, models, k, first, last, weights):
    """Walk outwards from where the item is, because other places may have probability zero."""
    order, places = state.order, state.places
    at = state.rank[x]
    weights[at] = 0.0
    left, right = at, at
    for step in (-1, 1):
        here, own, others = at, places[x], 0.0
        while here != (first if step < 0 else last):
            other = order[here + step]
            if other < x:
                own += step
            else:
                others += _change(models, k, other, places[other], places[other] - step)
            if others == -np.inf:
                break
            weight = others + _change(models, k, x, places[x], own)
            if step < 0 and weight == -np.inf and models.kind != GENERAL:
                break  # further away it is as impossible; with any probabilities it need not be
            here += step
            weights[here] = weight
        left, right = min(left, here), max(right, here)
    return left, right


@kernel
def _change(models, k, step, place, new):
    """Return how ln P changes where a step goes from a possible place to a new one."""
    if models.kind == GENERAL:
        return models.log_probabilities[k, step, new] - models.log_probabilities[k, step, place]
    if new == place:
        return 0.0  # nothing times infinity
    return (new - place) * models.decays[k, step]


@kernel
def choose_place(cumulated, size, u):
    """Return the index below ``size`` whose stretch of the cumulated weights ``u`` in [0, 1) falls into."""
    target = u * cumulated[size - 1]
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        if cumulated[middle] > target:
            high = middle
        else:
            low = middle + 1
    while low > 0 and cumulated[low] == cumulated[low - 1]:  # rounding at the very end
        low -= 1
    return low


@kernel
def move_item(x, new, state):
    """Put item x at rank ``new``, keeping ranks and insertion places right."""
    order, rank, places = state.order, state.rank, state.places
    at = rank[x]
    own = places[x]
    step = -1 if new < at else 1
    for p in range(at, new, step):
        y = np.uint32(order[p + step])
        order[p] = y
        rank[y] -= step
        own += step * (y < x)
        places[y] -= step * (y > x)
    order[new] = x
    rank[x] = new
    places[x] = own


@kernel
def local_sweep(state, models, k, limits, uniforms, scratch):
    """Draw every item anew in turn; ``uniforms`` has a number for each, and one more.

    The ranks are cut into stretches at random, and an item stays in its stretch.
    """
    n = state.order.size
    reach = models.reach[k]
    offset = np.int64(uniforms[n] * reach) if reach < n else 0
    for x in range(n):
        first, last = allowed_window(x, state, limits)
        if reach < n:
            begin = (state.rank[x] + offset) // reach * reach - offset
            first, last = max(first, begin), min(last, begin + reach - 1)
        if first < last:
            left, right = cumulate_places(x, state, models, k, first, last, scratch)
            new = left + choose_place(scratch.weights, right - left + 1, uniforms[x])
            if new != state.rank[x]:
                move_item(x, new, state)


@kernel
def mmp_rows(
    first, last, key, sweep, jobs, tables, local_moves, n_burn_in, n_thin, orders, distances, accepted
):
    """Run the chain MMP for jobs first..last-1; keep S states, ``n_thin`` steps apart, after the burn-in.

    Arguments as in ``amp_jit.amp_rows``; ``tables`` are those of local moves, which follow every proposal
    where ``local_moves``. ``accepted`` (J,) is filled with the number of accepted proposals out of
    ``n_burn_in + S n_thin``. Where the preferences partition all items every proposal is an independent draw
    from the posterior, and sweeps are left out.
    """
    arrays, centers, ranks, models = jobs.arrays, jobs.centers, jobs.ranks, jobs.models
    n = centers.shape[1]
    length = n_burn_in + distances.shape[1] * n_thin
    room = room_for_plan(n)
    uniforms = np.empty(padded(2 * n + 2 if local_moves else n + 1))
    slots = np.empty(n, np.int32)
    places = np.empty(n, np.int64)
    scratch = new_scratch(n)
    state = new_state(n)
    for job in range(first, last):
        k = jobs.clusters[job]
        plan = make_plan(arrays, jobs.agents[job], ranks[k], room)
        limits = limits_by_step(arrays, jobs.agents[job], ranks[k])
        log_weight = -np.inf
        accepted[job] = 0
        # The first proposal starts the chain; each later one is a step.
        for t in range(-1, length):
            fill_uniform(key[0], key[1], sweep, job * (length + 1) + t + 1, uniforms)
            proposed = amp_places(uniforms, models, k, plan, slots, places)
            # Equation 23: the target cancels out of P/q up to the ratio of importance weights.
            if t < 0 or proposed >= log_weight or uniforms[n] < np.exp(proposed - log_weight):
                log_weight = proposed
                set_places(state, places)
                if t >= 0:
                    accepted[job] += 1
            if local_moves and not plan.partitioned and log_weight > -np.inf:
                local_sweep(state, tables, k, limits, uniforms[n + 1 :], scratch)
                log_weight = replay(models, k, plan, slots, state.places)[0]
            since = t + 1 - n_burn_in
            if since > 0 and since % n_thin == 0:
                s = since // n_thin - 1
                distances[job, s] = 0
                for i in range(n):
                    distances[job, s] += i - state.places[i]
                    orders[job, s, i] = centers[k, state.order[i]]
