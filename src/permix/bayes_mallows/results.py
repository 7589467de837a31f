"""The groups of a Bayesian Mallows model, summarized without labels.

For an estimated group take a random member of it in a random draw: the center and the dispersion of the group
that this agent is in there have a distribution, and means, intervals and consensus are those of it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.base import whole_number
from permix.errors import DataError
from permix.posterior.intervals import holding, ranks_holding, shortest_around, weighted_quantiles

if TYPE_CHECKING:
    import pandas as pd

# Intervals leave out this much on either side.
TAIL = 0.05
# Items of a center shown in the table of groups.
SHOWN = 10


class GroupSummaries:
    """Summaries of the estimated groups of a fit, group 0 the largest; made when asked for."""

    def __init__(self, fit: BayesianMallowsFit) -> None:
        self.fit = fit

    @cached_property
    def ranks(self) -> Array:
        """Rank of every item in every center of every draw, (items, groups of all draws)."""
        return np.argsort(self.fit.groups.centers, axis=1).T.astype(np.int32)

    def members(self, e: int) -> tuple[Array, Array]:
        """Groups of all draws that speak for ``e``, and the weight of each: the agents in common."""
        rows, counts = self.fit.overlap.of_estimated(e)
        return rows, counts / counts.sum()

    def _mean_of(self, values: Array) -> Array:
        """Means of numbers that groups of draws have, over those that speak for each estimated one."""
        out = np.empty((self.fit.n_clusters, values.shape[1]))
        for e in range(len(out)):
            rows, shares = self.members(e)
            out[e] = shares @ values[rows]
        return out

    def _intervals_of(self, values: Array) -> Array:
        """5 % and 95 % points of a number that groups of draws have, (2, groups)."""
        out = np.empty((2, self.fit.n_clusters))
        for e in range(self.fit.n_clusters):
            rows, shares = self.members(e)
            out[:, e] = weighted_quantiles(values[rows][None], shares, (TAIL, 1.0 - TAIL))[:, 0]
        return out

    @cached_property
    def expected_ranks(self) -> Array:
        """Mean rank of every item in the center of every estimated group, 0 = best, (groups, items)."""
        return self._mean_of(self.ranks.T)

    @cached_property
    def centers(self) -> Rankings:
        """Consensus of every estimated group: items by their mean rank in its center."""
        orders = np.argsort(self.expected_ranks, axis=1, kind="stable").astype(np.int32)
        return Rankings._from_arrays(orders, self.fit.items)

    @cached_property
    def dispersions(self) -> Array:
        """Posterior mean dispersion of every estimated group."""
        return self._mean_of(np.exp(-self.fit.groups.decays)[:, None])[:, 0]

    @cached_property
    def dispersion_intervals(self) -> Array:
        """5 % and 95 % points of the dispersions, with the means between them, (2, groups)."""
        ends = self._intervals_of(np.exp(-self.fit.groups.decays))
        return np.stack(holding(self.dispersions, *ends))

    @cached_property
    def expected_distances(self) -> Array:
        """Posterior mean of the expected distance of a member from the center, (groups,)."""
        from permix.distributions.distances.normalizer import normalizer

        sums = normalizer(self.fit.settings.distance, len(self.fit.items))
        means = np.array([sums.mean_distance(decay) for decay in self.fit.groups.decays.tolist()])
        return self._mean_of(means[:, None])[:, 0]

    @cached_property
    def drawn_shares(self) -> Array:
        """Population shares of the groups that speak for each estimated one, in every draw."""
        groups = self.fit.groups
        out = np.zeros((groups.n_draws, self.fit.n_clusters))
        np.add.at(out, (groups.draw_of, self.fit.overlap.linked), groups.shares)
        return out

    @cached_property
    def shares(self) -> Array:
        """Posterior mean share of each estimated group; what is missing to one has no members yet."""
        return np.asarray(self.drawn_shares.mean(axis=0))

    @cached_property
    def share_intervals(self) -> Array:
        """5 % and 95 % points of the shares over draws, with the means between them, (2, groups)."""
        ends = np.quantile(self.drawn_shares, (TAIL, 1.0 - TAIL), axis=0)
        return np.stack(holding(self.shares, *ends))

    @cached_property
    def how_sure(self) -> Array:
        """Mean share of a group's members that the group most like it holds in a draw."""
        return np.asarray((self.fit.overlap.in_nearest / self.fit.cluster_sizes).mean(axis=0))

    def group_table(self) -> pd.DataFrame:
        """One row for each group: how large, how tight, and its center by name."""
        import pandas as pd

        fit = self.fit
        low, high = self.share_intervals
        least, most = self.dispersion_intervals
        more = " ≻ …" if len(fit.items) > SHOWN else ""
        return pd.DataFrame(
            {
                "size": fit.cluster_sizes,
                "share": self.shares,
                "share_low": low,
                "share_high": high,
                "how_sure": self.how_sure,
                "found_in_chains": fit.recurrence.n_chains,
                "agreement": fit.recurrence.agreement,
                "dispersion": self.dispersions,
                "dispersion_low": least,
                "dispersion_high": most,
                "expected_distance": self.expected_distances,
                "center": [
                    " ≻ ".join(str(fit.items[item]) for item in order) + more
                    for order in self.centers.orders[:, :SHOWN]
                ],
            },
            index=pd.RangeIndex(fit.n_clusters, name="group"),
        )

    def check(self, group: int) -> int:
        """Return the number of a group that there is."""
        e = whole_number("group", group, 0)
        if e >= self.fit.n_clusters:
            raise DataError(f"there is no group {e}; they are counted from 0 to {self.fit.n_clusters - 1}")
        return e

    def place_intervals(self, group: int) -> tuple[Array, Array]:
        """Between which places the items of a center, best first, stand in 90 % of draws.

        The shortest intervals that hold the place that the item has in the consensus.
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
        """Return the same as a data frame."""
        import pandas as pd

        columns = self.center_columns(group, top)
        return pd.DataFrame(columns, index=pd.RangeIndex(1, len(columns["item"]) + 1, name="rank"))
