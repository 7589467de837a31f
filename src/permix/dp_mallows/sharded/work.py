"""What a shard does for the sampler: places its agents, and counts them.

Who belongs where is a function of a :class:`Placing` alone, so a worker that lost its shard makes the labels
anew. All statistics are counts, and sums of logarithms on grids: neither shards nor their order matter.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.data.shards.loading import Shard
from permix.dp_mallows.lists.pair_counts_jit import count_pairs
from permix.dp_mallows.lists.placing_jit import PURPOSES, choose_members, draw_sides, place, weigh_sides
from permix.dp_mallows.lists.top_lists_jit import TopLists, top_lists
from permix.errors import DataError
from permix.estimators.ranking_lists import as_top_lists
from permix.runtime.exact_sums import grid_of, on_grid
from permix.runtime.threads import over_rows

# ln P(side) of one agent is no larger, in absolute value.
LARGEST_LOG = 701.0


class Division(NamedTuple):
    """How members of a cluster are divided between two sides, or would be."""

    words: Array  # uint64 (items, 1): places of the items in two centers, as lanes of a word
    theta: Array  # (stages, 2)
    log_odds: float
    anchors: tuple[int, int]  # agents who are on side 1 and on side 2 in any case; -1 for nobody
    key: Array  # uint64 (2,)


class Edit(NamedTuple):
    """A change of who belongs where.

    With a division, a split of cluster ``first``: those on side 2 become cluster ``second``, the last. With
    an agent, this one becomes cluster ``second``, alone. With neither, a merge of ``second`` with ``first``;
    then cluster ``last`` takes the place of ``second``.
    """

    first: int
    second: int
    last: int
    division: Division | None
    agent: int  # -1 for nobody
    key: Array  # uint64 (2,): of the numbers by which members are chosen

    @property
    def opens(self) -> bool:
        """Whether there is one more cluster afterwards; else there is one less."""
        return self.division is not None or self.agent >= 0


class Placing(NamedTuple):
    """Who belongs where: each agent goes to a cluster by a number of their own, given parameters."""

    words: Array  # uint64 (items, clusters / 4)
    theta: Array  # (stages, clusters)
    log_shares: Array  # (clusters,)
    key: Array  # uint64 (2,)
    seated: Array  # int64 (clusters,): an agent of each cluster who stays there; -1 for nobody
    edits: tuple[Edit, ...]
    chain: int

    @property
    def n_clusters(self) -> int:
        """Number of clusters after all edits."""
        return len(self.log_shares) + sum(1 if edit.opens else -1 for edit in self.edits)

    @property
    def names(self) -> tuple[bytes, ...]:
        """Return what tells this from others: keys are used once."""
        return tuple(key.tobytes() for key in (self.key, *(edit.key for edit in self.edits)))

    @property
    def last_key(self) -> Array:
        """The key of the numbers by which members are chosen."""
        return self.edits[-1].key if self.edits else self.key


class Look(NamedTuple):
    """What all shards say of the clusters."""

    pairs: Array  # (clusters, stages, items, items)
    sizes: Array  # int64 (clusters,)
    numbers: Array  # (purposes, clusters, 2): smallest numbers of members
    agents: Array  # int64, the same shape: whose they are
    lists: Array  # int32 (purposes, clusters, 2, stages): what these said, padded by -1
    labels: Array  # int32: of the agents asked about, -1 of those in other shards
    said: Array  # int32 (asked, stages): their lists, padded by -1


class Sides(NamedTuple):
    """What all shards say of two sides."""

    pairs: Array  # (2, stages, items, items)
    sizes: Array  # int64 (2,)
    logs: Array  # (2,): ln P(sides of all but the anchors), rounded, and the rest


class OnShard(NamedTuple):
    """Lists of the agents of a shard."""

    lists: TopLists
    first_agent: int
    n_stages: int = 0  # of all shards

    @property
    def n_agents(self) -> int:
        return len(self.lists.list_of)

    def local(self, agents: Array) -> tuple[Array, Array]:
        """Return which of these agents are here, and where."""
        here = np.flatnonzero((agents >= self.first_agent) & (agents < self.first_agent + self.n_agents))
        return here, agents[here] - self.first_agent

    def said(self, agents: Array) -> Array:
        """Return the lists of those agents who are here, padded by -1; rows of -1 for others."""
        flat = np.full((agents.size, self.n_stages), -1, dtype=np.int32)
        where, local = self.local(agents.ravel())
        lists = self.lists
        for row, d in zip(where, lists.list_of[local], strict=True):
            items = lists.items[lists.starts[d] : lists.starts[d + 1]]
            flat[row, : len(items)] = items
        return flat.reshape(*agents.shape, self.n_stages)


class Shape(NamedTuple):
    """Numbers that workers need to know."""

    n_agents: int
    n_items: int
    skips_left: Array  # int64 (stages,)

    @property
    def pairs(self) -> tuple[int, int, int]:
        """Shape of the counts of pairs of a cluster."""
        return len(self.skips_left), self.n_items, self.n_items


def on_shard(shard: Shard) -> OnShard:
    """Return the lists of a shard, made once."""
    found: OnShard | None = shard.memo.get("top lists")
    if found is None:
        rows = as_top_lists(shard.table)
        ones = np.ones(len(rows), dtype=np.int64)
        of_rows = top_lists(np.asarray(rows.orders), np.asarray(rows.lengths), ones, rows.n_items)
        list_of = of_rows.list_of[shard.row_of]
        ends = np.cumsum(np.bincount(list_of, minlength=len(of_rows.starts) - 1))
        found = OnShard(
            of_rows._replace(
                list_of=list_of,
                agent_starts=np.concatenate([[0], ends]).astype(np.int64),
                agents=np.argsort(list_of, kind="stable").astype(np.int32),
            ),
            shard.first,
        )
        shard.memo["top lists"] = found
    return found


# Who belongs where.


def labels_of(shard: Shard, shape: Shape, placing: Placing) -> Array:
    """Return the cluster of every agent of a shard."""
    here, names = on_shard(shard), placing.names
    known: tuple[tuple[bytes, ...], Array] | None = shard.memo.get(f"labels of chain {placing.chain}")
    if known is not None and known[0] == names:
        return known[1]
    if known is not None and known[0] == names[: len(known[0])]:
        done, labels = len(known[0]) - 1, known[1].copy()
    else:
        done, labels = 0, _placed(here, shape, placing)
    for edit in placing.edits[done:]:
        _apply(here, shape, edit, labels)
    shard.memo[f"labels of chain {placing.chain}"] = names, labels
    return labels


def _placed(here: OnShard, shape: Shape, placing: Placing) -> Array:
    labels = np.empty(here.n_agents, dtype=np.int32)
    given = (placing.words, placing.theta, placing.log_shares, placing.key, labels)
    work = partial(place, here.lists, shape.skips_left, here.first_agent, *given)
    over_rows(work, len(here.lists.starts) - 1, placing.theta.size)
    clusters, agents = here.local(placing.seated)
    labels[agents] = clusters
    return labels


def _apply(here: OnShard, shape: Shape, edit: Edit, labels: Array) -> None:
    if edit.division is not None:
        side, _ = _divided(here, shape, labels == edit.first, edit.division)
        labels[side == 2] = edit.second
    elif edit.agent >= 0:
        labels[here.local(np.array([edit.agent]))[1]] = edit.second
    else:
        labels[labels == edit.second] = edit.first
        labels[labels == edit.last] = edit.second


def _divided(here: OnShard, shape: Shape, members: Array, division: Division) -> tuple[Array, Array]:
    """Return the side of every member, 0 for all others, and ln P(side) of every list, (2, lists)."""
    logs = _side_logs(here, shape, division)
    side = members.astype(np.int64)
    draw_sides(here.lists.list_of, here.first_agent, logs, division.key, side)
    anchors, agents = here.local(np.array(division.anchors))
    side[agents] = anchors + 1
    return side, logs


def _side_logs(here: OnShard, shape: Shape, division: Division) -> Array:
    n_lists = len(here.lists.starts) - 1
    logs = np.empty((2, n_lists))
    given = (division.words, division.theta, division.log_odds, logs)
    over_rows(partial(weigh_sides, here.lists, shape.skips_left, *given), n_lists, division.theta.size)
    return logs


# Work of shards: functions of this module, so that other processes know them.


def longest_list(shard: Shard, _: Any) -> int | str:
    """Return the length of the longest list of a shard, or what is wrong with its rows."""
    try:
        return int(np.diff(on_shard(shard).lists.starts).max())
    except DataError as error:
        return str(error)


def look(shard: Shard, shared: tuple[Shape, Placing, Array]) -> Look:
    """Place the agents of a shard, count, and answer about some of them."""
    shape, placing, asked = shared
    here, labels, n = on_shard(shard), labels_of(shard, shape, placing), placing.n_clusters
    here = here._replace(n_stages=shape.pairs[0])
    pairs = np.zeros((n, *shape.pairs))
    count_pairs(here.lists, labels, n, pairs)
    numbers = np.empty((PURPOSES, n, 2))
    agents = np.empty((PURPOSES, n, 2), dtype=np.int64)
    choose_members(labels, here.first_agent, placing.last_key, numbers, agents)
    answers = np.full(len(asked), -1, dtype=np.int32)
    where, local = here.local(asked)
    answers[where] = labels[local]
    sizes = np.bincount(labels, minlength=n)
    return Look(pairs, sizes, numbers, agents, here.said(agents), answers, here.said(asked))


def add_looks(one: Look, other: Look) -> Look:
    """Return what both say together."""
    numbers = np.concatenate([one.numbers, other.numbers], axis=2)
    first = np.argsort(numbers, axis=2, kind="stable")[:, :, :2]

    def chosen(mine: Array, theirs: Array) -> Array:
        both = np.concatenate([mine, theirs], axis=2)
        at = first.reshape(first.shape + (1,) * (both.ndim - 3))
        return np.take_along_axis(both, at, axis=2)

    return Look(
        one.pairs + other.pairs,
        one.sizes + other.sizes,
        np.take_along_axis(numbers, first, axis=2),
        chosen(one.agents, other.agents),
        chosen(one.lists, other.lists),
        np.maximum(one.labels, other.labels),
        np.maximum(one.said, other.said),
    )


def gather(shard: Shard, shared: tuple[Shape, Placing, tuple[int, int], Division]) -> Sides:
    """Give every list of the members of one or two clusters to the better of two centers, and count."""
    shape, placing, clusters, division = shared
    here, labels = on_shard(shard), labels_of(shard, shape, placing)
    logs = _side_logs(here, shape, division)
    better = (logs[0] < logs[1]).astype(np.int64)
    side = np.where(np.isin(labels, clusters), better[here.lists.list_of] + 1, 0)
    return _counted(here, shape, side, None, division)


def divide(shard: Shard, shared: tuple[Shape, Placing, tuple[int, int], Division]) -> Sides:
    """Divide the members of a cluster at random, or, of two, weigh who is where; count those of the first."""
    shape, placing, (first, second), division = shared
    here, labels = on_shard(shard), labels_of(shard, shape, placing)
    if second < 0:
        side, logs = _divided(here, shape, labels == first, division)
        return _counted(here, shape, side, logs, division)
    side = np.where(labels == first, 1, np.where(labels == second, 2, 0))
    logs = _side_logs(here, shape, division)
    return _counted(here, shape, side, logs, division)


def _counted(here: OnShard, shape: Shape, side: Array, side_logs: Array | None, division: Division) -> Sides:
    pairs = np.zeros((2, *shape.pairs))
    count_pairs(here.lists, (side - 1).astype(np.int32), 2, pairs)
    sizes = np.bincount(side, minlength=3)[1:]
    logs = np.zeros(2)
    if side_logs is not None:
        _, anchors = here.local(np.array(division.anchors))
        free = side.copy()
        free[anchors] = 0
        grid = grid_of(shape.n_agents, LARGEST_LOG)
        finer = grid_of(shape.n_agents, 0.5 / grid)
        for which in (0, 1):
            times = np.bincount(here.lists.list_of[free == which + 1], minlength=side_logs.shape[1])
            rounded = on_grid(side_logs[which], grid)
            rest = on_grid(side_logs[which] - rounded, finer)
            logs += times @ rounded, times @ rest
    return Sides(pairs, sizes, logs)


def add_sides(one: Sides, other: Sides) -> Sides:
    """Return what both say together."""
    return Sides(*(mine + theirs for mine, theirs in zip(one, other, strict=True)))
