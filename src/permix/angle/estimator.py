"""Mixtures of angle-based models of rankings, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from permix.angle import completions as angle_completions
from permix.angle import results as angle_results
from permix.angle.data import as_rankings
from permix.angle.fit import AngleFit, fit_angle
from permix.angle.parameters import AngleParameters
from permix.angle.predictive import Method
from permix.angle.rows import row_log_probabilities, row_probabilities
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.angle.angle import Angle
from permix.distributions.base import Estimate
from permix.errors import Argument, DataError, Message
from permix.estimators.agent_answers import Completions
from permix.estimators.ranking_estimator import RankingMixture

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


class AngleMixture(ClusterMixin, RankingMixture, parameters=AngleParameters):  # type: ignore[misc]
    """Groups of people, each with scores of the items and a concentration around them (Xu, Alvo & Yu 2018).

    P(ranking) ∝ exp(κ θ'y): y is the standardized rank vector, θ a unit vector of consensus scores (small =
    preferred), κ the concentration. Unlike a central ranking, θ says how far apart items are.

    Attributes
    ----------
    weights_ : ndarray (n_components,)
        Share of each group, the largest first.
    directions_ : ndarray (n_components, items)
        Consensus scores θ: unit vectors with sum zero; the item with the smallest entry is preferred.
    concentrations_ : ndarray (n_components,)
        κ: 0 = all rankings alike. Posterior means, or maximum likelihood. Predictions at point estimates take
        the posterior mean of κθ, which is shorter, the less sure the direction is.
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
    converged_, n_iter_, items_, n_features_in_

    Notes
    -----
    Draws from the posterior come from chains. Maximum likelihood draws completions, in ``n_burn_in +
    n_draws`` sweeps, for rankings of a subset of the items and for top lists of more than 20 items; full
    rankings and other top lists need none.

    Examples
    --------
    >>> import permix
    >>> votes = permix.Rankings.from_orders(
    ...     [["tea", "milk", "water"], ["tea", "water", "milk"], ["water", "milk", "tea"]],
    ...     counts=[55, 15, 30],
    ... )
    >>> model = permix.AngleMixture().fit(votes)
    >>> model.centers_
    Rankings: 1 agent over 3 items, full
      0: tea ≻ milk ≻ water
    >>> model.normalizer_
    'exact'
    """

    # Settings of an answer, not data that pipelines and searches would pass along.
    __metadata_request__score_samples: ClassVar = {
        "method": UNUSED,
        "random_state": UNUSED,
        "return_error": UNUSED,
    }

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : Rankings, Preferences without ties, or 2-D integer array
            Full rankings, top lists and rankings of a subset in any mixture. Rows of an array are orderings,
            best first, padded by -1; what a row leaves out is below.
        y : ignored
            For known classes use :class:`permix.AngleClassifier`.

        Returns
        -------
        self
        """
        settings = self._settings()
        fit = fit_angle(as_rankings(self._checked(X, reset=True)), settings)
        angle_results.warn_of(fit)
        return self._adopt(fit)

    def _adopt(self, fit: AngleFit) -> Self:
        """Show a fit under scikit-learn's names."""
        components = fit.components
        self._fit = fit
        self._tree: xr.DataTree | None = None
        self.items_ = components.items
        self.weights_ = components.weights
        self.directions_ = components.directions
        self.concentrations_ = fit.concentrations
        self.centers_ = Rankings._from_arrays(components.orders, components.items)
        self.labels_ = fit.labels
        self.normalizer_ = components.normalizer
        self.log_likelihood_ = fit.log_likelihood
        self.elbo_ = fit.objective
        self.n_iter_ = max(len(fit.history), 1)
        self.converged_ = fit.converged
        return self

    @property
    def history_(self) -> pd.DataFrame:
        """Log-likelihood or evidence bound after every pass of the best climb, or of every draw."""
        import pandas as pd

        fit = self._fitted()
        return pd.DataFrame({angle_results.objective_name(fit): np.asarray(fit.history)})

    @property
    def components_(self) -> list[Angle]:
        """Each group as a distribution of its own."""
        check_is_fitted(self)
        return [self._fit.components.component(k) for k in range(len(self.weights_))]

    @property
    def normalizer_errors_(self) -> list[Estimate]:
        """By how much the true ln normalizing sum exceeds the one used, by group."""
        check_is_fitted(self)
        return self._fit.normalizer_errors

    @property
    def posterior_(self) -> xr.DataTree:
        """Draws of the parameters in ArviZ's schema; EM has none."""
        from permix.posterior.tree import to_datatree
        from permix.sampling import Draws

        check_is_fitted(self)
        if self._tree is None:
            drawn = self._fit.posterior
            if drawn is None:
                raise DataError(
                    Message("EM finds one answer, not a posterior; use ", Argument("inference", "sir"))
                )
            draws = self._fit.draws or Draws(
                {name: getattr(drawn, name) for name in ("weights", "concentrations", "directions")},
                n_draws=drawn.weights.shape[1],
            )
            names = list(map(str, self.items_))
            self._tree = to_datatree(
                draws,
                dims={
                    "weights": ["group"],
                    "concentrations": ["group"],
                    "directions": ["group", "item"],
                },
                coords={"group": np.arange(len(self.weights_)), "item": names},
            )
        return self._tree

    def _new_rankings(self, X: Any) -> Rankings:
        check_is_fitted(self)
        return as_rankings(self._checked(X, reset=False), self.items_)

    def predict_proba(self, X: Any) -> Array:
        """Return P(group | what the row says), at the point estimates.

        Parameters
        ----------
        X : Rankings, Preferences without ties, or 2-D integer array

        Returns
        -------
        ndarray (rows, n_components)
        """
        rankings = self._new_rankings(X)
        return row_probabilities(self._fit.components, rankings)

    def score_samples(
        self, X: Any, *, method: Method = "auto", random_state: Any = 0, return_error: bool = False
    ) -> Any:
        """Return ln P(what the row says), parameters integrated out where there is a posterior.

        Parameters
        ----------
        X : Rankings, Preferences without ties, or 2-D integer array
        method : {"auto", "plug-in", "quadrature", "second-order"}
            "plug-in" takes the point estimates. "quadrature" integrates over the posterior ("vi":
            equation 13, direction in closed form; chains: average over draws). "second-order" is the closed
            form of section 3.2. "auto" is quadrature where there is a posterior. Rows that are not full get
            the plug-in value.
        random_state : int, SeedSequence, Generator or None
            For rows that leave so much open that their sum over rankings is estimated.
        return_error : bool
            Return the Monte Carlo errors as well, 0 where the value is exact.

        Returns
        -------
        ndarray (rows,), or two of them
            Each row once, whatever its count.
        """
        rankings = self._new_rankings(X)
        scores, errors = self._fit.predictive.log_densities(rankings, method, random_state)
        return (scores, errors) if return_error else scores

    def dic(self, X: Any) -> float:
        """Return the deviance information criterion on the data fitted; smaller is better."""
        return angle_results.criteria(self._fitted(), self._new_rankings(X), doubts=False).dic

    def waic(self, X: Any) -> float:
        """Return the widely applicable information criterion on the data fitted, as a deviance."""
        return angle_results.criteria(self._fitted(), self._new_rankings(X)).waic

    def criteria(self, X: Any) -> angle_results.Criteria:
        """Return DIC and WAIC with their effective numbers of parameters."""
        return angle_results.criteria(self._fitted(), self._new_rankings(X))

    def aic(self, X: Any) -> float:
        """Return Akaike's criterion at the point estimates; smaller is better."""
        return 2.0 * angle_results.n_parameters(self._fitted().components) - 2.0 * self._plug_in(X)[0]

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion at the point estimates; smaller is better."""
        total, n = self._plug_in(X)
        return float(np.log(n)) * angle_results.n_parameters(self._fitted().components) - 2.0 * total

    def _plug_in(self, X: Any) -> tuple[float, int]:
        rankings = self._new_rankings(X)
        values, _ = row_log_probabilities(self._fit.components, rankings)
        return float(rankings.counts @ values), rankings.n_agents

    def _fitted(self) -> AngleFit:
        check_is_fitted(self)
        return self._fit

    def predict_pairwise(
        self, X: Any, pairs: Any = None, *, n_samples: int = 400, random_state: Any = 0
    ) -> Array:
        """Return P(a ≻ b | what the row says), at the point estimates.

        Parameters
        ----------
        X : Rankings, Preferences without ties, or 2-D integer array
        pairs : array or list of (row, a, b), optional
            Rows of ``X``, counted from 0, and items by name. Left out, all pairs for all rows.
        n_samples : int
            Completions averaged over.
        random_state : int, SeedSequence, Generator or None
            For those.

        Returns
        -------
        ndarray (rows, items, items) with zeros on the diagonal, or ndarray (pairs,)
        """
        rankings = self._new_rankings(X)
        return angle_completions.predict_pairwise(
            self._fit.components, rankings, pairs, n_samples, random_state
        )

    def complete(
        self, X: Any, *, n_samples: int = 200, random_state: Any = 0, return_ranks: bool = False
    ) -> Any:
        """Return the full ranking of each row by expected rank; it agrees with what the row says.

        Parameters
        ----------
        X : Rankings, Preferences without ties, or 2-D integer array
        n_samples, random_state
            As in :meth:`predict_pairwise`.
        return_ranks : bool
            Return expected ranks with 5 % to 95 % ranges as well.

        Returns
        -------
        Rankings, or (Rankings, RankSummary)

        Examples
        --------
        >>> import permix
        >>> made = permix.datasets.make_angle_mixture(200, 5, 1, concentration=20.0, random_state=1)
        >>> model = permix.AngleMixture().fit(made.data)
        >>> someone = permix.Rankings.from_orders([[3, 1]], n_items=5, unlisted="unknown")
        >>> completed = model.complete(someone)
        >>> order = completed.orders[0].tolist()
        >>> order.index(3) < order.index(1)
        True
        """
        completed, ranks = angle_completions.complete(
            self._fitted().components, self._new_rankings(X), n_samples, random_state
        )
        return (completed, ranks) if return_ranks else completed

    def sample_completions(self, X: Any, size: int = 1, random_state: Any = None) -> Completions:
        """Draw full rankings that agree with each row, with their groups.

        Parameters
        ----------
        X : Rankings, Preferences without ties, or 2-D integer array
        size : int
            Draws per row; successive ones are nearly independent.
        random_state : int, SeedSequence, Generator or None

        Returns
        -------
        Completions
            ``orders`` (rows, draws, items), ``labels`` (rows, draws), and ``to_rankings()``.
        """
        rankings = self._new_rankings(X)
        return angle_completions.sample_completions(self._fit.components, rankings, size, random_state)

    def sample(self, size: int = 1, random_state: Any = None, *, return_labels: bool = False) -> Any:
        """Draw full rankings of new agents.

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
        rankings, labels = angle_results.sample_rankings(self._fitted().components, size, random_state)
        return (rankings, labels) if return_labels else rankings

    def consensus(self, interval: float = 0.9) -> pd.DataFrame:
        """Return the consensus score of every item in every group, with posterior intervals.

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
        """Return weight, agents, concentration with its 90 % interval, and consensus ranking by group."""
        return angle_results.component_table(self._fitted())

    def diagnostics(self) -> pd.DataFrame:
        """Return how far to trust the fit: R-hat and ESS of draws; else what every start reached.

        Starts that end near the best have found the same optimum; where only one does, there may be a better
        one still.
        """
        return angle_results.diagnostics_table(self._fitted())
