"""Prediction from mixtures of Mallows models, against enumeration and at the edges."""

from itertools import combinations

import numpy as np
import pytest

from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import CycleError, DataError, PermixWarning
from permix.estimators import agent_answers
from permix.mallows import posterior as mallows_posterior
from permix.mallows.predict import (
    complete,
    predict_pairwise,
    predict_proba,
    sample_completions,
    score_samples,
)
from permix.runtime.threads import at_most
from tests.oracles import mallows_mixture as oracle
from tests.oracles import posets_all
from tests.oracles.ranking_models import total_variation, total_variation_bound

POSETS = posets_all.labeled_posets(4)
TWO = [(0.35, (1, 3, 0, 2), 0.5), (0.65, (2, 0, 3, 1), 0.9)]
THREE = [(0.2, (2, 0, 3, 1), 0.3), (0.5, (0, 1, 2, 3), 0.8), (0.3, (3, 1, 2, 0), 1.0)]
POINTS = [(0.5, (0, 1, 2, 3), 0.0), (0.2, (1, 0, 2, 3), 0.0)]
ENDS = [*POINTS, (0.3, (3, 2, 1, 0), 1.0), (0.0, (1, 0, 2, 3), 0.5)]


def agents_of(relations, n=4):
    pairs = [(agent, a, b) for agent, relation in enumerate(relations) for a, b in sorted(relation)]
    return Preferences.from_pairs(pairs, items=range(n), agents=range(len(relations)))


def components_of(mixture):
    with np.errstate(divide="ignore"):
        decays = -np.log([dispersion for _, _, dispersion in mixture])
    n = len(mixture[0][1])
    weights, centers = [w for w, _, _ in mixture], [center for _, center, _ in mixture]
    return MallowsComponents(tuple(range(n)), weights, centers, decays)


@pytest.fixture
def only_draws(monkeypatch):
    """No exact sums, so that whoever is not partitioned is answered by draws."""
    monkeypatch.setattr(mallows_posterior, "DOWN_SETS_EACH", 1)
    monkeypatch.setattr(mallows_posterior, "DOWN_SETS_IN_ALL", 1)


def distance(orders, labels, distribution):
    """Total variation between drawn (ordering, component) and a distribution of these."""
    flat = {(*order, label): probability for (order, label), probability in distribution.items()}
    return total_variation(np.column_stack([orders, labels]), flat)


def exact_pairwise(mixture):
    distributions = [oracle.of_rankings(oracle.posterior(relation, mixture)) for relation in POSETS]
    return np.array([posets_all.pairwise(distribution, 4) for distribution in distributions])


# Probabilities of components.


def joint_of(components, agents, n_samples=256, random_state=None):
    """Ln of the joint of component and what was said, and its errors."""
    rng = np.random.default_rng(random_state)
    found = mallows_posterior.MixturePosterior(components, agents, n_samples, rng)
    return found.log_joint, found.errors


@pytest.mark.parametrize("mixture", [TWO, THREE, ENDS])
def test_joint_on_every_poset(mixture):
    found, errors = joint_of(components_of(mixture), agents_of(POSETS))
    joint = np.array([oracle.joint(relation, mixture) for relation in POSETS])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(found, np.log(joint), atol=1e-12)
    assert (errors == 0).all()
    scores, score_errors = score_samples(components_of(mixture), agents_of(POSETS))
    np.testing.assert_allclose(scores, np.log(joint.sum(axis=1)), atol=1e-12)
    assert (score_errors == 0).all()
    proba = predict_proba(components_of(mixture), agents_of(POSETS))
    np.testing.assert_allclose(proba, joint / joint.sum(axis=1, keepdims=True), atol=1e-12)
    # Somebody who forgets the weights gets other numbers.
    twin = joint / np.maximum([w for w, _, _ in mixture], 1e-300)
    assert np.abs(proba - twin / twin.sum(axis=1, keepdims=True)).max() > 0.05


def test_joint_by_draws_is_within_its_errors(only_draws):
    components, agents = components_of(THREE), agents_of(POSETS)
    found, errors = joint_of(components, agents, n_samples=1024, random_state=1)
    truth = np.log([oracle.joint(relation, THREE) for relation in POSETS])
    partitioned = np.array([posets_all.is_partitioned(relation, 4) for relation in POSETS])
    np.testing.assert_allclose(found[partitioned], truth[partitioned], atol=1e-12)
    assert (errors[partitioned] == 0).all()
    # AMP has the same weight for all rankings of some agents, and then no error.
    noisy = errors > 1e-12
    assert noisy.sum() > 100
    np.testing.assert_allclose(found[~noisy], truth[~noisy], atol=1e-9)
    z = (found - truth)[noisy] / errors[noisy]
    assert np.abs(z).max() < 6.0
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.4
    scores, score_errors = score_samples(components, agents, n_samples=1024, random_state=1)
    some = score_errors > 1e-12
    z = (scores - np.log(np.exp(truth).sum(axis=1)))[some] / score_errors[some]
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.5


# Pairs.


@pytest.mark.parametrize("mixture", [TWO, THREE])
def test_pairwise_on_every_poset(mixture):
    agents = agents_of(POSETS)
    found, errors = predict_pairwise(components_of(mixture), agents, return_error=True)
    np.testing.assert_allclose(found, exact_pairwise(mixture), atol=1e-12)
    assert (errors == 0).all()
    triples = [(row, a, b) for row in (7, 3, 200) for a in range(4) for b in range(4) if a != b]
    some = predict_pairwise(components_of(mixture), agents, triples)
    np.testing.assert_allclose(some, [found[triple] for triple in triples], atol=1e-14)
    assert np.abs(found - exact_pairwise([(1 / len(mixture), c, d) for _, c, d in mixture])).max() > 0.05


def test_pairwise_of_point_masses():
    """Agents who contradict a point mass belong to the uniform component."""
    found = predict_pairwise(components_of(ENDS), agents_of(POSETS))
    np.testing.assert_allclose(found, exact_pairwise(ENDS), atol=1e-12)


def test_pairwise_by_draws_is_within_its_errors(only_draws):
    agents = agents_of(POSETS)
    found, errors = predict_pairwise(
        components_of(THREE), agents, n_samples=1600, random_state=2, return_error=True
    )
    truth = exact_pairwise(THREE)
    stated = np.zeros(found.shape, bool)
    for agent, relation in enumerate(POSETS):
        for a, b in relation:
            stated[agent, a, b] = stated[agent, b, a] = True
            assert found[agent, a, b] == 1.0
            assert found[agent, b, a] == 0.0
    noisy = errors > 0
    assert not noisy[stated].any()
    assert np.abs(found - truth).max() < 0.09
    z = (found - truth)[noisy] / errors[noisy]
    # Few chains: z is not quite normal. Its typical size tells.
    assert 0.8 < np.median(np.abs(z)) / 0.6745 < 1.4
    triples = [(row, a, b) for row in range(0, 219, 20) for a, b in combinations(range(4), 2)]
    few = predict_pairwise(components_of(THREE), agents, triples, n_samples=1600, random_state=2)
    np.testing.assert_allclose(few, [truth[triple] for triple in triples], atol=0.09)


def test_pairs_by_name():
    items = ("egg", "tuna", "eel")
    components = MallowsComponents(items, [1.0], [[0, 1, 2]], [1.0])
    agents = Preferences.from_pairs([("a", "eel", "egg"), ("b", "egg", "eel")], items=items)
    whole = predict_pairwise(components, agents)
    named = predict_pairwise(components, agents, [(1, "tuna", "eel"), (0, "eel", "egg"), (1, "egg", "tuna")])
    np.testing.assert_array_equal(named, [whole[1, 1, 2], 1.0, whole[1, 0, 1]])
    numbered = predict_pairwise(components, agents, np.array([[1, 1, 2], [0, 2, 0]]))
    np.testing.assert_array_equal(numbered, named[:2])
    assert predict_pairwise(components, agents, []).shape == (0,)
    for pairs, message in [
        ([(2, "egg", "eel")], "there is no row 2"),
        ([(0, "egg", "egg")], "'egg' is compared with itself"),
        ([(0, "egg", "cod")], "'cod' is not an item"),
        ([(0, "egg")], r"needs \(row, a, b\)"),
        ([("a", "egg", "eel")], "counted from 0"),
    ]:
        with pytest.raises(DataError, match=message):
            predict_pairwise(components, agents, pairs)


def test_too_large_answers_are_refused(monkeypatch):
    monkeypatch.setattr(agent_answers, "MOST_BYTES", 10_000)
    components, agents = components_of(TWO), agents_of(POSETS)
    with pytest.raises(DataError, match=r"219 agents × 4 × 4 items, would take .* pairs="):
        predict_pairwise(components, agents)
    with pytest.raises(DataError, match="219 agents × 50 draws"):
        sample_completions(components, agents, 50)
    assert predict_pairwise(components, agents, [(0, 1, 2)]).shape == (1,)


# Draws.


@pytest.mark.parametrize("method", ["exact", "importance", "sp"])
def test_completions_follow_the_posterior(method):
    """On some of the posets; tests of the kernels have them all."""
    size, some = 2000, POSETS[::6]
    drawn = sample_completions(components_of(THREE), agents_of(some), size, method, n_thin=5, random_state=3)
    assert (drawn.exact == (method == "exact")).all()
    assert np.isnan(drawn.acceptance_rates).all() == (method != "sp")
    rejected = np.zeros(3, int)
    for agent, relation in enumerate(some):
        distribution = oracle.posterior(relation, THREE)
        # Dependent draws of the chain: half as much again.
        bound = (1.5 if method == "sp" else 1.0) * total_variation_bound(size, len(distribution))
        found = drawn.orders[agent], drawn.labels[agent]
        assert distance(*found, distribution) < bound
        twins = (oracle.without_weights, oracle.without_normalizers, oracle.prior_labels)
        rejected += [distance(*found, twin(relation, THREE)) > bound for twin in twins]
    assert rejected.min() > 5, rejected


def test_completions_of_mixed_ways(only_draws):
    """Partitioned agents exactly, the others by draws."""
    drawn = sample_completions(components_of(TWO), agents_of(POSETS), 3, random_state=1)
    partitioned = [posets_all.is_partitioned(relation, 4) for relation in POSETS]
    np.testing.assert_array_equal(drawn.exact, partitioned)
    for agent, relation in enumerate(POSETS):
        assert all(posets_all.respects(order, relation) for order in drawn.orders[agent].tolist())
    table = drawn.to_rankings()
    assert len(table) == 3 * len(POSETS)
    assert table.is_full
    np.testing.assert_array_equal(table.agents[:6], [0, 0, 0, 1, 1, 1])
    row = int(np.argmin(partitioned))
    with pytest.raises(DataError, match=f"row {row + 1} .*leaves too much open for exact draws"):
        sample_completions(components_of(TWO), agents_of(POSETS), 3, "exact")


def test_published_sampler_without_metropolis_is_not_exact():
    """A chain of three with one item free, uniform: example 2 of the paper."""
    mixture = [(0.6, (0, 1, 2, 3), 1.0), (0.4, (3, 0, 1, 2), 0.9)]
    relation = frozenset({(1, 2), (2, 3), (1, 3)})
    size = 20_000
    distribution, rough = (
        oracle.posterior(relation, mixture),
        oracle.sp_distribution(relation, mixture, metropolis=False),
    )
    bound = 1.5 * total_variation_bound(size, len(distribution))
    for step, near, far in (("amp", rough, distribution), ("mmp", distribution, rough)):
        drawn = sample_completions(
            components_of(mixture), agents_of([relation]), size, "sp", step=step, random_state=1
        )
        found = drawn.orders[0], drawn.labels[0]
        assert distance(*found, near) < bound < distance(*found, far)
        assert (drawn.acceptance_rates[0] == 1.0) == (step == "amp")


@pytest.mark.parametrize("method", ["auto", "importance", "sp"])
def test_results_do_not_depend_on_threads(method, only_draws, monkeypatch):
    monkeypatch.setattr("permix.runtime.threads.WORTH_THREADS", 1)
    components, agents = components_of(THREE), agents_of(POSETS)
    found = []
    for n_threads in (1, 3):
        with at_most(n_threads):
            drawn = sample_completions(components, agents, 5, method, n_burn_in=5, random_state=4)
            pairs = predict_pairwise(components, agents, n_samples=50, random_state=4)
            found.append((drawn.orders, drawn.labels, pairs))
    for one, two in zip(found[0], found[-1], strict=True):
        np.testing.assert_array_equal(one, two)


def test_results_do_not_depend_on_chunks(only_draws, monkeypatch):
    components, agents = components_of(THREE), agents_of(POSETS)

    def everything():
        drawn = sample_completions(components, agents, 3, random_state=4)
        return drawn.orders, predict_pairwise(components, agents, n_samples=50, random_state=4)

    whole = everything()
    monkeypatch.setattr(mallows_posterior, "CHUNK", 400)
    for one, two in zip(whole, everything(), strict=True):
        np.testing.assert_array_equal(one, two)


# Completion.


@pytest.mark.parametrize("ways", ["exact", "draws"])
def test_complete_agrees_with_what_was_said(ways, request):
    if ways == "draws":
        request.getfixturevalue("only_draws")
    agents = agents_of(POSETS)
    found, ranks = complete(components_of(THREE), agents, return_ranks=True, random_state=5)
    assert found.is_full
    truth = exact_pairwise(THREE)
    for agent, relation in enumerate(POSETS):
        order = found.orders[agent].tolist()
        assert posets_all.respects(order, relation)
        if ways == "exact":
            cost = {
                r: sum(truth[agent, b, a] for a, b in combinations(r, 2))
                for r in posets_all.linear_extensions(relation, 4)
            }
            assert cost[tuple(order)] < min(cost.values()) + 0.05
            np.testing.assert_allclose(ranks.mean[agent], 1.0 + truth[agent].sum(axis=0), atol=1e-12)
    assert (ranks.low >= 1).all()
    assert (ranks.low <= ranks.high).all()
    assert (ranks.high <= 4).all()
    marginal = np.array(
        [posets_all.rank_marginals(oracle.of_rankings(oracle.posterior(r, THREE)), 4) for r in POSETS]
    )
    reach = np.cumsum(marginal, axis=2)
    slack = 0.06  # four standard deviations of a share near 5 % in 200 draws
    better = np.concatenate([np.zeros((219, 4, 1)), reach], 2)
    at_low = np.take_along_axis(better, ranks.low[..., None] - 1, 2)
    at_high = np.take_along_axis(reach, ranks.high[..., None] - 1, 2)
    assert at_low.max() < 0.05 + slack
    assert at_high.min() > 0.95 - slack


def test_complete_keeps_ids_counts_and_full_rankings():
    items = ("a", "b", "c", "d")
    components = MallowsComponents(items, [1.0], [[3, 1, 0, 2]], [0.7])
    rankings = Rankings.from_orders(
        [["a", "b", "c", "d"], ["b"], ["c", "a"]], items=items, agents=["x", "y", "z"], counts=[2, 1, 5]
    )
    found = complete(components, rankings)
    assert found.agents.tolist() == ["x", "y", "z"]
    assert found.counts.tolist() == [2, 1, 5]
    # What is open follows the center.
    np.testing.assert_array_equal(found.orders, [[0, 1, 2, 3], [1, 3, 0, 2], [2, 0, 3, 1]])


def test_complete_of_ratings_over_some_items():
    """Levels over some of 30 items, which only draws can answer: always in agreement, near the center."""
    rng = np.random.default_rng(6)
    ratings = np.where(rng.random((40, 30)) < 0.4, rng.integers(1, 5, (40, 30)), np.nan)
    agents = Preferences.from_ratings(ratings)
    components = MallowsComponents(
        tuple(range(30)), [0.5, 0.5], [np.arange(30), np.arange(30)[::-1]], [0.3, 0.1]
    )
    found = complete(components, agents, n_samples=40, random_state=0)
    rank = np.argsort(found.orders, axis=1)
    for row in range(40):
        rated = np.flatnonzero(np.isfinite(ratings[row]))
        better = ratings[row, rated][:, None] > ratings[row, rated][None, :]
        assert (rank[row, rated][:, None] < rank[row, rated][None, :])[better].all()
    nothing = Preferences.from_pairs([], items=range(30), agents=[0])
    single = MallowsComponents(tuple(range(30)), [1.0], [np.arange(30)[::-1]], [0.2])
    np.testing.assert_array_equal(complete(single, nothing).orders[0], np.arange(30)[::-1])


# Edges.


def test_agents_who_say_nothing():
    """No statement, a single level, a single item: all the same."""
    items = tuple(range(6))
    stated = Preferences.from_levels([[[1, 4]], [[3]]], items=items, rest_below=False)
    agents = Preferences.concat([stated, Preferences.from_pairs([], items=items, agents=[0])])
    components = MallowsComponents(items, [0.3, 0.7], [np.arange(6), np.arange(6)[::-1]], [0.5, 1.0])
    joint, errors = joint_of(components, agents)
    np.testing.assert_allclose(joint, np.log([[0.3, 0.7]] * 3), atol=1e-12)
    assert (errors == 0).all()
    found = predict_pairwise(components, agents)
    expected = sum(w * components.component(k).pairwise() for k, w in enumerate((0.3, 0.7)))
    np.testing.assert_allclose(found, [expected] * 3, atol=1e-12)
    assert sample_completions(components, agents, 2, "exact").exact.all()


def test_identical_components():
    twice = [(0.4, (2, 0, 3, 1), 0.6), (0.6, (2, 0, 3, 1), 0.6)]
    once = [(1.0, (2, 0, 3, 1), 0.6)]
    agents = agents_of(POSETS)
    found, expected = (predict_pairwise(components_of(mixture), agents) for mixture in (twice, once))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    proba = predict_proba(components_of(twice), agents)
    np.testing.assert_allclose(proba, [[0.4, 0.6]] * len(POSETS), atol=1e-12)


def test_one_item():
    components = MallowsComponents(("only",), [0.5, 0.5], [[0], [0]], [0.0, np.inf])
    agents = Preferences.from_pairs([], items=["only"], agents=["x", "y"])
    np.testing.assert_array_equal(predict_proba(components, agents), [[0.5, 0.5]] * 2)
    np.testing.assert_array_equal(predict_pairwise(components, agents), np.zeros((2, 1, 1)))
    found, ranks = complete(components, agents, return_ranks=True)
    np.testing.assert_array_equal(found.orders, [[0], [0]])
    np.testing.assert_array_equal(ranks.mean, [[1.0], [1.0]])
    np.testing.assert_array_equal(ranks.high, [[1], [1]])
    for method in ("auto", "exact", "importance", "sp"):
        assert sample_completions(components, agents, 2, method).orders.shape == (2, 2, 1)


def test_an_agent_who_contradicts_every_component():
    items = ("egg", "tuna", "eel")
    components = MallowsComponents(items, [1.0], [[0, 1, 2]], [np.inf])
    agents = Preferences.from_pairs([("ok", "egg", "eel"), ("anna", "eel", "egg")], items=items)
    assert score_samples(components, agents)[0].tolist() == [0.0, -np.inf]
    for ask in (predict_proba, predict_pairwise, complete, sample_completions):
        with pytest.raises(DataError, match=r"'anna'\) contradicts every group"):
            ask(components, agents)
    np.testing.assert_array_equal(complete(components, agents[:1]).orders, [[0, 1, 2]])


def test_hostile_arguments():
    components, agents = components_of(TWO), agents_of(POSETS[:3])
    for call, message in [
        (lambda: predict_proba(components, agents, n_samples=1), "n_samples=1"),
        (lambda: predict_proba(components, agents, n_samples=2.5), "n_samples=2.5"),
        (lambda: predict_proba(components, agents, random_state="x"), "random_state"),
        (lambda: predict_proba(components, [[0, 1]]), "take Preferences"),
        (lambda: predict_proba(components, agents[:0]), "no rows"),
        (lambda: predict_proba(components, agents_of([frozenset()], 5)), "does not know 4"),
        (lambda: sample_completions(components, agents, -1), "size=-1"),
        (lambda: sample_completions(components, agents, method="best"), "method='best'"),
        (lambda: sample_completions(components, agents, step="x"), "step='x'"),
        (lambda: sample_completions(components, agents, n_thin=0), "n_thin=0"),
        (lambda: complete(components, agents, n_samples=0), "n_samples=0"),
    ]:
        with pytest.raises(DataError, match=message):
            call()
    circle = Preferences.from_pairs([("x", 0, 1), ("x", 1, 0)], items=range(4), on_cycle="keep")
    with pytest.raises(CycleError, match="'x'"):
        predict_proba(components, circle)
    assert sample_completions(components, agents, 0).orders.shape == (3, 0, 4)


def test_rough_probabilities_come_with_a_warning(only_draws):
    """Far from both centers with few particles the estimates are poor, and say so."""
    n = 60
    components = MallowsComponents(
        tuple(range(n)), [0.5, 0.5], [np.arange(n), np.roll(np.arange(n), 1)], [0.5, 0.5]
    )
    agents = Preferences.from_levels([list(range(n - 1, 20, -1))], items=range(n), rest_below=False)
    with pytest.warns(PermixWarning, match="rough for 1 of 1 rows"):
        predict_proba(components, agents, n_samples=2, random_state=0)


@pytest.mark.realdata
def test_missing_pairs_of_sushi(data_folder):
    """Section 5.4: predictions beat guessing, and get better with the distance of the two items."""
    from permix.datasets import load_sushi

    rankings = load_sushi(download=False).data[:400]
    center = np.argsort(np.argsort(rankings.orders, axis=1).mean(axis=0))
    components = MallowsComponents(rankings.items, [1.0], [center], [0.2412])
    rng = np.random.default_rng(0)
    rank = np.argsort(rankings.orders, axis=1)
    pairs = []
    for row in range(len(rankings)):
        for a, b in combinations(range(10), 2):
            if rng.random() < 0.25:
                better, worse = (a, b) if rank[row, a] < rank[row, b] else (b, a)
                pairs.append((row, rankings.items[better], rankings.items[worse]))
    agents = Preferences.from_pairs(pairs, items=rankings.items, agents=range(len(rankings)))
    found = predict_pairwise(components, agents)
    against = np.where(rank[:, :, None] < rank[:, None, :], 1.0 - found, 0.0)
    gap = rank[:, None, :] - rank[:, :, None]
    loss = [against[(gap == d) & (found < 1.0)].mean() for d in (1, 4, 7)]
    assert 0.5 > loss[0] > loss[1] > loss[2]


def test_equal_rows_get_one_answer_also_where_it_is_drawn():
    """Pairs over many items have no exact sum; agents who say the same must not be told apart by chance."""
    rng = np.random.default_rng(4)
    items = range(40)
    said = [tuple(rng.choice(40, 2, replace=False).tolist()) for _ in range(30)]
    pairs = [(agent, min(a, b), max(a, b)) for agent in (0, 1, 2) for a, b in said] + [(3, 5, 7)]
    table = Preferences.from_pairs(pairs, items=items)
    centers = np.stack([np.arange(40), np.arange(40)[::-1]]).astype(np.int32)
    components = MallowsComponents(tuple(items), np.array([0.5, 0.5]), centers, np.array([0.05, 0.06]))
    posterior = mallows_posterior.MixturePosterior(components, table, 16, np.random.default_rng(0))
    assert (posterior.ways == mallows_posterior.DRAWS)[:3].all()
    assert len(np.unique(posterior.probabilities[:3, 0])) == 3  # what chance would say
    shares = predict_proba(components, table, 16, random_state=0)
    assert len(np.unique(shares[:3], axis=0)) == 1
    np.testing.assert_allclose(shares[0], posterior.probabilities[:3].mean(axis=0), atol=1e-12)
    assert table.equal_rows().tolist() == [0, 0, 0, 1]
