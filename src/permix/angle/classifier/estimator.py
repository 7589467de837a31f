"""Classification of rankings with known classes: an angle-based model, or a mixture of them, for each."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from permix.angle.classifier.fit import AngleClassifierFit, fit_classes
from permix.angle.data import as_rankings
from permix.angle.parameters import AngleClassifierParameters
from permix.angle.results import component_table, diagnostics_table, warn_of
from permix.data.agent_table import AgentTable
from permix.data.labels import Array
from permix.errors import DataError
from permix.estimators.ranking_estimator import RankingEstimator

if TYPE_CHECKING:
    import pandas as pd


class AngleClassifier(
    ClassifierMixin,  # type: ignore[misc]
    RankingEstimator,
    parameters=AngleClassifierParameters,
):
    """Tell classes of people apart by their rankings (Xu, Alvo & Yu 2018, section 6.3).

    An angle-based model, or a mixture of ``n_components``, is fitted to the rankings of each class; a new
    ranking belongs to a class with probability proportional to the class's share times the predictive density
    of the ranking under its model.

    Attributes
    ----------
    classes_ : ndarray
    class_prior_ : ndarray
        Probability of each class beforehand.
    directions_ : ndarray (classes, items)
        Scores of the center of each class; of its largest group where there are several.
    concentrations_ : ndarray (classes,)

    Examples
    --------
    >>> import permix
    >>> made = permix.datasets.make_angle_mixture(200, 6, 2, concentration=20.0, random_state=1)
    >>> model = permix.AngleClassifier().fit(made.data[:100], made.labels[:100])
    >>> model.score(made.data[100:], made.labels[100:]) > 0.9
    True
    """

    _read = staticmethod(as_rankings)

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
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
        settings = self._settings()
        rankings = self._read(self._checked(X, reset=True))
        fit = fit_classes(rankings, self._classes_of(y, len(rankings)), settings)
        for of_class in fit.fits:
            warn_of(of_class)
        return self._adopt(fit)

    def _adopt(self, fit: AngleClassifierFit) -> Self:
        self._fit = fit
        self.items_ = fit.items
        self.classes_ = fit.classes
        self.class_prior_ = fit.class_prior
        self.directions_ = np.stack([of_class.components.directions[0] for of_class in fit.fits])
        self.concentrations_ = np.array([of_class.concentrations[0] for of_class in fit.fits])
        return self

    @staticmethod
    def _classes_of(y: Any, n: int) -> Array:
        if y is None:
            raise DataError(
                "a classifier requires y to be passed, but the target y is None: one class per row"
            )
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            said = "A column-vector y was passed when a 1d array was expected"
            warnings.warn(said, DataConversionWarning, stacklevel=3)
            values = values[:, 0]
        if values.ndim != 1 or len(values) != n:
            raise DataError(
                f"y has shape {values.shape}, but there are {n} rows; give one class for each row"
            )
        check_classification_targets(values)
        return values

    def predict_log_proba(self, X: Any) -> Array:
        """Return ln P(class | ranking) (rows, classes)."""
        return self._fitted().log_probabilities(self._new_data(X))

    def predict_proba(self, X: Any) -> Array:
        """Return P(class | ranking) (rows, classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)  # first of all: this tells who is not fitted yet
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of agents put into their class; a row counts as often as its count says."""
        right = self.predict(X) == np.asarray(y)
        if sample_weight is None and isinstance(X, AgentTable):
            sample_weight = X.counts
        return float(np.average(right, weights=sample_weight))

    def summary(self) -> pd.DataFrame:
        """Return weight, agents, concentration and center of every group of every class."""
        return self._by_class(component_table)

    def diagnostics(self) -> pd.DataFrame:
        """Return how far to trust the fit of each class; see :meth:`permix.AngleMixture.diagnostics`."""
        return self._by_class(diagnostics_table)

    def _by_class(self, table: Any) -> pd.DataFrame:
        import pandas as pd

        tables = [table(fit) for fit in self._fitted().fits]
        return pd.concat(tables, keys=self.classes_.tolist(), names=["class"])
