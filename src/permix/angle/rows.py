"""What rows of a table say under given parameters: ln P of each, and which component it comes from."""

from __future__ import annotations

import numpy as np

from permix.angle.components import AngleComponents
from permix.angle.gibbs.state import shares_by_sweeps
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.angle.completions import is_cheap, log_compatible_sums
from permix.runtime.seeds import RandomState


def joint_log_probabilities(
    components: AngleComponents, rankings: Rankings, *, random_state: RandomState = 0
) -> tuple[Array, Array]:
    """Return ln P(component, what the row says) and its Monte Carlo error (rows, K)."""
    sums, errors = log_compatible_sums(rankings, components.tilts, random_state=random_state)
    return sums + components.offsets, errors


def row_log_probabilities(
    components: AngleComponents, rankings: Rankings, *, random_state: RandomState = 0
) -> tuple[Array, Array]:
    """Return ln P(what the row says) and its Monte Carlo error, 0 where the sum is exact."""
    joint, errors = joint_log_probabilities(components, rankings, random_state=random_state)
    shares, values = normalized(joint)
    return values, np.sqrt(((shares * errors) ** 2).sum(axis=1))  # components are independent


def row_probabilities(
    components: AngleComponents, rankings: Rankings, random_state: RandomState = 0
) -> Array:
    """Return P(component | what the row says) (rows, K) at the components' parameters.

    Full rows and rows with few unlisted items have exact sums. For the rest, components and completions are
    drawn in turn, and the probabilities given the completions averaged: that needs no sum over rankings.
    """
    out = np.ones((len(rankings), components.n_components))
    if components.n_components == 1:
        return out
    cheap = is_cheap(rankings)
    if cheap.any():
        out[cheap] = normalized(joint_log_probabilities(components, rankings[cheap])[0])[0]
    if not cheap.all():
        others = rankings[~cheap]
        out[~cheap] = shared_by_equal_rows(shares_by_sweeps(components, others, random_state), others)
    return out


def shared_by_equal_rows(shares: Array, rankings: Rankings) -> Array:
    """Give rows that say the same one answer: the mean of what was drawn for their agents."""
    said = np.column_stack([rankings.orders, rankings.unlisted_below])
    _, which = np.unique(said, axis=0, return_inverse=True)
    totals = np.zeros((int(which.max()) + 1, shares.shape[1]))
    np.add.at(totals, which, shares * rankings.counts[:, None])
    totals /= totals.sum(axis=1, keepdims=True)
    return np.asarray(totals[which])


def normalized(joint: Array) -> tuple[Array, Array]:
    """Return P(component | row) and ln P(row) of joint log-probabilities (rows, K)."""
    largest = joint.max(axis=1, keepdims=True)
    shares = np.exp(joint - largest)
    total = shares.sum(axis=1, keepdims=True)
    return shares / total, (largest + np.log(total))[:, 0]
