"""How sure the shares of a mixture's groups are, if its agents are a sample."""

from __future__ import annotations

import numpy as np

from permix.data.labels import Array

NINETY = 1.645


def share_errors(probabilities: Array, counts: Array, weights: Array, scores: Array | None = None) -> Array:
    """Return the standard error of every share, from the information that agents have about it.

    ``probabilities`` (rows, groups) of belonging to each group, ``counts`` of agents. ``scores``, of the same
    shape, are derivatives of ln P(row) by one further parameter of each group, such as its dispersion, which
    is then not taken as known. Information is the sum of outer products of derivatives, and that of one more
    agent in each group, which keeps it positive.
    """
    n_agents, last = float(counts.sum()), len(weights) - 1
    if not last:
        return np.zeros(1)
    shares = np.maximum(weights, 0.5 / n_agents)
    derivatives = probabilities[:, :last] / shares[:last] - probabilities[:, last:] / shares[last]
    if scores is not None:
        derivatives = np.hstack([derivatives, scores])
    information = (derivatives * counts[:, None]).T @ derivatives
    information[:last, :last] += np.diag(shares[:last] ** -2.0) + shares[last] ** -2.0
    # On a common scale: a parameter that the data say nothing of is taken as known.
    scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
    covariance = np.linalg.pinv(information / np.outer(scale, scale), hermitian=True) / np.outer(scale, scale)
    covariance = covariance[:last, :last]
    return np.sqrt(np.append(np.diag(covariance), covariance.sum()))


def middle_of_samples(found: Array, shares: Array) -> Array:
    """Return the 5 % and 95 % points of shares in samples, (K, 2); NaN are left out, of nothing the share."""
    found = np.where(np.isfinite(found).any(axis=0), found, shares)
    return np.asarray(np.nanquantile(found, [0.05, 0.95], axis=0, method="weibull").T)


def share_interval(share: float, error: float) -> tuple[float, float]:
    """Return the 5 % and 95 % ends of a share with a standard error."""
    return max(share - NINETY * error, 0.0), min(share + NINETY * error, 1.0)
