# mypy: ignore-errors
"""Rows of a shard among groups whose blocks have known parameters, compiled.

``table`` (groups of columns, slots, options) scores a cell: of levels, slot ``code`` is ln p(code); of
numbers, slots are the factors of 1 and x, and where there are three, of x².
"""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel
from permix.kernels.random import categorical_log_quantile
from permix.kernels.streams import new_stream, open_stream, uniform


@kernel
def score_row(row, starts, others, codes, levels, columns, table, values):
    """Add ln p(cells of the row) to ``values``, one for each option."""
    for cell in range(starts[row], starts[row + 1]):
        group, code = columns[others[cell]], codes[cell]
        if levels:
            slot = np.int64(code)
            for k in range(values.size):
                values[k] += table[group, slot, k]
        else:
            power = 1.0
            for slot in range(table.shape[1]):
                for k in range(values.size):
                    values[k] += power * table[group, slot, k]
                power *= code


@kernel
def place_rows(first, last, key, sweep, ids, chosen, lines, levels, columns, table, weights, labels):
    """Draw the option of each of the rows ``chosen``, by a stream of its own; the others are left alone."""
    starts, others, codes = lines
    stream = new_stream()
    values = np.empty(weights.size)
    for row in range(first, last):
        if not chosen[row]:
            continue
        values[:] = weights
        score_row(row, starts, others, codes, levels, columns, table, values)
        open_stream(stream, key[0], key[1], sweep, ids[row])
        labels[row] = categorical_log_quantile(uniform(stream), values, weights.size)


@kernel
def log_shares(first, last, chosen, lines, levels, columns, table, weights, labels, out):
    """Fill ``out`` with ln P(present label) of the rows ``chosen``, were they drawn by ``place_rows``."""
    starts, others, codes = lines
    values = np.empty(weights.size)
    for row in range(first, last):
        if not chosen[row]:
            continue
        values[:] = weights
        score_row(row, starts, others, codes, levels, columns, table, values)
        largest = values.max()
        out[row] = values[labels[row]] - largest - np.log(np.exp(values - largest).sum())


@kernel
def count_rows(lines, levels, labels, rounding, counts):
    """Add the cells of rows with a label to ``counts`` (labels, columns, slots).

    Slots are levels; or the number of cells, two for their sum and, if there are more, two for that of their
    squares: terms rounded by ``rounding`` as :mod:`permix.runtime.exact_sums` has it, and what that leaves.
    """
    starts, others, codes = lines
    for row in range(labels.size):
        label = labels[row]
        if label < 0:
            continue
        for cell in range(starts[row], starts[row + 1]):
            column, code = others[cell], codes[cell]
            if levels:
                counts[label, column, np.int64(code)] += 1.0
            else:
                counts[label, column, 0] += 1.0
                term = code * 1.0
                for slot in range(1, counts.shape[2], 2):
                    rounded = (term + rounding[slot - 1]) - rounding[slot - 1]
                    counts[label, column, slot] += rounded
                    counts[label, column, slot + 1] += (term - rounded + rounding[slot]) - rounding[slot]
                    term *= code
