# mypy: ignore-errors
"""Rows of numbers among groups with known centers and covariances, compiled.

``table`` (groups, 2 + d, d) has, for each group, the logarithm of the height at its first place, the center
in its second row, and then the lower triangle of F: a row x scores height - |F (x - center)|² / 2.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel
from permix.kernels.random import categorical_log_quantile
from permix.kernels.streams import new_stream, open_stream, uniform


@kernel
def score_vector(point, table, work, values):
    """Add ln p(point), up to a constant, to ``values``, one for each group."""
    d = point.size
    for k in range(values.size):
        for j in range(d):
            work[j] = point[j] - table[k, 1, j]
        squared = 0.0
        for i in range(d):
            row = table[k, 2 + i]
            value = 0.0
            for j in range(i + 1):
                value += row[j] * work[j]
            squared += value * value
        values[k] += table[k, 0, 0] - 0.5 * squared


@kernel
def place_vectors(first, last, key, sweep, ids, chosen, points, table, weights, labels):
    """Draw the group of each of the rows ``chosen``, by a stream of its own; the others are left alone."""
    stream = new_stream()
    values, work = np.empty(weights.size), np.empty(points.shape[1])
    for row in range(first, last):
        if not chosen[row]:
            continue
        for k in range(weights.size):
            values[k] = weights[k]
        score_vector(points[row], table, work, values)
        open_stream(stream, key[0], key[1], sweep, ids[row])
        labels[row] = categorical_log_quantile(uniform(stream), values, weights.size)


@kernel
def log_shares_of_vectors(first, last, chosen, points, table, weights, labels, out):
    """Fill ``out`` with ln P(present label) of the rows ``chosen``, were they drawn by ``place_vectors``."""
    values, work = np.empty(weights.size), np.empty(points.shape[1])
    for row in range(first, last):
        if not chosen[row]:
            continue
        for k in range(weights.size):
            values[k] = weights[k]
        score_vector(points[row], table, work, values)
        largest = values.max()
        total = 0.0
        for k in range(weights.size):
            total += np.exp(values[k] - largest)
        out[row] = values[labels[row]] - largest - np.log(total)


@kernel
def count_vectors(points, labels, rounding, counts):
    """Add rows with a label to ``counts`` (labels, 1 + d + d(d + 1)/2, 2).

    Of how many there are, of numbers, and of products of two: terms rounded by ``rounding`` as
    :mod:`permix.runtime.exact_sums` has it, and what that leaves.
    """
    d = points.shape[1]
    for row in range(labels.size):
        label = labels[row]
        if label < 0:
            continue
        counts[label, 0, 0] += 1.0
        place = 1 + d
        for j in range(d):
            value = points[row, j]
            rounded = (value + rounding[0]) - rounding[0]
            counts[label, 1 + j, 0] += rounded
            counts[label, 1 + j, 1] += (value - rounded + rounding[1]) - rounding[1]
            for i in range(j + 1):
                term = value * points[row, i]
                rounded = (term + rounding[2]) - rounding[2]
                counts[label, place, 0] += rounded
                counts[label, place, 1] += (term - rounded + rounding[3]) - rounding[3]
                place += 1
