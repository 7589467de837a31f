"""Classification of rankings with known classes: an angle-based model, or a mixture of them, for each."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from permix.angle.data import as_rankings
from permix.angle.fit import AngleFit, fit_angle
from permix.angle.settings import AngleSettings
from permix.data.agent_table import AgentTable
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.errors import DataError
from permix.estimators.ranking_estimator import RankingEstimator
from permix.runtime.seeds import seed_sequence


class AngleClassifier(ClassifierMixin, RankingEstimator):  # type: ignore[misc]
    """Tell classes of people apart by their rankings (Xu, Alvo & Yu 2018, section 6.3).

    An angle-based model is fitted to the rankings of each class; a new ranking belongs to a class with
    probability proportional to the class's share times the predictive density of the ranking under its model.

    Parameters
    ----------
    n_components : int
        Kinds within a class.
    inference, normalizer, prior_shape, prior_rate, n_restarts, n_draws, n_burn_in, n_chains
        As in :class:`permix.AngleMixture`.
    class_weights : "shares" or "equal"
        How probable classes are beforehand: as frequent as in the data (plus one each), or all alike.
    random_state, n_jobs, progress
        As in :class:`permix.AngleMixture`.

    Attributes
    ----------
    classes_ : ndarray
    class_prior_ : ndarray
        Probability of each class beforehand.
    directions_ : ndarray (classes, items)
        Consensus scores of each class; of its largest component where there are several.
    concentrations_ : ndarray (classes,)
    items_, n_features_in_

    Examples
    --------
    >>> import permix
    >>> made = permix.datasets.make_angle_mixture(200, 6, 2, concentration=20.0, random_state=1)
    >>> model = permix.AngleClassifier().fit(made.data[:100], made.labels[:100])
    >>> model.score(made.data[100:], made.labels[100:]) > 0.9
    True
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        inference: Literal["em", "sir", "vi", "quadrature"] = "em",
        normalizer: Literal["auto", "exact", "balanced", "vmf"] = "auto",
        class_weights: Literal["shares", "equal"] = "shares",
        prior_shape: float = 1.0,
        prior_rate: float | None = None,
        n_restarts: int = 10,
        n_draws: int = 1000,
        n_burn_in: int = 500,
        n_chains: int = 2,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.n_components = n_components
        self.inference = inference
        self.normalizer = normalizer
        self.class_weights = class_weights
        self.prior_shape = prior_shape
        self.prior_rate = prior_rate
        self.n_restarts = n_restarts
        self.n_draws = n_draws
        self.n_burn_in = n_burn_in
        self.n_chains = n_chains
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any) -> Self:
        """Fit one model to each class.

        Parameters
        ----------
        X : Rankings, Preferences without ties, or 2-D integer array
            As in :meth:`permix.AngleMixture.fit`.
        y : sequence
            The class of each row.

        Returns
        -------
        self
        """
        if self.class_weights not in ("shares", "equal"):
            raise DataError(f"class_weights={self.class_weights!r} must be 'shares' or 'equal'")
        checked = self._checked(X, reset=True)
        rankings = as_rankings(checked)
        y = self._classes_of(y, len(rankings))
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError("there is one class only; a classifier needs two classes or more")
        settings = {
            name: value for name, value in self.get_params(deep=False).items() if name != "class_weights"
        }
        seeds = seed_sequence(self.random_state).spawn(len(self.classes_))
        fits: list[AngleFit] = []
        counts = np.zeros(len(self.classes_))
        for number, (name, seed) in enumerate(zip(self.classes_, seeds, strict=True)):
            part = rankings[labels == number]
            counts[number] = part.n_agents
            try:
                fits.append(
                    fit_angle(
                        part, AngleSettings(**{**settings, "random_state": np.random.default_rng(seed)})
                    )
                )
            except DataError as error:
                raise DataError(f"class {str(name)!r}: {error}") from error
        self._fits = fits
        self.items_ = rankings.items
        shares = counts + 1.0 if self.class_weights == "shares" else np.ones_like(counts)
        self.class_prior_ = shares / shares.sum()
        self.directions_ = np.stack([fit.components.directions[0] for fit in fits])
        self.concentrations_ = np.array([fit.concentrations[0] for fit in fits])
        return self

    @staticmethod
    def _classes_of(y: Any, n: int) -> Array:
        if y is None:
            raise DataError(
                "a classifier requires y to be passed, but the target y is None: one class per row"
            )
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            import warnings

            from sklearn.exceptions import DataConversionWarning

            warnings.warn(
                "A column-vector y was passed when a 1d array was expected",
                DataConversionWarning,
                stacklevel=3,
            )
            values = values[:, 0]
        if values.ndim != 1 or len(values) != n:
            raise DataError(
                f"y has shape {values.shape}, but there are {n} rows; give one class for each row"
            )
        check_classification_targets(values)
        return values

    def _new(self, X: Any) -> Rankings:
        check_is_fitted(self)
        return as_rankings(self._checked(X, reset=False), self.items_)

    def predict_log_proba(self, X: Any) -> Array:
        """Return ln P(class | ranking) (rows, classes)."""
        rankings = self._new(X)
        joint = np.stack([fit.predictive.log_densities(rankings) for fit in self._fits], axis=1)
        joint += np.log(self.class_prior_)
        return np.asarray(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Array:
        """Return P(class | ranking) (rows, classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of agents put into their class; a row counts as often as its count says."""
        right = self.predict(X) == np.asarray(y)
        if sample_weight is None and isinstance(X, AgentTable):
            sample_weight = X.counts
        return float(np.average(right, weights=sample_weight))
