"""Small planted matrices for the tests of co-clustering, and quick estimators."""

from __future__ import annotations

import warnings

import numpy as np

import permix
from permix.errors import PermixWarning

QUICK = {"n_draws": 60, "n_burn_in": 60, "n_chains": 2, "random_state": 0, "progress": False}


def quick(prior="dp", family="categorical", **options):
    """A co-clustering with short chains."""
    return permix.CoClustering(prior, family, **(QUICK | options))


def quiet_fit(model, *data, **more):
    """Fit without being told that short chains disagree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        return model.fit(*data, **more)


def planted_grid(rng, family="categorical", shape=(40, 24), missing=0.2):
    """Three kinds of rows, two of columns; returns the matrix and both truths."""
    rows, columns = rng.permutation(np.arange(shape[0]) % 3), rng.permutation(np.arange(shape[1]) % 2)
    if family == "categorical":
        chances = np.array([[[8, 1, 1], [1, 8, 1]], [[1, 1, 8], [8, 1, 1]], [[1, 8, 1], [1, 1, 8]]]) / 10
        X = (rng.random(shape)[..., None] > chances[rows][:, columns].cumsum(axis=-1)).sum(axis=-1) + 1.0
    elif family == "bernoulli":
        X = (rng.random(shape) < np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.9]])[rows][:, columns]).astype(
            float
        )
    elif family == "poisson":
        X = rng.poisson(np.array([[1.0, 8.0], [9.0, 2.0], [20.0, 15.0]])[rows][:, columns]).astype(float)
    else:
        X = rng.normal(np.array([[-3.0, 3.0], [3.0, -3.0], [9.0, 0.0]])[rows][:, columns], 1.0)
    X[rng.random(shape) < missing] = np.nan
    return X, rows, columns


def planted_mondrian(rng, shape=(36, 30), missing=0.1):
    """Columns are divided for the first half of the rows alone."""
    rows, columns = rng.permutation(np.arange(shape[0]) % 2), rng.permutation(np.arange(shape[1]) % 3)
    blocks = np.array([[0, 1, 2], [3, 3, 3]])[rows][:, columns]
    X = np.where(rng.random(shape) < 0.1, rng.integers(4, size=shape), blocks).astype(float)
    X[rng.random(shape) < missing] = np.nan
    return X, rows, columns
