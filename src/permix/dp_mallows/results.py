"""The groups of a Dirichlet-process mixture of generalized Mallows models, summarized without labels.

Centers are those of :mod:`permix.posterior.centers`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.dp_mallows.fit import DPMallowsFit
from permix.estimators.wording import listed
from permix.partitions.population import dirichlet_given, summarized_shares
from permix.posterior.centers import TAIL, CenterSummaries
from permix.posterior.intervals import holding

if TYPE_CHECKING:
    import pandas as pd

# A group whose members are found together less than this is remarked on.
LOOSE = 0.5


class ClusterSummaries(CenterSummaries[DPMallowsFit]):
    """Summaries of the estimated clusters of a fit, cluster 0 the largest; made when asked for."""

    def __init__(self, fit: DPMallowsFit) -> None:
        super().__init__(fit, fit.clusters.centers)

    @cached_property
    def theta(self) -> Array:
        """Mean decay of every stage, (clusters, stages)."""
        return self.mean_of(self.fit.clusters.theta)

    @cached_property
    def theta_intervals(self) -> Array:
        """5 % and 95 % points of the decays, with the means between them, (2, clusters, stages)."""
        return np.stack(holding(self.theta, *self.ends_of(self.fit.clusters.theta)))

    @cached_property
    def expected_distances(self) -> Array:
        """Mean number of pairs that a list as long as the data's longest orders against its center."""
        from permix.distributions.generalized.generalized_mallows_jit import mean_skip

        theta = self.fit.clusters.theta
        skips = mean_skip(theta, len(self.fit.items) - np.arange(theta.shape[1]))
        return self.mean_of(skips.sum(axis=1)[:, None])[:, 0]

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
    def _shares(self) -> tuple[Array, Array, Array]:
        """Means and 5 % and 95 % points of the shares in the population of what speaks for each cluster."""
        clusters, linked, n = self.fit.clusters, self.fit.overlap.linked, self.fit.n_clusters
        rng = np.random.default_rng(0)
        given = [
            dirichlet_given(clusters.prior_of(d), sizes, rng, np.bincount(linked[rows], minlength=n))
            for d, sizes in enumerate(self.drawn_sizes)
            for rows in [clusters.of_draw(d)]
        ]
        return summarized_shares(given, TAIL)

    @property
    def shares(self) -> Array:
        """Posterior mean share of each estimated cluster; what is missing to one has no members yet."""
        return self._shares[0]

    @property
    def share_intervals(self) -> Array:
        """5 % and 95 % points of the shares in the population, with the means between them, (2, clusters)."""
        return np.stack(holding(*self._shares))

    # Tables.

    def group_table(self) -> pd.DataFrame:
        """One row for each group: how large, how tight, and its center by name.

        Columns ``size``, members in the point estimate; ``share``, the mean over draws of how
        large the clusters that speak for it are in the population; ``share_low`` and ``share_high``, 5 % and
        95 % points of that; ``how_sure``, the
        mean share of members that one cluster holds; ``found_in_chains`` and ``agreement``, whether chains
        agree on it (:class:`permix.posterior.estimated.Recurrence`); ``expected_distance``, pairs that a list
        as long as the longest orders against its center; ``theta_first`` and ``theta_last``, decays of the
        first and the last stage; ``center``, first items.
        """
        import pandas as pd

        fit = self.fit
        low, high = self.share_intervals
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
                "center": self.first_names,
            },
            index=pd.RangeIndex(fit.n_clusters, name="group"),
        )

    @property
    def length(self) -> int:
        """Stages that groups have decays for: items of the longest list, at most all but one."""
        return int(self.fit.clusters.theta.shape[1])

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
