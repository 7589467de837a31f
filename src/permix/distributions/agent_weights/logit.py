"""Weights of components as a multinomial logit, by maximum likelihood without any penalty.

Row i belongs to component k with probability π_k(x_i) ∝ exp(x_i β_k), β of the first component being 0. Given
f_ik, how probable row i is under each component, the log-likelihood

    Σ_i c_i [ln Σ_k exp(x_i β_k) f_ik − ln Σ_k exp(x_i β_k)]

is climbed by Newton steps. Where it is not concave, the information that the rows would have if their
components were known takes the place of what they have, as in EM; it is never smaller.
"""

from __future__ import annotations

import numpy as np

from permix.data.labels import Array

MOST_STEPS, MOST_HALVINGS = 200, 30
# Rise for each agent below which the climb ends.
RISE = 1e-10


def log_weights(matrix: Array, coefficients: Array) -> Array:
    """Return ln π_k(x) of rows (n, columns) for coefficients (columns, K)."""
    scores = matrix @ coefficients
    return np.asarray(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))


def log_likelihood(log_f: Array, matrix: Array, counts: Array, coefficients: Array) -> float:
    """Return the log-likelihood of rows whose ln P(row | k) is ``log_f``."""
    return float(counts @ np.logaddexp.reduce(log_f + log_weights(matrix, coefficients), axis=1))


def maximize(log_f: Array, matrix: Array, counts: Array, coefficients: Array) -> tuple[Array, float]:
    """Climb from given coefficients; return those that were reached, and the log-likelihood."""
    counts = counts.astype(np.float64)
    k = log_f.shape[1]
    value = log_likelihood(log_f, matrix, counts, coefficients)
    for _ in range(MOST_STEPS if k > 1 else 0):
        priors = np.exp(log_weights(matrix, coefficients))
        shares = posterior(log_f, priors)
        gradient = (matrix.T @ (counts[:, None] * (shares - priors)))[:, 1:].T.ravel()
        whole = information(matrix, counts, priors)
        step = _step(whole - information(matrix, counts, shares), whole, gradient)
        for _ in range(MOST_HALVINGS):
            trial = coefficients.copy()
            trial[:, 1:] += step.reshape(k - 1, -1).T
            reached = log_likelihood(log_f, matrix, counts, trial)
            if reached >= value:
                break
            step = 0.5 * step
        else:
            break
        rise, coefficients, value = reached - value, trial, reached
        if rise <= RISE * counts.sum():
            break
    return coefficients, value


def posterior(log_f: Array, priors: Array) -> Array:
    """P(component | row) from ln P(row | component) and the weights of each row."""
    largest = log_f.max(axis=1, keepdims=True)
    joint = priors * np.exp(log_f - np.where(np.isfinite(largest), largest, 0.0))
    return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300))


def information(matrix: Array, counts: Array, shares: Array) -> Array:
    """Return Σ_i c_i (diag s_i − s_i s_i') ⊗ x_i x_i' over all components but the first."""
    k, p = shares.shape[1] - 1, matrix.shape[1]
    found = np.empty((k, p, k, p))
    for a in range(k):
        for b in range(a, k):
            weights = counts * shares[:, a + 1] * (float(a == b) - shares[:, b + 1])
            block = (matrix * weights[:, None]).T @ matrix
            found[a, :, b, :], found[b, :, a, :] = block, block.T
    return found.reshape(k * p, k * p)


def _step(observed: Array, whole: Array, gradient: Array) -> Array:
    """Return a Newton step uphill."""
    for matrix in (observed, whole):
        try:
            root = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(np.linalg.solve(root.T, np.linalg.solve(root, gradient)))
    return np.asarray(np.linalg.lstsq(whole, gradient, rcond=None)[0])
