"""Mixtures of angle-based models of rankings, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from permix.angle import completions as angle_completions
from permix.angle import results as angle_results
from permix.angle.data import as_rankings
from permix.angle.fit import AngleFit, fit_as_asked
from permix.angle.parameters import AngleParameters, refuse_comparisons
from permix.angle.predictive import Method
from permix.angle.rows import row_log_probabilities, row_probabilities
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.data.shards.sharded import Sharded
from permix.errors import Argument, NoSuchAttribute
from permix.estimators.agent_answers import Completions
from permix.estimators.base import DrawsMixin, of_fitted
from permix.estimators.ranking_estimator import FiniteRankingMixture
from permix.estimators.score_shards import total_score
from permix.posterior.tree import to_datatree

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


class AngleMixture(DrawsMixin, FiniteRankingMixture, parameters=AngleParameters):
    """Groups of people, each with scores of the items and a concentration around them (Xu, Alvo & Yu 2018).

    P(ranking) ∝ exp(κ θ'y): y is the standardized rank vector, θ, the center, a unit vector of scores
    (small = preferred), κ the concentration. Unlike a central ranking, θ says how far apart items are.

    Attributes
    ----------
    weights_ : ndarray (n_components,)
        Share of each group, the largest first.
    directions_ : ndarray (n_components, items)
        Scores θ of the centers: unit vectors with sum zero; the item with the smallest entry is preferred.
    concentrations_ : ndarray (n_components,)
        κ: 0 = all rankings equally probable. Posterior means, or maximum likelihood. Predictions at
        point estimates take the posterior mean of κθ, which is shorter, the less sure the direction is.
    centers_ : Rankings
        The items of each group in the order of their scores.
    components_ : list of Angle
        Each group as a distribution of its own.
    labels_ : ndarray (rows,)
        Most probable group of every row fitted.
    normalizer_ : str
        "exact", "balanced" or "vmf": the normalizer that was used.
    normalizer_errors_ : list of Estimate
        By how much the true ln normalizing sum exceeds the one used; 0 where it is exact.
    log_likelihood_ : Estimate
        ln P(data) at the point estimates.
    elbo_ : float or None
        "vi": evidence lower bound. "quadrature" with one group: the log evidence itself,
        where κ above the largest value at which probabilities stay below one counts as impossible.
    history_ : DataFrame
        Log-likelihood or evidence bound after every pass.
    posterior_ : xarray.DataTree
        Draws in ArviZ's schema: ``weights``, ``concentrations``, ``directions``; ``labels`` of chains.
    converged_, n_iter_

    Notes
    -----
    Full rankings, top lists and rankings of a subset may be mixed, without ties. Groups of rows and answers
    about items are at the point estimates; completed rankings are by expected rank. For known classes use
    :class:`permix.AngleClassifier`.

    Draws from the posterior come from chains. Maximum likelihood draws completions, in ``n_burn_in +
    n_draws`` sweeps, for rankings of a subset of the items and for top lists of more than 20 items; full
    rankings and other top lists need none.

    Examples
    --------
    >>> import permix
    >>> orders = [["tea", "milk", "water"], ["tea", "water", "milk"], ["water", "milk", "tea"]]
    >>> votes = permix.Rankings.from_orders(orders, counts=[55, 15, 30])
    >>> model = permix.AngleMixture().fit(votes)
    >>> model.centers_
    Rankings: 1 agent over 3 items, full
      0: tea ≻ milk ≻ water
    >>> model.normalizer_
    'exact'
    >>> someone = permix.Rankings.from_orders([["milk", "tea"]], items=votes.items, unlisted="unknown")
    >>> model.complete(someone).orders[0].tolist() in ([1, 0, 2], [1, 2, 0], [2, 1, 0])
    True
    """

    _read = staticmethod(as_rankings)
    _fit_to = staticmethod(fit_as_asked)
    _warn_of = staticmethod(angle_results.warn_of)
    _n_samples = 400
    _takes_shards = True

    def _adopt(self, fit: AngleFit) -> Self:
        components = fit.components
        self._tree = None
        self.directions_ = components.directions
        self.concentrations_ = fit.concentrations
        self.centers_ = Rankings._from_arrays(components.orders, components.items)
        self.normalizer_ = components.normalizer
        self.elbo_ = fit.objective
        self.n_iter_ = max(len(fit.history), 1)
        return super()._adopt(fit)

    @property
    def history_(self) -> pd.DataFrame:
        """Log-likelihood or evidence bound after every pass of the best climb, or of every draw."""
        import pandas as pd

        fit = self._fitted()
        return pd.DataFrame({angle_results.objective_name(fit): np.asarray(fit.history)})

    normalizer_errors_ = of_fitted(
        lambda self: self._fit.normalizer_errors,
        "By how much the true ln normalizing sum exceeds the one used, by group.",
    )

    def _datatree(self, fit: AngleFit) -> xr.DataTree:
        from permix.sampling import Draws

        drawn = fit.posterior
        if drawn is None:
            raise NoSuchAttribute("EM finds one answer, not a posterior; use ", Argument("inference", "sir"))
        draws = fit.draws or Draws(drawn._asdict(), n_draws=drawn.weights.shape[1])
        return to_datatree(
            draws,
            dims={"weights": ["group"], "concentrations": ["group"], "directions": ["group", "item"]},
            coords={"group": np.arange(len(self.weights_)), "item": list(map(str, self.items_))},
        )

    def predict_proba(self, X: Any) -> Array:
        """Return P(group | what the row says), at the point estimates.

        ``X`` is as in :meth:`fit`, over the fitted items; the result has a row for each row.
        """
        return row_probabilities(self._fitted().components, self._new_data(X))

    def score_samples(
        self, X: Any, *, method: Method = "auto", random_state: Any = 0, return_error: bool = False
    ) -> Any:
        """Return ln P(what the row says), parameters integrated out where there is a posterior.

        Parameters
        ----------
        X : rankings, as in :meth:`fit`
        method : {"auto", "plug-in", "quadrature", "second-order"}
            "plug-in" takes the point estimates. "quadrature" integrates over the posterior ("vi":
            equation 13, direction in closed form; chains: average over draws). "second-order" is the closed
            form of section 3.2. "auto" is quadrature where there is a posterior. Rows that are not full get
            the plug-in value.
        random_state : int, SeedSequence, Generator or None
            For rows that leave so much open that their sum over rankings is estimated.
        return_error : bool
            Return ``(scores, errors)``: with Monte Carlo errors, 0 where the value is exact.
        """
        predictive = self._fitted().predictive
        scores, errors = predictive.log_densities(self._new_data(X), method, random_state)
        return (scores, errors) if return_error else scores

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log probability of an agent; a row counts as often as its count says.

        Refused under ``normalizer="vmf"``, as are the criteria below: its probabilities do not sum to one, so
        that they compare with nothing. :meth:`score_samples` has them as they are. Like :meth:`aic` and
        :meth:`bic` it takes data in shards (:func:`permix.read_sharded`), too.
        """
        self._comparable()
        if isinstance(X, Sharded):
            return total_score(self, X) / X.n_agents
        return super().score(X, y)

    def dic(self, X: Any) -> float:
        """Return the deviance information criterion on the data fitted; smaller is better."""
        return angle_results.criteria(self._comparable(), self._new_data(X), doubts=False).dic

    def waic(self, X: Any) -> float:
        """Return the widely applicable information criterion on the data fitted, as a deviance."""
        return angle_results.criteria(self._comparable(), self._new_data(X)).waic

    def criteria(self, X: Any) -> angle_results.Criteria:
        """Return DIC and WAIC with their effective numbers of parameters."""
        return angle_results.criteria(self._comparable(), self._new_data(X))

    def aic(self, X: Any) -> float:
        """Return Akaike's criterion at the point estimates; smaller is better."""
        return 2.0 * angle_results.n_parameters(self._comparable().components) - 2.0 * self._plug_in(X)[0]

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion at the point estimates; smaller is better."""
        total, n = self._plug_in(X)
        return float(np.log(n)) * angle_results.n_parameters(self._comparable().components) - 2.0 * total

    def _comparable(self) -> AngleFit:
        """Return the fit, if its probabilities sum to one."""
        fit: AngleFit = self._fitted()
        refuse_comparisons(fit.components.normalizer)
        return fit

    def _plug_in(self, X: Any) -> tuple[float, int]:
        if isinstance(X, Sharded):
            return total_score(self, X, method="plug-in"), X.n_agents
        rankings = self._new_data(X)
        values, _ = row_log_probabilities(self._fit.components, rankings)
        return float(rankings.counts @ values), rankings.n_agents

    def _pairwise(self, table: Any, pairs: Any, n_samples: int, random_state: Any) -> tuple[Array, Array]:
        components = self._fit.components
        before = angle_completions.predict_pairwise(components, table, pairs, n_samples, random_state)
        return before, np.sqrt(before * (1.0 - before) / n_samples)

    def _complete(self, table: Any, n_samples: int, random_state: Any, ranks: bool) -> Any:
        return angle_completions.complete(self._fit.components, table, n_samples, random_state)

    def sample_completions(self, X: Any, size: int = 1, random_state: Any = None) -> Completions:
        """Draw full rankings that agree with each row, with their groups.

        As :meth:`permix.MallowsMixture.sample_completions`; successive draws are nearly independent.
        """
        components = self._fitted().components
        return angle_completions.sample_completions(components, self._new_data(X), size, random_state)

    def consensus(self, interval: float = 0.9) -> pd.DataFrame:
        """Return the score of every item in the center of every group, with posterior intervals.

        Parameters
        ----------
        interval : float
            Posterior probability of the intervals.

        Returns
        -------
        DataFrame
            Columns ``group``, ``item``, ``rank``, ``score`` and, where there is a posterior, ``low``,
            ``high``, ``rank_low``, ``rank_high``.
        """
        return angle_results.consensus_table(self._fitted(), interval)

    def summary(self) -> pd.DataFrame:
        """Return share, agents, concentration with its 90 % interval, and the center of each group."""
        return angle_results.component_table(self._fitted())

    def diagnostics(self) -> pd.DataFrame:
        """Return how far to trust the fit: R-hat and ESS of draws; else what every start reached.

        Starts that end near the best have found the same optimum; where only one does, there may be a better
        one still.
        """
        return angle_results.diagnostics_table(self._fitted())
