"""A consensus of several co-clusterings of one matrix, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from permix.cocluster.base import BlockEstimator
from permix.cocluster.ensemble import Average, EnsembleFit, fit_ensemble
from permix.cocluster.estimator import CoClustering
from permix.cocluster.parameters import EnsembleParameters
from permix.estimators.known import with_known


class CoClusteringEnsemble(BlockEstimator, parameters=EnsembleParameters):
    """What several co-clusterings of a matrix have in common, and how sure that is.

    Chains of co-clusterings often end in different places. The consensus is drawn given what every one of
    them says, and predictions are made with its blocks (Wang, Laskey, Domeniconi & Jordan 2011).

    Attributes
    ----------
    bases_ : Bases
        The base co-clusterings.
    labels_, row_labels_, column_labels_, n_row_clusters_, n_column_clusters_, block_labels_, blocks_, tree_
        The consensus; see :class:`permix.CoClustering`.
    rows_, columns_, posterior_, block_parameters_, cells_, family_
        The same; the last three where there was a matrix.
    log_likelihood_ : float
        Posterior mean of ln p(labels of the bases | consensus).

    Examples
    --------
    >>> import permix
    >>> bases = [([0, 0, 0, 1, 1], [0, 0, 1, 1]), ([1, 1, 1, 0, 0], [0, 0, 1, 1])]
    >>> model = permix.CoClusteringEnsemble(n_draws=300, label_pseudo_count=0.1, random_state=0)
    >>> model.fit(bases=bases).column_labels_
    array([0, 0, 1, 1])
    """

    _fit: EnsembleFit

    def fit(self, X: Any = None, y: Any = None, *, bases: Any = None) -> Self:
        """Draw the consensus.

        Parameters
        ----------
        X : matrix, optional
            As for :class:`permix.CoClustering`. Without it there are no predictions of cells.
        y : ignored
        bases : list, optional
            Base co-clusterings, also ones made elsewhere: each a tuple (row labels, column labels), a table
            of block ids with one for every cell, or a fitted :class:`permix.CoClustering`. Left out, they
            are made from the matrix.

        Returns
        -------
        self
        """
        settings = self._settings()
        cells = None if X is None else self._cells(X, reset=True)
        return self._adopt(with_known(fit_ensemble(cells, bases, settings), cells))

    def _adopt(self, fit: Any) -> Self:
        super()._adopt(fit)
        self.bases_ = fit.bases
        return self

    def base_scores(self, X: Any) -> npt.NDArray[np.float64]:
        """Return :meth:`score_cells` of X under each base alone.

        Parameters
        ----------
        X : matrix
            Held-out cells, as in :meth:`score_cells`.
        """
        cells = self._cells(X, reset=False)
        return self._fit.base_scores(cells)

    def averaged_score(self, X: Any, average: Average = "cells") -> float:
        """Return :meth:`score_cells` of X under the average of the bases, which an ensemble should beat.

        Parameters
        ----------
        X : matrix
            Held-out cells, as in :meth:`score_cells`.
        average : "cells", "matrix" or "log"
            What is averaged: the probability of every cell; that of all cells together; or the scores.
        """
        cells = self._cells(X, reset=False)
        return self._fit.averaged_score(cells, average)

    @classmethod
    def _from_fit(cls, fit: Any) -> Self:
        model = super()._from_fit(fit)
        if model.base is not None:
            model.base = CoClustering(**model.base.as_dict())
        return model
