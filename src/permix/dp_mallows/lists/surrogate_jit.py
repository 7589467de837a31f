# mypy: ignore-errors
"""A stand-in for the marginal likelihood of a cluster of lists, compiled.

The marginal likelihood, centers summed over, has no closed form. This one does, sequentially: at stage j the
next list of a cluster has item x with probability W_j(x) / Σ W_j over the items it has not used yet, where
W_j(x) = pseudo-count + Σ over the lists before that mention x, at stage i say, of the likeness of stages i
and j. A list so predicts its neighbours' choices a little above and below where it has them. What it says of
a cluster depends on the order of the lists, which a permutation move gives.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.families.contract_jit import (
    add,
    clear,
    clear_members,
    extend,
    log_predictive,
)
from permix.kernels.jit import implements, kernel


class StageChoices(NamedTuple):
    """Weights of items at stages, for clusters in slots."""

    pseudo_count: float
    likeness: np.ndarray  # (stages, stages)
    weights: np.ndarray  # (slots, items, stages): W less the pseudo-count
    totals: np.ndarray  # (slots, stages): sum over items


@implements(clear, StageChoices)
def _clear(stats, k):
    for item in range(stats.weights.shape[1]):
        for j in range(stats.weights.shape[2]):
            stats.weights[k, item, j] = 0.0
    for j in range(stats.totals.shape[1]):
        stats.totals[k, j] = 0.0


@implements(clear_members, StageChoices)
def _clear_members(stats, data, order, first, last, k):
    for place in range(first, last):
        d = data.list_of[order[place]]
        for at in range(data.starts[d], data.starts[d + 1]):
            row = stats.weights[k, data.items[at]]
            for j in range(row.shape[0]):
                row[j] = 0.0
    for j in range(stats.totals.shape[1]):
        stats.totals[k, j] = 0.0


@implements(add, StageChoices)
def _add(stats, data, i, k):
    d = data.list_of[i]
    start = data.starts[d]
    totals = stats.totals[k]
    for at in range(start, data.starts[d + 1]):
        row = stats.weights[k, data.items[at]]
        likeness = stats.likeness[at - start]
        for j in range(row.shape[0]):
            row[j] += likeness[j]
            totals[j] += likeness[j]


@implements(log_predictive, StageChoices)
def _log_predictive(stats, data, i, n_clusters, out):
    for k in range(n_clusters):
        out[k] = log_of_list(stats, data, i, k)


@kernel
def log_of_list(stats, data, i, k):
    """Return ln p(list of agent i | lists of cluster k)."""
    d = data.list_of[i]
    start, end = data.starts[d], data.starts[d + 1]
    weights = stats.weights[k]
    n_items = weights.shape[0]
    total = 0.0
    product = 1.0
    for at in range(start, end):
        j = at - start
        left = stats.totals[k, j]
        for earlier in range(start, at):
            left -= weights[data.items[earlier], j]
        # A crumb of rounding must not make it negative.
        left = max(left, weights[data.items[at], j])
        product *= (weights[data.items[at], j] + stats.pseudo_count) / (
            left + stats.pseudo_count * (n_items - j)
        )
        if j % 8 == 7:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@implements(extend, StageChoices)
def _extend(stats, data, i, starts, n_clusters, out):
    for k in range(n_clusters):
        if starts[k] >= 0:
            out[k] = log_of_list(stats, data, i, k)
            add(stats, data, i, k)
