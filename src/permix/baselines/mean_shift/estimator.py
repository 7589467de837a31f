"""Exponential blurring mean-shift clustering of top lists, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from permix.baselines.mean_shift.fit import MeanShiftFit, fit_mean_shift
from permix.baselines.mean_shift.parameters import MeanShiftParameters
from permix.data.labels import Array
from permix.estimators.ranking_estimator import RankingMixture
from permix.estimators.ranking_lists import as_top_lists

if TYPE_CHECKING:
    import pandas as pd


class BlurringMeanShift(RankingMixture, parameters=MeanShiftParameters):
    """Groups of top lists by exponential blurring mean-shift (EBMS; Meilă & Bao 2008).

    Every list moves to the consensus of all lists, those near it weighing most, and again from there, until
    none moves. Lists that meet are a group, and where they meet is its center. Nothing has to be chosen,
    not even a number of groups; nothing is random.

    Attributes
    ----------
    labels_ : ndarray (rows,)
        Group of every row fitted, 0 the largest.
    n_clusters_ : int
        How many groups.
    cluster_sizes_ : ndarray
        How many agents are in each.
    centers_ : Rankings
        Their centers; the counts are the sizes.
    history_ : DataFrame
        θ of the weights exp(-θ d) in each iteration.
    decay_ : float
        θ of the mixture of Mallows models in :meth:`score_samples`.
    log_likelihood_ : Estimate
        ln P(data) under that mixture.
    n_iter_ : int
        Iterations, with the last one, in which nothing moved.
    converged_ : bool
        Whether nothing moved in the last iteration.

    Notes
    -----
    *Data* are top lists of any lengths, full rankings among them; the items that a list leaves out are below
    those it has, in no order.

    *Distance*: d(π, σ) = Σ_j s_j(π | σ), the sum of Meilă & Bao's stage codes, where the items that the
    center σ leaves out follow it in whatever order costs least. That is the number of pairs of items which
    the two lists put in opposite orders; pairs that either leaves open cost nothing. It is symmetric.

    *Weights*: in the infinite generalized Mallows model with one θ a list of t items is t / (e^θ - 1)
    away from its center on average. So in every iteration ``θ = ln(1 + t / d)``, with t the mean length and d
    the mean distance of two different agents where they are now: the maximum likelihood estimate as if two
    agents were a list and its center. (The published method estimates θ by a heuristic, too; this formula and
    the details of the consensus below are permix's own choice.) Lists must be near each other at that scale
    or none moves, which happens with long lists and few agents: the weights of others fall like e^-t. There
    is a warning then.

    *Consensus*: the stagewise estimate, which takes again and again the item with fewest weighted preferences
    against it, to twice the length of a center; then single items move to better places while that lowers
    the total weighted distance; then the list is cut. Items without backing (less than 10^-9 of the weight)
    are left out; beyond 64 items, or twice the length, only those with the best weighted mean rank are looked
    at. Where the others are indifferent a list stays as it is.

    Equal lists move together: the time of an iteration is the square of the number of distinct lists, times
    the square of their length, and hardly depends on the number of items.

    The method has no likelihood of its own. For comparisons with models that do, :meth:`score_samples` uses
    the mixture of Mallows models at the centers, weighted by the sizes of the groups:
    ``p(π) = Σ_k N_k / N · 1/|Ω(c_k)| Σ_{σ ∈ Ω(c_k)} Π_j e^{-θ s_j(π | σ)} / ψ_{n-j}(θ)``, j = 1..t, with
    N_k agents in group k, Ω(c_k) all rankings of the n items that begin as its center does, and
    ψ_m(θ) = 1 + e^-θ + ... + e^-mθ. The one θ, ``decay_``, makes the fitted data most probable. The
    probabilities of all lists of one length sum to one; their errors are 0.

    References
    ----------
    M. Meilă and L. Bao (2008). Estimation and clustering with infinite rankings. Proceedings of the 24th
    Conference on Uncertainty in Artificial Intelligence.

    M. Meilă and L. Bao (2010). An exponential model for infinite rankings. Journal of Machine Learning
    Research 11, 3481-3518.

    Examples
    --------
    >>> import permix
    >>> votes = permix.Rankings.from_orders(
    ...     [["ale", "mead"], ["mead", "ale"], ["ale", "stout"], ["tea", "milk"], ["tea", "cocoa"]],
    ...     counts=[5, 2, 3, 4, 2],
    ... )
    >>> model = permix.BlurringMeanShift().fit(votes)
    >>> model.centers_
    Rankings: 16 votes (2 rows) over 6 items, top lists of 2 items
      0: ale ≻ mead ≻ rest × 10
      1: tea ≻ milk ≻ rest × 6
    >>> model.predict(permix.Rankings.from_orders([["cocoa", "tea"]], items=votes.items))
    array([1])
    """

    _read = staticmethod(as_top_lists)
    _fit_to = staticmethod(fit_mean_shift)

    def _adopt(self, fit: MeanShiftFit) -> Self:
        self._fit = fit
        self.items_ = fit.items
        self.centers_ = fit.centers
        self.n_clusters_ = len(fit.centers)
        self.cluster_sizes_ = np.array(fit.centers.counts)
        self.labels_ = fit.row_labels
        self.decay_ = fit.decay
        self.log_likelihood_ = fit.log_likelihood
        self.n_iter_ = len(fit.decays)
        self.converged_ = fit.converged
        return self

    @property
    def history_(self) -> pd.DataFrame:
        """θ of the weights in each iteration."""
        import pandas as pd

        return pd.DataFrame({"decay": self._fitted().decays})

    def predict(self, X: Any) -> Array:
        """Return the most probable group of each list under the mixture of :meth:`score_samples`.

        Lists that were fitted may be nearer to another center than to the one they moved to, so this need not
        give ``labels_`` again. ``X`` is as in :meth:`fit`, over the fitted items.
        """
        return self._fitted().predict(self._new_data(X))

    def predict_proba(self, X: Any) -> Array:
        """Return P(group | list), (rows, groups), under the mixture of :meth:`score_samples`."""
        return self._fitted().predict_proba(self._new_data(X))

    def _log_densities(self, X: Any) -> tuple[Array, Array]:
        scores = self._fitted().log_probability(self._new_data(X))
        return scores, np.zeros(len(scores))

    def summary(self) -> pd.DataFrame:
        """Return agents, share and center of each group, the largest first."""
        import pandas as pd

        centers = [" ≻ ".join(names) for names in self._fitted().center_names]
        sizes = self.cluster_sizes_
        columns = {"agents": sizes, "share": sizes / sizes.sum(), "center": centers}
        return pd.DataFrame(columns, index=pd.RangeIndex(len(centers), name="group"))

    def diagnostics(self) -> pd.DataFrame:
        """Return whether the lists came to rest, and after how many iterations."""
        import pandas as pd

        fit = self._fitted()
        ending = {"converged": fit.converged, "interrupted": fit.interrupted}
        return pd.DataFrame([{"iterations": len(fit.decays), **ending}])
