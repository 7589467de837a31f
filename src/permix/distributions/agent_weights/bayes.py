"""Weights of components as a multinomial logit, by draws of the coefficients from their posterior.

Row i belongs to component k with probability π_k(x_i) ∝ exp(x_i β_k). Here every component has coefficients
of its own, none is 0: each is normal around 0 beforehand, so that components are alike until something is
known of them. Only differences between components matter.

Given who is where, ln p(β) = Σ_x Σ_k n_xk ln π_k(x) - |β|² / (2 · WIDTH²) + constant is concave, so that a
normal distribution N(m, S), of its mode and curvature there, is near it. Elliptical slice sampling (Murray,
Adams & MacKay 2010) draws exactly from N(β; m, S) · exp(L(β)) for any L: with L = ln p(β) - ln N(β; m, S)
that is p. L is nearly constant, so that most draws are far from the last one, and none is refused. N(m, S)
depends on who is where alone, not on the coefficients before, as it must.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.agent_weights.logit import information, log_weights

# Standard deviation of each coefficient beforehand, per value or standard deviation of a column: log-odds of
# two components then have one of 2.8.
WIDTH = 2.0
MOST_STEPS, MOST_HALVINGS = 100, 40
# The climb to the mode ends where a step would raise ln p by less.
RISE = 1e-12


class Near(NamedTuple):
    """A normal distribution near that of the coefficients, component by component."""

    mode: Array  # (columns · K,)
    root: Array  # lower triangle R of the precision R R'


def log_density(matrix: Array, members: Array, coefficients: Array) -> float:
    """Return ln p(coefficients) but for a constant, given how many members (rows, K) each component has."""
    found = (members * log_weights(matrix, coefficients)).sum()
    return float(found - (coefficients**2).sum() / (2.0 * WIDTH**2))


def nearest_normal(matrix: Array, members: Array) -> Near:
    """Climb from 0 to the mode by Newton steps, halved where they lead down."""
    counts, (p, k) = members.sum(axis=1), (matrix.shape[1], members.shape[1])
    coefficients = np.zeros((p, k))
    value = log_density(matrix, members, coefficients)
    for _ in range(MOST_STEPS):
        root, gradient = _curvature(matrix, members, counts, coefficients)
        step = np.linalg.solve(root.T, np.linalg.solve(root, gradient))
        if float(step @ gradient) <= RISE * max(1.0, abs(value)):
            break
        for _ in range(MOST_HALVINGS):
            trial = coefficients + step.reshape(k, p).T
            reached = log_density(matrix, members, trial)
            if reached > value:
                break
            step = 0.5 * step
        else:
            break
        coefficients, value = trial, reached
    return Near(coefficients.T.ravel(), _curvature(matrix, members, counts, coefficients)[0])


def _curvature(matrix: Array, members: Array, counts: Array, coefficients: Array) -> tuple[Array, Array]:
    """Return the root of minus the second derivatives of ln p, and the first."""
    shares = np.exp(log_weights(matrix, coefficients))
    nobody = np.zeros((len(shares), 1))  # in place of the component that is left out elsewhere
    precision = information(matrix, counts, np.hstack([nobody, shares]))
    precision[np.diag_indices_from(precision)] += 1.0 / WIDTH**2
    gradient = matrix.T @ (members - counts[:, None] * shares) - coefficients / WIDTH**2
    return np.linalg.cholesky(precision), gradient.T.ravel()


def draw_coefficients(
    rng: np.random.Generator, matrix: Array, members: Array, coefficients: Array, rounds: int = 1
) -> Array:
    """Return coefficients (columns, K) drawn given those before and who is where, by elliptical slices."""
    near, (p, k) = nearest_normal(matrix, members), coefficients.shape

    def beyond(offset: Array) -> float:
        """Return ln p - ln N at the mode and ``offset``."""
        z = near.root.T @ offset
        return log_density(matrix, members, (near.mode + offset).reshape(k, p).T) + 0.5 * float(z @ z)

    offset = coefficients.T.ravel() - near.mode
    for _ in range(rounds):
        other = np.linalg.solve(near.root.T, rng.standard_normal(len(offset)))
        least = beyond(offset) - rng.standard_exponential()
        angle = rng.random() * 2.0 * math.pi
        low, high = angle - 2.0 * math.pi, angle
        while True:
            trial = offset * math.cos(angle) + other * math.sin(angle)
            if beyond(trial) >= least:
                break
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = low + rng.random() * (high - low)
        offset = trial
    return (near.mode + offset).reshape(k, p).T
