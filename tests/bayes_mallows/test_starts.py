"""Where chains of a given number of groups start: climbs of EM over full rankings, and their crossings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import permix
from permix.bayes_mallows.chain import optimum
from permix.bayes_mallows.chain.optimum import LEAST_RISE, Climbs, settle_at_optimum
from permix.bayes_mallows.data import bayes_model
from permix.bayes_mallows.fit import first_place, first_state
from permix.bayes_mallows.parameters import DISTANCES, BayesianMallowsParameters
from permix.datasets import make_mallows_mixture
from permix.distributions.distances.centers import centers_for
from permix.distributions.distances.normalizer import normalizer
from permix.estimators.preference_input import as_preferences
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters


def climbs_of(distance, n_agents=300, n_items=5, n_groups=3, seed=0):
    orders = make_mallows_mixture(n_agents, n_items, n_groups, dispersion=0.5, random_state=seed).data.orders
    different, counts = np.unique(orders, axis=0, return_counts=True)
    return Climbs(normalizer(distance, n_items), different, counts)


def naive_kendall(first, second):
    a, b = np.argsort(first), np.argsort(second)
    pairs = itertools.combinations(range(len(a)), 2)
    return sum((a[i] < a[j]) != (b[i] < b[j]) for i, j in pairs)


def test_centers_of_pairs_are_the_nearest_that_moving_an_item_leads_to():
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(6) for _ in range(40)])
    weights, given = rng.random((3, 40)), np.array([rng.permutation(6) for _ in range(3)])
    centers = centers_for("kendall", orders)
    naive = np.array([[naive_kendall(order, center) for order in orders] for center in given])
    assert np.array_equal(centers.distances(given), naive)
    for thorough in (False, True):
        found, totals = centers.nearest(weights, given, thorough=thorough)
        assert totals == pytest.approx((weights * centers.distances(found)).sum(axis=1), rel=1e-5)
        assert (totals < (weights * naive).sum(axis=1)).all()
        for k, center in enumerate(found):
            for at, to in itertools.permutations(range(6), 2):
                moved = np.insert(np.delete(center, at), to, center[at])
                assert weights[k] @ centers.distances(moved[None])[0] > totals[k] * (1.0 - 1e-4)


def test_neighbors_of_pairs_come_nearest_first():
    rng = np.random.default_rng(1)
    orders = np.array([rng.permutation(5) for _ in range(30)])
    weights, center = rng.random(30), rng.permutation(5)
    centers = centers_for("kendall", orders)
    near = centers.neighbors(weights, center, 4)
    totals = centers.distances(near) @ weights
    assert np.array_equal(np.sort(totals), totals)
    assert all(naive_kendall(each, center) == 1 for each in near)
    assert len({tuple(each) for each in near.tolist()}) == 4


@pytest.mark.parametrize("distance", DISTANCES)
def test_rounds_of_em_raise_the_likelihood(distance):
    climbs = climbs_of(distance)
    at = climbs.start(3, np.random.default_rng(1))
    before = -np.inf
    for _ in range(8):
        shares = climbs.share_out(at)
        # One ranking more in each group, drawn evenly, holds decays back by as much.
        assert shares.log_likelihood > before - 1e-3 * abs(before) / len(climbs.counts)
        before = shares.log_likelihood
        at = climbs.maximized(at, shares.weights)


@pytest.mark.parametrize("distance", DISTANCES)
def test_likelihoods_are_those_of_the_mixture(distance):
    climbs = climbs_of(distance)
    found = climbs.climb(climbs.start(2, np.random.default_rng(0)))
    mixture, orders = found.components, climbs.rankings.orders
    data = permix.Rankings.from_orders(orders.tolist())
    log_probabilities = [
        np.log(mixture.weights[k]) + mixture.component(k).log_prob(data) for k in range(mixture.n_components)
    ]
    value = climbs.counts @ np.logaddexp.reduce(log_probabilities, axis=0)
    assert climbs.share_out(mixture).log_likelihood == pytest.approx(value, rel=1e-9)
    assert found.log_likelihood == pytest.approx(value, rel=1e-9)


def test_where_a_climb_ends_no_exchange_of_neighbors_gains_much(monkeypatch):
    monkeypatch.setattr(optimum, "MOST_TRIED", 5)
    climbs = climbs_of("kendall", 800, 6, 4)
    for seed in range(5):
        found = climbs.climb(climbs.start(4, np.random.default_rng(seed)))
        for k, place in itertools.product(range(4), range(5)):
            centers = found.components.centers.copy()
            centers[k, [place, place + 1]] = centers[k, [place + 1, place]]
            there = found.components.with_values(found.components.weights, centers, found.components.decays)
            rise = climbs.share_out(there).log_likelihood - found.log_likelihood
            assert rise < LEAST_RISE + 1e-9


def test_searches_find_what_climbs_do_not():
    """Eight groups that overlap: every search comes near the best optimum of ``MallowsMixture``."""
    data = make_mallows_mixture(800, 7, 8, dispersion=0.6, random_state=2).data
    best = float(fit_mallows(as_preferences(data), MallowsParameters(8, n_init=6)).log_likelihood)
    different, counts = np.unique(data.orders, axis=0, return_counts=True)
    climbs = Climbs(normalizer("kendall", 7), different, counts)
    found = [climbs.search(8, np.random.default_rng(seed)).log_likelihood for seed in range(3)]
    assert min(found) > best - 4.0  # climbs end early, and decays are held back
    rng = np.random.default_rng(0)
    single = [climbs.climb(climbs.start(8, rng), rng).log_likelihood for _ in range(12)]
    assert sum(value > best - 4.0 for value in single) <= 2


@pytest.mark.parametrize("most", [optimum.MOST_NUMBERS, 3000])
def test_agents_are_put_where_the_optimum_has_them(most, monkeypatch):
    """With all agents, or a part of them, in the search; groups are as they were made."""
    monkeypatch.setattr(optimum, "MOST_NUMBERS", most)
    monkeypatch.setattr(optimum, "LEAST_AGENTS", 50)
    made = make_mallows_mixture(900, 6, 3, dispersion=0.3, random_state=3)
    settings = BayesianMallowsParameters(3)
    model = bayes_model(as_preferences(made.data), settings)
    state = first_state(model, np.random.default_rng(0))
    settle_at_optimum(state, 3, np.random.default_rng(1))
    assert permix.adjusted_rand(state.labels[model.in_turn], made.labels) > 0.8
    totals, sizes = state.totals.copy(), state.sizes.copy()
    state.refresh()
    assert np.array_equal(state.totals, totals)
    assert np.array_equal(state.sizes, sizes)
    assert state.shares.sum() == pytest.approx(1.0)


def test_chains_of_full_rankings_start_at_an_optimum(monkeypatch):
    asked = []
    real = optimum.Climbs.search
    monkeypatch.setattr(optimum.Climbs, "search", lambda self, k, rng: asked.append(k) or real(self, k, rng))
    data = as_preferences(make_mallows_mixture(80, 5, 2, dispersion=0.4, random_state=0).data)
    for n_components in (2, "mfm", 1):
        settings = BayesianMallowsParameters(n_components)
        first_place(bayes_model(data, settings), settings, np.random.default_rng(0))
    assert asked == [2]
