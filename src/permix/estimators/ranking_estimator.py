"""What estimators of ranking models share: how data come in, and what is asked of mixtures."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from permix.data.agent_table import AgentTable
from permix.data.labels import Array, Label
from permix.data.rankings import Rankings
from permix.data.shards.sharded import Sharded
from permix.errors import DataError
from permix.estimators.agent_answers import RankSummary, sample_rankings
from permix.estimators.base import Estimator, ScoreMixin, of_fitted
from permix.estimators.known import with_known
from permix.estimators.preference_input import as_preferences
from permix.estimators.recommend import N_DRAWS, N_ITEMS, as_frame, checked_number, ranked_items
from permix.runtime.seeds import generator

if TYPE_CHECKING:
    import pandas as pd


class RankingEstimator(Estimator):
    """Base of estimators that take Rankings, Preferences, or plain arrays of orderings.

    A subclass names the function that reads data, over given items if there are any, the one that fits them
    with checked parameters, and maybe one that warns about a fit.
    """

    _shared_attributes = """
items_ : tuple
    Item names.
n_features_in_ : int
    Number of columns, where the data were an array."""
    items_: tuple[Label, ...]
    _read: ClassVar[Callable[..., Any]] = staticmethod(as_preferences)
    _fit_to: ClassVar[Callable[..., Any]]
    _warn_of: ClassVar[Callable[..., None]] = staticmethod(lambda fit: None)
    _takes_shards: ClassVar[bool] = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
            Rows of an array are orderings, best first, padded by -1; what a row leaves out is below. A row
            that the model cannot take is refused by name. Some models also take data in shards
            (:func:`permix.read_sharded`).
        y : ignored

        Returns
        -------
        self
        """
        settings = self._settings()
        table = self._checked(X, reset=True)
        if not isinstance(table, Sharded):
            table = self._read_table(table)
        fit = with_known(self._fit_to(table, settings), table)
        self._warn_of(fit)
        return self._adopt(fit)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return a table of agents as it is, and an array checked as scikit-learn does."""
        if isinstance(X, Sharded) and not (reset and self._takes_shards):
            raise DataError(
                f"{type(self).__name__} is not fitted to data in shards yet"
                if reset
                else "data in shards are answered shard by shard: permix.predict_shards(model, data, folder)"
            )
        if isinstance(X, AgentTable | Sharded):
            if reset:  # what an earlier fit to an array left
                for name in ("n_features_in_", "feature_names_in_"):
                    self.__dict__.pop(name, None)
            return X
        if isinstance(X, str | os.PathLike):
            raise DataError(f"{os.fspath(X)!r} is a path; read the file first: permix.read(path)")
        if hasattr(X, "columns"):
            many = "a data frame may hold orderings, ranks, pairs or ratings"
            raise DataError(f"{many}; say which by permix.from_frame(frame)")
        table = validate_data(self, X, reset=reset, dtype=None)
        if table.dtype.kind not in "iu":
            raise DataError(
                f"the array holds {table.dtype} values, but the rows of an array are orderings: whole "
                "numbers of items, best first, padded by -1. For item names use Rankings.from_orders, for "
                "a table of ranks Rankings.from_ranks, for scores Preferences.from_ratings"
            )
        return table

    def _data_to_check(self, X: Any) -> Any:
        return None if X is None else as_preferences(self._checked(X, reset=False), self.items_)

    _what_is_scored: ClassVar[str] = "What an agent says"

    def _data_to_compare(self, X: Any, fitted_to: Any) -> tuple[Any, Any]:
        return self._data_to_check(X), self._data_to_check(fitted_to)

    def _new_data(self, X: Any) -> Any:
        """Return new data over the fitted items."""
        check_is_fitted(self)
        return self._read_table(self._checked(X, reset=False), self.items_)

    def _read_table(self, table: Any, items: tuple[Label, ...] | None = None) -> Any:
        """Return data as the model takes them, over given items if there are any."""
        return self._read(table, items)


class RankingMixture(ClusterMixin, ScoreMixin, RankingEstimator):  # type: ignore[misc]
    """Base of mixtures, whose rows belong to groups with probabilities."""

    labels_: Array

    def predict(self, X: Any) -> Array:
        """Return the most probable group of each row of ``X``, as in :meth:`predict_proba`."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Return P(group | what the row says).

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
            As in ``fit``, over the fitted items.

        Returns
        -------
        ndarray (rows, groups)
            Rows sum to one.
        """
        raise NotImplementedError


class RecommendMixin:
    """Models that know expected ranks: what to recommend. They have ``_expected_ranks`` and ``_new_data``."""

    def _expected_ranks(self, table: Any, n_samples: int, random_state: Any) -> RankSummary:
        """Return where items stand in the full ranking of each row."""
        raise NotImplementedError

    def recommend(self, agent: Any, n: int = N_ITEMS, *, random_state: Any = 0) -> pd.DataFrame:
        """Return items that agents do not mention, those first that each would rank best.

        Parameters
        ----------
        agent : Rankings, Preferences, or 2-D integer array
            One agent or several, over the fitted items.
        n : int
            Items for each.
        random_state : int, SeedSequence, Generator or None
            For rows without an exact way.

        Returns
        -------
        DataFrame
            ``agent``; ``place``, the same for items that are tied; ``item``; ``expected_rank`` in the agent's
            full ranking, 1 = best; ``low`` and ``high``, between which the rank lies with probability 90 %;
            ``tied``, how many unseen items have this expected rank. ``attrs["note"]`` says where more items
            are as good as the last one listed.
        """
        estimator: Any = self
        table = as_preferences(estimator._new_data(agent), estimator.items_)
        rng = generator(random_state)

        def ranks(block: Any) -> RankSummary:
            return self._expected_ranks(block, N_DRAWS, rng)

        found = ranked_items(table, ranks, table.agents.tolist(), checked_number(n))
        return as_frame(found, {"expected": "expected_rank"})


class FiniteRankingMixture(RecommendMixin, RankingMixture):
    """Base of mixtures of several distributions of full rankings: their fits have ``components``."""

    _n_samples: ClassVar[int]

    def _adopt(self, fit: Any) -> Self:
        self._fit = fit
        self.items_ = fit.components.items
        self.weights_ = fit.components.weights
        if getattr(fit, "sampled_from", None) is None:  # else rows are a sample of those fitted
            self.labels_ = fit.labels
        self.log_likelihood_ = fit.log_likelihood
        self.converged_ = fit.converged
        return self

    components_ = of_fitted(
        lambda self: [self._fit.components.component(k) for k in range(len(self.weights_))],
        "Each group as a distribution of its own.",
    )

    def predict_pairwise(
        self,
        X: Any,
        pairs: Any = None,
        *,
        n_samples: int | None = None,
        random_state: Any = 0,
        return_error: bool = False,
    ) -> Any:
        """Return P(a ≻ b | what the row says).

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
        pairs : array or list of (row, a, b), optional
            Rows of ``X``, counted from 0, and items by name. Left out, all pairs for all rows.
        n_samples : int, optional
            Rankings averaged over for rows without an exact way; by default some hundreds.
        random_state : int, SeedSequence, Generator or None
            For those.
        return_error : bool
            Return Monte Carlo errors as well, 0 where exact.

        Returns
        -------
        ndarray (rows, items, items) with zeros on the diagonal, or ndarray (pairs,); or two of them
        """
        n_samples = self._n_samples if n_samples is None else n_samples
        answers = self._pairwise(self._new_data(X), pairs, n_samples, random_state)
        return answers if return_error else answers[0]

    def _pairwise(self, table: Any, pairs: Any, n_samples: int, random_state: Any) -> tuple[Array, Array]:
        """Return probabilities and their Monte Carlo errors."""
        raise NotImplementedError

    def complete(
        self, X: Any, *, n_samples: int = 200, random_state: Any = 0, return_ranks: bool = False
    ) -> Any:
        """Return the most plausible full ranking of each row that agrees with what it says.

        Parameters
        ----------
        X : Rankings, Preferences, or 2-D integer array
        n_samples, random_state
            As in :meth:`predict_pairwise`.
        return_ranks : bool
            Return expected ranks with 5 % to 95 % ranges as well.

        Returns
        -------
        Rankings, or (Rankings, RankSummary)
        """
        completed = self._complete(self._new_data(X), n_samples, random_state, return_ranks)
        return completed if return_ranks else completed[0]

    def _complete(
        self, table: Any, n_samples: int, random_state: Any, ranks: bool
    ) -> tuple[Rankings, RankSummary | None]:
        """Return full rankings and, where asked for, ranges of ranks."""
        raise NotImplementedError

    def _expected_ranks(self, table: Any, n_samples: int, random_state: Any) -> RankSummary:
        ranks = self._complete(self._read(table, self.items_), n_samples, random_state, True)[1]
        assert ranks is not None
        return ranks

    def sample(self, size: int = 1, random_state: Any = None, *, return_labels: bool = False) -> Any:
        """Draw full rankings of new agents, independently.

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
        drawn = sample_rankings(self._fitted().components, size, random_state)
        return drawn if return_labels else drawn[0]
