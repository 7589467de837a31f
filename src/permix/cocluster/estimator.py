"""Co-clustering of a matrix, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

from permix.cocluster.base import BlockEstimator
from permix.cocluster.fit import fit_cocluster
from permix.cocluster.parameters import CoClusterParameters
from permix.data.shards.matrices import ShardedCells
from permix.estimators.known import with_known


class CoClustering(BlockEstimator, parameters=CoClusterParameters):
    """Groups of rows and groups of columns of a matrix at once, as many as the data ask for.

    The cells of a block, where a group of rows meets a group of columns, are alike. Cells may be missing,
    most of them if need be.

    Attributes
    ----------
    row_labels_, column_labels_ : ndarray of int
        Point estimates: group of each row and of each column. Those of a grid are numbered by size,
        those of a Mondrian by position: rows are in one group where their blocks are the same in every
        column, columns likewise.
    labels_ : ndarray of int
        The same as ``row_labels_``.
    n_row_clusters_, n_column_clusters_ : int
        How many there are; ``posterior_`` has how sure that is.
    block_labels_ : ndarray of shape (row groups, column groups)
        Number of the block in which they meet, 0, 1, ...; in a Mondrian, blocks reach over several groups.
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
    >>> model.predict_cells(cells=[(3, 4)])
    array([1])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Run the chains on a matrix and sum them up.

        Parameters
        ----------
        X : array, masked array, sparse matrix, wide data frame, Cells or ShardedCells
            NaN, None and what is masked are missing; so is what a sparse matrix does not store.
            ``permix.Cells.from_long`` takes (row, column, value) entries. Of rows in shards
            (:func:`permix.read_sharded_cells`) all are fitted, and labels are those of a random sample.
        y : ignored

        Returns
        -------
        self
        """
        settings = self._settings()
        if isinstance(X, ShardedCells):
            from permix.cocluster.sharded.fit import fit_sharded

            self.__dict__.pop("feature_names_in_", None)
            fit = fit_sharded(X, settings)
            return self._adopt(with_known(fit, fit.cells))
        cells = self._cells(X, reset=True)
        return self._adopt(with_known(fit_cocluster(cells, settings), cells))
