# mypy: ignore-errors
"""The normalizer of angle-based models for many items, by balancing: deterministic, with its gradient.

The sum over all rankings is the permanent of W_ir = exp(tilt_i score_r). Scaled to a doubly stochastic matrix
P (Sinkhorn), W = D(e^u) P D(e^v), so that ln perm W = Σu + Σv + ln perm P, and

    ln perm P ≈ ln(t! / t^t) - ½ ln det(I + J - P'P),   J = 11'/t

(McCullagh 2014). Unlike the von Mises–Fisher approximation it knows the direction. It costs some t²
operations per round of balancing, and t³ / 3 for the determinant.
"""

from __future__ import annotations

import math

import numpy as np

from permix.kernels.jit import kernel

# Column sums within this of one; the error of the sum is of second order in it.
TOLERANCE = 1e-5
MOST_ROUNDS = 1000
# Relative step by which the correction is differentiated along the tilts.
STEP = 1e-3


@kernel
def _scaled(tilts, scores, items, matrix):
    """Fill ``matrix[k, r]`` for the k-th smallest tilt, scaled to be at most 1 and 1 along the best matching.

    Returns ln of what was divided out.
    """
    t = tilts.size
    u, total = 0.0, 0.0
    rows = np.empty(t)
    columns = np.empty(t)
    for r in range(t):
        here = tilts[items[r]]
        if r:
            u += (here - tilts[items[r - 1]]) * 0.5 * (scores[r] + scores[r - 1])
        rows[r] = u
        columns[r] = here * scores[r] - u
        total += rows[r] + columns[r]
    for k in range(t):
        for r in range(t):
            matrix[k, r] = math.exp(min(tilts[items[k]] * scores[r] - rows[k] - columns[r], 0.0))
    return total


@kernel
def _balance(matrix):
    """Scale rows and columns of a positive matrix to sum to one, in place; return Σ ln of the scales."""
    t = matrix.shape[0]
    left, right = np.ones(t), np.ones(t)
    transposed = np.ascontiguousarray(matrix.T)
    for _ in range(MOST_ROUNDS):
        left = 1.0 / (matrix @ right)
        sums = transposed @ left
        error = np.abs(sums * right - 1.0).max()
        right = 1.0 / sums
        if error < TOLERANCE:
            break
    left = 1.0 / (matrix @ right)
    total = 0.0
    for k in range(t):
        total -= math.log(left[k]) + math.log(right[k])
        for r in range(t):
            matrix[k, r] *= left[k] * right[r]
    return total


@kernel
def _log_permanent(balanced):
    """Approximate ln of the permanent of a doubly stochastic matrix, between its bounds t!/t^t and 1."""
    t = balanced.shape[0]
    rest = -(balanced.T @ balanced)
    for r in range(t):
        for s in range(t):
            rest[r, s] += 1.0 / t
        rest[r, r] += 1.0
    least = math.lgamma(t + 1.0) - t * math.log(t)
    sign, log_determinant = np.linalg.slogdet(rest)
    if sign <= 0.0:
        return 0.0
    return min(max(least - 0.5 * log_determinant, least), 0.0)


@kernel
def balanced_log_sum_and_mean(tilts, scores, mean):
    """Return ln Σ over all rankings of exp(Σ_r tilts[order[r]] scores[r]), approximately.

    Where ``mean`` has room, it is filled with the gradient in the tilts, E[y]. The gradient of the scales is
    P y exactly; that of the permanent of P is taken along the tilts alone, by a difference: across them it is
    smaller still.
    """
    t = tilts.size
    items = np.argsort(tilts)
    matrix = np.empty((t, t))
    value = _scaled(tilts, scores, items, matrix) + _balance(matrix)
    correction = _log_permanent(matrix)
    square = 0.0
    for k in range(mean.size):
        total = 0.0
        for r in range(t):
            total += matrix[k, r] * scores[r]
        mean[items[k]] = total
    for k in range(mean.size):
        square += tilts[k] * tilts[k]
    if square > 0.0:
        _scaled((1.0 + STEP) * tilts, scores, items, matrix)
        _balance(matrix)
        slope = (_log_permanent(matrix) - correction) / (STEP * square)
        for i in range(t):
            mean[i] += slope * tilts[i]
    return value + correction
