"""Dirichlet-process mixtures of generalized Mallows models, as a scikit-learn estimator."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.base import Estimate
from permix.dp_mallows import fit as dp_mallows_fit
from permix.dp_mallows.archive import save_dp_mallows
from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mallows.pairs import predict_pairwise
from permix.dp_mallows.predict import ListCompletions, ListPredictive
from permix.dp_mallows.results import ClusterSummaries
from permix.dp_mallows.settings import DPMallowsSettings
from permix.estimators.ranking_estimator import RankingEstimator
from permix.estimators.ranking_lists import as_top_lists
from permix.partitions import Gamma
from permix.posterior import summary, to_datatree

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


class DPMallowsMixture(ClusterMixin, RankingEstimator):  # type: ignore[misc]
    """Kinds of people, as many as the data ask for, from full rankings and top lists (Meilă & Chen 2010).

    Every kind has a central ranking and a decay for each place: how surely its people choose, first, second,
    …, what the center has next. How many kinds there are is part of the posterior.

    Parameters
    ----------
    sampler : "exact", "beta-gibbs" or "slice-gibbs"
        "exact" draws from the posterior. The other two are the published algorithms and **approximations**:
        both draw centers stage by stage as if lemma 2 held, which it does not, and "beta-gibbs" replaces an
        integral over finitely many places by its limit; they are here for comparison.
    concentration : float or Gamma
        α of the Dirichlet process: the larger, the more kinds. ``permix.partitions.Gamma(1.0, 1.0)`` learns
        it.
    prior_strength : float
        ν, how many lists the prior of the decays is worth.
    prior_rate : float or sequence of floats
        r, the mean number of items skipped in each of these; one number, or one for each place.
    discount : float
        d of a Pitman–Yor process, between 0 and 1; 0 is the Dirichlet process.
    assignments : "auto", "collapsed" or "parallel"
        How "exact" moves agents between clusters, with the same result: one by one with decays integrated
        out, or all at once given decays and weights. "auto" takes the latter from 1000 agents on.
    split_merge : bool
        Whether chains also divide and join whole clusters, so that they do not stick; the first iterations of
        burn-in then climb to a state with a high log joint.
    permutation : bool
        Whether chains also rearrange several clusters at once, by cutting an ordering of their lists anew
        (Liang, Jordan & Taskar 2007). The posterior is the same. Off by default: beside split-merge it made
        chains no better per second where it was tried, and over very many items it is hardly ever accepted.
    n_initial_clusters : int, optional
        Clusters that chains start from; by default agents are seated one after another.
    n_draws, n_burn_in, n_thin, n_chains : int
        Each chain makes ``n_burn_in`` iterations, then keeps ``n_draws``, one in ``n_thin``.
    loss : "vi" or "binder"
        The loss whose posterior expectation ``labels_`` minimises.
    random_state : int, SeedSequence, Generator, RandomState or None
        The same seed gives the same draws whatever ``n_jobs`` is.
    n_jobs : int, optional
        How many threads; default as many as there are processors.
    progress : bool, optional
        Live display: by default on a terminal, once a fit has taken two seconds.
    store : path, optional
        A folder that keeps the chains while they run: a fit that was killed goes on where it stopped.

    Attributes
    ----------
    labels_ : ndarray (agents,)
        Point estimate of who belongs together; cluster 0 is the largest. Where kinds overlap so much that the
        partition of least loss has far fewer clusters than draws have, the draw of least loss. A row with a
        count stands for that many agents, in the order of ``Rankings.expand()``.
    n_clusters_ : int
        Number of clusters in ``labels_``; its posterior is ``posterior_["posterior"]["n_clusters"]``.
    cluster_sizes_, weights_ : ndarray (clusters,)
        Agents of each cluster in ``labels_``, and its posterior mean share.
    centers_ : Rankings
        Consensus ranking of each cluster, by expected rank; :meth:`center` has its uncertainty.
    theta_ : ndarray (clusters, places)
        Mean decay of each place, up to the longest list; :meth:`decays` has intervals.
    point_estimate_ : PointEstimate
        ``labels_`` with its expected loss.
    posterior_ : xarray.DataTree
        All draws in ArviZ's schema: ``labels`` over chain, draw, observation; ``n_clusters``,
        ``log_joint``, ...
    log_likelihood_ : float
        Posterior mean of ln p(data | partition, centers).
    items_ : tuple
        Item names.
    n_features_in_ : int
        Number of columns, where the data were an array.

    Notes
    -----
    A list of t items names the best t in order; all others are below. An array's rows are such lists, best
    first, padded by -1; its items are the numbers found in it. Rankings of a subset, ties and comparisons are
    refused; :class:`permix.MallowsMixture` takes those.

    Results do not depend on labels of draws: each cluster of a draw speaks for the cluster of ``labels_`` it
    is most like, by the agents they have in common, and what is said about a cluster is an average over those
    that speak for it. Centers and decays are drawn for a hundred draws, evenly spaced, however many there
    are; intervals of them and predictions average over these, and a new agent may be of a kind that
    the data did not have.

    Examples
    --------
    >>> import permix
    >>> from permix.datasets import make_generalized_mallows_mixture
    >>> votes = make_generalized_mallows_mixture(100, 6, 2, theta=1.5, lengths=(2, 4), random_state=1)
    >>> model = permix.DPMallowsMixture(n_draws=300, random_state=0).fit(votes.data)
    >>> model.cluster_sizes_.tolist()
    [53, 47]
    >>> someone = permix.Rankings.from_orders([[3]], items=votes.data.items)
    >>> model.complete(someone, length=3)
    Rankings: 1 agent over 6 items, top lists of 3 items
      0: 3 ≻ 4 ≻ 0 ≻ rest
    """

    def __init__(
        self,
        sampler: Literal["exact", "beta-gibbs", "slice-gibbs"] = "exact",
        concentration: float | Gamma = 1.0,
        prior_strength: float = 1.0,
        prior_rate: Any = 1.0,
        *,
        discount: float = 0.0,
        assignments: Literal["auto", "collapsed", "parallel"] = "auto",
        split_merge: bool = True,
        permutation: bool = False,
        n_initial_clusters: int | None = None,
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
        self.sampler = sampler
        self.concentration = concentration
        self.prior_strength = prior_strength
        self.prior_rate = prior_rate
        self.discount = discount
        self.assignments = assignments
        self.split_merge = split_merge
        self.permutation = permutation
        self.n_initial_clusters = n_initial_clusters
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
        """Run the chains and sum them up.

        Parameters
        ----------
        X : Rankings, Preferences that are top lists, or 2-D integer array
            Rows of an array are orderings, best first, padded by -1; what a row leaves out is below.
        y : ignored

        Returns
        -------
        self
        """
        settings = DPMallowsSettings(**self.get_params(deep=False))
        rankings = self._rankings(X, reset=True)
        return self._adopt(dp_mallows_fit.fit_dp_mallows(rankings, settings))

    def _adopt(self, fit: DPMallowsFit) -> Self:
        """Show a fit under scikit-learn's names."""
        self._fit = fit
        self._predictive = ListPredictive.of(fit)
        self._summaries = ClusterSummaries(fit)
        self._tree: xr.DataTree | None = None  # made when asked for: xarray takes a second to import
        self.items_ = fit.items
        self.point_estimate_ = fit.estimate
        self.labels_ = fit.labels
        self.n_clusters_ = fit.n_clusters
        self.cluster_sizes_ = fit.cluster_sizes
        self.weights_ = self._summaries.shares
        self.centers_ = self._summaries.centers
        self.theta_ = self._summaries.theta
        self.log_likelihood_ = float(fit.draws.arrays["log_likelihood"].mean())
        return self

    @property
    def posterior_(self) -> xr.DataTree:
        """All draws in ArviZ's schema."""
        check_is_fitted(self)
        if self._tree is None:
            self._tree = to_datatree(self._fit.draws)
        return self._tree

    def _rankings(self, X: Any, *, reset: bool) -> Rankings:
        """Return the data as top lists; arrays are checked as scikit-learn does."""
        if isinstance(X, Rankings) and not reset and X.items == self.items_:
            return as_top_lists(X)
        return as_top_lists(self._preferences(X, reset=reset))

    def _asked(self, X: Any) -> tuple[ListPredictive, Rankings]:
        """Return who answers, and new lists."""
        check_is_fitted(self)
        return self._predictive, self._rankings(X, reset=False)

    def predict(self, X: Any) -> Array:
        """Return the most probable cluster of ``labels_`` for each row.

        Parameters
        ----------
        X : Rankings, Preferences that are top lists, or 2-D integer array
            As in :meth:`fit`, over the fitted items.

        Returns
        -------
        ndarray of int
        """
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Return P(cluster of ``labels_`` | list), given that the agent is of a kind the data have.

        Averaged over draws, each counted by how probable it makes the list: the agent is in a cluster of the
        draw, whose members vote for the clusters of ``labels_`` they are in.

        Parameters
        ----------
        X : Rankings, Preferences that are top lists, or 2-D integer array

        Returns
        -------
        ndarray (rows, clusters)
            Rows sum to one.
        """
        predictive, lists = self._asked(X)
        joint = predictive.assign(lists)[:, :-1]
        totals = joint.sum(axis=1, keepdims=True)
        # A list that no cluster could have said at all is nobody's more than anybody else's.
        return np.asarray(np.where(totals > 0.0, joint / np.where(totals > 0.0, totals, 1.0), self.weights_))

    def predict_novelty(self, X: Any) -> Array:
        """Return the probability that each row comes from a kind that the data did not have."""
        predictive, lists = self._asked(X)
        return np.asarray(predictive.assign(lists)[:, -1])

    def score_samples(self, X: Any, *, return_standard_error: bool = False) -> Any:
        """Return ln of the posterior predictive probability of each row, averaged over draws.

        Parameters
        ----------
        X : Rankings, Preferences that are top lists, or 2-D integer array
        return_standard_error : bool
            Return the Monte Carlo errors as well, from the spread between draws taken as independent.

        Returns
        -------
        ndarray (rows,), or two of them
            Each row once, whatever its count.
        """
        predictive, lists = self._asked(X)
        scores, errors = predictive.log_predictive(lists)
        return (scores, errors) if return_standard_error else scores

    def score(self, X: Any, y: Any = None) -> Estimate:
        """Return the mean of :meth:`score_samples` over agents, with its Monte Carlo ``standard_error``."""
        predictive, lists = self._asked(X)
        return predictive.mean_log_predictive(lists)

    def predict_next(self, X: Any) -> Array:
        """Return P(next item | list).

        Parameters
        ----------
        X : Rankings, Preferences that are top lists, or 2-D integer array

        Returns
        -------
        ndarray (rows, items)
            Columns in the order of ``items_``; 0 for items already listed. Rows sum to one, unless the list
            is full.
        """
        predictive, lists = self._asked(X)
        return predictive.next_item(lists)

    def complete(self, X: Any, length: int | None = None) -> Rankings:
        """Return the most plausible continuation of each list.

        One item after another: each time the one most probable to come next given all before it. Draws and
        clusters are weighed anew after every item.

        Parameters
        ----------
        X : Rankings, Preferences that are top lists, or 2-D integer array
        length : int, optional
            Continue to this many items; by default to the longest list fitted. Beyond that the decays follow
            the prior. Longer lists stay as they are.

        Returns
        -------
        Rankings
            Ids and counts kept.
        """
        predictive, lists = self._asked(X)
        return predictive.complete(lists, length)

    def sample_completions(
        self, X: Any, size: int = 1, random_state: Any = None, *, length: int | None = None
    ) -> ListCompletions:
        """Draw continuations of each list, with their clusters, independently from the posterior predictive.

        Parameters
        ----------
        X : Rankings, Preferences that are top lists, or 2-D integer array
        size : int
            Draws per row.
        random_state : int, SeedSequence, Generator or None
        length : int, optional
            As in :meth:`complete`.

        Returns
        -------
        ListCompletions
            ``orders`` (rows, draws, length), ``labels`` (rows, draws; -1 for a new kind), ``to_rankings()``.
        """
        predictive, lists = self._asked(X)
        return predictive.sample_completions(lists, size, length, random_state)

    def predict_pairwise(
        self,
        X: Any,
        pairs: Any = None,
        *,
        method: Literal["auto", "exact", "sampled"] = "auto",
        n_samples: int = 400,
        random_state: Any = 0,
        return_standard_error: bool = False,
    ) -> Any:
        """Return P(a ≻ b | list).

        Parameters
        ----------
        X : Rankings, Preferences that are top lists, or 2-D integer array
        pairs : array or list of (row, a, b), optional
            Rows of ``X``, counted from 0, and items by name. Left out, all pairs for all rows.
        method : {"auto", "exact", "sampled"}
            Exact given the draws, by recursion over the places that are left, or from sampled full rankings;
            "auto" is exact where that takes seconds.
        n_samples : int
            Rankings per row for "sampled".
        random_state : int, SeedSequence, Generator or None
            For those.
        return_standard_error : bool
            Return standard errors of sampling as well, 0 where exact.

        Returns
        -------
        ndarray (rows, items, items) with zeros on the diagonal, or ndarray (pairs,); or two of them
        """
        return predict_pairwise(
            *self._asked(X),
            pairs,
            method=method,
            n_samples=n_samples,
            random_state=random_state,
            return_standard_error=return_standard_error,
        )

    def sample(
        self,
        size: int = 1,
        random_state: Any = None,
        *,
        lengths: Any = None,
        return_labels: bool = False,
    ) -> Any:
        """Draw lists of new agents from the posterior predictive.

        Parameters
        ----------
        size : int
            How many.
        random_state : int, SeedSequence, Generator or None
        lengths : int or sequence of int, optional
            Items of all lists, or of each; by default as long as lists of the data, at random.
        return_labels : bool
            Return the cluster of each as well; -1 for a kind that the data did not have.

        Returns
        -------
        Rankings, or (Rankings, ndarray of int)
        """
        check_is_fitted(self)
        rankings, labels = self._predictive.sample(size, lengths, random_state)
        return (rankings, labels) if return_labels else rankings

    def summary(self) -> pd.DataFrame:
        """Return mean, spread, effective sample size and R-hat of every scalar quantity."""
        check_is_fitted(self)
        return summary(self._fit.draws)

    def clusters(self) -> pd.DataFrame:
        """Return size with interval, tightness and center of every cluster."""
        check_is_fitted(self)
        return self._summaries.cluster_table()

    def center(self, cluster: int, top: int | None = None) -> pd.DataFrame:
        """Return the items of one cluster in consensus order, with intervals of their ranks.

        Parameters
        ----------
        cluster : int
            Counted from 0, the largest.
        top : int, optional
            The column ``in_top`` is P(rank ≤ top); by default the number of places that lists reach.
        """
        check_is_fitted(self)
        return self._summaries.center_table(cluster, top)

    def decays(self) -> pd.DataFrame:
        """Return the decay of every place in every cluster, with intervals and the lists that reach it."""
        check_is_fitted(self)
        return self._summaries.theta_table()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file; :func:`permix.load` reads it.

        The file is a zip of JSON and ``.npy`` arrays; it holds the draws and the lists that were fitted.
        """
        check_is_fitted(self)
        save_dp_mallows(self._fit, path)

    @classmethod
    def _from_fit(cls, fit: DPMallowsFit) -> Self:
        return cls(**{name: getattr(fit.settings, name) for name in cls._get_param_names()})._adopt(fit)
