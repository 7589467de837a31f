"""Centers of estimated groups, from the groups of all draws that speak for them, without labels.

For an estimated group take a random member of it in a random draw: the center and the parameters of the group
that this agent is in there have a distribution, and means, intervals and consensus are those of it. So they
carry both the uncertainty of the parameters and that of who belongs together.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from permix.data.labels import Array, Label
from permix.data.rankings import Rankings
from permix.distributions.base import whole_number
from permix.errors import DataError
from permix.posterior.intervals import ranks_holding, shortest_around, weighted_quantiles
from permix.posterior.overlap import Overlap

if TYPE_CHECKING:
    import pandas as pd

# Intervals leave out this much on either side.
TAIL = 0.05
# Items of a center shown in the table of groups.
SHOWN = 10


class Centered(Protocol):
    """A fit whose groups have centers."""

    @property
    def items(self) -> tuple[Label, ...]:
        """Item names."""

    @property
    def n_clusters(self) -> int:
        """Number of estimated groups."""

    @property
    def cluster_sizes(self) -> Array:
        """Members of each estimated group."""

    @property
    def overlap(self) -> Overlap:
        """Which estimated group each group of the draws speaks for."""


def rank_table(orders: Array) -> Array:
    """Return the rank of every item in every ordering, (items, orderings), in small integers."""
    n_rows, n = orders.shape
    ranks = np.empty((n, n_rows), dtype=np.int16 if n <= np.iinfo(np.int16).max else np.int32)
    np.put_along_axis(ranks, orders.T.astype(np.int64), np.arange(n)[:, None], axis=0)
    return ranks


FitT = TypeVar("FitT", bound=Centered)


class CenterSummaries(Generic[FitT]):
    """Summaries of the centers of a fit's estimated groups, group 0 the largest; made when asked for."""

    def __init__(self, fit: FitT, orders: Array) -> None:
        self.fit = fit
        self.orders = orders  # int32 (groups of all draws, items): their centers, best first

    @cached_property
    def ranks(self) -> Array:
        """Rank of every item in every center of every draw, (items, groups of all draws)."""
        return rank_table(self.orders)

    def members(self, e: int) -> tuple[Array, Array]:
        """Groups of all draws that speak for ``e``, and the weight of each: the agents in common."""
        rows, counts = self.fit.overlap.of_estimated(e)
        return rows, counts / counts.sum()

    def mean_of(self, values: Array) -> Array:
        """Means of numbers that groups of draws have, over those that speak for each estimated one."""
        out = np.empty((self.fit.n_clusters, values.shape[1]))
        for e in range(len(out)):
            rows, shares = self.members(e)
            out[e] = shares @ values[rows]
        return out

    def ends_of(self, values: Array) -> Array:
        """5 % and 95 % points of numbers that groups of draws have, (2, groups, numbers)."""
        out = np.empty((2, self.fit.n_clusters, values.shape[1]))
        for e in range(out.shape[1]):
            rows, shares = self.members(e)
            out[:, e] = weighted_quantiles(values[rows].T, shares, (TAIL, 1.0 - TAIL))
        return out

    @cached_property
    def expected_ranks(self) -> Array:
        """Mean rank of every item in the center of every estimated group, 0 = best, (groups, items)."""
        return self.mean_of(self.ranks.T)

    @cached_property
    def centers(self) -> Rankings:
        """Consensus of every estimated group: items by their mean rank in its center."""
        orders = np.argsort(self.expected_ranks, axis=1, kind="stable").astype(np.int32)
        return Rankings._from_arrays(orders, self.fit.items)

    def put_first(self, decays: Array) -> Array:
        """Return how probably a member of each estimated group puts each item first, (groups, items).

        That is e^(-decay · places above it) over the sum of these, where each group of the draws inserts
        its first item so; ``decays`` (groups of all draws,) are of the first place.
        """
        chances = np.exp(-decays * self.ranks.astype(np.float64))
        return self.mean_of((chances / chances.sum(axis=0)).T)

    @cached_property
    def how_sure(self) -> Array:
        """Mean share of a group's members that the group most like it holds in a draw."""
        return np.asarray((self.fit.overlap.in_nearest / self.fit.cluster_sizes).mean(axis=0))

    @property
    def first_names(self) -> list[str]:
        """The first items of each center by name."""
        more = " ≻ …" if len(self.fit.items) > SHOWN else ""
        return [
            " ≻ ".join(str(self.fit.items[item]) for item in order) + more
            for order in self.centers.orders[:, :SHOWN]
        ]

    def check(self, group: int) -> int:
        """Return the number of a group that there is."""
        e = whole_number("group", group, 0)
        if e >= self.fit.n_clusters:
            raise DataError(f"there is no group {e}; they are counted from 0 to {self.fit.n_clusters - 1}")
        return e

    def place_intervals(self, group: int) -> tuple[Array, Array]:
        """Between which places the items of a center, best first, stand in 90 % of draws.

        The shortest intervals that hold the place that the item has in the consensus, a whole number; the
        mean over draws need not be one, and does not widen it.
        """
        rows, shares = self.members(group)
        order = self.centers.orders[group]
        ranks = self.ranks[order][:, rows]
        low, high = shortest_around(np.arange(len(order)), ranks, shares, 1.0 - 2.0 * TAIL)
        return low + 1, high + 1

    def center_columns(self, group: int, top: int) -> dict[str, Any]:
        """Return the items of one group in the order of its consensus, with what is known of their ranks.

        An item is better than ``rank_low``, or worse than ``rank_high``, in 5 % of draws at most; ``in_top``
        is P(rank in the center ≤ top).
        """
        e = self.check(group)
        rows, shares = self.members(e)
        order = self.centers.orders[e]
        ranks = self.ranks[order][:, rows]
        expected = self.expected_ranks[e, order] + 1.0
        low, high = ranks_holding(expected, *weighted_quantiles(ranks, shares, (TAIL, 1.0 - TAIL)) + 1)
        return {
            "item": [self.fit.items[item] for item in order],
            "expected_rank": expected,
            "rank_low": low,
            "rank_high": high,
            "in_top": np.minimum((ranks < whole_number("top", top, 1)) @ shares, 1.0),
        }

    def center_table(self, group: int, top: int) -> pd.DataFrame:
        """Return the same as a data frame, without importing pandas before it is asked for."""
        import pandas as pd

        columns = self.center_columns(group, top)
        return pd.DataFrame(columns, index=pd.RangeIndex(1, len(columns["item"]) + 1, name="rank"))
