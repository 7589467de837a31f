"""A consensus of several co-clusterings of one matrix, as a scikit-learn estimator."""

from __future__ import annotations

import os
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from permix.cocluster.base import BlockEstimator
from permix.cocluster.cells.families import CellFamily
from permix.cocluster.ensemble import Average, EnsembleFit, fit_ensemble
from permix.cocluster.estimator import CoClustering
from permix.cocluster.settings import CoClusterSettings, Concentration, EnsembleSettings
from permix.errors import DataError


class CoClusteringEnsemble(BlockEstimator):
    """What several co-clusterings of a matrix have in common, and how sure that is.

    Chains of co-clusterings often end in different places. The consensus is drawn given what every one of
    them says, and predictions are made with its blocks (Wang, Laskey, Domeniconi & Jordan 2011).

    Parameters
    ----------
    prior : "dp" or "mondrian"
        Of the consensus: a grid of row clusters by column clusters (DPCCE), or nested cuts (MPCCE).
    family : "categorical", "bernoulli", "poisson", "gaussian", or a cell family
        What cells are, for predictions and for base co-clusterings made here.
    concentration, pseudo_count, budget
        As for :class:`permix.CoClustering`.
    n_base : int
        How many base co-clusterings to make where none are given: one chain each, of which the last draw
        counts.
    base : CoClustering, optional
        What these are; by default co-clusterings with the prior and the settings of the ensemble. Number
        and seed of chains, ``loss``, ``n_jobs``, ``progress`` and ``store`` are those of the ensemble.
    label_pseudo_count : float
        How much the prior of a base's labels is worth within a consensus cluster or block. "dp": the
        pseudo-count of all labels of a base together, divided among its T_m labels (equations 4.7-4.10,
        corrected). "mondrian": the pseudo-count of every label (equation 5.12).
    label_cells : "filled" or "all"
        Which cells' labels a Mondrian consensus is drawn from: those of the filled cells of the matrix, or
        those of all R × C, as published. Where a matrix is mostly empty, the bases say of an empty cell
        what chance made of it, and as much of that as there is of the rest. Without a matrix all cells count.
    n_draws, n_burn_in, n_thin, n_chains, loss, random_state, n_jobs, progress
        As for :class:`permix.CoClustering`.
    store : path, optional
        A folder that keeps the chains of bases and consensus while they run.

    Attributes
    ----------
    bases_ : Bases
        The base co-clusterings.
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_, block_labels_, blocks_, tree_, rows_
        The consensus; see :class:`permix.CoClustering`.
    columns_, posterior_, block_parameters_, cells_, family_
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

    def __init__(
        self,
        prior: Literal["dp", "mondrian"] = "dp",
        family: CellFamily | str = "categorical",
        n_base: int = 5,
        base: CoClustering | None = None,
        *,
        concentration: Concentration = 1.0,
        label_pseudo_count: float = 1.0,
        label_cells: Literal["filled", "all"] = "filled",
        pseudo_count: float = 1.0,
        budget: float = 1.0,
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
        self.n_base = n_base
        self.base = base
        self.concentration = concentration
        self.label_pseudo_count = label_pseudo_count
        self.label_cells = label_cells
        self.pseudo_count = pseudo_count
        self.budget = budget
        self.n_draws = n_draws
        self.n_burn_in = n_burn_in
        self.n_thin = n_thin
        self.n_chains = n_chains
        self.loss = loss
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.store = store

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
        parameters = self.get_params(deep=False)
        base = parameters.pop("base")
        if base is not None and not isinstance(base, CoClustering):
            raise DataError(
                f"base must be a CoClustering that says how to make bases, not {base!r}; co-clusterings that "
                "are made already go to fit(X, bases=[...])"
            )
        asked = None if base is None else CoClusterSettings(**base.get_params(deep=False))
        settings = EnsembleSettings(base=asked, **parameters)
        cells = None if X is None else self._cells(X, reset=True)
        return self._adopt(fit_ensemble(cells, bases, settings))

    def _adopt(self, fit: Any) -> Self:
        super()._adopt(fit)
        self.bases_ = fit.bases
        return self

    def base_scores(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the :meth:`score` of X under each base alone.

        Parameters
        ----------
        X : matrix
            Held-out cells, as in :meth:`score`.
        """
        return self._ensemble().base_scores(self._cells(X, reset=False))

    def averaged_score(self, X: Any, average: Average = "cells") -> float:
        """Return the score of X under the average of the bases, which an ensemble should beat.

        Parameters
        ----------
        X : matrix
            Held-out cells, as in :meth:`score`.
        average : "cells", "matrix" or "log"
            What is averaged: the probability of every cell; that of all cells together; or the scores.
        """
        return self._ensemble().averaged_score(self._cells(X, reset=False), average)

    def _ensemble(self) -> EnsembleFit:
        check_is_fitted(self)
        self._fit.known_matrix  # noqa: B018
        assert isinstance(self._fit, EnsembleFit)
        return self._fit

    @classmethod
    def _from_fit(cls, fit: EnsembleFit) -> Self:
        settings = fit.settings
        parameters = {name: getattr(settings, name) for name in cls._get_param_names()}
        if settings.base is not None:
            names = CoClustering._get_param_names()
            parameters["base"] = CoClustering(**{name: getattr(settings.base, name) for name in names})
        return cls(**parameters)._restored(fit)
