"""Exact sums over down-sets: all posets on four items, random ones on five, narrow ones of any length."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from permix.distributions.conditioning.amp_insertions_jit import (
    general_models,
    geometric_models,
    step_probabilities,
    weighted_models,
)
from permix.distributions.conditioning.downsets_jit import (
    build_downsets,
    complete_blocks,
    downset_marginals,
    edge_log_weights,
    edge_probabilities,
    extend_marginals,
    next_below,
    sample_downsets,
    sums_below,
)
from permix.distributions.conditioning.exact import relation_rows
from permix.distributions.insertion_jit import insertion_marginals
from tests.oracles import posets_all as oracle
from tests.oracles.ranking_models import total_variation, total_variation_bound

NO_LIMIT = 1 << 30


def lattice_of(relation, n, limit=NO_LIMIT):
    below = np.zeros((n, n), np.bool_)
    for a, b in relation:
        below[a, b] = True
    return build_downsets(relation_rows(below.T), relation_rows(below), n, limit)


def n_down_sets(relation, n):
    """Sets that contain with every item all that must be above it."""
    return sum(
        all(a in chosen for a, b in relation if b in chosen)
        for size in range(n + 1)
        for chosen in map(set, combinations(range(n), size))
    )


def models_of(dispersions):
    with np.errstate(divide="ignore"):
        decays = -np.log(np.asarray(dispersions, float))
    return geometric_models(decays, 5) if decays.ndim == 0 else weighted_models(decays[None])


CASES = [(4, relation) for relation in oracle.labeled_posets(4)]
CASES += [(5, relation) for relation in oracle.random_posets(5, 60, seed=1)]


@pytest.mark.parametrize("dispersions", [0.0, 0.3, 0.9, 1.0, (1.0, 0.2, 0.9, 0.5, 0.7)])
def test_sums_and_marginals(dispersions):
    """The items of the center in order; sums over all edges, marginals, against enumeration."""
    models = models_of(dispersions)
    weight = oracle.geometric(dispersions)
    for n, relation in CASES:
        lattice = lattice_of(relation, n)
        assert lattice.n_sets == n_down_sets(relation, n)
        weights = edge_log_weights(lattice, models, 0)
        sums = sums_below(lattice, weights)
        total, distribution = oracle.posterior(relation, range(n), weight)
        assert np.exp(sums[0]) == pytest.approx(total, rel=1e-12, abs=1e-15)
        if total == 0.0:
            assert sums[0] == -np.inf
            continue
        passed = edge_probabilities(lattice, weights, sums)
        at_rank, before = downset_marginals(lattice, passed, n)
        np.testing.assert_allclose(at_rank, oracle.rank_marginals(distribution, n), atol=1e-13)
        np.testing.assert_allclose(before, oracle.pairwise(distribution, n), atol=1e-13)


def test_sums_with_any_insertion_distribution():
    rng = np.random.default_rng(3)
    probabilities = np.tril(rng.random((5, 5)))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    models = general_models(probabilities[None])
    for n, relation in CASES[::7]:
        lattice = lattice_of(relation, n)
        sums = sums_below(lattice, edge_log_weights(lattice, models, 0))
        total, _ = oracle.posterior(relation, range(n), lambda i, place: probabilities[i, place])
        assert np.exp(sums[0]) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("dispersions", [0.3, 1.0, (1.0, 0.2, 0.9, 0.5, 0.7)])
def test_draws(dispersions):
    size = 3000
    models = models_of(dispersions)
    weight = oracle.geometric(dispersions)
    rng = np.random.default_rng(9)
    rejected = 0
    for n, relation in CASES[::4]:
        lattice = lattice_of(relation, n)
        weights = edge_log_weights(lattice, models, 0)
        draws = np.empty((size, n), np.int32)
        sample_downsets(rng, lattice, weights, sums_below(lattice, weights), draws)
        distribution = oracle.posterior(relation, range(n), weight)[1]
        bound = total_variation_bound(size, len(distribution))
        assert total_variation(draws, distribution) < bound
        rejected += total_variation(draws, oracle.amp_distribution(relation, range(n), weight)) > bound
    assert rejected > 0 or dispersions == 0.3


def test_the_limit():
    antichain = frozenset()
    assert lattice_of(antichain, 10, limit=1024).n_sets == 1024
    assert lattice_of(antichain, 10, limit=1023).n_sets == -1
    assert lattice_of(antichain, 200, limit=5000).n_sets == -1
    chain = oracle.closure({(i, i + 1) for i in range(9)}, 10)
    assert lattice_of(chain, 10, limit=11).n_sets == 11


def test_two_long_chains():
    """Uniform model: the linear extensions of two chains of a and b items are C(a + b, a)."""
    a, b = 90, 70
    n = a + b
    below = np.zeros((n, n), np.bool_)
    below[:a, :a] = np.triu(np.ones((a, a)), 1)
    below[a:, a:] = np.triu(np.ones((b, b)), 1)
    shuffle = np.random.default_rng(0).permutation(n)
    below = below[np.ix_(shuffle, shuffle)]
    lattice = build_downsets(relation_rows(below.T), relation_rows(below), n, NO_LIMIT)
    assert lattice.n_sets == (a + 1) * (b + 1)
    sums = sums_below(lattice, edge_log_weights(lattice, geometric_models(np.zeros(1), n), 0))
    log_factorial = np.sum(np.log(np.arange(1, n + 1)))
    assert sums[0] + log_factorial == pytest.approx(np.log(float(comb(n, a))), rel=1e-12)


@pytest.mark.parametrize(("first", "last"), [(0, 3), (2, 5), (1, 4), (0, 5), (3, 3)])
def test_free_items_at_the_ends(first, last):
    """A block in the middle of the center, conditioned by itself, then completed, is the whole posterior."""
    n, size = 5, 20_000
    center = np.array([3, 0, 4, 1, 2], np.int32)
    models = geometric_models(-np.log([0.6]), n)
    inside = oracle.closure({(first + 1, first)} if last - first > 1 else set(), n)
    block = frozenset((a - first, b - first) for a, b in inside)
    lattice = lattice_of(block, last - first)
    weights = edge_log_weights(lattice, models, 0)
    sums = sums_below(lattice, weights)
    relation = frozenset((int(center[a]), int(center[b])) for a, b in inside)
    total, distribution = oracle.posterior(relation, center.tolist(), oracle.geometric(0.6))
    assert np.exp(sums[0]) == pytest.approx(total, rel=1e-12)
    rng = np.random.default_rng(4)
    blocks = np.empty((size, last - first), np.int32)
    sample_downsets(rng, lattice, weights, sums, blocks)
    draws = np.empty((size, n), np.int32)
    complete_blocks(rng, models, 0, first, last, blocks, center, draws)
    assert total_variation(draws, distribution) < total_variation_bound(size, 120)
    shifted = {order[1:] + order[:1]: mass for order, mass in distribution.items()}
    assert total_variation(draws, shifted) > total_variation_bound(size, 120)

    at_rank, before = np.zeros((n, n)), np.zeros((n, n))
    passed = edge_probabilities(lattice, weights, sums)
    stretch = slice(first, last)
    at_rank[stretch, : last - first], before[stretch, stretch] = downset_marginals(
        lattice, passed, last - first
    )
    steps = np.arange(n)
    places = step_probabilities(models, 0, steps, 0 * steps, steps)
    for end in range(last, n):
        extend_marginals(at_rank, before, first, end, places[end - first])
    for start in range(first, 0, -1):
        extend_marginals(at_rank, before, start, n, places[n - start, n - start :: -1].copy())
    np.testing.assert_allclose(at_rank, oracle.rank_marginals(distribution, n)[center], atol=1e-13)
    np.testing.assert_allclose(before, oracle.pairwise(distribution, n)[np.ix_(center, center)], atol=1e-13)


def test_extending_from_nothing_is_repeated_insertion():
    n = 30
    steps = np.arange(n)
    places = step_probabilities(geometric_models(np.array([0.2]), n), 0, steps, 0 * steps, steps)
    at_rank, before = np.zeros((n, n)), np.zeros((n, n))
    for end in range(n):
        extend_marginals(at_rank, before, 0, end, places[end])
    positions, pairs = insertion_marginals(places)
    np.testing.assert_allclose(at_rank, positions.T, atol=1e-12)
    np.testing.assert_allclose(before, pairs, atol=1e-12)


def test_neighbors_of_the_order():
    """Of all that must be below an item, those with nobody in between."""
    for n, relation in CASES[::5]:
        below = np.zeros((n, n), np.bool_)
        for a, b in relation:
            below[a, b] = True
        covers = {
            (a, b)
            for a, b in relation
            if not any((a, c) in relation and (c, b) in relation for c in range(n))
        }
        found = next_below(relation_rows(below.T), relation_rows(below), n)
        assert {(a, b) for a in range(n) for b in range(n) if int(found[a, 0]) >> b & 1} == covers
