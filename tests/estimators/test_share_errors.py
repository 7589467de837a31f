"""Standard errors of shares against second derivatives of the log-likelihood, and over many samples."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from permix.datasets import make_mallows_mixture
from permix.estimators.preference_input import as_preferences
from permix.estimators.share_errors import share_errors, share_interval
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters

CENTERS = [[0, 1, 2, 3, 4, 5], [5, 4, 2, 1, 0, 3]]


def normal_rows(n, seed=0):
    """Densities of points under three normal distributions that overlap, their shares being known."""
    rng = np.random.default_rng(seed)
    shares, means = np.array([0.5, 0.3, 0.2]), np.array([-1.0, 0.5, 2.0])
    points = rng.normal(means[rng.choice(3, n, p=shares)], 1.0)
    return np.exp(-0.5 * (points[:, None] - means) ** 2), shares


def best_shares(densities, counts):
    shares = np.full(densities.shape[1], 1.0 / densities.shape[1])
    for _ in range(3000):
        joint = densities * shares
        shares = counts @ (joint / joint.sum(axis=1, keepdims=True)) / counts.sum()
    return shares


def by_hand(densities, counts, shares):
    """Invert the matrix of second differences of the log-likelihood in all shares but the last."""
    k, h = len(shares) - 1, 1e-4

    def value(free):
        return float(counts @ np.log(densities @ np.append(free, 1.0 - free.sum())))

    at, steps = shares[:k], np.eye(k) * h
    hessian = np.array(
        [
            [
                (value(at + a + b) - value(at + a - b) - value(at - a + b) + value(at - a - b)) / (4 * h * h)
                for b in steps
            ]
            for a in steps
        ]
    )
    covariance = np.linalg.inv(-hessian)
    return np.sqrt(np.append(np.diag(covariance), covariance.sum()))


def test_errors_are_those_of_the_curvature():
    densities, _ = normal_rows(4000)
    counts = np.random.default_rng(1).integers(1, 4, 4000).astype(float)
    shares = best_shares(densities, counts)
    joint = densities * shares
    found = share_errors(joint / joint.sum(axis=1, keepdims=True), counts, shares)
    np.testing.assert_allclose(found, by_hand(densities, counts, shares), rtol=0.01)
    # The broken twin, in which it is known who belongs where.
    twin = np.sqrt(shares * (1.0 - shares) / counts.sum())
    assert (found > 1.2 * twin).all()


def test_of_groups_that_are_apart_only_the_sample_matters():
    labels = np.repeat([0, 1], [700, 300])
    found = share_errors(np.eye(2)[labels], np.ones(1000), np.array([0.7, 0.3]))
    np.testing.assert_allclose(found, np.sqrt(0.21 / 1000), rtol=0.01)
    assert share_errors(np.ones((5, 1)), np.ones(5), np.ones(1)).tolist() == [0.0]
    # An empty group, and groups that no agent tells apart.
    assert np.isfinite(share_errors(np.eye(2)[[0, 0, 0]], np.ones(3), np.array([1.0, 0.0]))).all()
    assert share_errors(np.full((9, 2), 0.5), np.ones(9), np.full(2, 0.5)).min() > 0.2
    assert share_interval(0.01, 0.1) == (0.0, pytest.approx(0.1745))


def test_intervals_of_a_mixture_hold_the_truth():
    """Of 60 samples, 90 % intervals hold it in 54 on average; fewer than 45 come once in a thousand."""
    hits, old = 0, 0
    for seed in range(60):
        made = make_mallows_mixture(
            1000, 6, 2, dispersion=0.65, weights=[0.6, 0.4], centers=CENTERS, random_state=seed
        )
        fit = fit_mallows(as_preferences(made.data), MallowsParameters(2, n_init=2, random_state=0))
        low, high = fit.share_intervals[0]
        hits += bool(low <= 0.6 <= high)
        # The broken twin takes dispersions as known, and memberships as independent of the shares.
        p, n = fit.probabilities[:, 0], len(fit.probabilities)
        share = float(fit.components.weights[0])
        spread = np.sqrt(share * (1.0 - share) / n + np.mean(p * (1.0 - p)) / n)
        old += abs(share - 0.6) <= 1.645 * spread
    assert hits >= 45
    assert old < 45


def test_restarts_that_fit_as_well_widen_intervals():
    made = make_mallows_mixture(400, 5, 2, dispersion=0.3, random_state=1)
    fit = fit_mallows(as_preferences(made.data), MallowsParameters(2, n_init=3, random_state=0))
    narrow = fit.share_intervals
    shares = np.array([[0.9, 0.1], [np.nan, np.nan], [np.nan, 0.1]])
    wide = dataclasses.replace(fit, restart_shares=shares, share_errors=fit.share_errors).share_intervals
    np.testing.assert_allclose(wide, [[narrow[0, 0], 0.9], [0.1, narrow[1, 1]]])
    none = dataclasses.replace(fit, restart_shares=np.full((3, 2), np.nan)).share_intervals
    np.testing.assert_allclose(none, dataclasses.replace(fit, restart_shares=None).share_intervals)
