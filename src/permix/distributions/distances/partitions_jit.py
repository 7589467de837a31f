# mypy: ignore-errors
"""Shapes of standard tableaux: how probable they are, and permutations drawn by them.

By Robinson, Schensted and Knuth, permutations of n items are pairs of standard tableaux of one shape, a
partition of n whose largest part is the length of the longest increasing subsequence. A shape has f = n! /
(product of hook lengths) tableaux.
"""

from __future__ import annotations

import math

import numpy as np

from permix.kernels.jit import kernel
from permix.kernels.streams import new_stream, open_stream, uniform


@kernel
def _next_partition(parts, n_parts):
    """Turn a partition into the next in descending order; return its number of parts, 0 after the last."""
    ones = 0
    while n_parts > 0 and parts[n_parts - 1] == 1:
        ones += 1
        n_parts -= 1
    if n_parts == 0:
        return 0
    # The last part above one gets smaller by one; what is left over goes into parts as large as it.
    parts[n_parts - 1] -= 1
    left, most = ones + 1, parts[n_parts - 1]
    while left > 0:
        parts[n_parts] = min(left, most)
        left -= parts[n_parts]
        n_parts += 1
    return n_parts


@kernel
def _share(parts, n_parts, columns, log_of):
    """Return f² / n!, the share of permutations that have this shape."""
    n = columns.size
    for column in range(parts[0]):
        columns[column] = 0
    for row in range(n_parts):
        for column in range(parts[row]):
            columns[column] += 1
    log_share = 0.0
    for i in range(2, n + 1):
        log_share += log_of[i]
    for row in range(n_parts):
        for column in range(parts[row]):
            log_share -= 2.0 * log_of[parts[row] - column + columns[column] - row - 1]
    return math.exp(log_share)


@kernel
def _scratch(n):
    """Return the first partition, room for the lengths of columns, and logarithms."""
    parts, columns, log_of = np.zeros(n + 1, np.int64), np.zeros(n, np.int64), np.zeros(n + 1)
    parts[0] = n
    for i in range(2, n + 1):
        log_of[i] = math.log(i)
    return parts, columns, log_of


@kernel
def add_shapes(n, shares):
    """Add to ``shares[k]`` the share of permutations of n items with longest increasing subsequence k."""
    parts, columns, log_of = _scratch(n)
    n_parts = 1
    while n_parts > 0:
        shares[parts[0]] += _share(parts, n_parts, columns, log_of)
        n_parts = _next_partition(parts, n_parts)


@kernel
def draw_shapes(n, decay, targets, shapes):
    """Set rows of ``shapes`` to partitions where the sum of f²/n! e^(-λ (n - largest part)) passes targets.

    ``targets`` ascend; those beyond the sum get the last partition.
    """
    parts, columns, log_of = _scratch(n)
    n_parts, at, total = 1, 0, 0.0
    while n_parts > 0 and at < targets.size:
        total += _share(parts, n_parts, columns, log_of) * math.exp(-decay * (n - parts[0]))
        while at < targets.size and targets[at] < total:
            for row in range(n_parts):
                shapes[at, row] = parts[row]
            at += 1
        n_parts = _next_partition(parts, n_parts)
    for rest in range(at, targets.size):
        for row in range(n):
            shapes[rest, row] = 1


@kernel
def _fill_tableau(stream, shape, left, cells):
    """Draw a standard tableau evenly (Greene, Nijenhuis & Wilf): ``cells[i]`` is the row of number i."""
    n = cells.size
    for row in range(n):
        left[row] = shape[row]
    for number in range(n - 1, -1, -1):
        # A cell drawn evenly, and from it to random cells of its hook until a corner is reached.
        skip = np.int64(uniform(stream) * (number + 1))
        row = 0
        while skip >= left[row]:
            skip -= left[row]
            row += 1
        column = skip
        while True:
            arm, leg = left[row] - column - 1, 0
            while row + leg + 1 < n and left[row + leg + 1] > column:
                leg += 1
            if arm + leg == 0:
                break
            step = np.int64(uniform(stream) * (arm + leg))
            if step < arm:
                column += step + 1
            else:
                row += step - arm + 1
        cells[number] = row
        left[row] -= 1


@kernel
def ulam_rows(key, first, last, shapes, order, out):
    """Fill rows of ``out`` with orderings whose displacement from ``order`` has these shapes, evenly."""
    n = order.size
    stream = new_stream()
    left, recorded, cells = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    tableau = np.empty((n, n), np.int64)
    for at in range(first, last):
        open_stream(stream, key[0], key[1], 1, at)
        _fill_tableau(stream, shapes[at], left, cells)
        for row in range(n):
            left[row] = 0
        for number in range(n):
            row = cells[number]
            tableau[row, left[row]] = number
            left[row] += 1
        _fill_tableau(stream, shapes[at], recorded, cells)
        for step in range(n - 1, -1, -1):  # insertions are undone, from the last
            row = cells[step]
            left[row] -= 1
            value = tableau[row, left[row]]
            while row > 0:
                row -= 1
                place = left[row] - 1
                while tableau[row, place] > value:
                    place -= 1
                value, tableau[row, place] = tableau[row, place], value
            out[at, value] = order[step]
