"""Draws against enumeration over all orderings of four items, each with a broken twin."""

from __future__ import annotations

import numpy as np
import pytest

from permix.datasets import make_angle_mixture, make_generalized_mallows_mixture, make_mallows_mixture
from permix.kernels.insertion import sample_mallows, sample_top_lists
from permix.kernels.orders import ordering_from_places
from tests.oracles import ranking_models as oracle

N = 40_000
BOUND = oracle.total_variation_bound(N, 24)
CENTER = (2, 0, 3, 1)


def test_the_oracles_are_distributions_and_agree():
    for distribution in (
        oracle.mallows(CENTER, 0.4),
        oracle.generalized_mallows(CENTER, [1.0, 0.3, 2.0], 4),
        oracle.angle([0.1, -0.5, 0.3, 0.1], 7.0),
    ):
        assert len(distribution) == 24
        assert sum(distribution.values()) == pytest.approx(1)
    same = oracle.generalized_mallows(CENTER, [-np.log(0.4)] * 3, 4)
    assert all(same[r] == pytest.approx(p) for r, p in oracle.mallows(CENTER, 0.4).items())
    insertion = [[0.4 ** (i - k) / sum(0.4**j for j in range(i + 1)) for k in range(i + 1)] for i in range(4)]
    inserted = oracle.repeated_insertion(CENTER, insertion)
    assert all(inserted[r] == pytest.approx(p) for r, p in oracle.mallows(CENTER, 0.4).items())


@pytest.mark.parametrize("dispersion", [0.0, 0.2, 0.7, 1.0])
def test_mallows(dispersion):
    made = make_mallows_mixture(
        N, 4, 1, dispersion=dispersion, centers=[CENTER], random_state=np.random.default_rng(1)
    )
    distribution = oracle.mallows(CENTER, dispersion)
    assert oracle.total_variation(made.data.orders, distribution) < BOUND


def test_mallows_twin_that_clips_instead_of_truncating_is_rejected():
    rng = np.random.default_rng(2)
    distribution = oracle.mallows(CENTER, 0.5)
    center, slots, draws = np.array(CENTER), np.empty(4, np.int64), np.empty((N, 4), np.int64)
    for row in draws:
        displacement = np.minimum(rng.geometric(0.5, size=4) - 1, np.arange(4))
        ordering_from_places(center, np.arange(4) - displacement, slots, row)
    assert oracle.total_variation(draws, distribution) > BOUND


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_generalized_mallows_lists(length):
    theta = [1.2, 0.3, 0.8, 5.0]
    made = make_generalized_mallows_mixture(
        N, 4, 1, theta=theta, lengths=length, centers=[CENTER], random_state=4
    )
    distribution = oracle.generalized_mallows(CENTER, theta, length)
    assert oracle.total_variation(made.data.orders, distribution) < BOUND
    twin = oracle.generalized_mallows(CENTER, theta[::-1], length)
    assert oracle.total_variation(made.data.orders, twin) > BOUND


def test_mallows_by_insertion_and_by_stages_agree_on_many_items():
    # Mean Kendall distance Σ_i (mean of a truncated geometric), known in closed form.
    theta, n = 0.3, 150
    center = np.random.default_rng(5).permutation(n)
    by_insertion, by_stages = np.empty((400, n), np.int64), np.empty((400, n), np.int64)
    rng = np.random.default_rng(6)
    sample_mallows(rng, center, theta, by_insertion)
    sample_top_lists(rng, center, np.full(n, theta), np.full(400, n), by_stages)
    k = np.arange(1, n + 1)
    mean = np.sum(1 / np.expm1(theta) - k / np.expm1(theta * k))
    variance = np.sum(
        np.exp(theta) / np.expm1(theta) ** 2 - k**2 * np.exp(theta * k) / np.expm1(theta * k) ** 2
    )
    for draws in (by_insertion, by_stages):
        assert np.array_equal(np.sort(draws, axis=1), np.tile(np.arange(n), (400, 1)))
        distances = [oracle.kendall(row.tolist(), center.tolist()) for row in draws]
        assert abs(np.mean(distances) - mean) < 5 * np.sqrt(variance / 400)


@pytest.mark.parametrize("concentration", [0.0, 3.0, 30.0])
def test_angle_model(concentration):
    direction = np.array([0.1, -0.7, 0.5, 0.1])
    direction /= np.linalg.norm(direction)
    made = make_angle_mixture(N, 4, 1, concentration=concentration, directions=[direction], random_state=7)
    assert made.exact
    distribution = oracle.angle(direction, concentration)
    assert oracle.total_variation(made.data.orders, distribution) < BOUND
    if concentration == 3.0:  # at 30 both distributions are nearly one ordering
        assert oracle.total_variation(made.data.orders, oracle.angle(direction, 0.8 * concentration)) > BOUND
