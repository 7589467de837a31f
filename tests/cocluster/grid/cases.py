"""What tests of grid co-clustering share: a matrix with missing cells for each cell family, and priors."""

from __future__ import annotations

import numpy as np

from permix.cocluster.cells.encoded_matrix import EncodedMatrix, encode_matrix
from permix.cocluster.cells.families import BernoulliCells, CategoricalCells, GaussianCells, PoissonCells
from permix.cocluster.grid.state import GridState
from permix.partitions import DirichletProcess, FiniteDirichlet, MixtureOfFiniteMixtures
from tests.oracles.cocluster import Naive, gaussian_predictive, levels_predictive, poisson_predictive
from tests.oracles.partitions import (
    dirichlet_process_rule,
    finite_dirichlet_rule,
    finite_mixtures_rule,
    shifted_poisson,
)

NAN = np.nan
# Family, its naive twin, a 3 × 3 matrix with missing cells.
CASES = {
    "categorical": (
        CategoricalCells(pseudo_count=0.4, levels=(1, 2, 3)),
        Naive(levels_predictive(0.4, 3), 1.0),
        np.array([[2.0, 2.0, NAN], [NAN, 2.0, 3.0], [1.0, NAN, 3.0]]),
    ),
    "bernoulli": (
        BernoulliCells(pseudo_count=0.5),
        Naive(levels_predictive(0.5, 2), 0.0),
        np.array([[1.0, 1.0, 0.0], [1.0, NAN, NAN], [NAN, 0.0, 1.0]]),
    ),
    "poisson": (
        PoissonCells(pseudo_count=0.7, prior_mean=2.0),
        Naive(poisson_predictive(0.7 * 2.0, 0.7), 0.0),
        np.array([[4.0, NAN, 1.0], [5.0, 3.0, 0.0], [NAN, 0.0, NAN]]),
    ),
    "gaussian": (
        GaussianCells(pseudo_count=0.8, prior_mean=1.0, prior_scale=2.0),
        # On the scale of the data: strength 0.8, shape 0.4, rate 0.4 × 2².
        Naive(gaussian_predictive(1.0, 0.8, 0.4, 0.4 * 4.0), 0.0),
        np.array([[1.5, 1.1, NAN], [NAN, 1.4, -2.0], [3.0, NAN, -1.5]]),
    ),
}
PRIORS = {
    "dp": (DirichletProcess(0.8), DirichletProcess(1.5)),
    "finite": (FiniteDirichlet(2, 0.7),) * 2,
    "mfm": (MixtureOfFiniteMixtures(1.5, 0.7), MixtureOfFiniteMixtures(0.6, 1.2)),
}
RULES = {
    "dp": (dirichlet_process_rule(0.8), dirichlet_process_rule(1.5)),
    "finite": (finite_dirichlet_rule(2, 0.7),) * 2,
    "mfm": (
        finite_mixtures_rule(shifted_poisson(1.5), 0.7),
        finite_mixtures_rule(shifted_poisson(0.6), 1.2),
    ),
}


def encoded(family, X) -> EncodedMatrix:
    rows, columns = np.nonzero(~np.isnan(X))
    values = X[rows, columns]
    return encode_matrix(family.resolve(values), rows, columns, values, X.shape)


def grid_of(name, prior) -> GridState:
    family, _, X = CASES[name]
    return GridState(encoded(family, X), *PRIORS[prior])


def set_labels(state, row_labels, column_labels):
    """Put rows and columns into the clusters named by labels."""
    state.rows.set_labels(row_labels)
    state.columns.set_labels(column_labels)
    state.refresh()


def random_matrix(name, seed, shape=(25, 18), missing=0.4):
    """A matrix with some structure, empty lines, and values of the family."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, 3, shape[0]), rng.integers(0, 3, shape[1])
    level = rng.integers(0, 3, (3, 3))[np.ix_(rows, columns)].astype(float)
    if name == "bernoulli":
        X = (rng.random(shape) < 0.15 + 0.35 * level).astype(float)
    elif name == "categorical":
        X = np.where(rng.random(shape) < 0.7, level, rng.integers(0, 3, shape)) + 1.0
    elif name == "poisson":
        X = rng.poisson(0.5 + 3 * level).astype(float)
    else:
        X = rng.normal(2.0 * level, 0.7)
    X[rng.random(shape) < missing] = np.nan
    X[3] = np.nan
    X[:, 5] = np.nan
    return X
