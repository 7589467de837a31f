"""Groups found from those who can be told apart, so that those who cannot do not swallow them.

Somebody who gave one answer could be in nearly any group. Where many did, the partition of least expected
loss puts all of them into one large group, with everybody who resembles them a little, and has fewer groups
than any draw. So groups are found from those who are with somebody else, or alone, in at least :data:`TOLD`
of the draws; everybody else comes to the group that they are most likely in, and is *placed* there only if
that is so in at least :data:`PLACED` of the draws.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from permix.partitions.geometry import how_sure
from permix.partitions.point_estimate import PointEstimate
from permix.posterior.estimated import Array, estimate_of, evenly_spaced, spaced
from permix.sampling import Draws

TOLD, PLACED = 2 / 3, 0.5
# Who is with whom is looked up in so many draws.
COMPARED_DRAWS = 200
# Above this number, everybody is compared with some members of each group of some draws, the surest ones.
COMPARED_WITH_ALL = 1500
SOME_DRAWS, SOME_MEMBERS = 5, 10

Bools = npt.NDArray[np.bool_]


def placed_partition(draws: Draws, settings: Any, quantity: str, number: str) -> PointEstimate:
    """Return the partition of least expected loss of those who can be told apart, and place the others.

    ``placed`` of the result says who is in their group in most draws, or is None where that is everybody.
    Where everybody can be told apart, or nobody, the partition is that of
    :func:`permix.posterior.estimated.nearest_partition`. Losses are of those who can be told apart.
    """
    every = draws.arrays[quantity]
    labels = evenly_spaced(every, COMPARED_DRAWS).astype(np.int64)
    told = tellable(labels)
    if told.all() or not told.any():
        return estimate_of(every, draws.arrays[number], settings)
    inner = estimate_of(every[..., told], draws.arrays[number], settings)
    groups = np.full(labels.shape[1], -1)
    groups[told] = inner.labels
    shares = shares_of_groups(labels, groups)
    found = np.where(told, groups, shares.argmax(axis=1))
    placed = shares[np.arange(len(found)), found] >= PLACED
    return dataclasses.replace(
        inner,
        labels=found.astype(np.int32),
        sizes=np.bincount(found),
        best_draw=None,
        placed=None if placed.all() else placed,
    )


def tellable(draws: Array) -> Bools:
    """Say who is with one other in at least :data:`TOLD` of the draws, or alone; draws × observations.

    Examples
    --------
    The last one is with the first two as often as with the next two.

    >>> tellable(np.array([[0, 0, 1, 1, 0], [0, 0, 1, 1, 1]])).tolist()
    [True, True, True, True, False]
    """
    n_draws, n = draws.shape
    others = np.arange(n) if n <= COMPARED_WITH_ALL else _representatives(draws)
    together = np.zeros((n, len(others)), dtype=np.uint16)
    alone = np.zeros(n, dtype=np.int64)
    for draw in draws:
        together += draw[:, None] == draw[others]
        alone += np.bincount(draw)[draw] == 1
    together[others, np.arange(len(others))] = 0  # with oneself
    return np.asarray(np.maximum(together.max(axis=1), alone) >= TOLD * n_draws)


def _representatives(draws: Array) -> Array:
    """Return the surest members of the groups of some draws."""
    found: list[Array] = []
    for t in spaced(len(draws), SOME_DRAWS):
        order = np.lexsort((-how_sure(draws, draws[t]), draws[t]))
        group = draws[t][order]
        rank = np.arange(len(group)) - np.searchsorted(group, group)
        found.append(order[rank < SOME_MEMBERS])
    return np.unique(np.concatenate(found))


def shares_of_groups(draws: Array, groups: Array) -> npt.NDArray[np.float64]:
    """Return how probably everybody is with a member of each group, averaged over its members.

    ``groups`` is -1 for those who are in none. Members are compared with other members; the only member of a
    group has the probability of being alone.

    Examples
    --------
    >>> shares_of_groups(np.array([[0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]), np.array([0, 0, 1, 1, -1]))
    array([[1. , 0. ],
           [1. , 0. ],
           [0. , 1. ],
           [0. , 1. ],
           [0.5, 0.5]])
    """
    members = np.flatnonzero(groups >= 0)
    sizes = np.bincount(groups[members])
    k = len(sizes)
    total = np.zeros((draws.shape[1], k))
    own = (members, groups[members])
    others = np.maximum(sizes - 1, 1)[groups[members]]
    only = sizes[groups[members]] == 1
    for draw in draws:
        n = int(draw.max()) + 1
        counts = np.bincount(draw[members] * k + groups[members], minlength=n * k).reshape(n, k)
        shared = (counts / sizes)[draw]
        alone = np.bincount(draw, minlength=n)[draw[members]] == 1
        shared[own] = np.where(only, alone, (counts[draw[members], groups[members]] - 1) / others)
        total += shared
    return total / len(draws)
