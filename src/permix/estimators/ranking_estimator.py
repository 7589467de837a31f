"""What estimators of ranking models share: how data come in."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from permix.data.agent_table import AgentTable
from permix.data.labels import Array, Label
from permix.data.preferences import Preferences
from permix.errors import DataError
from permix.estimators.base import Estimator
from permix.estimators.preference_input import as_preferences


class RankingEstimator(Estimator):
    """Base of estimators that take Rankings, Preferences, or plain arrays of orderings."""

    items_: tuple[Label, ...]

    def _preferences(self, X: Any, *, reset: bool) -> Preferences:
        """Return the data as preferences over the fitted items, where there are any."""
        return as_preferences(self._checked(X, reset=reset), None if reset else self.items_)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return a table of agents as it is, and an array checked as scikit-learn does."""
        if isinstance(X, AgentTable):
            if reset:  # what an earlier fit to an array left
                for name in ("n_features_in_", "feature_names_in_"):
                    self.__dict__.pop(name, None)
            return X
        if isinstance(X, str | os.PathLike):
            raise DataError(f"{os.fspath(X)!r} is a path; read the file first: permix.read(path)")
        if hasattr(X, "columns"):
            raise DataError(
                "a data frame may hold orderings, ranks, pairs or ratings; say which by "
                "permix.from_frame(frame)"
            )
        table = validate_data(self, X, reset=reset, dtype=None)
        if table.dtype.kind not in "iu":
            raise DataError(
                f"the array holds {table.dtype} values, but the rows of an array are orderings: whole "
                "numbers of items, best first, padded by -1. For item names use Rankings.from_orders, for "
                "a table of ranks Rankings.from_ranks, for scores Preferences.from_ratings"
            )
        return table

    def _new_data(self, X: Any) -> Preferences:
        check_is_fitted(self)
        return self._preferences(X, reset=False)


class RankingMixture(RankingEstimator):
    """Base of mixtures, whose rows belong to groups with probabilities."""

    def predict(self, X: Any) -> Array:
        """Return the most probable group of each row.

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
            As in ``fit``, over the fitted items.

        Returns
        -------
        ndarray of int
        """
        return np.asarray(self.predict_proba(X).argmax(axis=1))
