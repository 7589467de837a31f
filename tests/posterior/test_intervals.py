"""Intervals of places against a search over all of them."""

from __future__ import annotations

import numpy as np

from permix.posterior.intervals import holding, shortest_around, weighted_quantiles


def searched(place, chances, share):
    """The shortest interval around a place, of equally short ones the most probable, by trying all."""
    n = len(chances)
    return min(
        (high - low, -round(chances[low : high + 1].sum(), 9), low, high)
        for low in range(place + 1)
        for high in range(place, n)
        if chances[low : high + 1].sum() >= share - 1e-9
    )


def test_the_shortest_interval_is_found():
    rng = np.random.default_rng(0)
    for n_ranks in (1, 2, 3, 7):
        for _ in range(200):
            ranks = rng.binomial(n_ranks - 1, rng.random(), size=(1, 40))
            weights = rng.integers(1, 4, 40) / 7.0
            place = int(rng.integers(n_ranks))
            chances = np.bincount(ranks[0], weights, n_ranks) / weights.sum()
            (low,), (high,) = shortest_around(np.array([place]), ranks, weights, 0.9)
            width, held, *_ = searched(place, chances, 0.9)
            assert low <= place <= high
            assert high - low == width
            assert round(chances[low : high + 1].sum(), 9) == -held


def test_a_place_that_is_sure_stands_alone():
    """The twin leaves out 5 % on either side, and names a second place beside one with 91 %."""
    ranks = np.array([[3] * 3 + [4] * 91 + [5] * 6])
    place, weights = np.array([4]), np.ones(100)
    assert [ends.tolist() for ends in shortest_around(place, ranks, weights, 0.9)] == [[4], [4]]
    assert [ends.tolist() for ends in shortest_around(place, ranks, weights, 0.91)] == [[4], [4]]
    assert [ends.tolist() for ends in shortest_around(place, ranks, weights, 0.92)] == [[4], [5]]
    twin = holding(place, *weighted_quantiles(ranks, weights / 100.0, (0.05, 0.95)))
    assert [ends.tolist() for ends in twin] == [[4], [5]]
