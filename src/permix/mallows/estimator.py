"""Mixtures of Mallows models from any kind of preference, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.mallows import Mallows
from permix.estimators.agent_answers import Completions
from permix.estimators.ranking_estimator import RankingMixture
from permix.mallows import predict as mallows_predict
from permix.mallows.fit import MallowsFit, fit_mallows
from permix.mallows.parameters import MallowsParameters
from permix.mallows.results import component_table, sample_rankings, warn_if_unsettled

if TYPE_CHECKING:
    import pandas as pd


class MallowsMixture(ClusterMixin, RankingMixture, parameters=MallowsParameters):  # type: ignore[misc]
    """Groups of people, each with a typical ranking and a spread around it (Lu & Boutilier 2014).

    Attributes
    ----------
    weights_ : ndarray (n_components,)
        Share of each group, the largest first.
    centers_ : Rankings
        The central ranking of each group.
    dispersions_ : ndarray (n_components,)
        0 = always the center, 1 = all rankings alike.
    components_ : list of Mallows
        Each group as a distribution of its own.
    labels_ : ndarray (rows,)
        Most probable group of every row fitted.
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
        settings = self._settings()
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
        """Each group as a distribution of its own."""
        check_is_fitted(self)
        return [self._fit.components.component(k) for k in range(len(self.weights_))]

    @property
    def history_(self) -> pd.DataFrame:
        """Log-likelihood and its Monte Carlo error after each iteration of the best run."""
        import pandas as pd

        check_is_fitted(self)
        return pd.DataFrame(self._fit.history, columns=["log_likelihood", "standard_error"])

    def predict_proba(self, X: Any, *, n_samples: int = 256, random_state: Any = 0) -> Array:
        """Return P(group | what the row says).

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
        n_samples : int
            Particles per agent and group where no exact sum is affordable.
        random_state : int, SeedSequence, Generator or None
            For those; with the default the same question gets the same answer every time.

        Returns
        -------
        ndarray (rows, n_components)
        """
        table = self._new_data(X)
        return mallows_predict.predict_proba(self._fit.components, table, n_samples, random_state)

    def score_samples(
        self, X: Any, *, n_samples: int = 256, random_state: Any = 0, return_error: bool = False
    ) -> Any:
        """Return ln P(what the row says) under the mixture, equation 26.

        Parameters
        ----------
        X, n_samples, random_state
            As in :meth:`predict_proba`.
        return_error : bool
            Return the Monte Carlo errors as well, 0 where the value is exact.

        Returns
        -------
        ndarray (rows,), or two of them
            Each row once, whatever its count.
        """
        table = self._new_data(X)
        scores, errors = mallows_predict.score_samples(self._fit.components, table, n_samples, random_state)
        return (scores, errors) if return_error else scores

    def predict_pairwise(
        self,
        X: Any,
        pairs: Any = None,
        *,
        n_samples: int = 200,
        random_state: Any = 0,
        return_error: bool = False,
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
        return_error : bool
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
            return_error=return_error,
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
        """Draw full rankings that agree with each row, with their groups.

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
            Return the group of each as well.

        Returns
        -------
        Rankings, or (Rankings, ndarray of int)
        """
        check_is_fitted(self)
        rankings, labels = sample_rankings(self._fit.components, size, random_state)
        return (rankings, labels) if return_labels else rankings

    def diagnostics(self) -> pd.DataFrame:
        """Return how far to trust the fit: what every start reached, and how far that is from the best.

        Starts that end near the best have found the same optimum; where only one does, there may be a better
        one still.
        """
        import pandas as pd

        check_is_fitted(self)
        reached = np.asarray(self._fit.restart_log_likelihoods)
        best = reached.max(initial=-np.inf)
        return pd.DataFrame(
            {"log_likelihood": reached, "below_best": best - reached, "near_best": reached >= best - 1.0},
            index=pd.RangeIndex(len(reached), name="start"),
        )

    def summary(self) -> pd.DataFrame:
        """Return weight, expected number of agents, dispersion, expected distance and center by group."""
        check_is_fitted(self)
        return component_table(self._fit)
