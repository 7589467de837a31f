"""Dirichlet-process mixtures of generalized Mallows models, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.dp_mallows.fit import DPMallowsFit, fit_dp_mallows
from permix.dp_mallows.pairs import predict_pairwise
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.dp_mallows.predict import ListCompletions, ListPredictive
from permix.dp_mallows.results import ClusterSummaries
from permix.errors import Argument, DataError
from permix.estimators.agent_answers import RankSummary
from permix.estimators.base import DrawsMixin, of_fitted
from permix.estimators.ranking_estimator import RankingMixture, RecommendMixin
from permix.estimators.ranking_lists import as_top_lists

if TYPE_CHECKING:
    import pandas as pd

Method = Literal["auto", "exact", "sampled"]


class DPMallowsMixture(DrawsMixin, RecommendMixin, RankingMixture, parameters=DPMallowsParameters):
    """Groups of people, as many as the data ask for, from full rankings and top lists (Meilă & Chen 2010).

    Every group has a central ranking and a decay for each place: how surely its people choose, first, second,
    …, what the center has next. How many groups there are is part of the posterior.

    Attributes
    ----------
    labels_ : ndarray (rows,)
        Most probable group of every row fitted, by the groups its agents are in; group 0 is the largest. Rows
        that say the same have the same group. :meth:`predict` asks for somebody new who says the same, and
        may differ where groups overlap.
    n_clusters_ : int
        Number of groups in the point estimate; its posterior is ``posterior_["posterior"]["n_groups"]``.
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

    Of more than 10,000 agents in shards (:func:`permix.read_sharded`), draws have labels of 2,000 on record:
    the point estimate is of these, ``cluster_sizes_`` are scaled, and there is no ``labels_``
    (:func:`permix.predict_shards` writes the groups of all). All else is about all agents.

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

    _read = staticmethod(as_top_lists)
    _fit_to = staticmethod(fit_dp_mallows)
    _takes_shards = True

    def _adopt(self, fit: DPMallowsFit) -> Self:
        self._fit = fit
        self._predictive = ListPredictive(fit)
        self._summaries = ClusterSummaries(fit)
        self._tree = None
        self.items_ = fit.items
        self.point_estimate_ = fit.estimate
        self.n_clusters_ = fit.n_clusters
        self.cluster_sizes_ = fit.scaled_sizes
        self.log_likelihood_ = fit.log_likelihood
        return self

    labels_ = of_fitted(lambda self: _row_labels(self._fit), "Most probable group of every row fitted.")
    weights_ = of_fitted(
        lambda self: self._summaries.shares,
        "Posterior mean share of each group in the population; what is missing to one is of others.",
    )
    centers_ = of_fitted(lambda self: self._summaries.centers, "Consensus ranking of each group.")
    theta_ = of_fitted(lambda self: self._summaries.theta, "Mean decay of each place in each group.")

    def _asked(self, X: Any) -> tuple[ListPredictive, Rankings]:
        """Return who answers, and new lists."""
        lists = self._new_data(X)
        return self._predictive, lists

    def predict_proba(self, X: Any) -> Array:
        """Return P(group | list) of each group for a new agent, who may also be of a group of their own.

        Averaged over draws, each counted by how probable it makes the list: the agent is in a group of the
        draw, which is matched with the estimated group it is most like. ``X`` is as in :meth:`fit`, over the
        fitted items; the result is (rows, groups). With :meth:`predict_novelty`, rows sum to one.
        """
        predictive, lists = self._asked(X)
        return np.asarray(predictive.assign(lists)[:, :-1])

    def n_possible_groups(self) -> Array:
        """Return the posterior of the number of groups in the population, those without agents included.

        Entry k is the probability of k groups. Only a mixture of finite mixtures (``prior="mfm"``) has such a
        number; a group may exist and have nobody among the agents fitted.
        """
        probabilities = self._fitted().n_possible_groups
        if probabilities is None:
            raise DataError("only ", Argument("prior", "mfm"), " has a number of possible groups")
        return probabilities

    def predict_novelty(self, X: Any) -> Array:
        """Return the probability that each row comes from a group that the data did not have.

        With those of :meth:`predict_proba` it sums to one.
        """
        predictive, lists = self._asked(X)
        return np.asarray(predictive.assign(lists)[:, -1])

    def _log_densities(self, X: Any) -> tuple[Array, Array]:
        predictive, lists = self._asked(X)
        return predictive.log_probability(lists)

    def predict_next(self, X: Any) -> Array:
        """Return P(next item | list).

        Parameters
        ----------
        X : top lists, as in :meth:`fit`

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
        X : top lists, as in :meth:`fit`
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

    def _expected_ranks(self, table: Any, n_samples: int, random_state: Any) -> RankSummary:
        return ListPredictive(self._fit).expected_ranks(as_top_lists(table), n_samples, random_state)

    def sample_completions(
        self, X: Any, size: int = 1, random_state: Any = None, *, length: int | None = None
    ) -> ListCompletions:
        """Draw continuations of each list, with their groups, independently from the posterior predictive.

        Parameters
        ----------
        X : top lists, as in :meth:`fit`
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

    def predict_pairwise(self, X: Any, pairs: Any = None, *, method: Method = "auto", **sampling: Any) -> Any:
        """Return P(a ≻ b | list).

        Parameters
        ----------
        X, pairs
            As in :meth:`permix.MallowsMixture.predict_pairwise`.
        method : {"auto", "exact", "sampled"}
            Exact given the draws, by recursion over the places that are left, or from sampled full rankings;
            "auto" is exact where that takes seconds.
        **sampling
            ``n_samples=400``, ``random_state=0`` and ``return_error=False``, as there.

        Returns
        -------
        ndarray (rows, items, items) with zeros on the diagonal, or ndarray (pairs,); or two of them
        """
        return predict_pairwise(*self._asked(X), pairs, method=method, **sampling)

    def sample(
        self, size: int = 1, random_state: Any = None, *, lengths: Any = None, return_labels: bool = False
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
        self._fitted()
        drawn = self._predictive.sample(size, lengths, random_state)
        return drawn if return_labels else drawn[0]

    def summary(self) -> pd.DataFrame:
        """Return size with interval, tightness and center of every group."""
        self._fitted()
        return self._summaries.group_table()

    def center(self, group: int, top: int | None = None) -> pd.DataFrame:
        """Return the items of one group in consensus order, with intervals of their ranks.

        Groups are counted from 0, the largest. Column ``in_top`` is P(rank ≤ top); ``top`` is by default the
        number of places that lists reach.
        """
        self._fitted()
        return self._summaries.center_table(group, self._summaries.length if top is None else top)

    def decays(self) -> pd.DataFrame:
        """Return the decay of every place in every group, with intervals and the lists that reach it."""
        self._fitted()
        return self._summaries.decay_table()


def _row_labels(fit: DPMallowsFit) -> Array:
    if fit.sampled_from is not None:
        raise AttributeError(
            "rows of data in shards are not here: permix.predict_shards(model, data, folder) writes "
            "their groups"
        )
    return fit.row_labels
