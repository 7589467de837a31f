"""Weighted particles: sizes, steps, resampling, and normal distributions followed from data to data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from permix.sampling.particles import (
    effective_size,
    effective_size_of_step,
    log_mean_increment,
    normalized,
    resampled,
    step_size,
)


def test_effective_sizes_by_hand():
    assert effective_size(np.zeros(7)) == pytest.approx(7.0)
    assert effective_size(np.log([3.0, 1.0])) == pytest.approx(16 / 10)
    assert effective_size(np.array([0.0, -np.inf, -np.inf])) == pytest.approx(1.0)
    assert effective_size(np.full(3, -np.inf)) == 0.0
    # From equal weights a step is worth what its weights are; one that changes nothing is worth all.
    assert effective_size_of_step(np.zeros(2), np.log([3.0, 1.0])) == pytest.approx(16 / 10)
    assert effective_size_of_step(np.log([3.0, 1.0]), np.full(2, -5.0)) == pytest.approx(2.0)
    assert effective_size_of_step(np.zeros(2), np.full(2, -np.inf)) == 0.0


def test_weights_far_from_one_are_weights():
    assert normalized(np.array([-1e5, -1e5 + math.log(3)])) == pytest.approx([0.25, 0.75])
    with pytest.raises(ValueError, match="weight zero"):
        normalized(np.full(2, -np.inf))


def test_steps_are_as_long_as_they_may_be():
    increments = np.log(np.array([[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]]))
    # After one, two and three columns, particles are worth 0.9, 0.735 and 0.62 of all.
    for least, columns in ((0.95, 1), (0.85, 1), (0.7, 2), (0.5, 3)):
        assert step_size(np.zeros(2), increments, least) == columns


@pytest.mark.parametrize("seed", range(3))
def test_resampling_gives_each_as_often_as_its_weight_says(seed):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(40))
    counts = np.array([np.bincount(resampled(rng, np.log(weights)), minlength=40) for _ in range(4000)])
    assert np.all(np.abs(counts - 40 * weights) < 1.0)
    assert counts.mean(axis=0) == pytest.approx(40 * weights, abs=4 * 0.5 / math.sqrt(4000))


def test_the_evidence_of_normal_data_is_found():
    """Means drawn from their posterior given five numbers follow it over forty more, with the evidence."""
    rng = np.random.default_rng(2)
    data = rng.normal(0.7, 1.0, 45)

    def posterior(some):
        precision = 1.0 + len(some)
        return some.sum() / precision, 1.0 / precision

    def log_evidence(some):
        return stats.multivariate_normal(np.zeros(len(some)), np.eye(len(some)) + 1.0).logpdf(some)

    def follow(move):
        mean, variance = posterior(data[:5])
        particles = rng.normal(mean, math.sqrt(variance), 2000)
        weights, evidence, at = np.zeros(2000), 0.0, 5
        while at < len(data):
            increments = stats.norm.logpdf(data[at:], particles[:, None])
            taken = step_size(weights, increments, 0.9)
            step = increments[:, :taken].sum(axis=1)
            evidence += log_mean_increment(weights, step)
            weights, at = weights + step, at + taken
            if effective_size(weights) < 1000:
                particles, weights = particles[resampled(rng, weights)], np.zeros(2000)
                if move:  # exact: anything that leaves the posterior invariant would do
                    mean, variance = posterior(data[:at])
                    particles = (
                        mean + 0.6 * (particles - mean) + 0.8 * rng.normal(0.0, math.sqrt(variance), 2000)
                    )
        return particles, normalized(weights), evidence

    particles, weights, evidence = follow(move=True)
    mean, variance = posterior(data)
    error = math.sqrt(variance / 500)
    assert weights @ particles == pytest.approx(mean, abs=4 * error)
    assert weights @ (particles - mean) ** 2 == pytest.approx(variance, rel=0.3)
    assert evidence == pytest.approx(log_evidence(data) - log_evidence(data[:5]), abs=0.15)
    # The twin that does not move particles ends with few different ones.
    stuck = follow(move=False)[0]
    assert len(np.unique(stuck)) < 1200 < len(np.unique(particles))
