"""How many votes put item a before item b, for all pairs.

Rows that put the rest below would touch every item; instead a listed item gets its count once for all
others, and the listed items behind which it does not stand are taken out again. The cost of a row is the
square of its length, whatever the number of items.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Importing Numba and loading compiled code takes a second; plain Python does so many steps in a tenth of one.
MOST_PLAIN_STEPS = 400_000
_plain_steps = 0


def worth_compiling(n_steps: int) -> bool:
    """Whether to do work of so many steps in compiled code: it is loaded, or plain Python did enough."""
    global _plain_steps
    _plain_steps += n_steps
    return "numba" in sys.modules or _plain_steps > MOST_PLAIN_STEPS


class PreferenceArrays(NamedTuple):
    """Statements of all agents in CSR form, as stored by ``permix.Preferences``."""

    level_indptr: Array
    level_items: Array
    levels: Array
    rest_below: Array
    pair_indptr: Array
    pairs: Array


def preference_pair_counts(
    arrays: PreferenceArrays, implied: Array, counts: Array, n_items: int, repeats: bool
) -> Array:
    """Count pairs over preferences: what is implied where ``implied``, else levels and stated pairs.

    An agent counts for a pair as often as its comparisons state it where ``repeats``, else once.
    """
    pair_counts, above_all = np.zeros((n_items, n_items)), np.zeros(n_items)
    weights = np.array(counts, dtype=np.float64)
    if len(arrays.pairs):
        from permix.kernels.comparisons import weigh_comparisons

        weigh_comparisons(arrays, implied, weights, repeats, pair_counts, above_all)
        weights[implied & (np.diff(arrays.pair_indptr) > 0)] = 0.0  # with their levels, already
    weigh: Any = weigh_levels
    if worth_compiling(int(np.sum(np.diff(arrays.level_indptr) ** 2))):
        from permix.kernels.comparisons import weigh_levels_compiled as weigh
    weigh(arrays, np.arange(len(counts)), weights, pair_counts, above_all)
    return pair_counts


def weigh_levels(arrays, rows, weights, pair_counts, above_all):
    """Add what these rows say by levels, each with its weight; rows of weight 0 cost nothing.

    ``above_all`` holds what each item wins over all others, from other sources too; it is given out here.
    """
    for at in range(rows.size):
        weight = weights[at]
        if weight == 0.0:
            continue
        i = rows[at]
        first, last = arrays.level_indptr[i], arrays.level_indptr[i + 1]
        below = arrays.rest_below[i] and last - first < above_all.size
        for p in range(first, last):
            a = arrays.level_items[p]
            if below:
                above_all[a] += weight
            for q in range(p + 1, last):
                b = arrays.level_items[q]
                tied = arrays.levels[q] == arrays.levels[p]
                if below:  # a and b each count as above everything; take out what is not said
                    pair_counts[b, a] -= weight
                    if tied:
                        pair_counts[a, b] -= weight
                elif not tied:
                    pair_counts[a, b] += weight
    for a in range(above_all.size):
        for b in range(above_all.size):
            pair_counts[a, b] += above_all[a]
        pair_counts[a, a] = 0.0
