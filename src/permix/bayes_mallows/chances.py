"""How probable groups are for the rankings fitted, given the groups of each draw.

Which group an agent was in, draw by draw, averages to P(group | data). So does P(group | groups and shares of
the draw, ranking), with less noise, as nothing is drawn: agents between two groups are in the same one then
whatever the seed.
"""

from __future__ import annotations

import numpy as np

from permix.bayes_mallows.groups import GroupDraws
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.bayes_mallows.scores import Under, log_probabilities
from permix.data.labels import Array
from permix.posterior.estimated import spaced

# Numbers gone through at most, of rankings, groups and items; with fewer draws than this nothing is gained.
MOST_NUMBERS, FEWEST_DRAWS = 2**30, 50


def mean_chances(
    ranks: Array, groups: GroupDraws, linked: Array, n_groups: int, settings: BayesianMallowsParameters
) -> Array | None:
    """Return P(estimated group | data) of full rankings, (rankings, groups).

    ``linked`` is the estimated group that each group of the draws speaks for. None where that takes too long,
    and where shares differ between agents.
    """
    if groups.coefficients is not None or not len(ranks):
        return None
    different, which = np.unique(ranks, axis=0, return_inverse=True)
    per_draw = different.size * different.shape[1] * len(groups.decays) / groups.n_draws
    n_draws = int(min(groups.n_draws, MOST_NUMBERS // per_draw))
    if n_draws < min(FEWEST_DRAWS, groups.n_draws):
        return None
    under = Under(settings, groups.centers, groups.decays, np.zeros((len(groups.decays), 2)))
    total = np.zeros((len(different), n_groups))
    for d in spaced(groups.n_draws, n_draws).tolist():
        rows = np.arange(groups.starts[d], groups.starts[d + 1])
        logs = log_probabilities(different, under.only(rows)) + np.log(groups.shares[rows])
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        for k, group in enumerate(linked[rows].tolist()):
            total[:, group] += chances[:, k]
    total /= total.sum(axis=1, keepdims=True)
    return np.asarray(total[np.asarray(which).reshape(-1)])
