# mypy: ignore-errors
"""How likely each skip is for one more list of a cluster, as table rows that a sweep looks up.

Rows hold P(skip = s) (m + 1): the probability relative to choosing among the m + 1 items left at random. A
list that opens a cluster of its own then has weight 1 whatever its length (Meilă & Chen 2010, lemma 1).
Products of eight entries neither overflow nor underflow.

Where there are many items, far skips share a bin that stands for its middle; a sweep then corrects its choice
by a Metropolis–Hastings step, so that the target stays exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.distributions.generalized.finite_beta_jit import (
    MAX_NODES,
    log_integral,
    predictive_nodes,
)
from permix.kernels.by_reference import by_reference
from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step

# Below this the relative probability is taken as this; summands that cannot matter then are left out.
LEAST = 1e-36
NOTHING = 1e-46
# Up to so many items every skip has a bin of its own; with more, the first EXACT_SKIPS do.
MOST_EXACT_ITEMS = 64
EXACT_SKIPS = 32
# Bins of 4, 16, 64, ... skips follow, this many of each.
BINS_PER_WIDTH = 12
# From this many lists on, one list less is a small change, and a row for it comes from the same nodes.
ENOUGH_FOR_OWN = 8


@by_reference
class SkipBins(NamedTuple):
    """Which bin a skip falls into, and which skip stands for a bin."""

    of_skip: np.ndarray  # int16 (n_items,)
    middle: np.ndarray  # int64 (bins,)
    n_exact: int  # bins 0 ... n_exact-1 are single skips
    runs: np.ndarray  # int64 (runs, 3): first bin, number of bins and width of bins of one width


def skip_bins(n_items: int, exact: bool) -> SkipBins:
    """Return bins of 0 ... n_items-1, all single when ``exact`` or few."""
    if exact or n_items <= MOST_EXACT_ITEMS:
        return SkipBins(
            np.arange(n_items, dtype=np.int16), np.arange(n_items), n_items, np.empty((0, 3), dtype=np.int64)
        )
    of_skip = np.empty(n_items, dtype=np.int16)
    of_skip[:EXACT_SKIPS] = np.arange(EXACT_SKIPS)
    middle = list(range(EXACT_SKIPS))
    first, width = EXACT_SKIPS, 4
    runs = []
    while first < n_items:
        n_bins = min(BINS_PER_WIDTH, -(-(n_items - first) // width))
        runs.append((len(middle), n_bins, width))
        for _ in range(n_bins):
            of_skip[first : first + width] = len(middle)
            middle.append(first + width // 2)
            first += width
        width *= 4
    return SkipBins(of_skip, np.array(middle), EXACT_SKIPS, np.array(runs, dtype=np.int64))


@by_reference
class RowScratch(NamedTuple):
    """Nodes of one density."""

    fades: np.ndarray
    psis: np.ndarray
    weights: np.ndarray
    given: bool  # whether θ is part of the state; here it is integrated out


def row_scratch() -> RowScratch:
    """Make room for the nodes of one density."""
    return RowScratch(*np.empty((3, MAX_NODES)), given=False)


@kernel
def _add_powers(row, begin, n, first, factor):
    """Add first, first × factor, first × factor², ... to ``n`` entries from ``begin``, in four chains."""
    p0 = first
    p1 = p0 * factor
    p2 = p1 * factor
    p3 = p2 * factor
    factor4 = (factor * factor) * (factor * factor)
    s = begin
    while s + 4 <= begin + n:
        row[s] += p0
        row[s + 1] += p1
        row[s + 2] += p2
        row[s + 3] += p3
        p0 *= factor4
        p1 *= factor4
        p2 *= factor4
        p3 *= factor4
        s += 4
    while s < begin + n:
        row[s] += p0
        p0 *= factor
        s += 1


@kernel
def last_own(bins, a, count):
    """Return the largest skip whose row entry for a member comes from the nodes of the cluster, or -1."""
    if count <= ENOUGH_FOR_OWN:
        return -1
    return np.int64(min(bins.n_exact - 1.0, 0.3 * a))


@kernel
def fill_finite(tables, bins, stage, total, count, joining, own, scratch):
    """Fill the rows of a stage at which ``count`` lists skip ``total`` in sum; returns ln of the integral.

    ``joining[bin]`` is for a further list; ``own[skip]`` for one of the cluster's lists given the others,
    where many others are left and the skip is not outstanding (else :func:`own_relative` integrates).
    """
    a = tables.prior_a[stage] + total
    c = tables.prior_c + count
    m = tables.skips[stage]
    n_own = last_own(bins, a, count) + 1
    n, log_whole = predictive_nodes(
        tables,
        stage,
        a,
        c,
        float(m),
        max(n_own - 1.0, 0.0),
        scratch.fades,
        scratch.psis,
        scratch.weights,
    )
    n_bins = bins.middle.size
    n_exact = min(bins.n_exact, m + 1)
    for b in range(n_bins):
        joining[b] = 0.0
    for s in range(n_own):
        own[s] = 0.0
    for q in range(n):
        fade, psi = scratch.fades[q], scratch.psis[q]
        weight = scratch.weights[q] / psi
        _add_powers(joining, 0, n_exact, weight, fade)
        for run in range(bins.runs.shape[0]):
            first = bins.runs[run, 0]
            start = weight * fade ** bins.middle[first]
            if start < NOTHING:
                break
            _add_powers(joining, first, bins.runs[run, 1], start, fade ** bins.runs[run, 2])
        if n_own == 1:  # where the prior is weak, exp(-θ) may be 0 at the far nodes
            own[0] += scratch.weights[q] * psi
        elif n_own > 1:
            _add_powers(own, 0, n_own, scratch.weights[q] * psi, 1.0 / fade)
    for b in range(n_bins):
        joining[b] = max(joining[b] * (m + 1), LEAST)
    for s in range(n_own):
        own[s] = max((m + 1) / own[s], LEAST)
    return log_whole


@kernel
def fill_given(theta, m, bins, joining):
    """Fill the row of a stage for any list, given its decay."""
    log_first = np.log(m + 1.0) - log_normalizer_step(theta, m + 1)
    for b in range(bins.middle.size):
        joining[b] = max(np.exp(log_first - theta * bins.middle[b]), LEAST)


@kernel
def own_relative(tables, bins, stage, total, count, log_whole, skip):
    """Return the relative probability of a member's ``skip`` given the other members, where no row has it."""
    a = tables.prior_a[stage] + total
    c = tables.prior_c + count
    m = tables.skips[stage]
    rest = log_integral(tables, stage, a - skip, c - 1.0)
    if skip < bins.n_exact:
        return max((m + 1) * np.exp(log_whole - rest), LEAST)
    # What the row of the cluster without this list would say: its bin stands for the middle skip.
    middle = bins.middle[bins.of_skip[skip]]
    return max((m + 1) * np.exp(log_integral(tables, stage, a - skip + middle, c) - rest), LEAST)
