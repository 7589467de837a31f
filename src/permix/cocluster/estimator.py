"""Co-clustering of a matrix, as a scikit-learn estimator."""

from __future__ import annotations

import os
from typing import Any, Literal, Self

from permix.cocluster.base import BlockEstimator
from permix.cocluster.cells.families import CellFamily
from permix.cocluster.fit import CoClusterFit, fit_cocluster
from permix.cocluster.settings import CoClusterSettings, Concentration


class CoClustering(BlockEstimator):
    """Kinds of rows and kinds of columns of a matrix at once, as many as the data ask for.

    The cells of a block, where a kind of rows meets a kind of columns, are alike. Cells may be missing, most
    of them if need be.

    Parameters
    ----------
    prior : "dp", "dirichlet" or "mondrian"
        "dp": clusters of rows by clusters of columns, a grid, each under a Dirichlet process (DPCC).
        "dirichlet": given numbers of clusters; ``membership="hard"`` is the same grid, made finite, and
        ``membership="mixed"`` is LDCC as published. "mondrian": nested cuts, so that columns may be divided
        for some rows and not for others (MPCC).
    family : "categorical", "bernoulli", "poisson", "gaussian", or a cell family
        What cells are: one of a few values, such as ratings (every different value is a level); 0 or 1;
        counts; numbers. Levels in an order of yours, or some that no cell of the matrix has, are given as
        ``permix.cocluster.cells.families.CategoricalCells(levels=["low", "middle", "high"])``.
    concentration : float, Gamma, or a pair of these
        "dp": the larger, the more clusters; ``permix.Gamma(1.0, 1.0)`` learns it. "dirichlet": the parameter
        of every cluster. A pair is for rows and for columns.
    pseudo_count : float
        How many cells the prior of a block is worth: at every level, or altogether.
    budget : float
        "mondrian": the larger, the more cuts; (1 + budget)² blocks are expected before there are data. At
        most 50.
    n_row_clusters, n_column_clusters : int, optional
        "dirichlet": how many clusters there may be.
    membership : "hard" or "mixed"
        "dirichlet": "hard" puts every row and every column into one cluster: a finite grid. "mixed" is LDCC
        as published: every cell draws a cluster of its row and one of its column anew.
    n_draws, n_burn_in, n_thin, n_chains : int
        Each chain makes ``n_burn_in`` iterations, then keeps ``n_draws``, one in ``n_thin``.
    loss : "vi" or "binder"
        The loss whose posterior expectation the point estimates minimise.
    random_state : int, SeedSequence, Generator, RandomState or None
        The same seed gives the same draws whatever ``n_jobs`` is.
    n_jobs : int, optional
        How many chains run at once; default as many as there are processors.
    progress : bool, optional
        Live display: by default on a terminal, once a fit has taken two seconds.
    store : path, optional
        A folder that keeps the chains while they run: a fit that was killed goes on where it stopped.

    Attributes
    ----------
    row_labels_, column_labels_ : ndarray of int
        Point estimates: cluster of each row and of each column. Those of a grid are numbered by size,
        those of a Mondrian by position: rows are in one cluster where their blocks are the same in every
        column, columns likewise.
    n_row_clusters_, n_column_clusters_ : int
        How many there are; ``posterior_`` has how sure that is.
    block_labels_ : ndarray of shape (row clusters, column clusters)
        Number of the block in which they meet, 0, 1, ...; in a Mondrian, blocks reach over several clusters.
    block_parameters_ : dict of str to ndarray
        Posterior means given the point estimate, one row a block: ``probabilities``, ``rates``, or ``means``
        and ``scales``.
    blocks_ : BlockDraw
        All of the point estimate.
    tree_ : MondrianTree or None
        The nested cuts of the point estimate: the draw that is nearest to all others. It has all cuts and
        its own numbers of blocks, also of those that hold no cell.
    rows_, columns_ : ndarray of bool
        Which rows and which columns each block has, as scikit-learn's biclusters.
    posterior_ : xarray.DataTree
        All draws in ArviZ's schema: ``row_labels``, ``column_labels``, ``n_row_clusters``, ``log_joint``, ...
    log_likelihood_ : float
        Posterior mean of ln p(cells | blocks).
    cells_ : Cells
        The matrix; ``cells_.row_names`` and ``cells_.column_names`` name what predictions are of.
    family_ : CellFamily
        As fitted; ``family_.levels`` are the values of cells in levels.

    Notes
    -----
    Block parameters are integrated out. Rows and columns of grids are moved one by one (collapsed Gibbs) and
    split and merged; cuts of Mondrians are added, removed, shifted and drawn anew (Wang, Laskey, Domeniconi &
    Jordan 2011). ``fit`` warns, by name, about quantities on which chains disagree.

    Examples
    --------
    >>> import numpy as np, permix
    >>> X = np.kron([[1, 5, 2], [4, 2, 5]], np.ones((10, 6)))
    >>> X[3, 4] = np.nan
    >>> model = permix.CoClustering(n_draws=200, n_burn_in=100, random_state=0).fit(X)
    >>> model.n_row_clusters_, model.n_column_clusters_
    (2, 3)
    >>> model.predict(cells=[(3, 4)])
    array([1])
    """

    def __init__(
        self,
        prior: Literal["dp", "dirichlet", "mondrian"] = "dp",
        family: CellFamily | str = "categorical",
        concentration: Concentration = 1.0,
        pseudo_count: float = 1.0,
        budget: float = 1.0,
        *,
        n_row_clusters: int | None = None,
        n_column_clusters: int | None = None,
        membership: Literal["hard", "mixed"] = "hard",
        n_draws: int = 1000,
        n_burn_in: int = 500,
        n_thin: int = 1,
        n_chains: int = 2,
        loss: Literal["vi", "binder"] = "vi",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
        store: str | os.PathLike[str] | None = None,
    ) -> None:
        self.prior = prior
        self.family = family
        self.concentration = concentration
        self.pseudo_count = pseudo_count
        self.budget = budget
        self.n_row_clusters = n_row_clusters
        self.n_column_clusters = n_column_clusters
        self.membership = membership
        self.n_draws = n_draws
        self.n_burn_in = n_burn_in
        self.n_thin = n_thin
        self.n_chains = n_chains
        self.loss = loss
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.store = store

    def fit(self, X: Any, y: Any = None) -> Self:
        """Run the chains on a matrix and sum them up.

        Parameters
        ----------
        X : array, masked array, sparse matrix, wide data frame or Cells
            NaN, None and what is masked are missing; so is what a sparse matrix does not store.
            ``permix.Cells.from_long`` takes (row, column, value) entries.
        y : ignored

        Returns
        -------
        self
        """
        settings = CoClusterSettings(**self.get_params(deep=False))
        return self._adopt(fit_cocluster(self._cells(X, reset=True), settings))

    @classmethod
    def _from_fit(cls, fit: CoClusterFit) -> Self:
        settings = fit.settings
        return cls(**{name: getattr(settings, name) for name in cls._get_param_names()})._restored(fit)
