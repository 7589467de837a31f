"""Mallows models with another distance than Kendall's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.base import Center, Estimate, Items, aligned, sample_size, whole_number
from permix.distributions.distances.agreeing import agreeing_rankings
from permix.distributions.distances.draws import draw_orders
from permix.distributions.distances.names import code_of
from permix.distributions.distances.normalizer import Normalizer, normalizer
from permix.distributions.mallows import Mallows
from permix.errors import DataError
from permix.kernels.distances import row_distances
from permix.runtime.seeds import RandomState, stream_key

# All rankings of so many items are listed for probabilities of ranks and pairs: 8! = 40,320.
MOST_LISTED = 8


class DistanceMallows(Mallows):
    """What ``Mallows(..., distance=...)`` makes for a distance that is not Kendall's."""

    def __init__(
        self,
        center: Center,
        dispersion: float | Sequence[float] | Array,
        items: Items = None,
        *,
        distance: str = "kendall",
    ) -> None:
        super().__init__(center, dispersion, items)
        code_of(distance)
        if self.is_weighted:
            raise DataError(
                f"distance={distance!r} has one dispersion; one per item is for distance='kendall'"
            )
        self._distance = distance

    @property
    def _lambda(self) -> float:
        return float(self._decay[0])

    @property
    def _sums(self) -> Normalizer:
        return normalizer(self._distance, self.n_items)

    def log_normalizer(self) -> float:
        """Logarithm of Z = Σ over all rankings of dispersion^distance."""
        return self._estimate(self._sums.log_z(self._lambda))

    def _estimate(self, value: float) -> float:
        error = self._sums.error_at(self._lambda)
        return Estimate(value, error) if error else value

    def sample(self, size: int = 1, random_state: RandomState = None) -> Rankings:
        """Draw full rankings; see :func:`permix.distributions.distances.draws.draw_orders`."""
        key = stream_key(random_state)
        orders = draw_orders(self._distance, self._lambda, self._order, sample_size(size), key)
        return Rankings._from_arrays(orders, self.items)

    def log_prob(self, rankings: object) -> Array:
        """Log-probability of each row, whatever its count.

        Parameters
        ----------
        rankings : Rankings, Preferences, or rows of items by name or number
            Full rankings; or less than that, whose probability is that of all rankings that agree, which are
            listed.

        Returns
        -------
        ndarray of float, one per row
        """
        if isinstance(rankings, Preferences):
            table = aligned(rankings, self.items)
        else:
            table = Preferences.from_rankings(self._rankings(rankings))
        listed = agreeing_rankings(table, self._distance)
        return listed.log_sums(self._scores(listed.orders)) - self.log_normalizer()

    def _scores(self, orders: Array) -> Array:
        """-λ d of each ordering; 0 times infinity is 0."""
        ranks = np.empty(orders.shape, dtype=np.int32)
        np.put_along_axis(ranks, orders, np.arange(self.n_items, dtype=np.int32)[None], axis=1)
        center = np.argsort(self._order).astype(np.int32)[None]
        distances = row_distances(code_of(self._distance), orders, ranks, center)
        with np.errstate(invalid="ignore"):
            return np.where(distances > 0, -self._lambda * distances, 0.0)

    def entropy(self) -> float:
        """Entropy in nats, ln Z + λ E[distance]."""
        if math.isinf(self._lambda):
            return 0.0
        return self._estimate(self._sums.log_z(self._lambda) + self._lambda * self.expected_distance())

    def expected_distance(self) -> float:
        """Expected distance from the center, in the distance of the model."""
        return self._sums.mean_distance(self._lambda)

    def pairwise(self, n_samples: int = 4000, random_state: RandomState = 0) -> Array:
        """Matrix of P(item a before item b): exact up to 8 items, beyond the frequencies in draws.

        Parameters
        ----------
        n_samples : int
            Draws, above 8 items: a frequency p has standard error √(p(1-p)/n_samples).
        random_state : int, SeedSequence, Generator or None

        Returns
        -------
        ndarray, shape (items, items)
            Rows and columns by position in ``items``; 0 on the diagonal.
        """
        orders, shares = self._weighed(n_samples, random_state)
        ranks = np.argsort(orders, axis=1)
        return np.array([shares @ (ranks[:, [item]] < ranks) for item in range(self.n_items)])

    def rank_marginals(self, n_samples: int = 4000, random_state: RandomState = 0) -> Array:
        """Matrix of P(item a has rank r): exact up to 8 items, beyond the frequencies in draws.

        Arguments as in :meth:`pairwise`. Rows by position in ``items``; rows and columns sum to one.
        """
        orders, shares = self._weighed(n_samples, random_state)
        n = self.n_items
        return np.stack([np.bincount(column, shares, minlength=n) for column in orders.T], axis=1)

    def _weighed(self, n_samples: int, random_state: RandomState) -> tuple[Array, Array]:
        """All rankings and their probabilities where they are few, else draws."""
        n_samples, n = whole_number("n_samples", n_samples, 1), self.n_items
        if n <= MOST_LISTED:
            orders = np.array(list(permutations(range(n))), dtype=np.int32)
            return orders, np.exp(self._scores(orders) - self._sums.log_z(self._lambda))
        return self.sample(n_samples, random_state).orders, np.full(n_samples, 1.0 / n_samples)

    def insertion_log_probabilities(self) -> Array:
        """Refuse: only Kendall's distance is a sum over insertions."""
        raise DataError(
            f"distance={self._distance!r} has no insertion probabilities; distance='kendall' does"
        )

    def condition(self, preferences: object) -> Any:
        """Refuse: conditioning works by insertion."""
        raise DataError(
            f"condition(...) is for distance='kendall'; for distance={self._distance!r}, log_prob takes what "
            "an agent said, and MallowsMixture completes it"
        )

    def _described(self) -> dict[str, Any]:
        return {**super()._described(), "distance": self._distance}

    def _parameters_text(self) -> str:
        return f"{self._distance} distance, {super()._parameters_text()}"

    def __repr__(self) -> str:
        return super().__repr__().replace(type(self).__name__, Mallows.__name__, 1)
