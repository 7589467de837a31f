"""Mixtures of Mallows models from any kind of preference, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.utils.metadata_routing import UNUSED

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.agent_weights.model import AgentWeights
from permix.estimators.agent_answers import Completions, starts_table
from permix.estimators.agent_weights.rows import coefficient_frame, share_frame
from permix.estimators.ranking_estimator import FiniteRankingMixture
from permix.mallows import predict as mallows_predict
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters
from permix.mallows.results import MallowsFit, component_table, warn_if_unsettled

if TYPE_CHECKING:
    import pandas as pd


class MallowsMixture(FiniteRankingMixture, parameters=MallowsParameters):
    """Groups of people, each with a typical ranking and a spread around it (Lu & Boutilier 2014).

    Attributes
    ----------
    weights_ : ndarray (n_components,)
        Share of each group, the largest first.
    centers_ : Rankings
        The central ranking of each group.
    dispersions_ : ndarray (n_components,)
        0 = always the center, 1 = all rankings equally probable.
    components_ : list of Mallows
        Each group as a distribution of its own.
    labels_ : ndarray (rows,)
        Most probable group of every row fitted.
    log_likelihood_ : Estimate
        ln P(data); ``log_likelihood_.standard_error`` is its Monte Carlo error, 0 where the fit was exact.
    history_ : DataFrame
        Log-likelihood and its error after each iteration of the best run.
    start_log_likelihoods_ : ndarray
        What each start reached; scaled to all agents where starts were tried on a part of very many.
    n_iter_, converged_
        Iterations of the best run, and whether it settled.
    coefficients_, weights_by_ : DataFrame
        With ``weights_by``: log-odds of each group against the first, by column; and the share of each
        group if all agents had one value and kept all else. Both with intervals from 5 % to 95 %, centers
        taken as known.

    Notes
    -----
    Full rankings, top lists and levels of all items have closed-form likelihoods, so fits to them are
    exact EM without Monte Carlo noise; for everything else EM averages over rankings sampled from each
    agent's posterior. An array's rows are orderings, best first, padded by -1; its items are the numbers
    found in it. Completed rankings are the consensus of the row's posterior: the least expected number of
    pairs put the wrong way.

    With ``distance`` other than kendall EM and all answers are exact sums over the full rankings that agree
    with what an agent said, which are listed; data that agree with too many of them are refused. The centers
    of footrule, spearman and hamming are the best for the agents of a group; those of cayley and ulam are
    searched for from several starts. ``dispersions_`` are per unit of the distance.

    With ``weights_by`` the shares of groups depend on columns known of the agents (``with_covariates``),
    which new data need, too. Starts are tried without the columns; the best goes on with them, so that all
    parameters are those of a maximum of the likelihood with the columns.

    Examples
    --------
    >>> import permix
    >>> orders = [["tea", "milk", "water"], ["tea", "water", "milk"], ["water", "milk", "tea"]]
    >>> votes = permix.Rankings.from_orders(orders, counts=[50, 20, 30])
    >>> model = permix.MallowsMixture(2, random_state=0).fit(votes)
    >>> model.centers_
    Rankings: 2 agents over 3 items, full
      0: tea ≻ milk ≻ water
      1: water ≻ milk ≻ tea
    >>> someone = permix.Preferences.from_pairs([("anna", "water", "milk")], items=votes.items)
    >>> model.predict_proba(someone).round(2)
    array([[0.23, 0.77]])
    >>> model.predict_pairwise(someone, [(0, "water", "milk"), (0, "tea", "milk")]).round(2)
    array([1.  , 0.23])
    """

    # Settings of an answer, not data that pipelines and searches would pass along.
    __metadata_request__predict_proba: ClassVar = {"n_samples": UNUSED, "random_state": UNUSED}
    _fit_to = staticmethod(fit_mallows)
    _warn_of = staticmethod(warn_if_unsettled)
    _n_samples = 200
    _takes_shards = True

    def _adopt(self, fit: MallowsFit) -> Self:
        components = fit.components
        self.centers_ = Rankings._from_arrays(components.centers, components.items)
        self.dispersions_ = components.dispersions
        self.start_log_likelihoods_ = fit.start_log_likelihoods
        self.n_iter_ = fit.n_iterations
        return super()._adopt(fit)

    @property
    def history_(self) -> pd.DataFrame:
        """Log-likelihood and its Monte Carlo error after each iteration of the best run."""
        import pandas as pd

        return pd.DataFrame(self._fitted().history, columns=["log_likelihood", "standard_error"])

    @property
    def coefficients_(self) -> pd.DataFrame:
        """Coefficients of the columns that weights depend on, with intervals."""
        return coefficient_frame(self._by_agent("coefficients_"))

    @property
    def weights_by_(self) -> pd.DataFrame:
        """Shares of groups if all agents had one value of a column, with intervals."""
        return share_frame(self._by_agent("weights_by_"))

    def _by_agent(self, name: str) -> AgentWeights:
        found: AgentWeights | None = self._fitted().components.by_agent
        if found is None:
            raise AttributeError(
                f"{name} is there with weights_by=[...] alone: all agents have the same shares"
            )
        return found

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
            Return ``(scores, errors)``: with Monte Carlo errors, 0 where the value is exact.
        """
        table = self._new_data(X)
        scores, errors = mallows_predict.score_samples(self._fit.components, table, n_samples, random_state)
        return (scores, errors) if return_error else scores

    def _pairwise(self, table: Any, pairs: Any, n_samples: int, random_state: Any) -> Any:
        options = {"n_samples": n_samples, "random_state": random_state, "return_error": True}
        return mallows_predict.predict_pairwise(self._fit.components, table, pairs, **options)

    def _complete(self, table: Any, n_samples: int, random_state: Any, ranks: bool) -> Any:
        options = {"n_samples": n_samples, "random_state": random_state, "return_ranks": ranks}
        completed = mallows_predict.complete(self._fit.components, table, **options)
        return completed if ranks else (completed, None)

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

    def diagnostics(self) -> pd.DataFrame:
        """Return how far to trust the fit: what every start reached, and how far that is from the best.

        ``same_optimum`` says which starts reached the optimum that was kept: within 1e-5 nats for each agent,
        and twice the Monte Carlo error. Where only one did, there may be a better one still. The table's
        ``attrs["verdict"]`` says so in words.
        """
        fit = self._fitted()
        table = starts_table("log_likelihood", fit.start_log_likelihoods)
        table["same_optimum"] = fit.at_best
        table.attrs["verdict"] = fit.verdict
        return table

    def summary(self) -> pd.DataFrame:
        """Return share, 90 % interval, expected agents, dispersion, expected distance and center by group."""
        return component_table(self._fitted())
