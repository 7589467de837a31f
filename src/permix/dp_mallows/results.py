"""The groups of a Dirichlet-process mixture of generalized Mallows models, summarized without labels.

For an estimated group take a random member of it in a random draw: the center and the decays of the cluster
that this agent is in there have a distribution, and means, intervals and consensus rankings are those of this
distribution. So they carry both the uncertainty of the parameters and that of who belongs together.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.base import whole_number
from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mallows.predict import rank_table
from permix.errors import DataError
from permix.estimators.wording import listed
from permix.posterior.intervals import holding, ranks_holding, shortest_around, weighted_quantiles

if TYPE_CHECKING:
    import pandas as pd

# Intervals leave out this much on either side.
TAIL = 0.05
# Items of a center shown in the table of groups.
SHOWN = 10
# A group whose members are found together less than this is remarked on.
LOOSE = 0.5


class ClusterSummaries:
    """Summaries of the estimated clusters of a fit, cluster 0 the largest; made when asked for."""

    def __init__(self, fit: DPMallowsFit) -> None:
        self.fit = fit

    @cached_property
    def ranks(self) -> Array:
        """Rank of every item in every center of every draw, (items, clusters of all draws)."""
        return rank_table(self.fit.clusters)

    def members(self, e: int) -> tuple[Array, Array]:
        """Clusters of all draws that speak for ``e``, and the weight of each: the agents in common."""
        rows, counts = self.fit.overlap.of_estimated(e)
        return rows, counts / counts.sum()

    @cached_property
    def expected_ranks(self) -> Array:
        """Mean rank of every item in every estimated cluster, 0 = best, (clusters, items)."""
        return self._mean_of(self.ranks.T)

    @cached_property
    def centers(self) -> Rankings:
        """Consensus ranking of every estimated cluster: items by their mean rank."""
        orders = np.argsort(self.expected_ranks, axis=1, kind="stable").astype(np.int32)
        return Rankings._from_arrays(orders, self.fit.items)

    @cached_property
    def theta(self) -> Array:
        """Mean decay of every stage, (clusters, stages)."""
        return self._mean_of(self.fit.clusters.theta)

    @cached_property
    def theta_intervals(self) -> Array:
        """5 % and 95 % points of the decays, with the means between them, (2, clusters, stages)."""
        theta = self.fit.clusters.theta
        out = np.empty((2, self.fit.n_clusters, theta.shape[1]))
        for e in range(out.shape[1]):
            rows, shares = self.members(e)
            out[:, e] = weighted_quantiles(theta[rows].T, shares, (TAIL, 1.0 - TAIL))
        return np.stack(holding(self.theta, *out))

    @cached_property
    def expected_distances(self) -> Array:
        """Mean number of pairs that a list as long as the data's longest orders against its center."""
        from permix.distributions.generalized.generalized_mallows_jit import mean_skip

        theta = self.fit.clusters.theta
        skips = mean_skip(theta, len(self.fit.items) - np.arange(theta.shape[1]))
        return self._mean_of(skips.sum(axis=1)[:, None])[:, 0]

    @cached_property
    def lists_at_stage(self) -> Array:
        """How many agents of each cluster have a list that reaches each stage, (clusters, stages)."""
        data = self.fit.rankings
        lengths = np.repeat(data.lengths, data.counts)
        n_stages = self.fit.clusters.theta.shape[1]
        out = np.zeros((self.fit.n_clusters, n_stages + 1), dtype=np.int64)
        np.add.at(out, (self.fit.labels, np.minimum(lengths, n_stages)), 1)
        reached: Array = out[:, ::-1].cumsum(axis=1)[:, ::-1]
        return reached[:, 1:]

    @cached_property
    def drawn_sizes(self) -> Array:
        """Agents of the clusters that speak for each estimated one, in every draw, (draws, clusters)."""
        clusters = self.fit.clusters
        out = np.zeros((clusters.n_draws, self.fit.n_clusters))
        draw = np.repeat(np.arange(clusters.n_draws), np.diff(clusters.starts))
        np.add.at(out, (draw, self.fit.overlap.linked), clusters.sizes)
        return out

    @cached_property
    def shares(self) -> Array:
        """Posterior mean share of each estimated cluster; they sum to one."""
        return np.asarray(self.drawn_sizes.mean(axis=0) / self.drawn_sizes[0].sum())

    @cached_property
    def share_intervals(self) -> Array:
        """5 % and 95 % points of the shares over draws, with the means between them, (2, clusters)."""
        ends = np.quantile(self.drawn_sizes, (TAIL, 1.0 - TAIL), axis=0) / self.drawn_sizes[0].sum()
        return np.stack(holding(self.shares, *ends))

    @cached_property
    def how_sure(self) -> Array:
        """Mean share of a cluster's members that the cluster most like it holds in a draw."""
        return np.asarray((self.fit.overlap.in_nearest / self.fit.cluster_sizes).mean(axis=0))

    def _mean_of(self, values: Array) -> Array:
        """Means of numbers that clusters of draws have, over those that speak for each estimated one."""
        out = np.empty((self.fit.n_clusters, values.shape[1]))
        for e in range(len(out)):
            rows, shares = self.members(e)
            out[e] = shares @ values[rows]
        return out

    # Tables.

    def group_table(self) -> pd.DataFrame:
        """One row for each group: how large, how tight, and its center by name.

        Columns ``size``, members in the point estimate; ``share``, the mean over draws of the clusters that
        speak for it; ``share_low`` and ``share_high``, 5 % and 95 % points of that; ``how_sure``, the
        mean share of members that one cluster holds; ``found_in_chains`` and ``agreement``, whether chains
        agree on it (:class:`permix.posterior.estimated.Recurrence`); ``expected_distance``, pairs that a list
        as long as the longest orders against its center; ``theta_first`` and ``theta_last``, decays of the
        first and the last stage; ``center``, first items.
        """
        import pandas as pd

        fit = self.fit
        low, high = self.share_intervals
        more = " ≻ …" if len(fit.items) > SHOWN else ""
        return pd.DataFrame(
            {
                "size": fit.scaled_sizes,
                "share": self.shares,
                "share_low": low,
                "share_high": high,
                "how_sure": self.how_sure,
                "found_in_chains": fit.recurrence.n_chains,
                "agreement": fit.recurrence.agreement,
                "expected_distance": self.expected_distances,
                "theta_first": self.theta[:, 0],
                "theta_last": self.theta[:, -1],
                "center": [
                    " ≻ ".join(str(fit.items[item]) for item in order) + more
                    for order in self.centers.orders[:, :SHOWN]
                ],
            },
            index=pd.RangeIndex(fit.n_clusters, name="group"),
        )

    def center_table(self, group: int, top: int | None = None) -> pd.DataFrame:
        """Items of one group in the order of its consensus, with the uncertainty of their ranks.

        ``in_top`` is P(rank ≤ top); by default the length of the longest list, at most the number of items
        less one. An item is better than ``rank_low``, or worse than ``rank_high``, in 5 % of draws at most.
        """
        import pandas as pd

        columns = self.center_columns(group, top)
        return pd.DataFrame(columns, index=pd.RangeIndex(1, len(columns["item"]) + 1, name="rank"))

    def center_columns(self, group: int, top: int | None = None) -> dict[str, Any]:
        """Return the columns of :meth:`center_table`, without pandas, whose import takes a while."""
        e = whole_number("group", group, 0)
        if e >= self.fit.n_clusters:
            raise DataError(f"there is no group {e}; they are counted from 0 to {self.fit.n_clusters - 1}")
        top = self.fit.clusters.theta.shape[1] if top is None else whole_number("top", top, 1)
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
            "in_top": np.minimum((ranks < top) @ shares, 1.0),
        }

    def place_intervals(self, group: int) -> tuple[Array, Array]:
        """Between which places the items of a center, best first, stand in 90 % of draws.

        The shortest intervals that hold the place that the item has in the center, a whole number; the mean
        over draws need not be one, and does not widen it.
        """
        rows, shares = self.members(group)
        order = self.centers.orders[group]
        ranks = self.ranks[order][:, rows]
        low, high = shortest_around(np.arange(len(order)), ranks, shares, 1.0 - 2.0 * TAIL)
        return low + 1, high + 1

    def decay_table(self) -> pd.DataFrame:
        """Decay of every stage of every group: mean, 5 % and 95 % points, and lists that reach the stage.

        A stage that no list reaches has a decay from the prior.
        """
        import pandas as pd

        n_clusters, n_stages = self.theta.shape
        places = [range(n_clusters), range(1, n_stages + 1)]
        low, high = self.theta_intervals
        columns = {"theta": self.theta, "theta_low": low, "theta_high": high, "lists": self.lists_at_stage}
        return pd.DataFrame(
            {name: values.ravel() for name, values in columns.items()},
            index=pd.MultiIndex.from_product(places, names=["group", "rank"]),
        )

    def remarks(self) -> list[str]:
        """What a reader of the groups should know about them; they are counted from 1 here."""
        fit, said = self.fit, []
        if fit.settings.sampler != "exact":
            said.append(
                f"the sampler {fit.settings.sampler!r} is the published approximation; 'exact' draws from "
                "the posterior itself"
            )
        if fit.draws.interrupted:
            said.append(f"stopped early, after {fit.draws.n_draws} draws of each chain")
        single = int((fit.cluster_sizes == 1).sum())
        if single:
            said.append(
                f"{single} of {fit.n_clusters} groups {'holds' if single == 1 else 'hold'} one agent"
                f"{'' if single == 1 else ' each'}, who is like nobody else"
            )
        loose = np.flatnonzero((self.how_sure < LOOSE) & (fit.cluster_sizes > 1)).tolist()
        if loose:
            names = listed([str(e + 1) for e in loose[:8]]) + (", …" if len(loose) > 8 else "")
            said.append(f"group{'' if len(loose) == 1 else 's'} {names}: draws often divide the members")
        low, high = np.quantile(fit.draws.arrays["n_groups"], (TAIL, 1.0 - TAIL))
        if fit.shows_a_draw:
            said.append(
                "groups overlap, so that no partition is near all draws: shown is the draw nearest to all; "
                "who belongs where is uncertain, what the groups prefer need not be"
            )
        elif not low <= fit.n_clusters <= high:
            said.append(
                f"draws have {low:g} to {high:g} groups, the estimate {fit.n_clusters}; small ones that do "
                "not last are not in it"
            )
        longest, n_items = int(fit.rankings.lengths.max()), len(fit.items)
        if longest < n_items - 1:
            said.append(
                f"no list names more than {longest} of {n_items} items; places after that follow the prior"
            )
        return said
