"""Coefficients and shares by value, in terms of the estimated groups."""

from __future__ import annotations

import numpy as np

from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.data.labels import Array
from permix.distributions.agent_weights.drawn import DrawnWeights, drawn_shares_by_point


def drawn_weights(fit: BayesianMallowsFit) -> DrawnWeights | None:
    """Return them, where shares of groups depend on columns.

    Shares of an estimated group are those of all groups of a draw that speak for it, as elsewhere. A
    coefficient is one of a single group of each draw: groups of draws are matched one to one with the
    estimated ones, by the agents they have in common.
    """
    if fit.columns is None:
        return None
    groups, (design, matrix) = fit.groups, fit.columns
    coefficients = groups.coefficients
    assert coefficients is not None
    n_draws, _, k = coefficients.shape
    linked = np.full((n_draws, k), -1, dtype=np.int64)
    for d in range(n_draws):
        here = groups.of_draw(d)
        linked[d, : here.stop - here.start] = fit.overlap.linked[here]
    given = (design, matrix, fit.counts.astype(np.float64), coefficients, linked, fit.n_clusters)
    return DrawnWeights(design, matched(fit, coefficients), drawn_shares_by_point(*given))


def matched(fit: BayesianMallowsFit, coefficients: Array) -> Array:
    """Return the coefficients of each draw beside those of the first estimated group."""
    from scipy.optimize import linear_sum_assignment

    n, k = fit.n_clusters, coefficients.shape[2]
    out = np.empty((*coefficients.shape[:2], n))
    for d, drawn in enumerate(fit.groups.labels.astype(np.int64)):
        common = np.bincount(fit.labels * k + drawn, minlength=n * k).reshape(n, k)
        estimated, theirs = linear_sum_assignment(-common)
        out[d][:, estimated] = coefficients[d][:, theirs]
    return np.asarray(out - out[:, :, :1])
