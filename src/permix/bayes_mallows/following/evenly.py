"""A full ranking behind what somebody says, where all rankings are alike beforehand."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np

from permix.bayes_mallows.data import full_rankings
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.bayes_mallows.scores import MOST_LISTED, log_said
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.amp_insertions_jit import geometric_models
from permix.distributions.conditioning.draws import Jobs, amp_draws
from permix.estimators.preference_input import without_pairs
from permix.kernels.streams import draw_key

# Rankings drawn, of which one is chosen by its weight, where they cannot be listed.
N_DRAWS = 256


def drawn_evenly(
    row: Preferences, settings: BayesianMallowsParameters, errors: Array, rng: np.random.Generator
) -> Array:
    """Draw an ordering with P ∝ P(what the row says | ordering); up to six items exactly."""
    n = row.n_items
    full, ranks = full_rankings(row)
    soft = settings.errors is not None
    if len(full) and not (soft and len(row.pairs)):
        return np.argsort(ranks[0]).astype(np.int32)
    firm = without_pairs(row) if soft else row
    if n <= MOST_LISTED:
        orders = np.array(list(permutations(range(n))), dtype=np.int32)
        logs = np.where(_agree(firm, np.argsort(orders, axis=1)), 0.0, -np.inf)
    else:
        center = np.arange(n, dtype=np.int32)[None]
        zero = np.zeros(1)
        jobs = Jobs.of(firm.arrays(), zero, zero, center, geometric_models(zero, n))
        drawn, _, weights = amp_draws(draw_key(rng), 0, jobs, N_DRAWS)
        orders, logs = drawn[0], weights[0]
    if soft and len(row.pairs):
        logs = logs + log_said(np.argsort(orders, axis=1), row.pairs, errors[None])[:, 0]
    weights = np.exp(logs - logs.max())
    return np.asarray(orders[rng.choice(len(orders), p=weights / weights.sum())])


def _agree(row: Preferences, ranks: Array) -> Array:
    """Say which rankings agree with what is certain."""
    good = np.ones(len(ranks), dtype=np.bool_)
    for better, worse in row.pairs.tolist():
        good &= ranks[:, better] < ranks[:, worse]
    unlisted = np.setdiff1d(np.arange(row.n_items), row.level_items)
    groups = [row.level_items[row.levels == level] for level in range(int(row.levels.max(initial=-1)) + 1)]
    if row.rest_below[0] and len(unlisted):
        groups.append(unlisted)
    for above, below in pairwise(groups):
        good &= ranks[:, above].max(axis=1) < ranks[:, below].min(axis=1)
    return good
