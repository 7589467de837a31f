# mypy: ignore-errors
"""Permutations by the length of their longest increasing subsequence, from shapes and hook lengths."""

from __future__ import annotations

import math

import numpy as np

from permix.kernels.jit import kernel


@kernel
def add_shapes(n, shares):
    """Add to ``shares[k]`` the share of permutations of n items with longest increasing subsequence k.

    By Robinson, Schensted and Knuth it is the sum of f² / n! over partitions of n with largest part k, f = n!
    / (product of hook lengths). Partitions come in descending order, each from the one before.
    """
    log_of = np.zeros(2 * n + 1)
    for i in range(2, 2 * n + 1):
        log_of[i] = math.log(i)
    log_factorial = 0.0
    for i in range(2, n + 1):
        log_factorial += log_of[i]
    parts = np.zeros(n + 1, np.int64)
    columns = np.zeros(n + 1, np.int64)
    parts[0], n_parts = n, 1
    while True:
        for column in range(parts[0]):
            columns[column] = 0
        for row in range(n_parts):
            for column in range(parts[row]):
                columns[column] += 1
        log_hooks = 0.0
        for row in range(n_parts):
            for column in range(parts[row]):
                log_hooks += log_of[parts[row] - column + columns[column] - row - 1]
        shares[parts[0]] += math.exp(log_factorial - 2.0 * log_hooks)
        ones = 0
        while n_parts > 0 and parts[n_parts - 1] == 1:
            ones += 1
            n_parts -= 1
        if n_parts == 0:
            return
        # The last part above one gets smaller by one; what is left over goes into parts as large as it.
        parts[n_parts - 1] -= 1
        left, most = ones + 1, parts[n_parts - 1]
        while left > 0:
            parts[n_parts] = min(left, most)
            left -= parts[n_parts]
            n_parts += 1
