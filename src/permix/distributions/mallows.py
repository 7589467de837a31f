"""The Mallows model, with one dispersion or one for each item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from permix.data.labels import Array, Label
from permix.data.rankings import Rankings
from permix.distributions.base import Center, Items, RankingDistribution, read_only
from permix.errors import DataError
from permix.runtime.seeds import RandomState
from permix.runtime.threads import over_rows


class Mallows(RankingDistribution):
    """Rankings around a center: P(r) ∝ dispersion^d(r, center), d the Kendall distance or another.

    Parameters
    ----------
    center : sequence of items, or Rankings with one row
        The central ordering, best first, by name or number; it ranks every item.
    dispersion : float or one number per item
        φ from 0 (always the center) to 1 (all rankings equally likely). With one number per item, φ_i
        belongs to the i-th item of the *center*, the one inserted at step i: placing it above k of the
        items that the center puts before it costs a factor φ_i^k. This is the weighted Kendall distance
        d_w = Σ w_i (i - j_i), w_i = -ln φ_i, of Lu & Boutilier (2014, section 2.2.3). The first number has
        no effect, since the first item has no item before it.
    items : sequence of str or int, optional
        Names and order of the items where the center does not say: by default sorted when the center
        holds integers, else in the order of the center.
    distance : {"kendall", "footrule", "spearman", "cayley", "hamming", "ulam"}
        As in :func:`permix.distance`. The dispersion is per unit of it, so that numbers of different
        distances do not compare: φ = 0.8 is wide under Hamming's distance of at most n, and narrow under
        Spearman's of up to n³/3. All but ``kendall`` have a single dispersion.

    Attributes
    ----------
    dispersion : float or ndarray
        As given.
    distance : str
        As given.
    decay : ndarray, one per item of the center
        λ_i = -ln φ_i, from 0 to infinity.
    items, center, center_order
        See :class:`RankingDistribution`.

    Examples
    --------
    >>> from permix import Mallows
    >>> model = Mallows(["salmon", "tuna", "egg"], 0.5)
    >>> model
    Mallows: 3 items, dispersion 0.5, center salmon ≻ tuna ≻ egg
    >>> model.log_prob([["salmon", "tuna", "egg"], ["egg", "tuna", "salmon"]]).round(3)
    array([-0.965, -3.045])
    >>> model.sample(2, random_state=1).n_items
    3
    >>> Mallows(["salmon", "tuna", "egg"], 0.5, distance="footrule").expected_distance()
    1.037...
    """

    name: ClassVar[str] = "mallows"
    _distance = "kendall"

    def __new__(cls, *arguments: object, distance: str = "kendall", **named: object) -> Self:
        """Make a model of the class that has the distance."""
        if distance == "kendall" or cls is not Mallows:
            return super().__new__(cls)
        from permix.distributions.distances.distance_mallows import DistanceMallows

        return object.__new__(DistanceMallows)  # type: ignore[return-value]

    def __init__(
        self,
        center: Center,
        dispersion: float | Sequence[float] | Array,
        items: Items = None,
        *,
        distance: str = "kendall",
    ) -> None:
        super().__init__(center, items)
        self._dispersion = _dispersions(dispersion, self.center)
        with np.errstate(divide="ignore"):
            self._decay = np.full(self.n_items, 0.0 - np.log(self._dispersion))

    @property
    def dispersion(self) -> float | Array:
        """φ: one number, or one for each item in the order of the center."""
        return read_only(self._dispersion) if self.is_weighted else float(self._dispersion)

    @property
    def decay(self) -> Array:
        """λ_i = -ln φ_i, from 0 to infinity, for each item in the order of the center."""
        return read_only(self._decay)

    @property
    def distance(self) -> str:
        """The distance that the dispersion is a base of."""
        return self._distance

    @property
    def is_weighted(self) -> bool:
        """Whether each item has a dispersion of its own."""
        return self._dispersion.ndim == 1

    def log_normalizer(self) -> float:
        """Logarithm of Z = Σ over all rankings of dispersion^distance = Π_i (1 + φ_i + … + φ_i^(i-1))."""
        from permix.kernels import mallows as kernels

        if self.is_weighted:
            return float(kernels.weighted_log_normalizer(self._decay))
        return float(kernels.log_normalizer(self._decay[0], self.n_items))

    def sample(self, size: int = 1, random_state: RandomState = None) -> Rankings:
        """Draw full rankings exactly, by repeated insertion; see :meth:`Distribution.sample`."""
        from permix.distributions.insertion_jit import geometric_steps, weighted_steps

        weighted = self.is_weighted
        steps = weighted_steps(self._decay) if weighted else geometric_steps(self._decay[0], self.n_items)
        return self._insert(steps, size, random_state)

    def entropy(self) -> float:
        """Entropy in nats, Σ_i ln Z_i + λ_i E[k_i], exact."""
        finite = self._decay < np.inf
        return self.log_normalizer() + float(self._decay[finite] @ mean_displacements(self._decay)[finite])

    def expected_distance(self) -> float:
        """Expected distance from the center; Kendall's is the mean number of pairs in another order."""
        return float(mean_displacements(self._decay).sum())

    def pairwise(self) -> Array:
        """Matrix of P(item a before item b), exact.

        Returns
        -------
        ndarray, shape (items, items)
            Rows and columns by position in ``items``; 0 on the diagonal. With one dispersion it costs n²
            operations, with one per item n³.

        Examples
        --------
        >>> from permix import Mallows
        >>> Mallows(["a", "b"], 0.25).pairwise()
        array([[0. , 0.8],
               [0.2, 0. ]])
        """
        from permix.kernels.mallows import pairwise_by_step

        if self.is_weighted:
            return super().pairwise()
        return self._by_item(pairwise_by_step(self._decay[0], self.n_items))

    def insertion_log_probabilities(self) -> Array:
        """Log-probability that ``center_order[i]`` goes to place j = 0..i: φ_i^(i-j) / (1 + … + φ_i^i).

        Minus infinity above the diagonal; n² entries.
        """
        from permix.kernels.mallows import log_insertion_matrix

        return np.asarray(log_insertion_matrix(self._decay))

    def _described(self) -> dict[str, Any]:
        return {"dispersion": self._dispersion.tolist()}

    def _score_top_lists(self, table: Rankings, out: Array) -> None:
        from permix.distributions.insertion_jit import insertion_log_prob_rows, mallows_log_prob_rows

        rows, none = (table.orders, table.lengths, np.argsort(self._order)), np.zeros((0, 0))
        size = (len(table), table.orders.shape[1])
        if self.is_weighted:
            over_rows(insertion_log_prob_rows, *size, *rows, self._decay, none, none, out)
        else:
            over_rows(mallows_log_prob_rows, *size, *rows, self._decay[0], out)

    def _before(self, first: Array, second: Array) -> Array:
        if self.is_weighted:
            return self._before_by_steps(first, second, self._decay, np.zeros((0, 0)))
        from permix.kernels.mallows import discordance_by_gap

        step_of = np.argsort(self._order)
        gap = step_of[second] - step_of[first]
        against = discordance_by_gap(self._decay[0], self.n_items)[np.abs(gap)]
        return np.where(gap > 0, 1.0 - against, against)

    def _parameters_text(self) -> str:
        if self.is_weighted:
            least, most = self._dispersion[1:].min(initial=1.0), self._dispersion[1:].max(initial=0.0)
            return f"dispersions {least:g} to {most:g}, "
        return f"dispersion {float(self._dispersion):g}, "


def mean_displacements(decays: Array) -> Array:
    """Return the mean of k on 0..i with P(k) ∝ exp(-decays[i] k), for each step i of an insertion.

    Sums of terms of one sign, so that nothing cancels: n operations for every different decay.
    """
    k, means = np.arange(len(decays)), np.zeros(len(decays))
    for decay in np.unique(decays):
        weights = np.exp(-min(decay, 1000.0) * k)  # beyond, as for infinity, all but the first are 0
        mine = decays == decay
        means[mine] = (np.cumsum(k * weights) / np.cumsum(weights))[mine]
    return means


def _dispersions(dispersion: object, center: tuple[Label, ...]) -> Array:
    """Check φ: one number or one per item, each from 0 to 1."""
    try:
        values = np.asarray(np.array(dispersion, dtype=np.float64) + 0.0)  # no negative zero
    except (TypeError, ValueError):
        raise DataError(f"dispersion={dispersion!r} must be a number from 0 to 1, or one per item") from None
    if values.ndim > 1 or (values.ndim == 1 and len(values) != len(center)):
        raise DataError(
            f"dispersion has shape {values.shape}, but must be one number or one for each of the "
            f"{len(center)} items, in the order of the center"
        )
    bad = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
    if len(bad):
        value = float(values.flat[bad[0]])
        whose = f" of {center[bad[0]]!r}" if values.ndim else ""
        raise DataError(
            f"dispersion {value:.17g}{whose} is not between 0 (always the center) and 1 (all rankings "
            "alike); for a decay λ pass exp(-λ)"
        )
    return values
