"""Kernel density estimation for rankings and preferences, as a scikit-learn estimator."""

from __future__ import annotations

import os
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from permix.baselines.kde_archive import save_kde
from permix.baselines.kde_bandwidth import fit_kernel_density
from permix.baselines.kde_density import KernelDensity, KernelSettings
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.base import Estimate
from permix.estimators.ranking_estimator import RankingEstimator


class MallowsKDE(DensityMixin, RankingEstimator):  # type: ignore[misc]
    """Kernel density estimate over rankings: a Mallows bump on every training row.

    The probability of preferences v, that is of all rankings Ω(v) that agree with them, is (Lu & Boutilier
    2014, equation 34, extending Lebanon & Mao 2008)

        ``p(v) = 1/n Σ_l 1/(|Ω(v_l)| Z) Σ_{s ∈ Ω(v_l)} Σ_{r ∈ Ω(v)} φ^d(r, s)``,

    d the Kendall distance, φ the dispersion: somebody like training agent l, who has one of the rankings s
    that agree with what l said, all equally likely, and strays from it as in a Mallows model.

    Parameters
    ----------
    dispersion : "cv" or float
        φ, the width of the bumps, from 0 (none) to 1 (all rankings alike). "cv" chooses it by the likelihood
        of agents left out, one at a time.
    n_samples : int
        Rankings s sampled for every training row that does not partition all items, and for every training
        row where the question does not. Fewer make estimates noisier and, being logarithms of means, lower.
    random_state : int, SeedSequence, Generator or None
        For those; also for which agents are left out where sums are sampled. A fitted model gives the same
        answer to the same question every time.
    n_jobs : int, optional
        How many threads; default as many as there are processors. Results do not depend on it.
    progress : bool, optional
        Live display: by default on a terminal, once the work has taken two seconds.

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
        The training rows, alike ones merged.
    items_ : tuple
        Item names.
    n_features_in_ : int
        Number of columns, where the data were an array.

    Notes
    -----
    For two rows that partition all items into blocks A_i and B_j with n_ij items in common,
    ``ln p(B | A) = -λ disc + Σ_ij g(n_ij) - Σ_i g(|A_i|) + Σ_j ln Z(|B_j|) - ln Z(m)``, λ = -ln φ,
    g(n) = ln n! - ln Z(n), where disc counts the pairs of items that both order, in opposite ways. Time
    follows the lengths of the lists, not the number of items.

    Otherwise section 6's nested sampling: rankings s from AMP at dispersion 1, weighted by 1/q, and where v
    is no partition, an AMP draw around each s. ``score_samples`` gives standard errors. It is precise where
    the rows say much, and rough where a narrow bump meets rows that leave nearly everything open.

    Cross-validation leaves out one agent of a row, not the row; where sums are sampled it leaves out some
    agents only. Dispersions below 1/(10 n (m - 1)), n agents and m items, are not tried.

    Examples
    --------
    >>> import permix
    >>> votes = permix.Rankings.from_orders(
    ...     [["tea", "milk", "water"], ["tea", "water", "milk"], ["water", "milk", "tea"]],
    ...     counts=[5, 2, 3],
    ... )
    >>> model = permix.MallowsKDE(dispersion=0.25, random_state=0).fit(votes)
    >>> model.score_samples(votes).round(2)
    array([-1.08, -1.56, -1.63])
    >>> someone = permix.Preferences.from_pairs([("anna", "water", "milk")], items=votes.items)
    >>> model.score_samples(someone).round(1)
    array([-0.7])
    >>> model.sample(3, random_state=0).n_items
    3
    """

    def __init__(
        self,
        dispersion: float | Literal["cv"] = "cv",
        *,
        n_samples: int = 32,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.dispersion = dispersion
        self.n_samples = n_samples
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the rows and choose the dispersion.

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
            Rows of an array are orderings, best first, padded by -1; what a row leaves out is below.
        y : ignored

        Returns
        -------
        self
        """
        settings = KernelSettings(**self.get_params(deep=False))
        return self._adopt(fit_kernel_density(self._preferences(X, reset=True), settings))

    def _adopt(self, fit: KernelDensity) -> Self:
        """Show a fit under scikit-learn's names."""
        self._fit = fit
        self.items_ = fit.preferences.items
        self.preferences_ = fit.preferences
        self.dispersion_ = fit.dispersion
        self.cv_scores_ = {"dispersion": fit.tried[:, 0], "score": fit.tried[:, 1]}
        self.is_exact_ = fit.is_exact
        return self

    def score_samples(self, X: Any, *, return_standard_error: bool = False) -> Any:
        """Return ln p(what the row says).

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
            As in :meth:`fit`, over the fitted items.
        return_standard_error : bool
            Return the Monte Carlo errors as well, 0 where the value is exact. Rows share the rankings that
            were sampled, so their errors are not independent.

        Returns
        -------
        ndarray (rows,), or two of them
            Each row once, whatever its count.
        """
        values, errors = self._fit_log_density(X)[1:]
        return (values, errors) if return_standard_error else values

    def score(self, X: Any, y: Any = None) -> Estimate:
        """Return the mean ln p of an agent; a row counts as often as its count says.

        Returns
        -------
        Estimate
            A float whose ``standard_error`` bounds the Monte Carlo error; 0 where exact.
        """
        table, values, errors = self._fit_log_density(X)
        # Errors of rows depend on each other; however they do, that of the mean is at most their mean.
        return Estimate(
            float(np.average(values, weights=table.counts)), float(np.average(errors, weights=table.counts))
        )

    def _fit_log_density(self, X: Any) -> tuple[Preferences, Array, Array]:
        table = self._new_data(X)
        return table, *self._fit.log_density(table)

    def sample(self, size: int = 1, random_state: Any = None) -> Rankings:
        """Draw full rankings: a training agent, a ranking that agrees with it, a Mallows draw around that.

        Parameters
        ----------
        size : int
            How many.
        random_state : int, SeedSequence, Generator or None
            Seed.

        Returns
        -------
        Rankings
            Independent draws, exact but for training rows over more than 12 items that do not partition
            them: there the ranking that agrees comes from 1000 steps of the Metropolis chain MMP.
        """
        check_is_fitted(self)
        return self._fit.sample(size, random_state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file; :func:`permix.load` reads it.

        The file is a zip of JSON and ``.npy`` arrays; it holds the training rows.
        """
        check_is_fitted(self)
        save_kde(self._fit, path)

    @classmethod
    def _from_fit(cls, fit: KernelDensity) -> Self:
        settings = fit.settings
        return cls(**{name: getattr(settings, name) for name in cls._get_param_names()})._adopt(fit)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fit")
