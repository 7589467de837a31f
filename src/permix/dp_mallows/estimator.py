"""Dirichlet-process mixtures of generalized Mallows models, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.dp_mallows.fit import DPMallowsFit, fit_dp_mallows
from permix.dp_mallows.pairs import predict_pairwise
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.dp_mallows.predict import ListCompletions, ListPredictive
from permix.dp_mallows.results import ClusterSummaries
from permix.estimators.ranking_estimator import RankingMixture
from permix.estimators.ranking_lists import as_top_lists
from permix.posterior import summary, to_datatree

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


class DPMallowsMixture(ClusterMixin, RankingMixture, parameters=DPMallowsParameters):  # type: ignore[misc]
    """Groups of people, as many as the data ask for, from full rankings and top lists (Meilă & Chen 2010).

    Every group has a central ranking and a decay for each place: how surely its people choose, first, second,
    …, what the center has next. How many groups there are is part of the posterior.

    Attributes
    ----------
    labels_ : ndarray (rows,)
        Most probable group of every row fitted; group 0 is the largest. Rows that say the same have the same
        group.
    n_clusters_ : int
        Number of groups in the point estimate; its posterior is ``posterior_["posterior"]["n_clusters"]``.
    cluster_sizes_, weights_ : ndarray (groups,)
        Agents of each group in the point estimate, and its posterior mean share.
    centers_ : Rankings
        Consensus ranking of each group, by expected rank; :meth:`center` has its uncertainty.
    theta_ : ndarray (groups, places)
        Mean decay of each place, up to the longest list; :meth:`decays` has intervals.
    point_estimate_ : PointEstimate
        The partition of the agents that is nearest to all draws, with its expected loss. A row with a count
        stands for that many agents, in the order of ``Rankings.expand()``. Where groups overlap so much that
        the partition of least loss has far fewer of them than draws have, the draw of least loss.
    posterior_ : xarray.DataTree
        All draws in ArviZ's schema: ``labels`` over chain, draw, observation (the agents); ``n_clusters``,
        ``log_joint``, ...
    log_likelihood_ : Estimate
        Posterior mean of ln p(data | partition, centers); ``log_likelihood_.standard_error`` is its Monte
        Carlo error.
    items_ : tuple
        Item names.
    n_features_in_ : int
        Number of columns, where the data were an array.

    Notes
    -----
    A list of t items names the best t in order; all others are below. An array's rows are such lists, best
    first, padded by -1; its items are the numbers found in it. Rankings of a subset, ties and comparisons are
    refused; :class:`permix.MallowsMixture` takes those.

    Results do not depend on labels of draws: each group of a draw is matched with the estimated group with
    which it has most agents in common, and what is said about a group is an average over those matched with
    it. Centers and decays are drawn for a hundred draws, evenly spaced, however many there are;
    intervals of them and predictions average over these, and a new agent may be of a group that the data did
    not have.

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Run the chains and summarize them.

        Parameters
        ----------
        X : Rankings, Preferences that are top lists, or 2-D integer array
            Rows of an array are orderings, best first, padded by -1; what a row leaves out is below.
        y : ignored

        Returns
        -------
        self
        """
        settings = self._settings()
        return self._adopt(fit_dp_mallows(self._lists(X, reset=True), settings))

    def _adopt(self, fit: DPMallowsFit) -> Self:
        """Show a fit under scikit-learn's names; what takes longer is computed when asked for."""
        self._fit = fit
        self._predictive = ListPredictive.of(fit)
        self._summaries = ClusterSummaries(fit)
        self._tree: xr.DataTree | None = None  # made when asked for: xarray takes a second to import
        self.items_ = fit.items
        self.point_estimate_ = fit.estimate
        self.n_clusters_ = fit.n_clusters
        self.cluster_sizes_ = fit.cluster_sizes
        self.log_likelihood_ = fit.log_likelihood
        return self

    @property
    def labels_(self) -> Array:
        """Most probable group of every row fitted."""
        check_is_fitted(self)
        return self._fit.row_labels

    @property
    def weights_(self) -> Array:
        """Posterior mean share of each group."""
        check_is_fitted(self)
        return self._summaries.shares

    @property
    def centers_(self) -> Rankings:
        """Consensus ranking of each group."""
        check_is_fitted(self)
        return self._summaries.centers

    @property
    def theta_(self) -> Array:
        """Mean decay of each place in each group."""
        check_is_fitted(self)
        return self._summaries.theta

    @property
    def posterior_(self) -> xr.DataTree:
        """All draws in ArviZ's schema."""
        check_is_fitted(self)
        if self._tree is None:
            self._tree = to_datatree(self._fit.draws)
        return self._tree

    def _lists(self, X: Any, *, reset: bool) -> Rankings:
        """Return the data as top lists over the fitted items, where there are any."""
        return as_top_lists(self._checked(X, reset=reset), None if reset else self.items_)

    def _asked(self, X: Any) -> tuple[ListPredictive, Rankings]:
        """Return who answers, and new lists."""
        check_is_fitted(self)
        return self._predictive, self._lists(X, reset=False)

    def predict_proba(self, X: Any) -> Array:
        """Return P(group | list) for a new agent of a group that the data have.

        Averaged over draws, each counted by how probable it makes the list: the agent is in a group of the
        draw, which is matched with the estimated group it is most like.

        Parameters
        ----------
        X : Rankings, Preferences that are top lists, or 2-D integer array

        Returns
        -------
        ndarray (rows, groups)
            Rows sum to one.
        """
        predictive, lists = self._asked(X)
        joint = predictive.assign(lists)[:, :-1]
        totals = joint.sum(axis=1, keepdims=True)
        # A list that no group could have said at all is nobody's more than anybody else's.
        return np.asarray(np.where(totals > 0.0, joint / np.where(totals > 0.0, totals, 1.0), self.weights_))

    def predict_novelty(self, X: Any) -> Array:
        """Return the probability that each row comes from a group that the data did not have."""
        predictive, lists = self._asked(X)
        return np.asarray(predictive.assign(lists)[:, -1])

    def score_samples(self, X: Any, *, return_error: bool = False) -> Any:
        """Return ln of the posterior predictive probability of each row, averaged over draws.

        Parameters
        ----------
        X : Rankings, Preferences that are top lists, or 2-D integer array
        return_error : bool
            Return the Monte Carlo errors as well, from the spread between draws taken as independent.

        Returns
        -------
        ndarray (rows,), or two of them
            Each row once, whatever its count.
        """
        predictive, lists = self._asked(X)
        scores, errors = predictive.log_predictive(lists)
        return (scores, errors) if return_error else scores

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
        groups are weighed anew after every item.

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
        """Draw continuations of each list, with their groups, independently from the posterior predictive.

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
            ``orders`` (rows, draws, length), ``labels`` (rows, draws; -1 for a new group), ``to_rankings()``.
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
        return_error: bool = False,
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
        return_error : bool
            Return Monte Carlo errors as well, 0 where exact.

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
            return_error=return_error,
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
            Return the group of each as well; -1 for a group that the data did not have.

        Returns
        -------
        Rankings, or (Rankings, ndarray of int)
        """
        check_is_fitted(self)
        rankings, labels = self._predictive.sample(size, lengths, random_state)
        return (rankings, labels) if return_labels else rankings

    def summary(self) -> pd.DataFrame:
        """Return size with interval, tightness and center of every group."""
        check_is_fitted(self)
        return self._summaries.group_table()

    def diagnostics(self) -> pd.DataFrame:
        """Return mean, spread, effective sample size and R-hat of every scalar quantity of the chains."""
        check_is_fitted(self)
        return summary(self._fit.draws)

    def center(self, group: int, top: int | None = None) -> pd.DataFrame:
        """Return the items of one group in consensus order, with intervals of their ranks.

        Parameters
        ----------
        group : int
            Counted from 0, the largest.
        top : int, optional
            The column ``in_top`` is P(rank ≤ top); by default the number of places that lists reach.
        """
        check_is_fitted(self)
        return self._summaries.center_table(group, top)

    def decays(self) -> pd.DataFrame:
        """Return the decay of every place in every group, with intervals and the lists that reach it."""
        check_is_fitted(self)
        return self._summaries.decay_table()
