"""Scores of top lists under many clusters, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permix.distributions.generalized.finite_beta_jit import stage_tables
from permix.distributions.generalized.generalized_mallows_jit import log_psi
from permix.dp_mallows.lists.clusters_jit import log_prior_chances
from permix.dp_mallows.lists.pairs_jit import pair_chances
from permix.dp_mallows.lists.scores_jit import (
    ListTables,
    list_scores,
    skips_at,
)
from tests.reference import dp_mallows_predictive as naive


def tables_of(centers, theta, beyond=None, dtype=np.int16):
    """Tables with equal weights for clusters given as rows."""
    centers = np.array(centers, dtype=np.int32)
    n_clusters, n = centers.shape
    ranks = np.array([np.argsort(center) for center in centers], dtype).T.copy()
    stages = np.array(np.asarray(theta, dtype=float).T, order="C")
    norms, log_norms = log_psi(stages, n - np.arange(len(stages))[:, None]), np.zeros((n, n_clusters))
    log_norms[1:] = np.cumsum(norms, axis=0)
    return ListTables(
        ranks,
        centers,
        stages,
        norms,
        log_norms,
        np.full(n_clusters, -np.log(n_clusters + 1.0)),
        np.full(1, -np.log(n_clusters + 1.0)),
        np.array([0, n_clusters]),
        np.empty((0, n)) if beyond is None else beyond,
    )


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
@given(n=st.integers(2, 9), n_clusters=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_scores_are_those_of_the_definition(dtype, n, n_clusters, seed):
    rng = np.random.default_rng(seed)
    centers = [rng.permutation(n) for _ in range(n_clusters)]
    theta = rng.choice([0.0, 1e-9, 0.3, 1.0, 40.0], (n_clusters, n - 1))
    tables = tables_of(centers, theta, dtype=dtype)
    order = rng.permutation(n).astype(np.int32)
    codes, found = np.empty(n_clusters, dtype), np.empty(n_clusters)
    for length in range(1, n + 1):
        list_scores(order, length, tables, found)
        for c in range(n_clusters):
            skips = naive.skips(order[:length], centers[c])
            truth = -sum(
                theta[c, j] * skips[j] + np.log(naive.psi(theta[c, j], n - 1 - j))
                for j in range(min(length, n - 1))
            )
            assert found[c] == pytest.approx(truth, abs=1e-11, rel=1e-12)
        skips_at(order, length - 1, tables.ranks, 0, n_clusters, codes)
        truth = [naive.skips(order[:length], center)[-1] for center in centers]
        assert codes[:n_clusters].tolist() == truth


@pytest.mark.parametrize(("strength", "rate"), [(1.0, 1.0), (0.3, 2.0), (40.0, 0.5)])
def test_distributions_under_the_prior(strength, rate):
    n = 7
    stages = stage_tables(n, n - 1, np.full(n - 1, rate), strength, 2)
    distributions = log_prior_chances(stages, n)
    for j in range(n - 1):
        truth = [naive.stage_probability(s, j, n, (), strength, rate) for s in range(n - j)]
        np.testing.assert_allclose(np.exp(distributions[j, : n - j]), truth, rtol=1e-8)
        assert np.all(distributions[j, n - j :] == -np.inf)
        assert np.exp(distributions[j]).sum() == pytest.approx(1.0, abs=1e-14)


def test_places_of_a_uniform_distribution_are_alike():
    """Without decay every order of the items left is as probable as any other."""
    tables = tables_of([np.arange(6)], np.zeros((1, 5)))
    distributions = np.empty((1, 3, 6, 6))
    pair_chances(0, 1, np.array([0]), tables, np.array([0, 2, 6]), distributions)
    for kind, left in ((0, 6), (1, 4)):
        distribution = distributions[0, kind, :left, :left]
        np.testing.assert_allclose(distribution, 0.5 - 0.5 * np.eye(left), atol=1e-14)
    assert not distributions[0, 2].any()


def test_a_twin_that_forgets_what_was_taken_is_found_out():
    """Items taken before count no more: the second item of the center has no skip after the first."""
    tables = tables_of([[2, 0, 1]], [[1.0, 1.0]])
    codes = np.empty(1, np.int16)
    skips_at(np.array([2, 0], np.int32), 1, tables.ranks, 0, 1, codes)
    assert codes[0] == 0
    assert tables.ranks[0, 0] == 1
