"""Synthetic matrices whose cells come in blocks: a grid, or a Mondrian partition."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from permix.datasets import truth
from permix.datasets.truth import Floats, Ints, readable
from permix.errors import DataError
from permix.partitions.mondrian import MondrianTree, sample_mondrian
from permix.runtime.seeds import RandomState, generator

CellFamily = Literal["categorical", "gaussian", "poisson", "bernoulli"]


@readable
class GridCoClusters(NamedTuple):
    """A matrix with the row and column groups that made it.

    Attributes
    ----------
    data : array (n_rows, n_columns)
        Categories from 0 with -1 missing; the other families are floats with NaN missing.
    row_labels : array (n_rows,)
    column_labels : array (n_columns,)
    parameters : array (n_row_clusters, n_column_clusters) or (..., n_categories)
        Mean, rate, probability of one, or probabilities of the categories, per block.
    """

    data: NDArray[Any]
    row_labels: Ints
    column_labels: Ints
    parameters: Floats


@readable
class MondrianMatrix(NamedTuple):
    """A matrix with the Mondrian partition that made it.

    Attributes
    ----------
    data : array (n_rows, n_columns)
        The block's number itself for ``family="block"``; else as in :class:`GridCoClusters`.
    blocks : array (n_rows, n_columns)
        Block of each cell.
    row_coordinates, column_coordinates : array
        Uniform on the unit interval.
    tree : MondrianTree
        The cuts.
    parameters : array (n_blocks,) or (n_blocks, n_categories)
        Per block; empty for ``family="block"``.
    """

    data: NDArray[Any]
    blocks: Ints
    row_coordinates: Floats
    column_coordinates: Floats
    tree: MondrianTree
    parameters: Floats


def _block_parameters(
    rng: np.random.Generator, n_blocks: int, family: str, n_categories: int, concentration: float
) -> Floats:
    if family == "categorical":
        truth.at_least("n_categories", n_categories, 1)
        return rng.dirichlet(np.full(n_categories, concentration), size=n_blocks)
    if family == "gaussian":
        return rng.normal(scale=3.0, size=n_blocks)
    if family == "poisson":
        return rng.gamma(2.0, scale=2.0, size=n_blocks)
    if family == "bernoulli":
        return rng.beta(concentration, concentration, size=n_blocks)
    raise DataError(f"family is one of {', '.join(get_args(CellFamily))}, not {family!r}")


def _cells(
    rng: np.random.Generator, parameters: Floats, blocks: Ints, family: str, missing: float
) -> NDArray[Any]:
    if family == "categorical":
        return truth.hide(rng, truth.draw_categories(rng, parameters[blocks]), missing, -1)
    of_cell = parameters[blocks]
    if family == "gaussian":
        cells = rng.normal(of_cell)
    elif family == "poisson":
        cells = rng.poisson(of_cell).astype(float)
    else:
        cells = (rng.random(of_cell.shape) < of_cell).astype(float)
    return truth.hide(rng, cells, missing, np.nan)


def make_grid_coclusters(
    n_rows: int = 100,
    n_columns: int = 80,
    n_row_clusters: int = 4,
    n_column_clusters: int = 3,
    *,
    row_weights: ArrayLike | None = None,
    family: CellFamily = "categorical",
    n_categories: int = 5,
    cell_concentration: float = 0.3,
    column_weights: ArrayLike | None = None,
    missing: float = 0.0,
    random_state: RandomState = None,
) -> GridCoClusters:
    """Draw a matrix whose cells depend on the row's group and the column's group.

    Given the groups, cells are independent.

    Parameters
    ----------
    n_rows, n_columns, n_row_clusters, n_column_clusters : int
    family : {"categorical", "gaussian", "poisson", "bernoulli"}
        Block parameters are drawn from: symmetric Dirichlet(``cell_concentration``) over
        ``n_categories``; Normal(0, 3²) means with unit noise; Gamma(2, rate 1/2) rates;
        Beta(``cell_concentration``, ``cell_concentration``) probabilities.
    n_categories : int
    cell_concentration : float
    missing : float
        Share of cells missing at random.
    row_weights, column_weights : array, optional
        Group weights, equal by default.
    random_state : int, Generator or None

    Examples
    --------
    >>> from permix.datasets import make_grid_coclusters
    >>> matrix = make_grid_coclusters(30, 20, 3, 2, family="poisson", random_state=1)
    >>> matrix.parameters.shape
    (3, 2)
    """
    rng = generator(random_state)
    row_labels = truth.draw_labels(rng, n_rows, truth.mixture_weights(row_weights, n_row_clusters))
    column_labels = truth.draw_labels(
        rng, n_columns, truth.mixture_weights(column_weights, n_column_clusters)
    )
    n_blocks = n_row_clusters * n_column_clusters
    parameters = _block_parameters(rng, n_blocks, family, n_categories, cell_concentration)
    blocks = row_labels[:, None] * n_column_clusters + column_labels
    data = _cells(rng, parameters, blocks, family, missing)
    shape = (n_row_clusters, n_column_clusters, *parameters.shape[1:])
    return GridCoClusters(data, row_labels, column_labels, parameters.reshape(shape))


def make_mondrian_matrix(
    n_rows: int = 100,
    n_columns: int = 100,
    *,
    budget: float = 1.0,
    family: CellFamily | Literal["block"] = "categorical",
    n_categories: int = 5,
    cell_concentration: float = 0.3,
    missing: float = 0.0,
    random_state: RandomState = None,
) -> MondrianMatrix:
    """Draw a matrix whose blocks are a Mondrian partition of the unit square.

    Rows and columns get uniform coordinates, so they come in random order. ``family="block"``
    puts the block's number in each cell, as in section 6.1 of Wang, Laskey, Domeniconi & Jordan
    (2011). The mean number of blocks of the partition is ``(1 + budget)²``; small blocks may catch
    no cell. Other arguments as in :func:`make_grid_coclusters`.

    Examples
    --------
    >>> from permix.datasets import make_mondrian_matrix
    >>> matrix = make_mondrian_matrix(40, 40, budget=2.0, random_state=1)
    >>> bool(matrix.blocks.max() < matrix.tree.n_blocks)
    True
    """
    rng = generator(random_state)
    truth.at_least("n_rows", n_rows, 1)
    truth.at_least("n_columns", n_columns, 1)
    tree = sample_mondrian(rng, budget)
    rows, columns = rng.random(n_rows), rng.random(n_columns)
    blocks = tree.locate(rows, columns)
    if family == "block":
        parameters = np.empty(0)
        data: NDArray[Any] = truth.hide(rng, blocks.copy(), missing, -1)
    else:
        parameters = _block_parameters(rng, tree.n_blocks, family, n_categories, cell_concentration)
        data = _cells(rng, parameters, blocks, family, missing)
    return MondrianMatrix(data, blocks, rows, columns, tree, parameters)
