"""Density estimation for rankings and preferences, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import DensityMixin

from permix.baselines.kde.fit import KDEFit, fit_kde
from permix.baselines.kde.parameters import KDEParameters
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.estimators.base import ScoreMixin, of_fitted
from permix.estimators.ranking_estimator import RankingEstimator

if TYPE_CHECKING:
    import pandas as pd


class MallowsKDE(ScoreMixin, DensityMixin, RankingEstimator, parameters=KDEParameters):  # type: ignore[misc]
    """Density estimate over rankings: a Mallows bump on every training row (KDE).

    The probability of preferences v, that is of all rankings Ω(v) that agree with them, is (Lu & Boutilier
    2014, equation 34, extending Lebanon & Mao 2008)

        ``p(v) = 1/n Σ_l 1/(|Ω(v_l)| Z) Σ_{s ∈ Ω(v_l)} Σ_{r ∈ Ω(v)} φ^d(r, s)``,

    d the Kendall distance, φ the dispersion: somebody like training agent l, who has one of the rankings s
    that agree with what l said, all equally likely, and strays from it as in a Mallows model.

    Attributes
    ----------
    dispersion_ : float
        φ.
    cv_scores_ : dict of ndarray
        ``"dispersion"``, those tried, ascending, and ``"score"``, the mean ln p of agents left out. Empty
        where the dispersion was given.
    is_exact_ : bool
        Whether all training rows partition all items (full and top-t rankings, levels of all items): the
        density of such rows is then closed form, without Monte Carlo error.
    preferences_ : Preferences
        The training rows, identical ones merged.
    log_likelihood_ : Estimate
        ln p of the fitted rows, with its Monte Carlo error; computed when first asked for. No agent is left
        out, so that it is optimistic.

    Notes
    -----
    For two rows that partition all items into blocks A_i and B_j with n_ij items in common,
    ``ln p(B | A) = -λ disc + Σ_ij g(n_ij) - Σ_i g(|A_i|) + Σ_j ln Z(|B_j|) - ln Z(m)``, λ = -ln φ,
    g(n) = ln n! - ln Z(n), where disc counts the pairs of items that both order, in opposite ways. Time
    follows the lengths of the lists, not the number of items.

    Otherwise section 6's nested sampling: rankings s from AMP at dispersion 1, weighted by 1/q, and where v
    is no partition, an AMP draw around each s. ``score_samples`` gives standard errors, which are
    not independent: rows share the rankings that were sampled. It is precise where the rows say much, and
    rough where a narrow bump meets rows that leave nearly everything open.

    Cross-validation leaves out one agent of a row, not the row; where sums are sampled it leaves out some
    agents only. Dispersions below 1/(10 n (m - 1)), n agents and m items, are not tried.

    Examples
    --------
    >>> import permix
    >>> orders = [["tea", "milk", "water"], ["tea", "water", "milk"], ["water", "milk", "tea"]]
    >>> votes = permix.Rankings.from_orders(orders, counts=[5, 2, 3])
    >>> model = permix.MallowsKDE(dispersion=0.25, random_state=0).fit(votes)
    >>> model.score_samples(votes).round(2)
    array([-1.08, -1.56, -1.63])
    >>> someone = permix.Preferences.from_pairs([("anna", "water", "milk")], items=votes.items)
    >>> model.score_samples(someone).round(1)
    array([-0.7])
    >>> model.sample(3, random_state=0).n_items
    3
    """

    _fit_to = staticmethod(fit_kde)

    def _adopt(self, fit: KDEFit) -> Self:
        self._fit = fit
        self.items_ = fit.preferences.items
        self.preferences_ = fit.preferences
        self.dispersion_ = fit.dispersion
        self.cv_scores_ = {"dispersion": fit.tried[:, 0], "score": fit.tried[:, 1]}
        self.is_exact_ = fit.is_exact
        return self

    log_likelihood_ = of_fitted(
        lambda self: self._fit.log_likelihood,
        "Log-likelihood of the fitted rows; optimistic, since no agent is left out.",
    )

    def _log_densities(self, X: Any) -> tuple[Array, Array]:
        return self._fitted().log_probability(self._new_data(X))

    def sample(self, size: int = 1, random_state: Any = None) -> Rankings:
        """Draw full rankings: a training agent, a ranking that agrees with it, a Mallows draw around that.

        ``size`` independent draws, exact but for training rows over more than 12 items that do not partition
        them: there the ranking that agrees comes from 1000 steps of the Metropolis chain MMP.
        """
        return self._fitted().sample(size, random_state)

    def summary(self) -> pd.DataFrame:
        """Return what was fitted, in one row: there are no groups."""
        import pandas as pd

        fit = self._fitted()
        row = {"agents": int(fit.preferences.n_agents), "dispersion": fit.dispersion}
        return pd.DataFrame([row | {"expected_distance": fit.expected_distance, "exact": fit.is_exact}])

    def diagnostics(self) -> pd.DataFrame:
        """Return how the dispersion was chosen: those tried, and the mean ln p of agents left out.

        Empty where the dispersion was given. A best one in the midst of others is a well-chosen one; one at
        either end says that the agents are all alike, or have nothing in common.
        """
        import pandas as pd

        self._fitted()
        scores = self.cv_scores_["score"]
        return pd.DataFrame({**self.cv_scores_, "below_best": scores.max(initial=-np.inf) - scores})
