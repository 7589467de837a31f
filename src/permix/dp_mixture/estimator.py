"""Dirichlet-process mixtures, as a scikit-learn estimator."""

from __future__ import annotations

import os
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from permix.data.agent_table import AgentTable
from permix.dp_mixture.fit import MixtureFit, MixtureSettings, as_family, fit_mixture, naming_columns
from permix.errors import DataError
from permix.estimators.load import save_mixture
from permix.families import FAMILIES, Family, GaussianNIW
from permix.families.base import DATES, refuse_odd_cells
from permix.moves.naming import Moves
from permix.moves.start import Start
from permix.partitions import PartitionPrior
from permix.posterior import summary, to_datatree

Array = npt.NDArray[Any]


class DPMixture(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Mixture with an unknown number of clusters, sampled by Markov chain Monte Carlo.

    Parameters
    ----------
    family : Family or str, optional
        What a cluster is made of: :class:`~permix.Gaussian`, :class:`~permix.GaussianNIW` (the default),
        :class:`~permix.Multinomial`, :class:`~permix.Categorical`, or their names "gaussian", "gaussian-niw",
        "multinomial", "categorical". The scale and the degrees of freedom of a GaussianNIW that leaves them
        open are chosen by the log joint, in short chains before those that are kept.
    prior : partition prior, optional
        :class:`~permix.MixtureOfFiniteMixtures` (the default, with its default parameters),
        :class:`~permix.DirichletProcess`, :class:`~permix.PitmanYor` or :class:`~permix.FiniteDirichlet`.
    moves : "auto", a name, a move, or a sequence of these
        What one iteration does. "auto" is a sweep of collapsed Gibbs, splits and merges, and an update of the
        concentration. Names are "gibbs", "split-merge", "permutation" and "concentration"; the last is added
        at the end where nothing else updates the concentration. See :mod:`permix.moves` for moves with
        settings.
    burn_in_moves : "auto", a name, a move, or a sequence of these
        What burn-in begins with. "auto" climbs along random projections, which finds good clusters in a few
        iterations, and goes on with ``moves``. Other moves, among them "projection", last for all of burn-in,
        or for its first half if ``moves`` have something to learn.
    init : "both", "sequential", "one-cluster", "random" or int
        Where chains start: from sequential prediction in random order, from one cluster, from a partition
        drawn from the prior, or from so many clusters at random. "both" takes the first and the second in
        turn, one for each chain: where chains from many and from few clusters do not meet, R-hat shows it.
    n_draws, n_burn_in, n_thin, n_chains : int
        Each chain makes ``n_burn_in`` iterations, then keeps ``n_draws``, one in ``n_thin``.
    loss : "vi" or "binder"
        The loss whose posterior expectation ``labels_`` minimises.
    random_state : int, SeedSequence, Generator, RandomState or None
        The same seed gives the same draws whatever ``n_jobs`` is.
    n_jobs : int, optional
        How many chains run at once; default as many as there are processors.
    progress : bool, optional
        Live display: by default on a terminal, once a fit has taken two seconds.
    store : path, optional
        A folder that keeps the chains while they run: a fit that was killed goes on where it stopped.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Point estimate of the partition, with at most as many clusters as half of the draws have; cluster 0 is
        the largest.
    n_clusters_ : int
        Number of clusters in ``labels_``; its posterior is ``posterior_["posterior"]["n_clusters"]``.
    cluster_sizes_ : ndarray
        Number of members of each cluster.
    cluster_parameters_ : dict of str to ndarray
        Posterior means of the clusters' parameters given ``labels_``.
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
    Cluster parameters are integrated out (collapsed Gibbs, Neal 2000, algorithm 3); whole clusters are split
    and merged (Dahl 2005); burn-in begins with the climb of Liang, Jordan & Taskar (2007, section 4.2); the
    concentration is updated as in Escobar & West (1995). ``fit`` warns, by name, about quantities on which
    chains disagree.

    Examples
    --------
    >>> import numpy as np, permix
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (30, 2)), rng.normal(4, 1, (20, 2))])
    >>> model = permix.DPMixture(permix.Gaussian(noise_scale=1.0), n_draws=2000, random_state=0).fit(X)
    >>> model.n_clusters_, model.cluster_sizes_.tolist()
    (2, [30, 20])
    """

    def __init__(
        self,
        family: Family | str | None = None,
        prior: PartitionPrior | None = None,
        moves: Moves = "auto",
        *,
        burn_in_moves: Moves = "auto",
        init: Start = "both",
        n_draws: int = 1000,
        n_burn_in: int = 500,
        n_thin: int = 1,
        n_chains: int = 2,
        loss: Literal["vi", "binder"] = "vi",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
        store: str | os.PathLike[str] | None = None,
    ) -> None:
        self.family = family
        self.prior = prior
        self.moves = moves
        self.burn_in_moves = burn_in_moves
        self.init = init
        self.n_draws = n_draws
        self.n_burn_in = n_burn_in
        self.n_thin = n_thin
        self.n_chains = n_chains
        self.loss = loss
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.store = store

    def fit(self, X: Any, y: Any = None) -> Self:
        """Run the chains on ``X`` and summarise them.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n, d)
            One row per observation.
        y : ignored

        Returns
        -------
        self
        """
        family = as_family(self.family)
        table = self._table(X, family, reset=True)
        names = getattr(self, "feature_names_in_", None)
        settings = MixtureSettings(**self.get_params(deep=False))
        return self._adopt(fit_mixture(table, settings, None if names is None else tuple(map(str, names))))

    def _adopt(self, fit: MixtureFit) -> Self:
        """Show a fit under scikit-learn's names."""
        self._fit = fit
        self.family_ = fit.family
        self.prior_ = fit.prior
        self.point_estimate_ = fit.estimate
        self.labels_ = fit.labels
        self.n_clusters_ = fit.n_clusters
        self.cluster_sizes_ = fit.cluster_sizes
        self.cluster_parameters_ = fit.cluster_parameters
        self.log_likelihood_ = float(fit.draws.arrays["log_likelihood"].mean())
        self.posterior_ = to_datatree(fit.draws)
        return self

    def _table(self, X: Any, family: Family, *, reset: bool) -> Any:
        """Check shape and names as scikit-learn does; cells are checked later, by messages that name them."""
        _refuse_what_is_not_a_table(X, family)
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if family.accepts_sparse else False,
            dtype=None if family.accepts_categories else "numeric",
            ensure_all_finite=False,
        )

    def _new_data(self, X: Any) -> tuple[Any, int]:
        check_is_fitted(self, "posterior_")
        table = self._table(X, self.family_, reset=False)
        with naming_columns(self._fit.feature_names):
            return self.family_.encode(table), int(table.shape[0])

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the most probable cluster of ``labels_`` for each new row."""
        labels: npt.NDArray[np.int64] = self.predict_proba(X).argmax(axis=1)
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each cluster of ``labels_``, given that a new row is in one of them."""
        data, m = self._new_data(X)
        joint = self._fit.joint_under_estimate(data, m)[:, :-1]
        probabilities: Array = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
        return probabilities

    def predict_novelty(self, X: Any) -> Array:
        """Return the probability that each new row belongs to no cluster of ``labels_``."""
        data, m = self._new_data(X)
        joint = self._fit.joint_under_estimate(data, m)
        novelty: Array = np.exp(joint[:, -1] - np.logaddexp.reduce(joint, axis=1))
        return novelty

    def score_samples(self, X: Any) -> Array:
        """Return ln of the posterior predictive density of each row, averaged over draws.

        At most 200 draws, evenly spaced over all chains, enter the average.
        """
        data, m = self._new_data(X)
        return self._fit.log_density(data, m)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of :meth:`score_samples`."""
        return float(self.score_samples(X).mean())

    def sample(self, size: int = 1, random_state: Any = None) -> Array:
        """Draw new rows from the posterior predictive.

        Parameters
        ----------
        size : int
            How many.
        random_state : int, Generator or None
            Seed.

        Returns
        -------
        ndarray of shape (size, d)
        """
        check_is_fitted(self, "posterior_")
        return self._fit.sample(size, random_state)

    def summary(self) -> Any:
        """Return mean, spread, effective sample size and R-hat of every scalar quantity, as a data frame."""
        check_is_fitted(self, "posterior_")
        return summary(self.posterior_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file; :func:`permix.load` reads it.

        The file is a zip of JSON and ``.npy`` arrays; it holds the draws and the data.
        """
        check_is_fitted(self, "posterior_")
        save_mixture(self._fit, path)

    @classmethod
    def _from_fit(cls, fit: MixtureFit) -> Self:
        settings = fit.settings
        model = cls(**{name: getattr(settings, name) for name in cls._get_param_names()})
        model.n_features_in_ = fit.family.n_features
        if fit.feature_names is not None:
            model.feature_names_in_ = np.array(fit.feature_names, dtype=object)
        return model._adopt(fit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        family = FAMILIES.get(self.family, GaussianNIW) if isinstance(self.family, str) else self.family
        family = GaussianNIW if family is None else family
        tags.input_tags.sparse = family.accepts_sparse
        tags.input_tags.allow_nan = family.accepts_missing
        tags.input_tags.categorical = family.accepts_categories
        tags.non_deterministic = False
        return tags


def _refuse_what_is_not_a_table(X: Any, family: Family) -> None:
    """Say what is wrong where scikit-learn's message would not: rankings, and text among numbers."""
    if isinstance(X, AgentTable):
        raise DataError(
            f"{type(X).__name__} are not rows of numbers: their item codes would be clustered as if they "
            "were measurements. For mixtures of rankings see permix.MallowsMixture."
        )
    if not hasattr(X, "columns"):
        refuse_odd_cells(X)
        return
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return
    for name, dtype in frame.schema.items():
        if dtype in (nw.Date, nw.Datetime, nw.Duration, nw.Time):
            raise DataError(f"column {name!r} holds dates or times (row 1: {frame[name][0]}); {DATES}")
        if dtype == nw.Object:
            with naming_columns([name]):
                refuse_odd_cells(frame[name].to_numpy().reshape(-1, 1))
        if family.accepts_categories:
            continue
        if dtype == nw.String or dtype == nw.Categorical or dtype == nw.Enum:
            raise DataError(
                f"column {name!r} holds text (row 1: {frame[name][0]!r}), and the {family.name} family takes "
                "numbers: leave the column out, or use family='categorical'"
            )
