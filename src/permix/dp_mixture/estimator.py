"""Mixtures of vectors with an unknown number of groups, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from permix.data.agent_table import AgentTable
from permix.data.cells import Cells
from permix.data.shards.matrices import ShardedCells
from permix.data.shards.sharded import Sharded
from permix.dp_mixture.choose_family import chosen_family
from permix.dp_mixture.fit import MixtureFit, fit_mixture, naming_columns
from permix.dp_mixture.parameters import DPMixtureParameters, as_family, as_prior
from permix.dp_mixture.predict import log_density, membership_of, sample_rows
from permix.dp_mixture.profile import profile_frame, top_words
from permix.errors import DataError, NoSuchAttribute
from permix.estimators.base import DrawsMixin, Estimator, ScoreMixin, of_fitted
from permix.estimators.nested import NestedParameters
from permix.families import Family, Mixed
from permix.families.base import DATES, refuse_odd_cells
from permix.registries import FAMILIES

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[Any]

# Stands for the rows that were fitted, which the fit has as its family encodes them.
FITTED = object()


class DPMixture(
    NestedParameters,
    ClusterMixin,  # type: ignore[misc]
    DrawsMixin,
    ScoreMixin,
    Estimator,
    parameters=DPMixtureParameters,
):
    """Groups of rows of numbers, counts and categories, without being told how many there are.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Point estimate of the partition, with at most as many groups as half of the draws have; group 0 is
        the largest. Of rows in shards there are none: :func:`permix.predict_shards` writes them.
    n_clusters_ : int
        Number of groups in ``labels_``; its posterior is ``posterior_["posterior"]["n_groups"]``.
    cluster_sizes_ : ndarray
        Number of members of each group.
    cluster_parameters_ : dict of str to ndarray
        Posterior means of the groups' parameters given ``labels_``.
    point_estimate_ : PointEstimate
        ``labels_`` with its expected loss.
    posterior_ : xarray.DataTree
        All draws in ArviZ's schema: ``labels`` over chain, draw, observation; ``n_clusters``,
        ``log_joint``, ...
    log_likelihood_ : float
        Posterior mean of ln p(data | partition).
    family_, prior_
        What was fitted, defaults filled in.
    n_features_in_ : int
        Number of columns; ``feature_names_in_`` are their names where the data had names.

    Notes
    -----
    Group parameters are integrated out (collapsed Gibbs, Neal 2000, algorithm 3); whole groups are split
    and merged (Dahl 2005); burn-in begins with the climb of Liang, Jordan & Taskar (2007, section 4.2); the
    concentration is updated as in Escobar & West (1995). ``fit`` warns, by name, about quantities on which
    chains disagree. ``score_samples`` averages densities over at most 200 draws, evenly spaced over all
    chains, with errors from batches of successive draws.

    Examples
    --------
    >>> import numpy as np, permix
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (30, 2)), rng.normal(4, 1, (20, 2))])
    >>> model = permix.DPMixture(permix.Gaussian(noise_scale=1.0), n_draws=2000, random_state=0).fit(X)
    >>> model.n_clusters_, model.cluster_sizes_.tolist()
    (2, [30, 20])
    """

    _nested: ClassVar[Mapping[str, Callable[[Any], Any]]] = {"family": as_family, "prior": as_prior}

    def fit(self, X: Any, y: Any = None) -> Self:
        """Run the chains on ``X`` and summarize them.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n, d), Cells or ShardedCells
            One row per observation. Of rows in shards (:func:`permix.read_sharded_cells`) all are fitted, and
            labels are kept of a random sample.
        y : ignored

        Returns
        -------
        self
        """
        settings = self._settings()
        if isinstance(X, ShardedCells):
            from permix.dp_mixture.sharded.fit import fit_shards

            self.__dict__.pop("feature_names_in_", None)
            return self._adopt(fit_shards(X, settings))
        X = _as_table(X)
        table = self._table(X, chosen_family(settings.family, X), reset=True)
        names = getattr(self, "feature_names_in_", None)
        return self._adopt(fit_mixture(table, settings, None if names is None else tuple(map(str, names))))

    def _adopt(self, fit: MixtureFit) -> Self:
        self._fit, self._tree = fit, None
        self.n_features_in_ = fit.family.n_features
        if fit.feature_names is not None:
            self.feature_names_in_ = np.array(fit.feature_names, dtype=object)
        self.family_, self.prior_, self.point_estimate_ = fit.family, fit.prior, fit.estimate
        self.n_clusters_, self.cluster_sizes_ = fit.n_clusters, fit.cluster_sizes
        self.log_likelihood_ = float(fit.draws.arrays["log_likelihood"].mean())
        return self

    labels_ = of_fitted(lambda self: _row_labels(self._fit), "Group of every row fitted.")
    cluster_parameters_ = of_fitted(
        lambda self: self._fit.cluster_parameters,
        "Posterior means of the groups' parameters given ``labels_``.",
    )

    def _table(self, X: Any, family: Family, *, reset: bool) -> Any:
        """Check shape and names as scikit-learn does; cells are checked later, by messages that name them."""
        _refuse_what_is_not_a_table(X, family)
        if isinstance(family, Mixed):
            # Columns keep their types: as one array they would not.
            table = X if hasattr(X, "columns") or isinstance(X, np.ndarray) else np.array(X, dtype=object)
            return validate_data(self, table, reset=reset, skip_check_array=True)
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if family.accepts_sparse else False,
            dtype=None if family.accepts_categories else "numeric",
            ensure_all_finite=False,
        )

    def _new_data(self, X: Any) -> tuple[MixtureFit, Any, int]:
        """Return the fit that scores new rows, the rows as its family encodes them, and their number."""
        check_is_fitted(self)
        if X is FITTED:
            return self._fit.serving(self._fit.data), self._fit.data, self._fit.n
        table = self._table(_as_table(X, getattr(self, "feature_names_in_", None)), self.family_, reset=False)
        with naming_columns(self._fit.feature_names):
            data = self.family_.encode(table)
        return self._fit.serving(data), data, int(table.shape[0])

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the most probable group of ``labels_`` for each new row.

        Rows that were fitted may get another than in ``labels_``, the partition nearest to all draws, where
        groups overlap.
        """
        return membership_of(*self._new_data(X)).group

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each group of ``labels_``; one less :meth:`predict_novelty` in all."""
        return membership_of(*self._new_data(X)).known

    def predict_novelty(self, X: Any) -> Array:
        """Return the probability that each new row belongs to no group of ``labels_``."""
        return membership_of(*self._new_data(X)).novelty

    def _kept(self) -> Any:
        return FITTED

    def _data_to_check(self, X: Any) -> None:
        """Take the rows that were fitted, which the fit keeps, and no others."""
        if X is None:
            return
        _, data, n = self._new_data(X)
        given, kept = (self.family_.pack(rows) for rows in (data, self._fit.data))
        if n != self._fit.n or not all(_same(given[name], kept[name]) for name in kept):
            raise DataError("checks are about the rows that were fitted, and these are others: leave X out")

    def _data_to_compare(self, X: Any, fitted_to: Any) -> tuple[Any, Any]:
        return self._new_data(X), fitted_to

    def _log_densities(self, X: Any) -> tuple[Array, Array]:
        return log_density(*self._new_data(X))

    def sample(self, size: int = 1, random_state: Any = None) -> Array:
        """Draw ``size`` new rows from the posterior predictive, (size, columns)."""
        return sample_rows(self._fitted(), size, random_state)

    def summary(self) -> pd.DataFrame:
        """Return size, how sure its members are, and the main parameter of each group, the largest first."""
        import pandas as pd

        fit = self._fitted()
        index = pd.RangeIndex(fit.n_clusters, name="group")
        sure = pd.Series(fit.how_sure).groupby(fit.labels).mean()
        main = fit.cluster_parameters[fit.family.main_parameter]
        names = fit.family.parameter_names(fit.columns)
        columns = {"size": fit.cluster_sizes, "how_sure": sure.to_numpy()}
        columns |= {"found_in_chains": fit.recurrence.n_chains, "agreement": fit.recurrence.agreement}
        frame = pd.DataFrame(columns, index=index)
        return frame.join(pd.DataFrame(main, index=index, columns=names))

    def profile(self) -> pd.DataFrame:
        """Return what is typical of each group: its means beside those of all rows, the most telling first.

        Returns
        -------
        DataFrame
            One row for every group and feature, which is a column of numbers or counts, or a category of a
            column. ``typical`` is the mean within the group, in the units of the data, or the share of the
            category; ``overall`` the same over all rows; ``difference`` is their difference in standard
            deviations over all rows; ``entries`` how many cells of the group are not missing.
        """
        return profile_frame(self._fitted())

    def top_words(self, n: int = 10) -> pd.DataFrame:
        """Return the columns of counts that are most typical of each group, ``n`` at most, one row a group.

        They are those that contribute most to the divergence of the group's shares from the overall shares,
        of those that the group has more of; None where there are fewer.
        """
        return top_words(self._fitted(), n)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        known = isinstance(self.family, Family) or (isinstance(self.family, str) and self.family in FAMILIES)
        family = as_family(self.family if known else None)
        tags.input_tags.sparse = family.accepts_sparse
        # Where no family is asked for, tables with gaps or categories get one that takes them.
        tags.input_tags.allow_nan = self.family is None or family.accepts_missing
        tags.input_tags.categorical = self.family is None or family.accepts_categories
        tags.non_deterministic = False
        return tags


def _row_labels(fit: MixtureFit) -> npt.NDArray[np.int64]:
    if fit.sampled_from is not None:
        raise NoSuchAttribute(
            "rows of data in shards are not here: permix.predict_shards(model, data, folder) writes their "
            "groups"
        )
    return fit.labels


def _as_table(X: Any, columns: Any = None) -> Any:
    """Return the cells of a matrix as a table, in the order of the columns that were fitted; others as is."""
    if not isinstance(X, Cells):
        return X
    if X.column_names is None:
        return X.dense()
    import pandas as pd

    table = pd.DataFrame(X.dense(), columns=list(X.column_names))
    if columns is None or set(columns) != set(table.columns):
        return table
    return table[list(columns)]


def _refuse_what_is_not_a_table(X: Any, family: Family) -> None:
    """Say what is wrong where scikit-learn's message would not: rankings, and text among numbers."""
    if isinstance(X, AgentTable):
        raise DataError(
            f"{type(X).__name__} are not rows of numbers: their item codes would be treated as if they "
            "were measurements. For groups of rankings see permix.MallowsMixture."
        )
    if isinstance(X, Sharded):
        raise DataError(
            "DPMixture is fitted to rows of numbers or answers: read them with permix.read_sharded_cells; "
            "for groups of rankings see permix.MallowsMixture"
        )
    if isinstance(X, ShardedCells):
        raise DataError("answers about rows in shards: permix.predict_shards(model, data, folder)")
    if not hasattr(X, "columns"):
        refuse_odd_cells(X)
        return
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return
    for name, dtype in frame.schema.items():
        column = frame.get_column(name)
        if dtype in (nw.Date, nw.Datetime, nw.Duration, nw.Time):
            raise DataError(f"column {name!r} holds dates or times (row 1: {column[0]}); {DATES}")
        if dtype == nw.Object:
            with naming_columns([name]):
                refuse_odd_cells(column.to_numpy().reshape(-1, 1))
        if not family.accepts_categories and dtype in (nw.String, nw.Categorical, nw.Enum):
            raise DataError(
                f"column {name!r} holds text (row 1: {column[0]!r}), and the {family.name} family takes "
                "numbers: leave the column out, or use family='mixed'"
            )


def _same(a: Array, b: Array) -> bool:
    """Whether two arrays are equal, cells that are missing included."""
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
