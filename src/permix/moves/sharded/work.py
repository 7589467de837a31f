"""What shards of rows do for a chain, and what they say.

Where a row is follows from what the client sends and from numbers that belong to the row: whoever lost a
shard finds the same. So a :class:`Placing` is all that there is to know of where rows are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.data.shards.matrices import CellShard, ShardedCells
from permix.errors import ShardError
from permix.moves.sharded.encodings import Draws, Encoding, Parameters
from permix.moves.sharded.rows import numbers_of_rows, row_ids
from permix.runtime.exact_sums import on_grid

# Words of streams: where rows are placed, who stays, and who begins a split or a merge.
PLACE, STAYS, BEGINS = 0, 1, 2


class Shape(NamedTuple):
    """What is the same in the whole run."""

    encoding: Encoding
    rounding: Array  # of numbers, then of their squares: to a grid, and of the rest to a finer one
    record: Array  # ids of the rows on record, sorted


class Division(NamedTuple):
    """Two sides for the rows of one or two groups; two rows, the anchors, are one on each."""

    groups: Array  # of whose rows; the first is that of the first anchor
    anchors: Array  # (2,) ids
    columns: Array  # groups of columns
    table: Array  # (groups of columns, slots, 2)
    weights: Array  # (2,)
    key: Array
    turn: int


class Edit(NamedTuple):
    """A group that was split, or two that were merged; by ``division`` rows of its second side are moved."""

    division: Division
    to: int  # label of the second side; -1 where the second group joins the first


class Placing(NamedTuple):
    """Where all rows are: drawn among groups but for a row of each, which stays; then what was changed."""

    columns: Array  # groups of columns
    table: Array  # (groups of columns, slots, groups)
    weights: Array  # (groups,)
    key: Array
    stay: Array  # ids of rows that stay, sorted
    stay_labels: Array
    first: Array  # labels by what was drawn
    edits: tuple[Edit, ...]
    final: Array  # labels at the end, by label

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return int(self.final.max()) + 1


# Rows that are drawn for that in an iteration: for so many pairs.
MOST_PAIRS = 4
MOST_BEGIN = 2 * MOST_PAIRS


class Beginner(NamedTuple):
    """A row by which a split or a merge may begin."""

    number: int
    id: int
    label: int
    counts: Array  # (columns, slots)


class Look(NamedTuple):
    """What all rows say of where they are."""

    sizes: Array  # (groups,)
    counts: Array  # (groups, columns, slots), as encodings count
    stays: Array  # (groups,) the smallest number of a member
    stay: Array  # (groups,) and whose it is
    record: Array  # labels of the rows on record; -1 of those elsewhere
    begin: tuple[Beginner, ...]  # rows with the smallest numbers of all

    def plus(self, other: Look) -> Look:
        """Return what both say."""
        mine = self.stays <= other.stays
        begin = sorted((*self.begin, *other.begin), key=lambda row: row.number)
        return Look(
            self.sizes + other.sizes,
            self.counts + other.counts,
            np.where(mine, self.stays, other.stays),
            np.where(mine, self.stay, other.stay),
            np.maximum(self.record, other.record),
            tuple(begin[:MOST_BEGIN]),
        )


class Sides(NamedTuple):
    """What both sides of a division say."""

    sizes: Array  # (2,)
    counts: Array  # (2, columns, slots)
    log_share: Array  # (2,) ln P(rows but the anchors are on their sides), rounded, and the rest
    stays: Array  # (2,)
    stay: Array  # (2,)
    record: Array  # side of the rows on record; -1 of others

    def plus(self, other: Sides) -> Sides:
        """Return what both say."""
        mine = self.stays <= other.stays
        return Sides(
            self.sizes + other.sizes,
            self.counts + other.counts,
            self.log_share + other.log_share,
            np.where(mine, self.stays, other.stays),
            np.where(mine, self.stay, other.stay),
            np.maximum(self.record, other.record),
        )


NOBODY = np.iinfo(np.uint64).max


def look(shard: CellShard, shared: tuple[Shape, Placing, str]) -> Look:
    """Place the rows, and say what they are."""
    shape, placing, chain = shared
    labels = labels_of(shard, shape, placing, chain)
    k = placing.n_groups
    stays = numbers_of_rows(shard, placing.key, STAYS)
    begins = numbers_of_rows(shard, placing.key, BEGINS)
    order = np.argsort(begins, kind="stable")[:MOST_BEGIN]
    begin = tuple(
        Beginner(int(begins[row]), int(row_ids(shard)[row]), int(labels[row]), _alone(shard, shape, int(row)))
        for row in order
    )
    least, who = _least(stays, row_ids(shard), labels, k)
    return Look(
        np.bincount(labels, minlength=k),
        _counts(shard, shape, labels, k),
        least,
        who,
        _on_record(shard, shape, labels),
        begin,
    )


class Asked(NamedTuple):
    """A division, and whether the two groups are to be its sides as they are."""

    division: Division
    as_they_are: bool


def divide(
    shard: CellShard, shared: tuple[Shape, Placing, tuple[Asked, ...], tuple[float, float], str]
) -> list[Sides]:
    """Put rows of groups on two sides, or see on which they are, and say how probable that was.

    Logarithms are rounded to two grids: the second takes what the first leaves.
    """
    shape, placing, asked, (coarse, fine), chain = shared
    labels = labels_of(shard, shape, placing, chain)
    stays = numbers_of_rows(shard, placing.key, STAYS)
    found = []
    for division, as_they_are in asked:
        sides, free = _sides(shard, shape, labels, division, as_they_are)
        terms = np.zeros(len(labels))
        known = Parameters(division.columns, division.table, division.weights)
        shape.encoding.log_shares(encoded_rows(shard, shape), known, free, sides, terms)
        rounded = on_grid(terms, coarse)
        totals = np.array([rounded.sum(), on_grid(terms - rounded, fine).sum()])
        found.append(
            Sides(
                np.bincount(sides[sides >= 0], minlength=2),
                _counts(shard, shape, sides, 2),
                totals,
                *_least(stays, row_ids(shard), sides, 2),
                _on_record(shard, shape, sides),
            )
        )
    return found


def add_sides(one: list[Sides], other: list[Sides]) -> list[Sides]:
    """Return what both say of each division."""
    return [mine.plus(its) for mine, its in zip(one, other, strict=True)]


def labels_of(shard: CellShard, shape: Shape, placing: Placing, chain: str) -> Array:
    """Return the labels of the rows; kept until the chain has gone on."""
    version = (*placing.key.tolist(), len(placing.edits), *placing.first.tolist())
    known = shard.memo.get(chain)
    if known is not None and known[0] == version:
        return np.asarray(known[1])
    ids = row_ids(shard)
    labels, free = np.zeros(len(ids), dtype=np.int64), np.ones(len(ids), dtype=np.bool_)
    if len(placing.stay):
        at = np.minimum(np.searchsorted(placing.stay, ids), len(placing.stay) - 1)
        free = placing.stay[at] != ids
        labels[~free] = placing.stay_labels[at[~free]]
    known, draws = Parameters(placing.columns, placing.table, placing.weights), Draws(placing.key, PLACE, ids)
    shape.encoding.place(encoded_rows(shard, shape), known, draws, free, labels)
    labels = placing.first[labels]
    for division, to in placing.edits:
        if to >= 0:
            sides, _ = _sides(shard, shape, labels, division, as_they_are=False)
            labels[sides == 1] = to
        else:
            labels[labels == division.groups[1]] = division.groups[0]
    labels = placing.final[labels]
    shard.memo[chain] = (version, labels)
    return labels


def refuse_mistakes(data: ShardedCells, encoding: Encoding) -> None:
    """Encode all rows, so that what is wrong with one is said before work is done; it is kept."""
    for said, recipe in zip(data.map(_mistake, encoding), data.recipes, strict=True):
        if said is not None:
            raise ShardError(f"{recipe.name}: {said}")


def _mistake(shard: CellShard, encoding: Encoding) -> str | None:
    try:
        shard.memo["rows"] = encoding.rows(shard.cells)
    except ShardError as error:
        return str(error)
    return None


def encoded_rows(shard: CellShard, shape: Shape) -> Any:
    """Return the cells of the rows, encoded once."""
    if "rows" not in shard.memo:
        shard.memo["rows"] = shape.encoding.rows(shard.cells)
    return shard.memo["rows"]


def _sides(
    shard: CellShard, shape: Shape, labels: Array, division: Division, as_they_are: bool
) -> tuple[Array, Array]:
    """Return the side of every row, -1 of rows of other groups, and which rows are no anchors."""
    sides = np.full(len(labels), -1, dtype=np.int64)
    free = np.zeros(len(labels), dtype=np.bool_)
    for side, group in enumerate(division.groups):
        free[labels == group] = True
        sides[labels == group] = side
    for side, anchor in enumerate(division.anchors):
        at = np.flatnonzero(row_ids(shard) == anchor)
        free[at], sides[at] = False, side
    if not as_they_are:
        known = Parameters(division.columns, division.table, division.weights)
        draws = Draws(division.key, division.turn, row_ids(shard))
        shape.encoding.place(encoded_rows(shard, shape), known, draws, free, sides)
    return sides, free


def _counts(shard: CellShard, shape: Shape, labels: Array, k: int) -> Array:
    counts = shape.encoding.counts(k)
    shape.encoding.count(encoded_rows(shard, shape), labels, shape.rounding, counts)
    return counts


def _alone(shard: CellShard, shape: Shape, row: int) -> Array:
    """Return the counts of one row."""
    labels = np.full(len(row_ids(shard)), -1, dtype=np.int64)
    labels[row] = 0
    return np.asarray(_counts(shard, shape, labels, 1)[0])


def _least(numbers: Array, ids: Array, labels: Array, k: int) -> tuple[Array, Array]:
    """Return the smallest number of each label, and whose it is."""
    least, who = np.full(k, NOBODY), np.zeros(k, dtype=np.uint64)
    members = np.flatnonzero(labels >= 0)
    np.minimum.at(least, labels[members], numbers[members])
    first = members[numbers[members] == least[labels[members]]]
    who[labels[first]] = ids[first]
    return least, who


def _on_record(shard: CellShard, shape: Shape, labels: Array) -> Array:
    found = np.full(len(shape.record), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(shape.record, row_ids(shard)), len(shape.record) - 1)
    here = shape.record[at] == row_ids(shard)
    found[at[here]] = labels[here]
    return found
