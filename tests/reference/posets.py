"""Partial orders the slow and obvious way: sets of pairs, Warshall's closure, depth-first search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Statement(NamedTuple):
    """What one agent says: groups best first, whether the rest is below, comparisons (better, worse)."""

    groups: list[list[int]]
    rest_below: bool
    pairs: list[tuple[int, int]]

    @property
    def listed(self) -> list[int]:
        return [item for group in self.groups for item in group]

    @property
    def mentioned(self) -> set[int]:
        return set(self.listed) | {item for pair in self.pairs for item in pair}


def level_relation(statement: Statement, n_items: int) -> set[tuple[int, int]]:
    """All pairs (better, worse) that the groups alone say."""
    relation = set()
    for place, group in enumerate(statement.groups):
        for worse_group in statement.groups[place + 1 :]:
            relation |= {(a, b) for a in group for b in worse_group}
    if statement.rest_below:
        rest = set(range(n_items)) - set(statement.listed)
        relation |= {(a, b) for a in statement.listed for b in rest}
    return relation


def stated_relation(statement: Statement, n_items: int) -> set[tuple[int, int]]:
    """What the groups say, and the comparisons as they stand."""
    return level_relation(statement, n_items) | set(statement.pairs)


def closed_relation(statement: Statement, n_items: int) -> set[tuple[int, int]]:
    """Warshall: everything the statements imply together."""
    relation = stated_relation(statement, n_items)
    better = [[(a, b) in relation for b in range(n_items)] for a in range(n_items)]
    for via in range(n_items):
        for a in range(n_items):
            for b in range(n_items):
                better[a][b] = better[a][b] or (better[a][via] and better[via][b])
    return {(a, b) for a in range(n_items) for b in range(n_items) if better[a][b]}


def has_cycle(statement: Statement, n_items: int) -> bool:
    """Depth-first search for a way back to a node on the path."""
    below: dict[int, list[int]] = {}
    for a, b in stated_relation(statement, n_items):
        below.setdefault(a, []).append(b)
    finished: set[int] = set()

    def visit(node: int, path: set[int]) -> bool:
        if node in path:
            return True
        if node in finished:
            return False
        if any(visit(target, path | {node}) for target in below.get(node, [])):
            return True
        finished.add(node)
        return False

    return any(visit(node, set()) for node in range(n_items))


def covering_pairs(statement: Statement, n_items: int) -> set[tuple[int, int]]:
    """Pairs over the mentioned items with nothing in between."""
    mentioned = statement.mentioned
    relation = {(a, b) for a, b in closed_relation(statement, n_items) if a in mentioned and b in mentioned}
    return {
        (a, b) for a, b in relation if not any((a, c) in relation and (c, b) in relation for c in mentioned)
    }


def ranking_relation(order: list[int], below: bool, n_items: int) -> set[tuple[int, int]]:
    """What one ranking says."""
    return level_relation(Statement([[item] for item in order], below, []), n_items)


def orders_from_places(places, center):
    """Orderings grown by inserting the items of the center at these places, rows of an array."""
    orders = np.empty(places.shape, dtype=np.int64)
    for row in range(len(places)):
        order = []
        for item, place in zip(center, places[row].tolist(), strict=True):
            order.insert(place, int(item))
        orders[row] = order
    return orders
