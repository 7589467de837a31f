"""Centers of weighted rankings: the ranking with the least sum of distances.

Footrule, Spearman's and Hamming's distance are sums over items of costs of the rank here and the rank in the
center. The best center is an assignment of ranks to items, found exactly; for Spearman's distance it is the
order of mean ranks. Under Kendall's, Cayley's and Ulam's distance a center is searched for: from several
starts, one exchange, or one move, of items after the other, as long as the sum falls.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.distributions.distances.names import code_of

# A center is kept unless another one is nearer by more than this share of the sum of distances.
ROUNDING = 1e-12
# Rankings that a thorough search starts from, beside the present center and the order of mean ranks.
N_STARTS = 4


def centers_for(distance: str, orders: Array) -> Centers:
    """Return what knows the distances of these rankings from centers."""
    kinds: dict[str, Callable[[str, Array], Centers]]
    kinds = {"kendall": Pairs, "spearman": MeanRanks, "cayley": Exchanges, "ulam": Moves}
    return kinds.get(distance, Assignment)(distance, orders)


class Centers(abc.ABC):
    """Full rankings, how far they are from centers, and the centers of weighted ones."""

    exact = True  # whether :meth:`nearest` finds the best center at once

    def __init__(self, distance: str, orders: Array) -> None:
        self.distance, self.orders, self.n_items = distance, orders, orders.shape[1]
        self.ranks = np.argsort(orders, axis=1)

    @abc.abstractmethod
    def distances(self, centers: Array) -> Array:
        """Return the distance of every ranking from each center, (centers, rankings)."""

    @abc.abstractmethod
    def nearest(self, weights: Array, centers: Array, thorough: bool = False) -> tuple[Array, Array]:
        """Return the centers with the least Σ weight × distance, and these sums; ``weights`` (K, rankings).

        Where a center is searched for, the search goes on from those given; ``thorough``, from others, too.
        """

    @abc.abstractmethod
    def neighbors(self, weights: Array, center: Array, most: int) -> Array:
        """Return so many neighbors of a center, those first that are nearest to weighted rankings."""


class SumsOverItems(Centers):
    """Distances Σ_i cost(rank of i, rank of i in the center), linear in features of a ranking."""

    features: Any  # (rankings, features)

    @abc.abstractmethod
    def costs(self, sums: Array) -> Array:
        """Return the cost of each item at each rank, (items, ranks), from weighted sums of the features."""

    @abc.abstractmethod
    def best(self, sums: Array, costs: Array) -> Array:
        """Return the rank of each item that costs least."""

    def nearest(self, weights: Array, centers: Array, thorough: bool = False) -> tuple[Array, Array]:
        """Return the best centers; a present one is kept where no other one is nearer."""
        items, found = np.arange(self.n_items), centers.copy()
        totals = np.zeros(len(centers))
        for k, sums in enumerate(self._sums(weights)):
            costs = self.costs(sums)
            ranks = self.best(sums, costs)
            totals[k] = costs[centers[k], items].sum()
            least = costs[items, ranks].sum()
            if least < totals[k] * (1.0 - ROUNDING):
                found[k], totals[k] = np.argsort(ranks), least
        return found, np.maximum(totals, 0.0)

    def neighbors(self, weights: Array, center: Array, most: int) -> Array:
        """Exchange two items."""
        costs = self.costs(self._sums(weights[None])[0])[center]  # by place of the item
        own = np.diagonal(costs)
        changes = costs + costs.T - own - own[:, None]
        return exchanged(center, changes, most)

    def _sums(self, weights: Array) -> Array:
        return np.asarray((self.features.T @ weights.T).T)


class Assignment(SumsOverItems):
    """Footrule and Hamming's distance; the features are who has which rank."""

    def __init__(self, distance: str, orders: Array) -> None:
        super().__init__(distance, orders)
        from scipy.sparse import csr_array

        n = self.n_items
        gaps = np.abs(np.arange(n)[:, None] - np.arange(n))
        self.gaps = (gaps if distance == "footrule" else gaps > 0).astype(np.float64)
        columns = (np.arange(n) * n + self.ranks).astype(np.int32).ravel()
        starts = np.arange(0, len(columns) + 1, n, dtype=np.int32)
        self.features = csr_array((np.ones(len(columns)), columns, starts), shape=(len(orders), n * n))

    def distances(self, centers: Array) -> Array:
        """Return the distances from each center."""
        costs = self.gaps[np.argsort(centers, axis=1)].reshape(len(centers), -1)
        return np.ascontiguousarray((self.features @ costs.T).T)

    def costs(self, sums: Array) -> Array:
        """Return the cost of each item at each rank."""
        return np.asarray(sums.reshape(self.n_items, -1) @ self.gaps)

    def best(self, sums: Array, costs: Array) -> Array:
        """Solve the assignment problem."""
        from scipy.optimize import linear_sum_assignment

        return np.asarray(linear_sum_assignment(costs)[1])


class MeanRanks(SumsOverItems):
    """Spearman's distance, Σ (r - s)² = 2 Σ r² - 2 Σ r s; the features are ranks."""

    def __init__(self, distance: str, orders: Array) -> None:
        super().__init__(distance, orders)
        self.features = self.ranks.astype(np.float64)
        self.places = np.arange(self.n_items, dtype=np.float64)

    def distances(self, centers: Array) -> Array:
        """Return the distances from each center."""
        products = np.argsort(centers, axis=1).astype(np.float64) @ self.features.T
        return np.asarray(2.0 * (self.places @ self.places - products))

    def costs(self, sums: Array) -> Array:
        """Return the cost of each item at each rank, what all rankings cost divided among the items."""
        n, squares = self.n_items, self.places @ self.places
        weight = sums.sum() / self.places.sum() if n > 1 else 0.0
        return np.asarray(weight * (self.places**2 + squares / n) - 2.0 * np.outer(sums, self.places))

    def best(self, sums: Array, costs: Array) -> Array:
        """Sort by mean ranks."""
        return np.argsort(np.argsort(sums, kind="stable"))


class Pairs(Centers):
    """Kendall's distance, Σ over pairs of whether they are the other way round; the features are pairs."""

    exact = False

    def __init__(self, distance: str, orders: Array) -> None:
        super().__init__(distance, orders)
        self.first, self.second = np.triu_indices(self.n_items, 1)
        self.features = self._pairs(self.ranks)

    def _pairs(self, ranks: Array) -> Array:
        """Return 1 for pairs whose first item is before the second, else -1, (rankings, pairs)."""
        return np.where(ranks[:, self.first] < ranks[:, self.second], np.float32(1), np.float32(-1))

    def distances(self, centers: Array) -> Array:
        """Return the distances from each center."""
        products = self._pairs(np.argsort(centers, axis=1)) @ self.features.T
        return np.asarray(0.5 * (len(self.first) - products.astype(np.float64)))

    def nearest(self, weights: Array, centers: Array, thorough: bool = False) -> tuple[Array, Array]:
        """Put items elsewhere, one by one; ``thorough``, from the order of mean ranks as well."""
        from permix.kernels.kemeny_search import improve_by_insertion

        found, totals = centers.copy(), np.zeros(len(centers))
        behind = weights.sum(axis=1)
        for k, sums in enumerate((weights.astype(np.float32) @ self.features).astype(np.float64)):
            net = np.zeros((self.n_items, self.n_items))
            net[self.first, self.second] = sums
            net -= net.T
            starts = [centers[k], *([np.argsort(-net.sum(axis=1), kind="stable")] if thorough else ())]
            ends = []
            for start in starts:
                order = np.array(start, dtype=centers.dtype)
                improve_by_insertion(net, order, max(1e-5 * behind[k], 1e-300))
                ranks = np.argsort(order)
                signs = np.where(ranks[self.first] < ranks[self.second], 1.0, -1.0)
                ends.append((0.5 * (behind[k] * len(self.first) - signs @ sums), order))
            totals[k], found[k] = min(ends, key=lambda end: float(end[0]))
        return found, np.maximum(totals, 0.0)

    def neighbors(self, weights: Array, center: Array, most: int) -> Array:
        """Exchange neighbors."""
        above, below = center[:-1], center[1:]
        sums = weights.astype(np.float32) @ self.features
        net = np.zeros((self.n_items, self.n_items))
        net[self.first, self.second] = sums
        leads = (net - net.T)[above, below]
        best = np.argsort(leads, kind="stable")[:most]
        found, row = np.tile(center, (len(best), 1)), np.arange(len(best))
        found[row, best], found[row, best + 1] = below[best], above[best]
        return found


class Searched(Centers):
    """Distances whose centers are searched for, among neighbors of neighbors."""

    exact = False

    def __init__(self, distance: str, orders: Array) -> None:
        super().__init__(distance, orders)
        self.orders = orders.astype(np.int32)
        self.ranks32 = self.ranks.astype(np.int32)

    @abc.abstractmethod
    def step(self, weights: Array, center: Array) -> tuple[float, Array]:
        """Return by how much the sum of distances changes to a center's best neighbor, and that neighbor."""

    def distances(self, centers: Array) -> Array:
        """Return the distances from each center."""
        from permix.kernels.distances import row_distances

        centers = np.ascontiguousarray(centers, dtype=np.int32)
        code = code_of(self.distance)
        found = [
            row_distances(code, self.orders, self.ranks32, np.argsort(center).astype(np.int32)[None])
            for center in centers
        ]
        return np.array(found, dtype=np.float64).reshape(len(centers), len(self.orders))

    def nearest(self, weights: Array, centers: Array, thorough: bool = False) -> tuple[Array, Array]:
        """Search from the centers given, and where ``thorough`` from others, too; the best is kept."""
        found, totals = centers.copy(), np.zeros(len(centers))
        for k, mine in enumerate(weights):
            some = mine > 0.0
            if not some.any():
                continue
            starts = [centers[k], *(self._starts(mine) if thorough else ())]
            ends = [self._search(mine, start) for start in starts]
            totals[k], found[k] = min(ends, key=lambda end: end[0])
        return found, totals

    def _search(self, weights: Array, center: Array) -> tuple[float, Array]:
        total = float(self.distances(center[None])[0] @ weights)
        while True:
            change, following = self.step(weights, center)
            if not change < -ROUNDING * self.n_items * weights.sum():
                return total, center
            total, center = total + change, following

    def _starts(self, weights: Array) -> list[Array]:
        """Return the order of mean ranks, the heaviest ranking, and others by weight."""
        means = weights @ self.ranks
        ends = np.cumsum(weights)
        points = (np.arange(N_STARTS - 1) + 0.5) / (N_STARTS - 1) * ends[-1]
        rows = np.unique([int(np.argmax(weights)), *np.minimum(np.searchsorted(ends, points), len(ends) - 1)])
        return [np.argsort(means, kind="stable"), *self.orders[rows]]


class Exchanges(Searched):
    """Cayley's distance: neighbors are an exchange of two items away."""

    def _changes(self, weights: Array, center: Array) -> Array:
        from permix.distributions.distances.centers_jit import exchange_changes

        changes = np.empty((self.n_items, self.n_items))
        exchange_changes(self.ranks, weights, center.astype(np.int64), changes)
        return changes

    def step(self, weights: Array, center: Array) -> tuple[float, Array]:
        """Return the best neighbor."""
        changes = self._changes(weights, center)
        following = exchanged(center, changes, 1)
        return float(changes.min()), following[0]

    def neighbors(self, weights: Array, center: Array, most: int) -> Array:
        """Exchange two items."""
        return exchanged(center, self._changes(weights, center), most)


class Moves(Searched):
    """Ulam's distance: neighbors have one item elsewhere."""

    def step(self, weights: Array, center: Array) -> tuple[float, Array]:
        """Return the best neighbor."""
        totals = self._totals(weights, center)
        return float(totals.min() - totals[0, 0]), self._moved(center, int(np.argmin(totals)))

    def neighbors(self, weights: Array, center: Array, most: int) -> Array:
        """Move one item."""
        totals = self._totals(weights, center)
        np.fill_diagonal(totals, np.inf)
        np.fill_diagonal(totals[1:], np.inf)  # moving an item down one place is moving the next one up
        best = np.argsort(totals, axis=None, kind="stable")[: min(most, (self.n_items - 1) ** 2)]
        return np.array([self._moved(center, int(at)) for at in best]).reshape(-1, self.n_items)

    def _totals(self, weights: Array, center: Array) -> Array:
        from permix.distributions.distances.centers_jit import move_totals

        totals = np.empty((self.n_items, self.n_items))
        move_totals(self.ranks, weights, center.astype(np.int64), totals)
        return totals

    def _moved(self, center: Array, at: int) -> Array:
        source, target = divmod(at, self.n_items)
        return np.insert(np.delete(center, source), target, center[source])


def exchanged(center: Array, changes: Array, most: int) -> Array:
    """Return centers with two items in each other's place, those with the least change first."""
    first, second = np.triu_indices(len(center), 1)
    best = np.argsort(changes[first, second], kind="stable")[:most]
    first, second, row = first[best], second[best], np.arange(len(best))
    found = np.tile(center, (len(best), 1))
    found[row, first], found[row, second] = center[second], center[first]
    return found
