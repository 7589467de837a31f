# mypy: ignore-errors
"""Sequential Monte Carlo with AMP as the proposal: P(v) and posterior rankings with little noise.

AMP (Lu & Boutilier 2014, algorithm 1) inserts the items of the center one by one, each within the places that
the preferences allow. The weight of a finished ranking, P(r)/q(r), is the product over insertions of the
probability of the allowed places (equation 28): with many constrained items a few draws carry all the
weight. Here a set of T particles is inserted step by step, and whenever their weights have become uneven the
light ones are replaced by copies of the heavy ones (systematic resampling). The product of the mean weights
between resamplings estimates P(v) without bias, and a particle drawn by its final weight is a draw from the
posterior as T grows.

Mallows models with one dispersion only (geometric models). The numbers drawn depend on key, sweep, and the
row and particle alone. Levels over some items look at one slot at most on either side (``amp_plans_jit``);
their particles go side by side through vector instructions, several sets at once, a step of all lanes being a
few of them. Other preferences are done one particle at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.distributions.conditioning.amp_insertions_jit import geometric_back
from permix.distributions.conditioning.amp_plans_jit import (
    allowed_places,
    clear_slots,
    make_plan,
    raise_slots,
    room_for_plan,
    write_slots,
)
from permix.kernels.jit import kernel
from permix.kernels.streams import fill_uniform, padded

Array = npt.NDArray[Any]

# Log-weights closer together than this are even enough: nobody counts effective particles.
EVEN = 1.0
# Streams of sweep + this are for choosing among particles.
CHOOSING = np.uint64(1 << 63)
# Lanes side by side, and items up to which that pays.
LANES, MOST_ITEMS = 128, 512
BEHIND_ALL = 16384
# Slots that never limit anybody, so that every item has one on either side; then those of the plan.
TOP, BOTTOM, OWN = 0, 1, 2


class SetRoom(NamedTuple):
    """What belongs to sets of particles: weights, resampling and its history. A row is a set."""

    log_weights: Array  # (lanes,)
    log_totals: Array  # (sets,): ln of the product of mean weights so far
    n_resampled: Array  # (sets,)
    resampled_at: Array  # (sets, n): the step after which
    ancestors: Array  # (n, lanes): place within the set of the particle that was copied
    choosing: Array  # (sets, padded(n + 1)): uniforms
    scratch: Array  # (lanes,)


@kernel
def room_for_sets(n_sets, n_particles, n):
    """Make the memory of some sets of particles."""
    lanes = n_sets * n_particles
    return SetRoom(
        np.zeros(lanes),
        np.zeros(n_sets),
        np.zeros(n_sets, np.int64),
        np.zeros((n_sets, n), np.int64),
        np.zeros((n, lanes), np.int32),
        np.zeros((n_sets, padded(n + 1))),
        np.zeros(lanes),
    )


@kernel
def _start_set(sets, s, n_particles, key, sweep, number):
    sets.log_totals[s] = 0.0
    sets.n_resampled[s] = 0
    fill_uniform(key[0], key[1], np.uint64(sweep) + CHOOSING, number, sets.choosing[s])
    for p in range(s * n_particles, (s + 1) * n_particles):
        sets.log_weights[p] = 0.0


@kernel
def _resample(sets, s, n_particles, step):
    """Choose who goes on in set s, where weights have become uneven; say whether anything changed."""
    begin, end = s * n_particles, (s + 1) * n_particles
    log_weights, weights = sets.log_weights, sets.scratch
    largest, smallest = -np.inf, np.inf
    for p in range(begin, end):
        largest = max(largest, log_weights[p])
        smallest = min(smallest, log_weights[p])
    if not largest - smallest > EVEN:
        return False
    total, squares = 0.0, 0.0
    for p in range(begin, end):
        weights[p] = np.exp(log_weights[p] - largest)
        total += weights[p]
        squares += weights[p] * weights[p]
    if total * total > 0.5 * n_particles * squares:
        return False
    r = sets.n_resampled[s]
    sets.n_resampled[s] += 1
    sets.resampled_at[s, r] = step
    sets.log_totals[s] += largest + np.log(total / n_particles)
    ancestors = sets.ancestors[r]
    # Systematic: equally spaced points on the line of weights.
    spacing = total / n_particles
    point = sets.choosing[s, r] * spacing
    passed = weights[begin]
    source = 0
    for p in range(n_particles):
        while passed <= point and source + 1 < n_particles:
            source += 1
            passed += weights[begin + source]
        ancestors[begin + p] = source
        log_weights[begin + p] = 0.0
        point += spacing
    return True


@kernel
def _finish_set(sets, s, n_particles, places, row, log_normalizers, chosen_places):
    """Note ln of the estimate of P(v), and the ``places`` (n, lanes) of a particle drawn by its weight."""
    n = places.shape[0]
    begin, end = s * n_particles, (s + 1) * n_particles
    largest = -np.inf
    for p in range(begin, end):
        largest = max(largest, sets.log_weights[p])
    log_normalizers[row], chosen = -np.inf, 0
    if largest > -np.inf:
        total = 0.0
        for p in range(begin, end):
            total += np.exp(sets.log_weights[p] - largest)
        remaining = sets.choosing[s, n] * total
        chosen = n_particles - 1
        for p in range(begin, end):
            remaining -= np.exp(sets.log_weights[p] - largest)
            if remaining < 0.0:
                chosen = p - begin
                break
        log_normalizers[row] = sets.log_totals[s] + largest + np.log(total / n_particles)
    if chosen_places.shape[0] > 0:
        r = sets.n_resampled[s] - 1
        for i in range(n - 1, -1, -1):
            while r >= 0 and sets.resampled_at[s, r] >= i:
                chosen = sets.ancestors[r, begin + chosen]
                r -= 1
            chosen_places[row, i] = places[i, begin + chosen]


# Side by side.


class LaneRoom(NamedTuple):
    """Sets whose preferences are levels over some items; set s has lanes s T .. (s + 1) T - 1."""

    rows: Array  # per set: its row of the work
    clusters: Array
    n_constrained: Array
    n_slots: Array
    steps: Array  # (sets, n): of the constrained items
    low: Array  # slot before the item, TOP where there is none
    high: Array  # slot behind the item, BOTTOM where there is none
    last_slot: Array
    first_slot: Array
    uniforms: Array
    kept: Array  # (LANES, n): uniforms of the constrained steps
    places: Array  # int16 (n, LANES)
    slots: Array  # int16 (2 + n, LANES)
    copied: Array  # int16 (LANES,)
    event_start: Array  # constrained steps of all sets, by step
    event_set: Array
    event_number: Array


@kernel
def room_for_lanes(n_sets, n):
    """Make the memory of sets side by side."""
    sizes = np.empty((3, n_sets), np.int64)
    clusters = np.empty(n_sets, np.uint32)  # unsigned indices spare the test for negative ones
    tables = np.empty((5, n_sets, n), np.uint16)
    return LaneRoom(
        sizes[0],
        clusters,
        sizes[1],
        sizes[2],
        tables[0],
        tables[1],
        tables[2],
        tables[3],
        tables[4],
        np.empty(padded(n)),
        np.empty((LANES, n)),
        np.zeros((n, LANES), np.int16),
        np.zeros((OWN + n, LANES), np.int16),
        np.empty(LANES, np.int16),
        np.empty(n + 2, np.uint32),
        np.empty(n_sets * n, np.uint16),
        np.empty(n_sets * n, np.uint16),
    )


@kernel
def _set_lanes(room, s, row, k, plan):
    """Let set s be a row of the work with this plan."""
    room.rows[s] = row
    room.clusters[s] = k
    room.n_constrained[s] = plan.n_constrained
    room.n_slots[s] = OWN + plan.n_slots
    for c in range(plan.n_constrained):
        room.steps[s, c] = plan.steps[c]
        room.last_slot[s, c] = OWN + plan.last_slot[c]
        room.first_slot[s, c] = OWN + plan.first_slot[c]
        room.low[s, c] = TOP
        if plan.low_start[c] < plan.low_start[c + 1]:
            room.low[s, c] = OWN + plan.low_slots[plan.low_start[c]]
        room.high[s, c] = BOTTOM
        if plan.high_start[c] < plan.high_start[c + 1]:
            room.high[s, c] = OWN + plan.high_slots[plan.high_start[c]]


@kernel
def _draw_freely(room, used, numbers, n_particles, key, sweep, models):
    """Draw every lane as if nothing were known; constrained steps are drawn again, by the same uniform."""
    places, uniforms = room.places, room.uniforms
    for s in range(used):
        k = room.clusters[s]
        cumulative, guide, scale = models.cumulative[k], models.guide[k], models.guide_scale[k]
        for p in range(n_particles):
            lane = s * n_particles + p
            fill_uniform(key[0], key[1], sweep, numbers[room.rows[s]] * n_particles + p, uniforms)
            for i in range(places.shape[0]):
                places[i, lane] = i - geometric_back(uniforms[i], cumulative, guide, scale, i + 1)
            room.slots[TOP, lane] = -1
            room.slots[BOTTOM, lane] = BEHIND_ALL
            for c in range(room.n_constrained[s]):
                room.kept[lane, c] = uniforms[room.steps[s, c]]
                room.slots[room.first_slot[s, c], lane] = BEHIND_ALL
                room.slots[room.last_slot[s, c], lane] = -1


@kernel
def _insert_constrained(room, sets, e, i, n_particles, models):
    """Insert the i-th item in all lanes of one set for which it is constrained."""
    s, c = room.event_set[e], room.event_number[e]
    k = room.clusters[s]
    cumulative, guide, scale = models.cumulative[k], models.guide[k], models.guide_scale[k]
    log_cumulative, decay = models.log_cumulative[k], models.decays[k, 0]
    whole = log_cumulative[i + 1]
    low_slots, high_slots = room.slots[room.low[s, c]], room.slots[room.high[s, c]]
    log_weights, kept, newest = sets.log_weights, room.kept, room.places[i]
    for lane in range(s * n_particles, (s + 1) * n_particles):
        low = np.int64(low_slots[lane]) + 1
        high = min(np.int64(high_slots[lane]), i)
        width = high - low + 1
        newest[lane] = high - geometric_back(kept[lane, c], cumulative, guide, scale, width)
        log_odds = log_cumulative[width] - whole
        log_odds -= decay * (i - high) if high < i else 0.0  # 0 · inf is no number
        log_weights[lane] += log_odds


@kernel
def _run_lanes(room, sets, used, numbers, n_particles, key, sweep, models, log_normalizers, chosen_places):
    """Run the first ``used`` sets to the end and note what they found."""
    places, slots, event_start, copied = room.places, room.slots, room.event_start, room.copied
    n = places.shape[0]
    n_slots = np.int64(0)
    event_start[:] = 0
    for s in range(used):
        n_slots = max(n_slots, room.n_slots[s])
        _start_set(sets, s, n_particles, key, sweep, numbers[room.rows[s]])
        for c in range(room.n_constrained[s]):
            event_start[room.steps[s, c] + 2] += 1
    _draw_freely(room, used, numbers, n_particles, key, sweep, models)
    for i in range(n):
        event_start[i + 2] += event_start[i + 1]
    for s in range(used):
        for c in range(room.n_constrained[s]):
            step = room.steps[s, c]
            e = event_start[step + 1]
            event_start[step + 1] += 1
            room.event_set[e] = s
            room.event_number[e] = c
    for i in range(n):
        if event_start[i] == event_start[n]:
            break  # nobody looks at slots any more
        for e in range(event_start[i], event_start[i + 1]):
            _insert_constrained(room, sets, e, i, n_particles, models)
        newest = places[i]
        for slot in range(n_slots):
            values = slots[slot]
            for lane in range(LANES):
                values[lane] += np.int16(values[lane] >= newest[lane])
        for e in range(event_start[i], event_start[i + 1]):
            s, c = room.event_set[e], room.event_number[e]
            begin = np.int64(s) * n_particles
            last, first = slots[room.last_slot[s, c]], slots[room.first_slot[s, c]]
            for lane in range(begin, begin + n_particles):
                last[lane] = max(last[lane], newest[lane])
                first[lane] = min(first[lane], newest[lane])
            if _resample(sets, s, n_particles, i):
                ancestors = sets.ancestors[sets.n_resampled[s] - 1]
                for slot in range(OWN, room.n_slots[s]):
                    values = slots[slot]
                    for p in range(n_particles):
                        copied[p] = values[begin + ancestors[begin + p]]
                    for p in range(n_particles):
                        values[begin + p] = copied[p]
    drawn = places.view(np.uint16)
    for s in range(used):
        _finish_set(sets, s, n_particles, drawn, room.rows[s], log_normalizers, chosen_places)


# One particle at a time.


@kernel
def _run_set(number, k, plan, slots, places, copied, sets, n_particles, key, sweep, models, uniforms):
    """Run one set of any preferences; ``uniforms`` (T, n), ``slots`` and ``copied`` (T, n) are scratch."""
    n = np.int64(places.shape[0])
    cumulative, log_cumulative, guide = models.cumulative[k], models.log_cumulative[k], models.guide[k]
    scale, decay = models.guide_scale[k], models.decays[k, 0]
    _start_set(sets, 0, n_particles, key, sweep, number)
    for p in range(n_particles):
        clear_slots(plan, slots[p])
        fill_uniform(key[0], key[1], sweep, number * n_particles + p, uniforms[p])
    c = 0
    following = np.int64(plan.steps[0]) if plan.n_constrained > 0 else n
    for i in range(n):
        constrained = i == following
        for p in range(n_particles):
            low, high = np.int64(0), np.int64(i)
            if constrained:
                low, high = allowed_places(plan, c, slots[p])
            width = high - low + 1
            place = high - geometric_back(uniforms[p, i], cumulative, guide, scale, width)
            places[i, p] = place
            if constrained:
                log_odds = log_cumulative[width] - log_cumulative[i + 1]
                log_odds -= decay * (i - high) if high < i else 0.0
                sets.log_weights[p] += log_odds
            if c < plan.n_constrained:
                raise_slots(slots[p], plan.n_slots, place)
            if constrained:
                write_slots(plan, c, place, slots[p])
        if constrained:
            c += 1
            following = np.int64(plan.steps[c]) if c < plan.n_constrained else n
            if _resample(sets, 0, n_particles, i):
                ancestors = sets.ancestors[sets.n_resampled[0] - 1]
                for p in range(n_particles):
                    for slot in range(plan.n_slots):
                        copied[p, slot] = slots[ancestors[p], slot]
                for p in range(n_particles):
                    for slot in range(plan.n_slots):
                        slots[p, slot] = copied[p, slot]


@kernel
def particle_rows(first, last, numbers, key, sweep, jobs, n_particles, log_normalizers, chosen_places):
    """Estimate ln P(v) and draw one posterior ranking, for jobs first..last-1 (``draws.Jobs``).

    ``numbers`` (J,) name the random streams of jobs. Models are geometric.
    ``chosen_places`` (J, m) is filled with the insertion places of a particle drawn by its final weight; or
    of shape (0, 0).
    """
    models = jobs.models
    n = np.int64(jobs.ranks.shape[1])
    room = room_for_plan(n)
    abreast = LANES // n_particles if n <= MOST_ITEMS else 0
    lanes = room_for_lanes(abreast, n if abreast > 0 else 0)
    lane_sets = room_for_sets(abreast, n_particles, n if abreast > 0 else 0)
    one = room_for_sets(1, n_particles, n)
    slots = np.empty((n_particles, n), np.int32)
    copied = np.empty((n_particles, n), np.int32)
    places = np.empty((n, n_particles), np.uint16)
    uniforms = np.empty((n_particles, padded(n)))
    found = (log_normalizers, chosen_places)
    used = 0
    for row in range(first, last):
        k = jobs.clusters[row]
        plan = make_plan(jobs.arrays, jobs.agents[row], jobs.ranks[k], room)
        if abreast > 0 and plan.only_levels:
            _set_lanes(lanes, used, row, k, plan)
            used += 1
            if used == abreast:
                _run_lanes(lanes, lane_sets, used, numbers, n_particles, key, sweep, models, *found)
                used = 0
            continue
        _run_set(numbers[row], k, plan, slots, places, copied, one, n_particles, key, sweep, models, uniforms)
        _finish_set(one, 0, n_particles, places, row, *found)
    if used > 0:
        _run_lanes(lanes, lane_sets, used, numbers, n_particles, key, sweep, models, *found)
