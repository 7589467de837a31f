"""Marginal likelihoods of blocks against integrals and high-precision arithmetic."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import gamma, norm, poisson

from permix.cocluster.cells.block_sums_jit import log_blocks
from permix.cocluster.cells.blocks_jit import (
    GAUSSIAN,
    LONGEST_TABLE,
    POISSON,
    MomentPrior,
    count_prior,
    log_block,
    log_gain,
    log_moments,
    rising_table,
    slot_rise,
    total_rise,
)
from permix.kernels.jit import kernel


@kernel
def block(prior, n, sums):
    return log_block(prior, n, sums)


@kernel
def gain(prior, n, sums, m, slots, values, n_active):
    return log_gain(prior, n, sums, m, slots, values, 0, n_active)


@pytest.mark.parametrize("base", [1e-30, 0.3, 1.0, 25.0])
def test_table_of_rising_factorials(base):
    table = rising_table(base, 200_001)
    for n in (0, 1, 2, 17, 5000, 200_000):
        exact = mpmath.loggamma(mpmath.mpf(base) + n) - mpmath.loggamma(mpmath.mpf(base))
        assert table[n] == pytest.approx(float(exact), rel=1e-14, abs=1e-13)


@pytest.mark.parametrize("pseudo_count", [0.2, 1.0, 3.5])
def test_levels_against_the_chain_rule(pseudo_count):
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 4, 30)
    prior = count_prior(pseudo_count, np.array([4]), 30)
    expected = 0.0
    counts = np.zeros(4, dtype=np.int64)
    for n, level in enumerate(cells):
        assert block(prior, n, counts) == pytest.approx(expected, abs=1e-11)
        expected += math.log((counts[level] + pseudo_count) / (n + 4 * pseudo_count))
        counts[level] += 1
    assert block(prior, 30, counts) == pytest.approx(expected, abs=1e-11)


def test_two_levels_against_an_integral():
    prior = count_prior(0.7, np.array([2]), 20)
    value, _ = quad(lambda p: p ** (5 + 0.7 - 1) * (1 - p) ** (3 + 0.7 - 1), 0, 1)
    expected = math.log(value) - (2 * math.lgamma(0.7) - math.lgamma(1.4))
    assert block(prior, 8, np.array([5, 3])) == pytest.approx(expected, abs=1e-8)


def test_several_groups_are_independent():
    """Each cell has one level in each group, as base co-clusterings label it."""
    together = count_prior(0.5, np.array([3, 2]), 10)
    first, second = count_prior(0.5, np.array([3]), 10), count_prior(0.5, np.array([2]), 10)
    sums = np.array([4, 0, 2, 1, 5])
    expected = block(first, 6, sums[:3]) + block(second, 6, sums[3:])
    assert block(together, 6, sums) == pytest.approx(expected, abs=1e-12)


def test_counts_beyond_the_tables_are_computed():
    short = count_prior(0.6, np.array([3, 2]), 2)
    for n in (2, 3, 4, 5, 1000, 10**9):
        assert slot_rise(short, n) == pytest.approx(gammaln(0.6 + n) - gammaln(0.6), rel=1e-13)
        totals = sum(gammaln(0.6 * k + n) - gammaln(0.6 * k) for k in (3, 2))
        assert total_rise(short, n) == pytest.approx(totals, rel=1e-13)


def test_tables_are_not_longer_than_pays():
    assert len(count_prior(1.0, np.array([2]), 10 * LONGEST_TABLE).slot_table) == LONGEST_TABLE


def test_gain_of_counts_is_a_difference():
    prior = count_prior(0.4, np.array([3, 2]), 40)
    sums = np.array([4, 0, 2, 1, 5])
    slots, values = np.array([1, 2, 4, 0]), np.array([3, 1, 4, 0])
    after = sums.copy()
    np.add.at(after, slots[:3], values[:3])
    expected = block(prior, 10, after) - block(prior, 6, sums)
    assert gain(prior, 6, sums, 4, slots, values, 3) == pytest.approx(expected, abs=1e-11)
    assert gain(prior, 6, sums, 4, slots, values, 4) == pytest.approx(expected, abs=1e-11)  # adds nothing
    assert gain(prior, 6, sums, 0, slots, values, 0) == 0.0


def test_poisson_against_an_integral():
    prior = MomentPrior(POISSON, 1.0, 2.3, 0.8)
    values = np.array([3, 0, 5])

    def integrand(rate):
        return gamma.pdf(rate, 2.3, scale=1 / 0.8) * np.prod(poisson.pmf(values, rate))

    expected = math.log(quad(integrand, 0, 60)[0]) + gammaln(values + 1.0).sum()
    assert block(prior, 3, np.array([8.0, 34.0])) == pytest.approx(expected, abs=1e-7)


def test_gaussian_against_an_integral():
    """μ | σ ~ N(0, σ²/strength), 1/σ² ~ Gamma(shape, rate)."""
    prior = MomentPrior(GAUSSIAN, 0.7, 2.5, 1.3)
    values = np.array([0.4, -1.1, 0.9])

    nodes, weights = np.polynomial.legendre.leggauss(300)
    mean, precision = np.meshgrid(8 * nodes, 12.5 * (nodes + 1))
    spread = 1.0 / np.sqrt(precision)
    density = gamma.pdf(precision, 2.5, scale=1 / 1.3) * norm.pdf(mean, 0.0, spread / math.sqrt(0.7))
    for x in values:
        density = density * norm.pdf(x, mean, spread)
    integral = 8 * 12.5 * weights @ density @ weights
    sums = np.array([values.sum(), (values**2).sum()])
    assert block(prior, 3, sums) == pytest.approx(math.log(integral), abs=1e-5)


@pytest.mark.parametrize("prior", [MomentPrior(POISSON, 1.0, 2.3, 0.8), MomentPrior(GAUSSIAN, 0.7, 2.5, 1.3)])
def test_gain_of_moments_is_a_difference(prior):
    sums, values = np.array([8.0, 34.0]), np.array([3.0, 5.0])
    expected = block(prior, 5, sums + values) - block(prior, 3, sums)
    assert gain(prior, 3, sums, 2, np.array([0, 1]), values, 2) == pytest.approx(expected, abs=1e-11)
    assert gain(prior, 3, sums, 0, np.array([0, 1]), values, 2) == 0.0
    assert block(prior, 0, np.zeros(2)) == 0.0
    # Zeros, or numbers that add up to nothing, need not be listed.
    for active in ([], [1], [0]):
        added = np.zeros(2)
        added[active] = values[active]
        expected = block(prior, 5, sums + added) - block(prior, 3, sums)
        found = gain(prior, 3, sums, 2, np.array(active, dtype=int), values[active], len(active))
        assert found == pytest.approx(expected, abs=1e-11)


def test_equal_numbers_have_no_negative_spread():
    """Rounding of the sum of squares must not make the rate smaller than the prior's."""
    prior = MomentPrior(GAUSSIAN, 1e-9, 0.5, 1e-12)
    x, n = 1e6 + 0.1, 3
    rounded = log_moments(prior, n, n * x, n * x * x * (1 - 1e-8))
    assert rounded == pytest.approx(log_moments(prior, n, n * x, (n * x) ** 2 / (n + 1e-9)), rel=1e-6)


def test_marginals_of_many_blocks():
    prior = count_prior(1.0, np.array([2]), 10)
    n, sums = np.array([3, 0, 1, 0]), np.array([[2, 1], [0, 0], [0, 1], [0, 0]])
    assert log_blocks(prior, n, sums) == pytest.approx(math.log(1 / 12) + math.log(1 / 2), abs=1e-12)
