# mypy: ignore-errors
"""Splits drawn by restricted Gibbs (Jain & Neal 2004), compiled: read only where a user asks for them.

All but i and j are thrown into A or B at random, scans of Gibbs between A and B make of this the launch
state, and one more scan gives the proposal. That costs several times as much as sequential allocation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from permix.families.contract_jit import add, log_predictive, log_predictive_without, remove
from permix.kernels.jit import implements, kernel
from permix.moves.split_merge_jit import A, B, empty_sides, launch, log_chance_of


class RestrictedGibbs(NamedTuple):
    """Splits are drawn by Gibbs between both sides."""

    n_scans: int  # scans that lead to the launch state


@implements(launch, RestrictedGibbs, argument="how")
def _restricted_gibbs(how, rng, joining, data, sides_stats, room, size, forced):
    """Draw sides from a launch state, or force those of now; returns the log probability of the last scan."""
    sides = room.sides
    sides[0] = A
    sides[size - 1] = B
    for position in range(1, size - 1):
        sides[position] = A if rng.random() < 0.5 else B
    n_a = 0
    for position in range(size):
        add(sides_stats, data, room.order[position], sides[position])
        if sides[position] == A:
            n_a += 1
    log_proposal = 0.0
    for scan in range(how.n_scans + 1):
        last = scan == how.n_scans
        n_a, log_proposal = _scan(rng, joining, data, sides_stats, room, size, n_a, forced and last)
    empty_sides(data, sides_stats, room, size)
    return log_proposal


@kernel
def _scan(rng, joining, data, sides_stats, room, size, n_a, forced):
    """Let everybody but i and j choose between A and B given all others, or follow ``present``.

    Returns the members of A and the log probability of all choices.
    """
    sides, scores = room.sides, room.scores
    log_proposal = 0.0
    for position in range(1, size - 1):
        member = room.order[position]
        log_predictive(sides_stats, data, member, 2, scores)
        own = sides[position]
        scores[own] = log_predictive_without(sides_stats, data, member, own)
        others_in_a = n_a - 1 if own == A else n_a
        to_a = scores[A] + joining[others_in_a]
        to_b = scores[B] + joining[size - 1 - others_in_a]
        if forced:
            chosen = room.present[position]
        else:
            chosen = A if rng.random() < 1.0 / (1.0 + math.exp(to_b - to_a)) else B
        if chosen == A:
            log_proposal += log_chance_of(to_a, to_b)
            n_a = others_in_a + 1
        else:
            log_proposal += log_chance_of(to_b, to_a)
            n_a = others_in_a
        if chosen != own:
            sides[position] = chosen
            remove(sides_stats, data, member, own)
            add(sides_stats, data, member, chosen)
    return n_a, log_proposal
