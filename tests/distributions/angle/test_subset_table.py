"""The table over subsets against enumeration of all orderings, and against itself in logarithms."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp

from permix.distributions.angle import subset_table_jit as kernels
from permix.distributions.angle.normalizers import log_sum as log_sum_of
from permix.distributions.angle.scores import standard_scores
from tests.oracles.ranking_models import total_variation, total_variation_bound

CASES = [(t, concentration) for t in (2, 3, 4, 5, 6) for concentration in (0.0, 0.7, 5.0, 40.0, 1e3, 1e6)]


def tilts_of(t, concentration, seed=0):
    direction = np.random.default_rng([seed, t]).normal(size=t)
    direction -= direction.mean()
    return concentration * direction / np.linalg.norm(direction)


class Enumeration:
    """Everything about a model of few items, straight from the definition."""

    def __init__(self, tilts, scores):
        t = len(tilts)
        self.orders = np.array(list(permutations(range(t))))
        log_weights = (np.asarray(tilts)[self.orders] * scores).sum(axis=1)
        self.log_sum = logsumexp(log_weights)
        self.distribution = np.exp(log_weights - self.log_sum)
        ranks = np.argsort(self.orders, axis=1)
        self.marginals = np.array(
            [[self.distribution[ranks[:, i] == r].sum() for r in range(t)] for i in range(t)]
        )
        self.mean = self.marginals @ scores
        before = ranks[:, :, None] < ranks[:, None, :]
        self.pairwise = (self.distribution[:, None, None] * before).sum(axis=0)

    def by_order(self):
        return {tuple(order): p for order, p in zip(self.orders.tolist(), self.distribution, strict=True)}


def log_domain_table(tilts, scores, first_rank=0):
    """Return ln of the sum by the recursion, naively; ``first_rank`` = 1 makes a broken twin."""
    t = len(tilts)
    table = np.zeros(1 << t)
    for subset in range(1, 1 << t):
        members = [i for i in range(t) if subset >> i & 1]
        score = scores[min(len(members) - 1 + first_rank, t - 1)]
        table[subset] = logsumexp([table[subset ^ (1 << i)] + tilts[i] * score for i in members])
    return table[-1]


def log_sum_and_mean(tilts, scores):
    table, back, mean = np.empty(1 << len(tilts)), np.empty(1 << len(tilts)), np.empty(len(tilts))
    return kernels.log_sum_and_mean(tilts, scores, table, back, mean), mean


@pytest.mark.parametrize(("t", "concentration"), CASES)
def test_all_numbers_by_enumeration(t, concentration):
    tilts, scores = tilts_of(t, concentration), standard_scores(t)
    truth = Enumeration(tilts, scores)
    log_sum, mean = log_sum_and_mean(tilts, scores)
    assert log_sum == pytest.approx(truth.log_sum, rel=1e-13, abs=1e-12)
    assert log_sum_of("exact", tilts, scores) == log_sum
    np.testing.assert_allclose(mean, truth.mean, atol=1e-11)
    marginals = kernels.rank_marginals(tilts, scores)
    np.testing.assert_allclose(marginals, truth.marginals, atol=1e-11)
    np.testing.assert_allclose(kernels.pairwise(tilts, scores), truth.pairwise, atol=1e-11)
    if 0.0 < concentration <= 1e3 and t > 2:  # each of these would be seen
        assert log_domain_table(tilts, scores, first_rank=1) != pytest.approx(truth.log_sum, rel=1e-9)
        assert np.abs(mean - Enumeration(-tilts, scores).mean).max() > 1e-3
        assert np.abs(marginals - truth.marginals[:, ::-1]).max() > 1e-3
        assert np.abs(kernels.pairwise(tilts, scores).T - truth.pairwise).max() > 1e-3


def test_scores_need_not_be_standard_and_tilts_may_be_equal():
    scores = np.array([-3.0, -1.0, -1.0, 0.5, 7.0])
    tilts = np.array([0.4, -0.3, 0.4, 0.4, -2.0])
    truth = Enumeration(tilts, scores)
    log_sum, mean = log_sum_and_mean(tilts, scores)
    assert log_sum == pytest.approx(truth.log_sum, abs=1e-12)
    np.testing.assert_allclose(mean, truth.mean, atol=1e-12)


@pytest.mark.parametrize("concentration", [0.0, 3.0, 50.0, 1e4, 1e9])
def test_ten_items_against_the_recursion_in_logarithms(concentration):
    tilts, scores = tilts_of(10, concentration), standard_scores(10)
    log_sum, _ = log_sum_and_mean(tilts, scores)
    assert log_sum == pytest.approx(log_domain_table(tilts, scores), rel=1e-12)


@pytest.mark.parametrize("concentration", [0.0, 20.0, 1e3, 1e6, 1e12])
def test_sixteen_items_at_any_concentration(concentration):
    t = 16
    tilts, scores = tilts_of(t, concentration), standard_scores(t)
    _, factors, best = kernels.scaled_factors(tilts, scores)
    assert factors.max() == 1.0
    assert (np.diag(factors) == 1.0).all()
    assert best == pytest.approx(np.sort(tilts) @ scores, rel=1e-14)
    log_sum, mean = log_sum_and_mean(tilts, scores)
    assert best - 1e-9 <= log_sum <= best + np.log(np.arange(1, t + 1)).sum() + 1e-9
    marginals = kernels.rank_marginals(tilts, scores)
    np.testing.assert_allclose(marginals.sum(axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(marginals @ scores, mean, atol=1e-13)
    pairs = kernels.pairwise(tilts, scores)
    np.testing.assert_allclose((pairs + pairs.T)[~np.eye(t, dtype=bool)], 1.0, rtol=1e-12)
    # An item's mean rank counts the items before it.
    np.testing.assert_allclose(pairs.sum(axis=0), marginals @ np.arange(t), atol=1e-11)


def test_mean_is_the_gradient():
    t, step = 9, 1e-5
    tilts, scores = tilts_of(t, 11.0), standard_scores(t)
    slopes = [
        (log_sum_of("exact", tilts + e, scores) - log_sum_of("exact", tilts - e, scores)) / (2 * step)
        for e in step * np.eye(t)
    ]
    np.testing.assert_allclose(log_sum_and_mean(tilts, scores)[1], slopes, atol=1e-9)


def drawn(tilts, scores, n, pieces=1):
    items, factors, _ = kernels.scaled_factors(tilts, scores)
    table = np.empty(1 << len(tilts))
    kernels.fill_table(factors, table)
    out = np.empty((n, len(tilts)), np.int32)
    key = np.array([5, 6], np.uint64)
    for piece in range(pieces):
        first, last = n * piece // pieces, n * (piece + 1) // pieces
        kernels.sample_table_rows(key, first, last, items, factors, table, out)
    return out


@pytest.mark.parametrize("concentration", [0.0, 4.0, 30.0, 1e6])
def test_draws_by_enumeration(concentration):
    n, t = 60_000, 5
    tilts, scores = tilts_of(t, concentration), standard_scores(t)
    draws = drawn(tilts, scores, n)
    bound = total_variation_bound(n, 120)
    assert total_variation(draws, Enumeration(tilts, scores).by_order()) < bound
    if concentration == 4.0:
        assert total_variation(draws, Enumeration(0.8 * tilts, scores).by_order()) > bound
        assert total_variation(draws, Enumeration(tilts[::-1], scores).by_order()) > bound


def test_rows_do_not_depend_on_how_they_are_divided():
    tilts, scores = tilts_of(7, 9.0), standard_scores(7)
    whole = drawn(tilts, scores, 100)
    np.testing.assert_array_equal(whole, drawn(tilts, scores, 100, pieces=7))
    np.testing.assert_array_equal(whole[:30], drawn(tilts, scores, 30))
