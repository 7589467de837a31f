"""The groups of a Bayesian Mallows model, summarized without labels (:mod:`permix.posterior.centers`)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.data.labels import Array
from permix.posterior.centers import TAIL, CenterSummaries
from permix.posterior.intervals import holding

if TYPE_CHECKING:
    import pandas as pd


class GroupSummaries(CenterSummaries[BayesianMallowsFit]):
    """Summaries of the estimated groups of a fit, group 0 the largest; made when asked for."""

    def __init__(self, fit: BayesianMallowsFit) -> None:
        super().__init__(fit, fit.groups.centers)

    @cached_property
    def dispersions(self) -> Array:
        """Posterior mean dispersion of every estimated group."""
        return self.mean_of(np.exp(-self.fit.groups.decays)[:, None])[:, 0]

    @cached_property
    def dispersion_intervals(self) -> Array:
        """5 % and 95 % points of the dispersions, with the means between them, (2, groups)."""
        ends = self.ends_of(np.exp(-self.fit.groups.decays)[:, None])[:, :, 0]
        return np.stack(holding(self.dispersions, *ends))

    @cached_property
    def expected_distances(self) -> Array:
        """Posterior mean of the expected distance of a member from the center, (groups,)."""
        from permix.distributions.distances.normalizer import normalizer

        sums = normalizer(self.fit.settings.distance, len(self.fit.items))
        means = np.array([sums.mean_distance(decay) for decay in self.fit.groups.decays.tolist()])
        return self.mean_of(means[:, None])[:, 0]

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

    def group_table(self) -> pd.DataFrame:
        """One row for each group: how large, how tight, and its center by name."""
        import pandas as pd

        fit = self.fit
        low, high = self.share_intervals
        least, most = self.dispersion_intervals
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
                "center": self.first_names,
            },
            index=pd.RangeIndex(fit.n_clusters, name="group"),
        )
