"""The groups that are shown where their number is given.

Where groups overlap, the partition nearest to all draws may join two of them, though every draw has both.
Then groups of draws are matched with those of the draw nearest to all others, and every agent is in the group
that most draws put the agent in.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.data.labels import Array
from permix.partitions.labels import canonical_labels
from permix.partitions.point_estimate import PointEstimate
from permix.partitions.weighted_draws import WeightedDraws
from permix.posterior.estimated import MATCHED_DRAWS, evenly_spaced
from permix.sampling import Draws

# Times that groups are matched with what the last time came to.
ROUNDS = 3


def of_given_number(
    estimate: PointEstimate, draws: Draws, settings: BayesianMallowsParameters
) -> PointEstimate:
    """Return the estimate, or the most probable groups where a number is given and the estimate has fewer."""
    best, usual = estimate.best_draw, int(np.median(draws.arrays["n_groups"]))
    if not isinstance(settings.n_components, int) or best is None or estimate.n_clusters >= usual:
        return estimate
    drawn = evenly_spaced(draws.arrays["labels"], MATCHED_DRAWS)
    labels = np.asarray(best)
    for _ in range(ROUNDS):
        found = most_probable(drawn, labels)
        if len(np.unique(found)) < usual:
            break
        labels = found
    canonical = canonical_labels(labels)
    sizes = np.bincount(canonical)
    loss = WeightedDraws.collapsed(drawn, estimate.loss).expected_loss(canonical)
    return dataclasses.replace(  # no runs: found by no search
        estimate, labels=canonical, n_clusters=len(sizes), sizes=sizes, expected_loss=loss, n_runs=0
    )


def most_probable(drawn: Array, labels: Array) -> Array:
    """Return the group of each agent in most draws, whose groups are matched one to one with those of labels.

    Examples
    --------
    >>> most_probable(np.array([[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1]]), np.array([0, 0, 1, 1])).tolist()
    [0, 0, 1, 1]
    """
    from scipy.optimize import linear_sum_assignment

    n_groups = int(labels.max()) + 1
    votes = np.zeros((len(labels), n_groups))
    agents = np.arange(len(labels))
    for row in drawn.astype(np.int64):
        m = max(int(row.max()) + 1, n_groups)
        shared = np.bincount(labels * m + row, minlength=n_groups * m).reshape(n_groups, m)
        group_of = np.argmax(shared, axis=0)  # of groups beyond the number given, the group most like each
        mine, theirs = linear_sum_assignment(-shared)
        group_of[theirs] = mine
        votes[agents, group_of[row]] += 1.0
    return np.asarray(votes.argmax(axis=1))
