"""EM for mixtures of Mallows models: both steps against enumeration, and what a user may rely on."""

import _thread
import math
import threading
from itertools import permutations

import numpy as np
import pytest

import permix
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.datasets import make_mallows_mixture
from permix.distributions.conditioning.agent_posteriors import Profile, log_normalizers
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import DataError
from permix.estimators.preference_input import as_preferences
from permix.mallows.em import Follow, MallowsEM, total_log_likelihood
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters
from permix.mallows.start import first_components
from tests.oracles import posets_all as oracle

KEY = np.array([31, 32], np.uint64)
SILENT = Follow(lambda iteration, value: None, lambda: False)
ITEMS = tuple(range(4))


def mixture(weights, centers, dispersions):
    return MallowsComponents(tuple(range(len(centers[0]))), weights, np.array(centers), -np.log(dispersions))


def agents_of(relations, n):
    pairs = [(agent, a, b) for agent, relation in enumerate(relations) for a, b in sorted(relation)]
    return Preferences.from_pairs(pairs, items=range(n), agents=range(len(relations)))


def enumerated(components, relations):
    """Log-likelihood, expected members, and expected wins of completed rankings, by summing over all."""
    k, n = components.n_components, components.n_items
    total, members, wins = 0.0, np.zeros(k), np.zeros((k, n, n))
    for relation in relations:
        found = [
            oracle.posterior(relation, tuple(components.centers[c].tolist()), oracle.geometric(phi))
            for c, phi in enumerate(components.dispersions)
        ]
        joint = components.weights * np.array([p for p, _ in found])
        total += math.log(joint.sum())
        share = joint / joint.sum()
        members += share
        for c in range(k):
            wins[c] += share[c] * oracle.pairwise(found[c][1], n)
    return total, members, wins


COMPONENTS = mixture([0.6, 0.4], [(2, 0, 3, 1), (1, 3, 2, 0)], np.array([0.5, 0.25]))
POSETS = [relation for relation in oracle.labeled_posets(4) if relation]


def averaged_statistics(em, components, n_rounds):
    rounds = [em.e_step(components, sweep) for sweep in range(n_rounds)]
    values = np.array([float(found) for found, _ in rounds])
    return values, [statistics for _, statistics in rounds]


@pytest.fixture
def no_sums(monkeypatch):
    """Rows that leave much open are drawn, however few they are."""
    monkeypatch.setattr("permix.mallows.rounds.sums.MOST_SETS", 0)


def test_monte_carlo_e_step_is_the_expectation(no_sums):
    """Partial orders that do not partition the items: members and tournaments of what is drawn."""
    partial = [relation for relation in POSETS if not oracle.is_partitioned(relation, 4)]
    assert len(partial) == 144
    partial = partial[::6]
    profile = Profile.of(agents_of(partial, 4))
    assert len(profile.sampled) == len(partial)
    em = MallowsEM(profile, MallowsParameters(2, n_particles=64), KEY)
    values, found = averaged_statistics(em, COMPONENTS, 60)
    total, members, wins = enumerated(COMPONENTS, partial)
    n = len(values)
    assert abs(values.mean() - total) < 5 * values.std() / math.sqrt(n) + 0.02
    drawn = np.array([statistics.members for statistics in found])
    assert np.all(np.abs(drawn.mean(axis=0) - members) < 5 * drawn.std(axis=0) / math.sqrt(n) + 0.02)
    drawn = np.array([statistics.wins for statistics in found])
    error = drawn.std(axis=0) / math.sqrt(n)
    assert np.all(np.abs(drawn.mean(axis=0) - wins) < 5 * error + 0.02)
    # The broken twin: draws from the other component's posterior.
    assert np.any(np.abs(drawn.mean(axis=0) - wins[::-1]) > 20 * error + 0.1)


def test_exact_e_step():
    """Weak orders: likelihood, members, blocks and stated pairs, no noise."""
    weak = [relation for relation in POSETS if oracle.is_partitioned(relation, 4)]
    profile = Profile.of(agents_of(weak, 4))
    em = MallowsEM(profile, MallowsParameters(2), KEY)
    assert em.exact
    found, statistics = em.e_step(COMPONENTS, 0)
    total, members, wins = enumerated(COMPONENTS, weak)
    assert float(found) == pytest.approx(total, abs=1e-9)
    assert found.standard_error == 0.0
    np.testing.assert_allclose(statistics.members, members, atol=1e-9)
    # Stated pairs are certain; completed pairs are those and what levels leave open.
    assert np.all(statistics.wins <= wins + 1e-9)


def expected_log_likelihood(statistics, k, center, decay, n):
    """What the M-step maximizes for one component: equation 30 with blocks summed out."""
    from permix.kernels.mallows import log_normalizer

    rank = np.argsort(center)
    against = sum(
        statistics.wins[k, a, b] for a in range(n) for b in range(n) if a != b and rank[a] > rank[b]
    )
    inside = sum(statistics.blocks[k, s] * log_normalizer(decay, s) for s in range(2, n + 1))
    return -decay * against - statistics.rankings[k] * log_normalizer(decay, n) + inside


def test_m_step_is_the_maximum(no_sums):
    """Over all centers and a fine grid of dispersions, with partitioned and other agents together."""
    rng = np.random.default_rng(3)
    relations = [POSETS[i] for i in rng.choice(len(POSETS), 60)]
    em = MallowsEM(Profile.of(agents_of(relations, 4)), MallowsParameters(2, center_search="exact"), KEY)
    _, statistics = em.e_step(COMPONENTS, 0)
    found = em.m_step(COMPONENTS, statistics)
    np.testing.assert_allclose(found.weights, statistics.members / 60)
    for k in range(2):
        best = expected_log_likelihood(statistics, k, found.centers[k], found.decays[k], 4)
        for center in permutations(range(4)):
            for decay in np.linspace(0.0, 4.0, 81):
                assert expected_log_likelihood(statistics, k, center, decay, 4) <= best + 1e-9


def some_full_top_and_levels(seed, n_items=7, n_agents=300):
    rng = np.random.default_rng(seed)
    made = make_mallows_mixture(n_agents, n_items, 3, dispersion=[0.4, 0.6, 0.5], random_state=seed)
    orders = made.data.orders
    full = Rankings.from_orders(orders[: n_agents // 3], n_items=n_items)
    top = Rankings.from_orders(
        [order[: rng.integers(1, n_items)].tolist() for order in orders[n_agents // 3 : 2 * n_agents // 3]],
        n_items=n_items,
    )
    levels = Preferences.from_levels(
        [[order[:2].tolist(), order[2:4].tolist()] for order in orders[2 * n_agents // 3 :]],
        items=range(n_items),
        rest_below=True,
    )
    parts = [Preferences.from_rankings(full), Preferences.from_rankings(top), levels]
    return Preferences.concat(parts)


@pytest.mark.parametrize("search", ["local", "exact"])
def test_likelihood_never_falls_where_all_is_exact(search):
    for seed in range(4):
        profile = Profile.of(some_full_top_and_levels(seed))
        settings = MallowsParameters(3, center_search=search, tol=0.0, max_iter=60)
        em = MallowsEM(profile, settings, KEY)
        components = first_components(profile, settings, np.random.default_rng(seed))
        run = em.climb(components, SILENT, n_stochastic=0)
        assert len(run.history) > 5
        assert np.all(np.diff(run.history[:, 0]) > -1e-8 * abs(run.history[0, 0]))
        assert run.history[-1, 0] > run.history[0, 0]
        values, _ = log_normalizers(run.components, profile, 2, KEY)
        joint = values + run.components.log_weights
        said = total_log_likelihood(joint, np.zeros_like(values), profile.counts)
        assert float(said) == pytest.approx(float(run.log_likelihood), abs=1e-6)


def test_an_m_step_that_ignores_blocks_is_noticed():
    """The broken twin: top lists taken for full rankings make the likelihood fall."""
    profile = Profile.of(some_full_top_and_levels(0))
    settings = MallowsParameters(3)
    em = MallowsEM(profile, settings, KEY)
    components = first_components(profile, settings, np.random.default_rng(0))
    components = em.climb(components, SILENT, n_stochastic=0).components
    before, statistics = em.e_step(components, 0)
    worse = em.m_step(components, statistics._replace(blocks=np.zeros_like(statistics.blocks)))
    after, _ = em.e_step(worse, 1)
    assert after < before - 10


def all_kinds(seed, n_items=8, n_agents=600):
    """Every kind of preference in one profile, from a planted mixture; returns it with the truth."""
    made = make_mallows_mixture(n_agents, n_items, 2, dispersion=0.35, random_state=seed)
    orders = made.data.orders
    rng = np.random.default_rng(seed)
    items = range(n_items)
    part = n_agents // 6
    chunks = [orders[i * part : (i + 1) * part] for i in range(6)]
    subset = [order[np.sort(rng.choice(n_items, 5, replace=False))].tolist() for order in chunks[2]]
    ratings = [
        (i, int(item), n_items - place // 3)
        for i, order in enumerate(chunks[3])
        for place, item in enumerate(order)
        if rng.random() < 0.8
    ]
    choices, pairs = [], []
    for i, order in enumerate(chunks[4]):
        for _ in range(4):
            offered = np.sort(rng.choice(n_items, 4, replace=False))
            named = order[offered].tolist()
            choices.append((i, named[0], named))
    for i, order in enumerate(chunks[5]):
        for _ in range(12):
            a, b = np.sort(rng.choice(n_items, 2, replace=False))
            pairs.append((i, int(order[a]), int(order[b])))
    return Preferences.concat(
        [
            Preferences.from_rankings(Rankings.from_orders(chunks[0], n_items=n_items)),
            Preferences.from_rankings(Rankings.from_orders(chunks[1][:, :3], n_items=n_items)),
            Preferences.from_rankings(Rankings.from_orders(subset, n_items=n_items, unlisted="unknown")),
            Preferences.from_ratings(ratings, items=items),
            Preferences.from_choices(choices, items=items),
            Preferences.from_pairs(pairs, items=items),
        ]
    ), made


def test_planted_mixture_from_all_kinds_of_preferences(no_sums):
    preferences, made = all_kinds(1)
    fit = fit_mallows(preferences, MallowsParameters(2, n_init=3, random_state=0))
    assert fit.converged
    assert sorted(fit.components.centers.tolist()) == sorted(made.centers.tolist())
    np.testing.assert_allclose(fit.components.dispersions, 0.35, atol=0.06)
    assert permix.adjusted_rand(fit.labels, made.labels) > 0.75
    assert np.all(fit.history[:, 1] > 0.0)  # rounds draw rankings
    assert fit.log_likelihood.standard_error == 0.0  # sums over eight items are exact


@pytest.mark.parametrize("exact", [True, False])
def test_same_result_whatever_the_threads(exact, no_sums):
    preferences = some_full_top_and_levels(2) if exact else all_kinds(2)[0]
    fits = [
        fit_mallows(preferences, MallowsParameters(2, n_init=3, max_iter=6, random_state=5, n_jobs=jobs))
        for jobs in (1, 2)
    ]
    assert float(fits[0].log_likelihood) == float(fits[1].log_likelihood)
    np.testing.assert_array_equal(fits[0].components.centers, fits[1].components.centers)
    np.testing.assert_array_equal(fits[0].probabilities, fits[1].probabilities)


def test_counts_stand_for_rows():
    preferences = some_full_top_and_levels(3, n_items=4)
    collapsed = preferences.collapse()
    assert len(collapsed) < len(preferences)
    em = [MallowsEM(Profile.of(p), MallowsParameters(2), KEY) for p in (preferences, collapsed)]
    (value, statistics), (value_too, statistics_too) = (one.e_step(COMPONENTS, 0) for one in em)
    assert float(value) == pytest.approx(float(value_too))
    for a, b in zip(statistics, statistics_too, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


def test_counts_stand_for_rows_that_are_drawn(no_sums):
    relation = frozenset({(3, 0)})
    one = agents_of([relation], 4)
    many = one._replaced(counts=np.array([50]))
    total, members, _ = enumerated(COMPONENTS, [relation])
    em = MallowsEM(Profile.of(many), MallowsParameters(2, n_particles=64), KEY)
    values, found = averaged_statistics(em, COMPONENTS, 50)
    assert values.mean() == pytest.approx(50 * total, abs=1.0)
    assert np.mean([s.members for s in found], axis=0) == pytest.approx(50 * members, abs=1.0)
    assert all(s.rankings.sum() == pytest.approx(50.0) for s in found)


def test_refusals():
    rankings = Rankings.from_orders([[0, 1, 2], [2, 1, 0]])
    with pytest.raises(DataError, match="n_components=3 is more than the 2 agents"):
        fit_mallows(as_preferences(rankings), MallowsParameters(3))
    silent = Preferences.from_levels([[["a"]]], items=["a", "b"], rest_below=False)
    silent = silent._replaced(
        level_indptr=np.zeros(2, np.int64), level_items=silent.level_items[:0], levels=silent.levels[:0]
    )
    with pytest.raises(DataError, match="nothing to fit"):
        fit_mallows(silent, MallowsParameters(1))
    for bad in ({"n_components": 0}, {"tol": -1.0}, {"n_particles": 1}, {"min_dispersion": 0.0}):
        with pytest.raises(DataError, match=next(iter(bad))):
            MallowsParameters(**bad)


def test_identical_rankings_and_single_items():
    same = as_preferences(Rankings.from_orders([["a", "b", "c"]] * 5))
    fit = fit_mallows(same, MallowsParameters(1, min_dispersion=0.01))
    assert fit.components.dispersions == pytest.approx([0.01])
    twice = fit_mallows(same, MallowsParameters(2, random_state=0))
    assert float(twice.log_likelihood) <= 0.0
    assert np.isfinite(twice.probabilities).all()


def test_interrupt_keeps_the_best_so_far(no_sums):
    preferences = all_kinds(3)[0]
    timer = threading.Timer(0.6, _thread.interrupt_main)
    timer.start()
    fit = fit_mallows(preferences, MallowsParameters(2, n_init=500, max_iter=10_000, tol=0.0, random_state=0))
    timer.cancel()
    assert fit.interrupted
    assert np.isfinite(float(fit.log_likelihood))
    assert fit.probabilities.shape == (len(preferences), 2)


@pytest.mark.realdata
def test_sushi(data_folder):
    """One component: the proven Kemeny center has λ = 0.2419; six: better than any of 150 plain runs."""
    rankings = permix.datasets.load_sushi(download=False).data
    preferences = as_preferences(rankings)
    one = fit_mallows(preferences, MallowsParameters(1, center_search="exact"))
    assert one.components.decays[0] == pytest.approx(0.2419, abs=5e-5)
    borda = np.argsort(np.nanmean(rankings.ranks(), axis=0))
    em = MallowsEM(Profile.of(preferences), MallowsParameters(1), KEY)
    _, statistics = em.e_step(one.components, 0)
    from permix.distributions.conditioning.partitioned_jit import best_decay
    from permix.kernels.kemeny_search import order_score

    score = order_score(statistics.wins[0], borda)
    assert best_decay(float(score), 5000.0, np.zeros(11), 9.0, 0.0) == pytest.approx(0.2412, abs=5e-5)


def test_starts_race_on_a_part_of_many_agents(monkeypatch, no_sums):
    """The best start goes on with everybody: nobody is left out of the fit, whatever the kind of steps."""
    from permix.mallows import restarts as mallows_restarts

    # Of 45 agents, as half of these would leave, the mean log-likelihood has an error of 10 %.
    monkeypatch.setattr(mallows_restarts, "MOST_EXACT", 100)
    monkeypatch.setattr(mallows_restarts, "MOST_SAMPLED", 100)
    for preferences in (some_full_top_and_levels(4), all_kinds(4)[0]):
        tracks = []
        original = mallows_restarts.KendallRows.part

        def spy(*arguments, original=original, tracks=tracks):
            part = original(*arguments)
            tracks.append(part.profile)
            return part

        monkeypatch.setattr(mallows_restarts.KendallRows, "part", spy)
        fit = fit_mallows(preferences, MallowsParameters(2, n_init=3, random_state=0))
        monkeypatch.setattr(mallows_restarts.KendallRows, "part", original)
        assert len(tracks[0].preferences) < len(preferences) / 2
        assert fit.probabilities.shape == (len(preferences), 2)
        profile = Profile.of(preferences)
        values, errors = log_normalizers(fit.components, profile, 64, KEY)
        whole = total_log_likelihood(values + fit.components.log_weights, errors, profile.counts)
        assert abs(fit.log_likelihood - whole) < 5 * fit.log_likelihood.standard_error + 0.02 * abs(whole)
        assert np.allclose(fit.start_log_likelihoods, whole, rtol=0.1)
        em = MallowsEM(profile, fit.settings, KEY)
        if em.exact:  # the fit is at rest with everybody, not only with the part
            now, statistics = em.e_step(fit.components, 0)
            gained = em.e_step(em.m_step(fit.components, statistics), 1)[0] - now
            assert 0.0 <= gained + 1e-9 <= 1e-4 * em.n_agents


def test_no_component_dies():
    """More components fit better, and nobody is left with weight zero while others could be helped."""
    data = as_preferences(make_mallows_mixture(40, 6, 4, dispersion=0.5, random_state=1).data)
    found = [
        float(fit_mallows(data, MallowsParameters(k, random_state=1, n_init=3)).log_likelihood)
        for k in (8, 10, 12)
    ]
    assert found == sorted(found)
    many = as_preferences(make_mallows_mixture(300, 6, 3, dispersion=0.5, random_state=1).data)
    fit = fit_mallows(many, MallowsParameters(20, random_state=3, n_init=2))
    assert np.sum(fit.components.weights == 0.0) <= 2


def test_agents_who_say_nothing_change_nothing():
    """One level, all items tied, or no statement at all: the fit stays exact and the same."""
    data = some_full_top_and_levels(5)
    items = range(7)
    idle = [
        Preferences.from_levels([[[0, 3]]], items=items, rest_below=False),
        Preferences.from_levels([[list(items)]], items=items, rest_below=True),
    ]
    mixed = Preferences.concat([data, *idle])
    settings = MallowsParameters(3, n_init=2, random_state=0)
    alone, together = fit_mallows(data, settings), fit_mallows(mixed, settings)
    assert together.log_likelihood.standard_error == 0.0
    assert float(together.log_likelihood) == float(alone.log_likelihood)
    np.testing.assert_allclose(together.probabilities[-2:], np.tile(together.components.weights, (2, 1)))
    for nothing in (idle[0], Preferences.from_rankings(Rankings.from_orders([["a"], ["a"]]))):
        with pytest.raises(DataError, match="nothing to fit"):
            fit_mallows(nothing, MallowsParameters(1))


def test_huge_counts():
    pairs = [("a", "x", "y"), ("b", "z", "y"), ("c", "x", "z")]
    data = Preferences.from_pairs(pairs, items=list("xyzw"), counts=[4 * 10**9] * 3)
    fit = fit_mallows(data, MallowsParameters(1, random_state=0, n_init=1))
    assert np.isfinite(fit.log_likelihood)
    assert np.isfinite(fit.history).all()


@pytest.mark.slow
def test_error_of_the_likelihood_is_honest_with_many_agents():
    """Where sums are not affordable: the bias of logarithms is put back, and counts as error."""
    made = make_mallows_mixture(
        4000, 30, 1, dispersion=0.9, observed="pairs", pair_fraction=0.03, random_state=2
    )
    fit = fit_mallows(made.data, MallowsParameters(1, n_init=1, n_particles=4, random_state=0))
    values, errors = log_normalizers(fit.components, Profile.of(made.data), 512, KEY, n_sets=8)
    truth = total_log_likelihood(values, errors, made.data.counts)
    error = np.hypot(fit.log_likelihood.standard_error, truth.standard_error)
    assert 0.0 < error < 0.01 * abs(truth)
    assert abs(fit.log_likelihood - truth) < 4 * error
