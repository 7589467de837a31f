# mypy: ignore-errors
"""Clusters of lines of a matrix whose cells have levels, compiled.

A line is a row, its cells grouped by the cluster of their columns, or a column with its cells grouped by row
cluster. Given the groups, lines are data of a mixture: with x_gv cells of line i at level v in group g, m_g
cells in group g, and c, N the same sums over the members of cluster k,

    ln p(line i | cluster k) = Σ_gv [S(c_gv + x_gv) - S(c_gv)] - Σ_g [T(N_g + m_g) - T(N_g)],

where S(n) = ln Γ(a + n) - ln Γ(a) for one level of pseudo-count a and T the same for all levels together
(equation 5.12 of Wang, Laskey, Domeniconi & Jordan 2011). Missing cells are not there.

A slot is a level of a group, or the total of a group, which is one more level whose table is -T: everything
below goes over slots alike. A line is its slots that hold cells. Where a slot of it holds one, the step
S(c + 1) - S(c) = ln(a + c), or -ln(a × levels + N), is kept, cluster-last, so that scoring adds vectors;
where it holds more, tables are read. Counts are integers, so nothing drifts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.cocluster.cells.blocks_jit import log_rising
from permix.families import contract_jit as contract
from permix.kernels.jit import implements, kernel

# Few arrays in few tuples: each is handed over, field by field, in every call.
LEVEL, TOTAL, LEVEL_STEP, TOTAL_STEP = 0, 1, 2, 3
START, TOTALS = 0, 1
SLOT, CELLS = 0, 1


class LineCounts(NamedTuple):
    """Lines by the groups of their cells.

    ``bounds[i]`` says where in ``entries`` line i has its levels and its totals; ``bounds[i + 1, START]``
    where it ends. An entry is a slot and its cells. Levels with one cell come first, totals of one cell last:
    what to do with an entry is then easily foreseen.
    """

    bounds: np.ndarray  # (lines + 1, 2)
    entries: np.ndarray  # (at most twice the cells, 2)


class LineCountStats(NamedTuple):
    """Statistics of clusters of lines; slots beyond the groups in use are those of an empty cluster."""

    tables: np.ndarray  # (4, n): S, -T and their steps, by count
    pseudo_count: float  # a
    n_levels: int
    has_all: bool  # whether no count is beyond the tables
    n_groups: np.ndarray  # (1,) groups in use, shared by all statistics of a family
    counts: np.ndarray  # (slots, capacity) c and N
    steps: np.ndarray  # (slots, capacity) of their tables


@kernel
def group_counts_of_lines(starts, others, codes, labels, n_levels, n_groups, room, out):
    """Group the cells of every line by ``labels`` of where they are on the other axis.

    ``room``, one number a slot, is zero, and is left so.
    """
    touched = np.empty((2, n_groups * n_levels + 1), np.int64)
    end = 0
    for line in range(starts.shape[0] - 1):
        n_filled = n_totals = 0
        for cell in range(starts[line], starts[line + 1]):
            first = labels[others[cell]] * (n_levels + 1)
            slot = first + codes[cell]
            total = first + n_levels
            # Written always, counted when new: nobody can foresee which, and a wrong guess costs more.
            touched[LEVEL, n_filled] = slot
            n_filled += room[slot] == 0
            touched[TOTAL, n_totals] = total
            n_totals += room[total] == 0
            room[slot] += 1
            room[total] += 1
        for kind in range(2):
            n = n_filled if kind == LEVEL else n_totals
            out.bounds[line, START if kind == LEVEL else TOTALS] = end
            front = end
            end += n
            back = end - 1
            for s in range(n):
                slot = touched[kind, s]
                in_front = (room[slot] == 1) == (kind == LEVEL)
                place = front if in_front else back
                out.entries[place, SLOT] = slot
                out.entries[place, CELLS] = room[slot]
                room[slot] = 0
                front += in_front
                back -= not in_front
    out.bounds[starts.shape[0] - 1, START] = end


@kernel
def _look_up(tables, pseudo_count, n_levels, kind, n):
    """Return S or -T, or a step of these, at n; computed where the tables end."""
    if n < tables.shape[1]:
        return tables[kind, n]
    base = pseudo_count * n_levels if kind % 2 else pseudo_count
    value = log_rising(base, n) if kind < LEVEL_STEP else math.log(base + n)
    return -value if kind % 2 else value


@kernel
def _set(stats, slot, k, kind, n):
    """Write the count of one slot."""
    stats.counts[slot, k] = n
    step = _look_up(stats.tables, stats.pseudo_count, stats.n_levels, LEVEL_STEP + kind, n)
    stats.steps[slot, k] = step


@implements(contract.clear, LineCountStats)
def _clear(stats, k):
    n_levels = stats.n_levels
    for slot in range(stats.n_groups[0] * (n_levels + 1)):
        _set(stats, slot, k, TOTAL if slot % (n_levels + 1) == n_levels else LEVEL, 0)


@kernel
def _change(stats, data, i, k, sign):
    """Add the cells of a line (``sign`` 1), take them out (-1), or empty their slots (0)."""
    for entry in range(data.bounds[i, START], data.bounds[i + 1, START]):
        slot = np.int64(data.entries[entry, SLOT])
        n = stats.counts[slot, k] + sign * data.entries[entry, CELLS] if sign != 0 else 0
        _set(stats, slot, k, LEVEL if entry < data.bounds[i, TOTALS] else TOTAL, n)


@implements(contract.add, LineCountStats)
def _add(stats, data, i, k):
    _change(stats, data, i, np.int64(k), 1)


@implements(contract.remove, LineCountStats)
def _remove(stats, data, i, k):
    _change(stats, data, i, np.int64(k), -1)


@implements(contract.clear_members, LineCountStats)
def _clear_members(stats, data, order, first, last, k):
    for place in range(first, last):
        _change(stats, data, order[place], np.int64(k), 0)


@implements(contract.log_predictive, LineCountStats)
def _log_predictive(stats, data, i, n_clusters, out):
    # Arrays are indexed in full, by unsigned numbers: rows taken out of them and room for negative indices
    # cost more than what a short line is about.
    tables, counts, steps, entries = stats.tables, stats.counts, stats.steps, data.entries
    bounds = data.bounds
    for k in range(n_clusters):
        out[k] = 0.0
    for entry in range(bounds[i, START], bounds[i + 1, START]):
        slot, more = np.uint64(entries[entry, SLOT]), np.uint64(entries[entry, CELLS])
        kind = LEVEL if entry < bounds[i, TOTALS] else TOTAL
        if not stats.has_all:
            for k in range(n_clusters):
                count = counts[slot, k]
                after = count + entries[entry, CELLS]
                out[k] += _look_up(tables, stats.pseudo_count, stats.n_levels, kind, after)
                out[k] -= _look_up(tables, stats.pseudo_count, stats.n_levels, kind, count)
        elif more == 1:
            for k in range(n_clusters):
                out[k] += steps[slot, k]
        else:
            for k in range(n_clusters):
                present = np.uint64(counts[slot, k])
                out[k] += tables[np.uint64(kind), present + more] - tables[np.uint64(kind), present]


contract.use_defaults(LineCountStats, contract.log_predictive_above, contract.extend)


@implements(contract.log_predictive_without, LineCountStats)
def _log_predictive_without(stats, data, i, k):
    tables, counts, entries, bounds = stats.tables, stats.counts, data.entries, data.bounds
    score = 0.0
    for entry in range(bounds[i, START], bounds[i + 1, START]):
        kind = LEVEL if entry < bounds[i, TOTALS] else TOTAL
        count = counts[entries[entry, SLOT], k]
        before = count - entries[entry, CELLS]
        if before == count - 1:  # to all digits, however tiny the pseudo-count is
            score += _look_up(tables, stats.pseudo_count, stats.n_levels, LEVEL_STEP + kind, before)
        else:
            score += _look_up(tables, stats.pseudo_count, stats.n_levels, kind, count)
            score -= _look_up(tables, stats.pseudo_count, stats.n_levels, kind, before)
    return score


@implements(contract.log_marginal, LineCountStats)
def _log_marginal(stats, k):
    tables, n_levels = stats.tables, stats.n_levels
    value = 0.0
    for group in range(stats.n_groups[0]):
        first = group * (n_levels + 1)
        total = stats.counts[first + n_levels, k]
        if total > 0:
            value += _look_up(tables, stats.pseudo_count, n_levels, TOTAL, total)
            for slot in range(first, first + n_levels):
                value += _look_up(tables, stats.pseudo_count, n_levels, LEVEL, stats.counts[slot, k])
    return value


@implements(contract.copy_cluster, LineCountStats)
def _copy_cluster(stats, source, target):
    for slot in range(stats.n_groups[0] * (stats.n_levels + 1)):
        stats.counts[slot, target] = stats.counts[slot, source]
        stats.steps[slot, target] = stats.steps[slot, source]


@implements(contract.merge, LineCountStats)
def _merge(stats, source, target):
    counts, n_levels = stats.counts, stats.n_levels
    for slot in range(stats.n_groups[0] * (n_levels + 1)):
        if counts[slot, source] > 0:
            kind = TOTAL if slot % (n_levels + 1) == n_levels else LEVEL
            _set(stats, slot, target, kind, counts[slot, target] + counts[slot, source])
