"""Moves of a partition of rows in shards; each leaves the posterior invariant.

Given weights and parameters of groups, which are drawn, rows are independent, and all are placed at
once. So that no group is emptied, one member of each, drawn at random, stays where it is. That a group of n
has n who could have stayed is made up for by a factor exp(-u) of its weight, u exponential with rate n:
Π n(n) × 1 / n over groups is what is left of both when u is integrated out.

How many groups there are is changed by splits and merges. Two rows are drawn; where they are in one group, it
is split, otherwise theirs are merged (Jain & Neal 2004). The split is proposed by parameters of both sides
that come from some rounds of placing the rows of both groups at once, beginning with the two rows, which is
the same for a split and for the merge that undoes it.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from permix.data.labels import Array
from permix.kernels.streams import draw_key
from permix.moves.base import Info, Move
from permix.moves.sharded.state import ShardedRows, log_dirichlet
from permix.moves.sharded.work import (
    MOST_PAIRS,
    Asked,
    Beginner,
    Division,
    Edit,
    Placing,
    Sides,
    add_sides,
    divide,
)
from permix.runtime.exact_sums import grid_of

# Rounds of placing rows on both sides before a split is proposed.
ROUNDS = 3


@dataclasses.dataclass
class PlaceRows(Move):
    """Place all rows anew, but for one of each group."""

    def step(self, rng: np.random.Generator, state: ShardedRows) -> Info:
        seen, prior = state.seen, state.row_prior
        k = len(seen.sizes)
        weights = log_dirichlet(rng, seen.sizes - prior.discount)
        weights -= self.made_up_for(rng, seen.sizes)
        table = state.table(rng, seen.counts)
        order = np.argsort(seen.stay)
        state.place(
            Placing(
                state.column_groups,
                table,
                weights,
                draw_key(rng),
                seen.stay[order],
                order.astype(np.int64),
                np.arange(k),
                (),
                np.arange(k),
            )
        )
        return Info("rows", 1, 1)

    @staticmethod
    def made_up_for(rng: np.random.Generator, sizes: Array) -> Array:
        """Return what weights lose because one member of each group stays."""
        return np.asarray(rng.standard_exponential(len(sizes)) / sizes)


@dataclasses.dataclass
class SplitMergeRows(Move):
    """Propose to split or to merge the groups of pairs of rows; pairs whose groups were met before wait."""

    def step(self, rng: np.random.Generator, state: ShardedRows) -> Info:
        pairs = _pairs(state)
        if not pairs:
            return Info("row split-merge", 0, 0)
        key = draw_key(rng)
        divisions = [_begun(state, pair, key) for pair in pairs]
        for turn in range(1, ROUNDS + 1):
            found = _divided(state, [Asked(division, False) for division in divisions])
            divisions = [
                _sharper(state, division, sides, turn)
                for division, sides in zip(divisions, found, strict=True)
            ]
        merges = [len(division.groups) == 2 for division in divisions]
        found = _divided(state, list(map(Asked, divisions, merges)))
        accepted = 0
        for division, sides in zip(divisions, found, strict=True):
            accepted += _tried(rng, state, division, sides)
        if accepted:
            _renumber(state)
        return Info("row split-merge", len(pairs), accepted)


def _pairs(state: ShardedRows) -> list[tuple[Beginner, Beginner]]:
    """Return pairs of rows drawn at random, such that no group is met twice.

    Rows of groups that have been met are those of the same groups after a split or a merge, so that the same
    pairs are chosen from both sides.
    """
    begin, met, chosen = state.seen.begin, set[int](), []
    for at in range(0, min(len(begin), 2 * MOST_PAIRS) - 1, 2):
        pair = (begin[at], begin[at + 1])
        groups = {row.label for row in pair}
        if not groups & met:
            chosen.append(pair)
            met |= groups
    return chosen


def _begun(state: ShardedRows, pair: tuple[Beginner, Beginner], key: Array) -> Division:
    groups = np.array(list(dict.fromkeys(row.label for row in pair)), dtype=np.int64)
    anchors = np.array([row.id for row in pair], dtype=np.uint64)
    counts = np.stack([row.counts for row in pair])
    return _division(state, groups, anchors, counts, np.zeros(2), key, 0)


def _sharper(state: ShardedRows, division: Division, sides: Sides, turn: int) -> Division:
    """Return the division by the parameters of the sides that were found."""
    weights = np.log(sides.sizes) - math.log(sides.sizes.sum())
    return _division(state, division.groups, division.anchors, sides.counts, weights, division.key, turn)


def _division(
    state: ShardedRows, groups: Array, anchors: Array, counts: Array, weights: Array, key: Array, turn: int
) -> Division:
    return Division(groups, anchors, state.column_groups, state.table(None, counts), weights, key, turn)


def _divided(state: ShardedRows, asked: list[Asked]) -> list[Sides]:
    largest = max(_largest(state, each.division) for each in asked)
    coarse = grid_of(state.n_rows, largest)
    grids = (coarse, grid_of(state.n_rows, 0.5 / coarse))
    shared = (state.shape, state.placing, tuple(asked), grids, state.chain)
    found: list[Sides] = state.data.map(divide, shared, add_sides)
    return found


def _largest(state: ShardedRows, division: Division) -> float:
    """Return what -ln P(side of a row) is at most."""
    weights = abs(float(division.weights[0] - division.weights[1]))
    return state.most_apart(division.table) + weights + 1.0


def _tried(rng: np.random.Generator, state: ShardedRows, division: Division, sides: Sides) -> bool:
    """Accept a split or a merge, or do not; labels of merged groups stay until all are numbered anew."""
    seen, merging = state.seen, len(division.groups) == 2
    k = len(seen.sizes)
    apart, whole = state.log_of(sides.counts), state.log_of(sides.counts.sum(axis=0, keepdims=True))
    others = np.delete(seen.sizes, division.groups)
    others = others[others > 0]
    prior = state.row_prior
    log_apart = prior.log_prob(np.append(others, sides.sizes)) + apart
    log_whole = prior.log_prob(np.append(others, sides.sizes.sum())) + whole
    ratio = log_apart - log_whole - float(sides.log_share.sum())
    if merging:
        ratio = -ratio
    if -rng.standard_exponential() > ratio:
        return False
    first = int(division.groups[0])
    second = int(division.groups[1]) if merging else k
    sizes, counts = seen.sizes.copy(), seen.counts.copy()
    stays, stay, record = seen.stays.copy(), seen.stay.copy(), seen.record.copy()
    if merging:
        nearer = int(np.argmin(sides.stays))
        sizes[first], counts[first] = sides.sizes.sum(), sides.counts.sum(axis=0)
        stays[first], stay[first] = sides.stays[nearer], sides.stay[nearer]
        sizes[second], counts[second] = 0, 0.0
        record[sides.record == 1] = first
    else:
        sizes, counts = np.append(sizes, 0), np.concatenate([counts, counts[:1]])
        stays, stay = np.append(stays, stays[:1]), np.append(stay, stay[:1])
        for side, label in enumerate((first, second)):
            sizes[label], counts[label] = sides.sizes[side], sides.counts[side]
            stays[label], stay[label] = sides.stays[side], sides.stay[side]
            record[sides.record == side] = label
    # Pairs are drawn anew with the rows.
    state.seen = seen._replace(sizes=sizes, counts=counts, stays=stays, stay=stay, record=record)
    edit = Edit(division, -1 if merging else second)
    final = np.arange(len(sizes))
    state.placing = state.placing._replace(edits=(*state.placing.edits, edit), final=final)
    return True


def _renumber(state: ShardedRows) -> None:
    """Number groups without gaps."""
    seen = state.seen
    there = np.flatnonzero(seen.sizes)
    final = np.zeros(len(seen.sizes), dtype=np.int64)
    final[there] = np.arange(len(there))
    state.placing = state.placing._replace(final=final)
    record = np.where(seen.record >= 0, final[seen.record], -1)
    state.seen = seen._replace(
        sizes=seen.sizes[there],
        counts=seen.counts[there],
        stays=seen.stays[there],
        stay=seen.stay[there],
        record=record,
        begin=tuple(row._replace(label=-1) for row in seen.begin),
    )
