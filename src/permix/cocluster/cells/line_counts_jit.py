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
from permix.families.contract_jit import (
    add,
    add_vector,
    clear,
    clear_members,
    copy_cluster,
    extend,
    log_marginal,
    log_predictive,
    log_predictive_without,
    merge,
    project,
    remove,
    score_and_add,
)
from permix.kernels.jit import implements, kernel

# Few arrays in few tuples: each is handed over, field by field, in every call.
LEVEL, TOTAL, LEVEL_STEP, TOTAL_STEP = 0, 1, 2, 3
START, REPEATED, TOTALS, SINGLE_TOTALS = 0, 1, 2, 3
SLOT, CELLS = 0, 1


class LineCounts(NamedTuple):
    """Lines by the groups of their cells.

    ``bounds[i]`` says where in ``entries`` line i has its levels with one cell, levels with several, totals
    of several, and totals of one; ``bounds[i + 1, START]`` where it ends. An entry is a slot and its cells.
    """

    bounds: np.ndarray  # (lines + 1, 4)
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
    levels = np.empty(n_groups * n_levels + 1, np.int64)
    totals = np.empty(n_groups + 1, np.int64)
    end = 0
    for line in range(starts.shape[0] - 1):
        n_filled = n_totals = 0
        for cell in range(starts[line], starts[line + 1]):
            first = labels[others[cell]] * (n_levels + 1)
            slot = first + codes[cell]
            total = first + n_levels
            # Written always, counted when new: nobody can foresee which, and a wrong guess costs more.
            levels[n_filled] = slot
            n_filled += room[slot] == 0
            totals[n_totals] = total
            n_totals += room[total] == 0
            room[slot] += 1
            room[total] += 1
        out.bounds[line, START] = end
        out.bounds[line, REPEATED] = _write_entries(levels, n_filled, room, 1, out.entries, end)
        end += n_filled
        out.bounds[line, TOTALS] = end
        out.bounds[line, SINGLE_TOTALS] = _write_entries(totals, n_totals, room, 0, out.entries, end)
        end += n_totals
    out.bounds[starts.shape[0] - 1, START] = end


@kernel
def _write_entries(slots, n_slots, room, ones_first, entries, start):
    """Write slots and what is in them, apart where that is one cell; returns where the second part starts."""
    front = start
    back = start + n_slots - 1
    for s in range(n_slots):
        count = room[slots[s]]
        room[slots[s]] = 0
        in_front = (count == 1) == ones_first
        place = front if in_front else back
        entries[place, SLOT] = slots[s]
        entries[place, CELLS] = count
        front += in_front
        back -= not in_front
    return front


@kernel
def _value(tables, pseudo_count, n_levels, kind, n):
    """Look up S or -T, or compute it where the table ends."""
    if n < tables.shape[1]:
        return tables[kind, n]
    return log_rising(pseudo_count, n) if kind == LEVEL else -log_rising(pseudo_count * n_levels, n)


@kernel
def _step(tables, pseudo_count, n_levels, kind, n):
    """Look up the step from n to n + 1 of S or -T, or compute it."""
    if n < tables.shape[1]:
        return tables[LEVEL_STEP + kind, n]
    return math.log(pseudo_count + n) if kind == LEVEL else -math.log(pseudo_count * n_levels + n)


@implements(clear, LineCountStats)
def _clear(stats, k):
    tables, n_levels = stats.tables, stats.n_levels
    for group in range(stats.n_groups[0]):
        first = group * (n_levels + 1)
        for slot in range(first, first + n_levels):
            stats.counts[slot, k] = 0
            stats.steps[slot, k] = tables[LEVEL_STEP, 0]
        stats.counts[first + n_levels, k] = 0
        stats.steps[first + n_levels, k] = tables[TOTAL_STEP, 0]


@kernel
def _change(stats, data, i, k, sign):
    tables, counts, steps, entries = stats.tables, stats.counts, stats.steps, data.entries
    for entry in range(data.bounds[i, START], data.bounds[i, TOTALS]):
        slot = entries[entry, SLOT]
        counts[slot, k] += sign * entries[entry, CELLS]
        steps[slot, k] = _step(tables, stats.pseudo_count, stats.n_levels, LEVEL, counts[slot, k])
    for entry in range(data.bounds[i, TOTALS], data.bounds[i + 1, START]):
        slot = entries[entry, SLOT]
        counts[slot, k] += sign * entries[entry, CELLS]
        steps[slot, k] = _step(tables, stats.pseudo_count, stats.n_levels, TOTAL, counts[slot, k])


@implements(add, LineCountStats)
def _add(stats, data, i, k):
    _change(stats, data, i, k, 1)


@implements(remove, LineCountStats)
def _remove(stats, data, i, k):
    _change(stats, data, i, k, -1)


@implements(clear_members, LineCountStats)
def _clear_members(stats, data, order, first, last, k):
    tables, counts, steps, entries, bounds = (
        stats.tables,
        stats.counts,
        stats.steps,
        data.entries,
        data.bounds,
    )
    for place in range(first, last):
        i = order[place]
        for entry in range(bounds[i, START], bounds[i, TOTALS]):
            counts[entries[entry, SLOT], k] = 0
            steps[entries[entry, SLOT], k] = tables[LEVEL_STEP, 0]
        for entry in range(bounds[i, TOTALS], bounds[i + 1, START]):
            counts[entries[entry, SLOT], k] = 0
            steps[entries[entry, SLOT], k] = tables[TOTAL_STEP, 0]


@implements(log_predictive, LineCountStats)
def _log_predictive(stats, data, i, n_clusters, out):
    # Arrays are indexed in full, by unsigned numbers: rows taken out of them and room for negative indices
    # cost more than what a short line is about.
    tables, counts, steps, entries = stats.tables, stats.counts, stats.steps, data.entries
    bounds = data.bounds
    for k in range(n_clusters):
        out[k] = 0.0
    if not stats.has_all:
        for entry in range(bounds[i, START], bounds[i + 1, START]):
            kind = LEVEL if entry < bounds[i, TOTALS] else TOTAL
            for k in range(n_clusters):
                count = counts[entries[entry, SLOT], k]
                after = count + entries[entry, CELLS]
                out[k] += _value(tables, stats.pseudo_count, stats.n_levels, kind, after)
                out[k] -= _value(tables, stats.pseudo_count, stats.n_levels, kind, count)
        return
    for entry in range(bounds[i, START], bounds[i, REPEATED]):
        slot = np.uint64(entries[entry, SLOT])
        for k in range(n_clusters):
            out[k] += steps[slot, k]
    for entry in range(bounds[i, REPEATED], bounds[i, TOTALS]):
        slot = np.uint64(entries[entry, SLOT])
        more = np.uint64(entries[entry, CELLS])
        for k in range(n_clusters):
            count = np.uint64(counts[slot, k])
            out[k] += tables[LEVEL, count + more] - tables[LEVEL, count]
    for entry in range(bounds[i, TOTALS], bounds[i, SINGLE_TOTALS]):
        slot = np.uint64(entries[entry, SLOT])
        more = np.uint64(entries[entry, CELLS])
        for k in range(n_clusters):
            count = np.uint64(counts[slot, k])
            out[k] += tables[TOTAL, count + more] - tables[TOTAL, count]
    for entry in range(bounds[i, SINGLE_TOTALS], bounds[i + 1, START]):
        slot = np.uint64(entries[entry, SLOT])
        for k in range(n_clusters):
            out[k] += steps[slot, k]


@implements(extend, LineCountStats)
def _extend(stats, data, i, starts, n_clusters, out):
    score_and_add(stats, data, i, starts, n_clusters, out)


@implements(log_predictive_without, LineCountStats)
def _log_predictive_without(stats, data, i, k):
    tables, counts, entries, bounds = stats.tables, stats.counts, data.entries, data.bounds
    score = 0.0
    for entry in range(bounds[i, START], bounds[i + 1, START]):
        kind = LEVEL if entry < bounds[i, TOTALS] else TOTAL
        count = counts[entries[entry, SLOT], k]
        before = count - entries[entry, CELLS]
        if before == count - 1:  # to all digits, however tiny the pseudo-count is
            score += _step(tables, stats.pseudo_count, stats.n_levels, kind, before)
        else:
            score += _value(tables, stats.pseudo_count, stats.n_levels, kind, count)
            score -= _value(tables, stats.pseudo_count, stats.n_levels, kind, before)
    return score


@implements(log_marginal, LineCountStats)
def _log_marginal(stats, k):
    tables, n_levels = stats.tables, stats.n_levels
    value = 0.0
    for group in range(stats.n_groups[0]):
        first = group * (n_levels + 1)
        total = stats.counts[first + n_levels, k]
        if total > 0:
            value += _value(tables, stats.pseudo_count, n_levels, TOTAL, total)
            for slot in range(first, first + n_levels):
                value += _value(tables, stats.pseudo_count, n_levels, LEVEL, stats.counts[slot, k])
    return value


@implements(project, LineCountStats)
def _project(stats, data, i, direction):
    # A line is the vector of its shares of cells in slots: how many cells it has says nothing about it.
    total = 0.0
    size = 0
    for entry in range(data.bounds[i, START], data.bounds[i, TOTALS]):
        total += direction[data.entries[entry, SLOT]] * data.entries[entry, CELLS]
        size += data.entries[entry, CELLS]
    return total / max(size, 1)


@implements(add_vector, LineCountStats)
def _add_vector(stats, data, i, weight, direction):
    size = 0
    for entry in range(data.bounds[i, START], data.bounds[i, TOTALS]):
        size += data.entries[entry, CELLS]
    for entry in range(data.bounds[i, START], data.bounds[i, TOTALS]):
        direction[data.entries[entry, SLOT]] += weight * data.entries[entry, CELLS] / size


@implements(copy_cluster, LineCountStats)
def _copy_cluster(stats, source, target):
    for slot in range(stats.n_groups[0] * (stats.n_levels + 1)):
        stats.counts[slot, target] = stats.counts[slot, source]
        stats.steps[slot, target] = stats.steps[slot, source]


@implements(merge, LineCountStats)
def _merge(stats, source, target):
    tables, counts, n_levels = stats.tables, stats.counts, stats.n_levels
    for slot in range(stats.n_groups[0] * (n_levels + 1)):
        if counts[slot, source] > 0:
            kind = TOTAL if slot % (n_levels + 1) == n_levels else LEVEL
            counts[slot, target] += counts[slot, source]
            stats.steps[slot, target] = _step(
                tables, stats.pseudo_count, n_levels, kind, counts[slot, target]
            )
