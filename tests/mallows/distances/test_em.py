"""EM under every distance against enumeration: sums, centers, maxima over all centers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import permix
from permix import MallowsMixture, Preferences, Rankings
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.distances.centers import centers_for
from permix.distributions.distances.names import DISTANCES
from permix.distributions.distances.normalizer import normalizer
from permix.estimators.preference_input import as_preferences
from permix.mallows.climbs import Follow
from permix.mallows.parameters import MallowsParameters
from permix.mallows.posterior import posterior_of
from permix.mallows.restarts import rows_of
from tests.oracles import bayes_mallows as said
from tests.oracles import distance_mixtures as oracle

OTHERS = DISTANCES[1:]
KEY = np.array([5, 6], np.uint64)
SILENT = Follow(lambda iteration, value: None, lambda: False)


def some_agents(form, n, seed=0, size=8):
    """What agents say, as the oracle has it and as permix does."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(n).tolist() for _ in range(size)]
    if form == "full":
        return [said.full(order) for order in orders], Rankings.from_orders(orders, n_items=n)
    if form == "top":
        lists = [order[: 1 + j % (n - 2)] for j, order in enumerate(orders)]
        return [said.top(best, n) for best in lists], Rankings.from_orders(lists, n_items=n)
    if form == "subset":
        lists = [order[: 2 + j % (n - 2)] for j, order in enumerate(orders)]
        table = Rankings.from_orders(lists, n_items=n, unlisted="unknown")
        return [said.subset(some) for some in lists], table
    if form == "ties":
        groups = [
            [order[:1], order[1:3], order[3:]] if j % 2 else [order[:2], order[2:]]
            for j, order in enumerate(orders)
        ]
        return [said.levels(*each) for each in groups], Preferences.from_levels(groups, items=range(n))
    pairs = [[(order[0], order[2]), (order[1], order[3])] for order in orders]
    triples = [(j, a, b) for j, each in enumerate(pairs) for a, b in each]
    return [said.compared(*each) for each in pairs], Preferences.from_pairs(triples, items=range(n))


FORMS = ("full", "top", "subset", "ties", "pairs")
MIXTURES = {
    4: [(0.6, (2, 0, 3, 1), 0.5), (0.4, (1, 3, 2, 0), 0.2)],
    5: [(0.6, (2, 0, 4, 3, 1), 0.4), (0.4, (1, 3, 2, 0, 4), 0.1)],
}


def components_of(mixture, distance):
    weights, centers, decays = zip(*mixture, strict=True)
    items = tuple(range(len(centers[0])))
    return MallowsComponents(items, np.array(weights), np.array(centers), np.array(decays), distance=distance)


@pytest.mark.parametrize("distance", OTHERS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [4, 5])
def test_what_agents_say_is_as_probable_as_by_enumeration(distance, form, n):
    agents, data = some_agents(form, n)
    components = components_of(MIXTURES[n], distance)
    wanted = oracle.log_probabilities(distance, MIXTURES[n], agents)
    table = as_preferences(data)
    found = posterior_of(components, table, 2, np.random.default_rng(0))
    scores = np.logaddexp.reduce(found.log_joint, axis=1)
    np.testing.assert_allclose(scores, wanted, atol=1e-10)
    # EM: the likelihood, and what the M-step is told.
    collapsed = table.collapse()
    rows = rows_of(Profile.of(collapsed), MallowsParameters(2, distance=distance))
    em = rows.em(KEY)
    value, statistics = em.exact_step(components)
    assert value == pytest.approx(wanted.sum(), abs=1e-9)
    expected = sum(oracle.posterior(distance, MIXTURES[n], agent) for agent in agents)
    place = [said.orderings(n).index(tuple(order)) for order in rows.listed.orders.tolist()]
    np.testing.assert_allclose(statistics.weights, expected[:, place], atol=1e-10)
    np.testing.assert_allclose(statistics.members, expected.sum(axis=1), atol=1e-10)
    # The twins are noticed.
    twins = [oracle.without_normalizers, oracle.of_other_distance]
    twins += [oracle.nearest_alone] if form != "full" else []
    for twin in twins:
        assert np.abs(twin(distance, MIXTURES[n], agents) - wanted).max() > 1e-3


@pytest.mark.parametrize("distance", OTHERS)
def test_centers_against_all_centers(distance):
    """Exact where the sum is one over items; a search finds the best of 120 centers nearly always."""
    rng = np.random.default_rng(1)
    missed, mean_rank_missed, alone_missed = 0, 0, 0
    n, orders = 5, np.array(said.orderings(5), dtype=np.int32)
    centers = centers_for(distance, orders)
    np.testing.assert_array_equal(centers.distances(orders[:9]), said.distances(distance, n).T[:9])
    for _ in range(60):
        weights = np.where(rng.random(120) < 0.15, rng.exponential(size=120), 0.0)
        least = oracle.best_sum(distance, weights, n)
        start = orders[rng.integers(120)][None]
        found, totals = centers.nearest(weights[None], start, thorough=True)
        assert totals[0] == pytest.approx(centers.distances(found)[0] @ weights)
        missed += totals[0] > least + 1e-9
        alone_missed += centers.nearest(weights[None], start)[1][0] > least + 1e-9
        by_mean_rank = np.argsort(weights @ np.argsort(orders, axis=1))[None]
        mean_rank_missed += centers.distances(by_mean_rank)[0] @ weights > least + 1e-9
    if centers.exact:
        assert missed == alone_missed == 0
    else:
        assert missed <= 2 < alone_missed
    # The twin: the order of mean ranks is the center under Spearman's distance alone.
    assert (mean_rank_missed == 0) == (distance == "spearman")


@pytest.mark.parametrize("distance", ["cayley", "ulam"])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_neighbors_are_all_there_is_one_step_away(distance, n):
    rng = np.random.default_rng(2)
    orders = np.unique(np.array([rng.permutation(n) for _ in range(30)], dtype=np.int32), axis=0)
    centers, weights = centers_for(distance, orders), rng.exponential(size=len(orders))
    center = orders[0]
    found = centers.neighbors(weights, center, 1000)
    one_step = {"cayley": n * (n - 1) // 2, "ulam": (n - 1) ** 2}[distance]
    assert len(np.unique(found, axis=0)) == len(found) == one_step
    assert (centers_for(distance, found.astype(np.int32)).distances(center[None]) == 1).all()
    totals = centers.distances(found) @ weights
    assert (np.diff(totals) > -1e-9).all()
    here = centers.distances(center[None])[0] @ weights
    change, best = centers.step(weights, center)
    assert centers.distances(best[None])[0] @ weights == pytest.approx(here + change)
    if totals[0] < here:
        assert change == pytest.approx(totals[0] - here)


def drawn(distance, n, size, seed, decays, form="full"):
    """Data of two groups that are far from each other."""
    centers = (list(range(n)), list(range(n))[::-1])
    parts = [
        permix.Mallows(center, np.exp(-decay), items=range(n), distance=distance).sample(
            size, random_state=seed + j
        )
        for j, (center, decay) in enumerate(zip(centers, decays, strict=True))
    ]
    orders = np.concatenate([part.orders for part in parts])
    if form == "top":
        orders = [order[: 1 + j % (n - 1)] for j, order in enumerate(orders.tolist())]
    return Rankings.from_orders(orders, n_items=n)


# Decays under which the distances of members are a third of what they are without agreement, about.
DECAY = {"footrule": 0.5, "spearman": 0.25, "cayley": 1.2, "hamming": 1.2, "ulam": 1.2}


def agents_of(data, n):
    return [said.top([item for item in row if item >= 0], n) for row in data.orders.tolist()]


@pytest.mark.parametrize("distance", OTHERS)
@pytest.mark.parametrize(("form", "n"), [("full", 4), ("full", 5), ("top", 4)])
def test_one_group_is_the_maximum_over_all_centers(distance, form, n):
    data = drawn(distance, n, 12, 3, (DECAY[distance], 2 * DECAY[distance]), form)
    fit = MallowsMixture(1, distance=distance, tol=1e-12, random_state=0, progress=False).fit(data)
    best = oracle.best_single(distance, agents_of(data, n), n, -np.log(1e-3))
    assert float(fit.log_likelihood_) == pytest.approx(best, abs=1e-5)
    assert fit.log_likelihood_.standard_error == 0.0


@pytest.mark.parametrize("distance", OTHERS)
@pytest.mark.parametrize("form", ["full", pytest.param("top", marks=pytest.mark.slow)])
def test_two_groups_reach_the_maximum_over_all_pairs_of_centers(distance, form):
    data, most = drawn(distance, 4, 60, 4, (1.5 * DECAY[distance], 1.5 * DECAY[distance]), form), 3.0
    options = {
        "n_init": 6,
        "tol": 1e-10,
        "min_dispersion": np.exp(-most),
        "random_state": 0,
        "progress": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = MallowsMixture(2, distance=distance, **options).fit(data)
    assert float(fit.log_likelihood_) >= oracle.best_pair(distance, agents_of(data, 4), 4, most) - 1e-3


@pytest.mark.parametrize("distance", OTHERS)
def test_a_climb_never_falls_and_ends_where_em_stays(distance):
    data = as_preferences(drawn(distance, 6, 60, 5, (DECAY[distance] / 2, DECAY[distance] / 2))).collapse()
    rows = rows_of(Profile.of(data), MallowsParameters(3, distance=distance, tol=1e-10, max_iter=2000))
    for seed in range(3):
        em = rows.em(KEY)
        run = em.climb(rows.start(np.random.default_rng(seed)), SILENT)
        assert run.converged
        assert np.diff(run.history[:, 0]).min(initial=0.0) > -1e-9
        value, statistics = em.exact_step(run.components)
        assert value == pytest.approx(float(run.log_likelihood), abs=1e-9)
        following = em.m_step(run.components, statistics)
        assert em.exact_step(following)[0] - value < 1e-6
        assert em.exchanges(run.components, statistics, 1e-6) == []


@pytest.mark.parametrize("distance", OTHERS)
def test_decays_from_a_start_nearby(distance):
    sums = normalizer(distance, 7)
    decays = np.array([1e-3, 0.04, 0.7, 3.0, 30.0])
    values = sums.values(decays)
    for at, decay in enumerate(decays.tolist()):
        np.testing.assert_allclose(
            values[:, at], [sums.log_z(decay), sums.mean_distance(decay), sums.variance(decay)], rtol=1e-9
        )
    means = np.array([sums.mean_distance(decay) for decay in decays])
    for starts in (decays * 1.2, np.full(5, 0.5), np.zeros(5)):
        np.testing.assert_allclose(sums.decays_at(means, starts), decays, rtol=1e-6)
    assert sums.decays_at(np.array([0.0, 1e6]), np.ones(2), 5.0).tolist() == [5.0, 0.0]
