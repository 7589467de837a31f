# mypy: ignore-errors
"""Clusters of rows whose numbers are correlated, other columns as in ``mixed_jit``, compiled.

Given the cluster, numbers and all other columns are independent: every function of the contract is that of
``niw_jit`` on the columns of numbers, which come first, and that of ``mixed_jit`` on those that follow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.families.missing.niw_gaps_jit import GapStats
from permix.families.mixed_jit import ORIGIN, MixedStats
from permix.families.niw_jit import NIWStats
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import implements


@by_reference
class JointStats(NamedTuple):
    """Statistics of the columns of numbers, of the others, and room for scores of the others."""

    numbers: NIWStats
    others: MixedStats
    work: np.ndarray  # (capacity,)


@by_reference
class JointGapStats(NamedTuple):
    """The same, for rows whose numbers are scored by what was observed of them."""

    numbers: GapStats
    others: MixedStats
    work: np.ndarray


def _clear(stats, k):
    contract.clear(stats.numbers, k)
    contract.clear(stats.others, k)


def _add(stats, data, i, k):
    contract.add(stats.numbers, data, i, k)
    contract.add(stats.others, data, i, k)


def _remove(stats, data, i, k):
    contract.remove(stats.numbers, data, i, k)
    contract.remove(stats.others, data, i, k)


def _log_predictive(stats, data, i, n_clusters, out):
    scores = stats.work
    contract.log_predictive(stats.numbers, data, i, n_clusters, out)
    contract.log_predictive(stats.others, data, i, n_clusters, scores)
    for k in range(n_clusters):
        out[k] += scores[k]


def _log_predictive_above(stats, data, i, n_clusters, out):
    # What numbers must reach, given what the other columns say; and a little less, for rounding.
    scores = stats.work
    contract.log_predictive(stats.others, data, i, n_clusters, scores)
    for k in range(n_clusters):
        least = out[k] - scores[k]
        out[k] = least - 1e-9 * (1.0 + abs(least))
    contract.log_predictive_above(stats.numbers, data, i, n_clusters, out)
    for k in range(n_clusters):
        out[k] += scores[k]


def _log_predictive_without(stats, data, i, k):
    numbers = contract.log_predictive_without(stats.numbers, data, i, k)
    return numbers + contract.log_predictive_without(stats.others, data, i, k)


def _copy_cluster(stats, source, target):
    contract.copy_cluster(stats.numbers, source, target)
    contract.copy_cluster(stats.others, source, target)


for declared, written in (
    (contract.clear, _clear),
    (contract.add, _add),
    (contract.remove, _remove),
    (contract.log_predictive, _log_predictive),
    (contract.log_predictive_above, _log_predictive_above),
    (contract.log_predictive_without, _log_predictive_without),
    (contract.copy_cluster, _copy_cluster),
):
    for joint in (JointStats, JointGapStats):
        implements(declared, joint)(written)


@implements(contract.log_marginal, JointStats)
def _log_marginal(stats, k):
    return contract.log_marginal(stats.numbers, k) + contract.log_marginal(stats.others, k)


@implements(contract.merge, JointStats)
def _merge(stats, source, target):
    contract.merge(stats.numbers, source, target)
    contract.merge(stats.others, source, target)


@implements(contract.extend, JointStats)
def _extend(stats, data, i, starts, n_clusters, out):
    scores = stats.work
    contract.extend(stats.numbers, data, i, starts, n_clusters, out)
    contract.extend(stats.others, data, i, starts, n_clusters, scores)
    for k in range(n_clusters):
        out[k] += scores[k]


# ``others`` knows where every column is among the coordinates of a direction, those of numbers included.


@implements(contract.project, JointStats)
def _project(stats, data, i, direction):
    return contract.project(stats.others, data, i, direction)


@implements(contract.add_vector, JointStats)
def _add_vector(stats, data, i, weight, direction):
    contract.add_vector(stats.others, data, i, weight, direction)


@implements(contract.draw, JointStats)
def _draw(rng, stats, k, out):
    contract.draw(rng, stats.numbers, k, out)
    for j in range(stats.others.first):
        out[j] += stats.others.priors[j, ORIGIN]
    contract.draw(rng, stats.others, k, out)


@implements(contract.fill, JointGapStats)
def _fill(rng, stats, data, i, k):
    contract.fill(rng, stats.numbers, data, i, k)


contract.use_defaults(JointStats, contract.clear_members)
