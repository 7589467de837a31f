"""Mixtures of Mallows models from any kind of preference, as a scikit-learn estimator."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.mallows import Mallows
from permix.estimators.ranking_estimator import RankingEstimator
from permix.mallows import predict as mallows_predict
from permix.mallows.archive import save_mallows
from permix.mallows.fit import MallowsFit, MallowsSettings, fit_mallows
from permix.mallows.predict import Completions
from permix.mallows.results import component_table, sample_rankings, warn_if_unsettled

if TYPE_CHECKING:
    import pandas as pd


class MallowsMixture(ClusterMixin, RankingEstimator):  # type: ignore[misc]
    """Kinds of people, each with a typical ranking and a spread around it (Lu & Boutilier 2014).

    Parameters
    ----------
    n_components : int
        Number of kinds; :func:`permix.select_components` chooses it by held-out likelihood.
    n_restarts : int
        EM runs from this many different starts; the best run is kept.
    max_iter : int
        The most iterations of one run; random first rounds and the averaging at the end are not counted.
    tol : float
        A run has converged when an iteration raises the log-likelihood per agent by less than this, or by
        less than its Monte Carlo error.
    n_particles : int
        Rankings sampled per agent and component where no exact sum is at hand; more make the likelihood
        more precise and the fit slower.
    center_search : "local" or "exact"
        How the central rankings are found: by local search, or proven optimal where that is possible.
    min_dispersion : float
        No component may be narrower than this; 0 would be a single ranking.
    random_state : int, SeedSequence, Generator or None
        The same seed gives the same fit whatever ``n_jobs`` is.
    n_jobs : int, optional
        How many threads; default as many as there are processors.
    progress : bool, optional
        Live display: by default on a terminal, once a fit has taken two seconds.

    Attributes
    ----------
    weights_ : ndarray (n_components,)
        Share of each component, the largest first.
    centers_ : Rankings
        The central ranking of each component.
    dispersions_ : ndarray (n_components,)
        0 = always the center, 1 = all rankings alike.
    components_ : list of Mallows
        Each component as a distribution of its own.
    labels_ : ndarray (rows,)
        Most probable component of every row fitted.
    log_likelihood_ : Estimate
        ln P(data); ``log_likelihood_.standard_error`` is its Monte Carlo error, 0 where the fit was exact.
    history_ : DataFrame
        Log-likelihood and its error after each iteration of the best run.
    restart_log_likelihoods_ : ndarray
        What each start reached; scaled to all agents where starts were tried on a part of very many.
    n_iter_, converged_
        Iterations of the best run, and whether it settled.
    items_ : tuple
        Item names.
    n_features_in_ : int
        Number of columns, where the data were an array.

    Notes
    -----
    Full rankings, top lists and levels of all items have closed-form likelihoods, so fits to them are
    exact EM without Monte Carlo noise; for everything else EM averages over rankings sampled from each
    agent's posterior. An array's rows are orderings, best first, padded by -1; its items are the numbers
    found in it.

    Examples
    --------
    >>> import permix
    >>> votes = permix.Rankings.from_orders(
    ...     [["tea", "milk", "water"], ["tea", "water", "milk"], ["water", "milk", "tea"]],
    ...     counts=[50, 20, 30],
    ... )
    >>> model = permix.MallowsMixture(2, random_state=0).fit(votes)
    >>> model.centers_
    Rankings: 2 agents over 3 items, full
      0: tea ≻ milk ≻ water
      1: water ≻ milk ≻ tea
    >>> someone = permix.Preferences.from_pairs([("anna", "water", "milk")], items=votes.items)
    >>> model.predict_proba(someone).round(2)
    array([[0.23, 0.77]])
    """

    # Settings of an answer, not data that pipelines and searches would pass along.
    __metadata_request__predict_proba: ClassVar = {"n_samples": UNUSED, "random_state": UNUSED}

    def __init__(
        self,
        n_components: int = 1,
        *,
        n_restarts: int = 10,
        max_iter: int = 200,
        tol: float = 1e-6,
        n_particles: int = 8,
        center_search: Literal["local", "exact"] = "local",
        min_dispersion: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol
        self.n_particles = n_particles
        self.center_search = center_search
        self.min_dispersion = min_dispersion
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the mixture by EM.

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
            Rows of an array are orderings, best first, padded by -1; what a row leaves out is below.
        y : ignored

        Returns
        -------
        self
        """
        settings = MallowsSettings(**self.get_params(deep=False))
        fit = fit_mallows(self._preferences(X, reset=True), settings)
        warn_if_unsettled(fit)
        return self._adopt(fit)

    def _adopt(self, fit: MallowsFit) -> Self:
        """Show a fit under scikit-learn's names."""
        components = fit.components
        self._fit = fit
        self.items_ = components.items
        self.weights_ = components.weights
        self.centers_ = Rankings._from_arrays(components.centers, components.items)
        self.dispersions_ = components.dispersions
        self.labels_ = fit.labels
        self.log_likelihood_ = fit.log_likelihood
        self.restart_log_likelihoods_ = fit.restart_log_likelihoods
        self.n_iter_ = fit.n_iterations
        self.converged_ = fit.converged
        return self

    @property
    def components_(self) -> list[Mallows]:
        """Each component as a distribution of its own."""
        check_is_fitted(self)
        return [self._fit.components.component(k) for k in range(len(self.weights_))]

    @property
    def history_(self) -> pd.DataFrame:
        """Log-likelihood and its Monte Carlo error after each iteration of the best run."""
        import pandas as pd

        check_is_fitted(self)
        return pd.DataFrame(self._fit.history, columns=["log_likelihood", "standard_error"])

    def predict(self, X: Any) -> Array:
        """Return the most probable component of each row.

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
            As in :meth:`fit`, over the fitted items.

        Returns
        -------
        ndarray of int
        """
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def predict_proba(self, X: Any, *, n_samples: int = 256, random_state: Any = 0) -> Array:
        """Return P(component | what the row says).

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
        n_samples : int
            Particles per agent and component where no exact sum is affordable.
        random_state : int, SeedSequence, Generator or None
            For those; with the default the same question gets the same answer every time.

        Returns
        -------
        ndarray (rows, n_components)
        """
        table = self._new_data(X)
        return mallows_predict.predict_proba(self._fit.components, table, n_samples, random_state)

    def score_samples(
        self, X: Any, *, n_samples: int = 256, random_state: Any = 0, return_standard_error: bool = False
    ) -> Any:
        """Return ln P(what the row says) under the mixture, equation 26.

        Parameters
        ----------
        X, n_samples, random_state
            As in :meth:`predict_proba`.
        return_standard_error : bool
            Return the Monte Carlo errors as well, 0 where the value is exact.

        Returns
        -------
        ndarray (rows,), or two of them
            Each row once, whatever its count.
        """
        table = self._new_data(X)
        scores, errors = mallows_predict.score_samples(self._fit.components, table, n_samples, random_state)
        return (scores, errors) if return_standard_error else scores

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of an agent; a row counts as often as its count says."""
        table = self._new_data(X)
        scores, _ = mallows_predict.score_samples(self._fit.components, table, random_state=0)
        return float(np.average(scores, weights=table.counts))

    def predict_pairwise(
        self,
        X: Any,
        pairs: Any = None,
        *,
        n_samples: int = 200,
        random_state: Any = 0,
        return_standard_error: bool = False,
    ) -> Any:
        """Return P(a ≻ b | what the row says).

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
        pairs : array or list of (row, a, b), optional
            Rows of ``X``, counted from 0, and items by name. Left out, all pairs for all rows.
        n_samples : int
            Rankings averaged over for rows without an exact way.
        random_state : int, SeedSequence, Generator or None
            For those.
        return_standard_error : bool
            Return Monte Carlo errors as well, 0 where exact.

        Returns
        -------
        ndarray (rows, items, items) with zeros on the diagonal, or ndarray (pairs,); or two of them

        Examples
        --------
        >>> import permix
        >>> votes = permix.Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]], counts=[6, 2])
        >>> model = permix.MallowsMixture().fit(votes)
        >>> someone = permix.Preferences.from_pairs([("anna", "c", "a")], items=votes.items)
        >>> model.predict_pairwise(someone, [(0, "c", "a"), (0, "b", "c")]).round(2)
        array([1.  , 0.47])
        """
        table = self._new_data(X)
        return mallows_predict.predict_pairwise(
            self._fit.components,
            table,
            pairs,
            n_samples=n_samples,
            random_state=random_state,
            return_standard_error=return_standard_error,
        )

    def complete(
        self, X: Any, *, n_samples: int = 200, random_state: Any = 0, return_ranks: bool = False
    ) -> Any:
        """Return the most plausible full ranking of each row that agrees with what it says.

        It is the consensus of the row's posterior: the least expected number of pairs put the wrong way.

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
        n_samples, random_state
            As in :meth:`predict_pairwise`.
        return_ranks : bool
            Return expected ranks with 5 % to 95 % ranges as well.

        Returns
        -------
        Rankings, or (Rankings, RankSummary)
        """
        table = self._new_data(X)
        return mallows_predict.complete(
            self._fit.components,
            table,
            n_samples=n_samples,
            random_state=random_state,
            return_ranks=return_ranks,
        )

    def sample_completions(
        self, X: Any, size: int = 1, random_state: Any = None, *, method: str = "auto"
    ) -> Completions:
        """Draw full rankings that agree with each row, with their components.

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
        size : int
            Draws per row.
        random_state : int, SeedSequence, Generator or None
        method : {"auto", "exact", "importance", "sp"}
            "auto" is exact where that is affordable, else importance resampling with Gibbs moves. "sp" is
            the paper's chain (algorithm 3).

        Returns
        -------
        Completions
            ``orders`` (rows, draws, items), ``labels`` (rows, draws), and ``to_rankings()``.
        """
        table = self._new_data(X)
        return mallows_predict.sample_completions(
            self._fit.components, table, size, method, random_state=random_state
        )

    def sample(self, size: int = 1, random_state: Any = None, *, return_labels: bool = False) -> Any:
        """Draw full rankings of new agents, independently and exactly.

        Parameters
        ----------
        size : int
            How many.
        random_state : int, SeedSequence, Generator or None
        return_labels : bool
            Return the component of each as well.

        Returns
        -------
        Rankings, or (Rankings, ndarray of int)
        """
        check_is_fitted(self)
        rankings, labels = sample_rankings(self._fit.components, size, random_state)
        return (rankings, labels) if return_labels else rankings

    def summary(self) -> pd.DataFrame:
        """Return weight, expected number of agents, dispersion, expected distance and center by component."""
        check_is_fitted(self)
        return component_table(self._fit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file; :func:`permix.load` reads it.

        The file is a zip of JSON and ``.npy`` arrays. It holds the components and the probabilities of the
        rows that were fitted, not what the rows said.
        """
        check_is_fitted(self)
        save_mallows(self._fit, path)

    @classmethod
    def _from_fit(cls, fit: MallowsFit) -> Self:
        return cls(**{name: getattr(fit.settings, name) for name in cls._get_param_names()})._adopt(fit)
