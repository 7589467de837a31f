"""AMP and MMP: every poset on four items against enumeration; fast paths against each other."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from permix.data.preferences import Preferences
from permix.distributions.conditioning.amp_insertions_jit import (
    general_models,
    geometric_models,
    log_mass,
    place_quantile,
    weighted_models,
)
from permix.distributions.conditioning.amp_jit import amp_log_prob, amp_places
from permix.distributions.conditioning.amp_plans_jit import make_plan, room_for_plan
from permix.distributions.conditioning.draws import Jobs, amp_draws, log_mean_exp, mmp_draws
from permix.kernels.orders import insertion_code, invert_order
from permix.kernels.streams import fill_uniform, new_stream, open_stream, padded
from permix.runtime.threads import at_most
from tests.every_run import first_in_every_run
from tests.oracles import posets_all as oracle
from tests.oracles.ranking_models import total_variation, total_variation_bound
from tests.reference.amp_dense import amp_dense
from tests.reference.posets import Statement, closed_relation

KEY = np.array([11, 12], np.uint64)
CENTER = (2, 0, 3, 1)
POSETS = oracle.labeled_posets(4)
ORDERS = np.array(list(permutations(range(4))), np.int32)


def agents_of(relations, n):
    """One agent per relation, stated as pairs."""
    pairs = [(agent, a, b) for agent, relation in enumerate(relations) for a, b in sorted(relation)]
    return Preferences.from_pairs(pairs, items=range(n), agents=range(len(relations)))


def models_of(dispersions):
    """Distributions with one dispersion, or one for each step."""
    with np.errstate(divide="ignore"):
        decays = -np.log(np.asarray(dispersions, float))
    return geometric_models(decays, 4) if decays.ndim == 0 else weighted_models(decays[None])


def amp(preferences, center, models, size):
    agents = np.arange(len(preferences))
    jobs = Jobs.of(preferences.arrays(), agents, 0 * agents, np.array([center]), models)
    return amp_draws(KEY, 0, jobs, size)


def probabilities_of(distribution, orders):
    return [distribution.get(tuple(order), 0.0) for order in orders.tolist()]


def evaluated(preferences, agent, center, models, orders):
    prior, weight, q = (np.empty(len(orders)) for _ in range(3))
    center = np.array(center, np.int32)
    allowed = amp_log_prob(preferences.arrays(), agent, center, models, 0, orders, prior, weight, q)
    return allowed, prior, weight, q


@pytest.mark.parametrize("dispersions", [0.0, 0.3, 0.9, 1.0, (1.0, 0.2, 0.9, 0.5), (0.5, 0.0, 1.0, 0.4)])
def test_equation_15_on_every_poset(dispersions):
    """ln q of every ordering, its sum, its support; ln P without preferences; exact where partitioned."""
    preferences = agents_of(POSETS, 4)
    models = models_of(dispersions)
    weight = oracle.geometric(dispersions)
    for agent, relation in enumerate(POSETS):
        distribution = oracle.amp_distribution(relation, CENTER, weight)
        allowed, prior, log_weight, log_q = evaluated(preferences, agent, CENTER, models, ORDERS)
        np.testing.assert_allclose(np.exp(log_q), probabilities_of(distribution, ORDERS), atol=1e-14)
        assert np.exp(log_q).sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_array_equal(allowed, [oracle.respects(r, relation) for r in ORDERS.tolist()])
        np.testing.assert_allclose(
            np.exp(prior), [oracle.probability(r, CENTER, weight) for r in ORDERS.tolist()], atol=1e-14
        )
        possible = allowed & np.isfinite(prior)
        np.testing.assert_allclose(log_weight[possible], prior[possible] - log_q[possible], atol=1e-12)
        if oracle.is_partitioned(relation, 4):
            total, posterior = oracle.posterior(relation, CENTER, weight)
            if total > 0:
                np.testing.assert_allclose(np.exp(log_q), probabilities_of(posterior, ORDERS), atol=1e-14)


FIVE = (0.0, 0.3, 0.9, 1.0, (1.0, 0.2, 0.9, 0.5))


# Each poset with one of them, and in the slow run with all.
@pytest.mark.parametrize(
    ("dispersions", "posets"),
    first_in_every_run(
        [*((some, POSETS[k::5]) for k, some in enumerate(FIVE)), *((some, POSETS) for some in FIVE)], 5
    ),
    ids=lambda value: len(value) if isinstance(value, list) else None,
)
def test_draws_follow_equation_15(dispersions, posets):
    size = 4000
    preferences = agents_of(posets, 4)
    models = models_of(dispersions)
    weight = oracle.geometric(dispersions)
    orders, distances, log_weights = amp(preferences, CENTER, models, size)
    rejected = 0
    for agent, relation in enumerate(posets):
        distribution = oracle.amp_distribution(relation, CENTER, weight)
        bound = total_variation_bound(size, len(distribution))
        assert total_variation(orders[agent], distribution) < bound
        posterior = oracle.posterior(relation, CENTER, weight)[1]
        rejected += posterior is not None and total_variation(orders[agent], posterior) > bound
        # What is reported with the draws is what evaluation says.
        _, _, log_weight, _ = evaluated(preferences, agent, CENTER, models, orders[agent, :20])
        np.testing.assert_allclose(log_weights[agent, :20], log_weight, atol=1e-12)
        places = [oracle.insertion_places(r, CENTER) for r in orders[agent, :20].tolist()]
        np.testing.assert_array_equal(distances[agent, :20], [6 - sum(p) for p in places])
    # The test can tell AMP from the true posterior: they differ at 0.9 and 1 on some posets.
    assert rejected > 0 or dispersions in (0.0, 0.3)


def test_draws_of_a_general_distribution():
    rng = np.random.default_rng(5)
    probabilities = np.tril(rng.dirichlet(np.ones(4), size=4))
    probabilities[3, 1] = 0.0
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    models = general_models(probabilities[None])
    preferences = agents_of(POSETS, 4)
    orders, _, _ = amp(preferences, CENTER, models, 3000)
    for agent in range(0, len(POSETS), 3):
        relation = POSETS[agent]
        distribution = oracle.amp_distribution(relation, CENTER, lambda i, place: probabilities[i, place])
        _, _, _, log_q = evaluated(preferences, agent, CENTER, models, ORDERS)
        np.testing.assert_allclose(np.exp(log_q), probabilities_of(distribution, ORDERS), atol=1e-14)
        assert total_variation(orders[agent], distribution) < total_variation_bound(3000, len(distribution))


def test_example_2():
    """a2 ≻ a3 ≻ … ≻ am, uniform: q = 2^-i for a1 at rank i < m, and 2^-(m-1) at the last (misprinted)."""
    m = 9
    chain = Preferences.from_pairs([(0, i, i + 1) for i in range(1, m - 1)], items=range(m))
    orders = np.array([[*range(1, i + 1), 0, *range(i + 1, m)] for i in range(m)], np.int32)
    _, _, _, log_q = evaluated(chain, 0, range(m), geometric_models(np.zeros(1), m), orders)
    expected = [2.0**-i for i in range(1, m)] + [2.0 ** -(m - 1)]
    np.testing.assert_allclose(np.exp(log_q), expected, rtol=1e-12)


def test_metropolis_leaves_the_posterior_invariant():
    """With every proposal enumerated, πP = π; a chain that accepts by P alone is rejected."""
    preferences = agents_of(POSETS, 4)
    largest_twin = 0.0
    for dispersions in (0.3, 0.9, 1.0, (1.0, 0.2, 0.9, 0.5)):
        models = models_of(dispersions)
        for agent, relation in enumerate(POSETS):
            allowed, prior, log_weight, log_q = evaluated(preferences, agent, CENTER, models, ORDERS)
            posterior = oracle.posterior(relation, CENTER, oracle.geometric(dispersions))[1]
            target = np.array([posterior[tuple(r)] for r in ORDERS[allowed].tolist()])
            q = np.exp(log_q[allowed])
            for twin, score in ((False, log_weight[allowed]), (True, prior[allowed])):
                chain = q[None, :] * np.minimum(1.0, np.exp(score[None, :] - score[:, None]))
                chain += np.diag(1.0 - chain.sum(axis=1))
                error = np.abs(target @ chain - target).max()
                if twin:
                    largest_twin = max(largest_twin, error)
                else:
                    assert error < 1e-10
    assert largest_twin > 0.01


def test_metropolis_draws_follow_the_posterior():
    size, thin = 3000, 4
    preferences = agents_of(POSETS, 4)
    for dispersions in (0.3, 1.0):
        models = models_of(dispersions)
        agents = np.arange(0, len(POSETS), 3)
        jobs = Jobs.of(preferences.arrays(), agents, 0 * agents, np.array([CENTER]), models)
        orders, _, rates = mmp_draws(KEY, 3, jobs, size, 50, thin)
        rejected = 0
        for agent, relation in enumerate(POSETS[::3]):
            distribution = oracle.posterior(relation, CENTER, oracle.geometric(dispersions))[1]
            # Four steps apart, draws of these chains are nearly independent; a third of them certainly are.
            assert total_variation(orders[agent], distribution) < total_variation_bound(
                size / 3, len(distribution)
            )
            amp_distribution = oracle.amp_distribution(relation, CENTER, oracle.geometric(dispersions))
            rejected += total_variation(orders[agent], amp_distribution) > total_variation_bound(
                size / 3, len(distribution)
            )
            assert rates[agent] == 1.0 if oracle.is_partitioned(relation, 4) else rates[agent] > 0.3
        assert rejected > 0 or dispersions == 0.3


def test_importance_sampling_estimates_the_normalizer():
    """Within five of its own standard errors for all posets; the truth about another center is not."""
    preferences = agents_of(POSETS, 4)
    dispersions = (0.3, 0.9)
    models = geometric_models(-np.log(dispersions), 4)
    centers = np.array([CENTER, CENTER[::-1]], np.int32)
    agents, clusters = np.repeat(np.arange(len(POSETS)), 2), np.tile([0, 1], len(POSETS))
    jobs = Jobs.of(preferences.arrays(), agents, clusters, centers, models)
    found = log_mean_exp(amp_draws(KEY, 0, jobs, 2000, with_orders=False)[2])
    estimates, errors = (values.reshape(-1, 2) for values in found)
    for k in range(2):
        weight = oracle.geometric(dispersions[k])
        truth = [np.log(oracle.posterior(r, centers[k].tolist(), weight)[0]) for r in POSETS]
        assert np.all(np.abs(estimates[:, k] - truth) <= 5 * errors[:, k] + 1e-12)
        partitioned = np.array([oracle.is_partitioned(r, 4) for r in POSETS])
        np.testing.assert_allclose(estimates[partitioned, k], np.array(truth)[partitioned], atol=1e-12)
        assert errors[:, k].max() < 0.05
        other = [np.log(oracle.posterior(r, centers[1 - k].tolist(), weight)[0]) for r in POSETS]
        assert np.mean(np.abs(estimates[:, k] - other) <= 5 * errors[:, k] + 1e-12) < 0.5


def random_levels(rng, n_agents, m, k, n_levels):
    """Agents who put k of m items at levels, as groups best first."""
    groups = []
    for _ in range(n_agents):
        items = rng.choice(m, k, replace=False)
        level = rng.integers(0, n_levels, k)
        groups.append([sorted(items[level == v].tolist()) for v in range(n_levels) if (level == v).any()])
    return groups


@pytest.mark.parametrize(("m", "k", "n_levels"), [(30, 12, 4), (130, 70, 70), (530, 25, 5), (7, 7, 3)])
def test_levels_comparisons_and_single_draws_agree(m, k, n_levels):
    """Side by side or one by one, stated as levels or as comparisons: the same rankings."""
    rng = np.random.default_rng(m)
    groups = random_levels(rng, 40, m, k, n_levels)
    levels = Preferences.from_levels(groups, items=range(m), rest_below=False)
    pairs = [
        (agent, a, b)
        for agent, chain in enumerate(groups)
        for better, worse in pairwise(chain)
        for a in better
        for b in worse
    ]
    comparisons = Preferences.from_pairs(pairs, items=range(m), agents=range(40))
    center = rng.permutation(m).astype(np.int32)
    models = geometric_models(np.array([0.02]), m)
    orders, distances, log_weights = amp(levels, center, models, 5)
    for table in (comparisons, levels):
        again = amp(table, center, models, 5)
        np.testing.assert_array_equal(orders, again[0])
        np.testing.assert_array_equal(distances, again[1])
        np.testing.assert_allclose(log_weights, again[2], rtol=1e-12)
    uniforms = np.empty(padded(m))
    places = np.empty(m, np.int64)
    found = np.empty(m, np.int64)
    ranks = np.empty(m, np.int64)
    center_ranks = np.argsort(center)
    for agent in (0, 17, 39):
        plan = make_plan(levels.arrays(), agent, center_ranks, room_for_plan(m))
        for s in range(5):
            fill_uniform(KEY[0], KEY[1], 0, agent * 5 + s, uniforms)
            weight = amp_places(uniforms, models, 0, plan, np.empty(m, np.int32), places)
            assert weight == pytest.approx(log_weights[agent, s], rel=1e-12)
            invert_order(orders[agent, s], ranks)
            insertion_code(ranks, center, found)
            np.testing.assert_array_equal(places, found)
            place = {item: rank for rank, item in enumerate(orders[agent, s].tolist())}
            for better, worse in pairwise(groups[agent]):
                assert max(place[a] for a in better) < min(place[b] for b in worse)


def test_weighted_models_with_equal_weights_are_geometric():
    rng = np.random.default_rng(8)
    levels = Preferences.from_levels(random_levels(rng, 30, 20, 9, 3), items=range(20), rest_below=False)
    center = rng.permutation(20)
    one = amp(levels, center, geometric_models(np.array([0.3]), 20), 4)
    each = amp(levels, center, weighted_models(np.full((1, 20), 0.3)), 4)
    np.testing.assert_array_equal(one[0], each[0])
    np.testing.assert_allclose(one[2], each[2], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_any_mixture_of_statements(seed):
    """Levels, with or without the rest below, and comparisons on top of them, against Warshall's closure."""
    rng = np.random.default_rng(seed)
    n = 5
    orders = np.array(list(permutations(range(n))), np.int32)
    models = geometric_models(-np.log([0.6]), n)
    weight = oracle.geometric(0.6)
    for _ in range(40):
        hidden = rng.permutation(n).tolist()
        rest_below = bool(rng.random() < 0.5)
        listed = (
            hidden[: rng.integers(0, n)] if rest_below else sorted(hidden, key=lambda _: rng.random())[:3]
        )
        listed = [item for item in hidden if item in listed]
        level = np.sort(rng.integers(0, 3, len(listed)))
        level = np.unique(level, return_inverse=True)[1]
        groups = [[x for x, v in zip(listed, level, strict=True) if v == w] for w in range(3)]
        pairs = [(a, b) for i, a in enumerate(hidden) for b in hidden[i + 1 :] if rng.random() < 0.25]
        statement = Statement([g for g in groups if g], rest_below, pairs)
        preferences = Preferences._from_arrays(
            items=range(n),
            level_indptr=np.array([0, len(listed)]),
            level_items=np.array(listed, dtype=np.int32),
            levels=level.astype(np.int32),
            rest_below=np.array([rest_below]),
            pair_indptr=np.array([0, len(pairs)]),
            pairs=np.array(pairs, dtype=np.int32).reshape(-1, 2),
        )
        relation = closed_relation(statement, n)
        center = rng.permutation(n).tolist()
        distribution = oracle.amp_distribution(relation, center, weight)
        _, _, _, log_q = evaluated(preferences, 0, center, models, orders)
        np.testing.assert_allclose(np.exp(log_q), probabilities_of(distribution, orders), atol=1e-13)
        drawn, _, log_weights = amp(preferences, center, models, 50)
        assert all(oracle.respects(r, relation) for r in drawn[0].tolist())
        _, _, expected, _ = evaluated(preferences, 0, center, models, drawn[0])
        np.testing.assert_allclose(log_weights[0], expected, atol=1e-12)


def test_top_lists_and_full_rankings():
    """Where the rest is below, listed items come first in the order given."""
    m = 700
    rng = np.random.default_rng(2)
    listed = rng.permutation(m)
    groups = [[int(x) for x in listed[:30]], [int(x) for x in listed], [[int(listed[0]), int(listed[1])]]]
    preferences = Preferences.from_levels(groups, items=range(m))
    orders, _, log_weights = amp(preferences, rng.permutation(m), geometric_models(np.array([0.01]), m), 3)
    np.testing.assert_array_equal(orders[0, :, :30], np.tile(listed[:30], (3, 1)))
    np.testing.assert_array_equal(orders[1], np.tile(listed, (3, 1)))
    assert set(orders[2, 0, :2].tolist()) == {listed[0], listed[1]}
    assert len(set(map(bytes, orders[0]))) == 3
    np.testing.assert_allclose(
        log_weights, np.tile(log_weights[:, :1], (1, 3)), rtol=1e-12
    )  # exact: constant


def test_nothing_stated_gives_the_model_itself():
    preferences = Preferences.from_pairs([], items=range(4), agents=[0])
    orders, _, log_weights = amp(preferences, CENTER, models_of(0.4), 5000)
    distribution = oracle.posterior(frozenset(), CENTER, oracle.geometric(0.4))[1]
    assert total_variation(orders[0], distribution) < total_variation_bound(5000, 24)
    assert not log_weights.any()


def test_threads_do_not_matter():
    rng = np.random.default_rng(4)
    m = 25
    levels = Preferences.from_levels(random_levels(rng, 700, m, 8, 3), items=range(m), rest_below=False)
    models = geometric_models(np.array([0.1, 0.4]), m)
    centers = np.stack([rng.permutation(m) for _ in range(2)]).astype(np.int32)
    jobs = Jobs.of(levels.arrays(), np.arange(700), rng.integers(0, 2, 700), centers, models)
    results = []
    for n_threads in (1, 3):
        with at_most(n_threads):
            results.append(amp_draws(KEY, 7, jobs, 3))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    # Without orderings, the same numbers; in another sweep, others.
    orders, distances, weights = amp_draws(KEY, 7, jobs, 3, with_orders=False)
    assert orders.size == 0
    np.testing.assert_array_equal(distances, results[0][1])
    np.testing.assert_array_equal(weights, results[0][2])
    assert not np.array_equal(amp_draws(KEY, 8, jobs, 3)[0], results[0][0])


def test_dense_reference_has_the_same_distribution():
    """Mean rank of every item over draws, agreement of the two implementations on a larger poset."""
    rng = np.random.default_rng(6)
    m, size = 40, 3000
    groups = random_levels(rng, 1, m, 12, 4)
    preferences = Preferences.from_levels(groups, items=range(m), rest_below=False)
    center = rng.permutation(m).astype(np.int32)
    ours = amp(preferences, center, geometric_models(-np.log([0.9]), m), size)[0][0]
    _, better = preferences.closure(0)
    dense = np.zeros((m, m), np.bool_)
    mentioned = preferences.mentioned(0)
    dense[np.ix_(mentioned, mentioned)] = better
    stream = new_stream()
    open_stream(stream, KEY[0], KEY[1], 0, 0)
    theirs = np.empty((size, m), np.int32)
    log_q = np.array([amp_dense(stream, dense, center, 0.9, row) for row in theirs])
    models = geometric_models(-np.log([0.9]), m)
    np.testing.assert_allclose(evaluated(preferences, 0, center, models, theirs)[3], log_q, atol=1e-9)
    means = [np.argsort(draws, axis=1).mean(axis=0) for draws in (ours, theirs)]
    spread = np.argsort(ours, axis=1).std(axis=0) * np.sqrt(2 / size) + 1e-9
    assert np.max(np.abs(means[0] - means[1]) / spread) < 5
    unaware = amp(Preferences.from_pairs([], items=range(m), agents=[0]), center, models, size)[0][0]
    assert np.max(np.abs(np.argsort(unaware, axis=1).mean(axis=0) - means[1]) / spread) > 20


@pytest.mark.parametrize("decay", [0.0, 1e-300, 1e-9, 0.02, 1.0, 50.0, np.inf])
def test_places_are_quantiles(decay):
    """The place is the one in whose stretch of the distribution function the uniform falls."""
    m = 60
    geometric = geometric_models(np.array([decay]), m)
    weighted = weighted_models(np.full((1, m), decay))
    rng = np.random.default_rng(1)
    for _ in range(300):
        i = int(rng.integers(0, m))
        low, high = sorted(rng.integers(0, i + 1, 2).tolist())
        powers = np.exp(-decay * np.arange(1, high - low + 1)) if decay < np.inf else np.zeros(high - low)
        cumulated = np.cumsum(np.concatenate([[1.0], powers]))
        cumulated /= cumulated[-1]
        for u in (0.0, float(rng.random()), 1.0 - 2.0**-53):
            for models in (geometric, weighted):
                place = place_quantile(u, models, 0, i, low, high)
                assert low <= place <= high
                back = high - place
                assert u <= cumulated[back] + 1e-12
                assert back == 0 or u >= cumulated[back - 1] - 1e-12
        if decay < np.inf:
            mass = np.exp([log_mass(geometric, 0, i, p, p) for p in range(i + 1)])
            assert mass.sum() == pytest.approx(1.0, abs=1e-12)
            assert np.exp(log_mass(weighted, 0, i, low, high)) == pytest.approx(mass[low : high + 1].sum())
