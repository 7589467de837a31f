"""Bayesian Mallows models, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from permix.bayes_mallows import completions
from permix.bayes_mallows import predict as answers
from permix.bayes_mallows.by_agent.summary import drawn_weights
from permix.bayes_mallows.consensus import (
    before,
    consensus_table,
    credible_table,
    named_matrix,
    rank_probabilities,
)
from permix.bayes_mallows.data import as_statements
from permix.bayes_mallows.fit import BayesianMallowsFit, fit_bayes_mallows
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.bayes_mallows.results import GroupSummaries
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.agent_weights.drawn import DrawnWeights
from permix.distributions.base import sample_size, whole_number
from permix.errors import Argument, DataError
from permix.estimators.agent_answers import Completions, RankSummary
from permix.estimators.agent_weights.rows import coefficient_frame, share_frame
from permix.estimators.base import DrawsMixin, of_fitted
from permix.estimators.preference_input import as_preferences
from permix.estimators.ranking_estimator import RankingMixture, RecommendMixin
from permix.runtime.seeds import generator

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from permix.bayes_mallows.information import Criterion

UPDATE_COLUMNS = [
    *("update", "chain", "new_agents", "changed_agents", "draws"),
    *("drawn_anew", "effective_size", "log_evidence"),
]


class BayesianMallowsMixture(
    DrawsMixin, RecommendMixin, RankingMixture, parameters=BayesianMallowsParameters
):
    """Groups of people with a central ranking and a spread each, with all that is not known about them.

    Rankings are around the center of their group by one of six distances: P(ranking) ∝ dispersion^distance.
    Markov chains draw centers, dispersions, shares, who belongs where, and the full rankings behind what
    agents left open (Vitelli et al. 2018). Comparisons may be taken at their word, or be wrong at rates that
    are estimated (Crispino et al. 2019).

    Attributes
    ----------
    labels_ : ndarray (rows,)
        Most probable group of every row fitted; group 0 is the largest. Rows that say the same are alike.
    n_clusters_ : int
        Number of groups in the point estimate; its posterior is ``posterior_["posterior"]["n_groups"]``.
    cluster_sizes_, weights_ : ndarray (groups,)
        Agents of each group in the point estimate, and its posterior mean share of the population.
    centers_ : Rankings
        Consensus ranking of each group, by expected rank; :meth:`center` has its uncertainty.
    dispersions_ : ndarray (groups,)
        Posterior mean dispersion of each group: 0 = always the center, 1 = all rankings equally probable.
    error_rate_ : float
        With errors, the posterior mean share of comparisons that are wrong: of all, or of two neighbors if
        errors are logistic.
    point_estimate_ : PointEstimate
        The partition of the agents that is nearest to all draws, with its expected loss. A row with a count
        stands for that many agents, in the order of ``Preferences.expand()``. Where a number of groups is
        given and this partition has fewer than draws do, the most probable group of each agent.
    posterior_ : xarray.DataTree
        All draws in ArviZ's schema: ``labels`` over chain, draw, observation (the agents); ``n_groups``,
        ``dispersion`` (mean over agents of that of their group), ``log_joint``, ...; and of groups, as
        ``labels`` count them, ``group_sizes``, ``group_shares``, ``group_decays`` (-ln dispersion) and
        ``group_centers``, padded where draws have fewer groups.
    coefficients_, weights_by_ : DataFrame
        With ``weights_by``: posterior means and 90 % intervals of the log-odds of each group against the
        first, by column; and of the share of each group if all agents had one value. ``attrs["verdict"]``
        says whether shares depend on the columns. Predictions need these columns of new agents.
    log_likelihood_ : Estimate
        Posterior mean of ln p(full rankings, comparisons | groups);
        ``log_likelihood_.standard_error`` is its Monte Carlo error.

    Notes
    -----
    Rankings, top lists, rankings of some items, ties, ratings and comparisons may be mixed. An array's rows
    are orderings, best first, padded by -1; what a row leaves out is below. Without ``errors``, agents who
    contradict themselves are refused; with them, a comparison stated twice counts twice.

    Groups that nobody is in are not in draws; a new agent may be of one all the same.

    Examples
    --------
    >>> import permix
    >>> orders = [["tea", "milk", "water"], ["tea", "water", "milk"], ["water", "milk", "tea"]]
    >>> votes = permix.Rankings.from_orders(orders, counts=[50, 20, 3])
    >>> model = permix.BayesianMallowsMixture(n_draws=300, random_state=0).fit(votes)
    >>> model.centers_
    Rankings: 1 agent over 3 items, full
      0: tea ≻ milk ≻ water
    >>> bool(0.2 < model.dispersions_[0] < 0.4)
    True
    """

    _fit_to = staticmethod(fit_bayes_mallows)
    _summaries: GroupSummaries

    def _adopt(self, fit: BayesianMallowsFit) -> Self:
        self._fit = fit
        self._summaries = GroupSummaries(fit)
        self._tree = None
        self.items_ = fit.items
        self.point_estimate_ = fit.estimate
        self.n_clusters_ = fit.n_clusters
        self.cluster_sizes_ = fit.cluster_sizes
        self.log_likelihood_ = fit.log_likelihood
        return self

    labels_ = of_fitted(lambda self: self._fit.row_labels, "Most probable group of every row fitted.")
    weights_ = of_fitted(lambda self: self._summaries.shares, "Posterior mean share of each group.")
    centers_ = of_fitted(lambda self: self._summaries.centers, "Consensus ranking of each group.")
    dispersions_ = of_fitted(lambda self: self._summaries.dispersions, "Mean dispersion of each group.")

    def _read_table(self, table: Any, items: Any = None) -> Any:
        """Return data as this model takes them: contradictions are for models of errors."""
        soft = self.get_params(deep=False)["errors"] is not None
        return (as_statements if soft else as_preferences)(table, items)

    def _data_to_check(self, X: Any) -> Any:
        return None if X is None else self._new_data(X)

    @property
    def error_rate_(self) -> float:
        """Posterior mean share of comparisons that are wrong."""
        arrays = self._fitted().draws.arrays
        if "error_rate" in arrays:
            return float(arrays["error_rate"].mean())
        if "error_level" in arrays:
            return float((1.0 / (1.0 + np.exp(arrays["error_level"]))).mean())
        raise AttributeError("comparisons were taken at their word; there are rates with errors='bernoulli'")

    @property
    def coefficients_(self) -> pd.DataFrame:
        """Coefficients of the columns that shares depend on, with intervals."""
        return coefficient_frame(self._by_columns("coefficients_"))

    @property
    def weights_by_(self) -> pd.DataFrame:
        """Shares of groups if all agents had one value of a column, with intervals."""
        return share_frame(self._by_columns("weights_by_"))

    def _by_columns(self, name: str) -> DrawnWeights:
        found = drawn_weights(self._fitted())
        if found is None:
            raise AttributeError(
                f"{name} is there with weights_by=[...] alone: all agents have the same shares"
            )
        return found

    def agent_errors(self) -> pd.DataFrame:
        """Return how often each agent errs: who is careless.

        Returns
        -------
        DataFrame
            A row for each agent, who errs most first: ``agent``, ``comparisons``,
            ``rate`` (of neighbors, if errors are logistic) with ``low`` and ``high``, 5 % and 95 % points;
            ``careless``: whether the rate is above twice that of all agents, and above 10 %, with
            probability 0.95.
        """
        from permix.bayes_mallows.careless import agent_error_table

        fit = self._fitted()
        if not fit.settings.errors_per_agent:
            raise DataError("agents have rates of their own with ", Argument("errors_per_agent", True))
        return agent_error_table(fit)

    def predict_proba(self, X: Any, *, random_state: Any = 0) -> Array:
        """Return P(group | what the row says) of each group for a new agent.

        Averaged over draws, each counted by how probable it makes the row. ``X`` is as in :meth:`fit`, over
        the fitted items; the result is (rows, groups). With :meth:`predict_novelty`, rows sum to one.
        ``random_state`` is for rows without an exact way.
        """
        return np.asarray(answers.assign(self._fitted(), self._new_data(X), random_state)[:, :-1])

    def predict_novelty(self, X: Any, *, random_state: Any = 0) -> Array:
        """Return the probability that each row comes from a group that the data did not have.

        With those of :meth:`predict_proba` it sums to one.
        """
        return np.asarray(answers.assign(self._fitted(), self._new_data(X), random_state)[:, -1])

    def n_possible_groups(self) -> Array:
        """Return the posterior of the number of groups in the population, those without agents included.

        Entry k is the probability of k groups. Only a mixture of finite mixtures
        (``n_components="mfm"``) has such a number.
        """
        probabilities = self._fitted().n_possible_groups
        if probabilities is None:
            raise DataError("only ", Argument("n_components", "mfm"), " has a number of possible groups")
        return np.asarray(probabilities)

    def _log_densities(self, X: Any) -> tuple[Array, Array]:
        return answers.log_probability(self._fitted(), self._new_data(X))

    def update(
        self,
        X: Any,
        *,
        same_agents: bool = True,
        n_particles: int = 200,
        n_moves: int = 2,
        random_state: Any = 0,
    ) -> Self:
        """Take in new agents, and more answers from known ones, without fitting again.

        Draws are weighted by how probable they make what comes in, drawn anew by their weights where these
        become too different, and moved by the moves of a fit, given all that came in (sequential Monte
        Carlo).
        The posterior is that of a fit to all data together, for a fraction of the work if the batch is small.
        The draws of each chain are followed apart, so that :meth:`diagnostics` tells whether they agree.

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
            As in :meth:`fit`, over the fitted items. Rows of new agents follow those that were fitted.
        same_agents : bool
            Whether a row whose agent has the name of one that was fitted says more of that agent; if not, all
            rows are new agents. Rows without names always are.
        n_particles : int
            Draws of each chain that follow, at most; so many are kept.
        n_moves : int
            Iterations of the moves of a fit, for each draw, after draws were drawn anew.
        random_state : int, SeedSequence, Generator or None

        Returns
        -------
        self
            ``updates_`` tells how it went: a warning says when draws were too far from what came in.
        """
        from permix.bayes_mallows.following.follow import updated

        particles, moves = whole_number("n_particles", n_particles, 2), whole_number("n_moves", n_moves, 1)
        given = (same_agents, particles, moves, random_state)
        return self._adopt(updated(self._fitted(), self._new_data(X), *given))

    def waic(self) -> float:
        """Return the widely applicable information criterion on the agents fitted, as a deviance.

        Smaller is better. Rankings and groups of agents are summed out; beyond six items, comparisons and
        rankings of some items are scored by 32 draws, which adds noise: then prefer agents held out
        (:func:`permix.select_components`).
        """
        from permix.bayes_mallows.information import waic

        return waic(self._fitted()).deviance

    def loo(self) -> Criterion:
        """Return ln P(agent | the others), summed over agents, by weighing draws.

        Returns
        -------
        Criterion
            ``log_density``, larger is better, and its ``standard_error`` over agents; ``deviance``, which is
            -2 × that; ``n_parameters``, effective ones; ``pointwise``, of an agent of each row.
        """
        from permix.bayes_mallows.information import leave_one_out

        return leave_one_out(self._fitted())

    @property
    def updates_(self) -> pd.DataFrame:
        """What each :meth:`update` took in, and how well draws of each chain followed it.

        A row for each update and chain: ``new_agents``; ``changed_agents``, who said more than before;
        ``draws``; ``drawn_anew``, how often; ``effective_size``, how many equal weights the draws were worth
        at least; ``log_evidence``, ln P(what came in | the data before), estimated. Chains that disagree
        about it want more particles.
        """
        import pandas as pd

        rows = [
            {
                "update": at,
                "chain": chain,
                "new_agents": each.new_agents,
                "changed_agents": each.changed_agents,
                "draws": each.n_particles,
                "drawn_anew": each.n_steps[chain],
                "effective_size": each.effective_size[chain],
                "log_evidence": each.log_evidence[chain],
            }
            for at, each in enumerate(self._fitted().followed)
            for chain in range(len(each.n_steps))
        ]
        return pd.DataFrame(rows, columns=UPDATE_COLUMNS)

    def summary(self) -> pd.DataFrame:
        """Return size, share and dispersion with intervals, and the center, of every group."""
        self._fitted()
        return self._summaries.group_table()

    def center(self, group: int, top: int = 3) -> pd.DataFrame:
        """Return the items of one group in consensus order, with intervals of their ranks in its center.

        Groups are counted from 0, the largest. Column ``in_top`` is P(rank ≤ top).
        """
        self._fitted()
        return self._summaries.center_table(group, top)

    def consensus(self, group: int = 0, by: str = "expected-rank") -> pd.DataFrame:
        """Return one ranking for the center of a group.

        Parameters
        ----------
        group : int
            Counted from 0, the largest.
        by : {"expected-rank", "cumulative", "most-probable", "least-distance"}
            Items by their expected rank in the center, as in ``centers_``; places filled from the first on,
            each with the item that is most probably there or above; the center that most draws have; or the
            ranking from which the center is least far on average, by the distance of the model.

        Returns
        -------
        DataFrame
            ``item``; ``expected_rank``; ``at_rank`` and ``up_to_rank``, P(the item has this rank, or a better
            one, in the center). ``attrs`` has the ``probability`` that the center is just this ranking, and
            its ``expected_distance`` from it.
        """
        self._fitted()
        return consensus_table(self._summaries, group, by)

    def credible_set(self, group: int = 0, probability: float = 0.9) -> pd.DataFrame:
        """Return the fewest rankings that hold the center of a group with a probability, as draws have it.

        A row for each: ``center``, its ``probability``, and that of all ``together`` so far. Where so many
        centers are possible that draws hardly repeat, ``attrs["note"]`` says so.
        """
        self._fitted()
        return credible_table(self._summaries, group, probability)

    def rank_probabilities(self, group: int = 0) -> pd.DataFrame:
        """Return P(item has this rank in the center of a group), an item a row, in consensus order."""
        self._fitted()
        values = rank_probabilities(self._summaries, self._summaries.check(group))
        return named_matrix(self._summaries, group, values, range(1, len(self.items_) + 1), "rank")

    def center_pairwise(self, group: int = 0) -> pd.DataFrame:
        """Return P(the center of a group has the item of the row above that of the column)."""
        self._fitted()
        values = before(self._summaries, self._summaries.check(group))
        return named_matrix(self._summaries, group, values, None, "above")

    def assignments(self) -> pd.DataFrame:
        """Return the group of each row that was fitted, and how sure that is.

        ``agent``; ``group``, the most probable; ``how_sure``, its probability; and the probability of each
        group, ``group_0`` and on.
        """
        import pandas as pd

        fit = self._fitted()
        shares = {f"group_{e}": fit.probabilities[:, e] for e in range(fit.n_clusters)}
        of_row = {"group": fit.row_labels, "how_sure": fit.probabilities.max(axis=1), **shares}
        return pd.DataFrame({"agent": fit.preferences.agents, **of_row})

    # What agents leave open.

    def sample_completions(self, X: Any, size: int = 1, *, random_state: Any = 0) -> Completions:
        """Draw full rankings of agents from P(ranking, group | what the row says, the data).

        Where comparisons may be wrong, they need not agree with all of them. Equal rows have equal draws.

        Returns
        -------
        Completions
            ``orders`` (rows, draws, items); ``labels``, the estimated group of each, -1 for one that the data
            did not have; ``exact``, whether draws of a row are independent and exactly from the posterior.
            Others are from chains of their own, each of which begins near it.
        """
        table = self._new_data(X)
        drawn = completions.draw_rankings_of(self._fitted(), table, size, random_state)
        orders = np.argsort(drawn.ranks, axis=2).astype(np.int32)
        return Completions(orders, drawn.labels, drawn.exact, np.full(len(table), np.nan), table)

    def complete(
        self,
        X: Any,
        *,
        n_samples: int = completions.N_SAMPLES,
        random_state: Any = 0,
        return_ranks: bool = False,
    ) -> Any:
        """Return the full ranking of each row by expected rank, which agrees with what it says for certain.

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
            As in :meth:`fit`, over the fitted items.
        n_samples : int
            Rankings drawn of each row.
        random_state : int, SeedSequence, Generator or None
        return_ranks : bool
            Return expected ranks with 5 % to 95 % ranges as well.

        Returns
        -------
        Rankings, or (Rankings, RankSummary)
        """
        found = completions.complete(self._fitted(), self._new_data(X), n_samples, random_state)
        return found if return_ranks else found[0]

    def predict_top(
        self, X: Any, k: int, *, n_samples: int = completions.N_SAMPLES, random_state: Any = 0
    ) -> Array:
        """Return P(item is among the first ``k`` in the row's full ranking), (rows, items)."""
        return completions.in_top(self._fitted(), self._new_data(X), k, n_samples, random_state)

    def predict_pairwise(
        self,
        X: Any,
        pairs: Any = None,
        *,
        n_samples: int = completions.N_SAMPLES,
        random_state: Any = 0,
        return_error: bool = False,
    ) -> Any:
        """Return P(a ≻ b in the row's full ranking | what the row says).

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
        pairs : array or list of (row, a, b), optional
            Rows of ``X``, counted from 0, and items by name. Left out, all pairs for all rows.
        n_samples, random_state
            As in :meth:`complete`.
        return_error : bool
            Return Monte Carlo errors as well.

        Returns
        -------
        ndarray (rows, items, items) with zeros on the diagonal, or ndarray (pairs,); or two of them
        """
        given = (self._fitted(), self._new_data(X), pairs, n_samples, random_state)
        means, errors, _ = completions.pairwise(*given)
        return (means, errors) if return_error else means

    def _expected_ranks(self, table: Any, n_samples: int, random_state: Any) -> RankSummary:
        return completions.complete(self._fitted(), table, n_samples, random_state)[1]

    def sample(self, size: int = 1, random_state: Any = None, *, return_labels: bool = False) -> Any:
        """Draw full rankings of new agents, each from a posterior draw of its own.

        Parameters
        ----------
        size : int
            How many.
        random_state : int, SeedSequence, Generator or None
        return_labels : bool
            Return the estimated group of each as well, -1 for one that the data did not have.

        Returns
        -------
        Rankings, or (Rankings, ndarray of int)
        """
        fit = self._fitted()
        orders, labels = answers.draw_rankings(fit, sample_size(size), generator(random_state))
        drawn = Rankings._from_arrays(orders, fit.items)
        return (drawn, labels) if return_labels else drawn

    def _datatree(self, fit: BayesianMallowsFit) -> xr.DataTree:
        from permix.posterior import to_datatree

        per_agent = [name for name in fit.draws.arrays if name.startswith("agent_")]
        dims = {name: ["group"] for name in ("group_sizes", "group_shares", "group_decays")}
        if "coefficients" in fit.draws.arrays:
            dims["coefficients"] = ["column", "component"]
        dims |= {"group_centers": ["place", "group"], **{name: ["observation"] for name in per_agent}}
        return to_datatree(fit.draws, dims=dims)
