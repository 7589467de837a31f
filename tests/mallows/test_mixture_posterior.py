"""Sampler SP, moves of single items, and exact sums for mixtures, against enumeration over every poset."""

from collections import Counter

import numpy as np
import pytest

from permix.data.preferences import Preferences
from permix.distributions.conditioning.amp_insertions_jit import geometric_models
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.draws import Jobs
from permix.distributions.conditioning.local_moves_jit import local_models
from permix.kernels.mallows import log_normalizer
from permix.mallows.chains_jit import move_rows, rank_range
from permix.mallows.downsets_jit import items_before, normalizer_rows
from permix.mallows.posterior_jit import consensus_rows, sp_rows
from tests.every_run import first_in_every_run
from tests.oracles import mallows_mixture as oracle
from tests.oracles import posets_all
from tests.oracles.ranking_models import total_variation, total_variation_bound
from tests.reference.posets import Statement, closed_relation

POSETS = posets_all.labeled_posets(4)
MIXTURE = [(0.2, (2, 0, 3, 1), 0.3), (0.5, (0, 1, 2, 3), 0.8), (0.3, (3, 1, 2, 0), 1.0)]
KEY = np.array([5, 6], np.uint64)


def agents_of(relations, n=4):
    pairs = [(agent, a, b) for agent, relation in enumerate(relations) for a, b in sorted(relation)]
    return Preferences.from_pairs(pairs, items=range(n), agents=range(len(relations)))


def components_of(mixture):
    with np.errstate(divide="ignore"):
        decays = -np.log([dispersion for _, _, dispersion in mixture])
    n = len(mixture[0][1])
    weights, centers = [w for w, _, _ in mixture], [center for _, center, _ in mixture]
    return MallowsComponents(tuple(range(n)), weights, centers, decays)


def run_sp(preferences, mixture, size, metropolis=True, n_burn_in=20, n_thin=4, cut=None):
    """Orders, labels and accepted steps of all agents; the work may be cut in two."""
    c = components_of(mixture)
    n, m = len(preferences), c.n_items
    orders = np.empty((n, size, m), np.int32)
    labels = np.empty((n, size), np.int64)
    accepted = np.empty(n, np.int64)
    totals = np.array([log_normalizer(decay, m) for decay in c.decays])
    jobs = Jobs.of(preferences.arrays(), np.arange(n), np.zeros(n), c.centers, geometric_models(c.decays, m))
    work = (jobs, c.log_weights, totals, metropolis, n_burn_in, n_thin, orders, labels, accepted)
    for first, last in [(0, n)] if cut is None else [(cut, n), (0, cut)]:
        sp_rows(first, last, KEY, *work)
    return orders, labels, accepted


def distance(orders, labels, *distributions):
    """Total variation between drawn (ordering, component) and distributions of these."""
    counts = Counter(zip(map(tuple, orders.tolist()), labels.tolist(), strict=True))
    found = [
        0.5
        * sum(
            abs(counts[key] / len(labels) - distribution.get(key, 0.0))
            for key in counts.keys() | distribution
        )
        for distribution in distributions
    ]
    return found if len(distributions) > 1 else found[0]


def test_the_matrix_of_sp_has_the_posterior_for_its_stationary_distribution():
    """The algorithm itself, on paper: with MMP on every poset; with AMP not on all of them."""
    wrong = 0
    for relation in POSETS:
        distribution = oracle.posterior(relation, MIXTURE)
        exact = oracle.sp_distribution(relation, MIXTURE, metropolis=True)
        assert max(abs(exact[key] - p) for key, p in distribution.items()) < 1e-10
        rough = oracle.sp_distribution(relation, MIXTURE, metropolis=False)
        gap = max(abs(rough[key] - p) for key, p in distribution.items())
        wrong += gap > 1e-3
        if posets_all.is_partitioned(relation, 4):
            assert gap < 1e-10
    assert wrong > 20


@pytest.mark.parametrize("step", first_in_every_run([3, 1]))
def test_sp_follows_the_posterior_on_every_poset(step):
    size, posets = 3000, POSETS[::step]
    orders, labels, accepted = run_sp(agents_of(posets), MIXTURE, size)
    rejected = np.zeros(3)
    for agent, relation in enumerate(posets):
        distribution = oracle.posterior(relation, MIXTURE)
        # Steps are thinned, but not quite independent: half as much again.
        bound = 1.5 * total_variation_bound(size, len(distribution))
        twins = oracle.without_weights, oracle.without_normalizers, oracle.prior_labels
        distributions = [distribution, *(twin(relation, MIXTURE) for twin in twins)]
        right, *wrong = distance(orders[agent], labels[agent], *distributions)
        assert right < bound
        rejected += np.array(wrong) > bound
    # The test can tell what it should tell.
    assert rejected.min() > 20 / step, rejected
    assert accepted.max() == 20 + 4 * size
    assert 0.5 * (20 + 4 * size) < accepted.min() < 20 + 4 * size


def test_sp_without_metropolis_is_as_published_and_not_the_posterior():
    """A chain of items with one left free: AMP is far from the posterior (example 2)."""
    mixture = [(0.6, (0, 1, 2, 3), 1.0), (0.4, (3, 0, 1, 2), 0.9)]
    relation = frozenset({(1, 2), (2, 3), (1, 3)})
    size = 40_000
    preferences = agents_of([relation])
    right, rough = (
        oracle.posterior(relation, mixture),
        oracle.sp_distribution(relation, mixture, metropolis=False),
    )
    bound = 1.5 * total_variation_bound(size, len(right))
    orders, labels, accepted = run_sp(preferences, mixture, size, metropolis=False)
    assert distance(orders[0], labels[0], rough) < bound < distance(orders[0], labels[0], right)
    assert accepted[0] == 20 + 4 * size
    orders, labels, accepted = run_sp(preferences, mixture, size)
    assert distance(orders[0], labels[0], right) < bound < distance(orders[0], labels[0], rough)
    assert accepted[0] < 20 + 4 * size


def test_sp_does_not_depend_on_how_the_work_is_divided():
    preferences = agents_of(POSETS[:40])
    for one, two in zip(
        run_sp(preferences, MIXTURE, 20), run_sp(preferences, MIXTURE, 20, cut=13), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_sp_at_the_ends():
    """A point mass, a uniform component, one of weight zero; an agent who contradicts a point mass."""
    mixture = [(0.5, (0, 1, 2, 3), 0.0), (0.5, (3, 2, 1, 0), 1.0), (0.0, (1, 0, 2, 3), 0.5)]
    agents = [frozenset(), frozenset({(1, 0)}), frozenset({(0, 1), (2, 3)})]
    size = 5_000
    orders, labels, _ = run_sp(agents_of(agents), mixture, size, n_thin=30)
    assert not (labels == 2).any()
    for agent, relation in enumerate(agents):
        distribution = oracle.posterior(relation, mixture)
        assert distance(orders[agent], labels[agent], distribution) < 2 * total_variation_bound(
            size, len(distribution)
        )
    assert (labels[1] == 1).all()
    orders, labels, _ = run_sp(agents_of(agents[1:2]), [(1.0, (0, 1, 2, 3), 0.0)], 5)
    assert (labels == -1).all()


# Moves of single items.


STATEMENTS = [
    Statement([[0], [1, 2]], False, []),
    Statement([[0, 3], [1]], False, [(2, 0)]),
    Statement([[2]], True, [(0, 1)]),
    Statement([[1, 3]], True, []),
    Statement([], False, [(3, 0), (0, 1), (3, 1)]),
    Statement([], False, []),
    Statement([[1], [3], [0]], False, [(3, 2)]),
]


def preferences_of(statements):
    """Agents with levels and pairs at once."""
    listed = [[(item, level) for level, group in enumerate(s.groups) for item in group] for s in statements]
    flat = [entry for entries in listed for entry in entries]
    return Preferences._from_arrays(
        items=range(4),
        level_indptr=np.cumsum([0, *map(len, listed)]),
        level_items=np.array([item for item, _ in flat]),
        levels=np.array([level for _, level in flat]),
        rest_below=np.array([s.rest_below for s in statements]),
        pair_indptr=np.cumsum([0, *[len(s.pairs) for s in statements]]),
        pairs=np.array([pair for s in statements for pair in s.pairs]),
    )


def moved(preferences, relations, mixture, n_jobs, n_sweeps, first_row=0):
    """States of chains (agents, components, jobs), all of an agent from one ordering that agrees."""
    c = components_of(mixture)
    k = c.n_components
    starts, agents, clusters = [], [], []
    for agent, relation in enumerate(relations):
        order = posets_all.linear_extensions(relation, 4)[-1]
        for cluster, (_, center, _) in enumerate(mixture):
            starts += [posets_all.insertion_places(order, center)] * n_jobs
            agents += [agent] * n_jobs
            clusters += [cluster] * n_jobs
    orders = np.empty((len(agents), 4), np.int32)
    models = (c.centers, np.argsort(c.centers, axis=1), local_models(geometric_models(c.decays, 4)))
    jobs = (np.array(agents), np.array(clusters), np.array(starts))
    move_rows(0, len(agents), first_row, KEY, preferences.arrays(), *jobs, models, n_sweeps, orders)
    return orders.reshape(len(relations), k, n_jobs, 4)


@pytest.mark.parametrize("stated_as", first_in_every_run(["statements", "some pairs", "pairs"]))
def test_moves_lead_to_the_posterior(stated_as):
    if stated_as != "statements":
        relations = POSETS[:: 6 if stated_as == "some pairs" else 1]
        preferences = agents_of(relations)
    else:
        relations = [frozenset(closed_relation(s, 4)) for s in STATEMENTS]
        preferences = preferences_of(STATEMENTS)
    n_jobs = 1200
    states = moved(preferences, relations, MIXTURE, n_jobs, 20)
    rejected = 0
    for agent, relation in enumerate(relations):
        for k, (_, center, dispersion) in enumerate(MIXTURE):
            _, distribution = posets_all.posterior(relation, center, posets_all.geometric(dispersion))
            bound = total_variation_bound(n_jobs, len(distribution))
            assert total_variation(states[agent, k], distribution) < bound
            twin = posets_all.posterior(relation, center, posets_all.geometric(0.5 * dispersion + 0.3))[1]
            rejected += total_variation(states[agent, k], twin) > bound
    assert rejected > len(relations) // 3


def test_moves_leave_a_point_mass_alone():
    states = moved(
        agents_of([frozenset({(0, 3)})]), [frozenset({(0, 3)})], [(1.0, (0, 1, 2, 3), 0.0)], 50, 20
    )
    assert (states == [0, 1, 2, 3]).all()


def test_moves_without_sweeps_return_the_start():
    relations = [frozenset({(3, 0)})]
    states = moved(agents_of(relations), relations, MIXTURE, 2, 0)
    assert (states == posets_all.linear_extensions(relations[0], 4)[-1]).all()


def test_moves_of_different_rows_use_different_numbers():
    relations = [frozenset()]
    one = moved(agents_of(relations), relations, MIXTURE, 200, 3)
    two = moved(agents_of(relations), relations, MIXTURE, 200, 3, first_row=600)
    again = moved(agents_of(relations), relations, MIXTURE, 200, 3)
    np.testing.assert_array_equal(one, again)
    assert (one != two).any(axis=-1).mean() > 0.5


# Exact sums.


def sums(preferences, mixture, limit):
    c = components_of(mixture)
    n = len(preferences)
    out, n_sets = np.full((n, c.n_components), np.nan), np.zeros(n, np.int64)
    totals = np.array([log_normalizer(decay, c.n_items) for decay in c.decays])
    work = (preferences.arrays(), np.arange(n), items_before(c.centers), c.decays, totals, limit)
    normalizer_rows(0, n, *work, out, n_sets, np.empty((0, 0, 0, 0)))
    return out + c.log_weights, n_sets > 0


@pytest.mark.parametrize(
    "mixture", [MIXTURE, [(0.7, (0, 2, 1, 3), 0.0), (0.3, (3, 2, 1, 0), 0.6), (0.0, (1, 0, 2, 3), 0.5)]]
)
def test_sums_on_every_poset(mixture):
    found, solved = sums(agents_of(POSETS), mixture, 16)
    assert solved.all()
    with np.errstate(divide="ignore"):
        expected = np.log([oracle.joint(relation, mixture) for relation in POSETS])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_sums_of_all_kinds_of_statements():
    found, solved = sums(preferences_of(STATEMENTS), MIXTURE, 16)
    assert solved.all()
    expected = np.log([oracle.joint(frozenset(closed_relation(s, 4)), MIXTURE) for s in STATEMENTS])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_sums_stop_at_the_limit():
    """Without preferences there are 16 down-sets, of a chain 5; of 100 items with one comparison too many."""
    preferences = agents_of([frozenset(), posets_all.closure({(0, 1), (1, 2), (2, 3)}, 4)])
    assert sums(preferences, MIXTURE, 16)[1].tolist() == [True, True]
    assert sums(preferences, MIXTURE, 15)[1].tolist() == [False, True]
    assert sums(preferences, MIXTURE, 4)[1].tolist() == [False, False]
    wide = Preferences.from_pairs([(0, 5, 6)], items=range(100))
    assert not sums(wide, [(1.0, tuple(range(100)), 0.9)], 2**18)[1].any()


def test_sums_over_more_than_a_word_of_items():
    """A chain of 70 items with one item free: 71 places, each at a known distance from the center."""
    n = 71
    center = (*range(1, 40), 0, *range(40, n))
    chain = Preferences.from_pairs([(0, a, a + 1) for a in range(1, n - 1)], items=range(n))
    found, solved = sums(chain, [(1.0, center, 0.7)], 1000)
    assert solved.all()
    weights = [0.7 ** abs(place - 39) for place in range(n)]
    expected = np.log(sum(weights)) - log_normalizer(-np.log(0.7), n)
    assert found[0, 0] == pytest.approx(expected, abs=1e-9)


# Consensus and ranges.


def test_consensus_is_a_local_optimum_that_keeps_what_is_certain():
    rng = np.random.default_rng(8)
    n = 6
    first, second = np.triu_indices(n, 1)
    before = rng.random((200, len(first)))
    certain = rng.random(before.shape) < 0.3
    order = np.array([rng.permutation(n) for _ in range(200)])
    rank = np.argsort(order, axis=1)
    truth = rank[:, first] < rank[:, second]
    before[certain] = truth[certain]
    # Close the certain pairs, as a distribution of rankings does.
    for row in range(len(before)):
        pairs = {
            (int(a), int(b)) if truth[row, p] else (int(b), int(a))
            for p, (a, b) in enumerate(zip(first, second, strict=True))
            if certain[row, p]
        }
        for a, b in posets_all.closure(pairs, n):
            p = np.flatnonzero((first == min(a, b)) & (second == max(a, b)))[0]
            before[row, p] = float(a < b)
    orders, means = np.empty((200, n), np.int32), np.empty((200, n))
    consensus_rows(0, 200, before, orders, means)
    matrix = np.zeros((200, n, n))
    matrix[:, first, second], matrix[:, second, first] = before, 1.0 - before
    np.testing.assert_allclose(means, 1.0 + matrix.sum(axis=1), atol=1e-12)
    for row in range(200):
        found = orders[row].tolist()
        assert sorted(found) == list(range(n))
        for later in range(n):
            for earlier in range(later):
                assert matrix[row, found[later], found[earlier]] < 1.0
        cost = expected_disagreement(matrix[row], found)
        for place in range(n):
            for target in range(n):
                other = found[:place] + found[place + 1 :]
                other.insert(target, found[place])
                keeps = all(matrix[row, b, a] < 1.0 for i, a in enumerate(other) for b in other[i + 1 :])
                assert not keeps or expected_disagreement(matrix[row], other) > cost - 1e-6


def expected_disagreement(matrix, order):
    return sum(matrix[b, a] for i, a in enumerate(order) for b in order[i + 1 :])


def test_rank_ranges():
    weights = np.zeros((3, 3))
    weights[0] = [0.05, 0.9, 0.05]
    weights[1] = [0.06, 0.88, 0.06]
    weights[2] = [0.0, 0.0, 2.0]
    out = np.empty((2, 3), np.int32)
    rank_range(weights, out)
    np.testing.assert_array_equal(out, [[2, 1, 3], [2, 3, 3]])
