# mypy: ignore-errors
"""Clusters of lines of a matrix whose cells are counts or numbers, compiled.

As in :mod:`permix.cocluster.cells.line_counts_jit`, a line is a row or column whose cells are grouped by the
clusters of the other axis. Of the cells of a group in a cluster, their number, their sum and the sum of their
squares are kept, and the log marginal likelihood of the block that they are:

    ln p(line i | cluster k) = Σ_g [ln p(block (g, k) and the cells of line i in g) - ln p(block (g, k))].

What depends on the number of cells alone, and Poisson's ln Γ(shape + sum), come from tables, which leaves one
logarithm a Gaussian block and none a Poisson block.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.cocluster.cells.blocks_jit import POISSON, log_moments
from permix.families import contract_jit as contract
from permix.kernels.jit import implements, kernel

# Few arrays in few tuples: each is handed over, field by field, in every call.
GROUP, CELLS = 0, 1
SUM, SQUARES, LOG_BLOCK = 0, 1, 2


class LineMoments(NamedTuple):
    """Lines by the groups of their cells; an entry is one group of one line."""

    starts: np.ndarray  # (lines + 1,) where the entries of a line start
    entries: np.ndarray  # (at most the cells, 2) the group and how many cells
    sums: np.ndarray  # (at most the cells, 2) their sum and that of their squares


class LineMomentStats(NamedTuple):
    """Statistics of clusters of lines; groups beyond those in use are those of an empty cluster."""

    family: int  # as in MomentPrior
    strength: float
    shape: float
    rate: float
    by_count: np.ndarray  # by number of cells: what of ln p(block) depends on it alone, or ln(rate + n)
    by_sum: np.ndarray  # by sum, Poisson only: ln Γ(shape + sum) - ln Γ(shape)
    n_groups: np.ndarray  # (1,) groups in use, shared by all statistics of a family
    counts: np.ndarray  # (groups, capacity) cells
    values: np.ndarray  # (3, groups, capacity) their sum, that of their squares, and ln p(cells)


@kernel
def fill_moment_tables(prior, by_count, by_sum):
    """Fill both tables."""
    if prior.family == POISSON:
        for n in range(by_count.shape[0]):
            by_count[n] = math.log(prior.rate + n)
        for total in range(by_sum.shape[0]):
            by_sum[total] = math.lgamma(prior.shape + total) - math.lgamma(prior.shape)
        return
    for n in range(by_count.shape[0]):
        value = math.lgamma(prior.shape + 0.5 * n) - math.lgamma(prior.shape)
        value += 0.5 * math.log(prior.strength / (prior.strength + n)) + prior.shape * math.log(prior.rate)
        by_count[n] = value - 0.5 * n * math.log(2.0 * math.pi)


@kernel
def _log_block(stats, n, total, squares):
    """Return ln p of n cells, as :func:`permix.cocluster.cells.blocks_jit.log_moments` does, by tables."""
    if n == 0:
        return 0.0
    if n >= stats.by_count.shape[0]:
        return log_moments(stats, n, total, squares)
    if stats.family == POISSON:
        value = stats.shape * stats.by_count[0] - (stats.shape + total) * stats.by_count[n]
        if total < stats.by_sum.shape[0]:
            return value + stats.by_sum[np.int64(total)]
        return value + math.lgamma(stats.shape + total) - math.lgamma(stats.shape)
    rate = stats.rate + max(0.5 * (squares - total * total / (stats.strength + n)), 0.0)
    return stats.by_count[n] - (stats.shape + 0.5 * n) * math.log(rate)


@kernel
def group_moments_of_lines(starts, others, codes, labels, n_groups, room, out):
    """Group the cells of every line by ``labels`` of where they are on the other axis.

    ``room`` (groups, at least) is zero, and is left so.
    """
    touched = np.empty(n_groups, np.int64)
    sums = np.empty((n_groups, 2))
    end = 0
    out.starts[0] = 0
    for line in range(starts.shape[0] - 1):
        n_touched = 0
        for cell in range(starts[line], starts[line + 1]):
            group = labels[others[cell]]
            if room[group] == 0:
                touched[n_touched] = group
                n_touched += 1
                sums[group, SUM] = sums[group, SQUARES] = 0.0
            room[group] += 1
            sums[group, SUM] += codes[cell]
            sums[group, SQUARES] += codes[cell] * codes[cell]
        for t in range(n_touched):
            group = touched[t]
            out.entries[end, GROUP] = group
            out.entries[end, CELLS] = room[group]
            for which in (SUM, SQUARES):
                out.sums[end, which] = sums[group, which]
            room[group] = 0
            end += 1
        out.starts[line + 1] = end


@kernel
def _set(stats, group, k, n, total, squares):
    """Write one block; an empty one has nothing left of rounding."""
    stats.counts[group, k] = n
    stats.values[SUM, group, k] = total if n > 0 else 0.0
    stats.values[SQUARES, group, k] = squares if n > 0 else 0.0
    stats.values[LOG_BLOCK, group, k] = _log_block(stats, n, total, squares)


@implements(contract.clear, LineMomentStats)
def _clear(stats, k):
    for group in range(stats.n_groups[0]):
        _set(stats, group, k, 0, 0.0, 0.0)


@kernel
def _change(stats, data, i, k, sign):
    for entry in range(data.starts[i], data.starts[i + 1]):
        group = data.entries[entry, GROUP]
        _set(
            stats,
            group,
            k,
            stats.counts[group, k] + sign * data.entries[entry, CELLS],
            stats.values[SUM, group, k] + sign * data.sums[entry, SUM],
            stats.values[SQUARES, group, k] + sign * data.sums[entry, SQUARES],
        )


@implements(contract.add, LineMomentStats)
def _add(stats, data, i, k):
    _change(stats, data, i, np.int64(k), 1)


@implements(contract.remove, LineMomentStats)
def _remove(stats, data, i, k):
    _change(stats, data, i, np.int64(k), -1)


@implements(contract.clear_members, LineMomentStats)
def _clear_members(stats, data, order, first, last, k):
    for place in range(first, last):
        for entry in range(data.starts[order[place]], data.starts[order[place] + 1]):
            _set(stats, data.entries[entry, GROUP], k, 0, 0.0, 0.0)


@implements(contract.log_predictive, LineMomentStats)
def _log_predictive(stats, data, i, n_clusters, out):
    for k in range(n_clusters):
        out[k] = 0.0
    for entry in range(data.starts[i], data.starts[i + 1]):
        group, more = data.entries[entry, GROUP], data.entries[entry, CELLS]
        total, squares = data.sums[entry, SUM], data.sums[entry, SQUARES]
        for k in range(n_clusters):
            after = _log_block(
                stats,
                stats.counts[group, k] + more,
                stats.values[SUM, group, k] + total,
                stats.values[SQUARES, group, k] + squares,
            )
            out[k] += after - stats.values[LOG_BLOCK, group, k]


contract.use_defaults(LineMomentStats, contract.log_predictive_above, contract.extend)


@implements(contract.log_predictive_without, LineMomentStats)
def _log_predictive_without(stats, data, i, k):
    score = 0.0
    for entry in range(data.starts[i], data.starts[i + 1]):
        group = data.entries[entry, GROUP]
        before = _log_block(
            stats,
            stats.counts[group, k] - data.entries[entry, CELLS],
            stats.values[SUM, group, k] - data.sums[entry, SUM],
            stats.values[SQUARES, group, k] - data.sums[entry, SQUARES],
        )
        score += stats.values[LOG_BLOCK, group, k] - before
    return score


@implements(contract.log_marginal, LineMomentStats)
def _log_marginal(stats, k):
    value = 0.0
    for group in range(stats.n_groups[0]):
        value += stats.values[LOG_BLOCK, group, k]
    return value


@implements(contract.copy_cluster, LineMomentStats)
def _copy_cluster(stats, source, target):
    for group in range(stats.n_groups[0]):
        stats.counts[group, target] = stats.counts[group, source]
        for which in range(3):
            stats.values[which, group, target] = stats.values[which, group, source]


@implements(contract.merge, LineMomentStats)
def _merge(stats, source, target):
    for group in range(stats.n_groups[0]):
        if stats.counts[group, source] > 0:
            _set(
                stats,
                group,
                target,
                stats.counts[group, target] + stats.counts[group, source],
                stats.values[SUM, group, target] + stats.values[SUM, group, source],
                stats.values[SQUARES, group, target] + stats.values[SQUARES, group, source],
            )
