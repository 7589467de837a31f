"""Shares of groups in the population given a partition: their moments are chances of the next observations.

The next observation joins group j with probability E[w_j], the next two with E[w_j²], and so on: so the
sequential rule of a prior, which is held against enumeration elsewhere, says all moments of the shares.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta

from permix import DirichletProcess, FiniteDirichlet, MixtureOfFiniteMixtures, PitmanYor
from permix.partitions.population import dirichlet_given, draw_shares, summarized_shares

PRIORS = [
    DirichletProcess(2.5),
    PitmanYor(1.0, 0.4),
    FiniteDirichlet(6, 0.7),
    MixtureOfFiniteMixtures(3.0, 0.8),
]
SIZES = np.array([6, 3, 1])
N = 40_000


def next_chances(prior, sizes):
    return np.exp(prior.sequential_log_weights(sizes))


def exact_moments(prior):
    """E[w_j], E[w_j w_k] and what is left, E[r], and E[r w_0], from one and two observations more."""
    once = next_chances(prior, SIZES)
    twice = np.array([next_chances(prior, SIZES + np.eye(3, dtype=int)[j])[:3] for j in range(3)])
    return once, once[:3, None] * twice, once[0] * next_chances(prior, SIZES + np.eye(3, dtype=int)[0])[3]


def off(draws, prior):
    """How many standard errors the moments of draws are away from the exact ones, at most."""
    once, both, rest = exact_moments(prior)
    left = 1.0 - draws.sum(axis=1)
    pairs = [(j, k) for j in range(3) for k in range(j + 1)]
    found = [*draws.T, left, *(draws[:, j] * draws[:, k] for j, k in pairs), left * draws[:, 0]]
    wanted = [*once, *(both[j, k] for j, k in pairs), rest]
    return max(
        abs(values.mean() - exact) / (values.std() / math.sqrt(len(values)) + 1e-12)
        for values, exact in zip(found, wanted, strict=True)
    )


def drawn(prior, seed=0, change=lambda sizes: sizes, **options):
    rng = np.random.default_rng(seed)
    return draw_shares(
        np.array([dirichlet_given(prior, change(SIZES), rng, **options) for _ in range(N)]), rng
    )


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: type(prior).__name__)
def test_moments_are_chances_of_the_next_observations(prior):
    assert off(drawn(prior), prior) < 4.5  # eleven moments
    # Twins: shares of those who were seen alone, and sizes that are not discounted.
    draws = drawn(prior, 1)
    assert off(draws / draws.sum(axis=1, keepdims=True), prior) > 10
    assert off(drawn(prior, 1, lambda sizes: sizes + 1), prior) > 10


def test_a_learned_concentration_is_given_beside_the_prior():
    prior = DirichletProcess(2.5)
    here, there = (drawn(prior, log_opening=given)[:500] for given in (math.log(2.5), None))
    np.testing.assert_allclose(here, there, rtol=1e-12)
    assert off(drawn(DirichletProcess(0.1), log_opening=math.log(2.5)), prior) < 4.5


def test_a_finite_mixture_whose_groups_are_all_seen_leaves_nothing():
    np.testing.assert_allclose(drawn(FiniteDirichlet(3))[:100].sum(axis=1), 1.0)


def test_clusters_that_are_one_group_have_the_share_of_all_of_them():
    """Twin: one that takes them for a single cluster, and so discounts once."""
    prior = PitmanYor(1.0, 0.6)
    rng = np.random.default_rng(0)
    given = dirichlet_given(prior, SIZES, rng)
    together = dirichlet_given(prior, [9, 1, 0], rng, [2, 1, 0])
    np.testing.assert_allclose(together, [given[0] + given[1], given[2], 0.0, given[3]])
    assert dirichlet_given(prior, [9, 1], rng)[0] != pytest.approx(together[0])


def test_summaries_are_of_all_partitions_together():
    given = [np.array([8.0, 2.0, 1.0]), np.array([3.0, 7.0, 1.0])]
    means, low, high = summarized_shares(given, 0.05)
    np.testing.assert_allclose(means, [11 / 22, 9 / 22])
    both = [beta(8, 3), beta(3, 8)]
    for end, at in ((low[0], 0.05), (high[0], 0.95)):
        error = np.sqrt(at * (1 - at) / 2_000) / np.mean([one.pdf(end) for one in both])
        reached = np.mean([one.cdf(end) for one in both])
        assert reached == pytest.approx(at, abs=4 * error * np.mean([one.pdf(end) for one in both]))
