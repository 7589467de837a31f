# mypy: ignore-errors
"""Many draws of AMP side by side, for up to some hundreds of items.

A slot that follows insertions is a chain of steps, each waiting for the one before; so is the list of places
that becomes a ranking. With one lane per draw, a step of all lanes is a few vector instructions. Lanes may
belong to different agents and models, they only share the number of items; what differs from lane to lane,
the constrained steps, is done lane by lane.

Plans of levels over some of the items fit here: they look at one slot at most on either side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.distributions.conditioning.amp_insertions_jit import (
    GEOMETRIC,
    geometric_back,
    log_mass,
    place_quantile,
)
from permix.kernels.jit import kernel
from permix.kernels.streams import fill_uniform, padded

Array = npt.NDArray[Any]

LANES = 128
MOST_ITEMS = 512
BEHIND_ALL = 16384
# Slots that never limit anybody, so that every item has one on either side.
TOP, BOTTOM, OWN = 0, 1, 2


class LanePlans(NamedTuple):
    """Plans of levels over some items, one to a row."""

    n_constrained: Array
    n_slots: Array
    steps: Array  # (rows, n)
    low: Array  # slot before the item, TOP where there is none
    high: Array  # slot behind the item, BOTTOM where there is none
    last_slot: Array
    first_slot: Array


class Lanes(NamedTuple):
    """State of the lanes."""

    clusters: Array  # per lane: model
    data: Array  # per lane: number of its random stream
    plan_of: Array  # per lane: the row of ``plans`` that is its plan
    plans: LanePlans
    uniforms: Array  # (m,): of one lane
    kept: Array  # (LANES, m): uniforms of the constrained steps
    places: Array  # int16 (m, LANES): insertion places; ranks after ``grow_lanes``
    few_places: Array  # uint8 (m, LANES): the same, where m is at most 256
    slots: Array  # int16 (2 + m, LANES): TOP, BOTTOM, then the slots of the plan
    event_start: Array  # constrained steps of all lanes, by step
    event_lane: Array
    event_slots: Array  # (events, 4): low, high, last and first slot
    event_uniform: Array
    log_weights: Array  # per lane
    distances: Array


@kernel
def new_plans(rows, n):
    """Make the memory of plans."""
    sizes = np.empty((2, rows), np.int64)
    tables = np.empty((5, rows, n), np.uint16)  # unsigned indices spare the test for negative ones
    return LanePlans(sizes[0], sizes[1], tables[0], tables[1], tables[2], tables[3], tables[4])


@kernel
def new_lanes(n):
    """Make the memory of all lanes."""
    return Lanes(
        np.empty(LANES, np.uint32),
        np.empty(LANES, np.int64),
        np.empty(LANES, np.uint32),
        new_plans(LANES, n),
        np.empty(padded(n)),
        np.empty((LANES, n)),
        np.zeros((n, LANES), np.int16),
        np.zeros((n if n <= 256 else 0, LANES), np.uint8),
        np.zeros((OWN + n, LANES), np.int16),
        np.empty(n + 2, np.uint32),
        np.empty(LANES * n, np.uint16),
        np.empty((LANES * n, 4), np.uint16),
        np.empty(LANES * n),
        np.empty(LANES),
        np.empty(LANES, np.int64),
    )


@kernel
def set_plan(plans, row, plan):
    """Copy a plan into a row."""
    plans.n_constrained[row] = plan.n_constrained
    plans.n_slots[row] = OWN + plan.n_slots
    for c in range(plan.n_constrained):
        plans.steps[row, c] = plan.steps[c]
        plans.last_slot[row, c] = OWN + plan.last_slot[c]
        plans.first_slot[row, c] = OWN + plan.first_slot[c]
        plans.low[row, c] = TOP
        if plan.low_start[c] < plan.low_start[c + 1]:
            plans.low[row, c] = OWN + plan.low_slots[plan.low_start[c]]
        plans.high[row, c] = BOTTOM
        if plan.high_start[c] < plan.high_start[c + 1]:
            plans.high[row, c] = OWN + plan.high_slots[plan.high_start[c]]


@kernel
def draw_lanes(lanes, used, key, sweep, models):
    """Draw insertion places by AMP in the first ``used`` lanes, with weights and distances."""
    n = lanes.places.shape[0]
    places, slots, plan_of, plans = lanes.places, lanes.slots, lanes.plan_of, lanes.plans
    event_start, event_lane, event_slots = lanes.event_start, lanes.event_lane, lanes.event_slots
    uniforms, geometric = lanes.uniforms, models.kind == GEOMETRIC
    n_slots = np.int64(0)
    for i in range(n + 2):
        event_start[i] = 0
    # Every lane as if nothing were known. Constrained steps are drawn again below, with the same uniform: of
    # the two draws only one is used.
    for lane in range(used):
        k = lanes.clusters[lane]
        fill_uniform(key[0], key[1], sweep, lanes.data[lane], uniforms)
        if geometric:
            cumulative, guide, scale = models.cumulative[k], models.guide[k], models.guide_scale[k]
            for i in range(n):
                places[i, lane] = i - geometric_back(uniforms[i], cumulative, guide, scale, i + 1)
        else:
            for i in range(n):
                places[i, lane] = place_quantile(uniforms[i], models, k, i, 0, i)
        plan = plan_of[lane]
        n_slots = max(n_slots, plans.n_slots[plan])
        lanes.log_weights[lane] = 0.0
        slots[TOP, lane] = -1
        slots[BOTTOM, lane] = BEHIND_ALL
        for c in range(plans.n_constrained[plan]):
            event_start[plans.steps[plan, c] + 2] += 1
            lanes.kept[lane, c] = uniforms[plans.steps[plan, c]]
            slots[plans.first_slot[plan, c], lane] = BEHIND_ALL
            slots[plans.last_slot[plan, c], lane] = -1
    for i in range(n):
        event_start[i + 2] += event_start[i + 1]
    for lane in range(used):
        plan = plan_of[lane]
        for c in range(plans.n_constrained[plan]):
            step = plans.steps[plan, c]
            e = event_start[step + 1]
            event_start[step + 1] += 1
            event_lane[e] = lane
            event_slots[e, 0] = plans.low[plan, c]
            event_slots[e, 1] = plans.high[plan, c]
            event_slots[e, 2] = plans.last_slot[plan, c]
            event_slots[e, 3] = plans.first_slot[plan, c]
            lanes.event_uniform[e] = lanes.kept[lane, c]
    for i in range(n):
        if event_start[i] == event_start[n]:
            break  # nobody looks at slots any more
        for e in range(event_start[i], event_start[i + 1]):
            lane = event_lane[e]
            k = lanes.clusters[lane]
            low = np.int64(slots[event_slots[e, 0], lane]) + 1
            high = min(np.int64(slots[event_slots[e, 1], lane]), i)
            u = lanes.event_uniform[e]
            if geometric:
                width = high - low + 1
                back = geometric_back(u, models.cumulative[k], models.guide[k], models.guide_scale[k], width)
                places[i, lane] = high - back
                log_odds = models.log_cumulative[k, width] - models.log_cumulative[k, i + 1]
                log_odds -= models.decays[k, i] * (i - high) if high < i else 0.0  # 0 · inf is no number
                lanes.log_weights[lane] += log_odds
            else:
                places[i, lane] = place_quantile(u, models, k, i, low, high)
                lanes.log_weights[lane] += log_mass(models, k, i, low, high)
        newest = places[i]
        for s in range(n_slots):
            slot = slots[s]
            for lane in range(LANES):
                slot[lane] += np.int16(slot[lane] >= newest[lane])
        for e in range(event_start[i], event_start[i + 1]):
            lane, last, first = event_lane[e], event_slots[e, 2], event_slots[e, 3]
            slots[last, lane] = max(slots[last, lane], newest[lane])
            slots[first, lane] = min(slots[first, lane], newest[lane])
    _sum_distances(places, lanes.distances)


@kernel
def _sum_distances(places, distances):
    for lane in range(LANES):
        distances[lane] = 0
    for i in range(places.shape[0]):
        row = places[i]
        for lane in range(LANES):
            distances[lane] += i - row[lane]


@kernel
def grow_lanes(lanes):
    """Turn insertion places into ranks: every insertion pushes what is at or behind its place."""
    places, few = lanes.places, lanes.few_places
    if few.size == 0:
        push_places(places)
        return
    # Bytes where they suffice: twice as many at once.
    for i in range(places.shape[0]):
        for lane in range(LANES):
            few[i, lane] = places[i, lane]
    push_places(few)
    for i in range(places.shape[0]):
        for lane in range(LANES):
            places[i, lane] = few[i, lane]


@kernel
def push_places(places):
    """Turn insertion places into ranks: every insertion pushes what is at or behind its place."""
    for i in range(1, places.shape[0]):
        newest = places[i]
        for a in range(i):
            older = places[a]
            for lane in range(LANES):
                older[lane] += np.uint8(older[lane] >= newest[lane])
